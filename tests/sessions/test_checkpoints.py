"""What calls did to files is kept, and can be undone: all of it or nothing, and never over somebody else's work."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.blobs import MemoryBlobs
from dragoman.history import History, MemoryJournal
from dragoman.messages import Blob, Message, Text, ToolCall, result, user
from dragoman.record import Entry, FileChange, FilesChanged, ToolFinished, ToolOutcome, ToolStarted, decode_entry, encode_entry
from dragoman.sessions import file_state
from dragoman.sessions.checkpoints import UNKNOWN, Checkpoints
from dragoman.sessions.restore import Restored, UndoFailed, UndoRefused, restore
from dragoman.sessions.undo import Plan, changes_after, changes_of_last_run, file_changes, is_ahead, plan_undo

Do = Callable[[], object]


class Desk:
    """A folder, a record, and calls that do to files what a test says."""

    def __init__(self, root: Path | str, blobs: Any = None) -> None:
        self.root = Path(os.path.realpath(root))
        self.journal = MemoryJournal()
        self.history = History(self.journal)
        self.blobs = blobs or MemoryBlobs()
        self.faults: list[str] = []
        self.writes: tuple[str, ...] = ()
        self.checkpoints = Checkpoints(self.history, self.blobs, lambda call, arguments: self.writes, on_fault=self.faults.append)
        self._calls = 0

    def path(self, name: str) -> Path:
        return self.root / name

    def start(self, *names: str) -> ToolCall:
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", "change")
        self.writes = tuple(str(self.path(name)) for name in names)
        self.checkpoints.start_tool(call)
        asyncio.run(self.checkpoints.sync())
        return call

    def finish(self, call: ToolCall, outcome: ToolOutcome = "finished") -> None:
        self.checkpoints.finish_tool(result(call, "done"), outcome)

    def call(self, do: Do, *names: str, outcome: ToolOutcome = "finished") -> ToolCall:
        call = self.start(*names)
        do()
        self.finish(call, outcome)
        return call

    def write(self, name: str, data: bytes | str) -> ToolCall:
        return self.call(lambda: put(self.path(name), data), name)

    def prompt(self, text: str = "go on") -> None:
        self.history.say(user(text))
        self.history.say(Message("assistant", (Text("I will."),)))

    @property
    def changes(self) -> list[FilesChanged]:
        """What was written down, without what was written ahead."""
        return [entry for entry in self.history.entries if isinstance(entry, FilesChanged) and not is_ahead(entry)]

    def plan(self, runs: int = 1) -> Plan:
        return plan_undo(changes_of_last_run(self.history.entries, runs), self.blobs)

    def undo(self, runs: int = 1, *, force: bool = False) -> Restored:
        plan = self.plan(runs)
        restored = restore(plan, force=force)
        self.history.restore_files(plan.changes)
        return restored

    def tree(self) -> dict[str, tuple[bytes | str, int]]:
        return tree(self.root)


def put(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def tree(root: Path) -> dict[str, tuple[bytes | str, int]]:
    """Every file, link and odd thing: content and mode. Folders are no matter."""
    found: dict[str, tuple[bytes | str, int]] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            found[str(path.relative_to(root))] = (content, status.st_mode)
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    root = tmp_path / "work"
    root.mkdir()
    return Desk(root)


# --- what is written down ------------------------------------------------------------------------------------------------


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
    assert is_ahead(ahead)
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
    checkpoints.finish_tool(result(call, "done"))
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


# --- putting it back -----------------------------------------------------------------------------------------------------


def test_created_files_go_removed_ones_come_back_and_modes_with_them(desk: Desk) -> None:
    put(desk.path("gone/x.sh"), "#!")
    desk.path("gone/x.sh").chmod(0o750)
    put(desk.path("mode"), "m")
    desk.path("mode").chmod(0o604)
    before = desk.tree()

    def do() -> None:
        put(desk.path("new/n"), "n")
        desk.path("gone/x.sh").unlink()
        desk.path("gone").rmdir()
        desk.path("mode").chmod(0o755)

    desk.call(do, "new/n", "gone/x.sh", "mode")
    assert len(desk.changes[0].files) == 3
    restored = desk.undo()
    assert desk.tree() == before
    assert len(restored.files) == 3
    assert desk.path("new").is_dir(), "folders that become empty are left"


def test_several_calls_on_one_file_are_undone_to_before_the_first(desk: Desk) -> None:
    put(desk.path("a"), "0")
    desk.prompt()
    for text in "123":
        desk.write("a", text)
    desk.undo()
    assert desk.path("a").read_text() == "0"


def test_undoing_twice_does_nothing_the_second_time(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.write("a", "new")
    changes = changes_of_last_run(desk.history.entries)
    desk.undo()
    put(desk.path("a"), "somebody's")
    assert desk.plan().changes == ()
    assert desk.undo().files == ()
    assert desk.path("a").read_text() == "somebody's"
    put(desk.path("a"), "old")
    again = plan_undo(changes, desk.blobs)
    assert (again.steps, again.conflicts) == ((), ()), "as it was already, though nobody wrote that down"


def test_a_file_changed_since_is_refused_and_all_others_stay_too(desk: Desk) -> None:
    desk.write("a", "a")
    desk.write("b", "b")
    put(desk.path("b"), "somebody's")
    before = desk.tree()
    with pytest.raises(UndoRefused, match="changed by somebody else since") as refused:
        desk.undo()
    assert [conflict.path for conflict in refused.value.conflicts] == [str(desk.path("b"))]
    assert refused.value.exit_code == 42
    assert desk.tree() == before


def test_force_overrides_and_what_was_displaced_can_be_had_back(desk: Desk) -> None:
    put(desk.path("b"), "old")
    desk.write("b", "b")
    put(desk.path("b"), "somebody's")
    [file] = desk.undo(force=True).files
    assert desk.path("b").read_text() == "old"
    assert desk.blobs.get(file.before) == b"somebody's"


def test_somebodys_edit_between_two_calls_is_not_lost(desk: Desk) -> None:
    put(desk.path("a"), "0")
    desk.prompt()
    desk.write("a", "1")
    put(desk.path("a"), "somebody's")
    second = desk.history.entries[-1].seq
    desk.write("a", "somebody's, and 2")
    with pytest.raises(UndoRefused, match="between two of the calls"):
        desk.undo()
    restore(plan_undo(changes_after(desk.history.entries, second), desk.blobs))
    assert desk.path("a").read_text() == "somebody's"


def test_somebodys_edit_that_a_later_call_removed_is_not_forgotten(desk: Desk) -> None:
    """Everything looks as it did, yet there is something that could still be had back."""
    desk.prompt()
    desk.write("a", "1")
    put(desk.path("a"), "somebody's")
    desk.call(desk.path("a").unlink, "a")
    with pytest.raises(UndoRefused, match="between two of the calls"):
        desk.undo()
    assert desk.undo(force=True).files == ()


def test_a_file_removed_since_is_a_conflict_and_comes_back_by_force_with_its_mode(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.path("a").chmod(0o640)
    desk.write("a", "new")
    desk.path("a").unlink()
    with pytest.raises(UndoRefused, match="removed by somebody else"):
        desk.undo()
    desk.undo(force=True)
    assert desk.tree() == {"a": (b"old", stat.S_IFREG | 0o640)}


def test_a_mode_that_somebody_set_stays_where_the_call_left_modes_alone(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.write("a", "new")
    desk.path("a").chmod(0o600)
    desk.undo()
    assert desk.tree() == {"a": (b"old", stat.S_IFREG | 0o600)}


def test_a_file_changed_between_planning_and_restoring_is_refused(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.write("a", "new")
    plan = desk.plan()
    put(desk.path("a"), "somebody's")
    with pytest.raises(UndoRefused, match="just now"):
        restore(plan)
    assert desk.tree()["a"][0] == b"somebody's"
    assert len(desk.tree()) == 1, "nothing is left lying about"


def test_a_missing_or_damaged_copy_is_told_and_left_out_by_force(desk: Desk) -> None:
    put(desk.path("a"), "old a")
    put(desk.path("b"), "old b")
    desk.write("a", "new")
    desk.write("b", "new")
    desk.blobs._data[desk.changes[0].files[0].before] = b"not that"
    with pytest.raises(UndoRefused, match="missing or damaged"):
        desk.undo()
    restored = desk.undo(force=True)
    assert [conflict.path for conflict in restored.left] == [str(desk.path("a"))]
    assert (desk.path("a").read_text(), desk.path("b").read_text()) == ("new", "old b")


def test_large_files_are_noted_and_not_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_state, "KEEP_BYTES", 10)
    put(desk.path("large"), b"x" * 11)
    put(desk.path("small"), "s")
    desk.prompt()
    desk.write("large", b"y" * 12)
    desk.write("small", b"z" * 13)
    assert desk.changes[0].files[0].before.startswith("stat:")
    plan = desk.plan()
    assert [(conflict.path, conflict.can_force) for conflict in plan.conflicts] == [(str(desk.path("large")), False)]
    assert "not kept" in plan.conflicts[0].reason
    restore(plan, force=True)
    assert (desk.path("large").read_bytes(), desk.path("small").read_text()) == (b"y" * 12, "s")


def test_a_large_file_changed_since_by_somebody_else_is_noticed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_state, "KEEP_BYTES", 10)
    desk.write("large", b"y" * 12)
    put(desk.path("large"), b"y" * 13)
    with pytest.raises(UndoRefused, match="by somebody else"):
        desk.undo()


def test_the_owner_stays(desk: Desk) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser may give files away")
    put(desk.path("a"), "old")
    desk.write("a", "new")
    os.chown(desk.path("a"), 1234, 1235)
    desk.undo()
    status = desk.path("a").stat()
    assert (desk.path("a").read_text(), status.st_uid, status.st_gid) == ("old", 1234, 1235)


# --- links and other things in the way -----------------------------------------------------------------------------------


def test_a_link_in_the_files_place_is_never_followed(desk: Desk, tmp_path: Path) -> None:
    put(tmp_path / "outside", "precious")
    put(desk.path("a"), "old")
    desk.write("a", "new")
    desk.path("a").unlink()
    desk.path("a").symlink_to(tmp_path / "outside")
    with pytest.raises(UndoRefused):
        desk.undo()
    desk.undo(force=True)
    assert (tmp_path / "outside").read_text() == "precious"
    assert desk.tree() == {"a": (b"old", stat.S_IFREG | stat.S_IMODE(desk.path("a").stat().st_mode))}


@pytest.mark.parametrize("existed", [True, False])
def test_a_link_in_a_folders_place_is_never_followed(desk: Desk, tmp_path: Path, existed: bool) -> None:
    if existed:
        put(desk.path("d/a"), "old")
    desk.write("d/a", "new")
    put(tmp_path / "outside/a", "new")  # just what the call left: only the way there is another
    desk.path("d").rename(tmp_path / "moved")
    desk.path("d").symlink_to(tmp_path / "outside")
    for force in (False, True):
        plan = desk.plan()
        assert [conflict.can_force for conflict in plan.conflicts] == [False]
        if not force:
            with pytest.raises(UndoRefused, match="place of its folder"):
                restore(plan)
        else:
            assert restore(plan, force=True).files == ()
    assert (tmp_path / "outside/a").read_text() == "new"


def test_a_folder_or_a_pipe_in_the_files_place_is_left(desk: Desk) -> None:
    for name in ("folder", "pipe"):
        put(desk.path(name), "old")
    desk.prompt()
    for name in ("folder", "pipe"):
        desk.write(name, "new")
        desk.path(name).unlink()
    desk.path("folder").mkdir()
    os.mkfifo(desk.path("pipe"))
    plan = desk.plan()
    assert [conflict.can_force for conflict in plan.conflicts] == [False, False]
    assert restore(plan, force=True).files == ()


# --- all or nothing ------------------------------------------------------------------------------------------------------


CALLS = ("open", "write", "fsync", "replace", "link", "fchmod", "mkdir", "unlink")


@pytest.mark.parametrize("name", CALLS)
def test_a_fault_at_any_moment_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The n-th call of one kind fails, for all n until none does."""
    for at in range(1, 200):
        root = tmp_path / f"{name}-{at}"
        root.mkdir()
        desk = Desk(root)
        for old in ("x/changed", "gone/removed", "mode"):
            put(desk.path(old), f"old {old}")
        before = desk.tree()

        def do(desk: Desk = desk) -> None:
            put(desk.path("x/changed"), "new")
            put(desk.path("created"), "new")
            desk.path("gone/removed").unlink()
            desk.path("gone").rmdir()
            desk.path("mode").chmod(0o700)

        desk.call(do, "created", "x/changed", "gone/removed", "mode")
        after, plan = desk.tree(), desk.plan()
        with monkeypatch.context() as patch:
            failed = failing_at(patch, name, at)
            try:
                restore(plan)
                expected = before
            except (UndoFailed, UndoRefused):
                expected = after
                assert not desk.path("gone").exists(), "nor a folder that was made for it"
        assert desk.tree() == expected, at
        if not failed:
            return
    raise AssertionError("it never came to an end")


