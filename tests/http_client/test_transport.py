"""The Transport contract, over real sockets. A suite for any implementation: put another one into TRANSPORTS, and it must pass."""

from __future__ import annotations

import asyncio
import gzip
import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.httpx_transport import HttpxTransport
from dragoman.http.transport import HttpTransport
from dragoman.testing.cassette import Cassette
from dragoman.values.contracts import Transport
from dragoman.values.errors import ConfigError, ConnectionFailed
from loopback_http import (
    LAST_CHUNK,
    Client,
    Handler,
    Received,
    Server,
    against,
    always,
    answer,
    chunk,
    chunked_head,
    closing,
    endless,
    fetch,
    serving,
    silent,
)

MEGABYTE = 1_000_000
TRANSPORTS: dict[str, Callable[[Path], Transport]] = {
    "http": lambda folder: HttpTransport(),
    "httpx": lambda folder: HttpxTransport(),
    "recording": lambda folder: Cassette(folder / "cassette.jsonl", HttpTransport(), mode="record"),
}


@pytest.fixture(params=list(TRANSPORTS))
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Transport:
    return TRANSPORTS[request.param](tmp_path)


# --- what arrives -----------------------------------------------------------------------------------------------


def test_a_request_arrives_as_it_was_given_and_an_answer_comes_back(transport: Transport) -> None:
    async def test(server: Server) -> None:
        got = await fetch(
            transport, f"{server.url}/v1/chat?alt=sse", b'{"a":1}', headers={"X-Api-Key": "k\xe9y", "content-type": "application/json"}
        )
        assert got == (200, {"x-odd": "yes", "content-length": "5"}, b"hello")
        [request] = server.requests
        assert (request.method, request.target, request.body) == ("POST", "/v1/chat?alt=sse", b'{"a":1}')
        assert (request.headers["x-api-key"], request.headers["content-type"]) == ("k\xe9y", "application/json")
        assert "host" in request.headers

    against(always(answer(b"hello", headers="X-ODD: yes\r\n")), transport, test)


@pytest.mark.parametrize("status", ["302 Found", "400 Bad Request", "401 Unauthorized", "429 Too Many Requests", "503 Service Unavailable"])
def test_a_status_is_an_answer_and_a_redirect_is_not_followed(transport: Transport, status: str) -> None:
    async def test(server: Server) -> None:
        got = await fetch(transport, server.url)
        assert (got[0], got[2]) == (int(status[:3]), b"why")
        assert len(server.requests) == 1

    against(always(answer(b"why", status, "Location: /elsewhere\r\n")), transport, test)


def test_no_body_is_sent_and_none_received(transport: Transport) -> None:
    async def test(server: Server) -> None:
        assert await fetch(transport, f"{server.url}/models", method="GET") == (204, {}, b"")
        assert server.requests[0].body == b""

    against(always(b"HTTP/1.1 204 No Content\r\n\r\n"), transport, test)


def test_informational_answers_are_passed_over(transport: Transport) -> None:
    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[2] == b"real"

    against(always(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + answer(b"real")), transport, test)


def test_a_body_may_end_with_the_connection(transport: Transport) -> None:
    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[2] == b"to the end"

    against(always(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", then_close=True), transport, test)


def test_events_come_when_they_are_sent_and_not_when_the_body_ends(transport: Transport) -> None:
    go_on = asyncio.Event()

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(b"data: 1\n\n"))
        await go_on.wait()
        writer.write(chunk(b"data: 2\n\n") + LAST_CHUNK)

    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got, aclosing(got.chunks()) as pieces:
            assert await anext(pieces) == b"data: 1\n\n"
            go_on.set()
            assert await anext(pieces) == b"data: 2\n\n"
            assert [piece async for piece in pieces] == []

    against(handler, transport, test)


@pytest.mark.parametrize("make", [HttpTransport, HttpxTransport])
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=12), st.integers(min_value=1, max_value=40))
def test_any_chunking_on_any_packets_gives_the_same_body(make: Client, chunks: list[bytes], packet: int) -> None:
    wire = chunked_head() + b"".join(map(chunk, chunks)) + LAST_CHUNK

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(wire), packet):
            writer.write(wire[start : start + packet])
            await asyncio.sleep(0)

    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[2] == b"".join(chunks)

    transport = make()
    against(handler, transport, test)


