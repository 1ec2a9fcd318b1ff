"""The keyboard where single keys cannot be read: Windows has no termios, and its loop watches no terminal. Every answer is a line."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Collection, Generator
from concurrent.futures import Future
from contextlib import contextmanager

from dragoman.app.answers import ENTER
from dragoman.conversation.questions import ESCAPE
from dragoman.plain.keys import HAS_KEYS, Keyboard

_LOOK_S = 0.1
"""How long a wait lasts during which Ctrl-C is not noticed."""


def make_keyboard() -> Keyboard:
    """The keyboard of this system."""
    return Keyboard() if HAS_KEYS else LineKeyboard()


class LineKeyboard(Keyboard):
    """Answers in lines. A thread waits for each, and nothing can end that wait: where the run was cancelled meanwhile, the line that comes
    is the next prompt."""

    is_by_line = True

    def __init__(self) -> None:
        super().__init__()
        self._line: Future[str] | None = None

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def close(self) -> None:
        pass

    def resume(self) -> None:
        pass

    @contextmanager
    def lend(self) -> Generator[None]:
        yield

    async def read_answer(self, keys: Collection[str], on_ready: Callable[[], None], *, again: bool = False) -> str:
        on_ready()
        line = await self.read_line()
        if line is None or ESCAPE in line:
            return ESCAPE
        said = line.strip().lower() or ENTER
        if said in keys:
            return said
        if said != ENTER:
            self.typed += f"{line}\n"
        return ""

    async def read_pause(self) -> bool:
        return True

    async def read_line(self) -> str | None:
        if self._line is None:
            self._line = _line_in_thread()
        line = await asyncio.shield(asyncio.wrap_future(self._line))
        self._line = None
        return line.rstrip("\r\n") if line else None

    def read_prompt(self, mark: str) -> str:
        if self._line is None:
            return input(mark)
        sys.stdout.write(mark)
        sys.stdout.flush()
        while not self._line.done():
            threading.Event().wait(_LOOK_S)
        waited, self._line = self._line, None
        if not (line := waited.result()):
            raise EOFError
        return line.rstrip("\r\n")


def _line_in_thread() -> Future[str]:
    """The next line of standard input; empty at its end."""
    line: Future[str] = Future()

    def read() -> None:
        try:
            line.set_result(sys.stdin.readline())
        except (OSError, ValueError) as error:  # it was closed, or is no text
            line.set_exception(error)

    threading.Thread(target=read, daemon=True).start()
    return line
