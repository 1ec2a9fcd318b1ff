"""Hosts that are none: names with public addresses, behind which a server on this machine stands. For what reaches out by itself."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext

import pytest

from dragoman.loop import gating

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Internet:
    """`addresses` of hosts, and where each address and port leads on this machine."""

    def __init__(self) -> None:
        self.addresses: dict[str, Sequence[str]] = {}
        self.places: dict[tuple[str, int], int] = {}
        self.looked_up: list[str] = []
        self.dialled: list[tuple[str, int]] = []

    def add(self, host: str, server_port: int, *, port: int = 80) -> None:
        address = self.addresses.setdefault(host, [f"93.184.216.{len(self.addresses) + 1}"])[0]
        self.places[address, port] = server_port

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if host not in self.addresses:
            raise OSError("unknown")
        return self.addresses[host]

    async def dial(self, address: str, port: int, limit: int) -> Streams:
        self.dialled.append((address, port))
        if (address, port) not in self.places:
            raise ConnectionRefusedError(111, "Connection refused")
        return await asyncio.open_connection("127.0.0.1", self.places[address, port], limit=limit)


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    net = Internet()
    monkeypatch.setattr(gating, "system_resolve", net.resolve)
    monkeypatch.setattr(gating, "dial", net.dial)
    return net


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        """Says what it got."""
        got = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(got)))
        self.end_headers()
        self.wfile.write(got)


@contextmanager
def serving_files(folder: Path, tls: SSLContext | None = None) -> Iterator[int]:
    """A server of files, in threads; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
