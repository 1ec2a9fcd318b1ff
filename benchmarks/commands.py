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
        return [asyncio.run(_measure(folder, 10 if quick else 200))]
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
    taken = await asyncio.to_thread(interleaved, {PLAIN: _plain, **cases}, repetitions)
    loop.close()
    for each in sandboxes.values():
        each.close()
    floor, middle = best(taken[PLAIN]), median(taken[PLAIN])
    table = Table("A command in the sandbox: `bash -c true`", ["case", "ms, best", "median", "added, best", "added, median"])
    for case, walls in taken.items():
        table.rows.append([case, best(walls), median(walls), best(walls) - floor, median(walls) - middle])
    table.notes = [f"{repetitions} interleaved rounds. Goals: at most 3 ms added at level 1, 8 ms by bubblewrap."]
    return table


async def _start(folder: Path, sandbox: Sandbox | None) -> None:
    await run_process(COMMAND, directory=str(folder), env=child_environment(), take_stdout=len, take_stderr=len, launch=sandbox)


def _plain() -> float:
    began = time.perf_counter()
    subprocess.run(COMMAND, check=True, env=dict(os.environ))
    return (time.perf_counter() - began) * 1000
