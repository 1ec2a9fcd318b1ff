"""The store in one SQLite file, where it differs from files: its database damaged, torn, full, foreign, old, shared by many."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import dragoman as dm
from dragoman.base.ids import new_session_id
from dragoman.errors import InputError, InUse, NoSession
from dragoman.loop.history import History
from dragoman.options import SessionOptions, ToolOptions
from dragoman.sessions.export import to_json
from dragoman.sessions.log import encode_line
from dragoman.sessions.sqlite import opening as sqlite_opening
from dragoman.sessions.sqlite.database import database_at
from dragoman.sessions.sqlite.journal import SqliteJournal, _save_late
from dragoman.stores import FileStore, SqliteStore, Store
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.messages import Message, Text, user
from dragoman.values.record import Entry, Said, Started, Titled
from sessions.entries import SESSION, entry, sessions
from sessions.stores import add_to, any_store, kind, session_id, workspace

__all__ = ["any_store", "kind", "workspace"]

TESTS = Path(__file__).parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "chats.db"


def agent_in(store: Store, key: str = "", script: str = "text: Good.") -> dm.Agent:
    options = SessionOptions(store, key=key)
    return dm.Agent(ScriptedProvider(script), tools=ToolOptions(builtin=False), session=options)


def run_python(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the same as in files


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For sessions of all examples: making a database takes longer than an example does."""
    return tmp_path_factory.mktemp("shelf")


@settings(max_examples=25)
@given(made=sessions(max_size=12), cuts=st.lists(st.integers(1, 12), max_size=2))
@example(made=(Titled(2, 2, "half \ud800 a pair"),), cuts=[])
def test_any_entries_read_back_the_same_from_both(shelf: Path, made: tuple[Entry, ...], cuts: list[int]) -> None:
    """Whatever was written, in whatever batches, and whoever reads it: open, read, fork, list, export."""
    rest = [each for each in made if each.seq > 1]
    stores: tuple[FileStore | SqliteStore, ...] = (FileStore(shelf / "sessions"), SqliteStore(shelf / "chats.db"))
    own_id, copy_id = (new_session_id() for _ in range(2))
    found = []
    for store in stores:
        written = store.create(shelf, own_id)
        for number, each in enumerate(rest):
            written.journal.append(each)
            if number in cuts:
                asyncio.run(written.journal.sync())
        written.journal.close()
        assert written.journal.is_saved
        again = store.open(own_id)
        again.journal.close()
        assert store.read(own_id) == again.loaded == store.read(written.path)
        head, *entries = again.loaded.entries
        assert isinstance(head, Started)
        copy = store.read(store.fork(own_id, upto=5, session_id=copy_id)).entries
        summary = replace(store.find(own_id, shelf), path="", started_ms=0, updated_ms=0, size=0)
        exported = to_json([replace(head, timestamp_ms=1), *entries], store.blobs_beside(own_id))
        found.append((entries, copy[1:], again.loaded.notices(), summary, exported, History(entries=entries).request))
    assert found[0] == found[1]


def test_what_was_said_is_searched_in_any_script(any_store: Store, workspace: Path) -> None:
    add_to(any_store, workspace, 1, "Where is the Tidé computed?", "In tides.py.")
    add_to(any_store, workspace, 2, "你好，世界", "hello")
    assert [hit.summary.session_id for hit in any_store.search("tide COMPUTED")] == [session_id(1)]
    [hit] = any_store.search("世界", workspace)
    assert (hit.summary.session_id, hit.role, hit.seq, hit.matches) == (session_id(2), "user", 3, 1)
    opened = any_store.open(session_id(2))
    opened.journal.append(Said(9, 9, user("and the tide"), by="person"))
    opened.journal.close()
    assert {hit.summary.session_id for hit in any_store.search("tide")} == {session_id(1), session_id(2)}, "said since the last search"
    assert any_store.search("nowhere") == any_store.search(" ") == []
    any_store.delete(session_id(1))
    assert [hit.summary.session_id for hit in any_store.search("tide")] == [session_id(2)]


def test_nothing_there_is_nothing_made(any_store: Store, workspace: Path, tmp_path: Path) -> None:
    assert (list(any_store.list()), list(any_store.search("x"))) == ([], [])
    for method in (any_store.open, any_store.read, any_store.delete, any_store.fork):
        with pytest.raises(NoSession, match="there is no session"):
            method(session_id(1))
    with pytest.raises(NoSession):
        any_store.find("latest", workspace)
    assert not (tmp_path / "data").exists()


