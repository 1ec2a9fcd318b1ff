"""Small inputs that models get wrong are taken where their meaning is certain, and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop.meant import meant_call
from dragoman.tools.search import Grep
from dragoman.tools.workspace import Workspace
from dragoman.values.messages import ToolCall
from file_tools import Desk
from scheduling import Bench, text_of


def bench_of(root: Path) -> Bench:
    tools = [*Desk(root).tools.values(), Grep(Workspace(root))]
    return Bench(tools, align=lambda call, args, specs: meant_call(call, args, specs, {}))


def ask(root: Path, name: str, **args: Any) -> str:
    (report,) = bench_of(root).run(ToolCall("1", name, json.dumps(args)))
    assert report.outcome == "finished", text_of(report)
    return text_of(report)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 9)) + "Needle\n")
    (tmp_path / "b.md").write_text("needle\n")
    return tmp_path


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"-n": True, "glob": "*.md"}, {"include": "*.md"}),
        ({"-i": True, "output_mode": "files_with_matches"}, {"case_sensitive": False, "output_mode": "files"}),
        ({"-i": False, "head_limit": 5}, {"case_sensitive": True, "max_results": 5}),
        ({"-A": 1, "-B": 2, "-n": True}, {"context": 2}),
        ({"-C": 3}, {"context": 3}),
        ({"type": "py", "multiline": False}, {"include": "*.py"}),
        ({"-l": True, "path": "."}, {"output_mode": "files", "path": "."}),
        ({"-c": True}, {"output_mode": "count"}),
        ({"case_insensitive": True}, {"case_sensitive": False}),
        ({"ignore_case": True, "-C": "2"}, {"case_sensitive": False, "context": 2}),
    ],
)
def test_greps_flags_and_other_searches_words(root: Path, args: dict[str, Any], expected: dict[str, Any]) -> None:
    bench = bench_of(root)
    (report,) = bench.run(ToolCall("1", "grep", json.dumps({"pattern": "eedle", **args})))
    assert report.outcome == "finished", text_of(report)
    told, answer = text_of(report).split("\n", 1)
    assert told.startswith("[this call was read with ")
    assert answer == ask(root, "grep", pattern="eedle", **expected)
    assert json.loads(bench.ledger.starts["1"]) == {"pattern": "eedle", **expected}


@pytest.mark.parametrize("args", [{"multiline": True}, {"-v": True}, {"-A": -1}, {"type": "cobol"}, {"offset": 20}])
def test_what_is_not_certain_is_refused_by_name(root: Path, args: dict[str, Any]) -> None:
    (report,) = bench_of(root).run(ToolCall("1", "grep", json.dumps({"pattern": "eedle", **args})))
    assert (report.outcome, report.output.error_type) == ("failed", "invalid_arguments")
    assert next(iter(args)) in text_of(report)


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({"offset": 0, "limit": 2}, (1, 2)),
        ({"start_line": 3, "end_line": 4}, (3, 4)),
        ({"offset": 3, "end_line": 3}, (3, 3)),
        ({"end_line": 2}, (1, 2)),
        ({"view_range": [7, -1]}, (7, 9)),
        ({"view_range": [2, 3]}, (2, 3)),
    ],
)
def test_lines_named_in_other_ways_are_read(root: Path, args: dict[str, Any], lines: tuple[int, int]) -> None:
    assert f"[lines {lines[0]}-{lines[1]} of 9" in ask(root, "read_file", file_path="a.py", **args)


def test_an_offset_of_nought_is_the_first_line_and_a_negative_one_is_refused(root: Path) -> None:
    assert ask(root, "read_file", file_path="b.md", offset=0, limit=0) == "needle\n"
    (report,) = bench_of(root).run(ToolCall("1", "read_file", '{"file_path": "a.py", "offset": -3}'))
    assert text_of(report) == "offset is negative: count lines from the beginning, from 1"


@pytest.mark.parametrize(
    "edits",
    [
        [{"oldText": "needle", "newText": "pin"}],
        [{"old_str": "needle", "new_str": "pin", "replaceAll": False}],
        {"old_string": "needle", "new_string": "pin"},
        '[{"old_string": "needle", "new_string": "pin"}]',
    ],
)
def test_a_list_of_edits_in_other_words(root: Path, edits: Any) -> None:
    told = ask(root, "edit", path="b.md", edits=edits)
    assert told.startswith("[this call was read with ")
    assert (root / "b.md").read_text() == "pin\n"
