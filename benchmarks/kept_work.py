"""What keeping uncommitted work adds to a command: `bash -c true` at level 1 in a tree of 5,000 files, with and without. Linux only.

Time from the start of the call to its recorded end, as a run waits for it; the look afterwards goes on while the model is asked.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.commands import COMMAND
from benchmarks.sample import best, interleaved, median
from benchmarks.table import Table
from dragoman.loop.history import History
from dragoman.loop.kept_work import KeptWork
from dragoman.policy.guarded_files import is_guarded
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.checkpoints import Checkpoints
from dragoman.sessions.store import FileStore
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
from dragoman.values.messages import ToolCall, tool_result

FILES, FOLDERS = 5_000, 250


def run(quick: bool) -> list[Table]:
    folder = Path(tempfile.mkdtemp(prefix="dragoman-kept-", dir="/var/tmp"))
    try:
        return [asyncio.run(_measure(folder, 10 if quick else 200))]
    finally:
        shutil.rmtree(folder)


class _Bench:
    """Calls in one tree, recorded in a log of their own."""

    def __init__(self, tree: Path, home: Path, *, keeps: bool) -> None:
        store = FileStore(home)
        stored = store.create(str(tree), store.new_id(), directories=(str(tree),), versions=())
        self.blobs = FileBlobs(home / "blobs")
        self.work = KeptWork(lambda: [str(tree)], is_guarded, self.blobs)
        self.sandbox = Sandbox([str(tree)], level=1)
        watch = (lambda call: self.work) if keeps else (lambda call: None)
        self.checkpoints = Checkpoints(
            History(stored.journal, entries=stored.loaded.entries), self.blobs, lambda call, arguments: (), watch=watch
        )
        self._tree, self._calls = tree, 0

    async def call(self) -> tuple[float, float]:
        """How long a run waits for the call, and how long what is found afterwards takes until it is on the record."""
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", "run_shell")
        began = time.perf_counter()
        self.checkpoints.start_tool(call)
        await self.checkpoints.sync()
        taking = {"take_stdout": len, "take_stderr": len}
        await run_process(COMMAND, directory=str(self._tree), env=child_environment(), launch=self.sandbox, reach="workspace", **taking)
        self.checkpoints.finish_tool(tool_result(call, "done"))
        await self.checkpoints.sync()
        ended = time.perf_counter()
        await self.checkpoints.settle()
        return (ended - began) * 1000, (time.perf_counter() - ended) * 1000


async def _measure(folder: Path, repetitions: int) -> Table:
    tree = _make_tree(folder / "tree")
    benches = {name: _Bench(tree, folder / name, keeps=name == "with") for name in ("without", "with")}
    began = time.perf_counter()
    await benches["with"].call()
    first = (time.perf_counter() - began) * 1000
    await benches["without"].call()
    await asyncio.sleep(0.3)
    await benches["with"].call()
    load = os.getloadavg()[0]
    loop = asyncio.new_event_loop()
    cases = {name: (lambda bench=bench: loop.run_until_complete(bench.call())) for name, bench in benches.items()}
    cases["look"] = lambda: (_timed(benches["with"].work.beside), 0.0)
    taken = await asyncio.to_thread(interleaved, cases, repetitions)
    loop.close()
    for bench in benches.values():
        bench.sandbox.close()
    table = Table(f"A command in an unchanged tree of {FILES:,} files", ["case", "ms, best", "median", "added, best", "added, median"])
    waits = {name: [each[0] for each in times] for name, times in taken.items()}
    for name, title in (("without", "without looking"), ("with", "with uncommitted work kept")):
        walls, plain = waits[name], waits["without"]
        table.rows.append([title, best(walls), median(walls), best(walls) - best(plain), median(walls) - median(plain)])
    after = [each[1] for each in taken["with"]]
    table.rows.append(["the look afterwards, while the model is asked", best(after), median(after), 0.0, 0.0])
    table.rows.append(["one look", best(waits["look"]), median(waits["look"]), 0.0, 0.0])
    table.notes = [
        f"{repetitions} interleaved rounds, load {load:.1f} before and {os.getloadavg()[0]:.1f} after; "
        f"the first call of the session, which reads git's index and trees: {first:.0f} ms. Goal: at most 5 ms added."
    ]
    return table


def _timed(do: object) -> float:
    began = time.perf_counter()
    do()  # type: ignore[operator]
    return (time.perf_counter() - began) * 1000


def _make_tree(tree: Path) -> Path:
    for number in range(FOLDERS):
        inner = tree / f"part-{number // 25}" / f"package-{number}"
        inner.mkdir(parents=True)
        for file in range(FILES // FOLDERS):
            (inner / f"module_{file}.py").write_text(f"NUMBER = {number}\nFILE = {file}\n" * 20)
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run(["git", "-C", str(tree), *who, *words], check=True)
    (tree / "notes.md").write_text("not committed\n")
    time.sleep(0.3)
    return Path(os.path.realpath(tree))
