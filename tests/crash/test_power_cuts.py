"""A power cut at any call: whatever was not synced may be lost, torn or reordered, and nothing that was acknowledged is."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.shim import Acknowledge, Create, Disk, Files, Rename, Sync, Truncate, Write, crashes
from dragoman.base import private
from dragoman.sessions.log import encode_line, read_log
from dragoman.sessions.opening import create, open_for_writing
from dragoman.values.errors import InputError
from sessions.entries import SESSION, entry, some, started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir(mode=0o700)
    return folder


def use(path: Path, disk: Disk, batches: tuple[int, ...]) -> None:
    """Append so many entries before each sync; acknowledge as the journal does."""
    journal = create(path, started())
    seq = 1

    async def go_on() -> None:
        nonlocal seq
        for count in batches:
            for _ in range(count):
                seq += 1
                journal.append(entry(seq, f"e{seq}"))
            await journal.sync()
            if journal.is_saved:
                disk.acknowledge(seq)

    asyncio.run(go_on())
    journal.close()


def lay_out(folder: Path, files: Files) -> None:
    for each in folder.iterdir():
        each.unlink()
    for name, data in files.items():
        with open(name, "wb") as file:
            file.write(data)


def expected(count: int) -> tuple[object, ...]:
    return (started(), *(entry(seq, f"e{seq}") for seq in range(2, count + 1)))


def check_recovery(path: Path, acknowledged: int, appended: int) -> bool:
    """Open, append, open again. Returns whether a tail had been torn."""
    try:
        journal, loaded = open_for_writing(path)
    except InputError:
        assert not acknowledged, "an acknowledged session is gone"
        return False
    everything = expected(appended)
    assert loaded.entries[:acknowledged] == everything[:acknowledged], "acknowledged, and lost"
    assert [each for each in everything if each in loaded.entries] == list(loaded.entries), "something that was never written"
    last = loaded.entries[-1].seq
    journal.append(entry(last + 1, "after"))
    journal.close()
    again, reloaded = open_for_writing(path)
    again.close()
    assert reloaded.entries == (*loaded.entries, entry(last + 1, "after")), "glued to what was torn"
    assert not reloaded.torn
    return bool(loaded.torn)


@pytest.fixture
def instant_syncs(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Thousands of recoveries need not wait for the disk."""

    def begin() -> None:
        monkeypatch.setattr(private, "sync_file", lambda descriptor: None)
        for module in ("journal", "opening"):
            monkeypatch.setattr(f"dragoman.sessions.{module}.sync_file", lambda descriptor: None)
            monkeypatch.setattr(f"dragoman.sessions.{module}.sync_directory", lambda path: None)

    return begin


def test_every_power_cut_while_a_session_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, instant_syncs: Callable[[], None]
) -> None:
    """SS01 without the system's help: subsets, orders and every byte offset of what was not synced."""
    path = folder / f"{SESSION}.jsonl"
    disk = Disk()
    with monkeypatch.context() as patch:
        disk.install(patch)
        use(path, disk, (1, 2, 1))
    instant_syncs()
    states = torn = 0
    for acknowledged, files in unique(disk, {}):
        lay_out(folder, files)
        torn += check_recovery(path, acknowledged, appended=5)
        states += 1
    assert states > 1000
    assert torn > 500


@pytest.mark.parametrize("name", ["write", "fdatasync"])
def test_every_power_cut_after_a_fault(folder: Path, monkeypatch: pytest.MonkeyPatch, instant_syncs: Callable[[], None], name: str) -> None:
    """A write cut short, or a sync that failed and is made up for; and then the power goes."""
    path = folder / f"{SESSION}.jsonl"
    disk = Disk(part=0.5, fails=lambda call, number: errno.EIO if (call, number) == (name, 3) else 0)
    with monkeypatch.context() as patch:
        disk.install(patch)
        use(path, disk, (1, 1, 1, 1))
    assert any(isinstance(call, Truncate) for call in disk.calls)
    assert max(call.upto for call in disk.calls if isinstance(call, Acknowledge)) == 5
    instant_syncs()
    for acknowledged, files in unique(disk, {}, offsets=25):
        lay_out(folder, files)
        check_recovery(path, acknowledged, appended=5)


