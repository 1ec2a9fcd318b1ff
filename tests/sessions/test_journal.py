"""The journal in a file: nothing half, nothing in silence, and nothing acknowledged that is not on disk."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.logs import LOGS, Log
from crash.shim import FAULTS, Acknowledge, Disk, Sync, Write
from dragoman.base import private
from dragoman.sessions.journal import SessionJournal
from dragoman.sessions.log import read_log
from dragoman.sessions.opening import create
from dragoman.values.record import Entry, Titled, ToolStarted
from sessions.entries import SESSION, entry, some, started


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "project" / f"{SESSION}.jsonl"


@pytest.fixture(params=LOGS)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """Whatever holds of it holds of the journals of both stores."""
    return LOGS[request.param](tmp_path / "project")


def entries_in(log: Log) -> tuple[Entry, ...]:
    loaded = log.read()
    assert loaded is not None
    return loaded.entries


def test_an_entry_is_one_write_of_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk().install(monkeypatch)
    journal = create(path, started())
    for seq in range(2, 6):
        journal.append(entry(seq))
    writes = [call for call in disk.calls if isinstance(call, Write)]
    assert len(writes) == 5
    assert b"".join(call.data for call in writes) == path.read_bytes()
    assert all(call.data.count(b"\n") == 1 for call in writes)
    journal.close()


def test_what_was_appended_is_there_before_any_sync(path: Path) -> None:
    """A process that is killed loses nothing it has written: only a power cut asks for the sync."""
    journal = create(path, started())
    journal.append(entry(2))
    assert read_log(path).entries == some(2)
    journal.close()


def test_sync_returns_after_the_file_and_its_new_directories_are_on_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk().install(monkeypatch)
    journal = create(path, started())

    async def use() -> None:
        await journal.sync()
        journal.append(entry(2))
        await journal.sync()
        await journal.sync()  # nothing new: nothing to wait for

    asyncio.run(use())
    synced = [call.path for call in disk.calls if isinstance(call, Sync)]
    assert synced == [str(path), str(path.parent), str(path.parent.parent), str(path)]
    journal.close()
    assert disk.counts["fdatasync"] == 2


class SlowDisk:
    """Holds every fdatasync until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self._real = os.fdatasync
        disk = Disk()
        disk.fdatasync = self.fdatasync  # type: ignore[attr-defined]
        monkeypatch.setattr(private, "os", disk)

    def fdatasync(self, descriptor: int) -> None:
        self.begun += 1
        self.entered.release()
        assert self.let_go.acquire(timeout=60)
        self._real(descriptor)


def test_callers_share_a_sync_and_those_who_come_late_share_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path, started())
    slow = SlowDisk(monkeypatch)
    ended: list[str] = []

    async def wait(name: str) -> None:
        await journal.sync()
        ended.append(name)

    async def use() -> None:
        first = [asyncio.create_task(wait("early")) for _ in range(5)]
        await asyncio.to_thread(slow.entered.acquire)
        journal.append(entry(2))
        later = [asyncio.create_task(wait("late")) for _ in range(5)]
        await asyncio.sleep(0)
        slow.let_go.release()
        await asyncio.gather(*first)
        assert ended == ["early"] * 5
        slow.let_go.release()
        await asyncio.gather(*later)

    asyncio.run(use())
    assert slow.begun == 2
    assert journal.is_saved
    journal.close()


def test_a_cancelled_caller_leaves_the_sync_going(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path, started())
    slow = SlowDisk(monkeypatch)

    async def use() -> None:
        impatient = asyncio.create_task(journal.sync())
        await asyncio.to_thread(slow.entered.acquire)
        patient = asyncio.create_task(journal.sync())
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        slow.let_go.release()
        await patient

    asyncio.run(use())
    assert slow.begun == 1
    assert journal.is_saved
    journal.close()


def test_a_loop_that_ended_in_the_middle_does_not_hold_up_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path, started())
    slow = SlowDisk(monkeypatch)

    async def leave() -> None:
        task = asyncio.create_task(journal.sync())
        await asyncio.to_thread(slow.entered.acquire)
        slow.let_go.release(2)
        task.cancel()

    asyncio.run(leave())
    journal.append(entry(2))
    slow.let_go.release(2)
    asyncio.run(journal.sync())
    assert journal.is_saved
    journal.close()
    assert read_log(path).entries == some(2)


def test_closing_twice_is_closing_once_and_what_comes_after_is_told(log: Log) -> None:
    told: list[str] = []
    journal = log.open_or_create(told.append)[0]
    journal.close()
    journal.close()
    assert journal.is_saved
    journal.append(entry(2))
    asyncio.run(journal.sync())
    assert not journal.is_saved
    assert journal.lost == 1
    assert len(told) == 1


# --- faults (SS04)


def from_the(nth: int, of: str, code: int, times: int = 10**9) -> Callable[[str, int], int]:
    return lambda name, number: code if name == of and nth <= number < nth + times else 0


