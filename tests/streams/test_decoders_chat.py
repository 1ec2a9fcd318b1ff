"""OpenAI Chat Completions as the many services compatible with it speak it."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script_steps import CallQuirk, CallStep, answer
from dragoman.values.errors import Overloaded, RateLimited, ServerError, StreamBroken
from dragoman.values.events import ToolCallStarted
from dragoman.values.messages import Citation, FinishReason, Response, assistant, user
from dragoman.values.usage import Usage
from streaming import answered, calls_of, checked, generated, pieces_of, prepared, recorded, sse, streamed, texts_of

DONE = "[DONE]"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]} | more


def calls(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [chunk({"tool_calls": [delta]}) for delta in deltas]


def piece(arguments: Any = None, name: str = "", index: int | None = None, call_id: str | None = None) -> dict[str, Any]:
    function = {"name": name} if name else {}
    if arguments is not None:
        function["arguments"] = arguments
    return {"function": function} | ({} if index is None else {"index": index}) | ({} if call_id is None else {"id": call_id})


def chat(*events: Any, finish: str = "stop") -> Response:
    return answered("openai_chat", sse(*events, chunk(finish=finish), DONE))


# --- text and thinking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_comes_under_either_name(field: str) -> None:
    response = chat(
        chunk({field: "hm, "}), chunk({field: "so", "content": None}), chunk({"content": "a"}), chunk({"content": "", field: ""})
    )
    assert texts_of(response.message) == [("Thought", "hm, so"), ("Text", "a")]
    whole = {"choices": [{"message": {"content": "a", field: "hm, so"}, "finish_reason": "stop"}]}
    assert texts_of(generated("openai_chat", json.dumps(whole).encode()).message) == [("Thought", "hm, so"), ("Text", "a")]


def test_both_names_at_once_are_one_thought() -> None:
    response = chat(chunk({"reasoning_content": "hm", "reasoning": "hm"}), chunk({"content": "a"}))
    assert texts_of(response.message) == [("Thought", "hm"), ("Text", "a")]


def test_content_in_blocks() -> None:
    """Mistral: thinking and text as typed blocks, streamed and whole."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    blocks = [thinking, {"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "b"}]
    response = chat(*(chunk({"content": [block]}) for block in blocks))
    assert texts_of(response.message) == [("Thought", "hm"), ("Text", "ab")]
    whole = {"choices": [{"message": {"content": blocks}, "finish_reason": "stop"}]}
    assert texts_of(generated("openai_chat", json.dumps(whole).encode()).message) == [("Thought", "hm"), ("Text", "ab")]


def test_thinking_between_texts_keeps_its_place() -> None:
    response = chat(chunk({"content": "a"}), chunk({"reasoning": "hm"}), chunk({"content": "b"}))
    assert texts_of(response.message) == [("Text", "a"), ("Thought", "hm"), ("Text", "b")]


def test_annotations_become_citations() -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}}
    (citation,) = [
        part for part in chat(chunk({"content": "a"}), chunk({"annotations": [note]})).message.parts if isinstance(part, Citation)
    ]
    assert (citation.uri, citation.title) == ("https://example.org", "t")
    assert citation.opaque is not None
    assert json.loads(citation.opaque.json) == note
    assert "example.org" not in json.dumps(prepared("openai_chat", user("hello"), assistant("a", citation), user("go on")))


# --- how it ends ------------------------------------------------------------------------------------------------------------


def test_without_done_the_end_of_the_body_will_do() -> None:
    """Compatible servers leave [DONE] out; the finish reason is what counts."""
    response = answered("openai_chat", sse(chunk({"content": "a"}), chunk(finish="stop"), {"choices": [], "usage": {"prompt_tokens": 5}}))
    assert (response.message, response.usage) == (assistant("a"), Usage(5))


@pytest.mark.parametrize("finish", [None, ""])
def test_done_is_an_end_whether_or_not_the_service_says_why(finish: str | None) -> None:
    """Snowflake always sends an empty reason, some hosts of OpenRouter none at all."""
    response = answered("openai_chat", sse(chunk({"content": "a"}), chunk(finish=finish), DONE))
    assert (response.message, response.finish, response.raw_finish) == (assistant("a"), FinishReason.STOP, "")
    called = answered("openai_chat", sse(*calls(piece('{"x":1}', "f", 0, "c")), chunk(finish=finish), DONE))
    assert (called.finish, calls_of(called)) == (FinishReason.TOOL_CALLS, [("c", "f", '{"x":1}')])
    whole = {"choices": [{"message": {"content": "a"}, "finish_reason": finish}]}
    assert generated("openai_chat", json.dumps(whole).encode()).finish is FinishReason.STOP


