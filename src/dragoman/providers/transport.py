"""HTTP over httpx2: pooled connections, one trust store, and faults told in a sentence a person can act on.

httpx2 and ssl are imported on the first send, and the certificate store is read on the first https URL: a program that talks
to a server on this machine never pays for it.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.contracts import Answer
from dragoman.errors import ConfigError, ConnectionFailed
from dragoman.providers.route import Route, route_to

if TYPE_CHECKING:
    import asyncio
    import ssl

    import httpx2

IDLE_S = 55.0
"""How long an idle connection is kept: tools run between two requests, and most servers wait a minute before they hang up."""
IDLE_CONNECTIONS = 20
ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""Content encodings that can be undone."""


class HttpTransport:
    """`contracts.Transport` over httpx2. It may be used from several event loops, one after the other or at once.

    proxy: None takes HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY from the environment (servers on this machine are always
    reached directly); a URL is used for everything; "" means none.
    There is no read timeout: only the layer above knows what counts as an event.
    """

    def __init__(self, *, proxy: str | None = None, connect_timeout_s: float = 10.0, tls: ssl.SSLContext | None = None) -> None:
        self._proxy = proxy
        self._connect_timeout_s = connect_timeout_s
        self._tls = tls
        self._routes: dict[str, Route] = {}
        self._clients: dict[asyncio.AbstractEventLoop, _Clients] = {}

    @asynccontextmanager
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[Answer, None]:
        import httpx2

        route = self._route(url)
        client = await self._client(route)  # held to the end: a client that nobody holds is closed
        try:
            request = client.httpx.build_request(method, url, headers=_encoded(headers), content=body or None)
            response = await client.httpx.send(request, stream=True)
        except httpx2.LocalProtocolError:
            # Its words quote the header, and a header may hold a key: nothing of it is told or chained.
            raise ConnectionFailed(f"the request to {route.host} is not valid HTTP and was not sent", retryable=False) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise connection_failed(error, route, self._connect_timeout_s) from error
        answer = _HttpAnswer(response, route)
        try:
            yield answer
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop. Those of a loop in another thread are closed there, by and by."""
        import asyncio

        clients = self._clients.pop(asyncio.get_running_loop(), {})
        self._clients.clear()
        for client in clients.values():
            await client.keeper.aclose()

    def _route(self, url: str) -> Route:
        scheme, _, rest = url.partition("://")
        origin = f"{scheme}://{rest.partition('/')[0].partition('?')[0].partition('#')[0]}"
        route = self._routes.get(origin)
        if route is None:
            route = self._routes[origin] = route_to(origin, self._proxy)
        return route

    async def _client(self, route: Route) -> _Client:
        import asyncio

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # A pool belongs to its loop. Those of loops that are gone hold nothing but memory.
            for gone in [other for other in list(self._clients) if other.is_closed()]:
                self._clients.pop(gone, None)
        clients = self._clients.setdefault(loop, {})
        client = clients.get(route.key)
        if client is None:
            client = clients[route.key] = _Client(self._new_client(route))
            await anext(client.keeper)
        return client

    def _new_client(self, route: Route) -> httpx2.AsyncClient:
        import ssl
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx2

        # The empty context trusts nobody: an http client that met TLS after all would refuse.
        context = (self._tls or tls_context()) if route.tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return httpx2.AsyncClient(
                verify=context,
                proxy=self._new_proxy(route.proxy) if route.proxy else None,
                trust_env=False,  # the environment has been asked already, in route_to
                timeout=httpx2.Timeout(None, connect=self._connect_timeout_s),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_S),
                cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=())),
                # identity: events are small and arrive one by one, so compression saves little, costs a flush per event
                # and lets servers and proxies sit on them until a block is full. What is sent compressed is still undone.
                headers={"Accept-Encoding": "identity", "User-Agent": f"Dragoman/{__version__}"},
            )
        except ImportError as error:
            raise ConfigError("SOCKS proxies need one more package: pip install 'httpx2[socks]'") from error

    def _new_proxy(self, url: str) -> httpx2.Proxy:
        import httpx2

        return httpx2.Proxy(url, ssl_context=(self._tls or tls_context()) if url.startswith("https:") else None)


class _Client:
    """An httpx2 client and its keeper."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.httpx = client
        self.keeper = _keep(client)


_Clients = dict[tuple[bool, str], _Client]


