"""What holds of all four protocols: streamed or whole an answer is the same, and no stream ends well that did not say so."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script_steps import (
    BlockStep,
    CallStep,
    Cite,
    Finish,
    Garbage,
    Ping,
    RawStep,
    ReportStep,
    Say,
    ScriptedAnswer,
    Step,
    Think,
    answer,
)
from dragoman.values.errors import ServerError, StreamBroken
from dragoman.values.events import TextDelta, ToolCallReady
from dragoman.values.messages import FinishReason, Response, Text, ToolCall, assistant, tool_result, user
from dragoman.values.usage import Usage
from streaming import (
    PROTOCOLS,
    Replay,
    answered,
    calls_of,
    checked,
    collect,
    generated,
    prepared,
    provider_over,
    recorded,
    recorded_whole,
    request_for,
    streamed,
)

# --- streamed or whole ------------------------------------------------------------------------------------------------------

USAGE = ReportStep(Usage(fresh_tokens=10, cache_read_tokens=5, output_tokens=9, thought_tokens=3))
ANSWERS = {
    "text": answer(Say("Hello, naïve 文字 \U0001f642.", piece_chars=3), USAGE),
    "nothing but the end": answer(Finish("stop"), USAGE),
    "thinking": answer(Think("**Hm**\n\nLet me see.", "c2ln", piece_chars=4), Say("So."), USAGE),
    "thinking alone": answer(Think("Hm.", "c2ln"), USAGE),
    "calls": answer(Say("Both:"), CallStep("f", '{"a":"é"}', id="a", piece_chars=2), CallStep("g", "{}", id="b"), USAGE),
    "thinking and calls": answer(
        Think("Hm.", "c2ln"), CallStep("f", '{"a":[1,{"b":null}]}', id="a"), CallStep("f", '{"a":2.5}', id="b"), USAGE
    ),
    "repeated and empty ids": answer(CallStep("f", id="x"), CallStep("f", id="x"), CallStep("f", id=""), USAGE),
    "cited": answer(Say("As it says: water is wet."), Cite("https://example.org", "Water", "water is wet"), USAGE),
    "cut": answer(Say("Half a sen"), Finish("length"), USAGE),
    "filtered": answer(Say("Well"), Finish("safety"), USAGE),
    "refused": answer(Finish("refusal", "I will not."), USAGE),
    "blocked": answer(BlockStep("PROHIBITED_CONTENT"), USAGE),
    "an unknown end": answer(Say("a"), Finish("something_new"), USAGE),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ANSWERS)
def test_streamed_and_whole_are_the_same_answer(protocol: str, name: str) -> None:
    """`generate` and `stream` of one answer give equal responses, opaque payloads and all."""
    said = ANSWERS[name]
    streaming = answered(protocol, recorded(protocol, said))
    whole = generated(protocol, recorded_whole(protocol, said))
    if protocol == "gemini":  # a signature that is streamed in a part of its own stands on the text where the text is whole
        streaming, whole = as_gemini_has_it(streaming), as_gemini_has_it(whole)
    assert comparable(whole) == comparable(streaming)


def as_gemini_has_it(response: Response) -> Response:
    """The answer as a request would carry it back, its texts joined."""
    parts = prepared("gemini", user("hello"), response.message, user("go on"))["contents"][1:-1]
    joined: dict[str, str] = {}
    for part in [part for content in parts for part in content["parts"]]:
        joined |= {key: joined.get(key, "") + json.dumps(value).strip('"') for key, value in part.items()}
    message = assistant(*(Text(f"{key}: {value}") for key, value in sorted(joined.items())))
    return msgspec.structs.replace(response, message=message)


STEPS = st.lists(
    st.one_of(
        st.builds(Say, st.text("ab é\U0001f642\u2028", min_size=1, max_size=8), st.integers(0, 3)),
        st.builds(Think, st.text("hm é", min_size=1, max_size=6), st.sampled_from(["c2ln", "c2lnMg=="]), st.integers(0, 3)),
        st.builds(
            CallStep,
            st.sampled_from("fg"),
            st.sampled_from(["{}", '{"a":1}', '{"a":"é"}']),
            st.sampled_from(["a", "b", "", None]),
            st.integers(0, 3),
        ),
    ),
    max_size=6,
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(steps=STEPS)
def test_any_answer_is_the_same_streamed_and_whole(protocol: str, steps: list[Step]) -> None:
    said = ScriptedAnswer((*steps, USAGE))
    streaming = answered(protocol, recorded(protocol, said))
    whole = generated(protocol, recorded_whole(protocol, said))
    if protocol == "openai_chat":  # whole, it cannot say in which order text, thinking and calls came
        assert (streaming.message.text, calls_of(streaming)) == (whole.message.text, calls_of(whole))
    elif protocol == "gemini":  # whole, adjacent pieces are one part
        assert (streaming.message.text, calls_of(streaming), streaming.finish) == (whole.message.text, calls_of(whole), whole.finish)
    else:
        assert comparable(whole) == comparable(streaming)


def comparable(response: Response) -> object:
    """Everything but the ids that a service makes up per request."""
    return (response.message, response.finish, response.raw_finish, response.usage, response.detail, bool(response.response_id))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["text", "thinking and calls", "cited"])
def test_a_server_that_answers_a_stream_with_one_document_is_understood(protocol: str, name: str) -> None:
    """Some compatible servers ignore `stream`: the answer is told as events all the same."""
    provider = provider_over(protocol, Replay([recorded_whole(protocol, ANSWERS[name])], "application/json; charset=utf-8"))
    events = asyncio.run(collect(provider, request_for(protocol)))
    assert comparable(events[-1].response) == comparable(answered(protocol, recorded(protocol, ANSWERS[name])))  # type: ignore[union-attr]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == events[-1].response.message.text  # type: ignore[union-attr]
    assert tuple(event.call for event in events if isinstance(event, ToolCallReady)) == events[-1].response.message.calls  # type: ignore[union-attr]


# --- how a stream may not end -----------------------------------------------------------------------------------------------

HALF = {
    "nothing": answer(),
    "no end": answer("Half", Finish("")),
    "calls and no end": answer(CallStep("f", '{"a":1}'), Finish("")),
    "invalid JSON": answer("a", Garbage(), "b"),
    "invalid UTF-8": answer("a", RawStep(b"data: \xff\xfe\n\n"), "b"),
    "JSON of another shape": answer("a", RawStep(b"data: [[1]]\n\n"), "b"),
    "a bare number": answer("a", RawStep(b"data: 5\n\n"), "b"),
    "empty data": answer("a", RawStep(b"data:\n\n"), "b"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", HALF)
def test_a_stream_that_is_garbled_or_has_no_end_is_broken(protocol: str, name: str) -> None:
    """PV06: an invalid event is a stream error, never skipped. No terminal event = error, even when the body closes cleanly."""
    # An array is how Gemini wraps errors: one that holds none is a failure of the service all the same.
    kind = ServerError if (protocol, name) == ("gemini", "JSON of another shape") else StreamBroken
    with pytest.raises(kind) as caught:
        streamed(protocol, recorded(protocol, HALF[name]))
    assert caught.value.retryable
    assert caught.value.provider


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pings_comments_and_unknown_events_say_nothing(protocol: str) -> None:
    """PV06: unknown event types are ignored; so are comments and pings."""
    noise = (Ping(2), RawStep(b'event: news\ndata: {"type": "news", "text": "x"}\n\n'), RawStep(b": comment\n\n"))
    noisy = answer(*noise, "a", *noise, CallStep("f", '{"a":1}', id="c"), *noise)
    assert answered(protocol, recorded(protocol, noisy)) == answered(
        protocol, recorded(protocol, answer("a", CallStep("f", '{"a":1}', id="c")))
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_follows_the_end_does_not_count(protocol: str) -> None:
    """However it arrives: in one chunk with the end or in another."""
    body = recorded(protocol, answer("a"))
    again = b'event: late\ndata: {"type": "late"}\n\n'
    assert streamed(protocol, body + again) == streamed(protocol, [body, again]) == streamed(protocol, body)
    if protocol != "gemini":  # which has no terminal event: the end of the body is the end
        garbage = b"data: {broken\n\n"
        assert streamed(protocol, body + garbage) == streamed(protocol, [body, garbage]) == streamed(protocol, body)


# --- ids --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ids_are_unique_in_the_answer_and_in_the_conversation(protocol: str) -> None:
    """PV10, and rule 23 of docs/reference/wire.md: duplicate, empty, re-used from an earlier turn; each call keeps its own arguments."""
    calls = [CallStep("f", f'{{"n":{n}}}', id=call_id) for n, call_id in enumerate(["x", "x", "", "", "x-2", "old"])]
    earlier = ToolCall("old", "f")
    history = (user("hello"), assistant(earlier), user(tool_result(earlier, "done")))
    body = recorded(protocol, answer(*calls))
    response = answered(protocol, body, *history)
    ids = [call.id for call in response.message.calls]
    assert len({*ids, "old"}) == 7
    assert ids[0] == "x"
    assert [call.args for call in response.message.calls] == [{"n": n} for n in range(6)]
    assert calls_of(answered(protocol, body, *history)) == calls_of(response), "the choice depends on what is taken and on nothing else"
    whole = generated(protocol, recorded_whole(protocol, answer(*calls)), *history)
    assert calls_of(whole) == calls_of(response)


# --- finish -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_a_call_with_incomplete_arguments_is_a_call_as_it_came(protocol: str, finish: str) -> None:
    """PV09: reported as 'stop' with incomplete JSON. What is wrong with it is that call's error, not the answer's."""
    response = answered(
        protocol, recorded(protocol, answer(CallStep("write_file", '{"path": "a", "content": "half', id="c"), Finish(finish)))
    )
    assert response.finish is FinishReason.TOOL_CALLS
    assert response.message.calls == (ToolCall("c", "write_file", '{"path": "a", "content": "half'),)
    assert response.message.calls[0].args is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_service_that_says_stop_for_calls_means_tool_calls(protocol: str) -> None:
    assert answered(protocol, recorded(protocol, answer(CallStep("f"), Finish("stop")))).finish is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("finish", ["length", "safety", "recitation", "refusal", "something_new"])
def test_no_other_end_turns_into_tool_calls(protocol: str, finish: str) -> None:
    """PV09, PV13: an answer that was cut or filtered does not run the calls it holds."""
    events = streamed(protocol, recorded(protocol, answer("a", CallStep("f", '{"a":1}'), Finish(finish, "Because."))))
    response = checked(events)
    assert response.finish not in (FinishReason.TOOL_CALLS, FinishReason.STOP)
    assert len(response.message.calls) == 1
