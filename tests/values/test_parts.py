"""Working with messages: parts to text, text from anything, merging, curation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Blob,
    FileRef,
    InputError,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    ToolSpec,
    assistant,
    build_request,
    tool_result,
    user,
)
from dragoman.messages import (
    Citation,
    Opaque,
    append_to_last_text,
    check_roles,
    curated,
    map_text_parts,
    merge_assistant_text,
    part_to_string,
    repair,
    request_text,
    response_text,
    to_messages,
    to_parts,
)
from dragoman.values.messages import FinishReason, Part, Response, unique_id
from dragoman.values.parts import is_valid, parse_thought

CALL = ToolCall("c1", "read_file", '{"path":"a"}')


def test_part_to_string_is_silent_about_what_is_not_text() -> None:
    """VALUES-4"""
    parts = [Text("a"), Thought("hm"), CALL, Blob("image/png", "0" * 64, 3), FileRef("text/csv", "gs://x"), Citation("https://e"), "b"]
    assert part_to_string(parts) == "ab"


def test_part_to_string_can_name_everything() -> None:
    """VALUES-4"""
    parts = [
        Thought("hm"),
        CALL,
        tool_result(CALL, "out"),
        Blob("image/png", "0" * 64, 3),
        FileRef("text/csv", "gs://x"),
        Citation("https://e"),
    ]
    assert part_to_string(parts, verbose=True) == (
        "[Thought: hm][Function Call: read_file][Function Response: read_file] out[image/png, 3 bytes][text/csv: gs://x][Citation: https://e]"
    )


def test_request_text_joins_all_text() -> None:
    """VALUES-5"""
    assert request_text([user("a", "b"), assistant(Thought("x"), "c"), user(tool_result(CALL, "not text of the talk"))]) == "abc"


def test_response_text_leaves_thinking_out() -> None:
    """VALUES-5"""
    message = assistant(Thought("x"), "one ", CALL, "two")
    assert response_text(message) == response_text(Response(message, FinishReason.STOP)) == "one two"


def test_map_text_parts_replaces_text_and_keeps_the_rest_in_order() -> None:
    """VALUES-6"""

    async def double(text: str) -> list[Part]:
        return [Text(text), Text(text.upper())]

    mapped = asyncio.run(map_text_parts([Text("a"), CALL, "b"], double))
    assert mapped == (Text("a"), Text("A"), CALL, Text("b"), Text("B"))


def test_append_to_last_text_part() -> None:
    """VALUES-6"""
    assert append_to_last_text((Text("a"),), "b") == (Text("a\n\nb"),)
    assert append_to_last_text((Text("a"),), "b", " ") == (Text("a b"),)
    assert append_to_last_text((Text("a"), CALL), "b") == (Text("a"), CALL, Text("b"))
    assert append_to_last_text((), "b") == (Text("b"),)
    assert append_to_last_text((Text("a"),), "") == (Text("a"),)


def test_anything_a_person_writes_becomes_messages() -> None:
    """VALUES-7"""
    assert to_messages("hello") == (user("hello"),)
    assert to_messages(Text("hello")) == (user("hello"),)
    assert to_messages(["look at", Blob("image/png", "0" * 64, 3)]) == (user("look at", Blob("image/png", "0" * 64, 3)),)
    assert to_messages([user("a"), assistant("b"), "c", "d"]) == (user("a"), assistant("b"), user("c", "d"))
    assert to_messages("said", role="assistant") == (assistant("said"),)
    assert to_parts(["a", [CALL, "b"]]) == (Text("a"), CALL, Text("b"))


def test_a_wrong_role_is_named() -> None:
    """VALUES-9"""
    with pytest.raises(InputError, match=r"Role must be user or assistant, but got 'model' in message 1\."):
        check_roles([user("a"), Message("model", ())])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "instead"), [("model", "role assistant"), ("system", "`system`"), ("tool", "ToolResult"), ("owner", "Write user")]
)
def test_a_wrong_role_comes_with_what_to_write_instead(role: str, instead: str) -> None:
    with pytest.raises(InputError, match=instead):
        check_roles([Message(role, ())])  # type: ignore[arg-type]


def test_adjacent_assistant_text_is_merged_and_nothing_else() -> None:
    """VALUES-8"""
    messages = [user("q"), assistant("a"), assistant("b"), assistant("c", CALL), assistant("d")]
    assert merge_assistant_text(messages) == (user("q"), assistant("ab"), assistant("c", CALL), assistant("d"))
    signed = Message("assistant", (Text("x", Opaque("gemini", '"s"')),))
    assert merge_assistant_text([assistant("a"), signed]) == (Message("assistant", (Text("a"), *signed.parts)),)


@pytest.mark.parametrize(
    ("message", "valid"),
    [
        (assistant(), False),
        (assistant(""), False),
        (assistant("", "text"), False),
        (assistant(Thought("")), True),
        (assistant(Thought("x")), True),
        (assistant("", CALL), True),
        (assistant("text"), True),
    ],
)
def test_what_makes_an_answer_invalid(message: Message, valid: bool) -> None:
    """CHAT-4; empty text beside a call does not invalidate the call"""
    assert is_valid(message) is valid


def test_curation_keeps_the_user_and_drops_a_bad_run_whole() -> None:
    """CHAT-3"""
    history = [user("1"), assistant("a"), assistant(""), user("2"), assistant("b"), user("3"), assistant()]
    assert curated(history) == (user("1"), user("2"), assistant("b"), user("3"))
    assert curated([]) == ()


def test_a_history_in_dicts_is_checked_and_curated_like_one_of_ours() -> None:
    """As the documents' validateHistory and extractCuratedHistory take it (D2)."""
    history = [
        {"role": "user", "parts": [{"text": "1"}]},
        {"role": "model", "parts": [{"text": ""}]},
        {"role": "user", "content": "2"},
        {"role": "assistant", "content": "b"},
        {"role": "model", "parts": [{"text": "c"}]},
    ]
    check_roles(history)
    assert curated(history) == (user("1"), user("2"), assistant("b"), assistant("c"))
    assert merge_assistant_text(history[3:]) == (assistant("bc"),)
    assert request_text(iter(history)) == "12bc"
    assert [is_valid(message) for message in history] == [True, False, True, True, True]
    assert not is_valid({"role": "model", "parts": []})
    assert repair(history[:1]).messages == (user("1"),)
    for wrong in ({"role": "robot", "parts": [{"text": "1"}]}, {"mood": "calm"}):
        for read in (check_roles, curated, merge_assistant_text, request_text, repair):
            with pytest.raises(InputError, match=r"role 'robot'|the keys mood"):
                read([wrong])


