"""Things in the place of a file that are not a file one can read: for tests that put them everywhere we look."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KINDS = ("pipe", "socket", "zero", "directory", "huge", "unreadable")
WORDS = {
    "pipe": "named pipe",
    "socket": "socket",
    "zero": "device",
    "directory": "directory",
    "huge": "larger than",
    "unreadable": "ermission denied",
}
"""What is said of each."""
WATCHDOG_S = 60
"""Only a hang reaches it."""
HUGE_BYTES = 10 << 30


def plant(path: Path, kind: str) -> None:
    """Put such a thing where a file is looked for. Nobody ever writes into the pipe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening, inside(path.parent):
                listening.bind(path.name)  # relative: the address of a socket is short
        case "zero":
            path.symlink_to("/dev/zero")
        case "directory":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(HUGE_BYTES)
        case _:
            path.write_text("words")
            path.chmod(0)


def can_plant(kind: str) -> bool:
    """Root reads every file."""
    return kind != "unreadable" or os.geteuid() != 0


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def watchdog() -> Iterator[None]:
    """What waits for ever fails instead of stopping the suite."""

    def bark(*_: object) -> None:
        raise AssertionError("it did not end")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(WATCHDOG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
