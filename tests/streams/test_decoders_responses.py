"""OpenAI Responses, event by event: items that are added, grow and are done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script_steps import CallQuirk, CallStep, answer
from dragoman.values.errors import ContextOverflow, Overloaded, QuotaExhausted, RateLimited, ServerError, StreamBroken
from dragoman.values.events import ResponseStarted, TextDelta
from dragoman.values.messages import Citation, FinishReason, Response, Thought, assistant, user
from dragoman.values.usage import Usage
from streaming import answered, calls_of, checked, generated, pieces_of, prepared, recorded, results_for, streamed, texts_of, typed

Event = dict[str, Any]
CREATED: Event = {"type": "response.created", "response": {"id": "resp", "model": "m", "status": "in_progress", "output": []}}
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
}


def completed(*output: Event, status: str = "completed", **more: Any) -> Event:
    response = {"id": "resp", "model": "m", "status": status, "output": list(output), "usage": USAGE} | more
    return {"type": f"response.{status}", "response": response}


def added(index: int, item: Event) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: Event) -> Event:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def message(*content: Event, **more: Any) -> Event:
    return {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": list(content)} | more


def output_text(text: str, *annotations: Event) -> Event:
    return {"type": "output_text", "text": text, "annotations": list(annotations)}


def text(index: int, said: str, *pieces: str, **more: Any) -> list[Event]:
    """A message item with its deltas."""
    deltas: list[Event] = [{"type": "response.output_text.delta", "output_index": index, "delta": piece} for piece in pieces or (said,)]
    return [added(index, message()), *deltas, done(index, message(output_text(said), **more))]


def call(index: int, call_id: str, name: str = "f", arguments: str = "{}") -> Event:
    return {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"}


def piece(index: int, said: str) -> Event:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "item_id": f"fc_{index}", "delta": said}


def responses(*events: Event, final: Event | None = None) -> Response:
    return answered("openai_responses", typed(CREATED, *events, final or completed()))


def sent_back(response: Response) -> list[Event]:
    """The items of the answer as the next request carries them."""
    said = response.message
    return prepared("openai_responses", user("hello"), said, *results_for(said) or [user("go on")])["input"][
        1 : -1 if not said.calls else None
    ]


def without_id(item: Event) -> Event:
    """Reasoning as it goes back: nothing is stored, so its id names nothing."""
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def whole(*output: Event) -> Response:
    return generated("openai_responses", json.dumps(completed(*output)["response"]).encode())


# --- items ------------------------------------------------------------------------------------------------------------------


def test_text_and_usage() -> None:
    response = responses(*text(0, "Hello.", "Hel", "lo."))
    assert (response.message, response.finish, response.raw_finish) == (assistant("Hello."), FinishReason.STOP, "completed")
    assert response.usage == Usage(6, 4, output_tokens=5, thought_tokens=2)


def test_reasoning_with_several_summaries() -> None:
    """Summary parts are parted by a blank line, streamed or whole, and the item goes back whole before what it led to. (16)"""
    item = {
        "type": "reasoning",
        "id": "rs",
        "encrypted_content": "ZW5j",
        "summary": [{"type": "summary_text", "text": each} for each in ("one", "two")],
    }
    parts: list[Event] = []
    for number, said in enumerate(("one", "two")):
        at = {"output_index": 0, "summary_index": number, "item_id": "rs"}
        parts.append({"type": "response.reasoning_summary_part.added", **at})
        parts += [{"type": "response.reasoning_summary_text.delta", **at, "delta": letter} for letter in said]
        parts.append({"type": "response.reasoning_summary_text.done", **at, "text": said})
    response = responses(added(0, item | {"summary": []}), *parts, done(0, item), *text(1, "a"))
    assert texts_of(response.message) == [("Thought", "one\n\ntwo"), ("Text", "a")]
    assert whole(item, message(output_text("a"))).message == response.message
    assert sent_back(response)[0] == without_id(item)
    other = prepared("openai_responses", user("hello"), response.message, user("go on"), model="responses/gpt-5.5")
    assert "ZW5j" not in json.dumps(other), "(17) encrypted content is dropped on a model switch"


def test_reasoning_of_open_models_comes_as_text() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    delta = {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"}
    response = responses(added(0, item), delta, done(0, item), *text(1, "a"))
    assert texts_of(response.message) == [("Thought", "hm"), ("Text", "a")]
    assert whole(item, message(output_text("a"))).message == response.message
    assert sent_back(response)[0] == without_id(item), "what it thought in plain text, it gets back in plain text"


def test_reasoning_without_a_summary_is_kept_for_the_service() -> None:
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"}
    response = responses(added(0, item), done(0, item), added(1, call(1, "c")), done(1, call(1, "c")))
    assert isinstance(response.message.parts[0], Thought)
    assert [each["type"] for each in sent_back(response)][:2] == ["reasoning", "function_call"]


def test_items_of_the_services_own_are_kept_and_sent_back() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "é"}}
    busy: list[Event] = [
        {"type": f"response.web_search_call.{state}", "output_index": 0, "item_id": "ws"}
        for state in ("in_progress", "searching", "completed")
    ]
    response = responses(added(0, search | {"status": "in_progress"}), *busy, done(0, search), *text(1, "a"))
    assert texts_of(response.message) == [("Thought", ""), ("Text", "a")]
    assert sent_back(response)[0] == search
    assert whole(search, message(output_text("a"))).message == response.message


def test_a_search_that_ends_an_answer_is_sent_back_too() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "searching", "action": {"type": "search", "query": "q"}}
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"}
    response = responses(added(0, item), done(0, item), added(1, search), done(1, search), final=completed(status="incomplete"))
    assert sent_back(response) == [without_id(item), search]


@pytest.mark.parametrize("kind", ["custom_tool_call", "shell_call", "computer_call", "a_call_of_tomorrow"])
def test_a_call_that_nobody_here_can_answer_is_left_out(kind: str) -> None:
    """The service refuses it without its output. Where that stands beside it, both go back."""
    asked = {"type": kind, "id": "x_1", "call_id": "call_9", "status": "completed", "input": "1"}
    given = {"type": f"{kind}_output", "id": "x_2", "call_id": "call_9", "output": "2"}
    approval = {"type": "mcp_approval_request", "id": "mcpr", "name": "f", "arguments": "{}", "server_label": "s"}
    item = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"}
    alone = whole(item, asked, approval)
    assert sent_back(alone) == []
    assert sent_back(whole(item, asked, given, message(output_text("a"))))[:3] == [without_id(item), asked, given]


def test_what_the_deltas_left_out_comes_with_the_finished_message() -> None:
    response = responses(*text(0, "Hello, world.", "Hello"))
    assert texts_of(response.message) == [("Text", "Hello, world.")]


def test_a_message_that_ends_after_another_item_is_not_said_twice() -> None:
    """Two items may be written at once."""
    first, *rest, last = text(0, "Hello.")
    events = [first, *rest, added(1, call(1, "c")), done(1, call(1, "c")), last]
    response = responses(*events)
    assert (texts_of(response.message), len(response.message.calls)) == ([("Text", "Hello.")], 1)


@pytest.mark.parametrize(("status", "reason"), [("complete", FinishReason.STOP), ("incomplete", FinishReason.LENGTH)])
def test_an_answer_without_a_reason_ends_by_its_status(status: str, reason: FinishReason) -> None:
    """Some gateways write `complete`, and some do not say why an answer is incomplete: it was cut, whatever the reason."""
    body = completed(message(output_text("a")))["response"] | {"status": status, "incomplete_details": None}
    assert generated("openai_responses", json.dumps(body).encode()).finish is reason


@pytest.mark.parametrize("end", ["[DONE]", "[DONE] ", " [DONE]"])
def test_the_last_line_of_a_gateway_may_have_a_blank(end: str) -> None:
    body = typed(CREATED, *text(0, "a"), completed())
    before = typed(CREATED, *text(0, "a"))
    for stream in (body + f"data: {end}\n\n".encode(), before + f"data: {end}\n\n".encode() + typed(completed())):
        assert texts_of(answered("openai_responses", stream).message) == [("Text", "a")]


def test_annotations_become_citations() -> None:
    web = {"type": "url_citation", "url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}
    file = {"type": "file_citation", "filename": "a.pdf", "file_id": "f", "index": 0}
    said = message(output_text("a", web, file))
    note = {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": web}
    events = [added(0, message()), {"type": "response.output_text.delta", "output_index": 0, "delta": "a"}, note, done(0, said)]
    response = responses(*events)
    citations = [part for part in response.message.parts if isinstance(part, Citation)]
    assert [(each.uri, each.title) for each in citations] == [("https://example.org", "t"), ("", "a.pdf")]
    assert whole(said).message == response.message
    assert "example.org" not in json.dumps(sent_back(response))


def test_the_phase_of_a_message_goes_back_with_it() -> None:
    response = responses(*text(0, "Looking.", phase="commentary"), *text(1, "Done.", phase="final_answer"))
    said = [(each["content"][0]["text"], each["phase"]) for each in sent_back(response)]
    assert said == [("Looking.", "commentary"), ("Done.", "final_answer")]
    assert whole(message(output_text("Looking."), phase="commentary")).message.parts == response.message.parts[:1]


def test_an_empty_message_with_a_phase_is_nothing() -> None:
    """Cut right at its start: there is no text for the phase to ride on."""
    response = responses(added(0, message()), done(0, message(phase="final_answer")), final=completed(status="incomplete"))
    assert response.message.parts == ()


def test_several_contents_of_one_message_are_one_text() -> None:
    deltas: list[Event] = [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": n, "delta": each} for n, each in enumerate("ab")
    ]
    both = message(output_text("a"), output_text("b"))
    assert responses(added(0, message()), *deltas, done(0, both)).message == whole(both).message == assistant("ab")


# --- what may be missing ----------------------------------------------------------------------------------------------------


def test_done_events_alone_tell_everything() -> None:
    """Servers that stream no deltas."""
    reasoning = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "ZW5j"}
    items = [reasoning, message(output_text("Hello.")), call(2, "c", "f", '{"a":1}')]
    events = streamed("openai_responses", typed(CREATED, *(done(n, item) for n, item in enumerate(items)), completed()))
    response = checked(events)
    assert response.message == whole(*items).message
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello."]


def test_the_end_alone_tells_everything() -> None:
    """Servers that stream nothing but the whole response."""
    items = [message(output_text("Hello.")), call(1, "c", "f", '{"a":1}')]
    assert responses(final=completed(*items)).message == whole(*items).message


def test_a_stream_may_begin_anywhere() -> None:
    """`response.created` left out: the names come with what follows."""
    for first in ([], [{"type": "response.in_progress", "response": CREATED["response"]}]):
        events = streamed("openai_responses", typed(*first, completed(message(output_text("a")))))
        assert ResponseStarted("resp", "m") in events
        assert events[-1].response.message == assistant("a")  # type: ignore[union-attr]


def test_output_index_missing_everywhere() -> None:
    """Text is told once, and calls are told apart by the ids of their items."""
    both = [
        added(0, call(0, "a", arguments="")),
        added(1, call(1, "b", arguments="")),
        piece(0, '{"a":'),
        piece(1, '{"b":'),
        piece(0, "1}"),
        piece(1, "2}"),
    ]
    both += [done(0, call(0, "a", arguments='{"a":1}')), done(1, call(1, "b", arguments='{"b":2}'))]
    events = [{key: value for key, value in event.items() if key != "output_index"} for event in (*text(0, "Hello.", "Hel", "lo."), *both)]
    told = streamed("openai_responses", typed(CREATED, *events, completed()))
    response = checked(told)
    assert (response.message.text, calls_of(response)) == ("Hello.", [("a", "f", '{"a":1}'), ("b", "f", '{"b":2}')])
    assert pieces_of(told) == {"a": '{"a":1}', "b": '{"b":2}'}


def test_ids_of_items_that_change_from_event_to_event_do_not_matter() -> None:
    """Some gateways give an item another id in every event: the index is what counts."""
    events = [
        added(0, call(0, "a", arguments="") | {"id": "x1"}),
        piece(0, '{"a":1}') | {"item_id": "x2"},
        done(0, call(0, "a", arguments='{"a":1}') | {"id": "x3"}),
    ]
    assert calls_of(responses(*events)) == [("a", "f", '{"a":1}')]


def test_arguments_missing_from_the_done_event_are_the_pieces() -> None:
    bare = {key: value for key, value in call(0, "a").items() if key not in ("arguments", "name")}
    assert calls_of(responses(added(0, call(0, "a", arguments="")), piece(0, '{"a":'), piece(0, "1}"), done(0, bare))) == [
        ("a", "f", '{"a":1}')
    ]


# --- calls ------------------------------------------------------------------------------------------------------------------


def test_calls_interleaved_by_output_index() -> None:
    """PV12."""
    events = [
        added(0, call(0, "a", "f", "")),
        added(1, call(1, "b", "g", "")),
        piece(1, '{"b":'),
        piece(0, '{"a":'),
        piece(1, "2}"),
        piece(0, "1}"),
    ]
    events += [done(1, call(1, "b", "g", '{"b":2}')), done(0, call(0, "a", "f", '{"a":1}'))]
    told = streamed("openai_responses", typed(CREATED, *events, completed()))
    response = checked(told)
    assert sorted(calls_of(response)) == [("a", "f", '{"a":1}'), ("b", "g", '{"b":2}')]
    assert pieces_of(told) == {"a": '{"a":1}', "b": '{"b":2}'}
    assert response.finish is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    "events",
    [
        [added(0, call(0, "a", arguments="")), added(0, call(0, "b", arguments="")), piece(0, "{}")],
        [piece(0, "{}")],
        [added(0, call(0, "a")), done(0, call(0, "a")), piece(0, "{}")],
        [added(0, call(0, "a", arguments="")), piece(0, '{"a":')],
    ],
    ids=["two under one index", "never added", "behind its end", "never done"],
)
def test_calls_that_cannot_be_rebuilt_break_the_stream(events: list[Event]) -> None:
    """PV12: rebuilt exactly or a stream error."""
    with pytest.raises(StreamBroken):
        responses(*events)


@given(
    quirks=st.sets(st.sampled_from(CallQuirk)),
    ids=st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=3),
    size=st.integers(0, 9),
)
def test_any_layout_is_rebuilt_exactly_or_breaks_the_stream(quirks: set[CallQuirk], ids: list[str], size: int) -> None:
    said = [CallStep(f"f{n}", f'{{"n":{{"a":{n}}}}}', id=call_id, piece_chars=size) for n, call_id in enumerate(ids)]
    try:
        events = streamed("openai_responses", recorded("openai_responses", answer(*said, calls=tuple(quirks))))
    except StreamBroken:
        assert CallQuirk.LATE_DELTA in quirks or quirks >= {CallQuirk.INTERLEAVED, CallQuirk.SAME_INDEX}
        return
    calls = checked(events).message.calls
    assert [(each.name, each.arguments) for each in calls] == [(each.name, each.arguments) for each in said]
    assert pieces_of(events) == {each.id: each.arguments for each in calls}


# --- how it ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("why", "reason"),
    [("max_output_tokens", FinishReason.LENGTH), ("content_filter", FinishReason.SAFETY), ("something_new", FinishReason.OTHER)],
)
def test_an_incomplete_response_says_why(why: str, reason: FinishReason) -> None:
    final = completed(status="incomplete", incomplete_details={"reason": why})
    response = responses(*text(0, "Half"), final=final)
    assert (response.finish, response.raw_finish, response.message) == (reason, why, assistant("Half"))


def test_a_call_cut_by_the_limit_is_kept_as_it_is() -> None:
    """PV09: length in the middle of arguments, whether or not the service still closes the item. It is not retried as a broken stream."""
    final = completed(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    begun = [added(0, call(0, "a", "write_file", "")), piece(0, '{"path": "a", "con')]
    for events in (begun, [*begun, done(0, call(0, "a", "write_file", '{"path": "a", "con'))]):
        response = responses(*events, final=final)
        assert (response.finish, calls_of(response)) == (FinishReason.LENGTH, [("a", "write_file", '{"path": "a", "con')])
        assert response.message.calls[0].args is None


def test_a_refusal_is_shown_and_named() -> None:
    """PV13: refusal content, streamed or whole."""
    refused = message({"type": "refusal", "refusal": "I will not."})
    deltas: list[Event] = [{"type": "response.refusal.delta", "output_index": 0, "delta": each} for each in ("I will ", "not.")]
    response = responses(added(0, message()), *deltas, done(0, refused))
    assert (response.finish, response.detail, response.message) == (FinishReason.REFUSAL, "I will not.", assistant("I will not."))
    assert whole(refused) == response


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        ("server_error", "It failed.", ServerError),
        ("rate_limit_exceeded", "Slow down.", RateLimited),
        ("server_is_overloaded", "Busy.", Overloaded),
        ("insufficient_quota", "You exceeded your current quota.", QuotaExhausted),
        ("context_length_exceeded", "Your input exceeds the context window of this model.", ContextOverflow),
    ],
)
def test_a_failure_is_treated_like_its_status(code: str, said: str, kind: type[Exception]) -> None:
    """`response.failed` and `error` events, and a whole response that failed."""
    failed = completed(status="failed", error={"code": code, "message": said})
    shapes: list[Event] = [failed, {"type": "error", "code": code, "message": said, "param": None}]
    shapes.append({"type": "error", "error": {"type": "x", "code": code, "message": said}})
    for event in shapes:
        with pytest.raises(kind, match=said) as caught:
            streamed("openai_responses", typed(CREATED, *text(0, "a"), event))
        assert type(caught.value) is kind
    with pytest.raises(kind):
        generated("openai_responses", json.dumps(failed["response"]).encode())


def test_no_end_is_no_answer() -> None:
    """No terminal event = error."""
    with pytest.raises(StreamBroken, match="broke off"):
        streamed("openai_responses", typed(CREATED, *text(0, "a")))


def test_unknown_events_are_nothing() -> None:
    noise: list[Event] = [{"type": "keepalive", "sequence_number": 3}, {"type": "response.something.new"}, {"type": "codex.rate_limits"}]
    assert responses(*noise, *text(0, "a"), *noise).message == assistant("a")
