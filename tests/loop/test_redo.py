"""A redo takes the last undo back, byte for byte, in random sequences of edits, commands, edits by the user, undos and redos."""

from __future__ import annotations

import os
import shutil
import stat
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.loop.kept_work import KeptWork
from dragoman.sessions.bounds import UndoBounds
from dragoman.sessions.restore import RestoreResult, UndoRefused, restore
from dragoman.sessions.undo import UndoPlan, changes_of_last_changing_run, plan_redo, plan_undo, undos_to_redo
from dragoman.values.messages import assistant, user
from dragoman.values.record import FilesChanged, FilesRestored
from loop.test_kept_work import COMMANDS, NAMES, Desk, Files, files_in, put, repository

EXAMPLES = 400 if os.environ.get("DRAGOMAN_LONG") else 15

_NAMES = st.sampled_from(NAMES)
_CONTENTS = st.sampled_from([b"", b"one\n", b"two\r\n", b"\0\xff three", b"four\n" * 40])
_CALLS = st.one_of(
    st.tuples(st.just("edit"), _NAMES, _CONTENTS),
    st.tuples(st.just("run"), st.sampled_from(COMMANDS), st.none()),
)
_USERS = st.one_of(
    st.tuples(st.just("user writes"), _NAMES, _CONTENTS),
    st.tuples(st.just("user removes"), _NAMES, st.none()),
    st.tuples(st.just("user writes what was undone"), st.integers(0, 9), _CONTENTS),
)
_UNDO, _REDO, _FORCE = (st.tuples(st.just(act), st.none(), st.none()) for act in ("undo", "redo", "redo by force"))
STEPS = st.lists(
    st.one_of(
        st.tuples(_CALLS),
        st.tuples(_USERS),
        st.tuples(_CALLS, _UNDO, _USERS, _REDO),
        st.tuples(_CALLS, _CALLS, _UNDO, _UNDO, _USERS, _REDO, _REDO),
        st.tuples(_UNDO, _REDO, _UNDO),
        st.tuples(_UNDO),
        st.tuples(_REDO),
        st.tuples(_FORCE),
    ),
    min_size=3,
    max_size=7,
).map(lambda blocks: [step for block in blocks for step in block])


class Undone(NamedTuple):
    """An undo that went well: all files before it and after it."""

    before: Files
    after: Files

    @property
    def changed(self) -> list[str]:
        return [name for name in self.before.keys() | self.after.keys() if self.before.get(name) != self.after.get(name)]


