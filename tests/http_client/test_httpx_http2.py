"""HttpxTransport over HTTP/2, against a server that is not ours."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import h2.exceptions
import httpcore2
import pytest

from certificates import Authority
from dragoman.http import httpx_pool, tls
from dragoman.http.httpx_exchange import HttpxExchange
from dragoman.http.httpx_transport import HttpxTransport
from dragoman.http.transport import HttpTransport
from dragoman.values.errors import ConnectionFailed
from http2_service import Http2Service, Send, begin
from loopback_http import closing, fetch

MEGABYTE = 1_000_000
pytestmark = pytest.mark.usefixtures("trusted")


@pytest.fixture
def service(authority: Authority) -> Iterator[Http2Service]:
    with Http2Service().running(authority.server_file("127.0.0.1")) as running:
        yield running


@pytest.fixture
def hasty_service(authority: Authority) -> Iterator[Http2Service]:
    """One that closes what has been idle for a second."""
    with Http2Service(idle_s=1).running(authority.server_file("127.0.0.1")) as running:
        yield running


def run(test: Callable[[HttpxTransport], Any], **options: Any) -> None:
    async def within() -> None:
        async with closing(transport := HttpxTransport(**options)):
            await asyncio.wait_for(test(transport), 60)

    asyncio.run(within())


def test_http2_is_spoken_where_the_server_does(service: Http2Service) -> None:
    async def test(transport: HttpxTransport) -> None:
        for number in range(3):
            status, headers, body = await fetch(transport, service.url, b"question %d" % number, headers={"X-Api-Key": "k\xe9y"})
            assert (status, body) == (200, b"question %d" % number)
            assert all(name == name.lower() and not name.startswith(":") for name in headers)
        assert service.versions == ["2", "2", "2"]
        assert len(service.clients) == 1

    run(test)


def test_http1_is_spoken_where_the_server_knows_no_other(authority: Authority) -> None:
    async def test(transport: HttpxTransport) -> None:
        assert (await fetch(transport, service.url, b"question"))[2] == b"question"
        assert service.versions == ["1.1"]

    with Http2Service().running(authority.server_file("127.0.0.1"), ["http/1.1"]) as service:
        run(test)


def test_connections_are_opened_side_by_side_where_there_is_no_http2(authority: Authority) -> None:
    """httpcore2 would open one after the other, in the hope that all requests find room on the next."""
    handshakes = most = 0

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal handshakes, most
        handshakes += 1
        most = max(most, handshakes)
        await asyncio.sleep(0.1)
        there, back = await asyncio.open_connection("127.0.0.1", int(service.url.rpartition(":")[2]))
        handshakes -= 1
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
        except ConnectionError:
            pass
        writer.close()

    async def test(transport: HttpxTransport) -> None:
        async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as relay:
            url = f"https://127.0.0.1:{relay.sockets[0].getsockname()[1]}"
            got = await asyncio.gather(*(fetch(transport, url, b"%d" % number) for number in range(20)))
            assert [body for _, _, body in got] == [b"%d" % number for number in range(20)]
            assert most > 10
            await transport.aclose()
            await asyncio.sleep(0.1)

    with Http2Service().running(authority.server_file("127.0.0.1"), ["http/1.1"]) as service:
        run(test)


def test_our_own_client_is_not_made_to_speak_http2(service: Http2Service, authority: Authority) -> None:
    """The trusted context is shared by the process: what it offers must not change when the other client connects."""
    own = ssl.create_default_context(cafile=authority.file)

    async def test(transport: HttpxTransport) -> None:
        for context in (None, own):
            async with closing(HttpxTransport(tls=context)) as other, closing(HttpTransport(tls=context)) as ours:
                await fetch(other, service.url)
                await fetch(ours, service.url)
        assert service.versions == ["2", "1.1", "1.1", "1.1"]  # a caller's own context offers nothing here

    run(test)


@pytest.mark.parametrize("count", [50, 230])
def test_many_requests_at_once_each_get_their_own_answer(service: Http2Service, count: int) -> None:
    """Over one connection for each hundred: what a server allows at once is no limit of ours."""
    arrived: list[bytes] = []

    async def answer(scope: Any, body: bytes, send: Send) -> None:
        arrived.append(body)
        while len(arrived) < count:  # noqa: ASYNC110 - until all are under way at once
            await asyncio.sleep(0.01)
        await begin(send, headers=[(b"x-number", body)])
        for _ in range(5):
            await send({"type": "http.response.body", "body": body + b";", "more_body": True})
            await asyncio.sleep(0.001)
        await send({"type": "http.response.body", "body": b""})

    async def test(transport: HttpxTransport) -> None:
        got = await asyncio.gather(*(fetch(transport, service.url, b"%d" % number) for number in range(count)))
        assert [body for _, _, body in got] == [b"%d;" % number * 5 for number in range(count)]
        assert [headers["x-number"] for _, headers, _ in got] == [str(number) for number in range(count)]
        assert set(service.versions) == {"2"}
        assert len(service.clients) == -(-count // httpx_pool.MOST_STREAMS)

    service.answer = answer  # type: ignore[method-assign]
    run(test)


# --- leaving ----------------------------------------------------------------------------------------------------------------------


async def one_event(scope: Any, body: bytes, send: Send) -> None:
    await begin(send)
    await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
    await asyncio.sleep(600)


async def nothing(scope: Any, body: bytes, send: Send) -> None:
    await asyncio.sleep(600)


@pytest.mark.parametrize("answer", [one_event, nothing])
def test_cancelling_ends_the_stream_and_spares_the_connection(service: Http2Service, answer: Any) -> None:
    async def test(transport: HttpxTransport) -> None:
        await fetch(transport, service.url)
        service.answer = answer  # type: ignore[method-assign]
        task = asyncio.create_task(fetch(transport, service.url))
        while len(service.versions) < 2:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(service.left.wait, 2), "the server was not told"
        del service.answer
        assert (await fetch(transport, service.url, b"again"))[2] == b"again"
        assert len(service.clients) == 1

    run(test)


@pytest.mark.parametrize("reads", [False, True])
def test_what_nobody_reads_does_not_use_the_connection_up(service: Http2Service, reads: bool) -> None:
    """Each answer is left with 2 MB unread, and no more than 16 MB may be under way on a connection in all."""

    async def answer(scope: Any, body: bytes, send: Send) -> None:
        await begin(send)
        for piece in [body] if body else [bytes(50_000)] * 40:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def test(transport: HttpxTransport) -> None:
        for _ in range(12):
            async with transport.send("POST", service.url, {}, b"") as got, aclosing(got.chunks()) as pieces:
                if reads:
                    await anext(pieces)
                await asyncio.sleep(0.05)
        assert (await fetch(transport, service.url, b"again"))[2] == b"again"
        assert len(service.clients) == 1

    service.answer = answer  # type: ignore[method-assign]
    run(test)


def test_cancelling_in_the_middle_of_a_question_spares_the_others(service: Http2Service) -> None:
    async def test(transport: HttpxTransport) -> None:
        await fetch(transport, service.url)
        others = [asyncio.create_task(fetch(transport, service.url, bytes([number]) * MEGABYTE)) for number in range(5)]
        for turns in range(60):
            task = asyncio.create_task(fetch(transport, service.url, bytes(MEGABYTE)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
        assert [got[2] for got in await asyncio.gather(*others)] == [bytes([number]) * MEGABYTE for number in range(5)]
        assert len(service.clients) == 1

    run(test)


def test_cancelling_while_the_connection_is_being_opened_leaves_nothing_open(service: Http2Service) -> None:
    """httpcore2 has all requests wait for the first connection, and loses sight of it when the one that opens it is cancelled."""

    async def test(transport: HttpxTransport) -> None:
        others = [asyncio.create_task(fetch(transport, service.url, b"%d" % number)) for number in range(5)]
        for turns in range(30):
            task = asyncio.create_task(fetch(transport, service.url))
            for _ in range(turns):
                await asyncio.sleep(0)
            (others[0] if turns == 20 else task).cancel()
        got = await asyncio.gather(*others[1:])
        assert [body for _, _, body in got] == [b"1", b"2", b"3", b"4"]

    run(test)
    gc.collect()


# --- faults -----------------------------------------------------------------------------------------------------------------------


def test_a_connection_whose_opener_was_cancelled_is_a_dead_one() -> None:
    async def test(transport: HttpxTransport) -> None:
        waited = HttpxExchange(httpcore2.AsyncConnectionPool(), 1)  # it has opened none itself, and nothing has come
        assert waited.is_dead_connection(h2.exceptions.ProtocolError("Invalid input SEND_SETTINGS in state CLOSED"))

    run(test)


def test_an_answer_that_is_cut_is_a_fault(hasty_service: Http2Service) -> None:
    async def answer(scope: Any, body: bytes, send: Send) -> None:
        await begin(send)
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await asyncio.sleep(0.1)
        raise LookupError("meant")

    async def test(transport: HttpxTransport) -> None:
        with pytest.raises(ConnectionFailed, match="cut its answer short after 9 bytes") as caught:
            await fetch(transport, hasty_service.url)
        assert caught.value.retryable

    hasty_service.answer = answer  # type: ignore[method-assign]
    run(test)


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_kept_connection_that_is_dead_is_replaced_once(service: Http2Service, is_idle: bool) -> None:
    """Something on the way cuts it: while nothing is under way, or when the next requests come."""
    open_ends: list[asyncio.StreamWriter] = []
    hang_up = False

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", int(service.url.rpartition(":")[2]))
        open_ends.extend([writer, back])
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                if hang_up and len(open_ends) == 2:
                    break
                writer.write(data)
        except ConnectionError:
            pass
        for each in open_ends[:2] if hang_up else [writer]:
            each.transport.abort()

    async def test(transport: HttpxTransport) -> None:
        nonlocal hang_up
        async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as relay:
            url = f"https://127.0.0.1:{relay.sockets[0].getsockname()[1]}"
            assert (await fetch(transport, url, b"one"))[2] == b"one"
            hang_up = True
            if is_idle:
                open_ends[0].transport.abort()
                await asyncio.sleep(0.05)
            got = await asyncio.gather(*(fetch(transport, url, b"%d" % number) for number in range(10)))
            assert [body for _, _, body in got] == [b"%d" % number for number in range(10)]
            assert len(service.clients) == 2
            for end in open_ends:
                end.transport.abort()
            await asyncio.sleep(0.05)

    run(test)


def test_a_header_that_http2_forbids_is_not_shown(service: Http2Service) -> None:
    async def test(transport: HttpxTransport) -> None:
        with pytest.raises(ConnectionFailed, match="is not valid HTTP and was not sent") as caught:
            await fetch(transport, service.url, headers={"te": "hunter22"})
        assert "hunter22" not in str(caught.value)
        assert not caught.value.retryable
        assert (await fetch(transport, service.url, b"fine"))[2] == b"fine"

    run(test)


def test_the_contexts_of_both_clients_trust_alike(service: Http2Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(transport: HttpxTransport) -> None:
        with pytest.raises(ConnectionFailed, match="certificate not trusted"):
            await fetch(transport, service.url)

    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setattr(tls, "_tls_http2", None)
    run(test)
    assert service.versions == []