COUNT = 6


def live(journal: SessionJournal, disk: Disk, first: int = 2) -> None:
    """Append and sync as a conversation does, acknowledging what the journal says is saved."""

    async def use() -> None:
        for seq in range(first, first + COUNT):
            journal.append(entry(seq))
            if seq % 2:
                await journal.sync()
                if journal.is_saved:
                    disk.acknowledge(seq)

    asyncio.run(use())


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("name", ["write", "fdatasync", "ftruncate", "fsync"])
@pytest.mark.parametrize("code", FAULTS.values(), ids=FAULTS)
def test_at_whichever_call_the_disk_fails_nothing_half_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, part: float
) -> None:
    """SS04: from the n-th call on, for all n; then the disk works again, and nothing is missing."""
    for nth in range(1, COUNT + 3):
        told: list[str] = []
        disk = Disk()
        with monkeypatch.context() as patch:
            disk.install(patch)
            path = tmp_path / f"{nth}" / f"{SESSION}.jsonl"
            # ftruncate is called after a failed write only, so one must fail first.
            with_write = 2 if name == "ftruncate" else 0
            disk.part = part

            def fails(call: str, number: int, nth: int = nth, with_write: int = with_write) -> int:
                return code if (call == name and number >= nth) or (with_write and call == "write" and with_write <= number < 4) else 0

            disk.fails = fails
            journal = create(path, started(), told.append)
            live(journal, disk)
            during = path.read_bytes()
            reached = disk.counts.get(name, 0) >= nth
            if reached:
                assert told
                assert "NOT being saved" in told[0]
                if name != "ftruncate":
                    assert os.strerror(code) in journal.fault
                    assert not journal.is_saved
                    if name != "fsync":
                        assert f"({path})" in told[0]
            loaded = read_log(path)
            assert loaded.entries == some(len(loaded.entries))
            assert not loaded.damage
            if name != "ftruncate":
                assert during.endswith(b"\n") or not during, "half a record stayed"
                assert not loaded.torn
            upto = max((call.upto for call in disk.calls if isinstance(call, Acknowledge)), default=0)
            assert len(loaded.entries) >= upto, "acknowledged, and not there"

            disk.fails = lambda call, number: 0
            live(journal, disk, 2 + COUNT)
            assert journal.is_saved
            assert journal.fault == ""
            if reached:
                assert "saved again" in told[-1]
            journal.close()
        assert read_log(path).entries == some(1 + 2 * COUNT), "a gap"
        assert read_log(path).torn == b""