@pytest.mark.parametrize("events", [[], [DONE], [chunk({"content": "a"})], [*calls(piece('{"x":1}', "f", 0, "c"))]])
def test_neither_done_nor_a_finish_reason_is_no_end(events: list[Any]) -> None:
    with pytest.raises(StreamBroken, match="broke off"):
        streamed("openai_chat", sse(*events))


def test_a_whole_answer_of_nothing_is_no_answer() -> None:
    with pytest.raises(StreamBroken, match="does not say why"):
        generated("openai_chat", b'{"choices": [{"index": 0}]}')


def test_a_filtered_answer_may_have_no_message() -> None:
    """Azure's content filter."""
    response = generated("openai_chat", b'{"choices": [{"finish_reason": "content_filter", "index": 0}]}')
    assert (response.finish, response.message.parts) == (FinishReason.SAFETY, ())


def test_done_may_have_a_blank_behind_it() -> None:
    assert answered("openai_chat", sse(chunk({"content": "a"}), chunk(finish="stop"), "[DONE] ")).message == assistant("a")


def test_the_id_may_come_with_a_later_chunk() -> None:
    """Azure: the first chunk tells what the filters found in the prompt."""
    first = {"choices": [], "id": "", "model": "", "prompt_filter_results": [{"prompt_index": 0}]}
    response = answered("openai_chat", sse(first, chunk({"content": "a"}), chunk(finish="stop"), DONE))
    assert (response.response_id, response.model_version) == ("r", "m")


# --- errors that are answers, and answers that are errors ---------------------------------------------------------------------------

FAILED_CALL = {
    "error": {
        "message": "Tool call validation failed: parameters for tool f did not match schema",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '{"name": "f", "arguments": {"y": 1}}',
        "status_code": 400,
    }
}


def test_a_call_that_groq_cannot_read_is_a_malformed_call() -> None:
    """An accident of sampling, which comes as an error in the middle of the stream; the model is told what was wrong with it."""
    response = answered("openai_chat", sse(chunk({"reasoning": "hm"}), ("error", FAILED_CALL)))
    assert (response.finish, response.raw_finish) == (FinishReason.MALFORMED_TOOL_CALL, "tool_use_failed")
    assert "did not match schema" in response.detail
    assert '"y": 1' in response.detail
    assert texts_of(response.message) == [("Thought", "hm")]


def test_other_errors_of_groq_stay_errors() -> None:
    with pytest.raises(RateLimited):
        streamed("openai_chat", sse(("error", {"error": {"message": "slow down", "code": "rate_limit_exceeded"}})))


def test_the_error_lines_of_llama_cpp_are_read() -> None:
    line = b'error: {"code": 503, "message": "Loading model", "type": "unavailable_error"}\n\n'
    with pytest.raises(Overloaded, match="Loading model"):
        streamed("openai_chat", sse(chunk({"content": "a"})) + line)


def test_an_answer_that_ends_in_an_error_is_one() -> None:
    """OpenRouter: the host failed in the middle of the answer, with or without a word why."""
    with pytest.raises(ServerError):
        streamed("openai_chat", sse(chunk({"content": "a"}), chunk(finish="error"), DONE))
    failed = {"choices": [{"message": {"content": "a"}, "finish_reason": "error", "error": {"code": 502, "message": "host is gone"}}]}
    with pytest.raises(ServerError, match="host is gone"):
        generated("openai_chat", json.dumps(failed).encode())
    malformed = chunk(finish="error")
    malformed["choices"][0]["native_finish_reason"] = "MALFORMED_FUNCTION_CALL"
    assert answered("openai_chat", sse(malformed, DONE)).finish is FinishReason.MALFORMED_TOOL_CALL


def test_deltas_behind_the_finish_reason_count() -> None:
    """PV12: finish event before the last delta."""
    late = [chunk({"content": "a"}), chunk(finish="tool_calls"), chunk({"content": "b"}), *calls(piece('{"x":1}', "f", 0, "c"))]
    response = answered("openai_chat", sse(*late, DONE))
    assert (response.message.text, calls_of(response)) == ("ab", [("c", "f", '{"x":1}')])


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("eos", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("model_length", FinishReason.LENGTH),
        ("content_filter", FinishReason.SAFETY),
        ("sensitive", FinishReason.SAFETY),
        ("refusal", FinishReason.REFUSAL),
        ("insufficient_system_resource", FinishReason.OTHER),
    ],
)
def test_every_finish_reason(word: str, reason: FinishReason) -> None:
    response = chat(chunk({"content": "a"}), finish=word)
    assert (response.finish, response.raw_finish) == (reason, word)


