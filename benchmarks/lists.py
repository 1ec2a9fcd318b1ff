"""What a user waits for while choosing: a file after `@` in a tree of 200,000, and `/resume` among 10,000 sessions."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.sample import best, interleaved, median
from benchmarks.sessions import session
from benchmarks.table import Table
from benchmarks.tree import nested
from dragoman.sessions.projects import session_id_of
from dragoman.sessions.store import FileStore
from dragoman.tui.completion import FileIndex
from dragoman.tui.keys import Key
from dragoman.tui.picker import Picker
from dragoman.tui.session_picker import SessionPicker

WINDOW = (120, 40)
WORDS = {
    "a letter": "m",
    "the beginning of a name": "file1",
    "a part of a path": "module0042",
    "letters in order": "prt7mdl9",
    "nothing": "zzzz",
}


def run(quick: bool) -> list[Table]:
    folder = Path(tempfile.mkdtemp(prefix="dragoman-lists-"))
    repetitions = 1 if quick else 7
    try:
        return [
            _files_table(folder / "tree", 2_000 if quick else 200_000, repetitions),
            _sessions_table(folder, 100 if quick else 10_000, repetitions),
        ]
    finally:
        shutil.rmtree(folder)


# --- files after an `@` --------------------------------------------------------------------------------------------------


def _files_table(folder: Path, files: int, repetitions: int) -> Table:
    nested(folder, files)
    index = FileIndex(str(folder))
    indexed_ms, longest_ms = asyncio.run(_list_files(index))
    paths = [str(path.relative_to(folder)).casefold() for path in folder.rglob("*")]
    cases = {about: lambda word=word: _timed_ms(lambda: index.find(word)) for about, word in WORDS.items()}
    taken = interleaved({"floor": lambda: _timed_ms(lambda: [path for path in paths if "zzzz" in path]), **cases}, repetitions)
    floor = best(taken["floor"])
    table = Table(f"`@` in a tree of {files:,} files", ["what is typed", "ms, best", "median", "× floor", "goal ms"])
    table.rows = [[about, best(taken[about]), median(taken[about]), best(taken[about]) / floor, 50] for about in WORDS]
    table.rows.append(["`in` over the same paths, in a loop (the floor)", floor, median(taken["floor"]), 1.0, None])
    table.notes = [
        f"The first index took {indexed_ms:,.0f} ms in the background; no key waited longer than {longest_ms:,.0f} ms for it.",
        f"Best of {repetitions} interleaved rounds, in one process.",
    ]
    return table


async def _list_files(index: FileIndex) -> tuple[float, float]:
    """How long the index takes, and the longest that the event loop stood still meanwhile."""
    listed = asyncio.Event()
    index.on_listed = listed.set
    began = before = time.perf_counter()
    longest = 0.0
    index.list_when_old()
    while not listed.is_set():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    return (before - began) * 1000, longest * 1000


# --- sessions ------------------------------------------------------------------------------------------------------------


def _sessions_table(folder: Path, sessions: int, repetitions: int) -> Table:
    store = FileStore(folder / "sessions")
    for number in range(sessions):
        session_id = f"20261115-{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-{number:08x}"
        store.add(folder, session(session_id, 4, str(folder)))
    store.list(folder)  # makes the index, as the sessions themselves do while they are held
    opened: list[Picker] = []
    conversation: Any = SimpleNamespace(
        store=store,
        setup=SimpleNamespace(workspace=str(folder)),
        agent=SimpleNamespace(session_id=session_id_of("none.jsonl")),
        canvas=SimpleNamespace(open=opened.append),
    )

    def open_list() -> float:
        opened.clear()  # that of the round before
        return _timed_ms(lambda: (SessionPicker(conversation).open(), opened[0].rows(*WINDOW)))

    def press(key: str) -> float:
        return _timed_ms(lambda: (opened[0].press(Key(key, key)), opened[0].rows(*WINDOW)))

    cases: dict[str, Callable[[], float]] = {
        "`os.scandir` + `stat` of each log (the floor)": lambda: _timed_ms(
            lambda: [path.stat() for path in (folder / "sessions").rglob("*.jsonl")]
        ),
        "the list opens, first screen included": open_list,
        "a letter is typed into its filter": lambda: press("7"),
        "the next row": lambda: press("down"),
    }
    taken = interleaved(cases, repetitions)
    floor = best(next(iter(taken.values())))
    table = Table(f"`/resume` among {sessions:,} sessions", ["what happens", "ms, best", "median", "× floor", "goal ms"])
    for at, (about, samples) in enumerate(taken.items()):
        table.rows.append([about, best(samples), median(samples), best(samples) / floor, 150 if at else None])
    table.notes = [f"Best of {repetitions} interleaved rounds, in one process; the index of sessions is up to date."]
    return table


def _timed_ms(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000
