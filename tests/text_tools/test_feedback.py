"""What a model is told of a call that could not be read: the rule, the one schema that matters, the call as it should stand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text_tools import dialects, parse
from dragoman.text_tools.call_note import feedback_message
from dragoman.text_tools.calls import Rejected
from dragoman.text_tools.feedback import (
    BENIGN_REASONS,
    MAX_SCHEMA_CHARS,
    WRITE_IT,
    WRITE_LIKE,
    render_feedback,
    unreadable_calls,
)
from dragoman.text_tools.toolset import Toolset
from dragoman.values.notes import FEEDBACK_BEGINS


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(required)}}


LIST = [
    tool("read_file", ("file_path",), file_path={"type": "string"}, limit={"type": "integer"}),
    tool("set_mode", ("mode", "count", "on"), mode={"enum": ["a", "b"]}, count={"type": "integer"}, on={"type": "boolean"}),
    {"name": "anything"},
]
TOOLS = Toolset.of(LIST)
assert TOOLS is not None


def told(text: str, dialect: str = "hermes") -> str:
    assert TOOLS is not None
    return render_feedback(unreadable_calls(parse(text, LIST, dialect=dialect)), TOOLS, dialect)


def calls_in(text: str, dialect: str = "hermes") -> list[tuple[str, dict[str, Any]]]:
    """What a model would be read to say that repeats the last block of a text."""
    block = text.partition(WRITE_IT)[2] or text.partition(WRITE_LIKE)[2]
    return [(call.name, call.args) for call in parse(block.strip(), LIST, dialect=dialect).calls]


def test_a_tool_that_does_not_exist_is_named_with_the_one_that_was_meant() -> None:
    said = told('<tool_call>\n{"name": "read_fiel", "arguments": {"path": "a", "limit": "3"}}\n</tool_call>')
    assert said.startswith(FEEDBACK_BEGINS)
    assert "There is no tool called read_fiel." in said
    assert '"file_path"' in said
    assert "set_mode" not in said
    assert calls_in(said) == [("read_file", {"file_path": "a", "limit": 3})]


def test_where_nothing_is_near_the_tools_are_listed() -> None:
    said = told('<tool_call>\n{"name": "zzz", "arguments": {}}\n</tool_call>')
    assert "read_file, set_mode, anything" in said


@pytest.mark.parametrize("dialect", dialects())
def test_the_call_is_shown_as_the_dialect_writes_it(dialect: str) -> None:
    assert TOOLS is not None
    said = render_feedback([Rejected((0, 5), "it is not JSON", "{oops", "read_file")], TOOLS, dialect)
    assert "It is not JSON." in said
    assert calls_in(said, dialect) == [("read_file", {"file_path": "..."})]


def test_an_example_has_what_must_be_there_each_in_its_kind() -> None:
    assert TOOLS is not None
    said = render_feedback([Rejected((0, 1), "it breaks off", "", "set_mode")], TOOLS, "hermes")
    assert calls_in(said) == [("set_mode", {"mode": "a", "count": 1, "on": True})]


def test_a_long_schema_is_cut_and_many_faults_are_not_all_told() -> None:
    big = Toolset.of([tool("f", **{f"parameter_{n}": {"type": "string", "description": "x" * 100} for n in range(1000)})])
    assert big is not None
    said = render_feedback([Rejected((0, 1), "it breaks off", "", "f")] * 20, big, "hermes")
    assert len(said) < 4 * MAX_SCHEMA_CHARS + 2_000
    assert said.count("It breaks off.") == 3


def test_nothing_rejected_is_nothing_to_tell() -> None:
    assert told("Just words.") == ""


THINKING = '<think>\n<tool_call>\n{"name": "nope", "arguments": {}}\n</tool_call>\n</think>Done.'
BARE_END = '<tool_call>\n{"name": "read_file", "arguments": {"file_path": "a"}}\n</tool_call>\n</think>\nDone.'
EXAMPLE = '<tool_call>\n{"name": "tool_name", "arguments": {"param": "value"}}\n</tool_call>'
INVENTED = '<tool_response>\nfine\n</tool_response>\n<tool_call>\n{"name": "read_file", "arguments": {"file_path": "a"}}\n</tool_call>'
OTHER = 'See <function=read_file>{"file_path": "a"}</function> there.'


@pytest.mark.parametrize("text", [THINKING, BARE_END, EXAMPLE, INVENTED, OTHER, "I use the <tool_call> tag for it."])
def test_what_nobody_meant_as_a_call_is_no_fault(text: str) -> None:
    parsed = parse(text, LIST, dialect="hermes")
    assert not parsed.calls
    assert unreadable_calls(parsed) == ()


def test_reasons_that_are_no_fault_are_those_the_reader_gives() -> None:
    """The words are the reader's: if it changes them, this list must follow."""
    given_reasons = {each.reason for text in (BARE_END, EXAMPLE, INVENTED, OTHER) for each in parse(text, LIST, dialect="hermes").rejected}
    bare = '{"name": "read_file", "arguments": {"file_path": "a"}}\nThat was an example.'
    given_reasons |= {each.reason for each in parse(f"Look:\n{bare}", LIST).rejected}
    given_reasons |= {each.reason for each in parse("You could call read_file(file_path='a').", LIST).rejected}
    assert given_reasons == BENIGN_REASONS


@given(
    st.text(max_size=40), st.text(max_size=12), st.text(max_size=40), st.sampled_from(["hermes", "fenced_json", "qwen3_coder", "pythonic"])
)
def test_feedback_can_be_made_of_anything(reason: str, name: str, text: str, dialect: str) -> None:
    assert TOOLS is not None
    said = render_feedback([Rejected((0, len(text)), reason, text, name)], TOOLS, dialect)
    assert said.startswith(FEEDBACK_BEGINS)
    assert feedback_message(said).text == said