def test_a_refusal_is_shown_and_named() -> None:
    """PV13: the refusal is what a person reads, and the reason beside it."""
    response = chat(chunk({"content": "Well. "}), chunk({"refusal": "I will "}), chunk({"refusal": "not."}))
    assert (response.finish, response.detail, response.message.text) == (FinishReason.REFUSAL, "I will not.", "Well. I will not.")


def test_chunks_without_choices_say_nothing() -> None:
    """Azure opens with prompt_filter_results; others send objects of their own."""
    response = chat(
        {"choices": [], "prompt_filter_results": []}, {"id": "x", "choices": []}, {"object": "heartbeat"}, chunk({"content": "a"})
    )
    assert response.message == assistant("a")


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "Overloaded", "code": 503}}, Overloaded),
        ({"error": {"message": "Slow down", "type": "rate_limit_error"}}, RateLimited),
        ({"error": {"message": "Slow down", "code": "1302"}}, ServerError),
        ({"error": "it broke"}, ServerError),
        (("error", {"message": "it broke"}), ServerError),
        (
            {"id": "r", "choices": [{"delta": {"content": ""}, "finish_reason": "error"}], "error": {"code": 502, "message": "Bad"}},
            ServerError,
        ),
    ],
)
def test_an_error_inside_the_stream_is_treated_like_its_status(event: Any, kind: type[Exception]) -> None:
    """A code that is no HTTP status (GLM numbers its own) is not taken for one."""
    with pytest.raises(kind) as caught:
        streamed("openai_chat", sse(chunk({"content": "a"}), event))
    assert caught.value.status in (429, 500, 502, 503)  # type: ignore[attr-defined]
    assert caught.value.retryable  # type: ignore[attr-defined]


# --- usage ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3}, Usage(10, output_tokens=3)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(6, 4)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}}, Usage(1, 4, 5)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2}, Usage(2, 8)),
        ({"prompt_tokens": 10, "cached_tokens": 7}, Usage(3, 7)),
        ({"prompt_tokens": 10, "prompt_tokens_details": None, "completion_tokens_details": None}, Usage(10)),
        (
            {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(1, output_tokens=9, thought_tokens=5),
        ),
        ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(0, 4)),
        (
            {"prompt_tokens": None, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(0, output_tokens=2, thought_tokens=2),
        ),
        (
            {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 303, "completion_tokens_details": {"reasoning_tokens": 290}},
            Usage(12, output_tokens=291, thought_tokens=290),
        ),
        ({"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 30}, Usage(12, output_tokens=18, thought_tokens=17)),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 385, "prompt_tokens_details": {"audio_tokens": 375}},
            Usage(384, output_tokens=1),
        ),
        (
            {"prompt_tokens": 10, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 161}},
            Usage(0, 10),
        ),
        (
            {"prompt_tokens": 20, "total_tokens": 20, "prompt_tokens_details": {"cached_tokens": 18, "cache_write_tokens": 18}},
            Usage(0, 18, 2),
        ),
    ],
    ids=[
        *("plain", "OpenAI", "cache writes", "DeepSeek", "Kimi", "null details", "reasoning", "more cached than sent", "nulls"),
        *("xAI: thinking outside the output", "Gemini: thinking not named", "Mistral: sound outside the prompt"),
        *("Azure: more cached than there is", "OpenRouter: read what it wrote"),
    ],
)
def test_usage_of_every_service(usage: dict[str, Any], expected: Usage) -> None:
    """Fresh + cache read + cache write = input. In a chunk of its own, with the finish, or in every chunk."""
    alone = sse(chunk({"content": "a"}, usage=None), chunk(finish="stop"), {"choices": [], "usage": usage}, DONE)
    beside = sse(chunk({"content": "a"}, usage=usage), chunk(finish="stop", usage=usage), DONE)
    assert answered("openai_chat", alone).usage == answered("openai_chat", beside).usage == expected
    whole = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage}
    assert generated("openai_chat", json.dumps(whole).encode()).usage == expected


