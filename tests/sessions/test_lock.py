"""One writer at a time, whoever it is, and nobody once that one is dead (SS05)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crash.logs import LOGS, Log
from dragoman.base.lock import holder_of
from dragoman.sessions.lock import InUse, hold_lock, lock
from dragoman.sessions.opening import create, open_for_writing
from dragoman.values.errors import InputError
from dragoman.values.record import Entry
from sessions.entries import SESSION, entry, some, started

HOLDER = """
import asyncio, sys, time
from pathlib import Path
from crash.logs import LOGS
from sessions.entries import entry
journal, loaded = LOGS[sys.argv[2]](Path(sys.argv[1])).open_or_create()
journal.append(entry(len(loaded.entries) + 1))
asyncio.run(journal.sync())
print("holding", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / f"{SESSION}.jsonl"
    create(path, started()).close()
    return path


@pytest.fixture(params=LOGS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def log(kind: str, path: Path) -> Log:
    """Whatever holds of it holds of both stores."""
    log = LOGS[kind](path.parent)
    log.open_or_create()[0].close()
    return log


def entries_in(log: Log) -> tuple[Entry, ...]:
    loaded = log.read()
    assert loaded is not None
    return loaded.entries


def start_holder(log: Log, kind: str) -> subprocess.Popen[bytes]:
    tests = Path(__file__).parent.parent
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(log.path.parent), kind],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tests)},
        cwd=tests,
    )
    assert holder.stdout
    assert holder.stdout.readline() == b"holding\n"
    return holder


def stop(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait(60)
    assert holder.stdout
    holder.stdout.close()


def test_the_second_process_is_told_who_holds_it_and_what_to_do(log: Log, kind: str) -> None:
    """SS05."""
    holder = start_holder(log, kind)
    try:
        with pytest.raises(InUse) as caught:
            log.open_or_create()
        assert caught.value.pid == holder.pid
        assert caught.value.exit_code == 42
        assert f"in use by another process (pid {holder.pid})" in str(caught.value)
        assert "Store.read" in str(caught.value)
        assert "Store.fork" in str(caught.value)
        assert entries_in(log) == some(2), "reading is free"
    finally:
        stop(holder)


def test_a_killed_holder_does_not_block(log: Log, kind: str) -> None:
    """SS05: and what it wrote is there."""
    holder = start_holder(log, kind)
    os.kill(holder.pid, signal.SIGKILL)
    stop(holder)
    journal, loaded = log.open_or_create()
    assert loaded.entries == some(2)
    journal.close()


def test_the_lock_lasts_as_long_as_the_journal_and_no_longer(log: Log) -> None:
    journal, _ = log.open_or_create()
    with pytest.raises(InUse) as caught:
        log.open_or_create()
    assert caught.value.pid == os.getpid()
    journal.append(entry(2))
    journal.close()
    again, loaded = log.open_or_create()
    assert loaded.entries == some(2)
    again.close()


def test_a_command_that_outlives_its_holder_does_not_keep_the_lock(log: Log, kind: str) -> None:
    journal, _ = log.open_or_create()
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        journal.close()
        again, _ = log.open_or_create()
        again.close()
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_new_session_is_locked_from_the_start(tmp_path: Path) -> None:
    journal = create(tmp_path / "a" / f"{SESSION}.jsonl", started())
    with pytest.raises(InUse):
        open_for_writing(tmp_path / "a" / f"{SESSION}.jsonl")
    journal.close()


def test_processes_racing_for_a_session_never_interleave(log: Log, kind: str) -> None:
    """SS05: of eight who open it over and over, one at a time writes, and each goes on where the one before stopped."""
    program = """
import sys
from pathlib import Path
from crash.logs import LOGS
from dragoman.sessions.lock import InUse
from sessions.entries import entry
wins = 0
while wins < int(sys.argv[3]):
    try:
        journal, loaded = LOGS[sys.argv[2]](Path(sys.argv[1])).open_or_create()
    except InUse:
        continue
    wins += 1
    assert not loaded.damage and not loaded.torn
    for seq in range(loaded.entries[-1].seq + 1, loaded.entries[-1].seq + 4):
        journal.append(entry(seq))
    journal.close()
"""
    count, wins = (8, 5) if kind == "files" else (4, 3)
    tests = Path(__file__).parent.parent
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(log.path.parent), kind, str(wins)], env={**os.environ, "PYTHONPATH": str(tests)}, cwd=tests
        )
        for _ in range(count)
    ]
    assert [racer.wait(60) for racer in racers] == [0] * count
    loaded = log.read()
    assert loaded is not None
    assert loaded.entries == some(1 + count * wins * 3)
    assert not loaded.damage


def test_holding_it_for_a_moment_keeps_writers_out(path: Path) -> None:
    with hold_lock(path), pytest.raises(InUse):
        open_for_writing(path)
    journal, _ = open_for_writing(path)
    with pytest.raises(InUse), hold_lock(path):
        pass
    journal.close()


def test_a_session_deleted_while_it_was_being_opened_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.sessions import opening

    def delete_first(descriptor: int, session_id: str) -> bool:
        path.unlink()
        return lock(descriptor, session_id)

    monkeypatch.setattr(opening, "lock", delete_first)
    with pytest.raises(InputError, match="deleted or replaced"):
        open_for_writing(path)
    assert not path.exists()


def test_nobody_holds_what_is_not_locked(path: Path) -> None:
    with path.open("rb") as file:
        assert holder_of(file.fileno()) == 0
