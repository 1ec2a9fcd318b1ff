"""The client of one MCP server: its tools, prompts and resources, in either era of the protocol, over any transport.

    client = McpClient(StdioServer("npx", ("-y", "some-server")))
    try:
        await client.connect()
        tools = (await client.list_tools()).items
        result = await client.call_tool("echo", {"text": "hi"})
    finally:
        await client.aclose()

All failures are McpError (errors.py); an address that is none is a ConfigError. A client whose server died connects anew at its next
request; whether that is right is for the caller to say, who sees `is_connected`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from dragoman.mcp_client.channel import Channel
from dragoman.mcp_client.contracts import (
    Authorizer,
    CallResult,
    Elicit,
    Elicitation,
    Era,
    HttpServer,
    McpPrompt,
    McpResource,
    McpTool,
    Offered,
    Progress,
    ServerInfo,
    StdioServer,
)
from dragoman.mcp_client.errors import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    OPEN_A_PAGE_FIRST,
    McpError,
    ProtocolError,
    ServerDied,
    ServerGarbled,
    SessionLost,
)
from dragoman.mcp_client.handshake import modern_meta, shake_hands
from dragoman.mcp_client.messages import RpcNotification, RpcRequest
from dragoman.mcp_client.mirrored import Mirrored, WrongHeader, headers_for, mirrored_of
from dragoman.mcp_client.offers import blocks_of, call_result_from_wire, prompt_from_wire, resource_from_wire, tool_from_wire
from dragoman.mcp_client.peer import Peer
from dragoman.mcp_client.questions import Unanswerable, answer_question, answer_required, capabilities_for
from dragoman.values.commands import Launch
from dragoman.values.contracts import Transport
from dragoman.values.errors import ProviderError
from dragoman.words import say

TIMEOUT_S = 60.0
MOST_PAGES = 200
MOST_ITEMS = 10_000
MOST_LIST_BYTES = 32 * 1024 * 1024
MOST_TTL_MS = 366 * 24 * 3600 * 1000
MOST_ROUNDS = 16
"""How often a server may ask for more before it answers one request."""

T = TypeVar("T")


class McpClient:
    """Belongs to one event loop; any number of its tasks may use it at once."""

    def __init__(
        self,
        server: StdioServer | HttpServer,
        *,
        name: str = "",
        authorizer: Authorizer | None = None,
        elicit: Elicit | None = None,
        era: Era = "",
        on_change: Callable[[str], None] | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: Transport | None = None,
        launch: Launch | None = None,
    ) -> None:
        """`name`: the server's, in sentences. `era`: what is known of it, from `ServerInfo.era` of an earlier run. `on_change` is told
        `tools`, `prompts` or `resources` when the server's list of them has changed. `timeout_s`: how long nothing may be heard.
        `transport`: for HTTP, one that is shared and not closed with the client. `launch`: who starts the program, so that it ends with us.
        """
        self.name = name or (server.command if isinstance(server, StdioServer) else _shown_address(server.url))
        self._server = server
        self._authorizer = authorizer
        self._elicit = elicit
        self._era: Era = era
        self._on_change = on_change
        self._timeout_s = timeout_s
        self._given_transport = transport
        self._own_transport: Transport | None = None
        self._launch = launch
        self._peer: Peer | None = None
        self._greeting: Peer | None = None
        """The last that was greeted: closing the client does not wait for a server that says nothing."""
        self._info = ServerInfo()
        self._connecting = asyncio.Lock()
        self._mirrored: dict[str, Mirrored] = {}
        self._subscription: asyncio.Task[None] | None = None
        self._asked = 0
        """How many calls, prompts and resources it is being asked for."""

    @property
    def info(self) -> ServerInfo:
        """What the server said of itself on the last connection."""
        return self._info

    @property
    def is_connected(self) -> bool:
        return self._peer is not None and self._peer.is_open

    @property
    def stderr(self) -> str:
        """The end of what the program wrote to its standard error; empty for HTTP."""
        return self._peer.channel.stderr if self._peer is not None else ""

    def secrets(self) -> tuple[str, ...]:
        """The tokens that it sends, to be taken out of what the server answers."""
        return self._authorizer.secrets() if self._authorizer is not None else ()

    async def connect(self) -> ServerInfo:
        """Does nothing if it is connected. Raises McpError."""
        await self._ensure_connected()
        return self._info

    async def list_tools(self) -> Offered[McpTool]:
        listing = await self._list("tools/list", "tools", tool_from_wire)
        return self._without_wrong_headers(listing) if isinstance(self._server, HttpServer) and self._info.era == "modern" else listing

    async def list_prompts(self) -> Offered[McpPrompt]:
        return await self._list("prompts/list", "prompts", prompt_from_wire)

    async def list_resources(self) -> Offered[McpResource]:
        """Resources, then templates of them."""
        plain = await self._list("resources/list", "resources", resource_from_wire)
        templates = await self._list("resources/templates/list", "resourceTemplates", resource_from_wire)
        ttls = [each for each in (plain.ttl_ms, templates.ttl_ms) if each is not None]
        return Offered(items=plain.items + templates.items, ttl_ms=min(ttls, default=None), scope=_narrower(plain.scope, templates.scope))

    def remember(self, tools: Offered[McpTool] | tuple[McpTool, ...]) -> None:
        """Tools that are known from an earlier run: what of their arguments a server of the modern era wants in headers."""
        for tool in tools.items if isinstance(tools, Offered) else tools:
            try:
                self._mirrored[tool.name] = mirrored_of(tool.input_schema)
            except WrongHeader:
                continue

    async def call_tool(self, name: str, args: Mapping[str, Any], *, progress: Progress | None = None) -> CallResult:
        """What the tool answered: `is_error` is a tool that failed, ProtocolError a call that was not carried out."""
        arguments = dict(args)
        call = partial(self._request_with_input, "tools/call", {"name": name, "arguments": arguments}, progress=progress)
        try:
            result = await call(headers=headers_for(self._mirrored.get(name, {}), arguments))
        except ProtocolError as error:
            if error.code != HEADER_MISMATCH:
                raise
            await self.list_tools()  # its schema has changed, or was never known
            result = await call(headers=headers_for(self._mirrored.get(name, {}), arguments))
        return call_result_from_wire(result)

    async def read_resource(self, uri: str) -> tuple[dict[str, Any], ...]:
        """Its contents as the protocol has them: objects with `text` or `blob` (base64), `uri` and `mimeType`."""
        return blocks_of(await self._request_with_input("resources/read", {"uri": uri}), "contents")

    async def get_prompt(self, name: str, args: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        """Its messages as the protocol has them: objects with `role` and `content`."""
        return blocks_of(await self._request_with_input("prompts/get", {"name": name, "arguments": dict(args)}), "messages")

    async def aclose(self) -> None:
        """End the connection; a program is ended with everything it started."""
        if self._greeting is not None:
            self._greeting.abandon()
        async with self._connecting:
            await self._disconnect()
            if self._own_transport is not None:
                await self._own_transport.aclose()
                self._own_transport = None

    # --- the connection

    async def _ensure_connected(self) -> Peer:
        if self._peer is not None and self._peer.is_open:
            return self._peer
        async with self._connecting:
            if self._peer is not None and self._peer.is_open:
                return self._peer
            await self._disconnect()
            self._peer = await self._open()
            self._era = self._info.era
            self._subscribe(self._peer)
            return self._peer

    async def _open(self) -> Peer:
        if isinstance(self._server, StdioServer):
            from dragoman.mcp_client.stdio import StdioChannel

            try:
                return await self._greet(StdioChannel(self._server, self.name, self._launch), self._era)
            except ServerDied:
                if self._era != "modern":
                    raise
            # What was known of it holds no more: an older one may end at a request that it does not know.
            return await self._greet(StdioChannel(self._server, self.name, self._launch), "")
        from dragoman.mcp_client.opening import open_http, open_transport

        if self._given_transport is None and self._own_transport is None:
            self._own_transport = open_transport()
        transport = self._given_transport or self._own_transport
        assert transport is not None
        return await open_http(self._server, self.name, transport, self._authorizer, self._era, self._greet)

    async def _greet(self, channel: Channel, era: Era) -> Peer:
        peer = self._greeting = Peer(channel, self.name, self._answer, self._hear)
        try:
            await peer.open()
            capabilities, by_http = capabilities_for(self._elicit), isinstance(self._server, HttpServer)
            self._info = await shake_hands(peer, self.name, era, capabilities, by_http=by_http, timeout_s=self._timeout_s)
        except ProviderError as error:
            await peer.aclose()
            raise ServerDied(say("mcp.unreachable", server=self.name, reason=error)) from error
        except BaseException:
            await peer.aclose()
            raise
        return peer

    async def _disconnect(self) -> None:
        if self._subscription is not None:
            self._subscription.cancel()
            self._subscription = None
        if self._peer is not None:
            await self._peer.aclose()
            self._peer = None

    # --- requests

    async def _request(
        self, method: str, params: dict[str, Any], *, headers: Mapping[str, str] = {}, progress: Progress | None = None
    ) -> dict[str, Any]:
        peer = await self._ensure_connected()
        send = partial(self._send, method, params, headers=headers, progress=progress)
        try:
            return await send(peer)
        except SessionLost:
            await self._leave(peer)
            return await send(await self._ensure_connected())
        except ProviderError as error:
            raise ServerDied(say("mcp.lost", server=self.name, reason=error)) from error

    async def _send(self, method: str, params: dict[str, Any], peer: Peer, **how: Any) -> dict[str, Any]:
        if self._info.era == "modern":
            params = {**params, "_meta": modern_meta(self._info.version, capabilities_for(self._elicit))}
        return await peer.request(method, params, timeout_s=self._timeout_s, **how)

    async def _leave(self, peer: Peer) -> None:
        """A session that the server has forgotten; others may have begun a new one meanwhile."""
        async with self._connecting:
            if self._peer is peer:
                await self._disconnect()

    async def _request_with_input(
        self, method: str, params: dict[str, Any], *, headers: Mapping[str, str] = {}, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The result, after the server's questions were answered: the modern era puts them into a result, and the request is repeated."""
        self._asked += 1
        try:
            return await self._ask_until_complete(method, params, headers, progress)
        finally:
            self._asked -= 1

    async def _ask_until_complete(
        self, method: str, params: dict[str, Any], headers: Mapping[str, str], progress: Progress | None
    ) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        has_opened = False
        for _ in range(MOST_ROUNDS):
            try:
                result = await self._request(method, {**params, **extra}, headers=headers, progress=progress)
            except ProtocolError as error:
                if has_opened or not await self._has_opened_pages(error):
                    raise
                has_opened = True
                continue
            match result.get("resultType", "complete"):
                case "complete":
                    return result
                case "input_required" if self._info.era == "modern":
                    extra = await self._gather_input(result)
                case other:
                    raise ServerGarbled(say("mcp.unknown_result", server=self.name, kind=str(other)[:100]))
        raise ServerGarbled(say("mcp.asks_forever", server=self.name, count=MOST_ROUNDS))

    async def _has_opened_pages(self, error: ProtocolError) -> bool:
        """Whether the user has opened all pages that a server wants to be opened before it goes on."""
        wanted = error.data.get("elicitations") if isinstance(error.data, dict) else None
        if error.code != OPEN_A_PAGE_FIRST or self._elicit is None or not isinstance(wanted, list) or not wanted:
            return False
        for each in wanted:
            url, message = (each.get("url"), each.get("message")) if isinstance(each, dict) else (None, None)
            if not isinstance(url, str):
                return False
            if (await self._elicit(Elicitation(message=message if isinstance(message, str) else "", url=url))).action != "accept":
                return False
        return True

    async def _gather_input(self, result: dict[str, Any]) -> dict[str, Any]:
        asked, state = result.get("inputRequests"), result.get("requestState")
        answers: dict[str, Any] = {}
        for key, each in asked.items() if isinstance(asked, dict) else ():
            method = each.get("method") if isinstance(each, dict) else None
            params = each.get("params") if isinstance(each, dict) else None
            try:
                answers[key] = await answer_required(str(method), params if isinstance(params, dict) else {}, self._elicit)
            except Unanswerable as error:
                raise ServerGarbled(say("mcp.not_offered", server=self.name, method=str(method)[:100])) from error
        return {**({"inputResponses": answers} if answers else {}), **({"requestState": state} if state is not None else {})}

    async def _list(self, method: str, field: str, read: Callable[[dict[str, Any]], T | None]) -> Offered[T]:
        """All pages of a list. A server that gives a page twice, or never ends, is cut off."""
        items: list[T] = []
        ttls: list[int] = []
        scope: str = ""
        cursor: str | None = None
        length = 0
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            try:
                result = await self._request(method, {"cursor": cursor} if cursor else {})
            except ProtocolError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                break  # it has none
            items += [item for each in blocks_of(result, field) if (item := read(each)) is not None]
            if isinstance(ttl := result.get("ttlMs"), int | float) and ttl >= 0:
                ttls.append(int(min(ttl, MOST_TTL_MS)))
            scope = _narrower(scope, result.get("cacheScope"))
            cursor = result.get("nextCursor")
            length += len(msgspec.json.encode(result))
            is_enough = len(items) >= MOST_ITEMS or length > MOST_LIST_BYTES
            if not isinstance(cursor, str) or not cursor or cursor in seen or is_enough:
                break
            seen.add(cursor)
        return Offered(items=tuple(items[:MOST_ITEMS]), ttl_ms=min(ttls, default=None), scope=_narrower(scope, ""))

    def _without_wrong_headers(self, listing: Offered[McpTool]) -> Offered[McpTool]:
        kept: list[McpTool] = []
        wrong: list[str] = []
        for tool in listing.items:
            try:
                self._mirrored[tool.name] = mirrored_of(tool.input_schema)
            except WrongHeader as error:
                wrong.append(f"{tool.name}: {error}")
            else:
                kept.append(tool)
        return Offered(items=tuple(kept), ttl_ms=listing.ttl_ms, scope=listing.scope, left_out=tuple(wrong))

    # --- what the server says by itself

    def _answer(self, asked: RpcRequest) -> Awaitable[dict[str, Any]]:
        """Questions to the user belong to something that was asked of the server: else it could come between what the user types."""
        return answer_question(asked.method, asked.params, self._elicit if self._asked else None)

    def _hear(self, told: RpcNotification) -> None:
        kind, is_change, _ = told.method.removeprefix("notifications/").partition("/list_changed")
        if is_change and self._on_change is not None:
            self._on_change(kind)

    def _subscribe(self, peer: Peer) -> None:
        """In the modern era a server reports changes only to clients that ask for them."""
        changing = {
            f"{kind}ListChanged": True
            for kind in ("tools", "prompts", "resources")
            if isinstance(has := self._info.capabilities.get(kind), dict) and has.get("listChanged")
        }
        if self._on_change is None or not changing or self._info.era != "modern":
            return
        params = {"notifications": changing, "_meta": modern_meta(self._info.version, capabilities_for(self._elicit))}
        self._subscription = asyncio.ensure_future(_ignore_failure(peer.request("subscriptions/listen", params, timeout_s=float("inf"))))


async def _ignore_failure(work: Awaitable[object]) -> None:
    """For subscriptions that may fail: without them a change is noticed at the next start."""
    try:
        await work
    except (McpError, ProviderError):
        pass


def _shown_address(url: str) -> str:
    """Without what may be a secret: user, password and query."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _narrower(one: str, other: Any) -> Any:
    """The scope of two lists together."""
    if "private" in {one, other}:
        return "private"
    return "public" if "public" in {one, other} else ""