async def _keep(client: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
    """Close the client when asked to, and also when its loop ends or nobody holds it any more.

    Event loops finish their asynchronous generators before they close: so a program that calls asyncio.run several times leaves
    no socket open, though it may never have called aclose.
    """
    try:
        yield
    finally:
        await client.aclose()


class _HttpAnswer:
    def __init__(self, response: httpx2.Response, route: Route) -> None:
        self._response = response
        self._route = route
        self._body: AsyncGenerator[bytes, None] | None = None

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return dict(self._response.headers)

    def chunks(self) -> AsyncGenerator[bytes, None]:
        self._body = self._read()
        return self._body

    async def _read(self) -> AsyncGenerator[bytes, None]:
        import httpx2

        encoding = self._response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ENCODINGS:
            raise ConnectionFailed(f"{self._route.host} sent a body in the encoding {encoding!r}, which was not asked for", retryable=False)
        received = 0
        try:
            async with aclosing(self._response.aiter_bytes()) as body:
                async for chunk in body:
                    received += len(chunk)
                    if chunk:
                        yield chunk
        except (httpx2.HTTPError, OSError) as error:
            raise connection_failed(error, self._route, received=received) from error

    async def aclose(self) -> None:
        import httpx2

        try:
            if self._body is not None:
                await self._body.aclose()
            await self._response.aclose()
        except (httpx2.HTTPError, OSError):
            pass  # it is closed all the same


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Header values travel as Latin-1; httpx2 would take ASCII alone."""
    encoded = []
    for name, value in headers.items():
        try:
            encoded.append((name.encode("ascii"), value.encode("latin-1")))
        except UnicodeEncodeError:
            raise ConfigError(f"the header {name!r} holds a character that cannot travel in a header") from None
    return encoded


# --- trust: one certificate store for the whole process --------------------------------------------------------------------

_tls: ssl.SSLContext | None = None
_tls_lock = threading.Lock()


def tls_context() -> ssl.SSLContext:
    """The process's one TLS context. Building it reads the certificate store, so it is built on the first https URL, and once.

    SSL_CERT_FILE and SSL_CERT_DIR replace the system's store.
    """
    global _tls
    with _tls_lock:
        if _tls is None:
            _tls = _new_tls_context()
        return _tls


def _new_tls_context() -> ssl.SSLContext:
    import os

    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one
        named = " or ".join(name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name))
        raise ConfigError(f"cannot read the certificates{f' that {named} names' if named else ''}: {_reason(error)}") from error


# --- faults, for a person ----------------------------------------------------------------------------------------------------


def connection_failed(error: Exception, route: Route, connect_timeout_s: float = 0, received: int | None = None) -> ConnectionFailed:
    """What happened and what to do next. `received`: the bytes of the body that came before the fault, None before the answer's head."""
    import ssl

    import httpx2

    root = _root(error)
    if isinstance(error, httpx2.ProxyError):
        return _proxy_failed(error, route)
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return ConnectionFailed(f"{route.host}: the address cannot be used; check the base URL", retryable=False)
    if isinstance(error, httpx2.DecodingError):
        return ConnectionFailed(f"{route.host} sent a body that is not compressed as it says; a proxy in between may have damaged it")
    if isinstance(root, ssl.SSLCertVerificationError):
        return ConnectionFailed(_distrust(root, route), retryable=False)
    if received is not None:
        return ConnectionFailed(f"{route.whole_way} cut its answer short after {received:,} bytes; try again")
    if isinstance(root, ssl.SSLError):
        return ConnectionFailed(
            f"no TLS connection to {route.whole_way}: {_reason(root)}; if it is a plain http server, write http:// for it"
        )
    if isinstance(error, httpx2.ConnectTimeout):
        return ConnectionFailed(
            f"cannot reach {route.first_hop}: no connection within {connect_timeout_s:g} s; check the address and your network"
        )
    if isinstance(error, httpx2.RemoteProtocolError):
        return ConnectionFailed(_no_http(error, route))
    return ConnectionFailed(_unreachable(root, route))


def _unreachable(root: BaseException, route: Route) -> str:
    import errno
    import socket

    if isinstance(root, socket.gaierror | UnicodeError):
        return f"cannot find {route.first_hop}: the name does not resolve; check the spelling, and whether you are online"
    if isinstance(root, ConnectionRefusedError):
        return f"cannot reach {route.first_hop}: connection refused; is the server running?"
    if isinstance(root, ConnectionError):
        return f"{route.whole_way} broke the connection; try again"
    if isinstance(root, OSError) and root.errno in {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}:
        return f"cannot reach {route.first_hop}: no way there; are you online?"
    return f"cannot reach {route.whole_way}: {_reason(root)}; check the address and your network"


def _no_http(error: Exception, route: Route) -> str:
    if "disconnected" in str(error):
        return f"{route.whole_way} closed the connection without answering; try again"
    return f"{route.whole_way} did not answer in HTTP; check that the address and port are those of the API"


def _distrust(error: ssl.SSLCertVerificationError, route: Route) -> str:
    reason = error.verify_message or _reason(error)
    match error.verify_code:
        case 62 | 64:  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return f"the certificate is not one for {route.whole_way}; check the address, or a proxy that stands in between"
        case 9 | 10:  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
            return f"the certificate of {route.whole_way} is out of date ({reason}); check this machine's clock"
        case _:
            return (
                f"certificate not trusted: {route.whole_way} ({reason}); "
                "if your network has its own certificate authority, set SSL_CERT_FILE to a file that holds its certificate"
            )


def _proxy_failed(error: Exception, route: Route) -> ConnectionFailed:
    if str(error).startswith("407"):
        wish = "it wants a user and password: http://user:password@host:port"
        return ConnectionFailed(f"the proxy {route.proxy_host} refused us ({_reason(error)}); {wish}", retryable=False)
    return ConnectionFailed(f"the proxy {route.proxy_host} would not connect to {route.host}: {_reason(error)}; check your proxy settings")


def _root(error: BaseException) -> BaseException:
    """The operating system's own fault beneath the library's, or the error itself."""
    import socket
    import ssl

    faults = [cause for cause in _causes(error) if isinstance(cause, ssl.SSLError | socket.gaierror | OSError)]
    # "All connection attempts failed" has no errno, and what it sums up has one.
    return next((fault for fault in faults if fault.errno is not None), faults[0] if faults else error)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    waiting, seen = [error], set()
    while waiting:
        error = waiting.pop(0)
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        # httpcore2 raises `from None`, which clears the cause and leaves the context.
        waiting += [error.__cause__, error.__context__]
        waiting += error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _reason(error: BaseException) -> str:
    if named := getattr(error, "reason", None):  # OpenSSL's: WRONG_VERSION_NUMBER
        return str(named).replace("_", " ").lower()
    text = " ".join((getattr(error, "strerror", None) or str(error)).split())
    return text[:200] or type(error).__name__
