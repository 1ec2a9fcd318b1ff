"""What calls do to files is written down with what was there before, whatever happens to the call."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.loop.history import History
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.checkpoints import UNKNOWN, Checkpoints
from dragoman.sessions.opening import open_read_only
from dragoman.sessions.restore import UndoRefused, restore
from dragoman.sessions.undo import changes_of_last_run, file_changes, is_written_ahead, plan_undo
from dragoman.testing.journal import MemoryJournal
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import Blob, ToolCall, tool_result
from dragoman.values.record import Entry, FilesChanged, ToolFinished, ToolOutcome, ToolStarted, encode_entry
from dragoman.values.record_reading import decode_entry
from sessions.desks import Desk, put


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    root = tmp_path / "work"
    root.mkdir()
    return Desk(root)


# --- what is written down ---------------------------------------------------------------------------------------------


def test_a_change_is_written_down_before_the_result_and_one_sync_covers_both(desk: Desk) -> None:
    put(desk.path("a.txt"), "old")
    desk.path("a.txt").chmod(0o640)
    call = desk.write("a.txt", "new")
    asyncio.run(desk.checkpoints.sync())
    kinds = [type(entry) for entry in desk.history.entries]
    assert kinds == [ToolStarted, FilesChanged, FilesChanged, ToolFinished]
    assert desk.journal.synced == len(desk.journal.entries)
    [change] = desk.changes
    [file] = change.files
    assert (change.call_id, file.path) == (call.id, str(desk.path("a.txt")))
    assert (desk.blobs.get(file.before), stat.S_IMODE(file.before_mode)) == (b"old", 0o640)
    assert file.after not in ("", file.before, UNKNOWN)


def test_what_was_there_is_kept_and_named_before_the_tool_runs(desk: Desk) -> None:
    put(desk.path("a.txt"), "old")
    desk.start("a.txt")
    ahead = desk.history.entries[-1]
    assert isinstance(ahead, FilesChanged)
    assert is_written_ahead(ahead)
    assert desk.blobs.get(ahead.files[0].before) == b"old"
    assert desk.journal.synced == 2


def test_bytes_are_kept_before_the_entry_that_names_them(tmp_path: Path) -> None:
    order: list[str] = []

    class Blobs(MemoryBlobs):
        def put(self, mime: str, data: bytes) -> Blob:
            order.append("blob")
            return super().put(mime, data)

    class Journal(MemoryJournal):
        def append(self, entry: Entry) -> None:
            order.append(type(entry).__name__)
            super().append(entry)

        async def sync(self) -> None:
            order.append("sync")

    put(tmp_path / "a", "old")
    path = os.path.realpath(tmp_path / "a")
    checkpoints = Checkpoints(History(Journal()), Blobs(), lambda call, arguments: (path,))
    call = ToolCall("1", "change")
    checkpoints.start_tool(call)
    asyncio.run(checkpoints.sync())
    put(tmp_path / "a", "new")
    checkpoints.finish_tool(tool_result(call, "done"))
    asyncio.run(checkpoints.sync())
    assert order == ["ToolStarted", "blob", "FilesChanged", "sync", "FilesChanged", "ToolFinished", "sync"]


def test_where_nobody_waited_for_sync_the_change_can_be_undone_all_the_same(desk: Desk) -> None:
    put(desk.path("a"), "old")
    call = ToolCall("1", "change")
    desk.writes = (str(desk.path("a")),)
    desk.checkpoints.start_tool(call)
    put(desk.path("a"), "new")
    desk.finish(call)
    desk.undo()
    assert desk.path("a").read_text() == "old"


def test_a_call_that_changes_nothing_leaves_no_change(desk: Desk) -> None:
    put(desk.path("a"), "same")
    desk.write("a", "same")
    desk.call(lambda: None, "a", "not-there")
    assert desk.changes == []
    assert file_changes(desk.history.entries) == []


def test_a_call_that_writes_nothing_adds_nothing(desk: Desk) -> None:
    desk.call(lambda: None)
    assert [type(entry) for entry in desk.history.entries] == [ToolStarted, ToolFinished]


def test_a_result_of_a_call_that_never_started_is_passed_on(desk: Desk) -> None:
    desk.finish(ToolCall("x", "change"), "not_run")
    assert [type(entry) for entry in desk.history.entries] == [ToolFinished]


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "unknown"])
def test_a_call_that_ended_half_way_is_covered(desk: Desk, outcome: ToolOutcome) -> None:
    put(desk.path("a"), "old")
    desk.call(lambda: put(desk.path("a"), "half"), "a", "b", outcome=outcome)
    assert [file.path for change in desk.changes for file in change.files] == [str(desk.path("a"))]
    desk.undo()
    assert desk.path("a").read_text() == "old"


def test_edited_arguments_are_what_counts(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def writes(call: ToolCall, arguments: str) -> tuple[str, ...]:
        asked.append((call.id, arguments))
        return ()

    Checkpoints(History(), MemoryBlobs(), writes).start_tool(ToolCall("1", "change"), '{"a": 1}')
    assert asked == [("1", '{"a": 1}')]


def test_paths_through_a_link_are_kept_as_what_they_lead_to(desk: Desk) -> None:
    put(desk.path("real/a"), "old")
    desk.path("link").symlink_to("real")
    desk.write("link/a", "new")
    assert desk.changes[0].files[0].path == str(desk.path("real/a"))
    desk.undo()
    assert desk.path("real/a").read_text() == "old"


def test_a_call_runs_where_its_files_cannot_be_told_or_kept(desk: Desk) -> None:
    class Full(MemoryBlobs):
        def put(self, mime: str, data: bytes) -> Blob:
            raise OSError(errno.ENOSPC, "No space left on device")

    def broken(call: ToolCall, arguments: str) -> tuple[str, ...]:
        raise ValueError("bad tool")

    faults: list[str] = []
    Checkpoints(desk.history, desk.blobs, broken, on_fault=faults.append).start_tool(ToolCall("1", "change"))
    assert "bad tool" in faults.pop()

    full = Desk(desk.root, Full())
    put(full.path("a"), "old")
    full.write("a", "new")
    assert "No space left" in full.faults[0]
    with pytest.raises(UndoRefused, match="missing or damaged"):
        full.undo()
    assert full.path("a").read_text() == "new"


def test_a_name_that_cannot_be_written_down_is_told(desk: Desk) -> None:
    desk.call(lambda: put(desk.path("\udcff"), "new"), "\udcff")
    assert desk.changes == []
    assert "not UTF-8" in desk.faults[0]


# --- a crash in between -----------------------------------------------------------------------------------------------


def reopened(desk: Desk) -> list[Entry]:
    """What is read again of what was on disk."""
    return [decode_entry(encode_entry(entry)) for entry in desk.journal.entries[: desk.journal.synced]]


@pytest.mark.parametrize("closed_as", ["", "unknown", "cancelled"])
def test_where_nobody_knows_what_a_call_did_it_can_still_be_undone_by_force(desk: Desk, closed_as: ToolOutcome) -> None:
    """After a crash, resumed or not; and where a call was closed behind our back."""
    put(desk.path("a"), "old")
    desk.path("a").chmod(0o640)
    call = desk.start("a", "b")
    put(desk.path("a"), "half")
    put(desk.path("b"), "created")
    history = History(entries=reopened(desk))
    if closed_as:
        history.finish_tool(tool_result(call, "interrupted", is_error=True), closed_as)
    plan = plan_undo(changes_of_last_run(history.entries), desk.blobs, desk.bounds)
    assert [conflict.can_force for conflict in plan.conflicts] == [True, True]
    with pytest.raises(UndoRefused, match="interrupted"):
        restore(plan)
    restore(plan, force=True)
    assert desk.tree() == {"a": (b"old", stat.S_IFREG | 0o640)}
    history.restore_files(plan.changes)
    assert changes_of_last_run(history.entries) == []


KILLED = """
import asyncio, os, signal, sys
from dragoman.loop.history import History
from dragoman.values.messages import ToolCall
from dragoman.values.record import Started
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.checkpoints import Checkpoints
from dragoman.sessions.opening import create
log, blobs, path = sys.argv[1:]
started = Started(1, 0, "20261115-120000-0123abcd")
history = History(create(log, started, sys.exit), entries=[started])
checkpoints = Checkpoints(history, FileBlobs(blobs), lambda call, arguments: (path,))
checkpoints.start_tool(ToolCall("1", "change"))
asyncio.run(checkpoints.sync())
with open(path, "w") as file:
    file.write("half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_program_that_is_killed_leaves_behind_what_undoing_takes(desk: Desk, tmp_path: Path) -> None:
    put(desk.path("a"), "old")
    log, blobs = str(tmp_path / "20261115-120000-0123abcd.jsonl"), str(tmp_path / "blobs")
    killed = subprocess.run([sys.executable, "-c", KILLED, log, blobs, str(desk.path("a"))], check=False, capture_output=True, text=True)
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    assert desk.path("a").read_text() == "half"
    plan = plan_undo(changes_of_last_run(open_read_only(log).entries), FileBlobs(blobs), desk.bounds)
    restore(plan, force=True)
    assert desk.path("a").read_text() == "old"


def test_after_a_crash_before_the_call_did_anything_there_is_nothing_to_undo(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.start("a")
    plan = plan_undo(changes_of_last_run(reopened(desk)), desk.blobs, desk.bounds)
    assert (len(plan.changes), plan.steps, plan.conflicts) == (1, (), ())


@pytest.mark.parametrize("outcome", ["finished", "failed", "cancelled", "not_run"])
def test_what_was_written_ahead_does_not_count_once_the_call_has_ended(desk: Desk, outcome: ToolOutcome) -> None:
    put(desk.path("a"), "old")
    desk.call(lambda: None, "a", outcome=outcome)
    put(desk.path("a"), "somebody's")
    assert file_changes(desk.history.entries) == []
