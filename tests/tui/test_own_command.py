"""`!command`: a command of the user's own ends when it is stopped, whatever it does about that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.tui.own_command import OwnCommand


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM; echo ready; while :; do sleep 0.05; done",
        "setsid sh -c 'echo ready; exec sleep 8' & wait",
    ],
    ids=["it heeds no signal", "something that has left its group holds its output"],
)
def test_a_second_stop_ends_it(tmp_path: Path, command: str) -> None:
    async def stop_twice() -> str:
        ready = asyncio.Event()
        own = OwnCommand(command, str(tmp_path), ready.set)
        running = asyncio.create_task(own.run())
        async with asyncio.timeout(60):
            await ready.wait()
            own.stop()
            own.stop()
            await running
        return "".join(span.text for line in own.lines(80) for span in line)

    shown = asyncio.run(stop_twice())
    assert "ready" in shown
    assert "stopped" in shown
