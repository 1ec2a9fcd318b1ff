"""Answers the page: what it is made of to anybody whose request may be ours, sessions only to who has a key."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from dragoman.app.printing import print_out
from dragoman.app.setup import Setup
from dragoman.base import jsontext
from dragoman.conversation.session_page.assets import POLICY, asset
from dragoman.http.serving import AnswerSender, ClientLimits, Hangup, Listener, ReceivedRequest
from dragoman.values.errors import DragomanError, InputError, NoSession
from dragoman.viewer.access import Access
from dragoman.viewer.shelf import Shelf
from dragoman.viewer.socket_owners import is_own_connection
from dragoman.words import say

if TYPE_CHECKING:
    import ssl

    from dragoman.viewer.talking import Talking

MOST_BODY_BYTES = 4_000_000
IDLE_S = 75.0
CONNECTIONS = 100
PING_S = 15.0
BACKGROUND_LOOK_S = 0.5
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
    "content-security-policy": POLICY,
}
_JSON = _HEADERS | {"content-type": "application/json; charset=utf-8"}
_LINES = _HEADERS | {"content-type": "application/x-ndjson; charset=utf-8"}

Query = dict[str, str]
Body = dict[str, Any]


def serve(
    setup: Setup, access: Access, bound: socket.socket, tls: ssl.SSLContext | None, *, address: Callable[[], str], checks_users: bool
) -> None:
    """Until Ctrl-C, or until whoever started it ends it."""
    asyncio.run(_serve(setup, access, bound, tls, address, checks_users))


async def _serve(
    setup: Setup, access: Access, bound: socket.socket, tls: ssl.SSLContext | None, address: Callable[[], str], checks_users: bool
) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        with suppress(NotImplementedError, AttributeError):
            loop.add_signal_handler(getattr(signal, name), ended.set)
    viewer = PageServer(setup, access, address)
    own = bound.getsockname()

    def admit(writer: asyncio.StreamWriter) -> bool:
        peer = writer.get_extra_info("peername")
        return not checks_users or (peer is not None and is_own_connection(peer[:2], own[:2]))

    listener = Listener(viewer.respond, AnswerSender, ClientLimits(MOST_BODY_BYTES, IDLE_S, CONNECTIONS), admit, "viewer")
    await listener.open_on(bound, tls)
    _print_on_enter(loop, address)
    try:
        await ended.wait()
    finally:
        await viewer.aclose()
        await listener.aclose()


def _print_on_enter(loop: asyncio.AbstractEventLoop, address: Callable[[], str]) -> None:
    """A new address for each line that comes: the one that was printed works once. In the background (`dragoman view &`) what is typed
    is for the shell, and whoever reads it is stopped."""

    def read() -> None:
        if _is_in_background():
            loop.remove_reader(0)
            loop.call_later(BACKGROUND_LOOK_S, watch)
            return
        try:
            came = os.read(0, 4096)
        except OSError:
            came = b""
        if not came:
            loop.remove_reader(0)
        for _ in range(came.count(b"\n")):
            print_out(say("viewer.open_this", url=address()) + "\n")

    def watch() -> None:
        with suppress(OSError, ValueError, NotImplementedError):  # closed, a file, or nothing at all
            loop.add_reader(0, read)

    watch()


def _is_in_background() -> bool:
    try:
        return os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        return False


class PageServer:
    """One server: the sessions that are open in pages, and the conversations where they are asked for."""

    def __init__(self, setup: Setup, access: Access, address: Callable[[], str]) -> None:
        self._setup = setup
        self._access = access
        self._address = address
        self._shelf = Shelf(setup)
        self._talking: Talking | None = None

    async def aclose(self) -> None:
        if self._talking is not None:
            await self._talking.aclose()

    async def respond(self, request: ReceivedRequest, sender: AnswerSender) -> None:
        if (refusal := self._access.refuse(request)) is not None:
            await self._send_error(sender, refusal.status, str(say(f"viewer.refused_{refusal.reason}")))
            return
        path = [unquote(part) for part in request.path.removeprefix("/").split("/")]
        try:
            if path[0] != "api":
                await self._send_asset(sender, request)
            elif path[1:] == ["key"] and request.method == "POST":
                await self._send_key(sender, _body_of(request))
            elif not self._access.has_key(request):
                await self._send_error(sender, 401, str(say("viewer.no_key")))
            else:
                await self._answer(path[1:], request, sender)
        except NoSession as error:
            await self._send_error(sender, 404, str(error))
        except (DragomanError, OSError) as error:
            await self._send_error(sender, 400, str(error))
        except Hangup:
            raise
        except Exception as error:  # a defect of ours: the page says so, and the others go on
            if self._setup.options.debug:
                from dragoman.app.debug_log import print_traceback

                print_traceback(error)
            await self._send_error(sender, 500, str(say("viewer.defect", kind=type(error).__name__, reason=error)))

    # --- what anybody gets

    async def _send_asset(self, sender: AnswerSender, request: ReceivedRequest) -> None:
        found = asset(request.path.lstrip("/") or "index.html") if request.method == "GET" else None
        if found is None:
            await self._send_error(sender, 404, str(say("viewer.no_page")))
            return
        headers = _HEADERS | {"content-type": found.mime, "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            await sender.send_all(200, headers | {"content-encoding": "gzip"}, found.packed)
        else:
            await sender.send_all(200, headers, found.data)

    async def _send_key(self, sender: AnswerSender, body: Body) -> None:
        key = await self._access.exchange(body)
        if key is None:
            await self._send_error(sender, 401, str(say("viewer.wrong_password" if self._access.wants_password else "viewer.used_token")))
            return
        await self._send_json(sender, {"key": key})

    # --- what a page gets that has a key

    async def _answer(self, path: list[str], request: ReceivedRequest, sender: AnswerSender) -> None:
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        match request.method, path:
            case "GET", ["about"]:
                await self._send_json(sender, self._about())
            case "POST", ["token"]:
                await self._send_json(sender, {"url": self._address()})
            case "GET", ["fleets", *names]:
                await self._send_json(sender, await asyncio.to_thread(_fleets, self._setup.workspace, names))
            case "GET", ["sessions"]:
                await self._send_json(sender, await asyncio.to_thread(self._shelf.list_sessions, query.get("search", "")))
            case "GET", ["sessions", session_id]:
                await self._send_json(sender, await self._shelf.show(session_id))
            case "GET", ["sessions", session_id, "events"]:
                await self._stream_session(sender, session_id, query)
            case "GET", ["sessions", session_id, "blob", sha256]:
                await self._send_blob(sender, session_id, sha256)
            case "GET", ["sessions", session_id, what]:
                await self._send_json(sender, await self._shelf.look(session_id, what, query))
            case method, ["talk", *rest] if self._setup.options.talk:
                await self._talk(method, rest, query, request, sender)
            case _:
                await self._send_error(sender, 404, str(say("viewer.no_page")))

    def _about(self) -> dict[str, Any]:
        from dragoman import __version__

        return {
            "version": __version__,
            "talk": self._setup.options.talk,
            "fleets": os.path.isdir(os.path.join(self._setup.workspace, "fleet")),
            "folder": self._setup.workspace,
        }

    async def _stream_session(self, sender: AnswerSender, session_id: str, query: Query) -> None:
        """Every event behind `after`, for as long as the page wants. Another file under the name: the page begins anew."""
        reading = await self._shelf.reading(session_id)
        after, generation = _count(query.get("after", "0")), _count(query.get("generation", "0"))
        await sender.send_head(200, _LINES)
        idle_s, is_running = 0.0, None
        async with reading.watched():
            while not sender.client_gone.done():
                if reading.generation != generation:
                    await sender.send(jsontext.encode({"kind": "anew"}) + b"\n")
                    break
                events = reading.events_after(after)
                if events:
                    after, idle_s = events[-1].seq, 0.0
                    await sender.send(b"".join(jsontext.encode(event) + b"\n" for event in events))
                elif idle_s >= PING_S:
                    idle_s = 0.0
                    await sender.send(b'{"kind":"ping"}\n')
                if (running := reading.is_running()) != is_running:
                    is_running = running
                    await sender.send(jsontext.encode({"kind": "state", "running": is_running}) + b"\n")
                waited = await reading.wait(after, sender.client_gone)
                idle_s += waited
        await sender.end()

    async def _send_blob(self, sender: AnswerSender, session_id: str, sha256: str) -> None:
        found = await self._shelf.image(session_id, sha256)
        if found is None:
            await self._send_error(sender, 404, str(say("viewer.no_page")))
            return
        mime, data = found
        await sender.send_all(200, _HEADERS | {"content-type": mime}, data)

    async def _talk(self, method: str, path: list[str], query: Query, request: ReceivedRequest, sender: AnswerSender) -> None:
        if self._talking is None:
            from dragoman.viewer.talking import Talking

            self._talking = Talking(self._setup)
        if method == "GET" and path[1:] == ["events"]:
            lines = self._talking.stream(path[0], _count(query.get("after", "0")), sender.client_gone)
            first = await anext(lines)  # a fault is told before the answer begins
            await sender.send_head(200, _LINES)
            await sender.send(first)
            try:
                async for line in lines:
                    await sender.send(line)
                await sender.end()
            finally:
                await lines.aclose()
            return
        if method != "POST":
            await self._send_error(sender, 405, str(say("viewer.refused_method")))
            return
        await self._send_json(sender, await self._talking.act(path, _body_of(request)))

    # --- sending

    async def _send_json(self, sender: AnswerSender, value: Any) -> None:
        data = value if isinstance(value, bytes) else await asyncio.to_thread(jsontext.encode, value)
        await sender.send_all(200, _JSON, data)

    async def _send_error(self, sender: AnswerSender, status: int, message: str) -> None:
        await sender.send_all(status, _JSON, jsontext.encode({"error": message}))


def _fleets(folder: str, names: list[str]) -> dict[str, Any]:
    from dragoman.viewer.fleets import fleet_grid, list_fleets

    return fleet_grid(folder, names[0]) if names else {"fleets": list_fleets(folder)}


def _body_of(request: ReceivedRequest) -> Body:
    if request.method != "POST":
        return {}
    try:
        body = jsontext.decode(request.body)
    except jsontext.NotJSON as error:
        raise InputError(str(error)) from error
    if not isinstance(body, dict):
        raise InputError(say("viewer.not_an_object"))
    return body


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else 0