def test_large_bodies_go_both_ways(transport: Transport) -> None:
    up = random.Random(1).randbytes(9 * MEGABYTE)

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        assert request.body == up
        writer.write(chunked_head())
        for start in range(0, len(up), 300_007):
            writer.write(chunk(up[start : start + 300_007]))
            await writer.drain()
        writer.write(LAST_CHUNK)

    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url, up))[2] == up

    against(handler, transport, test)


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate"])
def test_a_compressed_body_is_undone(transport: Transport, encoding: str) -> None:
    import zlib

    text = b"data: \xc3\xa9v\xc3\xa9nement\n\n" * 10_000
    packed = zlib.compress(text) if encoding == "deflate" else gzip.compress(text)

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        assert request.headers["accept-encoding"] == "identity"
        writer.write(chunked_head(f"Content-Encoding: {encoding}\r\n"))
        for start in range(0, len(packed), 7):
            writer.write(chunk(packed[start : start + 7]))
        writer.write(LAST_CHUNK)

    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[2] == text

    against(handler, transport, test)


@pytest.mark.parametrize(("encoding", "body"), [("br", b"anything"), ("gzip", b"this is no gzip")])
def test_a_body_that_cannot_be_undone_is_a_fault(transport: Transport, encoding: str, body: bytes) -> None:
    async def test(server: Server) -> None:
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:\d+ sent a body"):
            await fetch(transport, server.url)

    against(always(answer(body, headers=f"Content-Encoding: {encoding}\r\n")), transport, test)


def test_cookies_are_not_kept(transport: Transport) -> None:
    async def test(server: Server) -> None:
        for _ in range(2):
            await fetch(transport, server.url)
        assert not any("cookie" in request.headers for request in server.requests)

    against(always(answer(b"", headers="Set-Cookie: a=b\r\n")), transport, test)


def test_a_body_can_be_read_only_once(transport: Transport) -> None:
    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got:
            assert [piece async for piece in got.chunks()] == [b"ok"]
            with pytest.raises(RuntimeError, match="the body of an answer can be read only once"):
                await anext(got.chunks())

    against(always(answer(b"ok")), transport, test)


def test_what_came_twice_is_joined(transport: Transport) -> None:
    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[1]["x-a"] == "1, 2"

    against(always(answer(b"", headers="X-A: 1\r\nx-a: 2\r\n")), transport, test)


# --- connections ------------------------------------------------------------------------------------------------


def test_a_connection_is_used_again(transport: Transport) -> None:
    async def test(server: Server) -> None:
        for number in range(5):
            assert (await fetch(transport, server.url, b"%d" % number))[2] == b"ok"
        assert server.connections == 1

    against(always(chunked_head() + chunk(b"ok") + LAST_CHUNK), transport, test)


def test_a_connection_the_server_has_closed_is_not_used_again(transport: Transport) -> None:
    async def test(server: Server) -> None:
        for _ in range(3):
            assert (await fetch(transport, server.url))[2] == b"ok"
            await asyncio.sleep(0.05)
        assert server.connections == 3

    against(always(answer(b"ok"), then_close=True), transport, test)


@pytest.mark.parametrize("reset", [False, True])
def test_a_kept_connection_that_dies_under_a_request_is_replaced_once(transport: Transport, reset: bool) -> None:
    """The server takes the second request and hangs up without a word, as one does whose patience ended at that moment."""
    hang_up = iter([False, True, False])

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        if not next(hang_up):
            writer.write(answer(request.body))
            return
        if reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    async def test(server: Server) -> None:
        for body in [b"one", b"two"]:
            assert (await fetch(transport, server.url, body))[2] == body
        assert [request.body for request in server.requests] == [b"one", b"two", b"two"]
        assert server.connections == 2

    against(handler, transport, test)


@pytest.mark.parametrize("said", [b"", b"H", b"HTTP/1.1 200 OK\r\n"])
def test_a_request_is_not_sent_again_on_a_new_connection_or_after_a_word_of_answer(transport: Transport, said: bytes) -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.body == b"fine":
            writer.write(answer(b"ok"))
            return
        writer.write(said)
        await writer.drain()
        writer.close()

    async def test(server: Server) -> None:
        if said:
            await fetch(transport, server.url, b"fine")
        with pytest.raises(ConnectionFailed, match="closed the connection without answering"):
            await fetch(transport, server.url, b"asked once")
        assert [request.body for request in server.requests].count(b"asked once") == 1

    against(handler, transport, test)


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"\0"])
@pytest.mark.parametrize("pause", [0, 0.05])
def test_bytes_behind_an_answer_are_not_taken_for_the_next_one(transport: Transport, extra: bytes, pause: float) -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(request.body))
        await asyncio.sleep(pause)
        writer.write(extra)

    async def test(server: Server) -> None:
        for body in [b"one", b"two"]:
            assert (await fetch(transport, server.url, body))[2] == body
            await asyncio.sleep(2 * pause)
        assert server.connections == 2

    against(handler, transport, test)


