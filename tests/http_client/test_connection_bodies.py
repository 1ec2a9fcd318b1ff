"""Bodies over real sockets: large, early, slow, cut, packed and damaged."""

from __future__ import annotations

import asyncio
import gzip
import socket
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certificates import Authority
from dragoman.http.transport import HttpTransport
from dragoman.values.errors import ConnectionFailed
from loopback_http import (
    LAST_CHUNK,
    Received,
    Server,
    against,
    always,
    answer,
    chunk,
    chunked_head,
    closing,
    fetch,
    serving,
)

MEGABYTE = 1_000_000


# --- bodies -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closes", [False, True])
def test_an_early_refusal_is_read_while_the_request_is_still_being_written(closes: bool) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"too much", "413 Content Too Large"))
        await writer.drain()
        if not closes:
            await finished.wait()
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server, closing(HttpTransport()) as transport:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            got = await asyncio.wait_for(fetch(transport, url, bytes(50 * MEGABYTE)), 60)
            assert (got[0], got[2]) == (413, b"too much")
            finished.set()

    finished = asyncio.Event()
    asyncio.run(run())


def test_an_answer_may_begin_before_the_question_has_ended() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(chunked_head())
        left = 20 * MEGABYTE
        while left:
            data = await reader.read(65_536)
            left -= len(data)
            writer.write(chunk(data))
            await writer.drain()
        writer.write(LAST_CHUNK)
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server, closing(HttpTransport()) as transport:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            body = bytes(range(256)) * (20 * MEGABYTE // 256)
            assert (await asyncio.wait_for(fetch(transport, url, body), 60))[2] == body

    asyncio.run(run())


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.usefixtures("trusted")
def test_a_slow_reader_slows_the_server_down(authority: Authority, encrypted: bool) -> None:
    written = 0

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(chunked_head())
        for _ in range(400):
            writer.write(chunk(bytes(100_000)))
            await writer.drain()
            written += 100_000
        writer.write(LAST_CHUNK)

    async def run() -> None:
        tls = authority.server("127.0.0.1") if encrypted else None
        async with serving(handler, tls=tls) as server, closing(HttpTransport()) as transport:
            async with transport.send("POST", server.url, {}, b"") as got, aclosing(got.chunks()) as pieces:
                size = len(await anext(pieces))
                await asyncio.sleep(0.3)
                assert written < 30 * MEGABYTE  # what the system's own buffers hold on the way is several megabytes
                async for piece in pieces:
                    size += len(piece)
            assert size == 40 * MEGABYTE

    asyncio.run(run())


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_an_answer_to_head_has_no_body(method: str) -> None:
    async def test(server: Server) -> None:
        for _ in range(2):
            assert (await fetch(transport, server.url, method=method))[2] == b""
        assert server.connections == 1

    transport = HttpTransport()
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" if method == "HEAD" else b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"
    )
    against(always(head), transport, test)


def test_a_packed_body_that_ends_too_soon_is_a_fault() -> None:
    async def test(server: Server) -> None:
        with pytest.raises(ConnectionFailed, match="sent a body that is not compressed as it says"):
            await fetch(transport, server.url)

    transport = HttpTransport()
    against(always(answer(gzip.compress(b"x" * 100)[:-3], headers="Content-Encoding: gzip\r\n")), transport, test)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("size", [10, 300_000, 3 * MEGABYTE])
@pytest.mark.parametrize("politely", [True, False])
def test_over_tls_a_body_ends_when_the_server_says_so_and_not_when_tcp_does(authority: Authority, politely: bool, size: int) -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + bytes(size))
        await writer.drain()
        if politely:
            writer.close()
            return
        while writer.transport.get_write_buffer_size():  # noqa: ASYNC110 - nothing tells when it is empty
            await asyncio.sleep(0.01)
        raw = writer.transport._ssl_protocol._transport  # type: ignore[attr-defined]
        raw.get_extra_info("socket")._sock.shutdown(socket.SHUT_WR)

    async def run() -> None:
        async with serving(handler, tls=authority.server("127.0.0.1")) as server, closing(HttpTransport()) as transport:
            if politely:
                assert (await asyncio.wait_for(fetch(transport, server.url), 60))[2] == bytes(size)
            else:
                with pytest.raises(ConnectionFailed, match=rf"cut its answer short after {size:,} bytes"):
                    await asyncio.wait_for(fetch(transport, server.url), 60)

    asyncio.run(run())


# --- any bytes, over a real socket ------------------------------------------------------------------------------------------------


@given(
    st.booleans(),
    st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6),
    st.integers(min_value=0, max_value=400),
    st.binary(max_size=3),
    st.integers(min_value=1, max_value=60),
)
def test_damaged_bytes_never_hang_and_never_pass_for_whole(sized: bool, chunks: list[bytes], at: int, put: bytes, packet: int) -> None:
    """Bytes are put into the body's framing or its end is cut off: it is read as it was meant, or it is a fault."""
    body = b"".join(chunks)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) if sized else chunked_head()
    framed = body if sized else b"".join(map(chunk, chunks)) + LAST_CHUNK
    at %= len(framed)
    wire = head + framed[:at] + (put + framed[at:] if put else b"")

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(wire), packet):
            writer.write(wire[start : start + packet])
            await asyncio.sleep(0)
        writer.close()

    async def test(server: Server) -> None:
        try:
            got = await asyncio.wait_for(fetch(transport, server.url), 60)
        except ConnectionFailed:
            return
        assert put, "a body cut short was taken for whole"
        assert len(got[2]) == len(body) or not sized

    transport = HttpTransport()
    against(handler, transport, test)
