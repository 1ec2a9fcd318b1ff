"""TLS: one context, and with it one certificate store, for the whole process."""

from __future__ import annotations

import os
import re
import ssl
import sys
import threading
from typing import TYPE_CHECKING

from dragoman.values.errors import ConfigError
from dragoman.words import say

if TYPE_CHECKING:
    import asyncio

BUNDLES = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where systems keep their certificates. A Python built on another system may look in the wrong place."""

_tls: ssl.SSLContext | None = None
_tls_http2: ssl.SSLContext | None = None
_tls_lock = threading.Lock()


def tls_context() -> ssl.SSLContext:
    """The TLS context of the process. Building it reads the certificate store, so it is built once, on the first https URL.

    SSL_CERT_FILE and SSL_CERT_DIR replace the system's store.
    """
    global _tls
    with _tls_lock:
        if _tls is None:
            _tls = new_tls_context()
        return _tls


def tls_context_http2() -> ssl.SSLContext:
    """The same for a client that also speaks HTTP/2. The protocols offered (ALPN) belong to the context, so this is a second one."""
    global _tls_http2
    with _tls_lock:
        if _tls_http2 is None:
            _tls_http2 = _new_http2_context()
        return _tls_http2


def load_tls_context(own: ssl.SSLContext | None, loop: asyncio.AbstractEventLoop, *, http2: bool = False) -> asyncio.Future[ssl.SSLContext]:
    """The context to use: the caller's, or the process's. It is loaded in a thread, while names are resolved and TCP connects."""
    if context := own or (_tls_http2 if http2 else _tls):
        ready: asyncio.Future[ssl.SSLContext] = loop.create_future()
        ready.set_result(context)
        return ready
    reading = loop.run_in_executor(None, tls_context_http2 if http2 else tls_context)
    reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # the caller may have stopped waiting
    return reading


def _new_http2_context() -> ssl.SSLContext:
    context = new_tls_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    # Python makes OpenSSL treat a cut connection as one closed by the server. asyncio can still tell them apart, anyio cannot.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    return context


def new_tls_context() -> ssl.SSLContext:
    file, folder = os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None
    try:
        if file or folder:
            context = ssl.create_default_context(cafile=file, capath=folder)
        else:
            context = _system_context()
        context.set_alpn_protocols(["http/1.1"])
    except OSError as error:  # ssl.SSLError is one
        named = say("http.or").join(name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name))
        reason = reason_of(error)
        if named:
            raise ConfigError(say("http.certificates_named_unreadable", names=named, reason=reason)) from error
        raise ConfigError(say("http.certificates_unreadable", reason=reason)) from error
    return context


def _system_context() -> ssl.SSLContext:
    if sys.platform in {"darwin", "win32"}:
        try:
            import truststore
        except ImportError:
            pass
        else:
            # OpenSSL cannot use the macOS keychain or certificates that Windows fetches on demand; truststore asks the system.
            return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()
    if sys.platform == "win32" or paths.cafile or _has_certificates(paths.capath):
        return ssl.create_default_context()
    file = next(filter(os.path.isfile, BUNDLES), None) or _certifi()
    if file is None:
        raise ConfigError(say("http.no_certificates"))
    return ssl.create_default_context(cafile=file)


def _has_certificates(folder: str | None) -> bool:
    return folder is not None and any(re.fullmatch(r"[0-9a-fA-F]{8}\.\d", name) for name in os.listdir(folder))


def _certifi() -> str | None:
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()


def reason_of(error: BaseException) -> str:
    """The system's reason for an error, in one line."""
    if named := getattr(error, "reason", None):  # OpenSSL's: WRONG_VERSION_NUMBER
        return str(named).replace("_", " ").lower()
    text = " ".join((getattr(error, "strerror", None) or str(error)).split())
    return text[:200] or type(error).__name__
