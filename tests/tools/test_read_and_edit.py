"""Reads, edits and writes of one answer happen in the order they were written in, with real files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.tools.search import Grep
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import Tool
from dragoman.values.messages import ToolCall
from file_tools import Desk
from scheduling import Bench, text_of

PAIRS = 200
NAMES = ("a.txt", "b.txt")
WORDS = ("one", "two", "three")


def calls_of(steps: Sequence[tuple[str, dict[str, object]]]) -> list[ToolCall]:
    return [ToolCall(f"c{number}", name, json.dumps(args)) for number, (name, args) in enumerate(steps)]


def tools_of(root: Path) -> list[Tool]:
    return [*Desk(root).tools.values(), Grep(Workspace(root))]


def test_two_hundred_reads_each_followed_by_its_edit_in_one_answer_are_all_right(tmp_path: Path) -> None:
    """Writing a whole file depends on the read before it, as an edit did that was refused in one of four tries."""
    for number in range(PAIRS):
        (tmp_path / f"{number}.txt").write_text(f"value = {number}\n" * 40)
    steps: list[tuple[str, dict[str, object]]] = []
    for number in range(PAIRS):
        name, before = f"{number}.txt", f"value = {number}\n" * 2
        steps.append(("read_file", {"file_path": name}))
        if number % 2:
            steps.append(("edit", {"file_path": name, "old_string": before * 20, "new_string": "value = 'new'\n"}))
        else:
            steps.append(("write_file", {"file_path": name, "content": "value = 'new'\n"}))
    reports = Bench(tools_of(tmp_path), max_calls=2 * PAIRS).run(*calls_of(steps))
    assert [text_of(report) for report in reports if report.outcome != "finished"] == []
    assert {path.read_text() for path in tmp_path.iterdir()} == {"value = 'new'\n"}


steps = st.one_of(
    st.builds(lambda name: ("read_file", {"file_path": name}), st.sampled_from(NAMES)),
    st.builds(lambda names: ("read_many_files", {"paths": list(names)}), st.lists(st.sampled_from(NAMES), min_size=1, max_size=2)),
    st.builds(lambda word: ("grep", {"pattern": word}), st.sampled_from(WORDS)),
    st.builds(
        lambda name, old, new, whole: ("edit", {"file_path": name, "old_string": old, "new_string": new, "replace_all": whole}),
        st.sampled_from(NAMES),
        st.sampled_from(WORDS),
        st.sampled_from(WORDS),
        st.booleans(),
    ),
    st.builds(
        lambda name, word: ("write_file", {"file_path": name, "content": f"{word}\n"}), st.sampled_from(NAMES), st.sampled_from(WORDS)
    ),
)


def plant(root: Path) -> list[Tool]:
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.txt").write_text("three\nthree\n")
    return tools_of(root)


def files_of(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir()}


@settings(max_examples=40, deadline=None)
@given(drawn=st.lists(steps, min_size=2, max_size=8))
def test_whatever_is_mixed_in_one_answer_is_as_if_done_one_after_the_other(drawn: list[tuple[str, dict[str, object]]]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        calls = calls_of(drawn)
        together = Bench(plant(Path(one))).run(*calls)
        tools, apart = plant(Path(other)), []
        for call in calls:
            apart += Bench(tools).run(call)
        assert [(text_of(each), each.outcome) for each in together] == [(text_of(each), each.outcome) for each in apart]
        assert files_of(Path(one)) == files_of(Path(other))


def test_a_read_after_an_edit_sees_the_edited_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    edit = ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    reads = ("read_file", {"file_path": "a.txt"})
    assert [text_of(each) for each in Bench(tools_of(tmp_path)).run(*calls_of([reads, edit, reads]))][::2] == ["one\n", "two\n"]
