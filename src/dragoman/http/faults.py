"""Why there is no answer, in a sentence a person can act on."""

from __future__ import annotations

import errno
import socket
import ssl
import zlib

from dragoman.http.connection import HungUp, ProxyRefused
from dragoman.http.framing import NotHTTP
from dragoman.http.route import Route
from dragoman.http.tls import reason_of
from dragoman.values.errors import ConnectionFailed


def not_answered(error: Exception, route: Route, connect_timeout_s: float) -> ConnectionFailed:
    """No answer's head came."""
    match error:
        case ProxyRefused():
            return _proxy_refused(error, route)
        case ssl.SSLCertVerificationError():
            return ConnectionFailed(_distrust(error, route), retryable=False)
        case ssl.SSLError():
            return ConnectionFailed(
                f"no TLS connection to {route.whole_way}: {reason_of(error)}; if it is a plain http server, write http:// for it"
            )
        case TimeoutError(errno=None):
            return ConnectionFailed(
                f"cannot reach {route.first_hop}: no connection within {connect_timeout_s:g} s; check the address and your network"
            )
        case HungUp():
            return ConnectionFailed(f"{route.whole_way} closed the connection without answering; try again")
        case NotHTTP():
            return ConnectionFailed(f"{route.whole_way} did not answer in HTTP; check that the address and port are those of the API")
        case _:
            return ConnectionFailed(_unreachable(error, route))


def not_completed(error: Exception, route: Route, received: int) -> ConnectionFailed:
    """The head came, and `received` bytes of the body, and then a fault."""
    match error:
        case zlib.error():
            return ConnectionFailed(f"{route.host} sent a body that is not compressed as it says; a proxy in between may have damaged it")
        case NotHTTP():
            return ConnectionFailed(f"{route.whole_way} sent an answer that is garbled after {received:,} bytes; try again")
        case _:
            return ConnectionFailed(f"{route.whole_way} cut its answer short after {received:,} bytes; try again")


def _unreachable(error: Exception, route: Route) -> str:
    match error:
        case socket.gaierror() | UnicodeError():
            return f"cannot find {route.first_hop}: the name does not resolve; check the spelling, and whether you are online"
        case ConnectionRefusedError():
            return f"cannot reach {route.first_hop}: connection refused; is the server running?"
        case ConnectionError():
            return f"{route.whole_way} broke the connection; try again"
        case OSError(errno=errno.ENETUNREACH | errno.EHOSTUNREACH | errno.ENETDOWN):
            return f"cannot reach {route.first_hop}: no way there; are you online?"
        case _:
            return f"cannot reach {route.whole_way}: {reason_of(error)}; check the address and your network"


def _distrust(error: ssl.SSLCertVerificationError, route: Route) -> str:
    reason = error.verify_message or reason_of(error)
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


def _proxy_refused(error: ProxyRefused, route: Route) -> ConnectionFailed:
    if error.status == 407:
        wish = "it wants a user and password: http://user:password@host:port"
        return ConnectionFailed(f"the proxy {route.proxy_host} refused us ({reason_of(error)}); {wish}", retryable=False)
    return ConnectionFailed(
        f"the proxy {route.proxy_host} would not connect to {route.host}: {reason_of(error)}; check your proxy settings"
    )
