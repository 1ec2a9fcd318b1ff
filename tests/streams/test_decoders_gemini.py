"""Gemini, chunk by chunk: what the recorded tapes do not show."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from dragoman.providers.gemini_stream import FINISH
from dragoman.values.errors import Overloaded, StreamBroken
from dragoman.values.events import ResponseStarted, ThoughtDelta, UsageUpdated
from dragoman.values.messages import Citation, FinishReason, Message, Response, SafetyRating, Text, Thought, ToolCall, assistant, user
from dragoman.values.usage import Usage
from streaming import answered, calls_of, checked, prepared, provider_over, request_for, results_for, signatures, sse, streamed, texts_of

SIGNATURE = b64encode(bytes(range(256))).decode()


def chunk(*parts: dict[str, Any], finish: str = "", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {}) | more.pop("candidate", {})]} | more


STOP = chunk(finish="STOP")


def gemini(*chunks: dict[str, Any]) -> Response:
    return answered("gemini", sse(*chunks))


def test_a_chunk_of_metadata_alone_says_nothing_and_starts_the_answer() -> None:
    events = streamed(
        "gemini", sse({"usageMetadata": {"promptTokenCount": 3}, "modelVersion": "m", "responseId": "r"}, chunk({"text": "a"}), STOP)
    )
    assert events[0] == ResponseStarted("r", "m")
    assert checked(events).usage == Usage(3)


def test_names_that_come_late_are_taken() -> None:
    response = gemini(chunk({"text": "a"}), chunk(finish="STOP", responseId="r", modelVersion="m"))
    assert (response.response_id, response.model_version) == ("r", "m")


def test_an_object_of_an_unknown_kind_is_no_sign_of_progress() -> None:
    """Unknown event types are ignored and counted."""
    wire = provider_over("gemini", None)._wire
    decoder = wire.decoder(provider_over("gemini", None)._to("m"), set)
    assert decoder.feed("", b"{}") is None
    assert decoder.feed("", b'{"heartbeat": 1}') is None
    assert decoder.unknown_events == 2
    assert gemini({}, chunk({"text": "a"}), {"heartbeat": 1}, STOP).message == assistant("a")


def test_a_finish_before_the_last_chunk_does_not_end_the_answer() -> None:
    """PV12: finish event before the last delta."""
    response = gemini(chunk({"text": "a"}, finish="STOP"), chunk({"text": "b"}), chunk({"functionCall": {"name": "f", "args": {"x": 1}}}))
    assert response.message.text == "ab"
    assert [call.args for call in response.message.calls] == [{"x": 1}]
    assert response.finish is FinishReason.TOOL_CALLS


def test_empty_chunks_behind_the_end_change_nothing() -> None:
    trailing: list[dict[str, Any]] = [chunk({"text": ""}), chunk(), {"candidates": []}, {"candidates": [{"index": 0}]}, {}]
    assert gemini(chunk({"text": "a"}), STOP, *trailing).message == assistant("a")


def test_usage_may_come_at_the_end_alone_or_with_every_chunk() -> None:
    last = {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 15}
    late = sse(chunk({"text": "a"}), STOP, {"usageMetadata": last})
    growing = sse(chunk({"text": "a"}, usageMetadata={"promptTokenCount": 10}), chunk(finish="STOP", usageMetadata=last))
    usage = Usage(fresh_tokens=6, cache_read_tokens=4, output_tokens=5, thought_tokens=2)
    assert answered("gemini", late).usage == answered("gemini", growing).usage == usage
    assert [event.usage for event in streamed("gemini", growing) if isinstance(event, UsageUpdated)] == [Usage(10), usage]


def test_tokens_of_the_services_own_tools_are_input() -> None:
    usage = gemini(chunk({"text": "a"}, finish="STOP", usageMetadata={"promptTokenCount": 10, "toolUsePromptTokenCount": 7})).usage
    assert (usage.fresh_tokens, usage.input_tokens) == (17, 17)


def test_of_several_candidates_the_first_is_the_answer() -> None:
    both = chunk({"text": "a"}, finish="STOP")
    both["candidates"].append({"content": {"parts": [{"text": "other"}]}, "finishReason": "SAFETY", "index": 1})
    assert (gemini(both).message, gemini(both).finish) == (assistant("a"), FinishReason.STOP)


def test_grounding_is_kept_whole_and_never_sent() -> None:
    """Citation; the service's own record rides on it, and prepare() leaves it out."""
    grounding = {
        "webSearchQueries": ["a"],
        "searchEntryPoint": {"renderedContent": "<b>é</b>"},
        "groundingChunks": [{"web": {"uri": "https://example.org", "title": "t"}}],
        "groundingSupports": [{"segment": {"endIndex": 1, "text": "a"}, "groundingChunkIndices": [0]}],
    }
    message = gemini(chunk({"text": "a"}), chunk(finish="STOP", candidate={"groundingMetadata": grounding})).message
    (citation,) = [part for part in message.parts if isinstance(part, Citation)]
    assert citation.opaque is not None
    assert json.loads(citation.opaque.json) == grounding
    body = prepared("gemini", user("hello"), message, user("go on"))
    assert body["contents"][1] == {"role": "model", "parts": [{"text": "a"}]}
    assert "example.org" not in json.dumps(body)


