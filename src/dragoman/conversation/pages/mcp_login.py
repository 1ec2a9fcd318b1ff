"""`dragoman mcp login` and `logout`: opens the browser, and prints what the user has to know."""

from __future__ import annotations

import asyncio
import os
import sys

from dragoman.app.mcp_sign_in import store_of
from dragoman.app.setup import Setup
from dragoman.app.surface import surface
from dragoman.base.places import shorten_home
from dragoman.base.text import one_line
from dragoman.mcp_client.configured import ConfiguredServer
from dragoman.mcp_client.contracts import HttpServer
from dragoman.mcp_client.oauth.login import SignedIn, SignedOut, login, logout, open_browser
from dragoman.mcp_client.oauth.loopback import Browser
from dragoman.values.errors import InputError
from dragoman.words import say


async def sign_in(setup: Setup, server: ConfiguredServer) -> SignedIn:
    """Ctrl-C ends the waiting. Raises InputError if the server is a program: those take what they need from their environment."""
    browser = Browser(_tell, open_browser, _Lines().next if surface().can_ask and sys.stdin is not None else None)
    return await login(_http(server), store_of(setup), browser)


async def sign_out(setup: Setup, server: ConfiguredServer) -> SignedOut | None:
    return await logout(_http(server), store_of(setup))


def signed_in_lines(setup: Setup, server: ConfiguredServer, signed: SignedIn) -> list[str]:
    scopes = say("mcp_auth.with_scopes", scopes=one_line(" ".join(signed.scopes), 200)) if signed.scopes else ""
    path = shorten_home(setup.places.mcp_tokens_file)
    return [
        say("mcp_auth.signed_in", name=server.name, issuer=one_line(signed.issuer, 200), scopes=scopes),
        say("mcp_auth.in_keyring", path=path) if signed.stored_in == "keyring" else say("mcp_auth.in_file", path=path),
    ]


def signed_out_line(server: ConfiguredServer, out: SignedOut | None) -> str:
    if out is None:
        return say("mcp_auth.not_signed_in", name=server.name)
    key = "mcp_auth.signed_out" if out.is_revoked else "mcp_auth.signed_out_here"
    return say(key, name=server.name, issuer=one_line(out.issuer, 200))


def _http(server: ConfiguredServer) -> HttpServer:
    if not isinstance(server.server, HttpServer):
        raise InputError(say("mcp_auth.is_a_program", name=server.name))
    return server.server


def _tell(line: str) -> None:
    # Beside the text: that is the result, which may be JSON.
    surface().messages.as_it_is(line)


class _Lines:
    """Lines of standard input, read while the browser is waited for; empty at its end, or where it cannot be waited for."""

    def __init__(self) -> None:
        self._read = b""

    async def next(self) -> str:
        while b"\n" not in self._read and await self._read_more():
            pass
        line, end, self._read = self._read.partition(b"\n")
        return (line + end).decode("utf-8", "replace")

    async def _read_more(self) -> bool:
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        arrived: asyncio.Future[bytes] = loop.create_future()

        def take() -> None:
            if not arrived.done():
                arrived.set_result(os.read(descriptor, 65_536))

        try:
            loop.add_reader(descriptor, take)
        except (OSError, NotImplementedError, ValueError):
            return False
        try:
            piece = await arrived
        finally:
            loop.remove_reader(descriptor)
        self._read += piece
        return bool(piece)
