"""Where `dragoman acp` begins: the descriptors of the protocol are taken away from everybody else, and `initialize` is answered, before
anything of the program is loaded.

This module imports almost nothing. An editor starts its agents when it is opened, and waits for this answer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dragoman.acp.greeting import Greeting, greet

if TYPE_CHECKING:
    from dragoman.app.options import Options

_greeted: Greeting | None = None


def serve(options: Options) -> int:
    """Speak the protocol until the client leaves, and return the exit code."""
    greet_early()
    assert _greeted is not None
    from dragoman.acp.serving import serve_client

    return serve_client(options, _greeted)


def greet_early() -> None:
    """Take the descriptors, and answer the first message. Does nothing when it is called again."""
    global _greeted
    if _greeted is None:
        _greeted = greet(*_take_descriptors())


def _take_descriptors() -> tuple[int, int]:
    """Standard input and output, under other numbers. Under their own, a command that is started finds nothing to read, and a print goes
    where errors go: stdout carries the protocol alone."""
    reading, writing = os.dup(0), os.dup(1)
    _redirect(0, os.O_RDONLY)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        _redirect(1, os.O_WRONLY)
    return reading, writing


def _redirect(number: int, flags: int) -> None:
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, number)
    os.close(nothing)