def failing_at(patch: pytest.MonkeyPatch, name: str, at: int) -> list[int]:
    """The `at`-th call fails once. Returns a list that is empty until it has."""
    original, calls, failed = getattr(os, name), [0], list[int]()

    def fail(*args: Any, **keywords: Any) -> Any:
        calls[0] += 1
        if calls[0] == at:
            failed.append(at)
            raise OSError(errno.EIO, "Input/output error")
        return original(*args, **keywords)

    patch.setattr(os, name, fail)
    return failed


# --- a crash in between --------------------------------------------------------------------------------------------------


def reopened(desk: Desk) -> list[Entry]:
    """What is read again of what was on disk."""
    return [decode_entry(encode_entry(entry)) for entry in desk.journal.entries[: desk.journal.synced]]


@pytest.mark.parametrize("resumed", [False, True])
def test_after_a_crash_the_change_can_still_be_undone_by_whoever_says_so(desk: Desk, resumed: bool) -> None:
    put(desk.path("a"), "old")
    desk.path("a").chmod(0o640)
    call = desk.start("a", "b")
    put(desk.path("a"), "half")
    put(desk.path("b"), "created")
    history = History(entries=reopened(desk))
    if resumed:
        history.finish_tool(result(call, "interrupted", is_error=True), "unknown")
    plan = plan_undo(changes_of_last_run(history.entries), desk.blobs)
    assert [conflict.can_force for conflict in plan.conflicts] == [True, True]
    with pytest.raises(UndoRefused, match="broken off"):
        restore(plan)
    restore(plan, force=True)
    assert desk.tree() == {"a": (b"old", stat.S_IFREG | 0o640)}
    history.restore_files(plan.changes)
    assert changes_of_last_run(history.entries) == []