@pytest.mark.parametrize("code", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("name", ["write", "fdatasync"])
def test_one_failing_call_among_many_leaves_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> None:
    """SS04: only the n-th call fails, for all n."""
    for nth in range(1, COUNT + 2):
        told: list[str] = []
        with monkeypatch.context() as patch:
            disk = Disk(fails=from_the(nth, name, code, times=1), part=0.3).install(patch)
            path = tmp_path / f"{nth}" / f"{SESSION}.jsonl"
            journal = create(path, started(), told.append)
            live(journal, disk)
            asyncio.run(journal.sync())
            journal.close()
        assert read_log(path).entries == some(1 + COUNT)
        if disk.counts[name] >= nth:
            assert [("NOT" in line, "again" in line) for line in told] == [(True, False), (False, True)]
        assert journal.is_saved


def test_after_a_failed_sync_everything_since_the_last_good_one_is_written_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system forgets what it failed to write, and a later sync succeeds without it."""
    disk = Disk(fails=from_the(2, "fdatasync", errno.EIO, times=1)).install(monkeypatch)
    journal = create(path, started())
    asyncio.run(journal.sync())
    journal.append(entry(2))
    journal.append(entry(3))
    asyncio.run(journal.sync())
    assert journal.fault
    assert not journal.is_saved
    asyncio.run(journal.sync())
    assert journal.is_saved
    first, *rest = [call.data for call in disk.calls if isinstance(call, Write)]
    assert [first, *rest[:2]] == path.read_bytes().splitlines(True)
    assert rest[2:] == rest[:2], "not written a second time"
    assert isinstance(disk.calls[-1], Sync)
    journal.close()
    assert read_log(path).entries == some(3)


def test_an_interrupt_in_the_middle_of_a_write_does_not_double_or_lose_a_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = create(path, started())
    from dragoman.sessions import journal as room

    real = room.write_whole

    def interrupted(descriptor: int, data: bytes) -> None:
        real(descriptor, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "write_whole", interrupted)
    with pytest.raises(KeyboardInterrupt):
        journal.append(entry(2))
    monkeypatch.setattr(room, "write_whole", real)
    journal.append(entry(3))
    asyncio.run(journal.sync())
    assert journal.is_saved
    journal.close()
    assert read_log(path).entries == some(3)


def test_a_removed_file_is_told_at_the_next_sync(log: Log) -> None:
    """SS04: file removed during the run. Nothing is promised from then on."""
    told: list[str] = []
    journal = log.open_or_create(told.append)[0]
    asyncio.run(journal.sync())
    log.path.unlink()
    journal.append(entry(2))
    asyncio.run(journal.sync())
    journal.append(entry(3))
    asyncio.run(journal.sync())
    assert len(told) == 1
    assert "NOT being saved: its file was removed" in told[0]
    assert not journal.is_saved
    journal.close()
    assert not journal.is_saved
    assert not log.path.exists()


def test_an_entry_that_cannot_be_written_is_a_stated_gap(log: Log) -> None:
    told: list[str] = []
    journal = log.open_or_create(told.append)[0]
    journal.append(Titled(2, 2, object()))  # type: ignore[arg-type]
    journal.append(entry(3))
    asyncio.run(journal.sync())
    assert "Entry 2" in told[0]
    assert journal.lost == 1
    assert not journal.is_saved
    journal.close()
    assert [each.seq for each in entries_in(log)] == [1, 3]


def test_lone_surrogates_do_not_stop_an_entry(log: Log) -> None:
    journal = log.open_or_create()[0]
    journal.append(Titled(2, 2, "half \ud800 a pair"))
    assert journal.is_saved
    journal.close()
    assert entries_in(log)[1] == Titled(2, 2, "half \ufffd a pair")


def test_whoever_listens_badly_does_not_stop_the_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listener(message: str) -> None:
        raise RuntimeError(message)

    disk = Disk(fails=from_the(2, "write", errno.ENOSPC, times=2)).install(monkeypatch)
    journal = create(path, started(), listener)
    live(journal, disk)
    journal.close()
    assert read_log(path).entries == some(1 + COUNT)


def test_a_file_that_may_grow_no_further(path: Path) -> None:
    """SS04 with the system's own hand: a limit on file size cuts a write short in the middle of a line, and is then lifted."""
    program = """
import asyncio, json, resource, sys
from dragoman.sessions.opening import create
from sessions.entries import entry, started
told = []
journal = create(sys.argv[1], started(), told.append)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
for seq in range(2, 50):
    journal.append(entry(seq, str(seq) * 400))
    asyncio.run(journal.sync())
data = open(sys.argv[1], "rb").read()
fault, saved = journal.fault, journal.is_saved
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
journal.append(entry(50, "x"))
asyncio.run(journal.sync())
print(json.dumps([data.endswith(b"\\n"), len(data) <= 10_000, fault, saved, journal.is_saved, told]))
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    whole, within, fault, saved, saved_again, told = json.loads(result.stdout)
    assert (whole, within, fault, saved, saved_again) == (True, True, os.strerror(errno.EFBIG), False, True)
    assert len(told) == 2
    assert [each.seq for each in read_log(path).entries] == list(range(1, 51))


def test_when_a_read_began_is_written_with_the_next_line_or_at_a_sync(path: Path) -> None:
    """A write of its own would cost each call that only reads; nothing relies on it after a crash."""
    begun = [ToolStarted(seq, 5, f"c{seq}", "read_file", read_only=True) for seq in (2, 3, 5)]
    journal = create(path, started())
    journal.append(begun[0])
    journal.append(begun[1])
    assert read_log(path).entries == some(1)
    assert not journal.is_saved
    journal.append(entry(4))
    assert [each.seq for each in read_log(path).entries] == [1, 2, 3, 4]
    journal.append(begun[2])
    asyncio.run(journal.sync())
    assert [each.seq for each in read_log(path).entries] == [1, 2, 3, 4, 5]
    assert journal.is_saved
    journal.append(ToolStarted(6, 5, "c6", "read_file", read_only=True))
    journal.close()
    assert [each.seq for each in read_log(path).entries] == [1, 2, 3, 4, 5, 6]


def test_closing_waits_for_a_sync_that_is_under_way_in_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where `with Agent` ends in async code that was cancelled: the file is not closed beneath the sync."""
    began, synced, really = threading.Event(), list[int](), private.sync_file

    def slowly(descriptor: int) -> None:
        began.set()
        go_on.wait(60)
        really(descriptor)
        synced.append(descriptor)

    go_on = threading.Event()
    monkeypatch.setattr("dragoman.sessions.journal.sync_file", slowly)

    async def go() -> None:
        journal = create(path, started())
        journal.append(entry(2))
        syncing = asyncio.create_task(journal.sync())
        await asyncio.to_thread(began.wait, 60)
        closing = threading.Thread(target=journal.close)
        closing.start()
        await asyncio.sleep(0.05)
        assert closing.is_alive()
        assert not journal.is_closed
        go_on.set()
        await asyncio.to_thread(closing.join, 60)
        assert journal.is_closed
        await syncing
        assert journal.fault == ""
        assert min(synced) > 0

    asyncio.run(go())
    assert read_log(path).entries == some(2)
