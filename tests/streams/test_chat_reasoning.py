"""Thinking in Chat Completions that no plain field has: `<think>` tags at the beginning, and OpenRouter's `reasoning_details`."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.providers import openai_chat
from dragoman.providers.answer import ThinkTags
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.providers.wire import Destination
from dragoman.values.messages import FinishReason, Thought, tool_result, user
from dragoman.values.profile import Profile
from streaming import answered, generated, prepared, sse, texts_of

CLAUDE = "openrouter/anthropic/claude-sonnet-5.5"
GEMINI = "openrouter/google/gemini-4-argon"
END = [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, "[DONE]"]


def delta(**fields: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def whole(model: str = "", finish: str = "stop", **message: Any) -> Any:
    body = {"id": "r", "choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}
    return generated("openai_chat", json.dumps(body).encode(), model=model)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, cut anywhere."""
    marks = sorted(draw(st.sets(st.integers(1, max(len(text) - 1, 1)))))
    return [text[begin:end] for begin, end in zip([0, *marks], [*marks, len(text)], strict=True) if text[begin:end]]


# --- tags ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<think>hm</think>a", [("Thought", "hm"), ("Text", "a")]),
        ("\n<think>\nhm\n</think>\n\na", [("Thought", "hm\n"), ("Text", "a")]),
        ("<thinking>hm</thinking> a", [("Thought", "hm"), ("Text", "a")]),
        ("<think>\n\n</think>\n\na", [("Text", "a")]),
        ("<think>a </thin> b</think>c", [("Thought", "a </thin> b"), ("Text", "c")]),
        ("<think>cut at the limit", [("Thought", "cut at the limit")]),
        ("<thin", [("Text", "<thin")]),
        ("<table>a</table>", [("Text", "<table>a</table>")]),
        ("Write <think>hm</think> first.", [("Text", "Write <think>hm</think> first.")]),
        ("<think>hm</think>Write <think>x</think>.", [("Thought", "hm"), ("Text", "Write <think>x</think>.")]),
        (" a", [("Text", " a")]),
    ],
)
@given(data=st.data())
def test_thinking_between_tags_at_the_beginning_is_thinking(text: str, parts: list[tuple[str, str]], data: st.DataObject) -> None:
    """However it is cut; tags in the middle are somebody writing about tags. For models of the catalog and for strangers."""
    pieces = data.draw(cut(text))
    for model in ("openai/gpt-4.1", "vllm/a-stranger"):
        assert texts_of(answered("openai_chat", sse(*(delta(content=each) for each in pieces), *END), model=model).message) == parts
        assert texts_of(whole(model, content=text).message) == parts


def test_tags_are_left_alone_where_the_service_reads_the_thinking_itself() -> None:
    answer = answered("openai_chat", sse(delta(reasoning="hm"), delta(content="<think>is a tag"), *END))
    assert texts_of(answer.message) == [("Thought", "hm"), ("Text", "<think>is a tag")]
    assert texts_of(whole(reasoning_content="hm", content="<think>is a tag").message) == [("Thought", "hm"), ("Text", "<think>is a tag")]


def test_tags_are_left_to_the_reader_of_calls_where_those_are_text() -> None:
    assert texts_of(whole("local/smollm2", content="<think>hm</think>a").message) == [("Text", "<think>hm</think>a")]


@pytest.mark.parametrize("text", ["hm</think>a", "<think>hm</think>a", "\n<think>\nhm</think>\na"])
@given(data=st.data())
def test_a_template_may_have_opened_the_thinking(text: str, data: st.DataObject) -> None:
    tags = ThinkTags(opened=True)
    pieces = [piece for each in data.draw(cut(text)) for piece in tags.feed(each)] + tags.close()
    assert "".join(piece for kind, piece in pieces if kind == "thought") == "hm"
    assert "".join(piece for kind, piece in pieces if kind == "text") == "a"


def test_the_profile_says_whether_the_template_opens_the_thinking() -> None:
    deployment = builtin_catalog()["vllm"]
    to = Destination(deployment, Profile(opens_thinking=True), "m")
    answer = openai_chat.from_wire({"choices": [{"message": {"content": "hm</think>a"}, "finish_reason": "stop"}]}, to, set)
    assert texts_of(answer.message) == [("Thought", "hm"), ("Text", "a")]