def test_grounding_spread_over_chunks_is_gathered() -> None:
    first, second = {"webSearchQueries": ["a"]}, {"groundingChunks": [{"web": {"uri": "u"}}]}
    message = gemini(
        chunk({"text": "a"}, candidate={"groundingMetadata": first}),
        chunk(candidate={"groundingMetadata": {}}),
        chunk(finish="STOP", candidate={"groundingMetadata": second}),
    ).message
    (citation,) = [part for part in message.parts if isinstance(part, Citation)]
    assert citation.opaque is not None
    assert json.loads(citation.opaque.json) == first | second


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([{"text": "a", "thoughtSignature": SIGNATURE}], [("Text", "a")]),
        ([{"text": "a"}, {"text": "", "thoughtSignature": SIGNATURE}], [("Text", "a"), ("Thought", "")]),
        ([{"text": "a"}, {"thoughtSignature": SIGNATURE}], [("Text", "a"), ("Thought", "")]),
        ([{"text": "hm", "thought": True, "thoughtSignature": SIGNATURE}, {"text": "a"}], [("Thought", "hm"), ("Text", "a")]),
        ([{"text": "", "thought": True, "thoughtSignature": SIGNATURE}, {"text": "a"}], [("Thought", ""), ("Text", "a")]),
        ([{"text": "a"}, {"text": "b", "thoughtSignature": SIGNATURE}, {"text": "c"}], [("Text", "a"), ("Text", "b"), ("Text", "c")]),
        (
            [{"text": "hm", "thought": True}, {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SIGNATURE}],
            [("Thought", "hm")],
        ),
        (
            [{"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": SIGNATURE}, {"text": "a"}],
            [("Thought", ""), ("Text", "a")],
        ),
    ],
)
def test_a_signature_goes_back_on_the_part_it_came_with(parts: list[dict[str, Any]], shown: list[tuple[str, str]]) -> None:
    """Rule 19 of docs/reference/wire.md: signatures ride as siblings on the part, byte for byte, however parts are spread over chunks."""
    for chunks in ([chunk(*parts, finish="STOP")], [*map(chunk, parts), STOP]):
        message = gemini(*chunks).message
        assert texts_of(message) == shown
        body = prepared("gemini", user("hello"), message, *results_for(message) or [user("go on")])
        (signed,) = [part for part in body["contents"][1]["parts"] if "thoughtSignature" in part]
        (original,) = [part for part in parts if "thoughtSignature" in part]
        assert signed["thoughtSignature"] == SIGNATURE
        assert signed.keys() == original.keys()