def test_a_server_that_was_tired_of_waiting_did_not_answer(transport: Transport) -> None:
    """A 408 on a kept connection was on its way before the request was."""

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        is_second = len(bodies) == 1
        bodies.append(request.body)
        writer.write(answer(b"too late", "408 Request Timeout") if is_second else answer(request.body))

    async def test(server: Server) -> None:
        for body in [b"one", b"two"]:
            assert (await fetch(transport, server.url, body))[2] == body

    bodies: list[bytes] = []
    against(handler, transport, test)


def test_closing_spares_the_answers_that_are_being_read(transport: Transport) -> None:
    go_on = asyncio.Event()

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(b"one"))
        await go_on.wait()
        writer.write(chunk(b"two") + LAST_CHUNK)

    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got, aclosing(got.chunks()) as pieces:
            assert await anext(pieces) == b"one"
            await transport.aclose()
            go_on.set()
            assert await anext(pieces) == b"two"
            assert [piece async for piece in pieces] == []
        await asyncio.wait_for(server.hung_up.wait(), 60)
        assert (await fetch(transport, server.url))[2] == b"onetwo"

    against(handler, transport, test)


def test_requests_run_side_by_side(transport: Transport) -> None:
    waiting = 0
    everyone = asyncio.Event()

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 120:
            everyone.set()
        await everyone.wait()
        writer.write(answer(request.body))

    async def test(server: Server) -> None:
        got = await asyncio.gather(*(fetch(transport, server.url, b"%d" % number) for number in range(120)))
        assert [body for _, _, body in got] == [b"%d" % number for number in range(120)]

    against(handler, transport, test)


@pytest.mark.parametrize("handler", [endless, silent])
def test_cancelling_hangs_up_at_once(transport: Transport, handler: Handler) -> None:
    async def test(server: Server) -> None:
        task = asyncio.create_task(fetch(transport, server.url, b"question"))
        await server.asked.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 60)

    against(handler, transport, test)


def test_leaving_early_hangs_up_at_once(transport: Transport) -> None:
    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got:
            async for piece in got.chunks():
                assert piece == b"data: 1\n\n"
                break
        await asyncio.wait_for(server.hung_up.wait(), 60)

    against(endless, transport, test)


def test_leaving_without_reading_hangs_up_at_once(transport: Transport) -> None:
    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got:
            assert got.status == 200
        await asyncio.wait_for(server.hung_up.wait(), 60)

    against(endless, transport, test)


def test_an_error_of_the_caller_passes_through(transport: Transport) -> None:
    async def test(server: Server) -> None:
        with pytest.raises(LookupError, match="mine"):
            async with transport.send("POST", server.url, {}, b""):
                raise LookupError("mine")
        await asyncio.wait_for(server.hung_up.wait(), 60)

    against(endless, transport, test)


def test_one_transport_serves_several_event_loops(transport: Transport) -> None:
    for _ in range(3):

        async def run() -> None:
            async with serving(always(answer(b"ok"))) as server:
                for _ in range(2):
                    assert (await fetch(transport, server.url))[2] == b"ok"
                assert server.connections == 1

        asyncio.run(run())
    asyncio.run(transport.aclose())


def test_one_transport_serves_two_event_loops_at_once(transport: Transport) -> None:
    failures: list[BaseException] = []

    async def run() -> None:
        async with serving(always(answer(b"ok"))) as server:
            for _ in range(20):
                assert (await fetch(transport, server.url))[2] == b"ok"
                await asyncio.sleep(0.001)
            assert server.connections == 1

    def thread() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=thread) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


def test_a_connection_may_be_opened_ahead(transport: Transport) -> None:
    async def test(server: Server) -> None:
        await transport.preconnect(server.url)
        await transport.preconnect("http://127.0.0.1:1")
        await transport.preconnect("no address")
        assert (await fetch(transport, server.url))[2] == b"ok"
        assert server.connections <= 2

    against(always(answer(b"ok")), transport, test)


