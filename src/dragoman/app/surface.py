"""What a command shows its text on: the streams of the process for the shell, or the conversation in which it was typed.

A conversation names its surface for one call (`shown_on`), in the context of that call alone: several conversations in one process, in
threads or in one loop, do not see each other's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from dragoman.app.console import Messages
from dragoman.base.text import one_line
from dragoman.base.wrapping import columns_of


class Telling(Protocol):
    """Who is told what is not the text itself: notices, and how far it has come. `Messages` is one."""

    @property
    def is_terminal(self) -> bool: ...

    def line(self, text: str, *, dim: bool = False) -> None: ...

    def as_it_is(self, text: str) -> None: ...

    def transient_line(self, text: str) -> None: ...

    def clear(self) -> None: ...


class Surface(NamedTuple):
    """What a command may know of where its text goes."""

    columns: int
    """0: any width."""
    is_terminal: bool
    encoding: str
    messages: Telling
    can_ask: bool
    """Whether a question may be asked on the terminal of the process."""


class Notices:
    """Collects what a command tells beside its text, for a conversation to show."""

    is_terminal = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str, *, dim: bool = False) -> None:
        self.as_it_is(one_line(text))

    def as_it_is(self, text: str) -> None:
        self.lines += [line for line in text.splitlines() if line.strip()]

    def transient_line(self, text: str) -> None:
        """Shown only in a terminal."""

    def clear(self) -> None:
        """Nothing transient was shown."""


_named: ContextVar[Surface | None] = ContextVar("surface", default=None)


def surface() -> Surface:
    """What the command that runs now shows its text on: the streams of the process unless its caller has named another surface."""
    return _named.get() or _of_process()


@contextmanager
def shown_on(place: Surface) -> Iterator[None]:
    token = _named.set(place)
    try:
        yield
    finally:
        _named.reset(token)


def _of_process() -> Surface:
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return Surface(columns_of(sys.stdout), is_terminal, getattr(sys.stdout, "encoding", None) or "ascii", Messages(), can_ask=True)