def test_after_a_crash_before_the_call_did_anything_there_is_nothing_to_undo(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.start("a")
    plan = plan_undo(changes_of_last_run(reopened(desk)), desk.blobs)
    assert (len(plan.changes), plan.steps, plan.conflicts) == (1, (), ())


def test_what_was_written_ahead_does_not_count_once_the_call_has_ended(desk: Desk) -> None:
    put(desk.path("a"), "old")
    desk.call(lambda: None, "a", outcome="cancelled")
    put(desk.path("a"), "somebody's")
    assert file_changes(desk.history.entries) == []


# --- which changes -------------------------------------------------------------------------------------------------------


def paths(changes: Iterable[FilesChanged]) -> list[str]:
    return [os.path.basename(file.path) for change in changes for file in change.files]


def test_the_last_run_is_what_came_after_the_last_prompt(desk: Desk) -> None:
    desk.history.say(user("environment"))
    desk.prompt()
    desk.write("a", "1")
    desk.prompt()
    desk.write("b", "1")
    desk.write("c", "1")
    entries = desk.history.entries
    assert paths(changes_of_last_run(entries)) == ["b", "c"]
    assert paths(changes_of_last_run(entries, 2)) == ["a", "b", "c"]
    assert paths(changes_of_last_run(entries, 9)) == ["a", "b", "c"]
    desk.undo()
    assert desk.plan().changes == ()
    assert paths(changes_of_last_run(desk.history.entries, 2)) == ["a"]


def test_a_note_of_the_programs_own_is_no_prompt(desk: Desk) -> None:
    desk.prompt()
    desk.write("a", "1")
    desk.prompt("you go in circles")
    desk.write("b", "1")
    assert paths(changes_of_last_run(desk.history.entries)) == ["b"]
    assert paths(changes_of_last_run(desk.history.entries, is_note=lambda message: "circles" in message.text)) == ["a", "b"]


def test_a_rewound_prompt_does_not_count_but_what_it_changed_does(desk: Desk) -> None:
    desk.prompt()
    desk.write("a", "1")
    here = desk.history.entries[-1]
    desk.prompt()
    desk.write("b", "1")
    assert paths(changes_after(desk.history.entries, here.seq)) == ["b"]
    desk.history.rewind(here)
    assert paths(changes_of_last_run(desk.history.entries)) == ["a", "b"]
    desk.prompt()
    assert paths(changes_of_last_run(desk.history.entries)) == []


def test_rewinding_with_files(desk: Desk) -> None:
    desk.write("a", "1")
    before, here = desk.tree(), desk.history.entries[-1]
    desk.write("a", "2")
    desk.write("b", "2")
    plan = plan_undo(changes_after(desk.history.entries, here.seq), desk.blobs)
    restore(plan)
    desk.history.restore_files(plan.changes)
    desk.history.rewind(here)
    assert desk.tree() == before


# --- whatever happens ----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "d/a", "d/e/a"])
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.binary(max_size=3)),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("mode"), NAMES, st.sampled_from([0o600, 0o644, 0o755, 0o400])),
)
CALL_OPERATIONS = st.lists(OPERATIONS, min_size=1, max_size=3)
RUNS = st.lists(st.lists(CALL_OPERATIONS, max_size=3), min_size=1, max_size=5)