@pytest.mark.parametrize("closes", [False, True])
def test_an_early_refusal_is_read_while_the_request_is_still_being_written(transport: Transport, closes: bool) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"too much", "413 Content Too Large"))
        await writer.drain()
        if not closes:
            await finished.wait()
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server, closing(transport):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            got = await asyncio.wait_for(fetch(transport, url, bytes(12 * MEGABYTE)), 60)
            assert (got[0], got[2]) == (413, b"too much")
            finished.set()

    finished = asyncio.Event()
    asyncio.run(run())


# --- faults -----------------------------------------------------------------------------------------------------

BODY = b"data: {}\n\n" * 8
CUT_SHORT = {
    "length": answer(BODY),
    "chunked": chunked_head() + b"".join(chunk(BODY[at : at + 10]) for at in range(0, len(BODY), 10)) + LAST_CHUNK,
}


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("framing", list(CUT_SHORT))
def test_a_cut_anywhere_is_a_fault(transport: Transport, framing: str, reset: bool, every_offset: bool) -> None:
    wire = CUT_SHORT[framing]
    offsets = range(len(wire)) if every_offset else sorted({*range(0, len(wire), 9), len(wire) - 1, len(wire) - 2, len(wire) - 3})
    cuts = iter(offsets)

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(wire[: next(cuts)])
        await writer.drain()
        if reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    async def test(server: Server) -> None:
        for offset in offsets:
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, server.url)
            assert caught.value.retryable, offset
            assert f"127.0.0.1:{server.port}" in str(caught.value), offset
            assert "\n" not in str(caught.value)
            assert caught.value.__cause__ is not None

    against(handler, transport, test)


def test_what_came_before_a_cut_is_handed_over(transport: Transport) -> None:
    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got:
            pieces = got.chunks()
            assert await anext(pieces) == b"data: 1\n\n"
            with pytest.raises(ConnectionFailed, match="cut its answer short after 9 bytes"):
                await anext(pieces)

    against(always(chunked_head() + chunk(b"data: 1\n\n"), then_close=True), transport, test)


def test_a_refused_connection_says_so(transport: Transport) -> None:
    async def run() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        async with closing(transport):
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, f"http://127.0.0.1:{port}/v1")
        assert (
            str(caught.value) == f"cannot reach 127.0.0.1:{port}: connection refused; is the server running? Start it, or check the address"
        )
        assert not caught.value.retryable, "nobody listens on this machine: waiting does not start a server"
        assert caught.value.__cause__ is not None

    asyncio.run(run())


def test_an_answer_that_is_not_http_says_so(transport: Transport) -> None:
    async def test(server: Server) -> None:
        with pytest.raises(ConnectionFailed, match="did not answer in HTTP; check that the address and port"):
            await fetch(transport, server.url)

    against(always(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", then_close=True), transport, test)


def test_a_server_that_says_nothing_is_named(transport: Transport) -> None:
    async def test(server: Server) -> None:
        with pytest.raises(ConnectionFailed, match=rf"127.0.0.1:{server.port} closed the connection without answering"):
            await fetch(transport, server.url)

    against(always(b"", then_close=True), transport, test)


@pytest.mark.parametrize(
    "url", ["ftp://example.com/x", "example.com/v1", "", "http://", "https://user:hunter22@:443/", "http://h:port/", "http://[::1"]
)
def test_an_address_that_is_none_is_a_setting_to_correct(transport: Transport, url: str) -> None:
    async def run() -> None:
        async with closing(transport):
            with pytest.raises(ConfigError) as caught:
                await fetch(transport, url)
            assert "hunter22" not in str(caught.value)

    asyncio.run(run())


def test_a_header_that_cannot_be_sent_is_not_shown(transport: Transport) -> None:
    async def test(server: Server) -> None:
        for value in ["secret\nvalue", "secret\u2028value"]:
            with pytest.raises((ConnectionFailed, ConfigError)) as caught:
                await fetch(transport, server.url, headers={"x-key": value})
            assert "secret" not in str(caught.value)
            assert caught.value.__cause__ is None
            assert not getattr(caught.value, "retryable", False)
        assert not server.requests

    against(always(answer(b"")), transport, test)