@given(st.text(alphabet="<>/thinkg \nab", max_size=40), st.data())
def test_no_text_is_lost_between_tags(text: str, data: st.DataObject) -> None:
    """Whatever the cuts, the pieces are the same, and all that is missing is tags and the white space around them."""
    at_once = ThinkTags()
    expected = _joined(at_once.feed(text) + at_once.close())
    tags = ThinkTags()
    assert _joined([piece for each in data.draw(cut(text)) for piece in tags.feed(each)] + tags.close()) == expected
    if not text.lstrip().startswith(("<think>", "<thinking>")):
        assert expected == ([("text", text)] if text else [])


def _joined(pieces: list[Any]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []
    for kind, text in pieces:
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


# --- reasoning_details ----------------------------------------------------------------------------------------------------------

SIGNED = {"type": "reasoning.text", "text": "Let me look.", "signature": "c2lnbmVk", "format": "anthropic-claude-v1", "index": 0}
SUMMARY = {"type": "reasoning.summary", "summary": "**Looking**", "format": "openai-responses-v1", "index": 0}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "ZGF0YQ==", "id": "rs_1", "format": "openai-responses-v1", "index": 0}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def kept(message: Any) -> list[Any]:
    """What the answer has kept of the details."""
    found = [part.opaque for part in message.parts if isinstance(part, Thought) and part.opaque is not None]
    assert len(found) <= 1
    return json.loads(found[0].json) if found else []


@st.composite
def details(draw: st.DrawFn) -> list[dict[str, Any]]:
    """As unstreamed answers have them: each with its own index, or a summary and its encryption with one."""
    words = st.text(min_size=1, max_size=12)
    count = draw(st.integers(1, 4))
    found: list[dict[str, Any]] = []
    for index in range(count):
        match draw(st.sampled_from(["text", "signed", "summary", "both", "encrypted"])):
            case "text":
                found.append({"type": "reasoning.text", "text": draw(words), "format": "x", "index": index})
            case "signed":
                found.append({"type": "reasoning.text", "text": draw(words), "signature": draw(words), "format": "x", "index": index})
            case "summary":
                found.append({"type": "reasoning.summary", "summary": draw(words), "format": "x", "index": index})
            case "both":
                found.append({"type": "reasoning.summary", "summary": draw(words), "format": "x", "index": index})
                found.append({"type": "reasoning.encrypted", "data": draw(words), "id": f"rs_{index}", "format": "x", "index": index})
            case _:
                found.append({"type": "reasoning.encrypted", "data": draw(words), "id": None, "format": "x", "index": index})
    return found


