"""Messages as other APIs write them are read as what they are; whatever is not read is refused in words."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman import Blob, FileRef, InputError, Message, Text, Thought, ToolCall, ToolResult, assistant, build_request, user
from dragoman.base import jsontext
from dragoman.messages import Opaque, to_messages, to_parts
from dragoman.providers import anthropic, gemini, openai_chat, openai_responses
from dragoman.providers.wire import Destination
from dragoman.testing import ScriptedProvider
from dragoman.values.profile import Deployment, Profile

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PNG64 = b64encode(PNG).decode()
CALL = ToolCall("c1", "read_file", '{"path":"a"}')
RESULT = ToolResult("c1", "read_file", (Text("content"),))


# --- each API's own form


def test_gemini_contents_are_messages() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": PNG64}}]},
        {
            "role": "model",
            "parts": [{"text": "hm", "thought": True}, {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "content"}}}]},
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v.mp4"}}]},
    ]
    assert to_messages(contents) == (
        user("look", Blob.of("image/png", PNG)),
        assistant(Thought("hm"), CALL),
        user(RESULT),
        assistant("done"),
        user(FileRef("video/mp4", "gs://b/v.mp4")),
    )


def test_google_genai_writes_the_same_with_underscores() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "look", "thought": None}, {"inline_data": {"mime_type": "image/png", "data": PNG}}]},
        {
            "role": "model",
            "parts": [{"function_call": {"id": "c1", "name": "read_file", "args": {"path": "a"}}, "thought_signature": b"sig"}],
        },
        {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "read_file", "response": {"error": "no"}}}]},
    ]
    signed = ToolCall("c1", "read_file", '{"path":"a"}', Opaque("gemini", '"c2ln"'))
    assert to_messages(contents) == (
        user("look", Blob.of("image/png", PNG)),
        assistant(signed),
        user(ToolResult("c1", "read_file", (Text("no"),), is_error=True)),
    )


def test_chat_completions_are_messages() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}},
                {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "b"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "content"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG64}", "detail": "high"}},
                {"type": "image_url", "image_url": {"url": "https://e.org/a.webp?x=1"}},
                {"type": "input_audio", "input_audio": {"data": b64encode(b"RIFF").decode(), "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{b64encode(b'%PDF-').decode()}"}},
            ],
        },
        {"role": "assistant", "content": "done", "refusal": None, "annotations": []},
    ]
    assert to_messages(messages) == (
        user("hi"),
        assistant(CALL, ToolCall("c2", "ls", "{}")),
        user(ToolResult("c2", "ls", (Text("b"),)), RESULT),
        user(
            "look",
            Blob.of("image/png", PNG),
            FileRef("image/webp", "https://e.org/a.webp?x=1"),
            Blob.of("audio/wav", b"RIFF"),
            Blob.of("application/pdf", b"%PDF-"),
        ),
        assistant("done"),
    )


def test_responses_items_are_messages() -> None:
    items = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PNG64}"}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read_file", "arguments": '{"path":"a"}', "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "content"},
    ]
    assert to_messages(items) == (user("hi", Blob.of("image/png", PNG)), assistant(Thought("hm"), CALL), user(RESULT))


def test_anthropic_blocks_are_parts() -> None:
    messages = [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG64}},
                {"type": "text", "text": "hi"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "content"}]},
        {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}}]},
    ]
    thought = Thought("hm", Opaque("anthropic", '{"type":"thinking","thinking":"hm","signature":"s"}'))
    assert to_messages(messages) == (
        user(Blob.of("image/png", PNG), "hi"),
        assistant(thought, CALL),
        user(RESULT),
        user(FileRef("application/pdf", "https://e.org/a.pdf")),
    )


def test_objects_of_an_sdk_are_read_by_what_they_dump() -> None:
    class Dumped:
        def model_dump(self) -> dict[str, Any]:
            return {"role": "assistant", "content": "hi", "refusal": None, "audio": None, "function_call": None, "tool_calls": None}

    assert to_messages([user("a"), Dumped()]) == (user("a"), assistant("hi"))


# --- wherever a message is written


def test_dicts_stand_beside_our_own_values() -> None:
    own = user("first")
    read = to_messages([own, {"role": "model", "parts": [{"text": "a"}]}, "loose", {"text": "part"}, CALL])
    assert read == (own, assistant("a"), user("loose", "part", CALL))
    assert read[0] is own, "what is known of a message is kept by its identity"
    assert to_parts({"text": "a"}) == to_parts({"role": "user", "content": "a"}) == (Text("a"),)
    assert dm.user("a", {"text": "b"}) == user("a", "b")
    assert dm.assistant({"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}) == assistant(CALL)
    assert build_request("m", {"role": "user", "content": "hi"}).messages == (user("hi"),)


def test_a_conversation_of_dicts_can_be_gone_on_with() -> None:
    history = dm.History()
    with dm.Agent(ScriptedProvider([]), session=history) as agent:
        agent.set_history([{"role": "user", "content": "hi"}, {"role": "model", "parts": [{"text": "yes"}]}])
        assert tuple(history.view.messages) == (user("hi"), assistant("yes"))


def test_an_estimate_takes_dicts() -> None:
    from dragoman.context import estimate_tokens

    messages = [user("hello there"), assistant("yes")]
    assert estimate_tokens([{"role": "user", "content": "hello there"}, {"role": "model", "parts": [{"text": "yes"}]}]) == estimate_tokens(
        messages
    )


# --- calls and results


def test_a_result_that_has_a_name_for_an_id_belongs_to_the_first_open_call_of_that_name() -> None:
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {"n": n}}} for n in (1, 2)]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "ls", "response": "one"}},
                {"functionResponse": {"id": "ls", "name": "ls", "response": {"output": "two"}}},
            ],
        },
    ]
    called, answered = to_messages(contents)
    assert [(result.call_id, result.text) for result in answered.results] == [(called.calls[0].id, "one"), (called.calls[1].id, "two")]
    by_name = to_messages([contents[0], {"role": "tool", "tool_call_id": "ls", "content": "one"}])
    assert by_name[1].results[0].call_id == by_name[0].calls[0].id


def test_results_are_paired_with_calls_of_our_own() -> None:
    read = to_messages([assistant(CALL), {"role": "tool", "tool_call_id": "c1", "content": "content"}])
    assert read == (assistant(CALL), user(RESULT))


def test_calls_of_one_id_get_ids_of_their_own() -> None:
    call = {"functionCall": {"id": "x", "name": "ls", "args": {}}}
    response = {"functionResponse": {"id": "x", "name": "ls", "response": {"output": "o"}}}
    called, answered = to_messages([{"role": "model", "parts": [call, call]}, {"role": "user", "parts": [response, response]}])
    assert len({each.id for each in called.calls}) == 2
    assert [each.id for each in called.calls] == [each.call_id for each in answered.results]


# --- bad input


BAD: dict[str, tuple[Any, str]] = {
    "a wrong role": ({"role": "owner", "content": "x"}, "message 0 has the role 'owner'.*Write user"),
    "a system message": ([user("a"), {"role": "system", "content": "x"}], "message 1 has the role 'system'.*`system`"),
    "an unknown part": ({"role": "user", "parts": [{"text": "a"}, {"sound": "x"}]}, "part 1 of message 0 is a dict with the keys sound"),
    "a part with two kinds": ({"text": "a", "functionCall": {"name": "f"}}, "both 'text' and 'functionCall'"),
    "parts and content": ({"role": "user", "parts": [], "content": "x"}, "both 'parts' and 'content'"),
    "an unknown block": ({"role": "user", "content": [{"type": "hologram"}]}, "type 'hologram'"),
    "a dict of no API": ({"question": "x"}, "keys question.*dragoman.user"),
    "an empty dict": ({}, "dragoman.user"),
    "a whole request": ({"contents": [], "systemInstruction": {}}, "whole request.*'contents'"),
    "no base64": ({"inlineData": {"mimeType": "image/png", "data": "%%%"}}, "not base64"),
    "half a base64": ({"inlineData": {"mimeType": "image/png", "data": "QUJDR"}}, "not base64"),
    "text that is none": ({"role": "user", "parts": [{"text": 3}]}, "'text' must be a text, but is 3"),
    "content that is none": ({"role": "user", "content": 3}, "'content' must be a text or a list of dicts, but is 3"),
    "no content": ({"role": "user"}, "lacks 'content'"),
    "a call without a name": ({"functionCall": {"args": {}}}, "lacks 'name'"),
    "a call of the user": ({"role": "user", "parts": [{"functionCall": {"name": "f"}}]}, "is a call"),
    "an unknown key": ({"role": "user", "content": "x", "mood": "good"}, "key 'mood'"),
    "a result without an id": ({"role": "tool", "content": "x"}, "lacks 'tool_call_id'"),
    "arguments that are no JSON": ({"functionCall": {"name": "f", "args": {"a": object()}}}, "cannot be written as JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_whatever_is_not_read_is_refused_with_its_place(name: str) -> None:
    given, words = BAD[name]
    with pytest.raises(InputError, match=words):
        to_messages(given)


def test_a_prompt_refuses_the_words_of_a_model() -> None:
    with dm.Agent(ScriptedProvider([])) as agent, pytest.raises(InputError, match="role assistant"):
        agent.run([{"role": "model", "parts": [{"text": "a"}]}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(
    ["role", "parts", "content", "text", "type", "inlineData", "functionCall", "functionResponse", "tool_calls", "name", "id", "x"]
)


@given(st.dictionaries(KEYS, JSON | st.sampled_from(["user", "model", "tool", "text"]), max_size=4))
def test_junk_is_refused_or_read_and_never_taken_for_text(junk: dict[str, Any]) -> None:
    try:
        messages = to_messages(junk)
    except InputError:
        return
    kept = json.dumps(junk, ensure_ascii=False)
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, Text) and part.text not in ("", *KEYS_AS_TEXT):
            assert json.dumps(part.text, ensure_ascii=False)[1:-1] in kept
        assert not (isinstance(part, Text) and part.text in junk and part.text not in _strings(list(junk.values())))


KEYS_AS_TEXT = ("null",)


def _strings(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(_strings, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(_strings, value)) if value else set()
    return {value} if isinstance(value, str) else set()


# --- there and back


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8).filter(str.strip)
MEDIA = st.sampled_from([Blob.of("image/png", PNG), FileRef("image/png", "https://e.org/a.png")])
NAMES = st.sampled_from(["ls", "read_file"])


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    messages: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        said = draw(st.lists(WORDS.map(Text) | MEDIA, min_size=1, max_size=3))
        messages.append(user(*said))
        calls = [ToolCall(f"c{number + each}", draw(NAMES), jsontext.dumps({"a": draw(WORDS)})) for each in range(draw(st.integers(0, 2)))]
        number += len(calls)
        messages.append(assistant(*([draw(WORDS)] if not calls or draw(st.booleans()) else []), *calls))
        if calls:
            messages.append(user(*(ToolResult(call.id, call.name, (Text(draw(WORDS)),)) for call in calls)))
    return tuple(messages)


def joined(messages: tuple[Message, ...]) -> list[Message]:
    """Services join what one side says; how often it was begun anew is not carried."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1].role == message.role:
            out[-1] = Message(message.role, out[-1].parts + message.parts)
        else:
            out.append(message)
    return out


