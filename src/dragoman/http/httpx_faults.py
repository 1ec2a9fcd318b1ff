"""Errors of httpcore2 as the messages of faults.py."""

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
from dragoman.http.httpx_exchange import HttpxExchange
from dragoman.http.route import Route
from dragoman.values.errors import ConnectionFailed
from dragoman.words import say

FAULTS = (
    *connection.FAULTS,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    h2.exceptions.H2Error,  # httpcore2 lets these through while a body is read
    socksio.SOCKSError,
    AssertionError,  # what httpcore2 raises if a SOCKS proxy violates the protocol
)
"""What sending a request and reading its answer may raise."""


def error_before_head(error: Exception, exchange: HttpxExchange, route: Route, connect_timeout_s: float) -> ConnectionFailed:
    """The error for a request that got no answer head."""
    if isinstance(error, httpcore2.ProxyError) and route.is_socks:
        return _socks_refused(str(error), route)
    if route.is_socks and exchange.has_dialled and not exchange.sent and not _is_network_fault(error):
        return ConnectionFailed(say("http.proxy_not_socks", proxy=route.proxy_host))
    return connection_faults.error_before_head(_translate(error, exchange), route, connect_timeout_s)


def error_in_body(error: Exception, exchange: HttpxExchange, route: Route, received: int) -> ConnectionFailed:
    """The error for an answer that failed after its head and `received` bytes of the body."""
    is_cut = exchange.is_http2 or exchange.is_cut
    is_garbled = isinstance(error, h2.exceptions.ProtocolError) or (isinstance(error, httpcore2.RemoteProtocolError) and not is_cut)
    return connection_faults.error_in_body(NotHTTP() if is_garbled else EOFError(), route, received)


def _translate(error: Exception, exchange: HttpxExchange) -> Exception:
    """The same error as our own client would have raised it."""
    match error:
        case TimeoutError() | httpcore2.TimeoutException():
            return TimeoutError()
        case httpcore2.ProtocolError():
            return HungUp() if exchange.is_http2 or exchange.is_cut else NotHTTP()
        case ProxyRefused() | NotHTTP():
            return error
        case _:
            return _system_fault(error) or (HungUp() if exchange.sent else ConnectionResetError())


def _system_fault(error: BaseException | None) -> Exception | None:
    """The error of the operating system or TLS, underneath those of httpcore2 and anyio."""
    while error is not None:
        if isinstance(error, ssl.SSLError | UnicodeError) or (isinstance(error, OSError) and error.errno is not None):
            return error
        if isinstance(error, BaseExceptionGroup):  # from a name with several addresses
            faults = [each for each in error.exceptions if isinstance(each, OSError)]
            return next((each for each in faults if each.errno == errno.ECONNREFUSED), faults[-1] if faults else None)
        inner = error.args[0] if error.args else None
        # httpcore2 drops the cause when it raises again, and keeps it as an argument.
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return None


def _is_network_fault(error: Exception) -> bool:
    return isinstance(error, OSError | httpcore2.NetworkError | httpcore2.TimeoutException)


def _socks_refused(said: str, route: Route) -> ConnectionFailed:
    if reached := re.fullmatch(r"Proxy Server could not connect: (.*?)\.?", said):
        return ConnectionFailed(say("http.proxy_cannot_connect", proxy=route.proxy_host, host=route.host, reason=reached[1].lower()))
    if route.proxy_credentials is None:
        message = say("http.proxy_login", proxy=route.proxy_host, reason=say("http.proxy_needs_login"), scheme="socks5")
    elif said == "Invalid username/password":
        message = say("http.proxy_wrong_login", proxy=route.proxy_host)
    else:
        message = say("http.proxy_no_login", proxy=route.proxy_host)
    return ConnectionFailed(message, retryable=False)