def test_images_and_copies_for_undo_are_kept_as_long_as_somebody_names_them(any_store: Store, workspace: Path) -> None:
    first, second = any_store.create(workspace), any_store.create(workspace)
    own, shared = first.blobs.put("image/png", b"own"), first.blobs.put("image/png", b"shared")
    for each, blobs in ((first, (own, shared)), (second, (shared,))):
        each.journal.append(Said(2, 2, Message("user", (Text("see"), *blobs)), by="person"))
        each.journal.close()
    assert any_store.blobs_beside(second.path).get(shared.sha256) == b"shared", "named there, and put elsewhere"
    assert any_store.delete(first.session_id).blobs == 1
    kept = any_store.blobs_beside(second.path)
    assert (kept.get(own.sha256), kept.get(shared.sha256)) == (None, b"shared")
    assert any_store.delete(second.session_id).blobs == 1
    assert any_store.blobs_beside(second.path).get(shared.sha256) is None


def test_the_short_form_and_everything_an_agent_does_with_a_session(any_store: Store, tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    script = 'call: write_file {"path": "notes.txt", "content": "after"}\n---\ntext: Written.'
    with dm.coding_agent(ScriptedProvider(script), workspace=tmp_path, approval="auto-edit", session=any_store) as agent:
        assert agent.run_sync("Write it.").text == "Written."
        assert target.read_text() == "after"
        assert agent.not_saved == ""
        agent.undo()
        assert not target.exists()
    with dm.coding_agent(ScriptedProvider("text: Yes."), workspace=tmp_path, session=SessionOptions(any_store, resume="latest")) as again:
        assert again.session_id == agent.session_id
        assert again.history.request == agent.history.request
        assert again.run_sync("Still there?").text == "Yes."
    assert any_store.list()[0].messages == 5


# --- files of its own


def test_only_the_user_can_read_it_whatever_the_umask(path: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with agent_in(SqliteStore(path), "user-1") as agent:
            agent.run_sync("hi")
            modes = {each: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
    finally:
        os.umask(before)
    assert {each.name for each in modes} >= {"chats.db", "chats.db-wal", "chats.db-shm", "chats.db-files"}
    assert {mode for each, mode in modes.items() if each.is_file()} == {0o600}
    assert {mode for each, mode in modes.items() if each.is_dir()} == {0o700}


def test_a_closed_store_is_one_file_that_can_be_moved(path: Path, tmp_path: Path) -> None:
    with agent_in(SqliteStore(path), "user-1") as agent:
        agent.run_sync("hi")
    SqliteStore(path).list()
    moved = tmp_path / "moved.db"
    path.rename(moved)
    [summary] = SqliteStore(moved).list()
    assert summary.path == str(moved / agent.session_id), "and not the path it had when it was last listed"
    with agent_in(SqliteStore(moved), "user-1") as again:
        assert again.session_id == agent.session_id


def test_tools_may_not_write_it_unasked(path: Path) -> None:
    with agent_in(SqliteStore(path), "user-1") as agent:
        held = agent._harness._is_own
        for name in ("chats.db", "chats.db-wal", "chats.db-files/locks/x"):
            assert held(str(path.parent / name))
        assert not held(str(path.parent / "other.db"))


def test_deleted_words_are_in_none_of_its_files(path: Path, workspace: Path) -> None:
    store = SqliteStore(path)
    add_to(store, workspace, 1, "the zanzibarium plan", "I see.")
    add_to(store, workspace, 2)
    store.search("zanzibarium")
    assert any(b"zanzibarium" in each.read_bytes() for each in path.parent.iterdir() if each.is_file())
    size = path.stat().st_size
    store.delete(session_id(1))
    assert not any(b"zanzibarium" in each.read_bytes() for each in path.parent.iterdir() if each.is_file())
    assert path.stat().st_size <= size
    assert [each.session_id for each in store.list()] == [session_id(2)]


# --- what is wrong with it


def filled(path: Path, workspace: Path, count: int = 3) -> SqliteStore:
    store = SqliteStore(path)
    for number in range(1, count + 1):
        add_to(store, workspace, number, "prompt " * 200, "answer " * 200)
    return store


@pytest.mark.parametrize("harm", ["garbage", "a page", "cut short"])
def test_a_damaged_database_says_so_and_what_to_do(path: Path, workspace: Path, harm: str) -> None:
    store = filled(path, workspace, 30)
    whole = path.read_bytes()
    match harm:
        case "garbage":
            path.write_bytes(b"this is no database" * 100)
        case "a page":
            path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
        case _:
            path.write_bytes(whole[: len(whole) // 2])
    before = path.read_bytes()
    for attempt in (store.list, lambda: store.read(session_id(1)), lambda: agent_in(store, "user-1"), lambda: store.delete(session_id(1))):
        with pytest.raises(InputError, match=r"is damaged .*restore it from a copy.*\.recover"):
            attempt()
    assert path.read_bytes() == before, "and it is left as it is"


def test_a_damaged_row_is_told_and_everything_else_is_read(path: Path, workspace: Path) -> None:
    store = filled(path, workspace, 1)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE entries SET line = replace(line, 'answer', 'Answer') WHERE place % 4294967296 = 3")
    database.close()
    opened = store.open(session_id(1))
    assert [each.seq for each in opened.loaded.entries] == [1, 2, 3]
    assert "line 4 of the session" in opened.loaded.notices()[0]
    opened.journal.append(entry(5))
    opened.journal.close()
    assert [each.seq for each in store.read(session_id(1)).entries] == [1, 2, 3, 5], "and what is appended is not glued to it"
    assert store.list()[0].damaged == 1
    assert store.delete_expired(count=0).session_ids == ()


def test_another_programs_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (theirs)")
    database.close()
    before = path.read_bytes()
    for attempt in (SqliteStore(path).list, lambda: agent_in(SqliteStore(path), "user-1")):
        with pytest.raises(InputError, match="another program's database"):
            attempt()
    assert path.read_bytes() == before


def test_a_database_of_a_later_version_is_left_alone(path: Path, workspace: Path) -> None:
    filled(path, workspace)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    for attempt in (SqliteStore(path).list, lambda: agent_in(SqliteStore(path), "user-1")):
        with pytest.raises(InputError, match=r"later version of Dragoman .*99"):
            attempt()


def test_an_older_schema_is_brought_up_to_date_once_and_whole(path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(path, workspace)
    before = [store.read(each.session_id) for each in store.list()]

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''")
        raise sqlite3.OperationalError("interrupted")

    def migrate(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''")

    monkeypatch.setattr(sqlite_opening, "STEPS", (*sqlite_opening.STEPS, fail))
    with pytest.raises(InputError, match="interrupted"):
        store.list()
    monkeypatch.setattr(sqlite_opening, "STEPS", (sqlite_opening.STEPS[0], migrate))
    assert [store.read(each.session_id) for each in store.list()] == before
    with agent_in(store, "user-1") as agent:
        agent.run_sync("hi")
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT owner FROM sessions").fetchall() == [("",)] * 4
        assert database.execute("PRAGMA user_version").fetchone() == (2,)
    database.close()


@pytest.mark.parametrize("what", ["folder", "under a file", "pipe"])
def test_what_can_be_no_file_is_refused(path: Path, what: str) -> None:
    match what:
        case "folder":
            path.mkdir(parents=True)
        case "under a file":
            path.parent.write_text("a file")
        case _:
            path.parent.mkdir()
            os.mkfifo(path)
    with pytest.raises(InputError):
        agent_in(SqliteStore(path), "user-1")
    if what != "under a file":
        with pytest.raises(InputError):
            agent_in(SqliteStore(path))
        return
    with agent_in(SqliteStore(path)) as agent:  # nothing is there yet; when there should be, the conversation goes on all the same
        assert agent.run_sync("hi").text == "Good."
        assert "cannot be saved" in agent.not_saved


def test_in_memory_is_not_a_store() -> None:
    with pytest.raises(InputError, match="leave out the store"):
        SqliteStore(":memory:")


def test_one_that_cannot_be_written_is_read(path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root everything can be written, so what the system would say is said for it; SQLite itself opens it to read only."""
    filled(path, workspace)
    monkeypatch.setattr(sqlite_opening.os, "access", lambda path, mode: mode != os.W_OK)
    store = SqliteStore(path)
    assert len(store.list()) == 3
    assert store.read(session_id(1)).entries
    assert [hit.summary.session_id for hit in store.search("answer", limit=1)] == [session_id(3)], "in a table of its own"
    for attempt in (lambda: store.open(session_id(1)), lambda: store.create(workspace), lambda: agent_in(store, "user-1")):
        with pytest.raises(InputError, match=r"cannot be saved .*Permission denied"):
            attempt()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert [each.session_id for each in SqliteStore(path).list()] == [session_id(3), session_id(2), session_id(1)]
    finally:
        path.parent.chmod(0o700)


# --- crashes and faults of the disk


def test_a_log_of_sqlite_cut_or_changed_at_any_byte_keeps_what_was_acknowledged(path: Path, tmp_path: Path) -> None:
    """What a power cut may leave of the last transaction: any part of it. Those before it were synced."""
    store = SqliteStore(path)
    opened = store.create(tmp_path, SESSION)
    log = Path(f"{path}-wal")
    asyncio.run(opened.journal.sync())
    opened.journal.append(entry(2))
    asyncio.run(opened.journal.sync())
    synced = log.stat().st_size
    opened.journal.append(entry(3, "x" * 9000))
    opened.journal.append(entry(4))
    asyncio.run(opened.journal.sync())
    whole = log.read_bytes()
    assert len(whole) > synced
    torn = tmp_path / "torn" / "chats.db"
    seen = set()
    for cut in [*range(synced, len(whole), 997), len(whole)]:
        for tail in (b"", os.urandom(64), b"\0" * (len(whole) - cut)):
            shutil.rmtree(torn.parent, ignore_errors=True)
            torn.parent.mkdir()
            shutil.copy(path, torn)
            Path(f"{torn}-wal").write_bytes(whole[:cut] + tail)
            found = [each.seq for each in SqliteStore(torn).read(SESSION).entries]
            assert found in ([1, 2], [1, 2, 3, 4]), "acknowledged and lost, or half a transaction"
            seen.add(len(found))
    opened.journal.close()
    assert seen == {2, 4}


def test_a_file_that_may_grow_no_further(path: Path) -> None:
    """A full disk, by the system's own hand: told, nothing half is left, and everything is there once there is room."""
    program = """
import asyncio, json, resource, sys
from dragoman.stores import SqliteStore
from sessions.entries import SESSION, entry
told = []
store = SqliteStore(sys.argv[1])
opened = store.create(".", SESSION, on_fault=told.append)
journal = opened.journal
asyncio.run(journal.sync())
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
for seq in range(2, 50):
    journal.append(entry(seq, str(seq) * 6000))
    asyncio.run(journal.sync())
blob = opened.blobs.put("image/png", b"x" * 500_000)
fault, saved, there = journal.fault, journal.is_saved, [each.seq for each in store.read(SESSION).entries]
blob_fault, found = opened.blobs.fault, opened.blobs.get(blob.sha256) is not None
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.append(entry(50, "x"))
asyncio.run(journal.sync())
opened.blobs.put("image/png", b"y")
print(json.dumps([fault, saved, there, blob_fault, found, journal.is_saved, opened.blobs.fault, told]))
journal.close()
"""
    fault, saved, there, blob_fault, found, saved_again, blob_fault_again, told = json.loads(run_python(program, str(path)))
    assert fault
    assert blob_fault
    assert (saved, found, saved_again, blob_fault_again) == (False, True, True, "")
    assert there == list(range(1, len(there) + 1))
    assert 1 < len(there) < 49
    assert "This session is NOT being saved" in told[0]
    assert any("Files of this session" in line and "NOT being saved" in line for line in told)
    assert ["saved again" in line for line in told[-2:]] == [True, True]
    assert [each.seq for each in SqliteStore(path).read(SESSION).entries] == list(range(1, 51)), "a gap"


def test_what_saves_late_is_done_before_a_session_is_closed(path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or does nothing: it must not open the file again, which may be moved or deleted by then."""
    opened = SqliteStore(path).create(workspace, SESSION)
    journal = opened.journal
    assert isinstance(journal, SqliteJournal)
    database, has_begun, may_go_on = database_at(str(path)), threading.Event(), threading.Event()
    submit = database.submit

    def submit_later(work: Callable[[sqlite3.Connection], int]) -> object:
        if threading.current_thread() is late:
            has_begun.set()
            assert may_go_on.wait(60)
        return submit(work)

    def connect() -> NoReturn:
        raise AssertionError("opened again")

    monkeypatch.setattr(database, "submit", submit_later)
    monkeypatch.setattr(database, "_connect", connect)
    journal.append(entry(2))
    late = threading.Thread(target=_save_late, args=(weakref.ref(journal),))
    late.start()
    assert has_begun.wait(60)
    closing = threading.Thread(target=journal.close)
    closing.start()
    time.sleep(0.2)  # time to go wrong: whether it does is not asked of the clock
    may_go_on.set()
    late.join(60)
    closing.join(60)
    assert journal.is_closed
    assert not journal.fault


def test_what_nobody_syncs_is_saved_a_moment_later(path: Path, workspace: Path) -> None:
    """A rewind between two runs must not wait for the next one: the process may be killed before."""
    store = SqliteStore(path)
    opened = store.create(workspace, SESSION)

    def saved() -> int:
        return len(store.read(SESSION).entries) if store.ids() else 1

    async def append_in_a_loop() -> None:
        opened.journal.append(entry(3))
        while saved() == 2:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)

    opened.journal.append(entry(2))
    deadline = time.monotonic() + 60
    while saved() == 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert saved() == 2
    asyncio.run(append_in_a_loop())
    assert saved() == 3
    opened.journal.close()
    assert [each.seq for each in store.read(SESSION).entries] == [1, 2, 3]


def test_while_another_process_writes_the_loop_goes_on_and_a_long_wait_is_a_fault(
    path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_opening, "_BUSY_S", 0.3)
    told: list[str] = []
    store = SqliteStore(path)
    opened = store.create(workspace, SESSION, on_fault=told.append)
    asyncio.run(opened.journal.sync())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    turns = 0

    async def watch_the_loop() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    async def use() -> None:
        watch = asyncio.create_task(watch_the_loop())
        opened.journal.append(entry(2))
        saving = asyncio.create_task(opened.journal.sync())
        await asyncio.sleep(0.05)
        store.create(workspace).journal.abandon()  # another conversation begins meanwhile
        before = turns
        await saving
        assert turns > before + 2, "the event loop waited for the database"
        watch.cancel()

    asyncio.run(use())
    assert "kept the database busy" in opened.journal.fault
    assert not opened.journal.is_saved
    other.execute("ROLLBACK")
    other.close()
    asyncio.run(opened.journal.sync())
    assert opened.journal.is_saved
    assert ["NOT" in line for line in told] == [True, False]
    opened.journal.close()
    assert [each.seq for each in store.read(SESSION).entries] == [1, 2]


def test_one_that_fails_does_not_take_others_of_the_same_commit_with_it(path: Path, workspace: Path) -> None:
    filled(path, workspace)
    database = database_at(str(path))
    database.hold()
    outcomes: dict[int, object] = {}

    def save(number: int) -> None:
        def work(connection: sqlite3.Connection) -> int:
            connection.execute("INSERT INTO uses (sha256, session_id) VALUES (?, 'x')", (str(number),))
            if number % 3 == 0:
                raise ValueError(number)
            return number

        try:
            outcomes[number] = database.commit(work)
        except ValueError as error:
            outcomes[number] = str(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(12)]
    with database._turn:  # so that they are together when it is given back
        for thread in threads:
            thread.start()
        while len(database._jobs) < 12:
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    database.release()
    assert outcomes == {number: str(number) if number % 3 == 0 else number for number in range(12)}
    with database.reading() as connection:
        kept = {int(digest) for (digest,) in connection.execute("SELECT sha256 FROM uses")}
    assert kept == {number for number in range(12) if number % 3}


def test_two_writers_that_no_lock_keeps_apart_are_noticed(path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks."""
    monkeypatch.setattr("dragoman.base.lock.lock", lambda descriptor, patience_s=(): False)
    store = SqliteStore(path)
    add_to(store, workspace, 1)
    one, other = store.open(session_id(1)), store.open(session_id(1))
    for number, each in enumerate((one, other)):
        each.journal.append(Said(9, 9, user(f"writer {number}"), by="person"))
        asyncio.run(each.journal.sync())
    assert (one.journal.fault, other.journal.fault) == ("", "another writer has changed it")
    other.journal.close()
    one.journal.close()
    assert "writer 0" in str(store.read(session_id(1)).entries[-1])


@pytest.mark.parametrize("way", ["append", "close", "drop"])
def test_a_forked_child_leaves_the_session_to_its_parent(path: Path, way: str) -> None:
    program = """
import asyncio, gc, os, sys
from dragoman.stores import SqliteStore
from sessions.entries import SESSION, entry
store = SqliteStore(sys.argv[1])
opened = store.create(".", SESSION, on_fault=sys.stderr.write)
journal = opened.journal
asyncio.run(journal.sync())
journal.append(entry(2))
child = os.fork()
if child == 0:
    if sys.argv[2] == "append":
        journal.append(entry(3))
        assert (journal.lost, journal.is_saved) == (1, False)
    if sys.argv[2] == "drop":
        del journal, opened
        gc.collect()
    else:
        journal.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for seq in range(3, 6):
    journal.append(entry(seq))
    asyncio.run(journal.sync())
journal.close()
print([each.seq for each in store.read(SESSION).entries], journal.is_saved)
"""
    assert run_python(program, str(path), way) == "[1, 2, 3, 4, 5] True\n"


# --- many at once


def test_sixteen_threads_with_agents_of_their_own_in_one_file(path: Path) -> None:
    script = "\n---\n".join(["text: Good."] * 3)
    failed: list[BaseException] = []
    start = threading.Barrier(16)

    def converse(number: int) -> None:
        try:
            start.wait()
            with agent_in(SqliteStore(path), f"user-{number}", script) as agent:
                for turn in range(3):
                    agent.run_sync(f"turn {turn} of user {number}")
                assert agent.not_saved == ""
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=converse, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    check_users(SqliteStore(path), 16, 3)


def test_many_agents_on_one_loop_in_one_file(path: Path) -> None:
    async def converse(number: int) -> None:
        agent = agent_in(SqliteStore(path), f"user-{number}", "text: Good.\n---\ntext: Good.")
        for turn in range(2):
            await agent.run(f"turn {turn} of user {number}")
        agent.close()

    async def all_of_them() -> None:
        await asyncio.gather(*map(converse, range(24)))

    asyncio.run(all_of_them())
    check_users(SqliteStore(path), 24, 2)


def test_four_processes_with_agents_of_their_own_in_one_file(path: Path) -> None:
    program = """
import sys
import dragoman as dm
from dragoman.stores import SqliteStore
from dragoman.testing.scripted import ScriptedProvider
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 3):
    session = dm.SessionOptions(SqliteStore(sys.argv[1]), key=f"user-{number}")
    with dm.Agent(ScriptedProvider("\\n---\\n".join(["text: Good."] * 3)), tools=dm.ToolOptions(builtin=False), session=session) as agent:
        for turn in range(3):
            agent.run_sync(f"turn {turn} of user {number}")
        assert agent.not_saved == "", agent.not_saved
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(first)]) for first in range(0, 12, 3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    check_users(SqliteStore(path), 12, 3)


def check_users(store: SqliteStore, users: int, turns: int) -> None:
    """Each user's conversation is whole, and nobody else's."""
    listed = {summary.key: summary for summary in store.list()}
    assert len(listed) == len(store.list()) == users
    for number in range(users):
        loaded = store.read(listed[f"user-{number}"].session_id)
        assert loaded.notices() == ()
        said = [each.message.text for each in loaded.entries if isinstance(each, Said) and each.by == "person"]
        assert said == [f"turn {turn} of user {number}" for turn in range(turns)]
    with agent_in(store, "user-0"), pytest.raises(InUse):
        agent_in(store, "user-0")


def test_lines_are_those_of_a_log_in_a_file(path: Path, workspace: Path) -> None:
    """So that what is in a database can be taken out of it by hand."""
    store = filled(path, workspace, 1)
    with sqlite3.connect(path) as database:
        lines = [line for (line,) in database.execute("SELECT line FROM entries ORDER BY place")]
    database.close()
    assert lines == [encode_line(each) for each in store.read(session_id(1)).entries]