def test_the_first_of_parallel_calls_carries_the_signature() -> None:
    """Rule 19 of docs/reference/wire.md: parallel calls stay in one content, the first carries it; ids that are empty become unique."""
    calls: list[dict[str, Any]] = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(3)]
    calls[0]["thoughtSignature"] = SIGNATURE
    message = gemini(chunk(*calls[:1]), chunk(*calls[1:], finish="STOP")).message
    assert len({call.id for call in message.calls}) == 3
    content = prepared("gemini", user("hello"), message, *results_for(message))["contents"][1]
    assert [part.get("thoughtSignature") for part in content["parts"]] == [SIGNATURE, None, None]


def test_a_signature_stays_with_the_deployment_that_made_it() -> None:
    message = gemini(chunk({"text": "a", "thoughtSignature": SIGNATURE}, finish="STOP")).message
    for protocol in ("openai_chat", "openai_responses", "anthropic"):
        assert SIGNATURE not in json.dumps(prepared(protocol, user("hello"), message, user("go on")))
    assert signatures(prepared("gemini", user("hello"), message, user("go on"), model="vertex/gemini-3.8-flash")) == []


@pytest.mark.parametrize("reason", ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "OTHER", "IMAGE_SAFETY", "SOMETHING_NEW"])
def test_a_blocked_prompt_is_an_answer_that_was_filtered(reason: str) -> None:
    """PV13: promptFeedback blocked; the reason is the service's own word."""
    response = gemini({"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 5}})
    assert (response.finish, response.raw_finish, response.message.parts) == (FinishReason.SAFETY, reason, ())
    assert reason in response.detail
    explained = gemini({"promptFeedback": {"blockReason": reason, "blockReasonMessage": "Too hot."}})
    assert explained.detail == "Too hot."


def test_ratings_are_kept_and_say_what_was_blocked() -> None:
    """They were dropped, so nobody learned which category was to blame."""
    hot = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "severity": "HARM_SEVERITY_HIGH", "blocked": True}
    cold = {"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}
    rated = (SafetyRating("HARM_CATEGORY_HARASSMENT", "HIGH", "HARM_SEVERITY_HIGH", True), SafetyRating(cold["category"], "NEGLIGIBLE"))
    prompt = gemini({"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [hot, cold]}})
    assert prompt.ratings == rated
    assert prompt.detail == "the prompt was blocked: SAFETY; HARM_CATEGORY_HARASSMENT: HIGH"
    cut = {"candidates": [{"content": {"parts": []}, "finishReason": "SAFETY", "safetyRatings": [hot, cold, "odd", {}]}]}
    answer = gemini(chunk({"text": "a"}), cut)
    assert answer.ratings == rated
    assert answer.detail == "HARM_CATEGORY_HARASSMENT: HIGH"
    fine = gemini({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "safetyRatings": [cold]}]})
    assert (fine.ratings, fine.detail) == (rated[1:], "")


def test_feedback_without_a_block_blocks_nothing() -> None:
    assert gemini({"promptFeedback": {"safetyRatings": []}}, chunk({"text": "a"}, finish="STOP")).finish is FinishReason.STOP


# The names of google-genai 3.1.0, and MODEL_ARMOR, which only Vertex has.
FINISH_REASONS = {
    "FINISH_REASON_UNSPECIFIED": FinishReason.OTHER,
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "SAFETY": FinishReason.SAFETY,
    "RECITATION": FinishReason.RECITATION,
    "LANGUAGE": FinishReason.OTHER,
    "OTHER": FinishReason.OTHER,
    "BLOCKLIST": FinishReason.SAFETY,
    "PROHIBITED_CONTENT": FinishReason.SAFETY,
    "SPII": FinishReason.SAFETY,
    "MALFORMED_FUNCTION_CALL": FinishReason.MALFORMED_TOOL_CALL,
    "IMAGE_SAFETY": FinishReason.SAFETY,
    "UNEXPECTED_TOOL_CALL": FinishReason.MALFORMED_TOOL_CALL,
    "TOO_MANY_TOOL_CALLS": FinishReason.OTHER,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.SAFETY,
    "NO_IMAGE": FinishReason.OTHER,
    "IMAGE_RECITATION": FinishReason.RECITATION,
    "IMAGE_OTHER": FinishReason.OTHER,
    "CONTINUATION": FinishReason.LENGTH,
    "MALFORMED_RESPONSE": FinishReason.MALFORMED_TOOL_CALL,
    "MODEL_ARMOR": FinishReason.SAFETY,
}


def test_every_finish_reason_of_the_service_has_a_meaning() -> None:
    assert FINISH == FINISH_REASONS


@pytest.mark.parametrize(("word", "reason"), [*FINISH_REASONS.items(), ("SOMETHING_NEW", FinishReason.OTHER)])
def test_every_finish_reason_and_unknown_ones(word: str, reason: FinishReason) -> None:
    """Finish reasons are a closed enum, the raw reason kept beside it."""
    response = gemini(chunk({"text": "a"}), chunk(finish=word, candidate={"finishMessage": "Because."}))
    assert (response.finish, response.raw_finish, response.detail, response.message) == (reason, word, "Because.", assistant("a"))


def test_an_unknown_finish_reason_does_not_let_a_call_run() -> None:
    response = gemini(chunk({"functionCall": {"name": "f", "args": {}}}, finish="SOMETHING_NEW"))
    assert (response.finish, len(response.message.calls)) == (FinishReason.OTHER, 1)


# --- an answer in several requests: Gemini 4 -----------------------------------------------------------------------------------------


def paused(text: str, token: str) -> Response:
    return gemini(chunk({"text": text}), chunk(finish="CONTINUATION", candidate={"continuationToken": token}))


def asked(*messages: Message) -> dict[str, Any]:
    return prepared("gemini", *messages, model="gemini/gemini-4-argon")


def paused_by_argon(text: str, token: str) -> Message:
    """A paused answer as gemini-4-argon gives it."""
    body = sse(chunk({"text": text}), chunk(finish="CONTINUATION", candidate={"continuationToken": token}))
    return answered("gemini", body, model="gemini/gemini-4-argon").message


def test_a_paused_answer_says_so() -> None:
    response = paused("Once", "dG9rZW4=")
    assert (response.finish, response.fault, response.raw_finish) == (FinishReason.OTHER, "paused", "CONTINUATION")
    assert response.message.text == "Once"


def test_a_paused_answer_is_continued_by_the_same_request_and_its_token() -> None:
    """The service wants the request again as it was, without the half answer, and the newest token."""
    first, second = paused_by_argon("Once", "b25l"), paused_by_argon(" upon", "dHdv")
    before = asked(user("A story"))
    assert asked(user("A story"), first) == before | {"continuationToken": "b25l"}
    assert asked(user("A story"), first, second) == before | {"continuationToken": "dHdv"}


def test_a_token_that_was_used_is_never_sent_again() -> None:
    first, rest = paused_by_argon("Once", "b25l"), gemini(chunk({"text": " upon"}), STOP).message
    body = asked(user("A story"), first, rest, user("Go on."))
    assert "continuationToken" not in json.dumps(body)
    assert [[part["text"] for part in content["parts"]] for content in body["contents"]] == [["A story"], ["Once", " upon"], ["Go on."]]


def test_a_token_stays_with_the_model_that_made_it() -> None:
    body = prepared("gemini", user("A story"), paused_by_argon("Once", "b25l"), user("Go on."), model="gemini/gemini-3.8-flash")
    assert "continuationToken" not in json.dumps(body)


def test_calls_of_a_paused_answer_are_answered_first() -> None:
    end = chunk({"functionCall": {"name": "f", "args": {}}}, finish="CONTINUATION", candidate={"continuationToken": "b25l"})
    response = answered("gemini", sse(end), model="gemini/gemini-4-argon")
    assert (response.finish, response.fault) == (FinishReason.TOOL_CALLS, "")
    body = asked(user("Go"), response.message, *results_for(response.message))
    assert "continuationToken" not in json.dumps(body)
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]


def test_a_token_alone_pauses_nothing() -> None:
    """A stream names a token now and then, in case it breaks."""
    response = gemini(chunk({"text": "a"}, candidate={"continuationToken": "b25l"}), STOP)
    assert (response.finish, response.fault, response.message) == (FinishReason.STOP, "", assistant("a"))


# --- parts ----------------------------------------------------------------------------------------------------------------------


def test_parts_of_unknown_kinds_are_kept_for_the_service_and_empty_ones_are_not() -> None:
    ran = {"executableCode": {"language": "PYTHON", "code": "print('é')"}}
    got = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "é\n"}}
    message = gemini(chunk({"text": "a"}, ran, got, {}, {"thought": True}, {"text": "b"}), STOP).message
    assert message.text == "ab"
    content = prepared("gemini", user("hello"), message, user("go on"))["contents"][1]
    assert content["parts"] == [{"text": "a"}, ran, got, {"text": "b"}]


