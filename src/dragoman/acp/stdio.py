"""Lines from the client and to it. Each way has a thread of its own: a client that does not read holds up nobody, and any kind of
descriptor will do, also a file, and on Windows."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable

AHEAD = 256
"""Lines that are read before the first of them is dealt with."""
FULL_BYTES = 4_000_000
"""Waiting to be written. From here on whoever can wait does."""
FLUSH_S = 0.3
"""How long a client that does not read is waited for at the end."""


class Reader:
    """Hands over lines, each without its newline: None for one that is longer than `most`. Half a line at the end is a line. `take_end` is
    called when there are no more."""

    def __init__(self, descriptor: int, rest: bytes, take: Callable[[bytes | None], None], take_end: Callable[[], None], most: int) -> None:
        self._descriptor = descriptor
        self._rest = rest
        self._take, self._take_end = take, take_end
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(AHEAD)

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="acp-reader").start()

    def _run(self) -> None:
        try:
            self._read_lines()
            self._loop.call_soon_threadsafe(self._take_end)
        except RuntimeError:
            pass  # the loop is closed: we are leaving

    def _read_lines(self) -> None:
        line, is_skipped = bytearray(), False
        data = self._rest
        while True:
            *ended, last = data.split(b"\n")
            for part in ended:
                self._hand_over(None if is_skipped or len(line) + len(part) > self._most else bytes(line) + part)
                line, is_skipped = bytearray(), False
            line += last
            if len(line) > self._most:
                line, is_skipped = bytearray(), True
            data = self._read()
            if not data:
                if line or is_skipped:
                    self._hand_over(None if is_skipped else bytes(line))
                return

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 1 << 16)
        except OSError:
            return b""

    def _hand_over(self, line: bytes | None) -> None:
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._dealt_with, line)

    def _dealt_with(self, line: bytes | None) -> None:
        self._room.release()
        self._take(line)


class Writer:
    """Writes lines in their order. `on_gone`: the client reads no more."""

    def __init__(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.is_gone = False
        threading.Thread(target=self._run, daemon=True, name="acp-writer").start()

    def write(self, line: bytes) -> None:
        """Never waits."""
        with self._changed:
            self._waiting.append(line + b"\n")
            self._bytes += len(line) + 1
            if self._bytes > FULL_BYTES and not self.is_gone:
                self._has_room.clear()
            self._changed.notify_all()

    async def until_room(self) -> None:
        """For whoever has much to say: wait until the client has read most of what waits."""
        await self._has_room.wait()

    def flush(self) -> None:
        """At the end: wait a moment until everything is written."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes or self.is_gone, FLUSH_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = b"".join(self._waiting)
                self._waiting.clear()
            self._write(data)
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()
            try:
                self._loop.call_soon_threadsafe(self._make_room)
            except RuntimeError:
                return

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left and not self.is_gone:
            try:
                left = left[os.write(self._descriptor, left[: 1 << 16]) :]
            except OSError:
                self.is_gone = True
                try:
                    self._loop.call_soon_threadsafe(self._on_gone)
                except RuntimeError:
                    return

    def _make_room(self) -> None:
        if self._bytes <= FULL_BYTES // 2 or self.is_gone:
            self._has_room.set()
