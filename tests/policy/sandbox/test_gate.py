"""The gate against clients that keep to no rules: what it reads, what it passes on, and what it lets anybody hold."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.sandbox.gate import Gate, GateLimits, GateRefused, Reachable
from dragoman.policy.sandbox.gate_request import ProxyRequest, UnclearRequest, read_request

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SECRET = "s3cret"
SHOWN = b"Proxy-Authorization: Basic " + base64.b64encode(b"dragoman:s3cret") + b"\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def admit(url: str) -> Reachable:
    host = url.partition("//")[2].rstrip("/")
    if "refused" in host:
        raise GateRefused("refused.test", "not today")
    return Reachable("example.org", 80, ["192.0.2.1", "192.0.2.2"], "example.org")


class Running:
    def __init__(self, gate: Gate, port: int) -> None:
        self.gate = gate
        self.port = port

    async def connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def say(self, data: bytes) -> bytes:
        """All that comes back."""
        reader, writer = await self.connect()
        writer.write(data)
        try:
            async with asyncio.timeout(60):
                return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def gate_before(serve: Serve, **limits: float) -> AsyncIterator[Running]:
    """A gate whose every host is this server."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    there = server.sockets[0].getsockname()[1]

    async def dial(address: str, port: int, limit: int) -> Streams:
        return await asyncio.open_connection("127.0.0.1", there, limit=limit)

    gate = Gate(admit, secret=SECRET, connect=dial, limits=GateLimits(**limits))  # type: ignore[arg-type]
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    await gate.open(listener.detach())
    try:
        yield Running(gate, port)
    finally:
        gate.close()
        server.close()
        await asyncio.sleep(0.02)


