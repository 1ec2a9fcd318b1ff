"""web_fetch behind a proxy: it is the proxy that connects, so it is told the address that was checked, and never the name."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from certificates import Authority
from dragoman.http.pinned import PinnedTransport
from dragoman.tools.web import HostRules
from dragoman.tools.web.fetch import WebFetch
from dragoman.values.calls import ToolOutput
from dragoman.values.contracts import Transport
from dragoman.values.messages import Text
from loopback_http import Received, always, answer, read_request, serving

PUBLIC = "93.184.216.34"


class Proxy:
    """Opens tunnels and forwards, all of it to one server, and notes what it was asked for."""

    def __init__(self, target: int, refuse: bool = False) -> None:
        self.target = target
        self.refuse = refuse
        self.seen: list[Received] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        assert request is not None
        self.seen.append(request)
        if self.refuse:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        if request.method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            back.write(f"{request.method} / HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await asyncio.gather(self._relay(reader, back), self._relay(there, writer))

    @staticmethod
    async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def proxied(refuse: bool = False, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Proxy, str]]:
    async with serving(always(answer(b"through the proxy")), tls=tls) as server:
        proxy = Proxy(server.port, refuse)
        async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listener:
            proxy.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            yield proxy, f"{server.scheme}://public.example:{server.port}/x"


def fetched(
    addresses: Sequence[str] = (PUBLIC,), *, refuse: bool = False, tls: Any = None, trust: Any = None, rules: HostRules | None = None
) -> tuple[ToolOutput, Proxy]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    async def run() -> tuple[ToolOutput, Proxy]:
        async with proxied(refuse, tls) as (proxy, url):

            def pin(address: str) -> Transport:
                return PinnedTransport(address, proxy=proxy.url, tls=trust)

            output = await asyncio.wait_for(
                WebFetch(pin, resolve=resolve, rules=rules or HostRules()).run({"url": url}, lambda text: None), 60
            )
            return output, proxy

    return asyncio.run(run())


def said(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111"])
def test_the_proxy_is_told_the_checked_address(address: str) -> None:
    """Not the name, which it would look up once more: for plain http, too, a tunnel is asked for."""
    output, proxy = fetched([address])
    assert "through the proxy" in said(output)
    (request,) = proxy.seen
    assert request.method == "CONNECT"
    assert request.target.rpartition(":")[0] == (address if ":" not in address else f"[{address}]")
    assert "public.example" not in str(request.headers)


def test_tls_through_the_proxy_is_spoken_with_the_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    trust = ssl.create_default_context(cafile=str(authority.file))
    output, proxy = fetched(tls=authority.server("public.example"), trust=trust)
    assert "through the proxy" in said(output)
    assert proxy.seen[0].target.startswith(f"{PUBLIC}:")


@pytest.mark.parametrize("addresses", [["10.0.0.1"], [PUBLIC, "127.0.0.1"], []])
def test_what_is_refused_never_reaches_the_proxy(addresses: list[str]) -> None:
    """A name that cannot be resolved here cannot be checked, and is refused as well."""
    output, proxy = fetched(addresses)
    assert output.is_error
    assert proxy.seen == []


def test_a_proxy_that_refuses_addresses_is_told_of() -> None:
    output, proxy = fetched(refuse=True)
    assert (output.is_error, output.error_type) == (True, "connection")
    assert "proxy" in said(output)
    assert len(proxy.seen) == 1


def test_an_allowed_host_goes_through_the_proxy_by_name() -> None:
    """The user vouches for it: then the proxy may resolve it."""
    output, proxy = fetched([], rules=HostRules(allowed=("public.example",)))
    assert "through the proxy" in said(output)
    assert proxy.seen[0].target.startswith("http://public.example:")


def test_the_proxys_password_is_for_the_proxy_alone() -> None:
    async def run() -> None:
        async with serving(always(answer(b"x"))) as server:
            proxy = Proxy(server.port)
            async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listener:
                port = listener.sockets[0].getsockname()[1]
                transport = PinnedTransport(PUBLIC, proxy=f"http://user:secret@127.0.0.1:{port}")
                async with transport.send("GET", f"http://public.example:{server.port}/", {}, b"") as got:
                    assert got.status == 200
                await transport.aclose()
            assert "proxy-authorization" in proxy.seen[0].headers
            assert "proxy-authorization" not in server.requests[0].headers

    asyncio.run(run())


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> Proxy:
        async with proxied() as (proxy, url):
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            transport = PinnedTransport(PUBLIC)
            async with transport.send("GET", url, {}, b"") as got:
                assert got.status == 200
            await transport.aclose()
            return proxy

    assert asyncio.run(run()).seen[0].target.startswith(f"{PUBLIC}:")
