"""Writes down when a command could write, and where: files that configure agents and were changed meanwhile are asked about at the next
start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from dragoman.base.places import find_places
from dragoman.policy.command_times import RunningTime
from dragoman.values.commands import GateEnd, Launched
from dragoman.values.record import HostsUsed


async def start_timed(starting: Awaitable[Launched], writable: Sequence[str]) -> Launched:
    """Start a command that may write in these folders. Where its time cannot be written down, as in a home that is read-only, it runs all
    the same."""
    try:
        running = RunningTime(find_places().commands_file, writable)
    except OSError:
        return await starting
    try:
        return TimedCommand(await starting, running)
    except BaseException:
        running.close()
        raise


class TimedCommand(Launched):
    """A command whose time ends with it."""

    def __init__(self, launched: Launched, running: RunningTime) -> None:
        self._launched = launched
        self._running = running

    @property
    def returncode(self) -> int | None:
        return self._launched.returncode

    @property
    def remark(self) -> str:
        return self._launched.remark

    @property
    def notice(self) -> str:
        return self._launched.notice

    @property
    def hosts(self) -> HostsUsed:
        return self._launched.hosts

    def take_gate(self) -> GateEnd | None:
        return self._launched.take_gate()

    def take_terminal(self) -> int | None:
        return self._launched.take_terminal()

    def watch_questions(self, tell: Callable[[bool], None]) -> None:
        self._launched.watch_questions(tell)

    async def settle(self) -> None:
        await self._launched.settle()

    async def wait(self) -> int:
        return await self._launched.wait()

    async def end(self, grace_s: float) -> bool:
        is_gone = await self._launched.end(grace_s)
        if is_gone:
            self._running.close()
        return is_gone
