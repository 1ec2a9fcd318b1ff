"""The documents' own messages, simplified by the documents' own name: its worked examples to the letter, and bad input."""

from __future__ import annotations

import copy
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.test_prune import DONE, FAILED, MINUTE, at
from dragoman.context import PruneRule, prune_outdated, simplify_outdated_results
from dragoman.context.view import PLACEHOLDER
from dragoman.values.errors import InputError
from dragoman.values.messages import user

FILE = "1: a line of a file\n" * 40


def said(clock: str, content: Any = DONE, **more: Any) -> dict[str, Any]:
    """A tool's message as document 002 writes it."""
    return {"role": "tool", "content": content, "timestamp": at(clock), **more}


NEWER = [said(f"01:1{minute}:00", FILE) for minute in range(5)]


def gone(messages: list[dict[str, Any]], now: str) -> list[int]:
    simplified = simplify_outdated_results(messages, at(now))
    assert [{**message, "content": ""} for message in simplified] == [{**message, "content": ""} for message in messages]
    return [place for place, message in enumerate(simplified) if message["content"] == "此命令返回内容已过时"]


@pytest.mark.parametrize(
    ("messages", "now", "expected"),
    [
        pytest.param([said("01:00:00"), *NEWER], "01:20:00", [0], id="1: old, and behind five newer"),
        pytest.param([said("01:00:00"), *NEWER[:4]], "01:20:00", [], id="2: among the five newest"),
        pytest.param([said("01:00:00", FAILED), *NEWER], "01:20:00", [], id="3: an error"),
        pytest.param([said("01:30:00"), *(said(f"01:3{n}:00", FILE) for n in range(1, 5))], "01:35:00", [], id="4: young"),
        pytest.param([said("00:30:00", FILE), *NEWER], "01:20:00", [], id="6: another tool"),
        pytest.param([said("00:44:59.999"), *(said("00:50:00", FILE) for _ in range(5))], "01:00:00", [0], id="7: 15:00.001"),
        pytest.param([said("00:45:00.000"), *(said("00:50:00", FILE) for _ in range(5))], "01:00:00", [], id="8: 15:00.000"),
    ],
)
def test_the_worked_examples(messages: list[dict[str, Any]], now: str, expected: list[int]) -> None:
    assert gone(messages, now) == expected


def test_the_fifth_example_of_ten_results_newest_first() -> None:
    clocks = ("01:55", "01:50", "01:45", "01:40", "01:35", "01:30", "01:20", "00:50", "00:40", "00:30")
    contents = (FILE, DONE, DONE, FAILED, DONE, DONE, DONE, DONE, FILE, FAILED)
    messages = [said(f"{clock}:00", content) for clock, content in zip(clocks, contents, strict=True)]
    assert gone(messages, "02:00:00") == [6, 7]


def test_the_ninth_example_what_is_given_stays_as_it_was() -> None:
    messages = [{"role": "user", "content": "build it"}, said("01:00:00", tool_call_id="c1"), *NEWER]
    before = copy.deepcopy(messages)
    simplified = simplify_outdated_results(messages, at("01:20:00"))
    assert messages == before
    assert simplified[1] == {"role": "tool", "content": PLACEHOLDER, "timestamp": at("01:00:00"), "tool_call_id": "c1"}
    simplified[0]["content"] = "changed"
    assert messages == before
    assert simplify_outdated_results(simplified, at("01:20:00"))[1:] == simplified[1:], "twice is as once"


@pytest.mark.parametrize(
    ("content", "more", "goes"),
    [
        (json.dumps({"stdout": "Build completed"}), {}, True),
        (json.dumps({"exitCode": 0}), {}, True),
        ({"stdout": "an object, as some keep it", "exitCode": 0}, {}, True),
        ("File content: ...", {}, False),
        (json.dumps({"path": "/path/to/file"}), {}, False),
        ('a source file with "stdout": in it', {}, False),
        ("Error: Command failed with exit code 1", {}, False),
        (DONE, {"messageStatus": "error"}, False),
        (json.dumps({"stdout": "", "stderr": "Connection refused", "exitCode": 1}), {}, False),
        (None, {}, False),
        ("", {}, False),
        ([{"type": "text", "text": DONE}], {}, False),
    ],
)
def test_what_is_a_command_and_what_an_error(content: Any, more: dict[str, Any], goes: bool) -> None:
    assert gone([said("01:00:00", content, **more), *NEWER], "01:20:00") == ([0] if goes else [])


@pytest.mark.parametrize("timestamp", [None, float("nan"), float("inf"), -1.0, True, [1]])
def test_a_time_that_is_none_keeps_the_result(timestamp: Any) -> None:
    odd = said("01:00:00") | {"timestamp": timestamp}
    assert simplify_outdated_results([odd, *NEWER], at("01:20:00"))[0]["content"] == (PLACEHOLDER if timestamp == -1.0 else DONE)