def test_calls_without_arguments_and_with_odd_ones() -> None:
    """PV11: arguments are kept as they are."""
    odd: list[Any] = ["text", [1], 5, None, {"a": {"b": [True, 1, 1.0]}}]
    calls: list[dict[str, Any]] = [{"functionCall": {"name": "f"}}, *({"functionCall": {"name": "f", "args": each}} for each in odd)]
    response = gemini(chunk(*calls, finish="STOP"))
    assert [call.arguments for call in response.message.calls] == ["{}", '"text"', "[1]", "5", "{}", '{"a":{"b":[true,1,1.0]}}']


def test_ids_of_gemini_are_kept_and_made_unique_in_the_conversation() -> None:
    """PV10, and rule 23 of docs/reference/wire.md: empty, repeated, and re-used in a later turn."""
    calls = [{"functionCall": {"name": "f", "id": call_id}} for call_id in ("x", "", "x", "y")]
    earlier = assistant(ToolCall("x", "f"))
    body = sse(chunk(*calls, finish="STOP"))
    first = [call.id for call in answered("gemini", body).message.calls]
    assert (first[0], first[3], len(set(first))) == ("x", "y", 4)
    later = answered("gemini", body, user("hello"), earlier, *results_for(earlier))
    assert "x" not in {call.id for call in later.message.calls}
    assert len({call_id for call_id, _, _ in calls_of(later)}) == 4