@st.composite
def fragments(draw: st.DrawFn, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same as they are streamed: texts in pieces, each with the entry's type and index, the signature behind them."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        field = next(name for name in ("text", "summary", "data") if name in entry)
        if field == "data":
            found.append(entry)
            continue
        rest = {name: value for name, value in entry.items() if name not in (field, "signature")}
        found += [{**rest, field: piece} for piece in draw(cut(entry[field]))]
        if "signature" in entry:
            found.append({**rest, "signature": entry["signature"]})
    return found


@given(details(), st.data())
def test_details_come_out_of_a_stream_as_out_of_a_whole_answer(entries: list[dict[str, Any]], data: st.DataObject) -> None:
    streamed = answered(
        "openai_chat", sse(*(delta(reasoning_details=[each]) for each in data.draw(fragments(entries))), *END), model=CLAUDE
    )
    assert kept(streamed.message) == entries
    assert kept(whole(CLAUDE, content="", reasoning_details=entries).message) == entries


def test_the_thinking_is_read_once_and_the_details_are_kept_on_it() -> None:
    answer = answered(
        "openai_chat",
        sse(
            delta(reasoning="Let me", reasoning_details=[{**SIGNED, "text": "Let me", "signature": ""}]),
            delta(reasoning=" look.", reasoning_details=[{"type": "reasoning.text", "text": " look.", "index": 0}]),
            delta(reasoning=None, reasoning_details=[{"type": "reasoning.text", "signature": "c2lnbmVk", "index": 0}]),
            delta(content="a"),
            *END,
        ),
        model=CLAUDE,
    )
    assert texts_of(answer.message) == [("Thought", "Let me look."), ("Text", "a")]
    assert kept(answer.message) == [SIGNED]


def test_thinking_that_stands_in_the_details_alone_is_read_from_them() -> None:
    """Snowflake."""
    assert texts_of(whole("vllm/m", content="a", reasoning_details=[SIGNED]).message) == [("Thought", "Let me look."), ("Text", "a")]


def test_two_signed_thoughts_under_one_index_stay_two() -> None:
    again = {**SIGNED, "text": "And there.", "signature": "YWdhaW4="}
    answer = answered("openai_chat", sse(*(delta(reasoning_details=[each]) for each in (SIGNED, again)), *END), model=CLAUDE)
    assert kept(answer.message) == [SIGNED, again]


@pytest.mark.parametrize("given_details", [[SIGNED], [SUMMARY, ENCRYPTED], [ENCRYPTED]])
@pytest.mark.parametrize("is_streamed", [True, False])
def test_details_go_back_with_the_call_they_belong_to(given_details: list[dict[str, Any]], is_streamed: bool) -> None:
    """Gemini refuses the first tool result without them, whether or not there are words that can be read."""
    for model in (CLAUDE, GEMINI):
        if is_streamed:
            events = sse(delta(reasoning_details=given_details), delta(tool_calls=[CALL]), *END)
            answer = answered("openai_chat", events, model=model)
        else:
            answer = whole(model, "tool_calls", content=None, tool_calls=[CALL], reasoning_details=given_details)
        assert answer.finish is FinishReason.TOOL_CALLS
        (call,) = answer.message.calls
        back = user(tool_result(call, "done"))
        sent = prepared("openai_chat", user("hello"), answer.message, back, model=model)["messages"][1]
        assert sent["reasoning_details"] == given_details
        assert sent["tool_calls"][0]["id"] == "call_1"
        assert "reasoning" not in sent
        for other in ("openai/gpt-4.1", "openrouter/x-ai/grok-4.7", "vllm/m"):
            assert "reasoning_details" not in str(prepared("openai_chat", user("hello"), answer.message, back, model=other))


def test_a_server_that_sends_details_gets_them_back_though_no_row_says_so() -> None:
    answer = whole("vllm/m", "tool_calls", content=None, tool_calls=[CALL], reasoning_details=[SIGNED])
    back = user(tool_result(answer.message.calls[0], "done"))
    assert prepared("openai_chat", user("hello"), answer.message, back, model="vllm/m")["messages"][1]["reasoning_details"] == [SIGNED]


def test_ids_that_signatures_refer_to_are_not_shortened() -> None:
    long_id = "tool_0_mcp__a_server_with_a_name__and_a_tool_of_it_jzavyge6Igpxnzj0GNCC"
    encrypted = {**ENCRYPTED, "id": long_id}
    answer = whole(GEMINI, "tool_calls", content=None, tool_calls=[{**CALL, "id": long_id}], reasoning_details=[encrypted])
    back = user(tool_result(answer.message.calls[0], "done"))
    _, said, result = prepared("openai_chat", user("hello"), answer.message, back, model=GEMINI)["messages"]
    assert said["tool_calls"][0]["id"] == result["tool_call_id"] == long_id
    assert said["reasoning_details"] == [encrypted]


def test_halves_of_surrogate_pairs_in_details_do_no_harm() -> None:
    answer = whole(CLAUDE, content="a", reasoning_details=[{**SIGNED, "text": "\ud83d"}])
    msgspec.json.encode(answer)
    assert prepared("openai_chat", user("hello"), answer.message, user("go on"), model=CLAUDE)["messages"][1]["reasoning_details"]


@pytest.mark.parametrize("model", ["anthropic/claude-opus-9", "anthropic/claude-haiku-4.5"])
def test_claude_behind_openrouter_is_cached_by_marks_also_where_the_catalog_does_not_know_it(model: str) -> None:
    profile = profile_for(builtin_catalog()["openrouter"], model)
    assert (profile.cache, profile.known) == ("breakpoints", False)
    body = prepared("openai_chat", user("hello"), model=f"openrouter/{model}")
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