def test_a_clock_that_went_back_makes_nothing_outdated(caplog: pytest.LogCaptureFixture) -> None:
    assert gone([said("01:00:00"), *NEWER], "00:30:00") == []
    [line] = caplog.messages
    assert line.startswith("6 results are dated later than now, the first in message 0: the clock went back, or now_ms is too small")


def test_a_rule_and_a_line_of_ones_own() -> None:
    messages = [said("01:00:00"), said("01:01:00", FILE)]
    simplified = simplify_outdated_results(messages, at("01:03:00"), rule=PruneRule(age_ms=MINUTE, keep=1), placeholder="(gone)")
    assert [message["content"] for message in simplified] == ["(gone)", FILE]
    assert simplify_outdated_results(messages, at("01:03:00"), rule=PruneRule(age_ms=0, keep=1), placeholder="x" * 999) == messages


def test_now_is_the_clock_unless_told() -> None:
    assert simplify_outdated_results([said("01:00:00"), *NEWER])[0]["content"] == PLACEHOLDER


@pytest.mark.parametrize(
    ("messages", "now", "words"),
    [
        ([user("hi")], None, "message 0 is a Message; give dicts"),
        ([{"role": "user"}, "text"], None, "message 1 is 'text'; give dicts"),
        ({"role": "tool"}, None, "messages is a dict; give a list"),
        (None, None, "messages is None; give a list"),
        ([said("01:00:00") | {"timestamp": 1_769_821_200}], at("01:20:00"), "looks like seconds; give both in milliseconds"),
        ([said("01:00:00")], at("01:20:00") / 1000, "looks like seconds; give both in milliseconds"),
        ([said("01:00:00") | {"timestamp": "1738287600000"}], None, "is the text '1738287600000'; give a number, in milliseconds"),
        ([said("01:00:00") | {"timestamp": "2026-01-31T01:00:00Z"}], None, "is the text '2026-01-31T01:00:00Z'; give a number"),
        ([{"role": "user", "parts": [{"functionResponse": {}}]}], None, "message 0 holds a functionResponse, as another API"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], None, "message 0 holds a tool_result, as another API"),
        ([{"type": "function_call_output", "output": "x"}], None, "holds a function_call_output, as another .*: {'role': 'tool', "),
        ([], float("nan"), "now_ms is nan; give the time in milliseconds"),
        ([], "now", "now_ms is 'now'; give the time in milliseconds"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(messages: Any, now: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        simplify_outdated_results(messages, now)


def test_a_rule_or_a_line_that_is_none_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"^rule must be a .*PruneRule, not a dict"):
        simplify_outdated_results([said("01:00:00")], rule={"keep": 3})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^placeholder must be a text, not None"):
        simplify_outdated_results([said("01:00:00")], placeholder=None)  # type: ignore[arg-type]


def test_a_line_of_the_log_says_how_many_were_shortened(caplog: pytest.LogCaptureFixture) -> None:
    """The seventh of the document's acceptance criteria."""
    with caplog.at_level(logging.INFO):
        simplify_outdated_results([said("01:00:00")], at("01:20:00"))
        assert caplog.messages == []
        simplify_outdated_results([said("01:00:00"), *NEWER], at("01:20:00"))
    assert caplog.messages == ["replaced 1 outdated command result in a copy of 6 messages"]


def test_the_rule_takes_the_documents_messages_too() -> None:
    """D9: `prune_outdated` gave [] for them, whatever was in them."""
    messages = [{"role": "assistant", "content": "I will build it.", "timestamp": at("00:59:00")}, said("01:00:00"), *NEWER]
    assert prune_outdated(messages, at("01:20:00")) == [1]
    with pytest.raises(InputError, match="result 0 is a Message"):
        prune_outdated([user("hi")], at("01:20:00"))


messages_of_any_kind = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "tool", "tool"])},
        optional={
            "timestamp": st.none() | st.integers(at("00:00:00"), at("03:00:00")),
            "messageStatus": st.sampled_from(["error", "success"]),
            "content": st.none() | st.sampled_from([DONE, FAILED, FILE, "Error: no"]),
        },
    ),
    max_size=12,
)


@given(messages=messages_of_any_kind, now_ms=st.integers(at("01:00:00"), at("04:00:00")))
def test_a_copy_comes_back_in_which_the_same_go_as_by_the_rule(messages: list[dict[str, Any]], now_ms: int) -> None:
    before = copy.deepcopy(messages)
    simplified = simplify_outdated_results(messages, now_ms)
    assert messages == before
    changed = [place for place, (one, other) in enumerate(zip(messages, simplified, strict=True)) if one != other]
    assert changed == prune_outdated([{"role": "", **message} for message in messages], now_ms)
    tools = [message for message in messages if message["role"] == "tool"]
    results = [
        {"timestamp_ms": each.get("timestamp"), "content": each.get("content"), "is_error": each.get("messageStatus") == "error"}
        for each in tools
    ]
    assert [tools.index(messages[place]) for place in changed] == [tools.index(tools[place]) for place in prune_outdated(results, now_ms)]
