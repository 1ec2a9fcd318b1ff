"""Sessions on disk. `python -m benchmarks.sessions WHAT WHO FOLDER ...` does one thing once and says what it cost.

List: 1,000 sessions, beside a bare look at the folder and beside parsing. Append: beside plain writes of the same bytes. Resume: a long
session, compressed on its way, beside json.loads of its lines.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import history, sample
from benchmarks.recording import PROSE
from benchmarks.sample import best, interleaved, median, module, peak_rss_mib
from benchmarks.table import Table
from dragoman.values.messages import Message, Text, ToolResult, user
from dragoman.values.record import Compressed, Configured, Entry, Said, Started, ToolFinished, ToolStarted
from dragoman.values.usage import Usage

MODEL = "gpt-5.4"
PROTOCOL = "openai_chat"
RESULT_BYTES = 8_400
"""What makes a message about 3 kB on the average."""
COMPRESSED_EVERY = 2_000
"""Messages between one summary and the next."""


def run(quick: bool) -> list[Table]:
    repetitions = 1 if quick else 5
    folder = Path(tempfile.mkdtemp(prefix="dragoman-sessions-"))
    try:
        return [
            *_list_table(folder / "list", 50 if quick else 1_000, repetitions),
            _append_table(folder / "append", 200 if quick else 20_000, repetitions),
            _resume_table(folder / "resume", 400 if quick else 20_000, repetitions),
        ]
    finally:
        shutil.rmtree(folder)


# --- a long session -----------------------------------------------------------------------------------------------------


def session(session_id: str, messages: int, directory: str) -> Iterator[Entry]:
    """So many messages as entries; every now and then a summary takes the place of what came before it."""
    yield Started(1, 1, session_id, "0" * 64, (directory,))
    yield Configured(2, 1, MODEL, history.SYSTEM, history.TOOLS, session_id=session_id, deployment="openai")
    seq = 2
    for number, message in enumerate(history.messages(messages), 1):
        for entry in _as_entries(message, number * 1000):
            seq += 1
            yield msgspec.structs.replace(entry, seq=seq)
        if number % COMPRESSED_EVERY == COMPRESSED_EVERY // 2:  # so that half as many again stand before the next request
            seq += 1
            yield Compressed(seq, number * 1000, seq - 9, user(f"What happened so far: {PROSE * 40}"), 400_000, 4_000)


def _as_entries(message: Message, at_ms: int) -> Iterator[Entry]:
    for result in message.results:
        more = Text("".join(f"{line:5}  {PROSE}\n" for line in range(RESULT_BYTES // (len(PROSE) + 8))))
        yield ToolFinished(0, at_ms, ToolResult(result.call_id, result.name, (*result.content, more)))
    if not message.results:
        answered = message.role == "assistant"
        yield Said(0, at_ms, message, MODEL if answered else "", Usage(900, 30_000, 0, 220) if answered else None)
    for call in message.calls:
        yield ToolStarted(0, at_ms, call.id, call.name)


# --- listing ------------------------------------------------------------------------------------------------------------

LISTING = {
    "scandir": "`os.scandir` + `stat` of each file (the floor)",
    "warm": "ours, index up to date",
    "one grew": "ours, one of them has grown",
    "anew": "ours, no index: every log is read and the index made",
    "search": "ours, a search in what was said, texts indexed",
    "search anew": "ours, the first search: every text indexed",
    "parsed": "every log through `read_log`, no index",
    "json": "`json.loads` of every line",
}


def _list_table(folder: Path, sessions: int, repetitions: int) -> list[Table]:
    size = _make_sessions(folder, sessions)
    taken = _interleaved("list", LISTING, repetitions, folder)
    floor = best([each["wall_ms"] for each in taken["scandir"]])
    columns = ["case", "wall ms, best", "wall median", "CPU ms, best", "logs opened", "wall × floor", "wall ÷ parsed"]
    table = Table(f"List of {sessions:,} sessions ({size / 1e6:.0f} MB)", columns)
    parsed = best([each["wall_ms"] for each in taken["parsed"]])
    for who, about in LISTING.items():
        wall = [each["wall_ms"] for each in taken[who]]
        cpu = best([each["cpu_ms"] for each in taken[who]])
        table.rows.append([about, best(wall), median(wall), cpu, int(taken[who][0]["opened"]), best(wall) / floor, best(wall) / parsed])
    table.notes = [
        "Every sample is a fresh process with `sessions.store` loaded; what a list loads besides (sqlite3) is timed.",
        "Before a search is timed, another has been made, or a list where it is the first.",
        f"Best of {repetitions} interleaved rounds. Logs opened is counted. The page cache is warm.",
    ]
    return [table]


def _make_sessions(folder: Path, sessions: int) -> int:
    from dragoman.sessions.store import FileStore

    store, size = FileStore(folder / "sessions"), 0
    for number in range(sessions):
        session_id = f"20261115-{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-{number:08x}"
        size += os.path.getsize(store.add(folder, session(session_id, 20, str(folder))))
    return size


def _list(who: str, folder: str) -> Callable[[], object]:
    from dragoman.sessions.log import read_log
    from dragoman.sessions.projects import project_name
    from dragoman.sessions.store import FileStore

    root = Path(folder) / "sessions"
    logs = root / project_name(folder)
    store = FileStore(root)
    match who:
        case "scandir":
            return lambda: [entry.stat() for entry in os.scandir(logs)]
        case "parsed":
            return lambda: [read_log(path).entries for path in logs.glob("*.jsonl")]
        case "json":
            return lambda: [[json.loads(line) for line in path.open("rb")] for path in logs.glob("*.jsonl")]
        case "search" | "search anew":
            if who == "search anew":
                _forget_index(root)
                store.list(folder)
            else:
                store.search("nothing in file_3 question 7", folder, 10)
            return lambda: _some(store.search("nothing in file_3 question 7", folder, 10), 0)
        case "anew":
            _forget_index(root)
        case "one grew":
            _grow(store, str(max(logs.glob("*.jsonl"))))
        case _:
            pass  # the index is as the case before left it: up to date
    count = len(list(logs.glob("*.jsonl")))
    return lambda: _some(store.list(folder), count)


def _some(found: Any, at_least: int) -> None:
    assert len(found) >= at_least, len(found)


def _grow(store: Any, path: str) -> None:
    opened = store.open(path)
    opened.journal.append(Said(opened.loaded.entries[-1].seq + 1, time.time_ns() // 1_000_000, user("one more")))
    opened.journal.close()


def _forget_index(root: Path) -> None:
    for file in root.glob("index.sqlite*"):
        file.unlink()


# --- appending ----------------------------------------------------------------------------------------------------------

APPENDING = {
    "plain": "the same bytes by `os.write`, a line each (the floor)",
    "dumps": "`json.dumps` of the same values + `os.write`",
    "journal": "ours: `journal.append`",
    "plain sync": "floor + `os.fdatasync` per 10 lines",
    "journal sync": "ours + `await journal.sync()` per 10 lines",
}
SYNCED = 1_000
"""Lines in the cases that sync."""


def _append_table(folder: Path, messages: int, repetitions: int) -> Table:
    folder.mkdir()
    taken = _interleaved("append", APPENDING, repetitions, folder, str(messages))
    columns = ["case", "entries", "MB", "wall µs per entry, best", "CPU µs per entry, best", "wall × floor", "bytes written ÷ file size"]
    table = Table(f"Append of a session of {messages:,} messages", columns)
    for who, about in APPENDING.items():
        wall, cpu = (best([each[key] / each["entries"] * 1000 for each in taken[who]]) for key in ("wall_ms", "cpu_ms"))
        floor = "plain sync" if "sync" in who else "plain"
        ratio = wall / best([each["wall_ms"] / each["entries"] * 1000 for each in taken[floor]])
        first = taken[who][0]
        table.rows.append([about, int(first["entries"]), first["bytes"] / 1e6, wall, cpu, ratio, first["written"] / first["bytes"]])
    table.notes = [
        "Bytes written: what the process passed to write (`/proc/self/io`) while it worked; the goal is ≤ 1.2.",
        f"The cases that sync write the first {SYNCED:,} entries. Encoding is in ours and in json.dumps, not in the floor.",
    ]
    return table


def _append(who: str, folder: str, messages: str) -> Callable[[], dict[str, float]]:
    from dragoman.sessions.log import encode_line
    from dragoman.sessions.store import FileStore

    made = list(session("20261115-120102-1a2b3c4d", int(messages), folder))
    made = made[:SYNCED] if "sync" in who else made
    path = os.path.join(folder, f"{os.urandom(8).hex()}")
    if "journal" in who:
        opened = FileStore(path).create(folder)
        journal, rest = opened.journal, made[1:]
        path = opened.path

        async def append() -> None:
            for number, entry in enumerate(rest):
                journal.append(entry)
                if "sync" in who and number % 10 == 9:
                    await journal.sync()

        def work() -> None:
            import asyncio

            asyncio.run(append())
    else:
        lines = [msgspec.to_builtins(entry) for entry in made] if who == "dumps" else [encode_line(entry) for entry in made]
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

        def work() -> None:
            for number, line in enumerate(lines):
                os.write(descriptor, line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() + b"\n")
                if "sync" in who and number % 10 == 9:
                    os.fdatasync(descriptor)

    def measured() -> dict[str, float]:
        before, at_first = _written(), os.path.getsize(path)
        work()
        written, size = _written() - before, os.path.getsize(path)
        os.unlink(path)
        return {"entries": len(made), "bytes": size, "written": written + at_first}

    return measured


def _written() -> int:
    """Bytes this process has passed to write."""
    told = Path("/proc/self/io").read_text(encoding="ascii")
    return int(told.partition("wchar:")[2].split()[0])


# --- resuming -----------------------------------------------------------------------------------------------------------

RESUMING = {
    "read": "read the file, split its lines",
    "json": "`json.loads` of the lines (the floor)",
    "read_log": "ours: `read_log`, checksums checked",
    "fold": "ours: `read_log` and the `View`'s fold",
    "open": "ours: found as `latest`, index up to date, opened for writing, `History`",
    "request": "ours: the same, and the first request prepared",
    "cold": "ours: the same, with no index",
}


def _resume_table(folder: Path, messages: int, repetitions: int) -> Table:
    from dragoman.sessions.store import FileStore

    path = FileStore(folder / "sessions").add(folder, session("20261115-120102-1a2b3c4d", messages, str(folder)))
    taken = _interleaved("resume", RESUMING, repetitions, folder)
    floor = best([each["wall_ms"] for each in taken["json"]])
    columns = ["case", "wall ms, best", "wall median", "CPU ms, best", "wall × floor", "peak RSS MiB", "RSS over an idle process"]
    table = Table(f"Resume of {messages:,} messages ({os.path.getsize(path) / 1e6:.0f} MB)", columns)
    for who, about in RESUMING.items():
        wall = [each["wall_ms"] for each in taken[who]]
        cpu, rss, idle = (best([each[key] for each in taken[who]]) for key in ("cpu_ms", "rss_mib", "idle_mib"))
        table.rows.append([about, best(wall), median(wall), cpu, best(wall) / floor, rss, rss - idle])
    table.notes = [
        f"Compressed every {COMPRESSED_EVERY:,} messages, last {COMPRESSED_EVERY // 2:,} before its end; the request is for {PROTOCOL}.",
        "Goals: < 1,500 ms and < 300 MiB.",
        "Everything that was read is held to the end, as a resumed session holds its entries. An idle process has our modules loaded.",
    ]
    return table


def _resume(who: str, folder: str) -> Callable[[], object]:
    from benchmarks import ours
    from dragoman.context.view import View
    from dragoman.loop.history import History
    from dragoman.sessions.log import read_log
    from dragoman.sessions.store import FileStore

    store = FileStore(Path(folder) / "sessions")
    path = store.find("latest", folder).path
    provider: Any = ours.provider(PROTOCOL, "http://127.0.0.1:1").provider
    if who == "cold":
        _forget_index(Path(store.root))

    def fold() -> View:
        view = View()
        for entry in read_log(path).entries:
            view.feed(entry)
        return view

    def resumed() -> History:
        found = store.open(store.find("latest", folder).path)
        return History(found.journal, entries=found.loaded.entries)

    def request() -> tuple[History, object]:
        again = resumed()
        return again, provider.prepare(again.request)

    def lines() -> list[bytes]:
        return Path(path).read_bytes().split(b"\n")

    def loads() -> list[object]:
        with open(path, "rb") as file:
            return [json.loads(line) for line in file]

    cases: dict[str, Callable[[], object]] = {
        "read": lines,
        "json": loads,
        "read_log": lambda: read_log(path),
        "fold": fold,
        "open": resumed,
        "request": request,
        "cold": request,
    }
    return cases[who]


# --- one process --------------------------------------------------------------------------------------------------------


def _interleaved(what: str, cases: dict[str, str], repetitions: int, *arguments: object) -> dict[str, list[dict[str, float]]]:
    argv = {who: module("sessions", what, who, *map(str, arguments)) for who in cases}
    return interleaved({who: lambda argv=argv[who]: json.loads(sample.run(argv).said) for who in cases}, repetitions)


def worker(what: str, who: str, *arguments: str) -> None:
    makers: dict[str, Callable[..., Callable[[], object]]] = {"list": _list, "append": _append, "resume": _resume}
    work = makers[what](who, *arguments)
    opened = _count_opened()
    idle, before, before_cpu = peak_rss_mib(), time.perf_counter(), time.process_time()
    value = work()
    cpu, wall = time.process_time() - before_cpu, time.perf_counter() - before
    told = {"wall_ms": wall * 1000, "cpu_ms": cpu * 1000, "idle_mib": idle, "rss_mib": peak_rss_mib(), "opened": len(opened)}
    print(json.dumps(told | (value if isinstance(value, dict) else {})))


def _count_opened() -> list[str]:
    """The logs that are opened from here on."""
    opened: list[str] = []

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(".jsonl"):
            opened.append(str(arguments[0]))

    sys.addaudithook(note)
    return opened


if __name__ == "__main__":
    worker(*sys.argv[1:])
