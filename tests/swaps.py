"""Another process that puts a link in the place of a folder and takes it away again, without pause: what a hostile command does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEAST_SWAPS = 300
"""How often the folder has been a link at least before a test may say that nothing happened."""
LIMIT_S = 60.0
_SWAP = """
import os, sys
folder, outside, count = sys.argv[1:]
number = 0
with open(count, "wb", buffering=0) as said:
    while os.getppid() == int(os.environ["SWAPPED_FOR"]):
        number += 1
        real = f"{folder}.real-{number}"
        try:
            os.rename(folder, real)
        except OSError:
            os.makedirs(real, exist_ok=True)  # it is not there just now
        try:
            os.symlink(outside, folder)
            said.write(b".")
            os.unlink(folder)
            os.rename(real, folder)
        except OSError:
            pass  # somebody has made another meanwhile
"""


@contextmanager
def swapping(folder: Path, outside: Path) -> Iterator[Iterator[int]]:
    """Swap until the block ends. Gives an iterator for the block's own work: it goes on until the link has been there often enough."""
    count = folder.parent.parent / f"swaps-{os.urandom(4).hex()}"
    count.touch()
    process = subprocess.Popen(
        [sys.executable, "-c", _SWAP, str(folder), str(outside), str(count)], env={**os.environ, "SWAPPED_FOR": str(os.getpid())}
    )
    try:
        yield _until_swapped(count, process)
    finally:
        process.kill()
        process.wait()
        count.unlink()


def _until_swapped(count: Path, process: subprocess.Popen[bytes]) -> Iterator[int]:
    end_s, rounds = time.monotonic() + LIMIT_S, 0
    while count.stat().st_size < LEAST_SWAPS:
        assert process.poll() is None, "whoever swaps has ended"
        assert time.monotonic() < end_s, f"only {count.stat().st_size} swaps"
        yield rounds
        rounds += 1


def contents_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder, with its mode: what must be the same afterwards."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        data = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, data)
    return found
