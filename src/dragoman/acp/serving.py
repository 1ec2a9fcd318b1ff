"""Serves one client from its first line to its last."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Any

from dragoman.acp.greeting import MAX_LINE_BYTES, Greeting
from dragoman.acp.methods import Methods
from dragoman.acp.rpc import ClientPeer
from dragoman.acp.stdio import Reader, Writer
from dragoman.app.opening import run_loop
from dragoman.app.options import Options
from dragoman.base import jsontext

CLOSING_S = 0.35
"""How long sessions may take to end once the client is gone. What they have done is on disk before anyone is told, and what they have
started ends with us."""


def serve_client(options: Options, greeting: Greeting) -> int:
    """Until the client leaves."""
    return run_loop(lambda: _serve(options, greeting))


async def _serve(options: Options, greeting: Greeting) -> int:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        with suppress(AttributeError, NotImplementedError, ValueError, RuntimeError):  # as on Windows
            loop.add_signal_handler(getattr(signal, name), over.set)
    writer = Writer(greeting.writing, over.set)
    methods = Methods(options, writer, _params_of(greeting.hello))
    peer = ClientPeer(writer.write, methods.request, methods.notification)
    methods.peer = peer
    Reader(greeting.reading, greeting.rest, peer.take, over.set, MAX_LINE_BYTES).start()
    await over.wait()
    await asyncio.wait([asyncio.ensure_future(methods.close())], timeout=CLOSING_S)
    await peer.aclose()
    writer.flush()
    return 0


def _params_of(hello: bytes) -> Any:
    try:
        return jsontext.decode(hello)["params"] if hello else None
    except (jsontext.NotJSON, KeyError, TypeError):
        return None
