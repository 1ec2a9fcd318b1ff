"""The question whether a folder is trusted, asked before anything in it is read. Lines only: it works in any terminal, a dumb one too."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from dragoman.app.config_tables import FolderTrust
from dragoman.app.trust import Answer, trust_names
from dragoman.base.visible import escape_hidden
from dragoman.base.words import say
from dragoman.base.wrapping import columns_of, wrap_line

_ANSWERS: dict[str, Answer] = {"y": "yes", "yes": "yes", "n": "no", "no": "no"}


def ask_trust(trust: FolderTrust) -> Answer:
    """Implements trust.AskTrust. Ctrl-C ends the program; Ctrl-D raises EOFError. Neither is an answer, so nothing is remembered."""
    intro = say("trust_intro", folder=escape_hidden(trust.folder, one_line=True), names=trust_names(trust))
    return "yes" if ask_yes_or_no([intro], say("trust_question"), say("trust_why")) else "no"


def ask_yes_or_no(intro: Sequence[str], question: str, why: str = "") -> bool | None:
    """None where there is no terminal: the conversation cannot be opened either, and says why. `?` shows `why`."""
    screen = _terminal()
    if screen is None:
        return None
    with _interrupts():
        for line in intro:
            _show(screen, line)
        _drop_typed()
        while True:
            _write(screen, screen_text(question, screen) + " ")
            said = _read_line()
            if not said:
                _write(screen, "\n")
                raise EOFError
            answer = said.strip().lower()
            if answer in _ANSWERS:
                return _ANSWERS[answer] == "yes"
            for line in why.split("\n") if answer == "?" and why else ():
                _show(screen, line)


def screen_text(text: str, screen: TextIO) -> str:
    """Broken between words; no symbol that needs more than ASCII stands in these sentences but in the names of files."""
    wrapped = "\n".join(wrap_line(text, columns_of(screen), hang=2))
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


@contextmanager
def _interrupts() -> Iterator[None]:
    """Ctrl-C as an exception, so that the shell's prompt does not follow on the same line."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    finally:
        signal.signal(signal.SIGINT, before)
