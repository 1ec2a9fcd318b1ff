"""Servers that are reached by HTTP, in both eras: refusals, sessions, streams that are cut, and where a token may go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from waiting import until

from dragoman.mcp_client import handshake, http_calls, streamable
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import Elicitation, Elicited, HttpServer
from dragoman.mcp_client.errors import ProtocolError, ServerDied, ServerGarbled, ServerRefused
from loopback_http import LAST_CHUNK, Handler, Received, Server, answer, chunk, chunked_head, serving

Message = dict[str, Any]
JSON = "Content-Type: application/json\r\n"
DISCOVERED = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}


def reply(message: Message, result: Any, headers: str = "") -> bytes:
    return answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), headers=JSON + headers)


def fault(message: Message, code: int, status: str = "400 Bad Request", **data: Any) -> bytes:
    error = {"code": code, "message": "no", "data": data}
    return answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode(), status, JSON)


def event(message: Any, **fields: Any) -> bytes:
    lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return chunk(f"{lines}data: {json.dumps(message) if message else ''}\n\n".encode())


def text(value: str) -> Message:
    return {"resultType": "complete", "content": [{"type": "text", "text": value}]}


def modern(call: Callable[[Message, Received], bytes]) -> Handler:
    """A server of the modern era; `call` answers what is not `server/discover`."""

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        writer.write(reply(message, DISCOVERED) if message["method"] == "server/discover" else call(message, request))

    return handler


def legacy(
    call: Callable[[Message, Received, asyncio.StreamWriter], Awaitable[None]], *, session: str = "s1", get: Handler | None = None
) -> Handler:
    """A server of the legacy era; `call` answers what follows `initialize`."""

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.method == "GET" and get is not None:
            await get(request, writer)
            return
        if request.method != "POST":
            writer.write(answer(b"", "405 Method Not Allowed"))
            return
        message = json.loads(request.body)
        match message.get("method"):
            case "server/discover":
                writer.write(answer(b"Bad Request", "400 Bad Request"))
            case "initialize":
                writer.write(reply(message, INITIALIZED, f"Mcp-Session-Id: {session}\r\n" if session else ""))
            case "notifications/initialized":
                writer.write(answer(b"", "202 Accepted"))
            case _:
                await call(message, request, writer)

    return handler


@asynccontextmanager
async def talking(handler: Handler, **options: Any) -> AsyncIterator[tuple[McpClient, Server]]:
    async with serving(handler) as server:
        client = McpClient(HttpServer(f"{server.url}/mcp"), **{"timeout_s": 10, **options})
        try:
            yield client, server
        finally:
            await client.aclose()


def call(handler: Handler, name: str = "say", **options: Any) -> str:
    async def run() -> str:
        async with talking(handler, **options) as (client, _):
            return (await client.call_tool(name, {"a": 1})).content[0]["text"]

    return asyncio.run(run())


# --- which era


def refusing(refusal: Callable[[Message], bytes]) -> Handler:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body) if request.body else {}
        if message.get("method") == "server/discover":
            writer.write(refusal(message))
        elif message.get("method") == "initialize":
            writer.write(reply(message, INITIALIZED))
        elif message.get("method") == "tools/call":
            writer.write(reply(message, text("old")))
        else:
            writer.write(answer(b"", "405 Method Not Allowed" if request.method == "GET" else "202 Accepted"))

    return handler


@pytest.mark.parametrize(
    "refusal",
    [
        lambda message: answer(b"", "400 Bad Request"),
        lambda message: answer(b"<html>what?</html>", "400 Bad Request"),
        lambda message: answer(b"", "404 Not Found"),
        lambda message: answer(b"", "406 Not Acceptable"),
        lambda message: answer(b"oops", "500 Internal Server Error"),
        lambda message: answer(b"not json", headers=JSON),
        lambda message: answer(b"", "202 Accepted"),
        lambda message: fault(message, -32000),
        lambda message: fault(message, -32601, "404 Not Found"),
        lambda message: fault(message, -32602, "200 OK"),
        lambda message: fault(message, -32022, supported=["2025-11-25"]),
        lambda message: reply(message, {}),
        lambda message: answer(json.dumps({"jsonrpc": "2.0", "id": str(message["id"]), "result": 7}).encode(), headers=JSON),
        lambda message: reply(message, {"supportedVersions": ["2025-06-18"]}),
    ],
)
def test_whatever_is_not_modern_is_spoken_to_in_the_old_way(refusal: Callable[[Message], bytes]) -> None:
    assert call(refusing(refusal)) == "old"


@pytest.mark.parametrize("code", [-32020, -32021])
def test_a_400_whose_body_is_modern_is_told_and_not_taken_for_an_old_server(code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        call(refusing(lambda message: fault(message, code)))
    assert (caught.value.code, caught.value.status) == (code, 400)


def test_a_server_of_another_future_is_refused_with_its_versions() -> None:
    with pytest.raises(ServerGarbled, match="2030-01-01"):
        call(refusing(lambda message: fault(message, -32022, supported=["2030-01-01"])))


def test_a_server_that_is_known_to_be_old_is_not_asked_again() -> None:
    async def run() -> list[str]:
        async with talking(refusing(lambda message: answer(b"", "400 Bad Request")), era="legacy") as (client, server):
            await client.connect()
            return [json.loads(each.body)["method"] for each in server.requests if each.body]

    assert asyncio.run(run()) == ["initialize", "notifications/initialized"]


def test_a_modern_server_that_is_slow_to_wake_up_is_not_taken_for_an_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PROBE_S", 0.2)
    asked: list[str] = []

    async def slow(request: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        asked.append(message["method"])
        if len(asked) == 1:
            await asyncio.sleep(600)
        elif message["method"] == "initialize":
            writer.write(fault(message, -32020))
        else:
            writer.write(reply(message, DISCOVERED if message["method"] == "server/discover" else text("awake")))

    assert call(slow) == "awake"
    assert asked == ["server/discover", "initialize", "server/discover", "tools/call"]


# --- modern


def test_a_mismatch_of_headers_reads_the_list_again_and_repeats_the_call() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "x-mcp-header": "A"}}}

    def serve(message: Message, request: Received) -> bytes:
        if message["method"] == "tools/list":
            return reply(message, {"tools": [{"name": "say", "inputSchema": schema}]})
        return reply(message, text("done")) if request.headers.get("mcp-param-a") == "1" else fault(message, -32020)

    assert call(modern(serve)) == "done"


def test_tools_that_were_remembered_need_no_list() -> None:
    from dragoman.mcp_client.contracts import McpTool

    def serve(message: Message, request: Received) -> bytes:
        assert message["method"] == "tools/call"
        return reply(message, text(request.headers["mcp-param-a"]))

    async def run() -> str:
        async with talking(modern(serve)) as (client, _):
            client.remember((McpTool("say", input_schema={"properties": {"a": {"type": "integer", "x-mcp-header": "A"}}}),))
            return (await client.call_tool("say", {"a": 7})).content[0]["text"]

    assert asyncio.run(run()) == "7"


def test_a_server_that_asks_for_ever_is_given_up() -> None:
    async def elicit(question: Elicitation) -> Elicited:
        return Elicited("accept", {})

    asking = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "?"}}}}
    with pytest.raises(ServerGarbled) as caught:
        call(modern(lambda message, _: reply(message, asking)), elicit=elicit)
    assert caught.value.key == "mcp.asks_forever"


@pytest.mark.parametrize(
    ("result", "key"),
    [
        ({"resultType": "invented"}, "mcp.unknown_result"),
        ({"resultType": "input_required", "inputRequests": {"q": {"method": "sampling/createMessage"}}}, "mcp.not_offered"),
    ],
)
def test_a_result_that_we_cannot_use_is_an_error(result: Message, key: str) -> None:
    with pytest.raises(ServerGarbled) as caught:
        call(modern(lambda message, _: reply(message, result)))
    assert caught.value.key == key


def test_nobody_to_ask_declines() -> None:
    def serve(message: Message, request: Received) -> bytes:
        answers = message["params"].get("inputResponses")
        return reply(message, text(json.dumps(answers)) if answers else asking)

    asking = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": {}}}}
    assert json.loads(call(modern(serve))) == {"q": {"action": "decline"}}


def test_a_cancelled_call_closes_its_stream_and_sends_nothing() -> None:
    async def endless(request: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        if message["method"] == "server/discover":
            writer.write(reply(message, DISCOVERED))
            return
        writer.write(chunked_head() + chunk(b": waiting\n\n"))
        await asyncio.sleep(600)

    async def run() -> list[str]:
        async with talking(endless) as (client, server):
            pending = asyncio.ensure_future(client.call_tool("say", {}))
            await until(lambda: len(server.requests) == 2)
            await asyncio.sleep(0.05)
            pending.cancel()
            await asyncio.wait({pending})
            await asyncio.wait_for(server.hung_up.wait(), 60)
            return [json.loads(each.body)["method"] for each in server.requests]

    assert asyncio.run(run()) == ["server/discover", "tools/call"]


def test_a_stream_that_ends_without_an_answer_is_an_error() -> None:
    with pytest.raises(ServerDied) as caught:
        call(modern(lambda message, _: chunked_head() + event({"jsonrpc": "2.0", "method": "x"}, id=1) + LAST_CHUNK))
    assert caught.value.key == "mcp.no_answer"


def test_an_answer_that_is_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls.read_body, "__defaults__", (1000,))
    with pytest.raises(ServerGarbled):
        call(modern(lambda message, _: reply(message, text("x" * 2000))))


def test_changes_are_told_to_whoever_wants_them() -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        if message["method"] == "server/discover":
            writer.write(reply(message, {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}, "prompts": {}}}))
            return
        assert message["params"]["notifications"] == {"toolsListChanged": True}
        writer.write(chunked_head() + event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        await asyncio.sleep(600)

    changed: list[str] = []

    async def run() -> None:
        async with talking(handler, on_change=changed.append) as (client, _):
            await client.connect()
            await until(lambda: changed == ["tools"], 5)

    asyncio.run(run())


# --- legacy: sessions and streams


async def say_done(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(reply(message, text("done")))


def test_a_session_is_carried_along_and_ended() -> None:
    async def run() -> list[Received]:
        async with serving(legacy(say_done)) as server:
            client = McpClient(HttpServer(server.url))
            await client.call_tool("say", {})
            await client.aclose()
            return server.requests

    first, begin, *rest = asyncio.run(run())
    assert (first.headers["mcp-protocol-version"], "mcp-session-id" in first.headers) == ("2026-07-28", False)
    assert not {"mcp-protocol-version", "mcp-session-id"} & set(begin.headers)
    assert {(each.headers["mcp-session-id"], each.headers["mcp-protocol-version"]) for each in rest} == {("s1", "2025-11-25")}
    assert rest[-1].method == "DELETE"


@pytest.mark.parametrize("status", ["404 Not Found", "400 Bad Request"])
def test_a_session_that_was_forgotten_is_begun_anew_once(status: str) -> None:
    lost: set[str] = set()

    async def forget(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
        if not lost:
            lost.add(request.headers["mcp-session-id"])
            writer.write(answer(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}', status))
        else:
            writer.write(reply(message, text("done")))

    assert call(legacy(forget)) == "done"


def test_a_session_that_is_always_forgotten_is_an_error() -> None:
    async def forget(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"", "404 Not Found"))

    with pytest.raises(ServerRefused) as caught:
        call(legacy(forget))
    assert caught.value.key == "mcp.session_lost"


def test_a_stream_that_is_cut_goes_on_from_the_last_event() -> None:
    asked: list[str] = []

    async def cut(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
        asked.append(message["id"])
        writer.write(chunked_head() + event(None, id="e0", retry=20) + event(progress(message, 1), id="e1"))
        writer.write(chunk(b"id: e2\ndata: {half an ev"))
        await writer.drain()
        writer.close()

    async def resume(request: Received, writer: asyncio.StreamWriter) -> None:
        last = request.headers.get("last-event-id")
        if last is None:
            writer.write(answer(b"", "405 Method Not Allowed"))
            return
        asked.append(last)
        identity = asked[0]
        if last == "e1":
            writer.write(chunked_head() + event(progress({"params": {"_meta": {"progressToken": identity}}}, 2), id="e2") + LAST_CHUNK)
        else:
            writer.write(chunked_head() + event({"jsonrpc": "2.0", "id": identity, "result": text("whole")}, id="e3") + LAST_CHUNK)

    told: list[float] = []

    async def run() -> str:
        async with talking(legacy(cut, get=resume)) as (client, _):
            result = await client.call_tool("say", {}, progress=lambda done, total, words: told.append(done))
            return result.content[0]["text"]

    assert asyncio.run(run()) == "whole"
    assert (told, asked[1:]) == ([1.0, 2.0], ["e1", "e2"])


def progress(message: Message, done: int) -> Message:
    params = {"progressToken": message["params"]["_meta"]["progressToken"], "progress": done}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def test_a_stream_that_never_brings_the_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable, "MOST_RESUMES", 3)

    async def cut(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + event(None, id="e0", retry=5) + LAST_CHUNK)

    async def nothing(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + LAST_CHUNK)

    with pytest.raises(ServerDied) as caught:
        call(legacy(cut, get=nothing))
    assert caught.value.key == "mcp.no_answer"


def test_questions_in_a_stream_are_answered_by_another_post() -> None:
    answers: list[Message] = []
    arrived = asyncio.Event()

    async def serve(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
        if "method" not in message:
            answers.append(message)
            writer.write(answer(b"", "202 Accepted"))
            if len(answers) == 2:
                arrived.set()
            return
        writer.write(chunked_head() + event({"jsonrpc": "2.0", "id": "q", "method": "ping"}))
        writer.write(event({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}))
        await writer.drain()
        await arrived.wait()
        writer.write(event({"jsonrpc": "2.0", "id": message["id"], "result": text("after")}) + LAST_CHUNK)

    assert call(legacy(serve)) == "after"
    assert {each["id"]: each.get("result", each.get("error", {}).get("code")) for each in answers} == {"q": {}, 9: -32601}


def test_the_servers_own_stream_is_heard_and_opened_again() -> None:
    opened: list[str] = []

    async def get(request: Received, writer: asyncio.StreamWriter) -> None:
        opened.append(request.headers.get("last-event-id", ""))
        writer.write(chunked_head() + event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, id=len(opened), retry=10))
        writer.write(LAST_CHUNK)

    changed: list[str] = []

    async def run() -> None:
        async with talking(legacy(say_done, get=get), on_change=changed.append) as (client, _):
            await client.connect()
            await until(lambda: len(changed) >= 3, 5)

    asyncio.run(run())
    assert opened[:3] == ["", "1", "2"]


def test_a_cancelled_call_is_told_to_an_old_server() -> None:
    async def never(message: Message, request: Received, writer: asyncio.StreamWriter) -> None:
        if message["method"] == "notifications/cancelled":
            writer.write(answer(b"", "202 Accepted"))
        else:
            await asyncio.sleep(600)

    async def run() -> list[Message]:
        async with talking(legacy(never)) as (client, server):
            await client.connect()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.call_tool("say", {}), 0.1)
            await until(lambda: b"cancelled" in server.requests[-1].body, 5)
            return [json.loads(each.body) for each in server.requests if each.body]

    *_, called, cancelled = asyncio.run(run())
    assert cancelled["params"]["requestId"] == called["id"]


# --- signing in, and where a token may go


class Signer:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.heard: list[tuple[int, str, Mapping[str, str]]] = []

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.tokens[0]}"}

    async def refused(self, status: int, challenges: str, sent: Mapping[str, str]) -> bool:
        self.heard.append((status, challenges, sent))
        if len(self.tokens) == 1:
            return False
        del self.tokens[0]
        return True


def guarded(right: str) -> Handler:
    def serve(message: Message, request: Received) -> bytes:
        return reply(message, text("in"))

    inner = modern(serve)

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token == right:
            await inner(request, writer)
        elif token == "narrow":
            writer.write(answer(b"", "403 Forbidden", 'WWW-Authenticate: Bearer error="insufficient_scope"\r\n'))
        else:
            writer.write(answer(b"", "401 Unauthorized", 'WWW-Authenticate: Bearer realm="x"\r\n'))

    return handler


def test_a_refused_request_is_repeated_with_another_token() -> None:
    signer = Signer(["old", "narrow", "wide"])
    assert call(guarded("wide"), authorizer=signer) == "in"
    assert signer.heard == [
        (401, 'Bearer realm="x"', {"authorization": "Bearer old"}),
        (403, 'Bearer error="insufficient_scope"', {"authorization": "Bearer narrow"}),
    ]


def test_without_another_token_the_refusal_is_told_and_no_older_era_is_tried() -> None:
    async def run() -> tuple[ServerRefused, int]:
        async with talking(guarded("wide"), authorizer=Signer(["old"])) as (client, server):
            with pytest.raises(ServerRefused) as caught:
                await client.connect()
            return caught.value, len(server.requests)

    refusal, requests = asyncio.run(run())
    assert (refusal.status, refusal.key, refusal.challenges, requests) == (401, "mcp.sign_in", 'Bearer realm="x"', 1)


def test_signing_in_for_ever_ends() -> None:
    with pytest.raises(ServerRefused):
        call(guarded("never"), authorizer=Signer(["x"] * 100))


def redirecting(to: str) -> Handler:
    inner = modern(lambda message, _: reply(message, text("there")))

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.target == "/mcp":
            writer.write(answer(b"", "307 Temporary Redirect", f"Location: {to}\r\n"))
        else:
            await inner(request, writer)

    return handler


def test_a_redirect_within_the_host_is_followed() -> None:
    assert call(redirecting("/mcp/")) == "there"


@pytest.mark.parametrize("to", ["http://localhost:1/mcp/", "https://127.0.0.1/mcp/", "/mcp", ""])
def test_a_redirect_elsewhere_is_not(to: str) -> None:
    with pytest.raises(ServerRefused) as caught:
        call(redirecting(to), era="modern")
    assert caught.value.status == 307


def test_the_oldest_transport_sends_nothing_to_another_host() -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(b"event: endpoint\ndata: http://localhost:1/steal\n\n"))
        await asyncio.sleep(600)

    async def run() -> None:
        async with serving(handler) as server:
            await McpClient(HttpServer(server.url, transport="sse")).connect()

    with pytest.raises(ServerGarbled) as caught:
        asyncio.run(run())
    assert caught.value.key == "mcp.other_host"


def test_an_address_nobody_answers_at_is_named_without_its_secrets() -> None:
    async def run() -> None:
        await McpClient(HttpServer("http://user:hunter2@127.0.0.1:9/mcp?key=hunter2")).connect()

    with pytest.raises(ServerDied) as caught:
        asyncio.run(run())
    assert caught.value.key == "mcp.unreachable"
    assert "127.0.0.1:9/mcp" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_connection_that_breaks_is_told_and_the_next_call_works() -> None:
    broken: list[int] = []

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        if message["method"] == "server/discover":
            writer.write(reply(message, DISCOVERED))
        elif not broken:
            broken.append(1)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
            writer.close()
        else:
            writer.write(reply(message, text("again")))

    async def run() -> str:
        async with talking(handler) as (client, _):
            with pytest.raises(ServerDied):
                await client.call_tool("say", {})
            return (await client.call_tool("say", {})).content[0]["text"]

    assert asyncio.run(run()) == "again"
