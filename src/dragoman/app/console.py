"""Standard error as every front end uses it before it has a screen of its own: one line per message, and questions answered yes or no."""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.values.errors import InputError


def confirm(question: str) -> None:
    """Ask on standard error. Returns if the answer is yes, else raises InputError."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(say("nobody_to_ask"))
    sys.stderr.write(f"{one_line(question)} ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError(say("left_alone"))


class Messages:
    """Standard error: one line per message. In a terminal a line may be dim, and a countdown may rewrite itself."""

    def __init__(self, *, color: bool = True) -> None:
        self._stream = sys.stderr
        descriptor = descriptor_of(self._stream)
        self.is_terminal = descriptor >= 0 and os.isatty(descriptor)
        self.color = color and self.is_terminal
        self._passing = False

    def choose_color(self, wanted: Literal["auto", "always", "never"]) -> None:
        self.color = self.color if wanted == "auto" else wanted == "always"

    def line(self, text: str, *, dim: bool = False) -> None:
        text = one_line(text)
        self._write((f"\x1b[2m{text}\x1b[22m" if dim and self.color else text) + "\n")

    def passing(self, text: str) -> None:
        """A line that the next one takes the place of. Only a terminal can do that."""
        if self.is_terminal:
            self._write(f"{one_line(text, 200)}")
            self._passing = True

    def clear(self) -> None:
        if self._passing:
            self._write("")

    def _write(self, text: str) -> None:
        start = "\r\x1b[K" if self._passing else ""
        self._passing = False
        try:
            self._stream.write(start + text)
            self._stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # nobody to tell


def descriptor_of(stream: TextIO | None) -> int:
    """-1 where there is none: a closed descriptor's number may by now be a socket's."""
    try:
        return -1 if stream is None else stream.fileno()
    except (OSError, ValueError):
        return -1