FORMS = {
    "gemini": (gemini, "contents"),
    "openai_chat": (openai_chat, "messages"),
    "openai_responses": (openai_responses, "input"),
    "anthropic": (anthropic, "messages"),
}


@pytest.mark.parametrize("form", FORMS)
@given(messages=conversations())
def test_what_is_sent_to_a_service_is_read_back_as_it_was(form: str, messages: tuple[Message, ...]) -> None:
    protocol, key = FORMS[form]
    profile = Profile(images=True, pdfs=True, audio=True, thought_signatures=True)
    to = Destination(Deployment("there", form, "http://there"), profile, "m")
    request = dm.Request("m", messages)
    body = json.loads(protocol.body(request, [protocol.render(message, to) for message in messages], to, stream=False))
    assert joined(to_messages(body[key])) == joined(messages)


def test_thinking_may_be_a_text_of_its_own() -> None:
    """So document 003 has it: `thought?: string`."""
    assert to_messages({"role": "model", "parts": [{"thought": "hm"}, {"text": "Yes."}]}) == (assistant(Thought("hm"), "Yes."),)
    with pytest.raises(InputError, match="both 'text' and 'thought'"):
        to_messages({"role": "model", "parts": [{"thought": "hm", "text": "Yes."}]})


@pytest.mark.parametrize("text", [{"text": "a"}, {"type": "text", "text": "a"}])
def test_the_content_of_a_response_may_be_parts(text: dict[str, str]) -> None:
    """So document 004 has it: `content?: Part[]`."""
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    (result,) = to_parts({"functionResponse": {"id": "c", "name": "look", "response": {"content": [text, picture]}}})
    assert isinstance(result, ToolResult)
    assert result.content == (Text("a"), *to_parts(picture))


@pytest.mark.parametrize("content", [[], ["a"], [{"text": "a", "score": 1}], [{"type": "file", "path": "a"}], {"text": "a"}])
def test_content_that_is_data_stays_data(content: object) -> None:
    (result,) = to_parts({"functionResponse": {"id": "c", "name": "look", "response": {"content": content}}})
    assert isinstance(result, ToolResult)
    assert json.loads(result.text) == content
