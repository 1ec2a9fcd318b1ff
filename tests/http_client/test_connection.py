"""HttpTransport's connections: kept, lost, opened ahead, given up, and the ways they are opened."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from certificates import Authority
from dragoman.http import dialling
from dragoman.http import pool as pool_module
from dragoman.http.transport import HttpTransport
from dragoman.values.errors import ConnectionFailed
from loopback_http import (
    Received,
    Server,
    against,
    always,
    answer,
    closing,
    fetch,
    serving,
)
from many.crowd import sockets

# --- kept connections -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reset", [False, True])
def test_a_kept_connection_that_dies_under_a_request_is_replaced_once(reset: bool) -> None:
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
        assert (await fetch(transport, server.url, b"one"))[2] == b"one"
        assert (await fetch(transport, server.url, b"two"))[2] == b"two"
        assert [request.body for request in server.requests] == [b"one", b"two", b"two"]
        assert server.connections == 2

    transport = HttpTransport()
    against(handler, transport, test)


@pytest.mark.parametrize("said", [b"", b"H", b"HTTP/1.1 200 OK\r\n"])
def test_a_request_is_not_sent_again_on_a_new_connection_or_after_a_word_of_answer(said: bytes) -> None:
    async def test(server: Server) -> None:
        if said:
            fine.append(True)
            await fetch(transport, server.url)
        with pytest.raises(ConnectionFailed, match="closed the connection without answering"):
            await fetch(transport, server.url)
        assert len(server.requests) == (2 if said else 1)

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        if fine:
            fine.pop()
            writer.write(answer(b"ok"))
            return
        writer.write(said)
        await writer.drain()
        writer.close()

    fine: list[bool] = []
    transport = HttpTransport()
    against(handler, transport, test)


def test_a_server_that_hung_up_while_the_loop_was_busy_is_noticed() -> None:
    async def run(server: ThreadedServer) -> None:
        async with closing(HttpTransport()) as transport:
            assert (await fetch(transport, server.url, b"one"))[2] == b"ok"
            server.hang_up.set()
            time.sleep(0.2)  # noqa: ASYNC251 - a loop that is kept busy is the point
            assert (await fetch(transport, server.url, b"two"))[2] == b"ok"
        assert server.asked == 2

    with ThreadedServer().running() as server:
        asyncio.run(run(server))


class ThreadedServer:
    """Answers requests one by one outside the client's event loop, and hangs up on the first client when told to."""

    def __init__(self) -> None:
        self.hang_up = threading.Event()
        self.asked = 0
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[ThreadedServer]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            thread = threading.Thread(target=self._serve, args=[listener])
            thread.start()
            yield self
            thread.join(60)

    def _serve(self, listener: socket.socket) -> None:
        for _ in range(2):
            with listener.accept()[0] as client:
                while b"\r\n\r\n" not in client.recv(4096):
                    pass
                self.asked += 1
                client.sendall(answer(b"ok"))
                self.hang_up.wait(60)


def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(server: Server) -> None:
        await fetch(transport, server.url)
        assert not server.hung_up.is_set()
        await asyncio.wait_for(server.hung_up.wait(), 60)
        await fetch(transport, server.url)
        assert server.connections == 2

    monkeypatch.setattr(pool_module, "IDLE_S", 0.1)
    transport = HttpTransport()
    against(always(answer(b"ok")), transport, test)


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"\0"])
@pytest.mark.parametrize("pause", [0, 0.05])
def test_bytes_behind_an_answer_are_not_taken_for_the_next_one(extra: bytes, pause: float) -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(request.body))
        await asyncio.sleep(pause)
        writer.write(extra)

    async def test(server: Server) -> None:
        for body in [b"one", b"two"]:
            assert (await fetch(transport, server.url, body))[2] == body
            await asyncio.sleep(2 * pause)
        assert server.connections == 2

    transport = HttpTransport()
    against(handler, transport, test)


def test_an_answer_that_is_there_but_unread_does_not_cost_the_connection() -> None:
    async def test(server: Server) -> None:
        for _ in range(2):
            async with transport.send("POST", server.url, {}, b"") as got:
                assert got.status == 404
        assert server.connections == 1

    transport = HttpTransport()
    against(always(answer(b"no such thing", "404 Not Found")), transport, test)


