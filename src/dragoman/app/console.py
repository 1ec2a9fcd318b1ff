"""Messages and yes/no questions on standard error, for every front end that has no screen (yet)."""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.values.errors import InputError


def confirm(question: str) -> None:
    """Ask on standard error. Returns if the answer is yes, otherwise raises InputError."""
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
        self._has_transient = False

    def choose_color(self, wanted: Literal["auto", "always", "never"]) -> None:
        self.color = self.color if wanted == "auto" else wanted == "always"

    def line(self, text: str, *, dim: bool = False) -> None:
        text = one_line(text)
        self._write((f"\x1b[2m{text}\x1b[22m" if dim and self.color else text) + "\n")

    def transient_line(self, text: str) -> None:
        """A line that the next one replaces. Shown only in a terminal."""
        if self.is_terminal:
            self._write(f"{one_line(text, 200)}")
            self._has_transient = True

    def clear(self) -> None:
        if self._has_transient:
            self._write("")

    def _write(self, text: str) -> None:
        start = "\r\x1b[K" if self._has_transient else ""
        self._has_transient = False
        try:
            self._stream.write(start + text)
            self._stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # standard error is gone


def descriptor_of(stream: TextIO | None) -> int:
    """-1 if there is none: the number of a closed descriptor may be in use by a socket."""
    try:
        return -1 if stream is None else stream.fileno()
    except (OSError, ValueError):
        return -1