def act(desk: Desk, operation: tuple[str, str, Any]) -> None:
    what, name, value = operation
    path = desk.path(name)
    if what == "write":
        if path.exists():
            path.chmod(path.stat().st_mode | 0o200)
        put(path, value)
    elif path.exists():
        path.unlink() if what == "remove" else path.chmod(value)


def carry_out(desk: Desk, operations: list[tuple[str, str, Any]]) -> None:
    desk.call(lambda: [act(desk, operation) for operation in operations], *(name for _, name, _ in operations))


@given(RUNS, st.data())
def test_undoing_the_last_runs_brings_everything_back_byte_for_byte(runs: list[list[Any]], data: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        desk = Desk(root)
        put(desk.path("d/a"), "there from the start")
        trees = []
        for run in runs:
            trees.append(desk.tree())
            desk.prompt()
            for operations in run:
                carry_out(desk, operations)
        standing = len(runs)
        while standing:
            back = data.draw(st.integers(1, standing))
            plan = desk.plan(len(runs) - standing + back)
            assert plan.conflicts == ()
            restore(plan)
            desk.history.restore_files(plan.changes)
            standing -= back
            assert desk.tree() == trees[standing]
            again = desk.plan(len(runs) - standing)
            assert (again.changes, again.steps) == ((), ())
            if data.draw(st.booleans()):
                break


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), CALL_OPERATIONS),
        st.tuples(st.just("somebody"), NAMES),
        st.tuples(st.just("prompt"), st.none()),
    ),
    max_size=12,
)


