"""A command that a call waits for, until somebody lets it go on in the background: then the call returns, and the command does not end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from dragoman.tools.process import Control, Exit, Take

if TYPE_CHECKING:
    from dragoman.tools.background import BackgroundCommand, BackgroundCommands

NOTE = "The user let it go on in the background: read it and stop it with shell_output."
"""Told to the model, which did not ask for it."""


class Leavable:
    """One command at work in a call. `leave` may be called as long as it runs, from the loop that runs it."""

    def __init__(self, commands: Callable[[], BackgroundCommands]) -> None:
        self.control = Control()
        self._commands = commands
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held: list[bytes] | None = None
        """What it prints between the moment it is left and the one from which others read it."""
        self._command: BackgroundCommand | None = None
        self._running: asyncio.Task[Exit] | None = None

    def leave(self) -> bool:
        from dragoman.tools.background import BYTES_PER_S, MAX_RUNNING

        if self._left.done() or not self.control.is_running or self._commands().running >= MAX_RUNNING:
            return False
        self._held = []
        self._left.set_result(None)
        self.control.lift_limit(BYTES_PER_S)
        return True

    def taking(self, take: Take) -> Take:
        """`take`, as long as the call reads what the command prints."""

        def take_or_pass(data: bytes) -> None:
            if self._command is not None:
                self._commands().pass_output(self._command, data)
            elif self._held is not None:
                self._held.append(data)
            else:
                take(data)

        return take_or_pass

    async def wait(self, running: Coroutine[Any, Any, Exit]) -> Exit | None:
        """How it ended; None: it was left. Raises OSError."""
        self._running = asyncio.ensure_future(running)
        try:
            await asyncio.wait([self._running, self._left], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._running.cancel()
            while not self._running.done():  # it ends its processes first, however often we are told to stop
                try:
                    await asyncio.wait([self._running])
                except asyncio.CancelledError:
                    continue
            raise
        return None if self._left.done() else self._running.result()

    async def hand_over(self, command: str, printed: str, *, tty: bool) -> BackgroundCommand:
        """From now on it is a background command."""
        assert self._running is not None
        assert self._held is not None
        commands = self._commands()
        adopted = await commands.adopt(self._running, command, tty=tty, printed=printed.encode("utf-8", "replace"))
        held, self._held, self._command = self._held, None, adopted
        if held:
            commands.pass_output(adopted, b"".join(held))
        return adopted
