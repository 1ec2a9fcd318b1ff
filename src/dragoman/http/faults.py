"""Connection errors as messages a person can act on."""

from __future__ import annotations

import errno
import socket
import ssl
import zlib

from dragoman.http.connection import HungUp, ProxyRefused
from dragoman.http.framing import NotHTTP
from dragoman.http.route import Route, is_loopback
from dragoman.http.tls import reason_of
from dragoman.values.errors import ConnectionFailed
from dragoman.words import say


def error_before_head(error: Exception, route: Route, connect_timeout_s: float) -> ConnectionFailed:
    """The error for a request that got no answer head."""
    made = _before_head(error, route, connect_timeout_s)
    was_sent = isinstance(error, HungUp | NotHTTP | ConnectionError) and not isinstance(error, ConnectionRefusedError)
    made.may_have_cost = was_sent
    return made


def _before_head(error: Exception, route: Route, connect_timeout_s: float) -> ConnectionFailed:
    match error:
        case ProxyRefused():
            return _proxy_refused(error, route)
        case ssl.SSLCertVerificationError():
            return ConnectionFailed(_distrust(error, route), retryable=False)
        case ssl.SSLError():
            return ConnectionFailed(say("http.no_tls", where=route.full_route, reason=reason_of(error)))
        case TimeoutError(errno=None):
            return ConnectionFailed(say("http.connect_timeout", where=route.first_hop, seconds=connect_timeout_s))
        case HungUp():
            return ConnectionFailed(say("http.hung_up", where=route.full_route))
        case NotHTTP():
            return ConnectionFailed(say("http.not_http", where=route.full_route))
        case ConnectionRefusedError() if is_loopback(route.hop.name):
            # Nobody listens there, and nothing on the way could be at fault: it is for the user to start the server.
            return ConnectionFailed(say("http.refused", where=route.first_hop), retryable=False)
        case _:
            return ConnectionFailed(_unreachable(error, route))


def error_in_body(error: Exception, route: Route, received: int) -> ConnectionFailed:
    """The error for an answer that failed after its head and `received` bytes of the body."""
    match error:
        case zlib.error():
            return ConnectionFailed(say("http.wrong_compression", host=route.host))
        case NotHTTP():
            return ConnectionFailed(say("http.garbled", where=route.full_route, bytes=received))
        case _:
            return ConnectionFailed(say("http.cut_short", where=route.full_route, bytes=received))


def _unreachable(error: Exception, route: Route) -> str:
    match error:
        case socket.gaierror() | UnicodeError():
            return say("http.unknown_host", where=route.first_hop)
        case ConnectionRefusedError():
            return say("http.refused", where=route.first_hop)
        case ConnectionError():
            return say("http.broken", where=route.full_route)
        case OSError(errno=errno.ENETUNREACH | errno.EHOSTUNREACH | errno.ENETDOWN):
            return say("http.no_route", where=route.first_hop)
        case _:
            return say("http.unreachable", where=route.full_route, reason=reason_of(error))


def _distrust(error: ssl.SSLCertVerificationError, route: Route) -> str:
    reason = error.verify_message or reason_of(error)
    match error.verify_code:
        case 62 | 64:  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return say("http.certificate_other_host", where=route.full_route)
        case 9 | 10:  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
            return say("http.certificate_dates", where=route.full_route, reason=reason)
        case _:
            return say("http.certificate_untrusted", where=route.full_route, reason=reason)


def _proxy_refused(error: ProxyRefused, route: Route) -> ConnectionFailed:
    if error.status == 407:
        message = say("http.proxy_login", proxy=route.proxy_host, reason=reason_of(error), scheme="http")
        return ConnectionFailed(message, retryable=False)
    return ConnectionFailed(say("http.proxy_cannot_connect", proxy=route.proxy_host, host=route.host, reason=reason_of(error)))
