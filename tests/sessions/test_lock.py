"""One writer at a time, whoever it is, and nobody once that one is dead (SS05)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.base.lock import holder_of
from dragoman.sessions.lock import InUse, hold_lock, lock
from dragoman.sessions.log import read_log
from dragoman.sessions.opening import create, open_for_writing, open_read_only
from dragoman.values.errors import InputError
from sessions.entries import SESSION, entry, some, started

HOLDER = """
import sys, time
from dragoman.sessions.opening import open_for_writing
from sessions.entries import entry
journal, loaded = open_for_writing(sys.argv[1])
journal.append(entry(len(loaded.entries) + 1))
print("holding", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / f"{SESSION}.jsonl"
    create(path, started()).close()
    return path


def start_holder(path: Path) -> subprocess.Popen[bytes]:
    tests = Path(__file__).parent.parent
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(tests)}, cwd=tests
    )
    assert holder.stdout
    assert holder.stdout.readline() == b"holding\n"
    return holder


def stop(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait(10)
    assert holder.stdout
    holder.stdout.close()


def test_the_second_process_is_told_who_holds_it_and_what_to_do(path: Path) -> None:
    """SS05."""
    holder = start_holder(path)
    try:
        with pytest.raises(InUse) as caught:
            open_for_writing(path)
        assert caught.value.pid == holder.pid
        assert caught.value.exit_code == 42
        assert f"in use by another process (pid {holder.pid})" in str(caught.value)
        assert "Store.read" in str(caught.value)
        assert "Store.fork" in str(caught.value)
        assert open_read_only(path).entries == some(2), "reading is free"
    finally:
        stop(holder)


def test_a_killed_holder_does_not_block(path: Path) -> None:
    """SS05: and what it wrote is there."""
    holder = start_holder(path)
    os.kill(holder.pid, signal.SIGKILL)
    stop(holder)
    journal, loaded = open_for_writing(path)
    assert loaded.entries == some(2)
    journal.close()


def test_the_lock_lasts_as_long_as_the_journal_and_no_longer(path: Path) -> None:
    journal, _ = open_for_writing(path)
    with pytest.raises(InUse) as caught:
        open_for_writing(path)
    assert caught.value.pid == os.getpid()
    journal.append(entry(2))
    journal.close()
    again, loaded = open_for_writing(path)
    assert loaded.entries == some(2)
    again.close()


def test_a_command_that_outlives_its_holder_does_not_keep_the_lock(path: Path) -> None:
    journal, _ = open_for_writing(path)
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        journal.close()
        again, _ = open_for_writing(path)
        again.close()
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_new_session_is_locked_from_the_start(tmp_path: Path) -> None:
    journal = create(tmp_path / "a" / f"{SESSION}.jsonl", started())
    with pytest.raises(InUse):
        open_for_writing(tmp_path / "a" / f"{SESSION}.jsonl")
    journal.close()


def test_processes_racing_for_a_session_never_interleave(path: Path) -> None:
    """SS05: of eight who open it over and over, one at a time writes, and each goes on where the one before stopped."""
    program = """
import sys
from dragoman.sessions.lock import InUse
from dragoman.sessions.opening import open_for_writing
from sessions.entries import entry
wins = 0
while wins < 5:
    try:
        journal, loaded = open_for_writing(sys.argv[1])
    except InUse:
        continue
    wins += 1
    assert not loaded.damage and not loaded.torn
    for seq in range(loaded.entries[-1].seq + 1, loaded.entries[-1].seq + 4):
        journal.append(entry(seq))
    journal.close()
"""
    tests = Path(__file__).parent.parent
    racers = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], env={**os.environ, "PYTHONPATH": str(tests)}, cwd=tests)
        for _ in range(8)
    ]
    assert [racer.wait(60) for racer in racers] == [0] * 8
    loaded = read_log(path)
    assert loaded.entries == some(1 + 8 * 5 * 3)
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
