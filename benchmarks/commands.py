"""What the sandbox adds to a command: `bash -c true`, started directly, by the launcher, and at each level. Linux only.

Time from asking to the end of the command as the shell tool has it; the boundary is drawn and the repository looked at for each command.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.sample import best, interleaved, median
from benchmarks.table import Table
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
from dragoman.values.commands import Reach

PLAIN = "plain: `subprocess.run`"
COMMAND = ["/bin/bash", "-c", "true"]
NAMES = {
    "off": "launcher, no sandbox",
    1: "level 1: namespaces, Landlock, seccomp",
    2: "level 2: bubblewrap",
    3: "level 3: Landlock, seccomp",
}


def run(quick: bool) -> list[Table]:
    folder = Path(tempfile.mkdtemp(prefix="dragoman-commands-", dir="/var/tmp"))
    try:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        return [asyncio.run(_measure(folder, 10 if quick else 300))]
    finally:
        shutil.rmtree(folder)


async def _measure(folder: Path, repetitions: int) -> Table:
    levels: list[Any] = [*NAMES]
    sandboxes = {level: Sandbox([str(folder)], level=level) for level in levels}
    working = {level: each for level, each in sandboxes.items() if level == "off" or each.detected.level == level}
    loop = asyncio.new_event_loop()

    def timed(start: Callable[[], Awaitable[Any]]) -> float:
        began = time.perf_counter()
        loop.run_until_complete(start())
        return (time.perf_counter() - began) * 1000

    cases = {"as before: watcher process": partial(timed, lambda: _start(folder, None))}
    cases |= {NAMES[level]: partial(timed, lambda each=each: _start(folder, each)) for level, each in working.items()}
    # Each has a sandbox of its own: one that has just started a command does not yet have the next start ready.
    readers = {level: Sandbox([str(folder)], level=level) for level, each in working.items() if each.has_read_only}
    for level, each in readers.items():
        cases[f"{NAMES[level]}, only reading"] = partial(timed, lambda each=each: _start(folder, each, "read-only"))
    load = os.getloadavg()[0]
    taken = await asyncio.to_thread(interleaved, {PLAIN: _plain, **cases}, repetitions)
    loop.close()
    for each in (*sandboxes.values(), *readers.values()):
        each.close()
    floor, middle = best(taken[PLAIN]), median(taken[PLAIN])
    columns = ["case", "ms, best", "one in ten", "median", "added, best", "added, median"]
    table = Table("A command in the sandbox: `bash -c true`", columns)
    for case, walls in taken.items():
        tenth = sorted(walls)[len(walls) // 10]
        table.rows.append([case, best(walls), tenth, median(walls), best(walls) - floor, median(walls) - middle])
    table.notes = [
        f"{repetitions} interleaved rounds, load {load:.1f} before and {os.getloadavg()[0]:.1f} after. "
        "Goals for the median: at most 3 ms added at level 1, 8 ms by bubblewrap."
    ]
    return table


async def _start(folder: Path, sandbox: Sandbox | None, reach: Reach = "workspace") -> None:
    taking = {"take_stdout": len, "take_stderr": len}
    await run_process(COMMAND, directory=str(folder), env=child_environment(), launch=sandbox, reach=reach, **taking)


def _plain() -> float:
    began = time.perf_counter()
    subprocess.run(COMMAND, check=True, env=dict(os.environ))
    return (time.perf_counter() - began) * 1000
