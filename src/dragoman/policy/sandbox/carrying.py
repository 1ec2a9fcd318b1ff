"""Carries bytes between two connections, no faster than they are taken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

PIECE_BYTES = 64 * 1024
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pulse:
    """When something last moved on a connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.note_traffic()

    def note_traffic(self) -> None:
        self._last_s = self._loop.time()

    async def wait_idle(self, idle_s: float) -> None:
        """Returns when nothing has moved for so long."""
        while (left_s := self._last_s + idle_s - self._loop.time()) > 0:  # noqa: ASYNC110 - an event for each byte costs more
            await asyncio.sleep(left_s)


async def until_still(pulse: Pulse, idle_s: float, *pumps: Awaitable[None]) -> None:
    """Wait until all pumps have ended, one has failed, or there was no traffic for too long."""
    pumping = asyncio.gather(*pumps)
    still = asyncio.ensure_future(pulse.wait_idle(idle_s))
    try:
        await asyncio.wait({pumping, still}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        still.cancel()
        pumping.cancel()
        await asyncio.gather(pumping, still, return_exceptions=True)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pulse: Pulse | None = None) -> None:
    """Until one side ends: then the other is told that no more comes."""
    while data := await reader.read(PIECE_BYTES):
        if pulse is not None:
            pulse.note_traffic()
        writer.write(data)
        await writer.drain()
        if pulse is not None:
            pulse.note_traffic()
    if writer.can_write_eof():
        writer.write_eof()
