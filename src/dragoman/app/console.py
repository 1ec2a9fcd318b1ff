"""Messages on standard error, for every front end that has no screen (yet)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TextIO

from dragoman.base.text import one_line


@contextmanager
def raising_ctrl_c() -> Iterator[None]:
    """Ctrl-C as an exception, so that the shell's prompt does not follow on the same line."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    finally:
        signal.signal(signal.SIGINT, before)


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
        """One line, which a terminal shows broken between words; what follows its beginning is indented, so that it is seen to be one."""
        text = one_line(text)
        if self.is_terminal:
            from dragoman.base.wrapping import columns_of, wrap_line

            text = "\n".join(wrap_line(text, columns_of(self._stream), hang=2))
        self._write((f"\x1b[2m{text}\x1b[22m" if dim and self.color else text) + "\n")

    def as_it_is(self, text: str) -> None:
        """Text that is not broken anywhere, such as an address to copy."""
        self._write(text + "\n")

    def transient_line(self, text: str) -> None:
        """A line that the next one replaces, shortened to fit. Shown only in a terminal."""
        if self.is_terminal:
            from dragoman.base.graphemes import fit
            from dragoman.base.wrapping import USUAL_COLUMNS, columns_of

            self._write(fit(one_line(text, 200), (columns_of(self._stream) or USUAL_COLUMNS) - 1))
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
