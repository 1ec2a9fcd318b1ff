"""Whatever happened before, the request is one the service accepts; it costs what is new; and what was sent stays sent."""

from __future__ import annotations

import re

import hypothesis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from destinations import ALL, MAIN, connection, violation_in
from dragoman import build_request
from dragoman.base.jsontext import valid_unicode
from dragoman.messages import repair
from dragoman.providers.wire_calls import MAX_ARGUMENTS_BYTES
from dragoman.values.messages import Message, PerMessage, Request, Settings, Text, Thinking, ToolCall, ToolSpec
from property.conversations import BLOBS, TOOLS, damaged, lived, request_points

settings = st.builds(
    Settings,
    temperature=st.none() | st.just(0.5),
    thinking=st.none() | st.builds(Thinking, st.sampled_from(["off", "low", "medium", "high", "max"])),
    tool_choice=st.sampled_from(["auto", "none", "required", "read_file"]),
    max_output_tokens=st.none() | st.just(4000),
)

few = hypothesis.settings(max_examples=max(1, hypothesis.settings().max_examples // 2))
"""For what is tried with every service: together they are many."""


@pytest.mark.parametrize("where", ALL)
@few
@given(messages=damaged, settings=settings, tools=st.sampled_from([TOOLS, ()]))
def test_after_repair_every_request_is_valid(
    where: str, messages: tuple[Message, ...], settings: Settings, tools: tuple[ToolSpec, ...]
) -> None:
    """Also without tools: whoever summarises a conversation sends its calls and declares none."""
    provider = connection(where, blobs=BLOBS)
    request = build_request(provider.model, messages, system="Be brief.", tools=tools, settings=settings)
    found = violation_in(provider, provider.prepare(request).body)
    assert found is None, found


@pytest.mark.parametrize("where", ALL)
@few
@given(messages=lived(), settings=settings)
def test_a_lived_conversation_is_valid_as_it_is(where: str, messages: tuple[Message, ...], settings: Settings) -> None:
    provider = connection(where, blobs=BLOBS)
    for end in request_points(messages):
        request = Request(provider.model, messages[:end], "Be brief.", TOOLS, settings)
        found = violation_in(provider, provider.prepare(request).body)
        assert found is None, found


@pytest.mark.parametrize("where", ALL)
@few
@given(messages=damaged | lived())
def test_cold_bytes_are_warm_bytes(where: str, messages: tuple[Message, ...]) -> None:
    warm = connection(where, blobs=BLOBS)
    request = build_request(warm.model, messages, tools=TOOLS)
    first = warm.prepare(request).body
    assert warm.prepare(request).body == first
    assert connection(where, blobs=BLOBS).prepare(request).body == first


@pytest.mark.parametrize("where", ALL)
@few
@given(messages=lived())
def test_a_request_is_a_prefix_of_the_next_and_renders_only_what_is_new(where: str, messages: tuple[Message, ...]) -> None:
    provider = connection(where, blobs=BLOBS)
    before, rendered = b"", 0
    for end in request_points(messages):
        body = provider.prepare(Request(provider.model, messages[:end], "Be brief.", TOOLS)).body
        assert prompt_of(body, closed=True).startswith(before)
        assert provider.provider.messages_rendered(provider.model) == end  # type: ignore[attr-defined]
        assert end - rendered <= 2
        before, rendered = prompt_of(body), end


@pytest.mark.parametrize("where", MAIN)
@few
@given(messages=damaged)
def test_no_text_call_or_result_is_lost(where: str, messages: tuple[Message, ...]) -> None:
    provider = connection(where, blobs=BLOBS)
    request = build_request(provider.model, messages, tools=TOOLS)
    body = provider.prepare(request).body
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip():
                assert msgspec.json.encode(valid_unicode(part.text))[1:-1] in body
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    assert calls_and_results_in(where, msgspec.json.decode(body)) == (len(calls), len(calls))


@given(messages=damaged)
def test_repair_is_idempotent_and_leaves_good_messages_alone(messages: tuple[Message, ...]) -> None:
    once = repair(messages)
    again = repair(once.messages)
    assert again.notes == ()
    assert all(first is second for first, second in zip(once.messages, again.messages, strict=True))


@given(messages=damaged)
def test_after_repair_each_call_has_exactly_one_result_right_behind_it(messages: tuple[Message, ...]) -> None:
    repaired = repair(messages).messages
    ids = [call.id for message in repaired for call in message.calls]
    assert len(ids) == len(set(ids))
    assert all(ids)
    for message, following in zip(repaired, (*repaired[1:], None), strict=True):
        if message.role == "user":
            assert not message.calls
            continue
        assert not message.results
        if message.calls:
            assert following is not None
            assert [result.call_id for result in following.results] == [call.id for call in message.calls]
    assert sum(len(message.results) for message in repaired) == len(ids)


@given(messages=lived())
def test_repair_does_not_touch_what_was_lived(messages: tuple[Message, ...]) -> None:
    assert all(before is after for before, after in zip(messages, repair(messages).messages, strict=True))


@given(messages=st.lists(damaged, max_size=4))
def test_a_memo_gives_what_the_function_gives(messages: list[tuple[Message, ...]]) -> None:
    memo = PerMessage(msgspec.structs.astuple)
    for some in messages:
        assert memo.over(some) == [msgspec.structs.astuple(message) for message in some]
    distinct = {id(message) for some in messages for message in some}
    assert memo.computed == len(distinct)


def test_a_memo_lets_go_of_what_is_no_longer_asked_for() -> None:
    memo = PerMessage(lambda message: message.role)
    for _ in range(3):
        memo.over([Message("user", (Text(str(number)),)) for number in range(4000)])
    assert len(memo._memo) <= 2 * 4000 + 4096


def test_arguments_too_long_for_any_service_are_named_and_not_repeated() -> None:
    """PV14: an answer of 20 MB stays in the record; the next request is still one a service takes."""
    call = ToolCall("c", "read_file", '{"path":"' + "x" * MAX_ARGUMENTS_BYTES + '"}')
    for where in MAIN:
        provider = connection(where)
        body = provider.prepare(
            build_request(provider.model, [Message("user", (Text("go"),)), Message("assistant", (call,))], tools=TOOLS)
        ).body
        assert len(body) < 10_000
        assert violation_in(provider, body) is None


# --- reading bodies ------------------------------------------------------------------------------------------------------------

_MARKER = re.compile(rb',"cache_control":\{"type":"ephemeral"\}')
_ARRAY = re.compile(rb'"(?:messages|contents|input)":\[')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def prompt_of(body: bytes, *, closed: bool = False) -> bytes:
    """System, tools and messages as sent, without cache markers, settings, or the brackets that close the last message."""
    body = _MARKER.sub(b"", body)
    start = _ARRAY.search(body)
    assert start is not None
    depth = 1
    for token in _TOKEN.finditer(body, start.end()):
        depth += (token.group() in b"[{") - (token.group() in b"]}")
        if depth == 0:
            whole = body[: token.end()]
            return whole if closed else whole.rstrip(b'"]}')
    raise AssertionError("the messages do not end")


def calls_and_results_in(where: str, body: dict) -> tuple[int, int]:
    match where:
        case "gemini":
            parts = [part for content in body["contents"] for part in content["parts"]]
            return sum("functionCall" in part for part in parts), sum("functionResponse" in part for part in parts)
        case "openai_chat":
            messages = body["messages"]
            return sum(len(m.get("tool_calls") or ()) for m in messages), sum(m["role"] == "tool" for m in messages)
        case "openai_responses":
            kinds = [item["type"] for item in body["input"]]
            return kinds.count("function_call"), kinds.count("function_call_output")
        case _:
            blocks = [block["type"] for message in body["messages"] for block in message["content"]]
            return blocks.count("tool_use"), blocks.count("tool_result")
