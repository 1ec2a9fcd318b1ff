"""What tests of servers wait for and look at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dragoman.mcp_client.client import McpClient


async def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        # What is waited for happens in another process.
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def pid_of(client: McpClient) -> int:
    """Of a server's program."""
    assert client._peer is not None
    pid: int = client._peer.channel.pid  # type: ignore[attr-defined]
    return pid