def test_thoughts_with_headlines_are_told_with_subject_and_description() -> None:
    events = streamed("gemini", sse(chunk({"text": "**Looking**\n\nAt files.\n", "thought": True}), chunk({"text": "a"}, finish="STOP")))
    (told,) = [event for event in events if isinstance(event, ThoughtDelta)]
    assert (told.subject, told.description) == ("Looking", "At files.")
    assert checked(events).message == Message("assistant", (Thought("**Looking**\n\nAt files.\n"), Text("a")))


def test_an_error_inside_the_stream_is_treated_like_its_status() -> None:
    """Error events inside a 200 stream; as an object and, as Gemini sometimes has it, in an array."""
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    for event in (error, [error]):
        with pytest.raises(Overloaded, match="overloaded") as caught:
            streamed("gemini", sse(chunk({"text": "a"}), event))
        assert caught.value.provider == "gemini"


def test_a_stream_without_a_finish_reason_is_broken() -> None:
    """No terminal event = error, even when the body closes cleanly."""
    for body in (b"", sse(chunk({"text": "a"})), sse({"usageMetadata": {"promptTokenCount": 1}}), b"data: [DONE]\n\n"):
        with pytest.raises(StreamBroken, match="broke off"):
            streamed("gemini", body)


def test_the_same_request_is_served_after_a_broken_stream() -> None:
    with pytest.raises(StreamBroken):
        streamed("gemini", sse(chunk({"text": "a"})))
    assert request_for("gemini").messages == (user("hello"),)
    assert gemini(chunk({"text": "a"}, finish="STOP")).message == assistant("a")
