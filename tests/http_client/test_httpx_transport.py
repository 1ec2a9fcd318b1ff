"""What HttpxTransport can do beyond the contract, or does in its own way: SOCKS proxies, addresses, event loops, a missing package."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from certificates import Authority
from dragoman.http import httpx_pool
from dragoman.http.clients import open_transport
from dragoman.http.httpx_transport import HttpxTransport
from dragoman.http.pinned import PinnedTransport
from dragoman.http.transport import HttpTransport
from dragoman.values.errors import ConfigError, ConnectionFailed
from http2_service import Http2Service
from loopback_http import Server, against, always, answer, closing, endless, fetch, serving

# --- SOCKS ------------------------------------------------------------------------------------------------------------------------

NO_LOGIN, BY_PASSWORD, NO_WAY = 0, 2, 255


class SocksProxy:
    """A SOCKS 5 server (RFC 1928, RFC 1929) that connects to one port of this machine whatever it is asked for."""

    def __init__(self, target: int, *, login: tuple[bytes, bytes] | None = None, refuse: int = 0, says: bytes | None = None) -> None:
        self.target = target
        self.login = login
        self.refuse = refuse
        self.says = says
        self.asked: list[tuple[str, int]] = []
        self.hung_up = asyncio.Event()
        self.where = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SocksProxy]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as listener:
            self.where = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await self._let_in(reader, writer) and await self._connect(reader, writer):
                there, back = await asyncio.open_connection("127.0.0.1", self.target)
                await asyncio.gather(relay(reader, back), relay(there, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.hung_up.set()
            writer.close()

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if self.says is not None:
            writer.write(self.says)
            return bool(not self.says and await reader.read(1))
        wanted = BY_PASSWORD if self.login else NO_LOGIN
        writer.write(bytes([5, wanted if wanted in methods else NO_WAY]))
        if wanted not in methods:
            return False
        if self.login:
            _, size = await reader.readexactly(2)
            user = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            is_right = (user, password) == self.login
            writer.write(bytes([1, not is_right]))
            return is_right
        return True

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            name = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            name = ".".join(map(str, await reader.readexactly(4))) if kind == 1 else (await reader.readexactly(16)).hex()
        self.asked.append((name, int.from_bytes(await reader.readexactly(2), "big")))
        writer.write(bytes([5, self.refuse, 0, 1, 0, 0, 0, 0, 0, 0]))
        return not self.refuse


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


def assert_nothing_secret(error: BaseException | None) -> None:
    while error is not None:
        assert "hunter22" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("kind", ["socks5", "socks5h"])
@pytest.mark.parametrize(
    ("scheme", "named_by"),
    [("http", "argument"), ("https", "argument"), ("http", "all_proxy"), ("https", "ALL_PROXY"), ("https", "HTTPS_PROXY")],
)
@pytest.mark.parametrize("login", [None, (b"us@er", b"hunter22")])
def test_a_socks_proxy_is_told_the_name(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, scheme: str, kind: str, named_by: str, login: tuple[bytes, bytes] | None
) -> None:
    async def run() -> None:
        tls = authority.server("api.example.test") if scheme == "https" else None
        async with serving(always(answer(b"ok")), tls=tls) as server, SocksProxy(server.port, login=login).running() as proxy:
            url = f"{kind}://{'us%40er:hunter22@' if login else ''}{proxy.where}"
            if named_by != "argument":
                monkeypatch.setenv(named_by, url)
            async with closing(HttpxTransport(proxy=url if named_by == "argument" else None)) as transport:
                for _ in range(2):
                    assert (await fetch(transport, f"{scheme}://api.example.test/v1", b"x" * 300_000))[2] == b"ok"
            assert proxy.asked == [("api.example.test", 443 if tls else 80)]
            assert [request.target for request in server.requests] == ["/v1", "/v1"]
            assert server.requests[0].headers["host"] == "api.example.test"

    asyncio.run(run())


def test_a_server_on_this_machine_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(server: Server) -> None:
        assert (await fetch(transport, server.url))[2] == b"ok"

    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    transport = HttpxTransport()
    against(always(answer(b"ok")), transport, test)


@pytest.mark.parametrize(
    ("user", "options", "message", "retryable"),
    [
        (
            "user:hunter22@",
            {"login": (b"user", b"right")},
            "refused the connection (wrong user or password); put the right ones into its address",
            False,
        ),
        ("user:hunter22@", {}, "refused the connection (it accepts no user and password); remove them from its address", False),
        (
            "",
            {"login": (b"user", b"right")},
            "refused the connection (it does not let everybody in); it needs a user and password: socks5://",
            False,
        ),
        ("", {"refuse": 5}, "could not connect to api.example.test: connection refused; check your proxy settings", True),
        ("", {"refuse": 2}, "could not connect to api.example.test: connection not allowed by ruleset; check your proxy settings", True),
        ("", {"says": b"HTTP/1.1 400 Bad Request\r\n\r\n"}, "did not answer in SOCKS 5; check your proxy settings", True),
        ("", {"says": b"\5"}, "did not answer in SOCKS 5; check your proxy settings", True),
    ],
)
def test_a_socks_proxy_that_refuses_is_named_without_its_password(user: str, options: Any, message: str, retryable: bool) -> None:
    async def run(transport_to: Callable[[str], HttpxTransport]) -> None:
        async with SocksProxy(0, **options).running() as proxy, closing(transport_to(proxy.where)) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, "https://api.example.test/v1")
            assert f"the proxy {proxy.where} {message}" in str(caught.value)
            assert caught.value.retryable is retryable
            assert_nothing_secret(caught.value)
            await asyncio.wait_for(proxy.hung_up.wait(), 60)

    asyncio.run(run(lambda where: HttpxTransport(proxy=f"socks5://{user}{where}")))
    gc.collect()


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_a_socks_proxy_that_says_nothing_is_given_up(how: str) -> None:
    async def run() -> None:
        async with SocksProxy(0, says=b"").running() as proxy:
            transport = HttpxTransport(proxy=f"socks5://{proxy.where}", connect_timeout_s=0.2)
            task = asyncio.create_task(fetch(transport, "https://api.example.test/v1"))
            if how == "cancelled":
                await asyncio.sleep(0.1)
                task.cancel()
            with pytest.raises((asyncio.CancelledError, ConnectionFailed)) as caught:
                await task
            if how == "timed out":
                message = f"cannot reach the proxy {proxy.where}: no connection within 0.2 s; check the address and your network"
                assert str(caught.value) == message
            await asyncio.wait_for(proxy.hung_up.wait(), 60)

    asyncio.run(run())
    gc.collect()


def test_a_socks_proxy_that_is_not_there_is_named() -> None:
    async def run() -> None:
        async with closing(HttpxTransport(proxy="socks5://user:hunter22@127.0.0.1:1")) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, "https://api.example.test/v1")
        assert (
            str(caught.value)
            == "cannot reach the proxy 127.0.0.1:1: connection refused; is the server running? Start it, or check the address"
        )
        assert_nothing_secret(caught.value)

    asyncio.run(run())


def test_nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """httpcore2 logs what it does, where a program asks for everything."""

    async def run() -> None:
        async with serving(always(answer(b"ok"))) as server, SocksProxy(server.port, login=(b"user", b"hunter22")).running() as proxy:
            transport = HttpxTransport(proxy=f"socks5://user:hunter22@{proxy.where}")
            await fetch(transport, "http://api.example.test", b"hunter22", headers={"authorization": "Bearer hunter22"})
            await transport.aclose()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert "setup_socks5_connection" in caplog.text
    assert "hunter22" not in caplog.text


# --- addresses ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("pinned", [PinnedTransport, lambda address, **options: HttpxTransport(address=address, **options)])
def test_a_pinned_transport_goes_to_its_address_and_speaks_with_the_name(authority: Authority, pinned: Callable[..., Any]) -> None:
    async def run() -> None:
        async with (
            serving(always(answer(b"ok")), tls=authority.server("api.example.test")) as server,
            serving(always(answer(b"ok"))) as plain,
        ):
            async with closing(pinned("127.0.0.1", proxy="")) as transport:
                for scheme, there in [("https", server), ("http", plain)]:
                    assert (await fetch(transport, f"{scheme}://api.example.test:{there.port}/v1"))[2] == b"ok"
                    assert there.requests[0].headers["host"] == f"api.example.test:{there.port}"
                with pytest.raises(ConnectionFailed, match=r"the certificate is not for other\.example\.test"):
                    await fetch(transport, f"https://other.example.test:{server.port}/v1")
            assert len(server.requests) == 1

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_behind_a_socks_proxy_the_proxy_is_told_the_address(authority: Authority, scheme: str) -> None:
    async def run() -> None:
        tls = authority.server("api.example.test") if scheme == "https" else None
        async with serving(always(answer(b"ok")), tls=tls) as server, SocksProxy(server.port).running() as proxy:
            async with closing(HttpxTransport(proxy=f"socks5h://{proxy.where}", address="93.184.216.34")) as transport:
                assert (await fetch(transport, f"{scheme}://api.example.test/v1"))[2] == b"ok"
            assert proxy.asked == [("93.184.216.34", 443 if tls else 80)]
            assert server.requests[0].headers["host"] == "api.example.test"

    asyncio.run(run())


def test_which_client_is_opened() -> None:
    assert type(open_transport()) is HttpTransport
    assert type(open_transport(address="127.0.0.1")) is PinnedTransport
    assert type(open_transport("httpx", proxy="", connect_timeout_s=1.0, address="127.0.0.1")) is HttpxTransport


# --- event loops --------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("trusted")
def test_each_event_loop_has_its_own_http2_connection(authority: Authority) -> None:
    transport = HttpxTransport()
    failures: list[BaseException] = []

    async def ask(name: bytes) -> None:
        for number in range(20):
            body = b"%b %d" % (name, number)
            assert (await fetch(transport, service.url, body))[2] == body

    def thread(name: bytes) -> None:
        try:
            for _ in range(2):
                asyncio.run(ask(name))
        except BaseException as error:
            failures.append(error)

    with Http2Service().running(authority.server_file("127.0.0.1")) as service:
        threads = [threading.Thread(target=thread, args=[b"%d" % number]) for number in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert failures == []
    assert len(service.clients) == 6
    assert set(service.versions) == {"2"}
    gc.collect()


def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(server: Server) -> None:
        await fetch(transport, server.url)
        assert not server.hung_up.is_set()
        await asyncio.wait_for(server.hung_up.wait(), 60)
        await fetch(transport, server.url)
        assert server.connections == 2

    monkeypatch.setattr(httpx_pool, "IDLE_S", 0.2)
    transport = HttpxTransport()
    against(always(answer(b"ok")), transport, test)


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_a_connection_given_up_half_open_is_closed_at_once(how: str, proxied: bool) -> None:
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
            transport = HttpxTransport(
                proxy=f"http://{there}" if proxied else "",
                connect_timeout_s=10 if how == "cancelled" else 0.2,
                tls=ssl.create_default_context(),
            )
            async with closing(transport):
                task = asyncio.create_task(fetch(transport, "https://api.example.test" if proxied else f"https://{there}"))
                await asked.wait()
                if how == "cancelled":
                    task.cancel()
                with pytest.raises((asyncio.CancelledError, ConnectionFailed)) as caught:
                    await task
                assert how == "cancelled" or "no connection within 0.2 s" in str(caught.value)
                await asyncio.wait_for(hung_up.wait(), 60)
        gc.collect()

    asked, hung_up = asyncio.Event(), asyncio.Event()
    asyncio.run(run())


def test_requests_that_wait_for_the_same_connection_give_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """httpcore2 would have each of them try to connect after the other."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(4096):
            pass
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with closing(HttpxTransport(connect_timeout_s=0.3)) as transport:
                got = await asyncio.wait_for(asyncio.gather(*(fetch(transport, url) for _ in range(20)), return_exceptions=True), 60)
            assert {str(each) for each in got} == {
                f"cannot reach {url[8:]}: no connection within 0.3 s; check the address and your network"
            }

    asyncio.run(run())


def test_reading_in_one_task_while_another_leaves_ends_the_reading() -> None:
    async def test(server: Server) -> None:
        async with transport.send("POST", server.url, {}, b"") as got:
            pieces = got.chunks()
            assert await anext(pieces) == b"data: 1\n\n"
            reading = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0.05)
        with pytest.raises(ConnectionFailed, match="cut its answer short after 9 bytes"):
            await reading
        await asyncio.wait_for(server.hung_up.wait(), 60)

    transport = HttpxTransport()
    against(endless, transport, test)


# --- the package ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["httpcore2", "h2", "socksio"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as caught:
        open_transport("httpx")
    assert str(caught.value) == "http=\"httpx\" needs one more package: run pip install '.[httpx]' in your clone of Dragoman"


def test_the_library_beneath_is_used_in_its_own_words_in_one_place_alone() -> None:
    """What httpcore2 does not offer publicly is touched in one file, so that a new version is looked at there."""
    folder = Path(httpx_pool.__file__).parent
    touching = {path.name for path in folder.glob("httpx_*.py") if "_h2_state" in path.read_text() or "_h11_state" in path.read_text()}
    assert touching == {"httpx_exchange.py"}