def test_usage_where_groq_and_kimi_put_it() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    groq = sse(chunk({"content": "a"}), chunk(finish="stop", x_groq={"id": "req", "usage": usage}), DONE)
    last = chunk(finish="stop")
    last["choices"][0]["usage"] = usage
    kimi = sse(chunk({"content": "a"}), last, DONE)
    assert answered("openai_chat", groq).usage == answered("openai_chat", kimi).usage == Usage(10, output_tokens=3)


# --- tool calls: PV12 -------------------------------------------------------------------------------------------------------

A, B = '{"path":"a.txt","n":{"x":1}}', '{"path":"b.txt","n":{"y":2}}'
TWO = [("ca", "f", A), ("cb", "g", B)]


def rebuilt(*deltas: dict[str, Any]) -> list[tuple[str, str, str]]:
    return calls_of(chat(*calls(*deltas), finish="tool_calls"))


def test_one_call_after_the_other_by_index() -> None:
    assert rebuilt(piece("", "f", 0, "ca"), piece(A[:9], index=0), piece(A[9:], index=0), piece(B, "g", 1, "cb")) == TWO


def test_interleaved_by_index() -> None:
    deltas = [piece("", "f", 0, "ca"), piece("", "g", 1, "cb")]
    for start in range(0, len(A), 5):
        deltas += [piece(A[start : start + 5], index=0), piece(B[start : start + 5], index=1)]
    assert rebuilt(*deltas) == TWO


def test_index_missing_with_the_id_once_or_in_every_delta() -> None:
    assert rebuilt(piece("", "f", call_id="ca"), piece(A[:9]), piece(A[9:]), piece("", "g", call_id="cb"), piece(B)) == TWO
    every = [piece(A[:9], "f", call_id="ca"), piece(B[:9], "g", call_id="cb"), piece(A[9:], call_id="ca"), piece(B[9:], call_id="cb")]
    assert rebuilt(*every) == TWO


def test_index_missing_after_the_first_delta() -> None:
    assert rebuilt(piece("", "f", 0, "ca"), piece(A[:9]), piece(A[9:]), piece("", "g", 1, "cb"), piece(B)) == TWO


def test_all_index_0_with_different_ids() -> None:
    assert rebuilt(piece(A, "f", 0, "ca"), piece(B, "g", 0, "cb")) == TWO
    assert rebuilt(piece("", "f", 0, "ca"), piece(A, index=0), piece("", "g", 0, "cb"), piece(B, index=0)) == TWO
    every = [
        piece(A[:9], "f", 0, "ca"),
        piece(B[:9], "g", 0, "cb"),
        piece(A[9:], index=0, call_id="ca"),
        piece(B[9:], index=0, call_id="cb"),
    ]
    assert rebuilt(*every) == TWO


@pytest.mark.parametrize("call_id", [None, "", "same"])
@pytest.mark.parametrize("index", [0, None])
def test_calls_that_come_whole_are_told_apart_by_their_names(index: int | None, call_id: str | None) -> None:
    """Gemini's compatible endpoint: every call whole, every index 0, every id empty."""
    found = rebuilt(piece(A, "f", index, call_id), piece(B, "g", index, call_id), piece(A, "f", index, call_id))
    assert [(name, arguments) for _, name, arguments in found] == [("f", A), ("g", B), ("f", A)]


def test_pieces_under_one_index_without_ids_are_told_apart_by_their_names() -> None:
    found = rebuilt(piece("", "f", 0), piece(A[:9], index=0), piece(A[9:], index=0), piece("", "g", 0), piece(B, index=0))
    assert [(name, arguments) for _, name, arguments in found] == [("f", A), ("g", B)]


def test_the_name_in_a_later_delta() -> None:
    """And the arguments that came before it are told once it is known."""
    events = streamed(
        "openai_chat",
        sse(*calls(piece(A[:9], index=0, call_id="ca"), piece(A[9:12], "f", 0), piece(A[12:], index=0)), chunk(finish="stop"), DONE),
    )
    assert calls_of(checked(events)) == TWO[:1]
    assert pieces_of(events) == {"ca": A}
    assert [event.name for event in events if isinstance(event, ToolCallStarted)] == ["f"]


def test_the_id_in_a_later_delta_or_never() -> None:
    assert rebuilt(piece("", "f", 0), piece(A, index=0, call_id="ca")) == [("call-1", "f", A)]
    (found,) = rebuilt(piece(A, "f", 0))
    assert found[1:] == ("f", A)


