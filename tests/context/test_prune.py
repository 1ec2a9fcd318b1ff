"""Which command results are outdated. The rule alone; when it is applied is in test_decide.py."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.context import PruneRule, prune_outdated
from dragoman.context.prune import Kind, find_outdated
from dragoman.values.messages import Text, ToolResult
from dragoman.values.record import CommandOutput

MINUTE = 60_000
DONE = json.dumps({"stdout": "Building project...\nDone in 3.2s", "stderr": "", "exitCode": 0})
FAILED = json.dumps({"stdout": "", "stderr": "Error: Cannot find module 'xxx'", "exitCode": 1})


def at(clock: str) -> int:
    """A time of 31 January 2026, the day of the worked examples."""
    return round(datetime.fromisoformat(f"2026-01-31 {clock}").replace(tzinfo=UTC).timestamp() * 1000)


def result(
    clock: str | None, content: str | None = DONE, tool: str | None = "terminal-execute", *, is_error: bool = False
) -> dict[str, Any]:
    return {"tool": tool, "timestamp_ms": at(clock) if clock else None, "content": content, "is_error": is_error}


NEWER = [result(f"01:1{minute}:00", "text", "filesystem-read") for minute in range(5)]
"""Five results that came after 01:00."""


def test_an_old_success_behind_five_newer_goes() -> None:
    """PRUNE-1."""
    assert prune_outdated([result("01:00:00"), *NEWER], at("01:20:00")) == [0]


def test_one_of_the_five_newest_stays_however_old() -> None:
    """PRUNE-3."""
    assert prune_outdated([result("01:00:00"), *NEWER[:4]], at("01:20:00")) == []
    assert prune_outdated([result("01:00:00"), *NEWER[:4]], at("23:00:00")) == []


def test_a_command_of_another_name_is_known_by_its_content_where_that_is_set() -> None:
    """PRUNE-6, as document 002 has it in 3.3."""
    ours = [result("01:00:00", tool="mcp__box__exec"), *NEWER]
    assert prune_outdated(ours, at("01:20:00")) == []
    assert prune_outdated(ours, at("01:20:00"), PruneRule(by_content=True)) == [0]
    others = [result("01:00:00", content, "mcp__box__exec") for content in (FAILED, "text", '{"path": "x"}', 'print("stdout":)')]
    assert prune_outdated([*others, *NEWER], at("01:20:00"), PruneRule(by_content=True)) == []


def test_an_error_stays() -> None:
    """PRUNE-4."""
    assert prune_outdated([result("01:00:00", FAILED), *NEWER], at("01:20:00")) == []


def test_a_young_one_stays() -> None:
    """PRUNE-2."""
    newer = [result(f"01:3{minute}:00", "text", "filesystem-read") for minute in range(1, 5)]
    assert prune_outdated([result("01:30:00"), *newer], at("01:35:00")) == []
    assert prune_outdated([result("01:30:00"), *newer, result("01:34:30", "text", "read")], at("01:35:00")) == [], "age alone keeps it"


MIXED = [
    result("01:55:00", "text", "filesystem-read"),
    result("01:50:00"),
    result("01:45:00"),
    result("01:40:00", FAILED),
    result("01:35:00"),
    result("01:30:00"),
    result("01:20:00"),
    result("00:50:00"),
    result("00:40:00", "text", "filesystem-read"),
    result("00:30:00", FAILED),
]


def test_of_ten_mixed_results_the_seventh_and_eighth_go() -> None:
    """PRUNE-11: right only because an error uses up none of the five places."""
    assert [index + 1 for index in prune_outdated(MIXED, at("02:00:00"))] == [7, 8]
    oldest_first = MIXED[::-1]
    assert prune_outdated(oldest_first, at("02:00:00")) == [2, 3]


def test_other_tools_are_left_alone() -> None:
    """PRUNE-1."""
    newer = [result(f"00:4{minute}:00", "text", "filesystem-read") for minute in range(5)]
    assert prune_outdated([result("00:30:00", "much of a file", "filesystem-read"), *newer], at("01:00:00")) == []


@pytest.mark.parametrize(("clock", "goes"), [("00:44:59.999", [0]), ("00:45:00.000", []), ("00:45:00.001", [])])
def test_the_boundary_is_strict(clock: str, goes: list[int]) -> None:
    """PRUNE-2: 15:00.001 goes, 15:00.000 stays."""
    newer = [result(f"00:5{minute}:00", "text", "filesystem-read") for minute in range(5)]
    assert prune_outdated([result(clock), *newer], at("01:00:00.000")) == goes


def test_nothing_is_changed() -> None:
    """PRUNE-8: only what is sent is shortened."""
    before = copy.deepcopy(MIXED)
    prune_outdated(MIXED, at("02:00:00"))
    assert before == MIXED


# What a command's result is


@pytest.mark.parametrize(
    ("tool", "content", "is_command"),
    [
        (None, '{"stdout":"hello","stderr":"","exitCode":0}', True),
        (None, '{"stdout":"Build completed"}', True),
        (None, '{"stderr":""}', True),
        (None, '{"exitCode":0}', True),
        (None, ' \n{"stdout" : "spaced"}\n', True),
        ("", '{"stdout":"no name is no name"}', True),
        (None, '{"stdout":"half a pair \\ud83d"}', True),
        (None, "File content: ...", False),
        (None, '{"path":"/path/to/file"}', False),
        (None, 'const sample = {"stdout": "x"};', False),
        (None, '"stdout": 1', False),
        (None, '[{"stdout":"in a list"}]', False),
        (None, '{"log":{"stdout":"further in"}}', False),
        (None, '{"stdout":"cut', False),
        (None, "", False),
        (None, None, False),
        (None, "[" * 100_000, False),
        (None, '{"stdout":' * 100_000, False),
        ("run_shell", DONE, True),
        ("run_shell_command", DONE, True),
        ("terminal-execute", DONE, True),
        ("bash", "plain text, as some write it", True),
        ("Bash", "whatever its case", True),
        ("shell", "", True),
        ("shell", None, True),
        ("read_file", DONE, False),
        ("run_shell_later", DONE, False),
    ],
)
def test_what_is_taken_for_a_command(tool: str | None, content: str | None, is_command: bool) -> None:
    """PRUNE-6: by name where there is one; else by content that is a JSON object with one of the three fields."""
    assert prune_outdated([result("01:00:00", content, tool), *NEWER], at("01:20:00")) == ([0] if is_command else [])


# What an error is


def command(**fields: object) -> str:
    return json.dumps({"stdout": "x"} | fields)


@pytest.mark.parametrize(
    ("content", "is_error", "kept", "kept_unless_strict"),
    [
        ("Error: Command failed with exit code 1", False, True, True),
        ("...", True, True, True),
        (DONE, True, True, True),
        (command(stderr="Connection refused", exitCode=1), False, True, True),
        (command(stderr="", exitCode=1), False, True, True),
        (command(stderr="", exitCode=-9), False, True, True),
        (command(stderr="", exitCode="2"), False, True, True),
        (command(stderr="a warning", exitCode=0), False, True, False),
        (command(stderr="a warning", exitCode="0"), False, True, False),
        (command(stderr="a warning"), False, True, True),
        (command(stderr="a warning", exitCode=None), False, True, True),
        (command(stderr="a warning", exitCode="unknown"), False, True, True),
        (command(stderr="", exitCode=0), False, False, False),
        (command(stderr=None, exitCode=0), False, False, False),
        (command(stderr="", exitCode=None), False, False, False),
        (command(), False, False, False),
        ("no error: Error: stands further in", False, False, False),
        ("error: in small letters", False, False, False),
        ("", False, False, False),
        (None, False, False, False),
    ],
)
def test_what_is_taken_for_an_error(content: str | None, is_error: bool, kept: bool, kept_unless_strict: bool) -> None:
    """PRUNE-7, and exit codes; anything on stderr counts unless the user says otherwise."""
    results = [result("01:00:00", content, is_error=is_error), *NEWER]
    assert prune_outdated(results, at("01:20:00")) == ([] if kept else [0])
    assert prune_outdated(results, at("01:20:00"), PruneRule(strict_stderr=False)) == ([] if kept_unless_strict else [0])


@pytest.mark.parametrize(
    "error",
    [
        result("01:15:00", FAILED),
        result("01:15:00", "Error: no such file", "filesystem-read"),
        result("01:15:00", "x", "read", is_error=True),
    ],
)
def test_an_error_of_any_tool_takes_no_place(error: dict[str, Any]) -> None:
    assert prune_outdated([result("01:00:00"), *NEWER[:4], error], at("01:20:00")) == []
    assert prune_outdated([result("01:00:00"), *NEWER, error], at("01:20:00")) == [0]


def test_stderr_in_what_another_tool_read_is_no_error() -> None:
    """It takes a place like any other result."""
    read = result("01:15:00", FAILED, "filesystem-read")
    assert prune_outdated([result("01:00:00"), *NEWER[:4], read], at("01:20:00")) == [0]


# Times


def test_of_results_at_one_time_the_later_is_the_newer() -> None:
    same = [result("01:00:00") for _ in range(8)]
    assert prune_outdated(same, at("01:20:00")) == [0, 1, 2]


def test_recency_goes_by_time_and_not_by_position() -> None:
    results = [result(f"01:0{minute}:00") for minute in (7, 0, 6, 1, 5, 2, 4, 3)]
    assert prune_outdated(results, at("02:00:00")) == [1, 3, 5]


@pytest.mark.parametrize("time", [None, "yesterday", float("nan"), True, "missing"])
def test_without_a_time_a_result_stays_and_takes_no_place(time: object) -> None:
    timeless: dict[str, Any] = result("01:00:00") | {"timestamp_ms": time}
    if time == "missing":
        del timeless["timestamp_ms"]
    assert prune_outdated([timeless, *NEWER], at("01:20:00")) == []
    assert prune_outdated([result("01:00:00"), *NEWER[:4], timeless], at("01:20:00")) == []
    assert prune_outdated([result("01:00:00"), *NEWER, timeless], at("01:20:00")) == [0]


def test_a_clock_that_went_back_prunes_nothing_young() -> None:
    """Results from what is now the future are the newest, and none of them is old."""
    future = [result(f"03:0{minute}:00") for minute in range(8)]
    assert prune_outdated(future, at("01:20:00")) == []
    assert prune_outdated([result("01:00:00"), *future], at("01:20:00")) == [0], "they take the five places"


def test_since_when_a_result_was_outdated() -> None:
    """Since it was too old, or since the fifth newer one came, whichever was later; errors are not counted."""
    command, error = Kind(may_go=True, error=False), Kind(may_go=True, error=True)
    rule = PruneRule(age_ms=1_000, keep=2)
    times, kinds = [100, 200, 300, 5_000, 5_100, 6_000], [command, command, error, command, command, command]
    assert find_outdated(times, kinds, 10_000, rule) == [(0, 5_000), (1, 5_100), (3, 6_001)]
    assert find_outdated(times[:4], kinds[:4], 10_000, rule) == [(0, 5_000)]
    assert find_outdated([100, 200, 300], [command] * 3, 10_000, rule) == [(0, 1_101)]


def test_fractions_of_a_millisecond_count() -> None:
    newer = [{"tool": "read", "timestamp_ms": 10.0, "content": ""}] * 5
    old = {"tool": "bash", "timestamp_ms": 0.5, "content": ""}
    assert prune_outdated([old, *newer], 900_000.5) == []
    assert prune_outdated([old, *newer], 900_000.75) == [0]


# Anyone's records, and other rules


def test_records_may_be_objects_that_lack_things() -> None:
    bare = SimpleNamespace(timestamp_ms=at("01:00:00"), content=DONE)
    newer = [SimpleNamespace(**each) for each in NEWER]
    assert prune_outdated([bare, *newer], at("01:20:00")) == [0]
    assert prune_outdated([SimpleNamespace(), {}, *newer], at("01:20:00")) == []
    assert prune_outdated([], at("01:20:00")) == []
    assert prune_outdated(iter([bare, *newer]), at("01:20:00")) == [0]


def test_content_that_was_parsed_already_is_read_as_it_is() -> None:
    assert prune_outdated([result("01:00:00", json.loads(DONE), None), *NEWER], at("01:20:00")) == [0]
    assert prune_outdated([result("01:00:00", json.loads(FAILED), None), *NEWER], at("01:20:00")) == []


def test_content_in_parts_names_no_command() -> None:
    assert prune_outdated([result("01:00:00", ToolResult("c", "x", (Text(DONE),)).content, None), *NEWER], at("01:20:00")) == []  # type: ignore[arg-type]


def test_the_numbers_are_settings() -> None:
    results = [result(f"01:0{minute}:00") for minute in range(8)]
    now = at("01:10:00")
    assert prune_outdated(results, now) == []
    assert prune_outdated(results, now, PruneRule(age_ms=5 * MINUTE)) == [0, 1, 2]
    assert prune_outdated(results, now, PruneRule(age_ms=5 * MINUTE, keep=6)) == [0, 1]
    assert prune_outdated(results, now, PruneRule(age_ms=0, keep=0)) == list(range(8))
    assert prune_outdated(results, now, PruneRule(age_ms=0, keep=-1)) == list(range(8))
    assert prune_outdated(results, now, PruneRule(age_ms=0, keep=99)) == []


def test_the_tools_are_a_setting() -> None:
    results = [result("01:00:00", "text", name) for name in ("read_file", "Grep", "run_shell", None)]
    results += [result("01:01:00", command(stderr="x", exitCode=1), "mcp_exec"), *NEWER]
    now = at("01:20:00")
    assert prune_outdated(results, now, PruneRule(tools=("GREP",))) == [1]
    assert prune_outdated(results, now, PruneRule(tools=("*",))) == [0, 1, 2, 3], "any tool's; errors stay whoever ran the command"
    assert prune_outdated([*results, result("01:00:00", DONE, None)], now, PruneRule(tools=())) == []


# What the record says of a command


NOTES = [
    "[this call was read with cmd → command: use the names and types that the tool declares]\n",
    'The arguments of this call were changed before it ran, to {"command": "x\\n{\\"stdout\\":\\"no\\"}"}\n\n',
    '[this call was read with a → b: use]\nThe arguments of this call were changed before it ran, to {\n\n"a": 1}\n\n',
]


@pytest.mark.parametrize("note", ["", *NOTES])
@pytest.mark.parametrize("text", ["Error: is what it printed first", "all is well", DONE])
def test_the_record_tells_a_failure_whatever_the_model_reads(note: str, text: str) -> None:
    def left(command: object) -> list[int]:
        return prune_outdated([result("01:00:00", note + text, "run_shell") | {"command": command}, *NEWER], at("01:20:00"))

    for failed in (CommandOutput("x", "", 3), CommandOutput("x", "a warning", 0), {"stdout": "", "stderr": "", "exitCode": 1}):
        assert left(failed) == []
    for done in (CommandOutput("x", "", 0), CommandOutput("", "", None, background="bg1"), {"stdout": "x", "stderr": "", "exitCode": 0}):
        assert left(done) == [0]
    lenient = [result("01:00:00", note + text, "run_shell") | {"command": CommandOutput("x", "a warning", 0)}, *NEWER]
    assert prune_outdated(lenient, at("01:20:00"), PruneRule(strict_stderr=False)) == [0]


@pytest.mark.parametrize("note", NOTES)
def test_in_a_record_from_before_the_note_in_front_hides_no_failure(note: str) -> None:
    """There the result is JSON, and the note stands in the same text."""
    assert prune_outdated([result("01:00:00", note + FAILED, "run_shell"), *NEWER], at("01:20:00")) == []
    assert prune_outdated([result("01:00:00", note + DONE, "run_shell"), *NEWER], at("01:20:00")) == [0]
    assert prune_outdated([result("01:00:00", note + "text", "run_shell"), *NEWER], at("01:20:00")) == [0]
