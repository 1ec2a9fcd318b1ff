"""Questions outside a run, each answered by one letter. Asked line by line here, which works in any terminal, even a dumb one.

In the first frame of a conversation the same questions are asked with one key (tui/question_frame.py).
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, TextIO

from dragoman.app.answers import QUIET_S, apply_erasing
from dragoman.app.console import raising_ctrl_c
from dragoman.base.graphemes import width
from dragoman.base.wrapping import columns_of, wrap_line
from dragoman.values.errors import InputError
from dragoman.words import say

PASTE_S = 0.04
"""Lines that arrive faster than this were pasted."""
_GAP = "   "
"""Between a question and its letters."""
_LEAVES = "\x04"
_KEYS_WITHOUT_TEXT = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Z])?")
"""Esc, arrows and the like, which a terminal in its usual mode takes for text."""


class FirstQuestion(NamedTuple):
    """Every character of what others wrote is visible in it."""

    intro: tuple[str, ...]
    text: str
    """The question, with its letters."""
    said: Mapping[str, str]
    """Letter → what stands under the question once it was pressed."""
    why: str = ""
    """What `?` shows."""
    marked: str = "n"
    """What Enter alone answers."""
    takes: Callable[[str], bool] | None = None
    """Whether a whole line answers it as well, where it is asked line by line. Then that line is the answer."""

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.said, "?") if self.why else tuple(self.said)


Ask = Callable[[FirstQuestion], str]
"""The letter of the answer; empty where nobody can be asked. Ctrl-C ends the program; Ctrl-D raises EOFError. Neither is an answer."""


class LineQuestions:
    """Implements Ask on a terminal in its usual mode: a letter and Enter answer, once there was a pause since the question came up. What
    was typed before, and any other line, is kept in `draft` for the next prompt."""

    def __init__(self) -> None:
        self.draft = ""

    def __call__(self, question: FirstQuestion) -> str:
        """Where there is no terminal, the conversation cannot be opened either, and says why."""
        screen = question_terminal()
        if screen is None:
            return ""
        with raising_ctrl_c():
            for line in question.intro:
                show_line(screen, line)
            while not (answer := self._ask_once(screen, question)):
                pass
        return answer

    def take_draft(self) -> str:
        draft, self.draft = self.draft, ""
        return apply_erasing(draft).strip("\n")

    def _ask_once(self, screen: TextIO, question: FirstQuestion) -> str:
        """Empty: asked again."""
        asked = question_rows(question.text, columns_of(screen))
        write_to(screen, _encodable("\n".join(asked), screen))
        if ahead := _KEYS_WITHOUT_TEXT.sub("", read_ahead()):
            if _LEAVES in ahead:
                raise EOFError
            if question.takes is not None and question.takes(ahead.strip()):
                return ahead.strip()
            self._keep(screen, ahead)
            return ""
        default = say("question_default", key=question.marked)
        write_to(screen, default if _fits(asked[-1] + default, columns_of(screen)) else f"\n  {default.lstrip()}")
        said = read_typed()
        if not said:
            write_to(screen, "\n")
            raise EOFError
        said = _KEYS_WITHOUT_TEXT.sub("", said)
        answer = {"yes": "y", "no": "n", "": question.marked}.get(said.strip().lower(), said.strip().lower())
        if answer not in question.keys and question.takes is not None and question.takes(said.strip()):
            return said.strip()
        if answer not in question.keys or more_was_typed():
            self._keep(screen, said)
            return ""
        for line in question.why.split("\n") if answer == "?" else ():
            show_line(screen, line)
        return "" if answer == "?" else answer

    def _keep(self, screen: TextIO, typed: str) -> None:
        self.draft += typed
        write_to(screen, "" if typed.endswith("\n") else "\n")
        show_line(screen, say("kept_by_line"))


def confirm(question: str, ask: Ask | None) -> None:
    """Ask for a yes. Returns if that is the answer, otherwise raises InputError, also where nobody can be asked (None)."""
    if ask is None or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(say("nobody_to_ask"))
    try:
        answer = ask(FirstQuestion((), question, {"y": "", "n": ""}))
    except EOFError:
        answer = "n"
    if answer != "y":
        raise InputError(say("left_alone"))


def screen_text(text: str, screen: TextIO) -> str:
    """Broken between words; no symbol that needs more than ASCII stands in these sentences but in the names of files."""
    return _encodable("\n".join(wrap_line(text, columns_of(screen), hang=_hang(text))), screen)


def question_rows(text: str, columns: int) -> list[str]:
    """The question, and behind it each letter with what it means, which are never parted."""
    question, *answers = text.split(_GAP)
    rows = wrap_line(question, columns, hang=_hang(text))
    for answer in answers:
        if _fits(rows[-1] + _GAP + answer, columns):
            rows[-1] += _GAP + answer
        else:
            rows += wrap_line(" " * _hang(text) + answer, columns, hang=_hang(text))
    return rows


def _hang(text: str) -> int:
    return len(text) - len(text.lstrip()) + 2


def _fits(row: str, columns: int) -> bool:
    return not columns or width(row) <= columns


def _encodable(wrapped: str, screen: TextIO) -> str:
    encoding = screen.encoding or "ascii"
    return wrapped.encode(encoding, "backslashreplace").decode(encoding)


def read_ahead() -> str:
    """Read what was typed already and is being typed, until there is a pause. Its mode is the usual one again afterwards."""
    try:
        import termios
    except ImportError:
        return ""
    try:
        before = termios.tcgetattr(0)
    except termios.error:
        return ""
    by_key = [*before[:3], before[3] & ~termios.ICANON, *before[4:6], [*before[6]]]
    by_key[6][termios.VMIN], by_key[6][termios.VTIME] = 1, 0
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP))  # until the mode is restored
    typed = bytearray()
    try:
        termios.tcsetattr(0, termios.TCSANOW, by_key)
        while select.select([0], (), (), QUIET_S)[0] and (data := os.read(0, 4_096)):
            typed += data
    except (OSError, termios.error):
        pass  # the terminal is gone
    finally:
        try:
            termios.tcsetattr(0, termios.TCSANOW, before)
        except termios.error:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
    return typed.decode(errors="replace")


def more_was_typed() -> bool:
    try:
        return bool(select.select([0], (), (), PASTE_S)[0])
    except OSError:  # a system that can wait for sockets alone
        return False


def show_line(screen: TextIO, text: str) -> None:
    write_to(screen, screen_text(text, screen) + "\n")


def write_to(screen: TextIO, text: str) -> None:
    screen.write(text)
    screen.flush()


def question_terminal() -> TextIO | None:
    return next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)


def read_typed() -> str:
    """Empty at the end of the input. Read past Python's buffers, so that nothing is taken from what follows."""
    try:
        return os.read(0, 4_096).decode(errors="replace")
    except OSError:  # the terminal is gone
        return ""
