"""A bare loopback server in a process of its own: it notes when a request's first byte comes and answers with a recorded stream.

A request that holds the word LONG gets the long stream, every other the short one. `listener.py SHORT LONG GAP_MS`
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

LONG = "LONG"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Listener:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = self._line()

    def first_byte_s(self) -> float:
        """When the next request's first byte came, on the monotonic clock."""
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def listening(short: bytes, long: bytes = b"", gap_ms: float = 0.0) -> Iterator[Listener]:
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("short", "long")]
        for path, recording in zip(paths, (short, long), strict=True):
            path.write_bytes(recording)
        argv = [sys.executable, "-I", __file__, *map(str, paths), str(gap_ms)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Listener(process)
            finally:
                process.terminate()


# --- the process ---------------------------------------------------------------------------------------------------------


def main(short: str, long: str, gap_ms: str) -> None:
    streams = [_events(Path(path).read_bytes()) for path in (short, long)]
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        print(f"http://127.0.0.1:{server.getsockname()[1]}", flush=True)
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve, args=(connection, streams, float(gap_ms) / 1000), daemon=True).start()


def _events(recording: bytes) -> list[bytes]:
    """Every event as an HTTP chunk of its own."""
    events = [event + b"\n\n" for event in recording.split(b"\n\n")[:-1]]
    return [b"%x\r\n%b\r\n" % (len(event), event) for event in events]


def _serve(connection: socket.socket, streams: list[list[bytes]], gap_s: float) -> None:
    with connection, suppress(ConnectionError):
        while request := _request(connection):
            connection.sendall(HEAD)
            long = LONG.encode() in request
            for event in streams[long]:
                if gap_s and long:
                    time.sleep(gap_s)
                connection.sendall(event)
            connection.sendall(b"0\r\n\r\n")


def _request(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        return b""
    print(time.monotonic(), flush=True)
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return body


if __name__ == "__main__":
    main(*sys.argv[1:])
