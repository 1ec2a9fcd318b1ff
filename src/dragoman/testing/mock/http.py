"""Sending answers of the loopback service with simulated network faults. Connections and requests are read as `http/serving.py` does."""

from __future__ import annotations

import asyncio

from dragoman.http.serving import AnswerSender, ClientReader, Hangup, Listener, Malformed, ReceivedRequest, read_request

__all__ = ["ClientReader", "Hangup", "Listener", "Malformed", "ReceivedRequest", "Sender", "read_request"]

WRITES_IN_A_ROW = 16
"""After this many pieces of one answer, other clients get a turn."""


class Sender(AnswerSender):
    """Sends one answer. Pieces, pauses and cuts happen here, below any protocol. Raises Hangup when the connection is over."""

    def __init__(self, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer)
        self._piece_bytes = 0
        self._piece_wait_s = 0.0
        self._cut: int | None = None
        self._writes = 0
        self._sent = 0
        self._waiting = b""

    def set_faults(self, *, piece_bytes: int = 0, piece_wait_s: float = 0.0, cut: int | None = None) -> None:
        """Call before `send_head`: piece size and pauses of the body, and the byte at which to cut it."""
        self._piece_bytes, self._piece_wait_s, self._cut = piece_bytes, piece_wait_s, cut

    async def send_head(self, status: int, headers: dict[str, str], length: int | None = None) -> None:
        await super().send_head(status, headers, length)
        if self._cut == 0:
            raise Hangup("cut by the script")

    async def send(self, data: bytes) -> None:
        """Send part of the body. With a piece size it is buffered until a piece is full."""
        if not self._piece_bytes:
            await self._put(data)
            return
        data = self._waiting + data
        whole = len(data) - len(data) % self._piece_bytes
        for start in range(0, whole, self._piece_bytes):
            await self._put(data[start : start + self._piece_bytes])
            await self.pause(self._piece_wait_s)
        self._waiting = data[whole:]

    async def flush(self) -> None:
        waiting, self._waiting = self._waiting, b""
        await self._put(waiting)

    async def end(self) -> None:
        await self.flush()
        await super().end()

    async def pause(self, seconds: float | None) -> None:
        """Wait for a while, or for ever; ends early if the client hangs up."""
        if seconds == 0:
            return
        done, _ = await asyncio.wait({self.client_gone}, timeout=seconds)
        if done:
            raise Hangup("the client went away")

    async def _put(self, data: bytes) -> None:
        if self._cut is not None:
            data = data[: self._cut - self._sent]
        if data:
            # `drain` only waits for slow readers: without this, an answer to a fast one would be sent before other clients get a turn.
            if self._writes and self._writes % WRITES_IN_A_ROW == 0:
                await asyncio.sleep(0)
            self._write_piece(data)
            self._writes += 1
            self._sent += len(data)
            await self._drain()
        if self._cut is not None and self._sent >= self._cut:
            raise Hangup("cut by the script")
