"""What all clients share: the prompt, what the tool returns, and the meter.

It needs the standard library alone: each client runs in an environment of its own.
"""

import json
import time
from pathlib import Path
from typing import Self

PROMPT = "Read all the notes, one after the other."
NOTE = "Note {number}: " + "wind from the south, calm sea, nothing in sight. " * 20
DONE = "All is read."


class Meter:
    """The CPU of this process while it asks. Imports and setting up came before."""

    def __init__(self, turns: int) -> None:
        self._turns = turns

    def __enter__(self) -> Self:
        self._cpu, self._wall = time.process_time(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._cpu, self._wall = time.process_time() - self._cpu, time.monotonic() - self._wall

    def report(self, text: str, calls: int) -> None:
        if text != DONE or calls != self._turns:
            raise AssertionError(f"{calls} calls, and then {text!r}")
        peak = int(Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) / 1024
        each = {"cpu_ms": self._cpu * 1000 / self._turns, "wall_ms": self._wall * 1000 / self._turns, "rss_mib": peak}
        print(json.dumps(each))
