"""What is sent after a resume is, byte for byte, what the live session would have sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from destinations import MAIN, connection
from dragoman.foreign.sessions import import_session
from dragoman.loop.history import History
from dragoman.sessions.journal import SharedSync
from dragoman.sessions.opening import create, open_for_writing, open_read_only
from dragoman.sessions.sqlite.database import database_at
from dragoman.sessions.sqlite.journal import SqliteJournal
from dragoman.sessions.sqlite.lock import SessionLock
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.values.messages import user
from dragoman.values.record import Started
from property.test_fold import lived

ID = "20261115-120000-0123abcd"


def no_fault(message: str) -> None:
    raise AssertionError(message)


def kept(live: History, path: Path, kind: str = "files") -> None:
    """The session as it would lie on disk, had it been kept from the start."""
    if kind == "files":
        journal: SharedSync = create(str(path), Started(0, 0, ID), no_fault)
    else:
        database = database_at(str(path))
        database.hold()
        journal = SqliteJournal(database, SessionLock(database.files, ID), ID, "project", on_fault=no_fault)
        journal.append(Started(0, 0, ID))
    for entry in live.entries:
        journal.append(entry)
    asyncio.run(journal.sync())
    journal.close()


@contextmanager
def resumed(path: Path, kind: str = "files") -> Iterator[History]:
    if kind == "files":
        journal, loaded = open_for_writing(str(path), no_fault)
    else:
        opened = SqliteStore(path).open(ID, no_fault)
        journal, loaded = opened.journal, opened.loaded
    assert not loaded.damage
    yield History(journal, entries=loaded.entries)
    journal.close()


@pytest.mark.parametrize("where", MAIN)
@given(data=st.data())
def test_a_resumed_session_sends_the_same_bytes(where: str, data: st.DataObject) -> None:
    """Pruned, compressed, switched, cancelled, rejected and rewound entries included."""
    check_resumed(where, "files", data)


@settings(max_examples=12)
@given(data=st.data())
def test_one_resumed_from_a_database_sends_the_same_bytes(data: st.DataObject) -> None:
    check_resumed("anthropic", "sqlite", data)


def check_resumed(where: str, kind: str, data: st.DataObject) -> None:
    live = lived(data).history
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{ID}.jsonl")
        kept(live, path, kind)
        provider = connection(where)
        with resumed(path, kind) as again:
            for history in (live, again):
                history.say(user("next"))
            assert provider.prepare(again.request).body == provider.prepare(live.request).body
            assert again.transcript() == live.transcript()
            assert again.usage == live.usage
        read = open_read_only(str(path)) if kind == "files" else SqliteStore(path).read(ID)
        third = History(entries=read.entries)
        assert third.request == live.request, "what was said after the resume is in the same file"


def traces(corpora: Path) -> list[Path]:
    return sorted([*(corpora / "traces" / "claude-code").glob("*.jsonl"), *(corpora / "traces" / "pi-mono").glob("*.jsonl")])


@pytest.mark.parametrize("where", MAIN)
def test_every_importable_trace_sends_the_same_bytes_after_a_resume(where: str, corpora: Path, tmp_path: Path) -> None:
    for trace in traces(corpora):
        live = History(entries=import_session(str(trace)).entries)
        path = tmp_path / f"{trace.stem[:8]}-{ID}.jsonl"
        kept(live, path)
        provider = connection(where)
        with resumed(path) as again:
            for history in (live, again):
                history.say(user("next"))
            assert provider.prepare(again.request).body == provider.prepare(live.request).body, trace.name
