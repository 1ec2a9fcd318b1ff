"""The standard streams of a command: what it is given, and what we read of it. Pipes, or a pseudo-terminal (PTY)."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import IO

ROWS, COLUMNS = 24, 120
"""The size of the terminal that a command is given."""


class Streams:
    """Close `given` when the command has been started; whoever takes `reading` closes it."""

    def __init__(self, given: tuple[int, int, int], reading: list[IO[bytes]], closing: ExitStack) -> None:
        self.given = given
        """Descriptors for standard input, output and error."""
        self.reading = reading
        """What standard output and error arrive at; one file where both go the same way."""
        self._closing = closing

    def close_given(self) -> None:
        self._closing.close()

    def discard(self) -> None:
        self.close_given()
        for file in self.reading:
            file.close()


def open_pipes(stdin: bytes, *, merged: bool) -> Streams:
    """With `merged`, output and error go the same way, so that they stay in order. Raises OSError."""
    with ExitStack() as opened:
        source = opened.enter_context(as_file(stdin))
        reading: list[IO[bytes]] = []
        writing: list[int] = []
        for _ in range(1 if merged else 2):
            ours, theirs = os.pipe()
            reading.append(os.fdopen(ours, "rb", buffering=0))
            writing.append(theirs)
            opened.callback(os.close, theirs)
        return Streams((source.fileno(), writing[0], writing[-1]), reading, opened.pop_all())


def open_terminal() -> Streams:
    """A PTY of our own, where there is no launcher to make one. Raises OSError."""
    import termios

    with ExitStack() as opened:
        ours, theirs = os.openpty()
        opened.callback(os.close, theirs)
        termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
        return Streams((theirs, theirs, theirs), [os.fdopen(ours, "rb", buffering=0)], opened.pop_all())


def no_streams() -> Streams:
    """For a command whose terminal is made by the launcher."""
    with ExitStack() as opened:
        nowhere = opened.enter_context(open(os.devnull, "r+b", buffering=0)).fileno()
        return Streams((nowhere, nowhere, nowhere), [], opened.pop_all())


def as_file(data: bytes) -> IO[bytes]:
    """The data as a file: unlike a pipe, it holds everything and needs no writer."""
    if not data:
        return open(os.devnull, "rb")
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("input"), "w+b")  # it has no name anywhere, so nobody else can open it
    else:
        from tempfile import TemporaryFile

        file = TemporaryFile()  # noqa: SIM115 - closed by the caller
    file.write(data)
    file.seek(0)
    return file