@pytest.mark.parametrize("message", [{"role": "user", "content": "hi"}, {"role": "user", "parts": [{"text": "hi"}]}, user("hi")])
def test_one_message_alone_is_a_history_of_one(message: Any) -> None:
    """A dict was read by its keys, as if they had been said."""
    assert curated(message) == merge_assistant_text(message) == repair(message).messages == (user("hi"),)
    assert request_text(message) == part_to_string(message) == "hi"
    check_roles(message)


def test_what_is_no_history_is_refused_in_a_sentence() -> None:
    for read in (check_roles, curated, merge_assistant_text, request_text, repair, part_to_string):
        for strange in (None, 3):
            with pytest.raises(InputError, match=f"^{strange} cannot be said to a model"):
                read(strange)  # type: ignore[operator]


def test_a_thought_has_a_subject_and_a_description() -> None:
    assert parse_thought("**Planning**\n\nFirst this.\n") == ("Planning", "First this.")
    assert parse_thought("just thinking") == ("", "just thinking")


@given(wanted=st.text(max_size=4), taken=st.sets(st.text(max_size=4) | st.sampled_from(["call-1", "call-2", "a-2"])))
def test_a_unique_id_is_not_taken_and_not_changed_needlessly(wanted: str, taken: set[str]) -> None:
    found = unique_id(wanted, taken)
    assert found
    assert found not in taken
    assert found == wanted or not wanted or wanted in taken


def test_compose_refuses_what_cannot_be_sent() -> None:
    with pytest.raises(InputError, match="nothing to send"):
        build_request("m", [])
    twins = [ToolSpec("x", ""), ToolSpec("x", "")]
    with pytest.raises(InputError, match="two tools are called 'x'"):
        build_request("m", "hi", tools=twins)


@pytest.mark.parametrize("name", ["", "with space", "mcp.server.tool", "9lives", "-x", "ü", "x" * 65])
def test_compose_refuses_tool_names_that_no_service_takes(name: str) -> None:
    with pytest.raises(InputError, match="invalid tool name"):
        build_request("m", "hi", tools=[ToolSpec(name, "")])


def test_compose_takes_whatever_happened_before() -> None:
    request = build_request("m", [assistant("hello", CALL), user("go on"), ToolResult("zz", "other")])
    assert [message.role for message in request.messages] == ["user", "assistant", "user", "user"]
    assert request.messages[2].results[0].content == (Text("interrupted, outcome unknown"),)
