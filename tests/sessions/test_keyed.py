"""Sessions by a key of the embedder's own: opened or created, never two of them, and never one that somebody else holds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import dragoman as dm
from dragoman.errors import InputError, InUse, NoSession
from dragoman.options import SessionOptions
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.sessions.store import FileStore
from dragoman.sessions.stores import Store
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.record import Started
from sessions.stores import any_store, kind, store_in

__all__ = ["any_store", "kind"]

KEY = "user-42"


def agent_with(store: Store | Path, key: str = KEY, script: str = "text: Good.", **options: str) -> dm.Agent:
    return dm.Agent(ScriptedProvider(script), tools=dm.ToolOptions(builtin=False), session=SessionOptions(store, key=key, **options))


def test_the_same_key_is_the_same_conversation(any_store: Store) -> None:
    with agent_with(any_store) as first:
        first.run_sync("My name is Ada.")
        head = first.history.entries[0]
        assert isinstance(head, Started)
        assert head.key == KEY
    with agent_with(any_store) as again, agent_with(any_store, "user-43") as other:
        assert again.session_id == first.session_id != other.session_id
        assert "My name is Ada." in [message.text for message in again.history.request.messages]
        assert other.history.request.messages == ()
    assert sorted(each.key for each in any_store.list()) == [KEY, "user-43"]


def test_it_is_found_from_any_workspace_and_without_the_index(tmp_path: Path) -> None:
    store, here, there = tmp_path / "sessions", tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    opened = FileStore(store).open_or_create(KEY, here)
    opened.journal.close()
    (store / "index.sqlite").unlink(missing_ok=True)
    again = FileStore(store).open_or_create(KEY, there)
    again.journal.close()
    assert again.path == opened.path


def test_one_that_is_held_is_in_use_and_not_forked(any_store: Store) -> None:
    with agent_with(any_store) as agent:
        with pytest.raises(InUse) as caught:
            agent_with(any_store)
        assert caught.value.session_id == agent.session_id
        assert caught.value.pid == os.getpid()
    assert len(any_store.list()) == 1


def test_in_use_and_no_session_are_told_apart(any_store: Store) -> None:
    def resume(which: str) -> dm.Agent:
        return dm.Agent(ScriptedProvider("text: Good."), session=SessionOptions(any_store, resume=which))

    for which in ("latest", "1a2b3c4d"):
        with pytest.raises(NoSession):
            resume(which)
    with agent_with(any_store) as agent:
        agent.run_sync("hi")
        for which in ("latest", agent.session_id):
            with pytest.raises(InUse):
                resume(which)
    assert not issubclass(InUse, NoSession)
    assert not issubclass(NoSession, InUse)
    assert issubclass(InUse, dm.InputError)


def test_an_agent_that_cannot_be_made_does_not_hold_the_session(any_store: Store) -> None:
    with pytest.raises(dm.DragomanError):
        dm.Agent("nobody/knows-this", session=SessionOptions(any_store, key=KEY))
    with agent_with(any_store) as agent:
        assert agent.run_sync("hi").text == "Good."


def test_a_copy_does_not_have_the_key(any_store: Store, kind: str, tmp_path: Path) -> None:
    with agent_with(any_store) as agent:
        agent.run_sync("hi")
    store = any_store
    path = store.list()[0].path
    fork = store.fork(path)
    entries = store.read(fork).entries
    assert isinstance(entries[0], Started)
    assert entries[0].key == ""
    assert [each.key for each in store.list() if each.path == path] == [KEY]
    other = store_in(kind, tmp_path / "other")
    head = store.read(path).entries[0]
    assert isinstance(head, Started)
    assert [each.key for each in other.list()] == []
    other.add(tmp_path, store.read(path).entries)
    assert [each.key for each in other.list()] == [""]


def test_a_deleted_one_is_created_again(any_store: Store, tmp_path: Path) -> None:
    store = any_store
    first = store.open_or_create(KEY, tmp_path)
    first.journal.close()
    store.delete(first.path)
    again = store.open_or_create(KEY, tmp_path)
    again.journal.close()
    assert again.session_id != first.session_id


@pytest.mark.parametrize("options", [SessionOptions(key=KEY), SessionOptions("sessions", key=KEY, resume="latest")])
def test_a_key_needs_a_store_and_stands_alone(options: SessionOptions) -> None:
    with pytest.raises(dm.InputError, match="SessionOptions"):
        dm.Agent(ScriptedProvider("text: Good."), session=options)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file")
    with pytest.raises(dm.InputError):
        agent_with(tmp_path / "sessions")


def test_threads_that_ask_at_once_make_one(any_store: Store) -> None:
    won: list[dm.Agent] = []
    lost: list[InUse] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        try:
            won.append(agent_with(any_store))
        except InUse as error:
            lost.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    won[0].close()
    assert len(any_store.list()) == 1


def test_processes_that_ask_at_once_make_one(kind: str, tmp_path: Path) -> None:
    program = """
import sys
import time
from dragoman.errors import InUse
from pathlib import Path
from sessions.stores import store_in
while time.time() < float(sys.argv[2]):
    pass
try:
    opened = store_in(sys.argv[3], Path(sys.argv[1])).open_or_create("user-42", ".")
except InUse:
    print("in use", flush=True)
else:
    print("won", flush=True)
    sys.stdin.read()
    opened.journal.close()
"""

    tests = str(Path(__file__).parent.parent)
    begin = str(time.time() + 1.5)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), begin, kind],
            env={**os.environ, "PYTHONPATH": tests},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    said = []
    for racer in racers:
        assert racer.stdout is not None
        said.append(racer.stdout.readline().strip())
    for racer in racers:
        racer.communicate(timeout=60)
    assert sorted(said) == ["in use", "in use", "in use", "won"]
    assert len(store_in(kind, tmp_path).list()) == 1


@pytest.mark.parametrize("key", ["\ud800", "a\udfff", "\ude00\ud83d"])
def test_a_key_that_is_not_text_is_refused_in_words(any_store: Store, key: str) -> None:
    for use in (any_store.open_or_create, lambda key, folder: any_store.create(folder, key=key)):
        with pytest.raises(InputError, match="use a hash of it as key") as refused:
            use(key, ".")
        print(refused.value)  # its text can be written anywhere
    with pytest.raises(InputError, match="is not Unicode text"):
        agent_with(any_store, key)
    assert any_store.list() == []


@pytest.mark.parametrize("name", ["a\ud800", "a\0b"])
def test_a_folder_that_no_file_can_be_called_is_refused_in_words(tmp_path: Path, any_store: Store, name: str) -> None:
    bad = str(tmp_path / name)
    uses = [lambda: any_store.create(bad), lambda: any_store.open_or_create("key", bad), lambda: any_store.list(bad)]
    uses += [lambda: any_store.search("x", bad), lambda: any_store.find("latest", bad), lambda: FileStore(bad), lambda: SqliteStore(bad)]
    for use in uses:
        with pytest.raises(InputError, match="cannot name a file"):
            use()
