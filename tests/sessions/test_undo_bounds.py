"""An undo stays inside the session's folders as they are now, asks before it touches guarded files, and never acts on what was imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import UndoBounds, doubt_about, folders_of, imported_changes
from dragoman.sessions.copies import fork_log
from dragoman.sessions.log import read_log
from dragoman.sessions.restore import UndoRefused, restore
from dragoman.sessions.store import FileStore
from dragoman.sessions.undo import file_changes, plan_undo
from dragoman.values.record import Configured, Entry, FileChange, FilesChanged, FilesRestored, Started
from sessions.desks import Desk, put
from sessions.stores import session_id


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    root = tmp_path / "work"
    root.mkdir()
    return Desk(root)


def forged(path: str, *more: Entry) -> list[Entry]:
    """What an export may claim: that a call created a file, in a session that was held everywhere."""
    head = Started(1, 1, session_id(1), directories=("/",), imported_from="dragoman elsewhere")
    return [head, Configured(2, 1, "model", directories=("/",)), FilesChanged(3, 1, "call", (FileChange(path, "", "", 0),)), *more]


def test_what_was_imported_is_on_the_record_and_never_undone(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    path = store.add(tmp_path, forged(str(tmp_path / "a")))
    fork = store.fork(path)
    for log in (path, fork):
        entries = read_log(log).entries
        assert file_changes(entries) == []
        assert [change.seq for change in imported_changes(entries)] == [3]


def test_what_a_session_does_after_it_was_imported_is_undone(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    path = store.add(tmp_path, forged(str(tmp_path / "a"), FilesRestored(4, 1, (6,))))
    own = FilesChanged(6, 1, "own", (FileChange(str(tmp_path / "b"), "", "x"),))
    entries = (*read_log(path).entries, Configured(5, 1, "model", directories=(str(tmp_path),)), own)
    assert file_changes(entries) == [own], "the import does not say either what was undone"


def test_an_import_of_a_version_that_did_not_note_its_end_is_not_undone_at_all() -> None:
    assert file_changes(forged("/tmp/a")) == []
    assert len(imported_changes(forged("/tmp/a"))) == 1


def test_the_folders_that_an_import_names_do_not_count(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    head, *rest = forged("/etc/passwd")
    assert isinstance(head, Started)
    path = store.add(tmp_path, [Started(1, 1, head.session_id, directories=(str(tmp_path),)), *rest])
    assert folders_of(read_log(path).entries) == (os.path.realpath(tmp_path),)


def test_a_file_outside_the_folders_is_left_even_by_force(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    desk.write("a", "new")
    desk.call(lambda: outside.write_text("new"), "../outside")
    with pytest.raises(UndoRefused, match="outside the folders of this session") as refused:
        desk.undo()
    assert refused.value.can_force, "the rest can be undone"
    restored = desk.undo(force=True)
    assert [each.path for each in restored.left] == [str(outside)]
    assert outside.read_text() == "new"
    assert not desk.path("a").exists()


def test_a_folder_that_became_a_link_leads_nowhere_else(desk: Desk, tmp_path: Path) -> None:
    """The workspace is moved away and a link put in its place: the recorded paths are not in the folder it leads to."""
    desk.write("a", "new")
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere / "a", "new")
    desk.root.rename(tmp_path / "moved")
    desk.root.symlink_to(elsewhere)
    now = UndoBounds((os.path.realpath(desk.root),), is_guarded)
    plan = plan_undo(file_changes(desk.history.entries), desk.blobs, now)
    assert [(each.can_force, "outside" in each.reason) for each in plan.conflicts] == [(False, True)]
    restore(plan, force=True)
    assert (elsewhere / "a").read_text() == "new"


GUARDED = (".git/hooks/post-commit", ".bashrc", "AGENTS.md", ".envrc", ".vscode/tasks.json", ".dragoman/config.toml")


def test_guarded_files_need_force_and_every_one_of_them_is_named(desk: Desk) -> None:
    for name in ("a", "b", "c", "d", "e", "f", *GUARDED):
        desk.write(name, "new")
        if name not in GUARDED:
            put(desk.path(name), "somebody's")
    with pytest.raises(UndoRefused) as refused:
        desk.undo()
    for name in GUARDED:
        assert str(desk.path(name)) in str(refused.value)
    assert desk.path(".bashrc").read_text() == "new"
    desk.undo(force=True)
    assert not desk.path(".bashrc").exists()


def test_a_session_whose_head_is_lost_may_be_an_import(desk: Desk) -> None:
    desk.write("a", "new")
    assert doubt_about(desk.history.entries) == "", "a conversation in memory never had a head"
    doubted = UndoBounds((str(desk.root),), is_guarded, doubt_about(desk.history.entries[1:]))
    with pytest.raises(UndoRefused, match="whether it was imported"):
        restore(plan_undo(file_changes(desk.history.entries), desk.blobs, doubted))


@given(st.lists(st.sampled_from(["..", "a", "w", "w-evil", ".", "", "\0"]), max_size=5).map("/".join))
def test_whatever_a_path_looks_like_it_is_inside_or_refused(tail: str) -> None:
    path = "/srv/w/" + tail
    bounds = UndoBounds(("/srv/w",), is_guarded)
    plan = plan_undo([FilesChanged(1, 1, "c", (FileChange(path, "0" * 64, "", 0),))], Desk("/tmp").blobs, bounds)
    assert all(os.path.normpath(step.path) == step.path and step.path.startswith("/srv/w/") for step in plan.steps)


def test_a_fork_keeps_the_mark_of_the_import(tmp_path: Path) -> None:
    path = FileStore(tmp_path / "store").add(tmp_path, forged("/tmp/a"))
    target = os.path.join(os.path.dirname(path), f"{session_id(2)}.jsonl")
    fork_log(path, target)
    head = read_log(target).entries[0]
    assert isinstance(head, Started)
    assert head.imported_through == 3
