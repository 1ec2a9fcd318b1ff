"""Standard output of a command that prints something and ends. A run streams instead: output.py."""

from __future__ import annotations

import os
import sys

from dragoman.app.console import Messages
from dragoman.words import say


def print_out(output: str | bytes, code: int = 0) -> int:
    """Write all of it, and return the exit code: `code`, or 1 instead of 0 where it cannot be written, which is said. A reader that has
    left is no mistake. Raises nothing."""
    if sys.stdout is None:
        return code
    try:
        _write(output)
    except OSError as error:
        _silence_stdout()
        if isinstance(error, BrokenPipeError):
            return code
        Messages().line(say("cannot_write", reason=error.strerror or error))
        return code or 1
    return code


def _write(output: str | bytes) -> None:
    if isinstance(output, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(output)
    else:
        try:
            sys.stdout.write(output)
        except UnicodeEncodeError:  # a conversation may hold characters that the terminal's encoding lacks
            sys.stdout.write(output.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
    sys.stdout.flush()


def _silence_stdout() -> None:
    """Point standard output at /dev/null, so that flushing what is left in its buffer raises nothing at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