class Recorder:
    """A server that keeps what it gets, answers, and hangs up."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        try:
            async with asyncio.timeout(0.3):
                while more := await reader.read(65536):
                    data += more
        except (TimeoutError, OSError):
            pass
        self.got.append(data)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        writer.close()


def converse(data: bytes, **limits: float) -> tuple[bytes, list[bytes]]:
    """What a client gets back, and what the server got."""

    async def main() -> tuple[bytes, list[bytes]]:
        server = Recorder()
        async with gate_before(server, **limits) as running:
            return await running.say(data), server.got

    return asyncio.run(main())


GET = b"GET http://example.org/a?b HTTP/1.1\r\nHost: example.org\r\n" + SHOWN


def test_a_request_is_passed_on_without_what_concerns_the_gate() -> None:
    answer, got = converse(GET + b"Proxy-Connection: x-hop\r\nX-Hop: 1\r\nConnection: keep-alive\r\nX-Kept: yes\r\n\r\n")
    assert answer.endswith(b"ok")
    assert got == [b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nX-Kept: yes\r\nConnection: close\r\n\r\n"]


def test_what_follows_a_request_is_not_another_one() -> None:
    _, got = converse(GET + b"Content-Length: 3\r\n\r\nabcGET http://example.org/second HTTP/1.1\r\n\r\n")
    assert got[0].endswith(b"\r\n\r\nabc")
    _, got = converse(GET + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\nGET /second HTTP/1.1\r\n\r\n")
    assert got[0].endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")


def test_a_body_that_breaks_its_own_framing_ends_the_connection() -> None:
    for body in (b"3\r\nabcdef\r\n0\r\n\r\n", b"zz\r\n", b"-1\r\n", b"3\nabc\r\n0\r\n\r\n"):
        _, got = converse(GET + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        assert not any(each.endswith(b"0\r\n\r\n") for each in got), body


SMUGGLED = {
    "two credentials": SHOWN + b"\r\n",
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "a length with a sign": b"Content-Length: +1\r\n\r\na",
    "a folded line": b"X: 1\r\n Content-Length: 3\r\n\r\nabc",
    "a bare newline": b"X: 1\nContent-Length: 3\r\n\r\nabc",
    "a bare return": b"X: 1\rY: 2\r\n\r\n",
    "a blank before the colon": b"Content-Length : 3\r\n\r\nabc",
    "NUL": b"X: \0\r\n\r\n",
    "another host": b"Host: other.test\r\n\r\n",
    "many headers": b"X: 1\r\n" * 200 + b"\r\n",
    "a long head": b"X: " + b"x" * 40_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("rest", SMUGGLED.values(), ids=SMUGGLED)
def test_what_can_be_read_in_two_ways_is_refused(rest: bytes) -> None:
    answer, got = converse(GET + rest)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert got == []


TARGETS = [
    b"CONNECT example.org HTTP/1.1", b"CONNECT user@example.org:443 HTTP/1.1", b"CONNECT example.org:443/path HTTP/1.1",
    b"CONNECT example.org:443x HTTP/1.1", b"CONNECT  example.org:443 HTTP/1.1", b"CONNECT example.org:443 HTTP/2", b"GET / HTTP/1.1",
    b"GET https://example.org/ HTTP/1.1", b"GET ftp://example.org/ HTTP/1.1", b"GET http://user:key@example.org/ HTTP/1.1",
    b"GET http://example.org\\@refused.test/ HTTP/1.1", b"GET http:///x HTTP/1.1", b"GET http://example.org/#x HTTP/1.1", b"\x16\x03\x01",
    b"SSH-2.0-OpenSSH_9.2", b"CONNECT example.org:443 HTTP/1.1\r\nContent-Length: 4",
]  # fmt: skip


@pytest.mark.parametrize("line", TARGETS)
def test_only_plain_requests_to_a_proxy_are_served(line: bytes) -> None:
    answer, got = converse(line + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert got == []


def test_a_refusal_names_host_and_reason() -> None:
    for request in (b"CONNECT refused.test:443 HTTP/1.1\r\n", b"GET http://refused.test/ HTTP/1.0\r\n"):
        answer, got = converse(request + SHOWN + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"refused.test: not today" in answer
        assert got == []


OTHERS = {
    "none": b"",
    "another secret": b"Proxy-Authorization: Basic " + base64.b64encode(b"dragoman:secret") + b"\r\n",
    "another name": b"Proxy-Authorization: Basic " + base64.b64encode(b"me:s3cret") + b"\r\n",
    "the beginning of it": SHOWN[:-4] + b"\r\n",
    "another way": b"Proxy-Authorization: Bearer s3cret\r\n",
    "meant for the server": b"Authorization: Basic " + base64.b64encode(b"dragoman:s3cret") + b"\r\n",
    "bytes": b"Proxy-Authorization: Basic \xff\xfe\r\n",
}


@pytest.mark.parametrize("shown", OTHERS.values(), ids=OTHERS)
def test_whoever_does_not_know_the_secret_is_asked_for_it(shown: bytes) -> None:
    for request in (
        b"CONNECT example.org:443 HTTP/1.1\r\n",
        b"GET http://example.org/ HTTP/1.1\r\n",
        b"GET http://refused.test/ HTTP/1.1\r\n",
    ):
        answer, got = converse(request + shown + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 407 ")
        assert b'\r\nProxy-Authenticate: Basic realm="dragoman"\r\n' in answer
        assert got == []


def test_a_tunnel_carries_bytes_both_ways_and_its_ends() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def main() -> None:
        sent = bytes(range(256)) * 4_000
        async with gate_before(echo) as running:
            reader, writer = await running.connect()
            writer.write(b"CONNECT example.org:80 HTTP/1.1\r\n" + SHOWN + b"\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            got = asyncio.ensure_future(reader.read(-1))
            writer.write(sent)
            await writer.drain()
            writer.write_eof()
            async with asyncio.timeout(60):
                assert await got == sent
            assert list(running.gate.reached) == ["example.org"]
            writer.close()

    asyncio.run(main())


# What anybody may hold


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    for letter in data:
        writer.write(bytes([letter]))
        await writer.drain()
        await asyncio.sleep(0.05)


def test_a_head_that_never_ends_is_not_waited_for() -> None:
    async def main() -> None:
        async with gate_before(Recorder(), head_s=0.3) as running:
            _, writer = await running.connect()
            with pytest.raises(OSError, match=r"reset|roken|lost"):
                await drip(writer, b"GET http://example.org/ HTTP/1.1\r\nX: slow" * 9)

    asyncio.run(main())


def test_connections_are_counted_and_come_free_again() -> None:
    async def main() -> None:
        async with gate_before(Recorder(), connections=4, head_s=60) as running:
            held = [await running.connect() for _ in range(4)]
            await asyncio.sleep(0.05)
            assert (await running.say(GET + b"\r\n")).startswith(b"HTTP/1.1 503 ")
            for _, writer in held:
                writer.close()
            await asyncio.sleep(0.05)
            assert (await running.say(GET + b"\r\n")).endswith(b"ok")

    asyncio.run(main())


def test_a_connection_on_which_nothing_moves_ends() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def main() -> None:
        async with gate_before(silent, idle_s=0.2) as running:
            for request in (b"CONNECT example.org:443 HTTP/1.1\r\n" + SHOWN + b"\r\n", GET + b"Content-Length: 9\r\n\r\n"):
                assert await running.say(request) in (b"HTTP/1.1 200 Connection Established\r\n\r\n", b"")

    asyncio.run(main())


def test_a_client_that_does_not_read_makes_the_server_wait() -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        try:
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536
        except OSError:
            pass

    async def main() -> None:
        async with gate_before(pour) as running:
            _, writer = await running.connect()
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"CONNECT example.org:443 HTTP/1.1\r\n" + SHOWN + b"\r\n")
            await asyncio.sleep(0.5)
            before = sent
            await asyncio.sleep(0.3)
            assert sent == before, "it is held up, and nothing grows here"
            writer.close()

    asyncio.run(main())


# What is read


@given(st.binary(max_size=300) | st.builds(lambda a, b: GET + a + b"\r\n\r\n", st.binary(max_size=100), st.binary(max_size=10)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        request = read_request(data)
    except UnclearRequest:
        return
    check_head(request)


names = st.from_regex(rb"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True)
values = st.from_regex(rb"[\x20-\x7e]{0,20}", fullmatch=True)


@given(st.lists(st.tuples(names, values), max_size=8), st.sampled_from([b"GET", b"POST", b"DELETE"]))
def test_what_the_server_gets_reads_as_one_request_with_our_host(headers: list[tuple[bytes, bytes]], method: bytes) -> None:
    head = method + b" http://example.org/x HTTP/1.1\r\n" + b"".join(b"%b: %b\r\n" % each for each in headers) + b"\r\n"
    try:
        request = read_request(head)
    except UnclearRequest:
        return
    check_head(request)


def check_head(request: ProxyRequest) -> None:
    if request.is_tunnel:
        return
    first, *lines = request.head_for("example.org").removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert first.count(b" ") == 2
    names = [line.partition(b":")[0].lower() for line in lines]
    assert names.count(b"host") == 1
    assert names.count(b"connection") == 1
    assert names.count(b"content-length") + names.count(b"transfer-encoding") <= 1
    assert not any(sign in line for line in lines for sign in (b"\r", b"\n", b"\0"))
