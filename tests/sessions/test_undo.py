"""What calls did to files can be undone: all of it or nothing, no link followed, and never over somebody else's work."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman.sessions import file_state
from dragoman.sessions.restore import UndoFailed, UndoRefused, restore
from dragoman.sessions.undo import changes_after, changes_of_last_run, plan_undo
from dragoman.values.record import FileChange
from sessions.desks import Desk, put


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    root = tmp_path / "work"
    root.mkdir()
    return Desk(root)


# --- putting it back --------------------------------------------------------------------------------------------------


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
    again = plan_undo(changes, desk.blobs, desk.bounds)
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
    restore(plan_undo(changes_after(desk.history.entries, second), desk.blobs, desk.bounds))
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


def test_a_file_changed_while_restoring_is_refused_and_the_rest_taken_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        put(desk.path(name), "old")
    desk.prompt()
    for name in ("a", "b"):
        desk.write(name, "new")
    replace = os.replace

    def meanwhile(*args: Any, **keywords: Any) -> None:
        monkeypatch.setattr(os, "replace", replace)
        replace(*args, **keywords)
        put(desk.path("b"), "somebody's")

    monkeypatch.setattr(os, "replace", meanwhile)
    with pytest.raises(UndoRefused, match="b: it was changed by somebody else just now"):
        desk.undo()
    assert {name: content for name, (content, _) in desk.tree().items()} == {"a": b"new", "b": b"somebody's"}


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
    assert "no copy of it was kept" in plan.conflicts[0].reason
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


# --- links and other things in the way --------------------------------------------------------------------------------


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


@pytest.mark.parametrize("path", ["a", "", "{root}/../a", "{root}/./a", "{root}/a\0b"])
def test_a_path_that_is_not_plain_and_absolute_is_left_alone(desk: Desk, path: str) -> None:
    """No call of ours leaves one behind: the log was tampered with."""
    blob = desk.blobs.put("text/plain", b"planted")
    desk.history.change_files("1", [FileChange(path.format(root=desk.root), blob.sha256, "")])
    plan = desk.plan()
    assert [conflict.can_force for conflict in plan.conflicts] == [False]
    assert restore(plan, force=True).files == ()


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


# --- all or nothing ---------------------------------------------------------------------------------------------------


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