def test_name_and_id_in_every_delta() -> None:
    repeated = [piece(A[:9], "f", 0, "ca"), piece(A[9:], "f", 0, "ca"), piece("", "f", 0, "ca"), piece(B, "g", 1, "cb")]
    assert rebuilt(*repeated) == TWO


def test_arguments_as_an_object() -> None:
    """Ollama sends objects, several to a chunk."""
    both = chunk({"tool_calls": [piece({"a": 1}, "f", 0), piece({}, "g", 1)]})
    response = chat(both)
    assert [(call.name, call.args) for call in response.message.calls] == [("f", {"a": 1}), ("g", {})]
    whole = {"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, "finish_reason": "stop"}]}
    assert generated("openai_chat", json.dumps(whole).encode()).message.calls[0].args == {"a": 1}


def test_no_arguments_at_all() -> None:
    assert rebuilt(piece(None, "f", 0, "ca"), piece("", "g", 1, "cb")) == [("ca", "f", "{}"), ("cb", "g", "{}")]


@pytest.mark.parametrize(
    "deltas",
    [
        # Both open under one index, and nothing says whose the pieces are. Joined they would even be JSON.
        [piece("", "f", 0, "ca"), piece("", "g", 0, "cb"), piece('{"a":', index=0), piece('{"b":2', index=0), piece("1}}", index=0)],
        [piece('{"a":', "f", 0, "ca"), piece('{"b":', "g", 0, "cb"), piece("1}", index=0), piece("2}", index=0)],
        [piece('{"a":', "f"), piece('{"b":', "g"), piece("1}"), piece("2}")],
        # The second call has neither name nor id.
        [piece(A, "f", 0, "ca"), piece(B, index=0)],
        [piece(A, "f", call_id="ca"), piece(B)],
        # Another name before the first call is whole.
        [piece('{"a":', "f", 0), piece('{"b":1}', "g", 0)],
    ],
)
def test_a_piece_that_could_be_anyones_breaks_the_stream(deltas: list[dict[str, Any]]) -> None:
    """PV12: rebuilt exactly or a stream error; never joined across calls."""
    with pytest.raises(StreamBroken, match="could belong to several"):
        rebuilt(*deltas)


ARGUMENTS = ["{}", A, B, '{"a":"}{"}', '{"a":[{"b":{}}]}']


@given(
    quirks=st.sets(st.sampled_from(CallQuirk)),
    ids=st.lists(st.sampled_from(["x", "y", "z", "", None]), min_size=1, max_size=3),
    arguments=st.lists(st.sampled_from(ARGUMENTS), min_size=3, max_size=3),
    size=st.integers(0, 9),
)
def test_any_layout_is_rebuilt_exactly_or_breaks_the_stream(
    quirks: set[CallQuirk], ids: list[str | None], arguments: list[str], size: int
) -> None:
    """PV12, all layouts and all ids at once: what comes out is what was said, or nothing."""
    said = [CallStep(f"f{n}", arguments[n], id=call_id, piece_chars=size) for n, call_id in enumerate(ids)]
    try:
        response = answered("openai_chat", recorded("openai_chat", answer(*said, calls=tuple(quirks))))
    except StreamBroken:
        assert not quirks <= {CallQuirk.INTERLEAVED, CallQuirk.ID_EVERY, CallQuirk.LATE_NAME, CallQuirk.LATE_DELTA}
        return
    found, meant = [(call.name, call.arguments) for call in response.message.calls], [(call.name, call.arguments) for call in said]
    assert sorted(found) == sorted(meant)
    if len(set(ids)) == len(ids):  # of calls that share an id the second is seen for what it is only once the first is whole
        assert found == meant


@pytest.mark.parametrize("quirks", list(product([False, True], repeat=3)))
def test_distinct_ids_in_every_delta_are_always_enough(quirks: tuple[bool, bool, bool]) -> None:
    chosen = [quirk for quirk, on in zip((CallQuirk.INTERLEAVED, CallQuirk.NO_INDEX, CallQuirk.SAME_INDEX), quirks, strict=True) if on]
    said = [CallStep("f", A, id="ca", piece_chars=4), CallStep("g", B, id="cb", piece_chars=4), CallStep("h", "{}", id="cc")]
    response = answered("openai_chat", recorded("openai_chat", answer(*said, calls=(*chosen, CallQuirk.ID_EVERY))))
    assert calls_of(response) == [*TWO, ("cc", "h", "{}")]
