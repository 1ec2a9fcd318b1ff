"""Going in circles, and what only looks like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.loop.guard import LoopGuard, is_polling
from dragoman.loop.options import LoopLimits
from dragoman.tools.registry import Registry
from dragoman.values.calls import Tool, WrappingTool
from dragoman.values.messages import ToolCall
from scheduling import PlainTool


def call(name: str = "read_file", arguments: str = '{"file_path":"a"}') -> ToolCall:
    return ToolCall("x", name, arguments)


def hits(calls: list[ToolCall], failed: bool = False, limits: LoopLimits | None = None) -> list[int]:
    guard = LoopGuard(limits)
    return [number for number, each in enumerate(calls, 1) if guard.check_call(each, failed=failed)]


def test_the_same_call_five_times_in_a_row() -> None:
    assert hits([call()] * 11) == [5, 10]


def test_how_the_arguments_are_written_makes_no_difference() -> None:
    spellings = ['{"a":1,"b":2}', '{"b": 2, "a": 1}', '{ "a" : 1, "b":2}']
    assert hits([call(arguments=spellings[number % 3]) for number in range(5)]) == [5]


def test_other_arguments_are_other_calls() -> None:
    assert hits([call(arguments=f'{{"file_path":"{number}"}}') for number in range(50)]) == []


@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_a_cycle_repeated_four_times(length: int) -> None:
    cycle = [call(f"tool_{number}") for number in range(length)]
    assert hits(cycle * 4) == [length * 4]
    assert hits(cycle * 3) == []


def test_a_cycle_of_six_is_work() -> None:
    assert hits([call(f"tool_{number}") for number in range(6)] * 10) == []


def test_the_same_failing_call_three_times_whatever_lies_between() -> None:
    guard = LoopGuard()
    found = []
    for number in range(3):
        guard.check_call(call("read_file", f'{{"n":{number}}}'), failed=False)
        found.append(guard.check_call(call("edit"), failed=True))
    assert found[:2] == ["", ""]
    assert "edit failed 3 times" in found[2]


def test_a_success_in_between_clears_the_failures() -> None:
    guard = LoopGuard(LoopLimits(same_call=0))
    assert [guard.check_call(call("edit"), failed=failed) for failed in (True, True, False, True, True)] == [""] * 5


def test_a_polled_tool_may_be_called_again_and_again_and_parts_what_is_around_it() -> None:
    guard = LoopGuard()
    for _ in range(50):
        assert guard.check_call(call("status"), failed=False, polled=True) == ""
        assert guard.check_call(call("status"), failed=True, polled=True) == "", "a service may be away for a while"
        assert guard.check_call(call("sleep"), failed=False) == "", "not in a row"


def test_who_polls_is_said_by_the_tool_or_by_the_limits() -> None:
    class Indirect(PlainTool):
        def stands_for(self, args: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
            return plain, args

    plain, polled, indirect = PlainTool("mcp__ci__status"), PlainTool("look"), Indirect("call_tool")
    setattr(polled, "polled", True)  # noqa: B010
    registry = Registry([plain, polled, indirect, WrappingTool(PlainTool("other"))])
    named = LoopLimits(polled=("mcp__ci__*", "gone"))

    def polling(name: str, limits: LoopLimits | None = None, arguments: str = "{}") -> bool:
        return is_polling(ToolCall("1", name, arguments), registry, limits or LoopLimits())

    assert [polling(name) for name in ("mcp__ci__status", "look", "call_tool", "other", "gone")] == [False, True, False, False, False]
    assert [polling(name, named) for name in ("mcp__ci__status", "look", "call_tool", "other", "gone")] == [True, True, True, False, True]
    assert polling("shell_output", arguments='{"id": "bg1", "wait_s": 5}'), "whoever waits does not spin"
    assert not polling("shell_output", arguments='{"id": "bg1"}')


def test_text_that_repeats_itself_is_noticed() -> None:
    guard = LoopGuard()
    found = [guard.check_text("I will now read the file and then I will tell you about it. ") for _ in range(12)]
    assert any(found)


@pytest.mark.parametrize("piece", [1, 3, 7, 50, 1000])
def test_text_is_noticed_however_it_is_cut(piece: int) -> None:
    guard, text = LoopGuard(), "Let me think about that once more, from the very beginning, shall we? " * 40
    assert any(guard.check_text(text[at : at + piece]) for at in range(0, len(text), piece))


def test_tables_with_the_same_heading_are_no_loop() -> None:
    guard = LoopGuard()
    heading = "| file | lines | what |\n| --- | --- | --- |\n"
    assert not any(guard.check_text(f"{heading}| {number}.py | {number} | read |\n\n") for number in range(15))
    assert any(guard.check_text("| calc.py | 12 lines | the same row, again and again |\n") for _ in range(80))


def test_a_table_of_dashes_is_no_loop() -> None:
    guard = LoopGuard()
    assert not any(guard.check_text("| --- | --- | --- | --- | --- |\n" + "-" * 60 + "\n") for _ in range(6))


def test_code_may_repeat_itself() -> None:
    guard = LoopGuard()
    guard.check_text("Here it is:\n```python\n")
    assert not any(guard.check_text("    assert table.lookup(key) is None, 'key should be gone'\n") for _ in range(20))


def test_each_answer_is_looked_at_alone() -> None:
    guard = LoopGuard()
    for _ in range(30):
        guard.start_answer()
        assert guard.check_text("I have read the file you named, and it says the following about you: nothing.") == ""


def test_zero_turns_a_check_off() -> None:
    off = LoopLimits(same_call=0, cycle_repeats=0, failing_call=0, text_repeats=0)
    guard = LoopGuard(off)
    assert not any(guard.check_call(call(), failed=True) for _ in range(100))
    assert not any(guard.check_text("the same old song, again and again and again and again") for _ in range(100))


@given(st.lists(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FFF), min_size=1, max_size=80), max_size=30, unique=True))
def test_text_without_repetition_is_never_a_loop(lines: list[str]) -> None:
    guard = LoopGuard()
    numbered = [f"{number}: {line}; that was line number {number} of {len(lines)}\n" for number, line in enumerate(lines)]
    assert not any(guard.check_text(line) for line in numbered)


@given(st.lists(st.sampled_from("abcdef"), max_size=40))
def test_a_hit_is_really_a_repetition(names: list[str]) -> None:
    """Whatever the guard says, the calls up to there do end in a repetition: an oracle that counts differently."""
    guard, since = LoopGuard(), 0
    for number, name in enumerate(names, 1):
        if guard.check_call(call(name), failed=False):
            run = "".join(names[since:number])
            assert any(
                run.endswith(run[len(run) - size :] * times) for size, times in [(1, 5), (2, 4), (3, 4), (4, 4), (5, 4)] if len(run) >= size
            )
            since = number


@pytest.mark.parametrize("piece", [1, 7, 64, 5_000])
def test_a_list_of_paths_that_begin_alike_is_no_loop(piece: int) -> None:
    names = ("access", "billing", "cache", "dates", "errors", "files", "graph", "hosts", "index", "json", "keys", "log", "merge", "names")
    text = "".join(f"- src/company/platform/services/accounting/internal/handlers/{name}.py reads the {name}\n" for name in names)
    guard = LoopGuard()
    assert not any(guard.check_text(text[at : at + piece]) for at in range(0, len(text), piece))
