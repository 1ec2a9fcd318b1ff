"""`dragoman view`: listens, prints the address, opens the browser of this machine where there is one, and serves until Ctrl-C.

The address is printed before what serves it is loaded.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

from dragoman.app.options import Options
from dragoman.app.printing import print_out
from dragoman.app.setup import Setup, set_up
from dragoman.base.text import one_line
from dragoman.http.serving import url_of
from dragoman.values.errors import InputError
from dragoman.viewer.access import PASSWORD_CHARS, Access, check_origin
from dragoman.words import say

if TYPE_CHECKING:
    import ssl

LOOPBACK = "127.0.0.1"
_PASSWORD = "DRAGOMAN_VIEW_PASSWORD"
_EVERYWHERE = ("0.0.0.0", "::")
_LOOPBACKS = ("127.0.0.1", "::1", "localhost")


def run_view(options: Options) -> int:
    """Returns when Ctrl-C ends it. Raises InputError."""
    if len(options.words) > 1:
        raise InputError(say("too_many_words", command=options.command, word=one_line(options.words[1], 60)))
    setup = set_up(options)
    target = _target(setup)
    elsewhere = options.host not in ("", *_LOOPBACKS)
    if options.host in _EVERYWHERE and not options.origin:
        raise InputError(say("viewer.needs_origin", host=options.host))
    password, tls = _require_protection(options, setup) if elsewhere else ("", None)
    tunnel = [check_origin(options.origin)] if options.origin else []
    bound = _listen(options.host or LOOPBACK, options.port or 0)
    own = url_of(bound, "https" if tls is not None else "http")
    origins = [own, *_names_of(own), *tunnel]
    access = Access(origins, password)
    public = origins[-1] if options.origin else own

    def address() -> str:
        return f"{public}/#{target}" if access.wants_password else f"{public}/#{target}?token={access.new_token()}"

    first = address()
    lines = [say("viewer.open_this", url=first), say("viewer.talks" if options.talk else "viewer.reads")]
    if options.origin:
        lines.append(say("viewer.tunnel", url=own))
    print_out("\n".join([*lines, say("viewer.ends"), ""]))
    if not (options.no_open or options.origin or elsewhere):  # the address works once: it is for the other end of the tunnel
        _open_browser(first)
    from dragoman.viewer.server import serve

    serve(setup, access, bound, tls, address=address, checks_users=not (elsewhere or options.origin))
    return 0


def _target(setup: Setup) -> str:
    """Where the page begins: the list, or the session that was named."""
    if not setup.options.words:
        return "/"
    from dragoman.sessions.store import FileStore

    found = FileStore(setup.places.sessions).find(setup.options.words[0], setup.workspace)
    return f"/s/{found.session_id}"


def _names_of(url: str) -> list[str]:
    """The same server by its other names on this machine."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rpartition(":")
    return [f"{scheme}://localhost:{port}"] if host in ("127.0.0.1", "[::1]") else []


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # also with a port of the system's: whoever asks for it again soon gets it
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(128)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise InputError(say("viewer.not_listening", host=one_line(host, 80), port=port, reason=error.strerror or error)) from error
    return bound


def _require_protection(options: Options, setup: Setup) -> tuple[str, ssl.SSLContext]:
    """What must be there before anybody else can reach the page: a password and TLS, and a name by which it is reached."""
    password = setup.env.get(_PASSWORD, "")
    if not (options.tls_cert and options.tls_key) or len(password) < PASSWORD_CHARS:
        raise InputError(say("viewer.needs_protection", host=one_line(options.host, 80), variable=_PASSWORD, chars=PASSWORD_CHARS))
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(say("viewer.bad_certificate", file=one_line(options.tls_cert, 200), reason=error.strerror or error)) from error
    return password, context


def _open_browser(url: str) -> None:
    """Where there is a screen, and in the background: a browser that hangs holds nothing up."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
