"""Whatever is said: the same answer however it is cut, sent back to the letter, and every request one the service takes."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from destinations import ALL, MAIN, connection, violation_in
from dragoman import build_request
from dragoman.testing.script_steps import Finish, Say, ScriptedAnswer, Think
from dragoman.testing.scripted import ScriptedProvider
from dragoman.text_tools import dialects, render_calls
from dragoman.text_tools.calls import Call
from dragoman.text_tools.options import TextOptions
from dragoman.text_tools.wrapper import TextTools
from dragoman.values.events import ResponseFinished, ToolCallReady
from dragoman.values.messages import (
    FinishReason,
    Message,
    Request,
    Response,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    user,
)
from property.conversations import BLOBS, TOOLS, damaged, lived, request_points

SPECS = (
    ToolSpec.of("read_file", "Read.", {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}),
    ToolSpec.of("run_shell", "Run.", {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
)
ASKED = Request("model", (user("Go."),), "Be brief.", SPECS)
WORDS = st.sampled_from(["Let me look.", "Now the other one:", "Ünï çödé 👩‍👩‍👧", "1 < 2 and 3 > 2", "First\n\nsecond", "Done"])
CALLS = st.builds(
    Call, st.just("read_file"), st.fixed_dictionaries({"path": st.sampled_from(["a", "é", "b/c.txt", 'q"uote', "two\nlines"])})
) | st.builds(
    Call, st.just("run_shell"), st.fixed_dictionaries({"command": st.sampled_from(["ls", "echo '{}'", "a && b", "x\\ny", "cat <<E\n1\nE"])})
)
SOME = ["dragoman", "fenced_json", "hermes", "qwen3_coder", "mistral", "kimi_k2", "pythonic"]


@st.composite
def answers(draw: st.DrawFn, dialect: str, *, with_faults: bool = False) -> str:
    """Words, then calls, and perhaps something that is no call."""
    pieces: list[str] = []
    if draw(st.booleans()):
        pieces.append(draw(WORDS) + "\n")
    if with_faults:
        faults = [
            "<think>hm</think>\n",
            "<tool_call>\n{oops\n</tool_call>\n",
            "`<tool_call>` is a tag\n",
            "<tool_call",
            "```\n{}\n```\n",
            "</think>",
        ]
        pieces += draw(st.lists(st.sampled_from(faults), max_size=2))
    pieces.append(render_calls(draw(st.lists(CALLS, min_size=1, max_size=3)), dialect))
    return "".join(pieces)


def read(text: str, dialect: str, cuts: list[int], finish: FinishReason = FinishReason.STOP) -> tuple[list[Any], Response]:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    steps = [Say(text[start:end]) for start, end in pairwise(edges)]
    provider = TextTools(ScriptedProvider([ScriptedAnswer((Think("hm"), *steps, Finish(finish)))]), TextOptions(dialect))

    async def collect() -> list[Any]:
        return [event async for event in provider.stream(ASKED)]

    events = asyncio.run(collect())
    assert isinstance(events[-1], ResponseFinished)
    return events, events[-1].response


FEWER = hypothesis.settings(max_examples=max(1, hypothesis.settings().max_examples // 4))
"""For what is tried with every dialect or service."""


@given(st.data(), st.sampled_from(SOME), st.lists(st.integers(1, 400), max_size=12))
def test_however_it_is_cut_the_answer_is_the_same(data: st.DataObject, dialect: str, cuts: list[int]) -> None:
    text = data.draw(answers(dialect, with_faults=True))
    finish = data.draw(st.sampled_from([FinishReason.STOP, FinishReason.LENGTH]))
    events, response = read(text, dialect, cuts, finish)
    _, whole = read(text, dialect, [], finish)
    assert response.message == whole.message
    assert (response.finish, response.detail) == (whole.finish, whole.detail)
    ready = [event.call for event in events if isinstance(event, ToolCallReady)]
    assert list(response.message.calls) == ready
    assert response.finish is not FinishReason.MALFORMED_TOOL_CALL or not ready


@pytest.mark.parametrize("dialect", dialects())
@FEWER
@given(data=st.data())
def test_an_answer_goes_back_to_the_letter(dialect: str, data: st.DataObject) -> None:
    """The server's cache holds the answer as it was written."""
    text = data.draw(answers(dialect))
    _, response = read(text, dialect, [])
    if any((note := call.opaque) is None or '"text"' not in note.json for call in response.message.calls) or not response.message.calls:
        return  # something was repaired, and so it is written anew
    provider = TextTools(ScriptedProvider("text: x"), TextOptions(dialect))
    sent = provider.rewrite_request(msgspec.structs.replace(ASKED, messages=(user("Go."), response.message))).messages[1]
    assert sent.text == text


