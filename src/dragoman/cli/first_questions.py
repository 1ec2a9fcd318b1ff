"""Questions before a conversation begins, each answered by one letter. Printed line by line, which works in any terminal, even a dumb one.

In the first frame of a conversation one key answers the same questions (tui/question_frame.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, TextIO

from dragoman.app.config_tables import FolderTrust
from dragoman.app.console import raising_ctrl_c
from dragoman.app.trust import trust_names
from dragoman.base.places import shorten_home
from dragoman.base.visible import escape_hidden
from dragoman.base.words import say
from dragoman.base.wrapping import columns_of, wrap_line


class FirstQuestion(NamedTuple):
    """Every character of what others wrote is visible in it."""

    intro: tuple[str, ...]
    text: str
    """The question, with its letters."""
    said: Mapping[str, str]
    """Letter → what stands under the question once it was pressed."""
    why: str = ""
    """What `?` shows."""


Ask = Callable[[FirstQuestion], str]
"""The letter of the answer; empty where nobody can be asked. Ctrl-C ends the program; Ctrl-D raises EOFError. Neither is an answer."""


def trust_question(trust: FolderTrust) -> FirstQuestion:
    """Whether a folder is trusted, asked before anything in it is read."""
    intro = say("trust_intro", folder=escape_hidden(shorten_home(trust.folder), one_line=True), names=trust_names(trust))
    return FirstQuestion((intro,), say("trust_question"), {"y": say("trust_said_yes"), "n": say("trust_said_no")}, say("trust_why"))


def ask_by_line(question: FirstQuestion) -> str:
    """Implements Ask. Where there is no terminal, the conversation cannot be opened either, and says why."""
    screen = _terminal()
    if screen is None:
        return ""
    letters = {**{letter: letter for letter in question.said}, "yes": "y", "no": "n"}
    with raising_ctrl_c():
        for line in question.intro:
            _show(screen, line)
        _drop_typed()
        while True:
            _write(screen, screen_text(say("question_by_line", question=question.text), screen) + " ")
            said = _read_line()
            if not said:
                _write(screen, "\n")
                raise EOFError
            answer = said.strip().lower()
            if answer in letters:
                return letters[answer]
            for line in question.why.split("\n") if answer == "?" and question.why else ():
                _show(screen, line)


def screen_text(text: str, screen: TextIO) -> str:
    """Broken between words; no symbol that needs more than ASCII stands in these sentences but in the names of files."""
    hang = len(text) - len(text.lstrip()) + 2
    wrapped = "\n".join(wrap_line(text, columns_of(screen), hang=hang))
    encoding = screen.encoding or "ascii"
    return wrapped.encode(encoding, "backslashreplace").decode(encoding)


def _show(screen: TextIO, text: str) -> None:
    _write(screen, screen_text(text, screen) + "\n")


def _write(screen: TextIO, text: str) -> None:
    screen.write(text)
    screen.flush()


def _terminal() -> TextIO | None:
    return next((stream for stream in (sys.stderr, sys.stdout) if stream is not None and stream.isatty()), None)


def _read_line() -> str:
    """Empty at the end of the input. Read past Python's buffers, so that nothing is taken from what follows."""
    try:
        return os.read(0, 4_096).decode(errors="replace")
    except OSError:  # the terminal is gone
        return ""


def _drop_typed() -> None:
    """What was typed before the question stood on the screen cannot be an answer to it."""
    try:
        import termios
    except ImportError:
        return
    try:
        termios.tcflush(0, termios.TCIFLUSH)
    except termios.error:
        pass