def test_every_power_cut_while_a_torn_tail_is_set_aside(
    folder: Path, monkeypatch: pytest.MonkeyPatch, instant_syncs: Callable[[], None]
) -> None:
    """A crash within the recovery from a crash: the tail is in the log or beside it, whole, and the records are where they were."""
    path = folder / f"{SESSION}.jsonl"
    whole = b"".join(encode_line(each) for each in some(3))
    tail = encode_line(entry(4, "another, never finished"))[:-30]
    path.write_bytes(whole + tail)
    disk = Disk()
    with monkeypatch.context() as patch:
        disk.install(patch)
        journal, _ = open_for_writing(path)
        journal.append(entry(4))
        asyncio.run(journal.sync())
        disk.acknowledge(4)
        journal.close()
    instant_syncs()
    outcomes = set()
    for acknowledged, files in unique(disk, {str(path): whole + tail}):
        lay_out(folder, files)
        beside = [data for name, data in files.items() if name != str(path)]
        in_the_log = files[str(path)].startswith(whole + tail)
        assert in_the_log or tail in beside, "what was cut off is gone"
        assert read_log(path).entries[:3] == some(3)
        if acknowledged:
            assert read_log(path).entries == some(4)
        journal, loaded = open_for_writing(path)
        journal.close()
        assert loaded.entries in (some(3), some(4))
        assert tail in [each.read_bytes() for each in folder.iterdir() if each != path]
        outcomes.add((in_the_log, tail in beside, len(loaded.entries)))
    assert {(True, False, 3), (True, True, 3), (False, True, 3), (False, True, 4)} <= outcomes


def unique(disk: Disk, start: Files, offsets: int = 0) -> list[tuple[int, Files]]:
    """The states worth trying: each once, with the most that was acknowledged when it could arise."""
    states: dict[tuple[tuple[str, bytes], ...], int] = {}
    for acknowledged, files in crashes(disk.calls, start, offsets):
        key = tuple(sorted(files.items()))
        states[key] = max(acknowledged, states.get(key, 0))
    return [(acknowledged, dict(key)) for key, acknowledged in states.items()]


# --- the shim itself: it is seen to lose, tear and reorder, and to keep what was synced


def test_the_shim_loses_what_was_not_synced_and_keeps_what_was() -> None:
    calls = [Create("/d/f"), Sync("/d"), Write("/d/f", 0, b"ab"), Sync("/d/f"), Write("/d/f", 2, b"cd"), Write("/d/f", 4, b"ef")]
    last = {files["/d/f"] for _, files in crashes(calls, {}) if files.get("/d/f", b"").startswith(b"ab")}
    assert {b"ab", b"abcd", b"abcdef", b"ab\0\0ef", b"abc", b"abc\0", b"ab\0\0", b"abcde", b"abc\0ef", b"abcde\0"} <= last
    assert not any(len(data) > 6 for data in last)


def test_the_shim_may_lose_a_name_whose_directory_was_not_synced() -> None:
    calls = [Create("/d/t"), Write("/d/t", 0, b"x"), Sync("/d/t"), Rename("/d/t", "/d/f")]
    states = [files for _, files in crashes(calls, {})]
    assert {"/d/f": b"x"} in states
    assert {"/d/t": b"x"} in states
    assert {"/d/f": b"x"} in [files for _, files in crashes([*calls, Sync("/d")], {})]


def test_a_journal_that_forgets_to_sync_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch, instant_syncs: Callable[[], None]) -> None:
    path = folder / f"{SESSION}.jsonl"
    disk = Disk()
    with monkeypatch.context() as patch:
        disk.install(patch)
        use(path, disk, (1, 1))
    disk.calls = [call for call in disk.calls if not (isinstance(call, Sync) and os.path.isfile(call.path))]
    instant_syncs()

    def recover_from_all() -> None:
        for acknowledged, files in unique(disk, {}, offsets=10):
            lay_out(folder, files)
            check_recovery(path, acknowledged, appended=3)

    with pytest.raises(AssertionError, match="acknowledged"):
        recover_from_all()