def test_in_most_dialects_nothing_needs_to_be_repaired() -> None:
    """Or the property above says nothing."""
    call = Call("read_file", {"path": "a.txt"})
    exact = [
        dialect
        for dialect in dialects()
        if all(
            one.opaque and '"text"' in one.opaque.json
            for one in read(render_calls([call], dialect), dialect, [])[1].message.calls or [ToolCall("", "")]
        )
    ]
    assert len(exact) >= 0.9 * len(dialects()), sorted(set(dialects()) - set(exact))


# --- requests

settings = st.builds(
    Settings,
    thinking=st.none() | st.builds(Thinking, st.sampled_from(["off", "medium"])),
    tool_choice=st.sampled_from(["auto", "none", "required", "read_file"]),
)
placed = st.sampled_from(["system", "user"])


@pytest.mark.parametrize("where", ALL)
@FEWER
@given(messages=damaged | lived(), settings=settings, tools=st.sampled_from([TOOLS, ()]), place=placed, dialect=st.sampled_from(SOME))
def test_every_request_is_valid_and_knows_nothing_of_tools(
    where: str, messages: tuple[Message, ...], settings: Settings, tools: tuple[ToolSpec, ...], place: Any, dialect: str
) -> None:
    inner = connection(where, blobs=BLOBS)
    provider = TextTools(inner, TextOptions(dialect, place, no_think="/no_think"))
    request = build_request(inner.model, messages, system="Be brief.", tools=tools, settings=settings)
    body = provider.prepare(request).body
    found = violation_in(inner, body)
    assert found is None, found
    assert not re.search(
        rb'"(tools|tool_calls|tool_choice|functionCall|functionResponse|toolConfig|tool_use_id|tool_use|function_call)"\s*:', body
    )
    rewritten = provider.rewrite_request(request).messages
    assert not any(isinstance(part, ToolCall | ToolResult) for message in rewritten for part in message.parts)


@pytest.mark.parametrize("where", MAIN)
@FEWER
@given(messages=lived())
def test_a_request_goes_on_from_the_last_and_costs_what_is_new(where: str, messages: tuple[Message, ...]) -> None:
    inner = connection(where, blobs=BLOBS)
    provider = TextTools(inner, TextOptions("dragoman"))
    before: tuple[Message, ...] = ()
    request, warm = Request(inner.model, ()), b""
    for end in request_points(messages):
        request = Request(inner.model, messages[:end], "Be brief.", TOOLS)
        rewritten = provider.rewrite_request(request).messages
        assert all(one is other for one, other in zip(before, rewritten, strict=False))
        warm = provider.prepare(request).body
        assert inner.provider.messages_rendered(inner.model) == end  # type: ignore[attr-defined]
        assert provider.messages_rewritten == end
        before = rewritten
    assert TextTools(connection(where, blobs=BLOBS), TextOptions("dragoman")).prepare(request).body == warm


@pytest.mark.parametrize("where", MAIN)
@FEWER
@given(data=st.data())
def test_calls_read_from_text_are_valid_where_tools_are_known(where: str, data: st.DataObject) -> None:
    """A conversation may change over at any time, and back."""
    _, response = read(data.draw(answers("hermes")), "hermes", [])
    results = user(*(ToolResult(call.id, call.name, (Text("ok"),)) for call in response.message.calls))
    inner = connection(where)
    for provider in (inner, TextTools(inner, TextOptions("fenced_json"))):
        body = provider.prepare(Request(inner.model, (user("Go."), response.message, results), "", SPECS)).body
        found = violation_in(inner, body)
        assert found is None, found
        assert b"text_tools" not in body
