"""Which changes are undone; and whatever happens, the last runs can be, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sessions.restore import UndoRefused, restore
from dragoman.sessions.undo import changes_after, changes_of_last_run, plan_undo
from dragoman.values.messages import assistant, user
from dragoman.values.notes import LOOP_NOTE
from dragoman.values.record import FileChange, FilesChanged
from sessions.desks import Desk, put


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    root = tmp_path / "work"
    root.mkdir()
    return Desk(root)


# --- which changes ----------------------------------------------------------------------------------------------------


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


def test_a_prompt_that_nothing_came_of_is_no_run_of_its_own(desk: Desk) -> None:
    desk.prompt()
    desk.write("a", "1")
    desk.history.say(user("nobody answered this"))
    desk.prompt()
    desk.write("b", "1")
    assert paths(changes_of_last_run(desk.history.entries)) == ["b"]
    assert paths(changes_of_last_run(desk.history.entries, 2)) == ["a", "b"]


def test_a_note_of_the_programs_own_is_no_prompt(desk: Desk) -> None:
    desk.prompt()
    desk.write("a", "1")
    desk.history.say(user(LOOP_NOTE.format(what="x")), "loop")
    desk.history.say(assistant("Something else, then."))
    desk.write("b", "1")
    assert paths(changes_of_last_run(desk.history.entries)) == ["a", "b"]
    desk.prompt("you go in circles")
    desk.write("c", "1")
    assert paths(changes_of_last_run(desk.history.entries)) == ["c"]


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
    plan = plan_undo(changes_after(desk.history.entries, here.seq), desk.blobs, desk.bounds)
    restore(plan)
    desk.history.restore_files(plan.changes)
    desk.history.rewind(here)
    assert desk.tree() == before


# --- whatever happens -------------------------------------------------------------------------------------------------

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