@given(EVENTS, st.integers(1, 3))
def test_what_somebody_else_wrote_is_never_lost_without_force(events: list[tuple[str, Any]], runs: int) -> None:
    with TemporaryDirectory() as root:
        desk = Desk(root)
        theirs: list[dict[str, bytes]] = [{}]
        """By prompt: what somebody wrote since, the last to each file."""
        for number, (what, value) in enumerate([("prompt", None), *events]):
            if what == "call":
                carry_out(desk, value)
            elif what == "prompt":
                desk.prompt()
                theirs.append({})
            else:
                written = f"somebody's {number}".encode()
                act(desk, ("write", value, written))
                theirs[-1][value] = written
        before = desk.tree()
        try:
            desk.undo(runs)
        except UndoRefused:
            assert desk.tree() == before
            return
        for name, written in {name: written for since in theirs[-runs:] for name, written in since.items()}.items():
            assert desk.tree()[name][0] == written


@given(EVENTS)
def test_force_brings_back_what_was_there_before_the_calls_and_keeps_what_it_displaces(events: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as root:
        desk = Desk(root)
        desk.prompt()
        for number, (what, value) in enumerate(events):
            if what == "call":
                carry_out(desk, value)
            elif what == "somebody":
                act(desk, ("write", value, f"somebody's {number}".encode()))
        before = desk.tree()
        first: dict[str, FileChange] = {}
        for change in changes_of_last_run(desk.history.entries):
            for file in change.files:
                first.setdefault(file.path, file)
        restored = desk.undo(force=True)
        for path, file in first.items():
            found = Path(path)
            assert (desk.blobs.get(file.before) if file.before else None) == (found.read_bytes() if found.exists() else None)
        for file in restored.files:
            name = os.path.relpath(file.path, desk.root)
            assert (name in before) == bool(file.before)
            assert not file.before or desk.blobs.get(file.before) == before[name][0]
