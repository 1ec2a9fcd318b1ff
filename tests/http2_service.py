"""An HTTP/2 server that is not ours: hypercorn, over TLS, in a thread of its own. Its application is an ordinary function of a test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Http2Service:
    """Notes what it was asked, and by which version of HTTP."""

    def __init__(self, idle_s: float = 60) -> None:
        self.url = ""
        self.idle_s = idle_s
        """How long a connection may be idle: none is closed only because the machine is busy."""
        self.versions: list[str] = []
        self.clients: set[Any] = set()
        """The other ends of the connections over which requests came."""
        self.left = threading.Event()
        """Set when a client has left a request."""

    @contextmanager
    def running(self, certificate: Path, alpn: list[str] | None = None, port: int = 0) -> Iterator[Http2Service]:
        listener = socket.create_server(("127.0.0.1", port))
        config = Config()
        self.url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        config.bind = [f"fd://{listener.detach()}"]  # which it closes
        config.certfile = config.keyfile = str(certificate)
        config.alpn_protocols = alpn or ["h2", "http/1.1"]
        config.errorlog = config.accesslog = None
        config.keep_alive_timeout = self.idle_s
        config.graceful_timeout = 0.1
        stop: Future[Callable[[], None]] = Future()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(config, stop)))
        thread.start()
        try:
            yield self
        finally:
            stop.result(60)()
            thread.join(60)

    async def _serve(self, config: Config, stop: Future[Callable[[], None]]) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        stop.set_result(lambda: loop.call_soon_threadsafe(ended.set))
        await serve(self._app, config, shutdown_trigger=ended.wait)  # type: ignore[arg-type]

    async def _app(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.versions.append(scope["http_version"])
        self.clients.add(tuple(scope["client"]))
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        answering = asyncio.ensure_future(self.answer(scope, body, send))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            leaving.cancel()
            answering.result()
        else:
            self.left.set()
            answering.cancel()

    async def answer(self, scope: Any, body: bytes, send: Send) -> None:
        """The question itself, unless a test says otherwise."""
        await begin(send)
        await send({"type": "http.response.body", "body": body})


async def begin(send: Send, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers or []})
