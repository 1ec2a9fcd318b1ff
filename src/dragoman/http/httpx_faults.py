"""Why httpcore2 had no answer, in the sentences of faults.py."""

from __future__ import annotations

import errno
import re
import ssl

import h2.exceptions
import httpcore2
import socksio

from dragoman.http import connection
from dragoman.http import faults as connection_faults
from dragoman.http.connection import HungUp, ProxyRefused
from dragoman.http.framing import NotHTTP
from dragoman.http.httpx_exchange import Exchange
from dragoman.http.route import Route
from dragoman.values.errors import ConnectionFailed

FAULTS = (
    *connection.FAULTS,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    h2.exceptions.H2Error,  # which httpcore2 lets through while a body is read
    socksio.SOCKSError,
    AssertionError,  # so httpcore2 meets a SOCKS proxy that says something else than it should
)
"""What asking and reading may raise."""


def not_answered(error: Exception, exchange: Exchange, route: Route, connect_timeout_s: float) -> ConnectionFailed:
    """No answer's head came."""
    if isinstance(error, httpcore2.ProxyError) and route.by_socks:
        return _socks_refused(str(error), route)
    if route.by_socks and exchange.has_dialled and not exchange.sent and not _is_of_the_network(error):
        return ConnectionFailed(f"the proxy {route.proxy_host} did not answer in SOCKS 5; check your proxy settings")
    return connection_faults.not_answered(_translated(error, exchange), route, connect_timeout_s)


def not_completed(error: Exception, exchange: Exchange, route: Route, received: int) -> ConnectionFailed:
    """The head came, and `received` bytes of the body, and then a fault."""
    is_cut = exchange.by_http2 or exchange.is_cut
    is_garbled = isinstance(error, h2.exceptions.ProtocolError) or (isinstance(error, httpcore2.RemoteProtocolError) and not is_cut)
    return connection_faults.not_completed(NotHTTP() if is_garbled else EOFError(), route, received)


def _translated(error: Exception, exchange: Exchange) -> Exception:
    """The same fault as our own client would have met it."""
    match error:
        case TimeoutError() | httpcore2.TimeoutException():
            return TimeoutError()
        case httpcore2.ProtocolError():
            return HungUp() if exchange.by_http2 or exchange.is_cut else NotHTTP()
        case ProxyRefused() | NotHTTP():
            return error
        case _:
            return _system_fault(error) or (HungUp() if exchange.sent else ConnectionResetError())


def _system_fault(error: BaseException | None) -> Exception | None:
    """What the operating system or TLS said, beneath what httpcore2 and anyio made of it."""
    while error is not None:
        if isinstance(error, ssl.SSLError | UnicodeError) or (isinstance(error, OSError) and error.errno is not None):
            return error
        if isinstance(error, BaseExceptionGroup):  # a name with several addresses
            faults = [each for each in error.exceptions if isinstance(each, OSError)]
            return next((each for each in faults if each.errno == errno.ECONNREFUSED), faults[-1] if faults else None)
        inner = error.args[0] if error.args else None
        # httpcore2 drops the cause when it raises again, and keeps it as an argument.
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return None


def _is_of_the_network(error: Exception) -> bool:
    return isinstance(error, OSError | httpcore2.NetworkError | httpcore2.TimeoutException)


def _socks_refused(said: str, route: Route) -> ConnectionFailed:
    if reached := re.fullmatch(r"Proxy Server could not connect: (.*?)\.?", said):
        return ConnectionFailed(
            f"the proxy {route.proxy_host} would not connect to {route.host}: {reached[1].lower()}; check your proxy settings"
        )
    if route.proxy_credentials is None:
        why = "it does not let everybody in); it wants a user and password: socks5://user:password@host:port"
    elif said == "Invalid username/password":
        why = "wrong user or password); they belong into its address: socks5://user:password@host:port"
    else:
        why = "it takes no user and password); leave them out of its address"
    return ConnectionFailed(f"the proxy {route.proxy_host} refused us ({why}", retryable=False)