def test_no_more_connections_are_open_than_the_process_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these has a pool of its own, so none knows of the others' idle connections."""

    async def test(server: Server) -> None:
        others = [HttpTransport() for _ in range(30)]
        for other in others:
            assert (await fetch(other, server.url))[2] == b"ok"
        await asyncio.sleep(0.05)
        assert len(pool_module.open_connections) <= 16
        for other in others:
            await other.aclose()

    monkeypatch.setattr(pool_module.open_connections, "_most", lambda: 16)
    against(always(answer(b"ok")), HttpTransport(), test)


def test_a_server_that_gave_up_waiting_in_the_moment_of_a_request_is_asked_on_a_new_connection() -> None:
    replies = iter([b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", b""])

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(next(replies) or answer(request.body))

    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url, b"one"))[2] == b"one"
        assert (await fetch(transport, server.url, b"two"))[::2] == (200, b"two")
        assert server.connections == 2

    transport = HttpTransport()
    against(handler, transport, test)


def test_a_408_on_a_new_connection_is_an_answer() -> None:
    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[0] == 408
        assert len(server.requests) == 1

    transport = HttpTransport()
    against(always(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), transport, test)


def test_an_answer_kept_beyond_its_request_reads_nothing_of_the_next() -> None:
    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(request.body))

    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"one") as first:
            pieces = first.chunks()
            with pytest.raises(RuntimeError, match="only once"):
                first.chunks()
        async with transport.send("POST", server.url, {}, b"two") as second:
            assert [piece async for piece in pieces] == []
            assert [piece async for piece in second.chunks()] == [b"two"]
        assert server.connections == 1

    transport = HttpTransport()
    against(handler, transport, test)


# --- opened ahead -------------------------------------------------------------------------------------------------------------------


def test_a_connection_opened_ahead_is_used() -> None:
    async def test(server: Server) -> None:
        await transport.preconnect(f"{server.url}/v1")
        await transport.preconnect(server.url)
        await asyncio.sleep(0.05)
        assert (server.connections, server.requests) == (1, [])
        await fetch(transport, server.url)
        assert server.connections == 1

    transport = HttpTransport()
    against(always(answer(b"ok")), transport, test)


def test_a_request_waits_for_the_connection_that_is_being_opened() -> None:
    async def test(server: Server) -> None:
        ahead = asyncio.create_task(transport.preconnect(server.url))
        await asyncio.sleep(0)
        await fetch(transport, server.url)
        await ahead
        assert server.connections == 1
        gone = asyncio.create_task(transport.preconnect(f"http://localhost:{server.port}"))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(gone.cancel)
        assert (await fetch(transport, f"http://localhost:{server.port}"))[2] == b"ok"

    transport = HttpTransport()
    against(always(answer(b"ok")), transport, test)


@pytest.mark.usefixtures("trusted")
def test_tls_is_opened_ahead_too(authority: Authority) -> None:
    async def run() -> None:
        async with (
            serving(always(answer(b"ok")), tls=authority.server("127.0.0.1")) as server,
            closing(HttpTransport()) as transport,
        ):
            await transport.preconnect(server.url)
            await asyncio.sleep(0.05)
            assert (await fetch(transport, server.url))[2] == b"ok"
            assert server.connections == 1

    asyncio.run(run())


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.0.0.1:1", "nonsense", "", "http://[::1", "http://h:port/"])
@pytest.mark.parametrize("proxy", [None, "http://127.0.0.1:1", "socks5://127.0.0.1:1"])
def test_opening_ahead_never_raises(url: str, proxy: str | None) -> None:
    async def run() -> None:
        async with closing(HttpTransport(proxy=proxy)) as transport:
            await transport.preconnect(url)

    asyncio.run(run())


# --- ways there -------------------------------------------------------------------------------------------------------------------


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def resolve(host: Any, port: int, *args: Any, **kwargs: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_one_address_that_answers_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(server: Server) -> None:
        resolving(monkeypatch, "127.0.0.77", "127.0.0.1")
        assert (await fetch(transport, f"http://api.example.test:{server.port}/v1"))[2] == b"ok"
        assert server.requests[0].headers["host"] == f"api.example.test:{server.port}"

    transport = HttpTransport()
    against(always(answer(b"ok")), transport, test)


def test_addresses_that_all_refuse_are_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with closing(HttpTransport()) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, "http://api.example.test:1/v1")
        assert (
            str(caught.value)
            == "cannot reach api.example.test:1: connection refused; is the server running? Start it, or check the address"
        )

    resolving(monkeypatch, "127.0.0.77", "127.0.0.1")
    asyncio.run(run())