class Editor:
    """A desk with prompts, and undos and redos as the program makes them."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.desk = Desk(root, folder / "blobs")
        self.root = root
        self.undone: list[Undone] = []
        self.refusals: list[UndoRefused] = []

    def ask(self, do: str, what: str, data: bytes) -> None:
        history = self.desk.history
        history.say(user(f"{do} {what}"))
        before = files_in(self.root)
        if do == "run":
            self.desk.run(what)
        else:
            self.desk.edit(what, data)
        history.say(assistant("Done."))
        if files_in(self.root) != before:
            assert undos_to_redo(history.entries) == [], "a change by a call ends what could be redone"
        if not undos_to_redo(history.entries):
            self.undone.clear()

    def undo(self) -> None:
        history = self.desk.history
        before = files_in(self.root)
        plan = plan_undo(changes_of_last_changing_run(history.entries), self.desk.blobs, self._bounds)
        if not plan.changes or (restored := self._try(plan, force=False)) is None:
            assert files_in(self.root) == before
            return
        history.restore_files(plan.changes, restored.files)
        if restored.files:
            self.undone.append(Undone(before, files_in(self.root)))

    def redo(self, *, force: bool) -> None:
        history = self.desk.history
        undos = undos_to_redo(history.entries)
        assert len(undos) == len(self.undone)
        if not undos:
            return
        last, now = self.undone[-1], files_in(self.root)
        theirs = [name for name in last.changed if content(now, name) not in (content(last.after, name), content(last.before, name))]
        restored = self._try(plan_redo(undos[-1], self.desk.blobs, self._bounds), force=force)
        if restored is None:
            assert files_in(self.root) == now, "what is refused has touched nothing"
            names_link = any(conflict.path.endswith("/link.txt") for conflict in self.refusals[-1].conflicts)  # of links nothing is kept
            assert theirs or names_link or any(is_hindered(self.root / name) for name in last.changed)
            return
        assert force or theirs == [], "what the user changed since was overwritten"
        history.append(FilesRestored(*history.stamp(), undos[-1].seqs, restored.files, undos[-1].seq))
        self.undone.pop()
        left = {os.path.relpath(each.path, self.root) for each in restored.left}
        found = files_in(self.root)
        for name in now.keys() | found.keys() | set(last.changed):
            if name in left or name not in last.changed:
                assert found.get(name) == now.get(name), name
                continue
            assert content(found, name) == content(last.before, name), name
            if now.get(name, (b"", 0))[1] == last.after.get(name, (b"", 0))[1]:
                assert found.get(name) == last.before.get(name), f"the mode of {name}"
        for name in theirs:
            if name not in left and name in now:
                data = now[name][0]
                assert self.desk.blobs.get(sha256(data).hexdigest()) == data, "what is overwritten by force is kept"

    def _try(self, plan: UndoPlan, *, force: bool) -> RestoreResult | None:
        try:
            return restore(plan, force=force)
        except UndoRefused as refused:
            self.refusals.append(refused)
            return None

    @property
    def _bounds(self) -> UndoBounds:
        return UndoBounds((str(self.root),), lambda path: False)


def content(files: Files, name: str) -> bytes | None:
    return files[name][0] if name in files else None


def is_hindered(path: Path) -> bool:
    return path.is_dir() or path.is_symlink() or any(each.is_file() for each in path.parents)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(tmp_path_factory.mktemp("template") / "work")


@pytest.fixture
def editor(tmp_path: Path, template: Path) -> Editor:
    return copied(tmp_path, template)


def copied(folder: Path, template: Path) -> Editor:
    root = Path(os.path.realpath(folder)) / "work"
    shutil.copytree(template, root, symlinks=True)
    return Editor(folder, root)


@settings(max_examples=EXAMPLES)
@given(steps=STEPS)
def test_an_undo_and_a_redo_leave_every_file_as_before_the_undo(template: Path, steps: list[tuple[str, Any, Any]]) -> None:
    with TemporaryDirectory() as folder:
        editor = copied(Path(folder), template)
        for do, what, data in steps:
            match do:
                case "undo":
                    editor.undo()
                case "redo" | "redo by force":
                    editor.redo(force=do != "redo")
                case "user writes":
                    put(editor.root / what, data)
                case "user writes what was undone":
                    if editor.undone and (names := sorted(editor.undone[-1].changed)):
                        put(editor.root / names[what % len(names)], data)
                case "user removes":
                    (editor.root / what).unlink() if (editor.root / what).is_file() else None
                case _:
                    editor.ask(do, what, data)
        assert editor.desk.faults == []
        assert all(conflict.path and conflict.reason for refused in editor.refusals for conflict in refused.conflicts)


def test_undos_are_redone_in_turn_and_can_be_undone_again(editor: Editor) -> None:
    states = [files_in(editor.root)]
    for do, what in (("edit", "new.txt"), ("run", "rm -rf src; chmod 755 a.txt; mv b.txt moved.txt"), ("edit", "a.txt")):
        editor.ask(do, what, b"edited\n")
        states.append(files_in(editor.root))
    for _ in range(2):
        for wanted in states[-2::-1]:
            editor.undo()
            assert files_in(editor.root) == wanted
        for wanted in states[1:]:
            editor.redo(force=False)
            assert files_in(editor.root) == wanted
        assert undos_to_redo(editor.desk.history.entries) == []


def test_a_file_that_the_user_changed_or_removed_since_is_named_and_only_force_overwrites_it(editor: Editor) -> None:
    editor.ask("run", "echo changed > a.txt; rm b.txt; echo new > new.txt; echo more >> src/c.py", b"")
    after = files_in(editor.root)
    editor.undo()
    put(editor.root / "a.txt", b"mine")
    (editor.root / "b.txt").unlink()
    put(editor.root / "new.txt", b"mine too")
    now = files_in(editor.root)
    history = editor.desk.history
    plan = plan_redo(undos_to_redo(history.entries)[-1], editor.desk.blobs, UndoBounds((str(editor.root),), lambda path: False))
    assert sorted(os.path.basename(each.path) for each in plan.conflicts) == ["a.txt", "new.txt"], "b.txt is gone as the redo wants it"
    editor.redo(force=False)
    assert files_in(editor.root) == now
    assert str(editor.refusals[-1]).startswith("nothing was redone: ")
    assert all(f"{editor.root}/{name}: it was changed by somebody else since" in str(editor.refusals[-1]) for name in ("a.txt", "new.txt"))
    editor.redo(force=True)
    assert files_in(editor.root) == after
    assert [editor.desk.blobs.get(sha256(mine).hexdigest()) for mine in (b"mine", b"mine too")] == [b"mine", b"mine too"]


def test_a_redo_keeps_a_mode_that_the_user_set_since_if_the_undo_changed_none(editor: Editor) -> None:
    editor.ask("edit", "a.txt", b"edited\n")
    editor.undo()
    (editor.root / "a.txt").chmod(0o700)
    editor.redo(force=False)
    assert (editor.root / "a.txt").read_bytes() == b"edited\n"
    assert stat.S_IMODE((editor.root / "a.txt").stat().st_mode) == 0o700


def test_what_an_undo_puts_back_while_a_command_goes_on_is_not_the_commands(editor: Editor) -> None:
    desk, goes_on = editor.desk, [False]
    desk.work = KeptWork(lambda: [str(desk.root)], lambda path: False, desk.blobs, goes_on=lambda: goes_on[0])
    editor.ask("run", "echo changed > a.txt", b"")
    goes_on[0] = True
    editor.ask("run", "true", b"")
    editor.undo()
    [undo] = undos_to_redo(desk.history.entries)
    put(desk.root / "b.txt", b"by the command, or by the user")
    desk.work.note_restored(undo.files)
    assert [os.path.basename(file.path) for file in desk.work.beside()] == ["b.txt"]


def test_an_unsure_change_beside_ends_no_undo(editor: Editor) -> None:
    editor.ask("edit", "a.txt", b"edited\n")
    editor.undo()
    history = editor.desk.history
    [changed] = [entry for entry in history.entries if isinstance(entry, FilesChanged)][-1].files
    history.change_files("", [changed], unsure=True)
    assert len(undos_to_redo(history.entries)) == 1
