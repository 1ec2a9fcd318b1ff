"""The two stores beside each other. `python -m benchmarks.stores WHAT KIND FOLDER COUNT` does one thing once and says what it cost.

Turns: four entries and a sync, by one session, and by 16 on one loop at once. Open: a long session, and one by its key among many.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import sample
from benchmarks.recording import PROSE
from benchmarks.sample import best, interleaved, median, module
from benchmarks.sessions import session
from benchmarks.table import Table
from dragoman.values.messages import user
from dragoman.values.record import Said

if TYPE_CHECKING:
    from dragoman.stores import FileStore, SqliteStore, StoredSession

KINDS = {"files": "`FileStore`", "sqlite": "`SqliteStore`"}
WHAT = {
    "turns": "a turn: 4 entries (2 kB), one sync",
    "turns of 16": "a turn of each of 16 sessions at once, on one loop",
    "open": "open a session of {count:,} messages for writing",
    "by key": "open one by its key among {count:,} sessions",
    "list": "list {count:,} sessions, nothing new since the last time",
}
SESSION = "20261115-120102-1a2b3c4d"


def run(quick: bool) -> list[Table]:
    repetitions = 1 if quick else 5
    counts = {"turns": 20, "turns of 16": 5, "open": 200, "by key": 50, "list": 50}
    if not quick:
        counts = {"turns": 200, "turns of 16": 50, "open": 20_000, "by key": 1_000, "list": 1_000}
    folder = Path(tempfile.mkdtemp(prefix="dragoman-stores-"))
    try:
        return [_table(folder, counts, repetitions)]
    finally:
        shutil.rmtree(folder)


def _table(folder: Path, counts: dict[str, int], repetitions: int) -> Table:
    columns = ["what", "store", "wall ms, best", "wall median", "CPU ms, best", "wall × files", "CPU × files"]
    table = Table("The stores beside each other", columns)
    for what, about in WHAT.items():
        count = counts[what]
        for kind in KINDS:
            _fill(kind, folder / what, what, count)
        argv = {kind: module("stores", what, kind, str(folder / what), str(count)) for kind in KINDS}
        taken = interleaved({kind: lambda argv=argv[kind]: json.loads(sample.run(argv).said) for kind in KINDS}, repetitions)
        floor = {key: best([each[key] for each in taken["files"]]) for key in ("wall_ms", "cpu_ms")}
        for kind, name in KINDS.items():
            wall, cpu = ([each[key] for each in taken[kind]] for key in ("wall_ms", "cpu_ms"))
            ratios = [best(wall) / floor["wall_ms"], best(cpu) / floor["cpu_ms"]]
            table.rows.append([about.format(count=count), name, best(wall), median(wall), best(cpu), *ratios])
    table.notes = [
        f"Best of {repetitions} interleaved rounds, each a fresh process with its modules loaded; the page cache is warm.",
        f"Turns are means over {counts['turns']} and, of 16 sessions, {counts['turns of 16']} turns; CPU is that of all threads.",
    ]
    return table


def _store(kind: str, folder: str | Path) -> FileStore | SqliteStore:
    import sqlite3  # noqa: F401 (what is timed is the work, not the loading)

    from dragoman.stores import FileStore, SqliteStore

    return FileStore(Path(folder) / "sessions") if kind == "files" else SqliteStore(Path(folder) / "chats.db")


def _fill(kind: str, folder: Path, what: str, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    store = _store(kind, folder)
    match what:
        case "open":
            store.add(folder, session(SESSION, count, str(folder)))
        case "by key" | "list":
            for number in range(count):
                opened = store.create(
                    folder, f"20261115-{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-{number:08x}", key=f"user-{number}"
                )
                for each in range(2, 6):
                    opened.journal.append(_said(each))
                opened.journal.close()
            store.list()
        case _:
            pass  # what is written is what is timed


def _said(seq: int) -> Said:
    return Said(seq, time.time_ns() // 1_000_000, user((PROSE * 8)[:500]))


def _work(what: str, kind: str, folder: str, count: int) -> tuple[Callable[[], object], int]:
    """What is timed, and by how much it is divided."""
    store = _store(kind, folder)
    match what:
        case "turns" | "turns of 16":
            opened = [store.create(folder) for _ in range(16 if what == "turns of 16" else 1)]
            asyncio.run(_turns(opened, 1))
            return lambda: asyncio.run(_turns(opened, count, first=6)), count
        case "open":
            return lambda: store.open(SESSION), 1
        case "by key":
            return lambda: store.open_or_create(f"user-{count // 2}", folder), 1
        case _:
            return lambda: store.list(), 1


async def _turns(opened: list[StoredSession], turns: int, first: int = 2) -> None:
    for turn in range(turns):
        for each in opened:
            for seq in range(4):
                each.journal.append(_said(first + turn * 4 + seq))
        await asyncio.gather(*(each.journal.sync() for each in opened))
    assert all(each.journal.is_saved for each in opened)


def worker(what: str, kind: str, folder: str, count: str) -> None:
    work, parts = _work(what, kind, folder, int(count))
    before, before_cpu = time.perf_counter(), time.process_time()
    value = work()
    cpu, wall = time.process_time() - before_cpu, time.perf_counter() - before
    print(json.dumps({"wall_ms": wall * 1000 / parts, "cpu_ms": cpu * 1000 / parts}), flush=True)
    del value
    os._exit(0)  # sessions are left open: closing them is not what is measured


if __name__ == "__main__":
    worker(*sys.argv[1:])
