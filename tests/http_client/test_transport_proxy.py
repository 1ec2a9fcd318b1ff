"""Both clients through proxies: tunnels, forwarding, the environment, and passwords that are never shown."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch
from urllib.request import getproxies_environment, proxy_bypass_environment

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certificates import Authority
from dragoman.http.route import HTTP_PROXIES, SOCKS_PROXIES, proxy_from_environment, route_to
from dragoman.values.errors import ConfigError, ConnectionFailed
from loopback_http import Client, Received, always, answer, closing, fetch, read_request, serving

# --- proxies ------------------------------------------------------------------------------------------------------------------------


class Proxy:
    """Forwards plain requests and opens tunnels, both to one server whatever was asked for."""

    def __init__(self, target: int, *, refuse: str = "", inject: bytes = b"", tls: ssl.SSLContext | None = None) -> None:
        self.target = target
        self.refuse = refuse
        self.inject = inject
        self.tls = tls
        self.seen: list[Received] = []
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls) as listener:
            self.port = listener.sockets[0].getsockname()[1]
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        assert request is not None
        self.seen.append(request)
        if self.refuse:
            writer.write(f"HTTP/1.1 {self.refuse}\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        if request.method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n" + self.inject)
        else:
            lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers.items())]
            back.write("\r\n".join([*lines, "", ""]).encode() + request.body)
        await asyncio.gather(relay(reader, back), relay(there, writer))


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


BASIC = "Basic dXNlcjpodW50ZXIyMg=="  # user:hunter22


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("named_by", ["argument", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_https_goes_through_a_tunnel(client: Client, authority: Authority, monkeypatch: pytest.MonkeyPatch, named_by: str) -> None:
    async def run() -> None:
        async with (
            serving(always(answer(b"ok")), tls=authority.server("api.example.test")) as server,
            Proxy(server.port).running() as proxy,
        ):
            url = f"http://user:hunter22@127.0.0.1:{proxy.port}"
            if named_by != "argument":
                monkeypatch.setenv(named_by, url)
            async with closing(client(proxy=url if named_by == "argument" else None)) as transport:
                for _ in range(2):
                    got = await fetch(transport, "https://api.example.test/v1", b"question", headers={"x-api-key": "k"})
                    assert got[2] == b"ok"
            [connect] = proxy.seen
            assert (connect.method, connect.target) == ("CONNECT", "api.example.test:443")
            assert connect.headers["proxy-authorization"] == BASIC
            assert "x-api-key" not in connect.headers
            assert [request.target for request in server.requests] == ["/v1", "/v1"]
            assert "proxy-authorization" not in server.requests[0].headers

    asyncio.run(run())


def test_http_is_forwarded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with serving(always(answer(b"ok"))) as server, Proxy(server.port).running() as proxy:
            monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
            async with closing(client()) as transport:
                assert (await fetch(transport, "http://api.example.test/v1", b"question"))[2] == b"ok"
            assert [(request.method, request.target) for request in proxy.seen] == [("POST", "http://api.example.test/v1")]

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_may_be_reached_over_tls(client: Client, authority: Authority, scheme: str) -> None:
    async def run() -> None:
        tls = authority.server("api.example.test") if scheme == "https" else None
        async with (
            serving(always(answer(b"ok")), tls=tls) as server,
            Proxy(server.port, tls=authority.server("127.0.0.1")).running() as proxy,
        ):
            async with closing(client(proxy=f"https://user:hunter22@127.0.0.1:{proxy.port}")) as transport:
                for _ in range(2):
                    assert (await fetch(transport, f"{scheme}://api.example.test/v1", b"x" * 300_000))[2] == b"ok"
            assert len(proxy.seen) == 1
            assert proxy.seen[0].headers["proxy-authorization"] == BASIC

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
def test_what_a_proxy_says_by_itself_never_passes_for_the_server(client: Client, authority: Authority) -> None:
    async def run() -> None:
        async with (
            serving(always(answer(b"ok")), tls=authority.server("api.example.test")) as server,
            Proxy(server.port, inject=answer(b"evil")).running() as proxy,
        ):
            async with closing(client(proxy=f"http://127.0.0.1:{proxy.port}")) as transport:
                with pytest.raises(ConnectionFailed):
                    await fetch(transport, "https://api.example.test/v1")
            assert server.requests == []

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    ("refusal", "message", "retryable"),
    [
        (
            "407 Proxy Authentication Required",
            "refused the connection (407 Proxy Authentication Required); it needs a user and password",
            False,
        ),
        ("502 Bad Gateway", "could not connect to api.example.test: 502 Bad Gateway; check your proxy settings", True),
    ],
)
def test_a_proxy_that_refuses_is_named_without_its_password(client: Client, refusal: str, message: str, retryable: bool) -> None:
    async def run() -> None:
        async with Proxy(0, refuse=refusal).running() as proxy:
            async with closing(client(proxy=f"http://user:hunter22@127.0.0.1:{proxy.port}/")) as transport:
                with pytest.raises(ConnectionFailed) as caught:
                    await fetch(transport, "https://api.example.test/v1")
            assert f"the proxy 127.0.0.1:{proxy.port} {message}" in str(caught.value)
            assert caught.value.retryable is retryable
            assert_nothing_secret(caught.value)

    asyncio.run(run())


@pytest.mark.usefixtures("trusted")
def test_a_proxy_that_is_not_there_is_named_without_its_password(client: Client) -> None:
    async def run() -> None:
        async with closing(client(proxy="http://user:hunter22@127.0.0.1:1")) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await fetch(transport, "https://api.example.test/v1")
        assert (
            str(caught.value)
            == "cannot reach the proxy 127.0.0.1:1: connection refused; is the server running? Start it, or check the address"
        )
        assert_nothing_secret(caught.value)

    asyncio.run(run())


@pytest.mark.usefixtures("fresh_trust")
def test_a_stranger_behind_a_proxy_is_refused(client: Client, authority: Authority) -> None:
    async def run() -> None:
        async with (
            serving(always(answer(b"ok")), tls=authority.server("api.example.test")) as server,
            Proxy(server.port).running() as proxy,
        ):
            async with closing(client(proxy=f"http://127.0.0.1:{proxy.port}")) as transport:
                with pytest.raises(ConnectionFailed, match=r"not trusted: api\.example\.test \(through the proxy 127\.0\.0\.1:\d+\)"):
                    await fetch(transport, "https://api.example.test/v1")
            assert server.requests == []

    asyncio.run(run())


def assert_nothing_secret(error: BaseException | None) -> None:
    while error is not None:
        assert "hunter22" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://api.example.com", ""),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example.com", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://api.example.com", ""),
        ({"HTTP_PROXY": "p:1"}, "http://api.example.com", "http://p:1"),
        ({"ALL_PROXY": "https://p:1"}, "https://api.example.com", "https://p:1"),
        ({"ALL_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:2"}, "https://api.example.com", "http://q:2"),
        ({"ALL_PROXY": "http://p:1"}, "http://localhost:11434", ""),
        ({"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:8080", ""),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:8080", ""),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "https://api.example.com", ""),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".example.com"}, "https://api.example.com", ""),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "https://notexample.com", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://api.example.com", ""),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "x, 10.0.0.0/8"}, "http://10.1.2.3:8000", ""),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://11.1.2.3:8000", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "fd00::/8"}, "http://[fd00::5]:8000", ""),
    ],
)
def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert route_to(url, None).proxy == proxy
    assert route_to(url, "").proxy == ""
    assert route_to(url, "http://mine:3").proxy == "http://mine:3"


hosts = st.sampled_from(["example.com", "api.example.com", "notexample.com", "Example.COM", "10.1.2.3"])
exceptions = st.lists(st.sampled_from(["example.com", ".example.com", " EXAMPLE.com", "api.example.com:443", "*", "", ".", "com", "x"]))
variables = st.dictionaries(
    st.sampled_from(["HTTP_PROXY", "http_proxy", "Https_Proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "_PROXY", "REQUEST_METHOD"]),
    st.sampled_from(["", "http://p:1", "q:2"]),
)


@given(hosts, exceptions, variables, st.sampled_from(["http", "https"]))
def test_the_environment_is_read_as_python_reads_it(host: str, excepted: list[str], variables: dict[str, str], scheme: str) -> None:
    with patch.dict(os.environ, variables | {"NO_PROXY": ",".join(excepted)}, clear=True):
        proxies = getproxies_environment()
        named = proxies.get(scheme) or proxies.get("all") or ""
        expected = "" if proxy_bypass_environment(f"{host}:443") else named
        assert proxy_from_environment(scheme, host, 443) == expected


@pytest.mark.parametrize("proxy", ["http://", "http://p:port", "http://user:hunter22@:80", "http://[::1"])
def test_a_proxy_without_an_address_is_a_setting_to_correct(proxy: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a proxy") as caught:
        route_to("https://api.example.com", proxy)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("kind", ["gopher", "socks5", "socks5h", "SOCKS4"])
def test_a_proxy_of_another_kind_is_a_setting_to_correct(kind: str) -> None:
    with pytest.raises(ConfigError, match=rf"proxies of the kind {kind.lower()}:// are not supported; use http://, https://") as caught:
        route_to("https://api.example.com", f"{kind}://user:hunter22@p:1")
    assert "hunter22" not in str(caught.value)
    way_out = "; for SOCKS, run pip install '.[httpx]' in your clone of Dragoman and connect with http=\"httpx\""
    assert str(caught.value).endswith(way_out) == (kind != "gopher")
    assert "hunter22" not in repr(route_to("https://api.example.com", "http://user:hunter22@p:1"))
    assert proxy_from_environment("https", "api.example.com", 443) == ""


@pytest.mark.parametrize("kind", ["gopher", "socks4", "socks"])
def test_whoever_can_use_socks_is_told_which(kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        route_to("https://api.example.com", f"{kind}://p:1", (*HTTP_PROXIES, *SOCKS_PROXIES))
    assert str(caught.value) == f"proxies of the kind {kind}:// are not supported; use http://, https://, socks5://, socks5h://"


@pytest.mark.parametrize("kind", ["socks5", "SOCKS5h"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_socks_proxy_is_neither_asked_for_urls_nor_for_tunnels(kind: str, scheme: str) -> None:
    route = route_to(f"{scheme}://api.example.com", f"{kind}://us%40er:pw@p", (*HTTP_PROXIES, *SOCKS_PROXIES))
    assert (route.is_socks, route.is_forwarded, route.is_tunnelled) == (True, False, False)
    assert route.hop == ("p", 1080, False)
    assert route.proxy_credentials == ("us@er", "pw")