def test_an_address_that_does_not_answer_does_not_keep_the_next_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first takes the connection and never accepts it: what a network does that drops packets."""

    async def test(server: Server) -> None:
        with full_listener() as port:
            addresses = [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET, ("127.0.0.1", server.port))]
            with await dialling.connect_socket(addresses) as connected:
                assert connected.getpeername()[1] == server.port
        await asyncio.sleep(0)

    against(always(answer(b"ok")), HttpTransport(), test)


@contextmanager
def full_listener() -> Iterator[int]:
    """A port whose queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for each in waiting:
            each.close()


@pytest.mark.parametrize("addresses", [1, 2, 3])
def test_a_dial_that_is_cancelled_at_any_moment_leaves_no_socket(addresses: int) -> None:
    async def test(server: Server) -> None:
        before = sockets()
        there = [(socket.AF_INET, ("127.0.0.1", server.port))] * addresses
        for turns in range(12):
            task = asyncio.create_task(dialling.connect_socket(there))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            try:
                (await task).close()
            except asyncio.CancelledError:
                pass
        await asyncio.sleep(0.05)
        gc.collect()
        await asyncio.sleep(0.05)
        assert sockets() <= before + server.connections  # the server's ends are in this process too

    async def accept(request: Received, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("nothing is asked")

    against(accept, HttpTransport(), test)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/"),
        ("?a=b", "/?a=b"),
        ("/a#b", "/a"),
        ("/a b/é?q=ü%20", "/a%20b/%C3%A9?q=%C3%BC%20"),
        ("/m:x?alt=sse&k=[1]", "/m:x?alt=sse&k=[1]"),
    ],
)
def test_a_target_is_written_as_it_must_be(path: str, target: str) -> None:
    async def test(server: Server) -> None:
        await fetch(transport, server.url + path)
        assert server.requests[0].target == target

    transport = HttpTransport()
    against(always(answer(b"")), transport, test)


def test_a_user_in_the_url_is_sent_as_a_header_and_ours_are_the_defaults() -> None:
    async def test(server: Server) -> None:
        await fetch(transport, f"http://us%40er:pw@127.0.0.1:{server.port}", headers={"Content-Length": "99", "User-Agent": "mine"})
        got = server.requests[0].headers
        assert (got["authorization"], got["content-length"], got["user-agent"]) == ("Basic dXNAZXI6cHc=", "0", "mine")
        await fetch(transport, f"http://user:pw@127.0.0.1:{server.port}", headers={"Authorization": "Bearer key"})
        assert server.requests[1].headers["authorization"] == "Bearer key"
        assert server.connections == 1

    transport = HttpTransport()
    against(always(answer(b"")), transport, test)


# --- giving up on the way -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_a_connection_given_up_half_open_is_closed_at_once(how: str, proxied: bool, ahead: bool) -> None:
    """The other end takes the connection and says nothing: neither its part of TLS nor an answer to CONNECT."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        asked.set()
        while await reader.read(4096):
            pass
        hung_up.set()
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            there = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = HttpTransport(proxy=f"http://{there}" if proxied else "", connect_timeout_s=10 if how == "cancelled" else 0.2)
            url = "https://api.example.test" if proxied else f"https://{there}"
            async with closing(transport):
                task = asyncio.create_task(transport.preconnect(url) if ahead else fetch(transport, url))  # type: ignore[arg-type]
                await asked.wait()
                if how == "cancelled":
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                elif ahead:
                    await task
                else:
                    with pytest.raises(ConnectionFailed, match=r"no connection within 0\.2 s"):
                        await task
                await asyncio.wait_for(hung_up.wait(), 60)
        gc.collect()

    asked, hung_up = asyncio.Event(), asyncio.Event()
    asyncio.run(run())


def test_a_callers_own_certificates_are_used(authority: Authority) -> None:
    async def run() -> None:
        trusting = HttpTransport(tls=ssl.create_default_context(cafile=authority.file))
        async with serving(always(answer(b"ok")), tls=authority.server("127.0.0.1")) as server, closing(trusting):
            assert (await fetch(trusting, server.url))[2] == b"ok"

    asyncio.run(run())
