"""A service that knows tools and a model that writes a call as text all the same; and a last resort under a grammar."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from destinations import ALL, connection, violation_in
from dragoman.base import jsontext
from dragoman.base.jsontext import valid_unicode
from dragoman.testing.script_steps import CallStep as NativeCall
from dragoman.testing.script_steps import Finish, Say, Step, answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.text_tools.call_note import read_note
from dragoman.text_tools.constrained import PartialAnswer, words_so_far
from dragoman.text_tools.detector import Detector
from dragoman.text_tools.options import TextOptions
from dragoman.text_tools.wrapper import TextTools
from dragoman.values.bound_answer import call_schema, constrain_request, is_constrained
from dragoman.values.events import ResponseFinished, TextDelta, ToolCallReady
from dragoman.values.messages import FinishReason, Request, Response, ToolCall, ToolSpec, assistant, user
from dragoman.values.schema import problems

READ = ToolSpec.of("read_file", "", {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]})
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/node"}},
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}},
}
TOOLS = (READ, ToolSpec.of("plant/tree", "", TREE))
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"file_path": "a.txt"}}\n</tool_call>'
ASKED = Request("model", (user("Read a.txt."),), "", TOOLS)


def streamed(provider: Any, request: Request = ASKED) -> tuple[list[Any], Response]:
    async def collect() -> list[Any]:
        return [event async for event in provider.stream(request)]

    events = asyncio.run(collect())
    assert isinstance(events[-1], ResponseFinished)
    return events, events[-1].response


def detector(*answers: str | Step, heard: list[str] | None = None) -> Detector:
    inner = ScriptedProvider([answer(each) for each in answers])
    return Detector(inner, None if heard is None else heard.append)


def test_the_first_call_written_as_text_is_taken_and_the_switch_is_told() -> None:
    heard: list[str] = []
    provider = detector(Say(f"Looking.\n{CALL}", piece_chars=4), f"Again.\n{CALL}", heard=heard)
    events, response = streamed(provider)
    (call,) = response.message.calls
    assert call.args == {"file_path": "a.txt"}
    assert response.finish is FinishReason.TOOL_CALLS
    assert "<tool_call>" not in response.message.text + "".join(event.text for event in events if isinstance(event, TextDelta))
    assert [event.call for event in events if isinstance(event, ToolCallReady)] == [call]
    assert provider.found_dialect
    assert heard == [provider.found_dialect]
    _, second = streamed(provider)
    assert second.message == assistant(f"Again.\n{CALL}")
    assert len(heard) == 1


def test_what_it_is_asked_passes_untouched() -> None:
    inner = ScriptedProvider("text: Hi.")
    streamed(Detector(inner))
    assert inner.requests[0] is ASKED


def test_where_the_service_makes_calls_itself_text_is_text() -> None:
    inner = ScriptedProvider([answer(Say(f"As in\n{CALL}\n", piece_chars=5), NativeCall("read_file", '{"file_path":"b"}', id="own"))])
    provider = Detector(inner)
    events, response = streamed(provider)
    assert response.message.calls == (ToolCall("own", "read_file", '{"file_path":"b"}'),)
    assert CALL in response.message.text
    assert CALL in "".join(event.text for event in events if isinstance(event, TextDelta))
    assert not provider.found_dialect


def test_a_model_that_has_called_natively_is_not_read_for_text_calls() -> None:
    provider = detector(NativeCall("read_file", '{"file_path":"b"}', id="own"), CALL)
    streamed(provider)
    _, response = streamed(provider)
    assert response.message == assistant(CALL)
    assert not provider.found_dialect


@pytest.mark.parametrize(
    "text",
    [
        "Just words.",
        "Here it is:\n```python\nread_file(file_path='a.txt')\n```",
        "read_file(file_path='a.txt') reads it.",
        f"In Markdown:\n```\n{CALL}\n```",
        f"Hermes would write {CALL} in such a case.",
        '<tool_call>\n{"name": "nope", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "read_file", "arguments": {"limit": 3}}\n</tool_call>',
    ],
)
def test_what_is_no_sure_call_stays_text_and_is_no_fault(text: str) -> None:
    provider = detector(text)
    _, response = streamed(provider)
    assert response.message == assistant(text)
    assert response.finish is FinishReason.STOP
    assert not provider.found_dialect


def test_an_answer_in_one_is_watched_as_well() -> None:
    provider = detector(CALL)
    response = asyncio.run(provider.generate(ASKED))
    assert [call.name for call in response.message.calls] == ["read_file"]
    assert provider.found_dialect


# --- under a grammar


def test_the_schema_takes_words_or_one_call_and_nothing_else() -> None:
    schema = jsontext.decode(call_schema(TOOLS))

    def fits(reply: Any) -> bool:
        return not problems(schema, {"reply": reply})

    assert fits({"answer": "Done."})
    assert fits({"name": "read_file", "arguments": {"file_path": "a"}})
    assert fits({"name": "plant/tree", "arguments": {"node": {"next": {"n": 1}}}})
    assert not fits({"name": "plant/tree", "arguments": {"node": {"next": {"n": "1"}}}})
    assert not fits({"name": "read_file", "arguments": {}})
    assert not fits({"name": "other", "arguments": {}})
    assert not fits({})


@pytest.mark.parametrize("where", ALL)
def test_every_service_takes_a_request_bound_to_it(where: str) -> None:
    inner = connection(where)
    request = Request(inner.model, (user("Go."),), "", TOOLS)
    body = TextTools(inner, TextOptions("hermes")).prepare(constrain_request(request)).body
    found = violation_in(inner, body)
    assert found is None, found


def bound(said: str, finish: FinishReason = FinishReason.STOP) -> tuple[list[Any], Response, ScriptedProvider]:
    inner = ScriptedProvider([answer(Say(said, piece_chars=6), Finish(finish))])
    events, response = streamed(TextTools(inner, TextOptions("hermes")), constrain_request(ASKED))
    return events, response, inner


def test_a_bound_answer_is_asked_for_by_the_schema() -> None:
    assert is_constrained(constrain_request(ASKED))
    assert not is_constrained(ASKED)
    assert not is_constrained(msgspec.structs.replace(constrain_request(ASKED), tools=()))
    _, _, inner = bound('{"reply": {"answer": "x"}}')
    assert inner.requests[0].settings.response_schema == call_schema(TOOLS)


def test_a_bound_answer_is_a_call_or_words() -> None:
    events, response, _ = bound('{"reply": {"name": "read_file", "arguments": {"path": "a"}}}')
    (call,) = response.message.calls
    assert call.args == {"file_path": "a"}
    assert read_note(call) is not None
    assert response.finish is FinishReason.TOOL_CALLS
    assert not [event for event in events if isinstance(event, TextDelta)]
    events, response, _ = bound('{"reply": {"answer": "It cannot be done."}}')
    assert response.message == assistant("It cannot be done.")
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "It cannot be done."
    assert len(texts) > 1, "words are told as they come"


@given(
    words=st.text(st.characters(exclude_categories=()), max_size=30),
    places=st.lists(st.integers(0, 250), max_size=6),
    is_ascii=st.booleans(),
)
@example(words='a"b\\', places=[30], is_ascii=True)
@example(words="😀\ud83d", places=[27, 30, 33, 36, 39], is_ascii=True)
@example(words="\n", places=[26, 27], is_ascii=False)
def test_the_words_of_a_bound_answer_are_told_as_they_come_however_it_is_cut(words: str, places: list[int], is_ascii: bool) -> None:
    if not is_ascii:
        words = words.encode(errors="replace").decode()
    text = json.dumps({"reply": {"answer": words}}, ensure_ascii=is_ascii)
    bounds = sorted(min(place, len(text)) for place in places)
    coming = PartialAnswer()
    told = [coming.feed(text[start:end]) for start, end in zip([0, *bounds], [*bounds, len(text)], strict=True)]
    assert "".join(told) == coming.text == valid_unicode(words)
    for end in range(len(text)):
        assert (words_so_far(text[:end]) or "") == coming.text[: len(words_so_far(text[:end]) or "")]


@pytest.mark.parametrize(
    "said", ["Hello!", "[]", '{"reply": {"name": "nope", "arguments": {}}}', '{"reply": {"name": "read_file"}}', '{"reply": 3}']
)
def test_a_bound_answer_is_checked_all_the_same(said: str) -> None:
    _, response, _ = bound(said)
    assert not response.message.calls
    assert response.finish is FinishReason.MALFORMED_TOOL_CALL
    assert response.fault == "unreadable_call"


@pytest.mark.parametrize(
    "said", ['{"reply": {"name": "read_file", "arguments": {"file_path": "a"}}}', '{"reply": {"name": "read_fi', '{"re']
)
def test_a_bound_answer_that_was_cut_calls_nothing(said: str) -> None:
    _, response, _ = bound(said, FinishReason.LENGTH)
    assert response.finish is FinishReason.LENGTH
    assert not response.message.calls
    assert response.message.text == "", "nobody is shown half a call"
    assert response.fault == "cut_in_call"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('{"reply": {"answer": "It is too', "It is too"),
        ('{"reply":{"answer":"one\\ntw\\', "one\ntw"),
        ('{"reply": {"answer": "caf\\u00', "caf"),
        ('{"reply": {"answer": "', ""),
    ],
)
def test_of_a_bound_answer_that_was_cut_the_words_so_far_are_shown(said: str, words: str) -> None:
    events, response, _ = bound(said, FinishReason.LENGTH)
    assert (response.finish, response.message.text) == (FinishReason.LENGTH, words)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == words
