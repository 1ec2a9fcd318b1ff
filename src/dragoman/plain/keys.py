"""The keyboard during a run: single keys, lines, and terminal modes that are always restored."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any

from dragoman.app.answers import ENTER, QUIET_S, Answers, apply_erasing
from dragoman.conversation.questions import ESCAPE

try:
    import termios

    HAS_KEYS = True
except ImportError:  # Windows: see line_keys.py
    HAS_KEYS = False

BURST_S = 0.04
"""Keys closer together than this are delivered as one string: an arrow key is several bytes, and Esc is one of them."""
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
"""What an arrow key sends, or Alt with a letter: it types nothing."""
_ENTERS = "\r\n"


class Keyboard:
    """Between `open` and `close` keys are not echoed and arrive one by one; Ctrl-C, Ctrl-Z and Ctrl-\\ still send signals.

    What answers no question is kept in `typed`, for the next prompt; a single Esc calls `on_escape` instead.
    """

    is_by_line = False
    """Whether an answer is a line, which ends with Enter."""

    def __init__(self, descriptor: int = 0) -> None:
        self._fd = descriptor
        self._before: list[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Future[str] | None = None
        self._answers: Answers[str] = Answers(())
        self._on_ready: Callable[[], None] | None = None
        self._has_typed = False
        """Whether something was typed at the question that is open, and did not answer it."""
        self._is_quiet = False
        """Whether there was a pause since the last key."""
        self._burst = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None
        """Runs out at the end of a burst, or, while a question is open, after a pause."""
        self._is_lent = False
        self.on_escape: Callable[[], None] | None = None
        self.on_gone: Callable[[], None] | None = None
        """Called when the terminal is gone."""
        self.typed = ""

    # --- terminal modes

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._before = termios.tcgetattr(self._fd)
        self.resume()
        loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        """Restore the terminal. May be called twice, and from a signal handler."""
        before, self._before = self._before, None
        if before is None:
            return
        self._set(before)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._set_timer(None)
        self.typed += _SEQUENCE.sub("", self._take_burst())

    def resume(self) -> None:
        """Switch to single keys: in `open`, and when the stopped program continues."""
        if self._before is None or self._is_lent:
            return
        iflag, oflag, cflag, lflag, ispeed, ospeed, characters = self._before
        characters = list(characters)
        characters[termios.VMIN], characters[termios.VTIME] = 1, 0
        self._set([iflag, oflag, cflag, lflag & ~(termios.ICANON | termios.ECHO), ispeed, ospeed, characters])

    @contextmanager
    def lend(self) -> Generator[None]:
        """The terminal's mode from before `open`, for another program or for the terminal's own line editing."""
        if self._loop is None or self._before is None:
            raise RuntimeError("the keyboard is not open")
        self._loop.remove_reader(self._fd)
        self._is_lent = True
        self._set(self._before)
        try:
            yield
        finally:
            self._is_lent = False
            if self._before is not None:
                self.resume()
                self._loop.add_reader(self._fd, self._on_readable)

    def _set(self, mode: list[Any]) -> None:
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, mode)
        except termios.error:
            pass  # the terminal is gone

    # --- what is typed

    async def read_answer(self, keys: Collection[str], on_ready: Callable[[], None], *, again: bool = False) -> str:
        """One of the keys, or ESCAPE. Empty: something else was typed, and then there was a pause. `on_ready` is called once there was a
        pause since the question came up: from then on a key can be an answer. `again`: it has been there before, and that pause will do."""
        self._answers, self._on_ready, self._has_typed = Answers(keys), on_ready, False
        self._waiting = asyncio.get_running_loop().create_future()
        if again and self._is_quiet:
            self._rest(self._waiting)
        else:
            self._set_timer(BURST_S if self._burst else QUIET_S)
        try:
            return await self._waiting
        finally:
            self._waiting = None
            self.typed += "".join(self._answers.put_off())
            if not self._burst:
                self._set_timer(None)

    async def read_pause(self) -> bool:
        """Wait for a pause in typing. False: something was typed before it came."""
        ready: list[bool] = []

        def end() -> None:
            ready.append(True)
            if self._waiting is not None:
                self._waiting.set_result("")

        await self.read_answer((), end)
        return bool(ready)

    async def read_line(self) -> str | None:
        """A line, edited by the terminal itself: only inside `lend`. None: the user pressed Ctrl-D."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(self._fd, self._on_line, arrived)
        try:
            data = await arrived
        finally:
            loop.remove_reader(self._fd)
        return data.decode("utf-8", "replace").rstrip("\r\n") if data else None

    def read_prompt(self, mark: str) -> str:
        """A line between runs, edited by readline where there is one. Raises EOFError, KeyboardInterrupt and UnicodeError."""
        return input(mark)

    def take_typed(self) -> str:
        """What was typed and answered nothing."""
        typed, self.typed = self.typed, ""
        return apply_erasing(typed)

    def _on_readable(self) -> None:
        data = self._read()
        if data is None:
            return
        if not data:
            return self._close_gone()
        self._burst += data
        self._is_quiet = False
        self._set_timer(BURST_S)

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None or self._loop is None else self._loop.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._burst:
            self._deliver()
        elif self._waiting is not None and not self._waiting.done():
            self._rest(self._waiting)

    def _deliver(self) -> None:
        """The end of a burst. While a question is open, a pause is waited for then."""
        keys, waiting = self._take_burst(), self._waiting
        if waiting is None or waiting.done():
            if keys == ESCAPE and self.on_escape is not None:
                self.on_escape()
            self.typed += _SEQUENCE.sub("", keys)
        elif keys == ESCAPE:
            waiting.set_result(ESCAPE)
        else:
            self._hear(keys, waiting)
            self._set_timer(QUIET_S)

    def _take_burst(self) -> str:
        keys = self._decoder.decode(bytes(self._burst))
        self._burst.clear()
        return keys

    def _hear(self, keys: str, waiting: asyncio.Future[str]) -> None:
        """One key, or a key and Enter, may answer. More than that was pasted, or is a word."""
        answer, typed = "", ""
        if len(keys) > 2 or (keys[1:] and keys[1] not in _ENTERS) or ESCAPE in keys:
            typed = "".join((*self._answers.put_off(), _SEQUENCE.sub("", keys)))
        else:
            for char in keys:
                heard = self._answers.press(char, ENTER if char in _ENTERS else char)
                answer = answer or heard.answer
                typed += "".join(heard.typed)
        self.typed += typed
        self._has_typed = self._has_typed or bool(typed) or ESCAPE in keys
        if answer:
            waiting.set_result(answer)

    def _rest(self, waiting: asyncio.Future[str]) -> None:
        self._is_quiet = True
        answer = self._answers.rest().answer
        if answer or self._has_typed:
            waiting.set_result(answer)
            return
        if self._on_ready is not None:
            self._on_ready()

    def _on_line(self, arrived: asyncio.Future[bytes]) -> None:
        if not arrived.done() and (data := self._read()) is not None:
            arrived.set_result(data)

    def _read(self) -> bytes | None:
        """Empty bytes mean end of file; None: nothing to read."""
        try:
            return os.read(self._fd, 1 << 16)
        except BlockingIOError:  # another reader took it
            return None
        except OSError:
            return b""

    def _close_gone(self) -> None:
        """In this mode end of file means that the terminal is gone."""
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
        if self.on_gone is not None:
            self.on_gone()
