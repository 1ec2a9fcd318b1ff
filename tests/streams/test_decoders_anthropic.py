"""Anthropic Messages, event by event: blocks that open, grow and close, and everything that goes back whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script_steps import CallQuirk, CallStep, answer
from dragoman.values.errors import BadRequest, ContextOverflow, Overloaded, RateLimited, ServerError, StreamBroken
from dragoman.values.events import CitationAdded, ToolCallDelta, UsageUpdated
from dragoman.values.messages import Citation, FinishReason, Response, Text, Thought, assistant, user
from dragoman.values.usage import Usage
from streaming import answered, calls_of, checked, generated, pieces_of, prepared, recorded, results_for, streamed, texts_of, typed

Event = dict[str, Any]
START: Event = {
    "type": "message_start",
    "message": {"id": "msg", "model": "m", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}},
}
STOP: Event = {"type": "message_stop"}


def end(stop: str = "end_turn", usage: Event | None = None, **more: Any) -> list[Event]:
    return [{"type": "message_delta", "delta": {"stop_reason": stop, **more}, "usage": usage or {"output_tokens": 5}}, STOP]


def block(index: int, opening: Event, *deltas: Event) -> list[Event]:
    grown: list[Event] = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        *grown,
        {"type": "content_block_stop", "index": index},
    ]


def text(said: str) -> Event:
    return {"type": "text_delta", "text": said}


def thinking(said: str) -> Event:
    return {"type": "thinking_delta", "thinking": said}


def signature(said: str) -> Event:
    return {"type": "signature_delta", "signature": said}


def arguments(said: str) -> Event:
    return {"type": "input_json_delta", "partial_json": said}


TEXT: Event = {"type": "text", "text": ""}
THINKING: Event = {"type": "thinking", "thinking": "", "signature": ""}


def tool(call_id: str, name: str = "f") -> Event:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def claude(*events: Event, stop: str = "end_turn") -> Response:
    return answered("anthropic", typed(START, *events, *end(stop)))


def sent_back(response: Response) -> list[Event]:
    """The blocks of the answer as the next request carries them."""
    message = response.message
    body = prepared("anthropic", user("hello"), message, *results_for(message) or [user("go on")])
    return body["messages"][1]["content"]


def kept(response: Response) -> list[Event]:
    """The blocks that are kept for the service."""
    return [json.loads(part.opaque.json) for part in response.message.parts if isinstance(part, Thought) and part.opaque]


def whole(*blocks: Event, stop: str = "end_turn") -> Response:
    body = {"id": "msg", "model": "m", "content": list(blocks), "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 5}}
    return generated("anthropic", json.dumps(body).encode())


# --- blocks -----------------------------------------------------------------------------------------------------------------


def test_pings_and_unknown_events_are_nothing() -> None:
    """Pings ignored; unknown event types ignored, known ones in any block read on."""
    noise: list[Event] = [{"type": "ping"}, {"type": "something_new", "index": 0}]
    one = block(0, TEXT, text("a"), {"type": "new_delta", "x": 1}, text("b"))
    events = [part for event in one for part in (*noise, event)]
    assert claude(*noise, *events, *noise).message == assistant("ab")


def test_blocks_of_unknown_kinds_are_kept_where_they_stood() -> None:
    strange = {"type": "something_new", "payload": {"a": [1, "é"]}}
    response = claude(*block(0, TEXT, text("a")), *block(1, strange), *block(2, TEXT, text("b")))
    assert texts_of(response.message) == [("Text", "a"), ("Thought", ""), ("Text", "b")]
    assert kept(response) == [strange]
    assert whole({"type": "text", "text": "a"}, strange, {"type": "text", "text": "b"}).message == response.message


def test_thinking_goes_back_byte_for_byte_and_first() -> None:
    """Rule 6 of docs/reference/wire.md: thinking and redacted_thinking of the latest turn byte-identical, first in the turn."""
    response = claude(
        *block(0, THINKING, thinking("Let me "), thinking("see\u2028é"), signature("c2ln"), signature("bmVk")),
        *block(1, {"type": "redacted_thinking", "data": "ZW5j"}),
        *block(2, TEXT, text("a")),
        *block(3, tool("t1"), arguments('{"a": 1}')),
        stop="tool_use",
    )
    assert texts_of(response.message) == [("Thought", "Let me see\u2028é"), ("Thought", ""), ("Text", "a")]
    assert sent_back(response)[:3] == [
        {"type": "thinking", "thinking": "Let me see\u2028é", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        {"type": "text", "text": "a"},
    ]


def test_empty_thinking_with_a_signature_is_kept() -> None:
    """`display: omitted`: the thinking is not shown, its signature is all there is."""
    response = claude(*block(0, THINKING, signature("c2ln")), *block(1, TEXT, text("a")))
    assert texts_of(response.message) == [("Thought", ""), ("Text", "a")]
    assert sent_back(response)[0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}
    assert whole({"type": "thinking", "thinking": "", "signature": "c2ln"}, {"type": "text", "text": "a"}).message == response.message


def test_thinking_without_a_signature_is_shown_and_not_sent() -> None:
    response = claude(*block(0, THINKING, thinking("hm")), *block(1, TEXT, text("a")))
    assert texts_of(response.message) == [("Thought", "hm"), ("Text", "a")]
    assert sent_back(response) == [{"type": "text", "text": "a"}]


def test_interleaved_thinking_keeps_its_order() -> None:
    response = claude(
        *block(0, THINKING, thinking("one"), signature("MQ==")),
        *block(1, TEXT, text("a")),
        *block(2, THINKING, thinking("two"), signature("Mg==")),
        *block(3, tool("t1"), arguments("{}")),
        stop="tool_use",
    )
    assert texts_of(response.message) == [("Thought", "one"), ("Text", "a"), ("Thought", "two")]
    assert kept(response) == [
        {"type": "thinking", "thinking": said, "signature": signed} for said, signed in (("one", "MQ=="), ("two", "Mg=="))
    ]


def test_server_tools_and_their_results_are_kept_and_sent_back() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "ZW5j", "page_age": None}
        ],
    }
    response = claude(
        *block(0, TEXT, text("I look.")),
        *block(1, use, arguments(""), arguments('{"query": '), arguments('"é"}')),
        *block(2, found),
        *block(3, TEXT, text("Found.")),
    )
    assert response.message.calls == ()
    assert sent_back(response) == [
        {"type": "text", "text": "I look."},
        use | {"input": {"query": "é"}},
        found,
        {"type": "text", "text": "Found."},
    ]


def test_a_server_tool_without_input_and_one_of_another_kind() -> None:
    """The first piece of input is always empty, and for some tools it is the only one; MCP tools have input too."""
    search = {"type": "server_tool_use", "id": "s1", "name": "tool_search", "input": {}}
    remote = {"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "x", "input": {}}
    response = claude(*block(0, search, arguments("")), *block(1, remote, arguments(""), arguments('{"a":1}')), *block(2, TEXT, text("a")))
    assert kept(response) == [search, remote | {"input": {"a": 1}}]


def test_citations_stand_behind_their_text_and_ride_on_it() -> None:
    cited = {
        "type": "web_search_result_location",
        "url": "https://example.org",
        "title": "t",
        "cited_text": "wet",
        "encrypted_index": "aQ==",
    }
    local = {"type": "char_location", "document_title": "Doc", "cited_text": "dry", "document_index": 0}
    deltas: list[Event] = [
        text("Water is "),
        {"type": "citations_delta", "citation": cited},
        text("wet."),
        {"type": "citations_delta", "citation": local},
    ]
    events = streamed("anthropic", typed(START, *block(0, TEXT, *deltas), *block(1, TEXT, text(" Yes.")), *end()))
    response = checked(events)
    citations = [part for part in response.message.parts if isinstance(part, Citation)]
    assert [(each.uri, each.title, each.cited_text) for each in citations] == [("https://example.org", "t", "wet"), ("", "Doc", "dry")]
    assert len([event for event in events if isinstance(event, CitationAdded)]) == 2
    assert response.message.text == "Water is wet. Yes."
    assert sent_back(response) == [
        {"type": "text", "text": "Water is wet.", "citations": [cited, local]},
        {"type": "text", "text": " Yes."},
    ]
    assert (
        whole({"type": "text", "text": "Water is wet.", "citations": [cited, local]}, {"type": "text", "text": " Yes."}).message
        == response.message
    )


def test_a_block_that_opens_with_its_content() -> None:
    opened: list[Event] = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
    response = claude(*block(0, opened[1]), *block(1, opened[0], text("b")), *block(2, tool("t") | {"input": {"a": 1}}))
    assert texts_of(response.message) == [("Thought", "hm"), ("Text", "ab")]
    assert calls_of(response) == [("t", "f", '{"a":1}')]


def test_an_empty_text_block_is_no_part() -> None:
    """Rule 5 of docs/reference/wire.md: no empty text blocks."""
    assert claude(*block(0, TEXT), *block(1, TEXT, text("")), *block(2, TEXT, text("a"))).message.parts == (Text("a"),)


# --- calls ------------------------------------------------------------------------------------------------------------------


def test_arguments_are_the_pieces_joined_and_empty_pieces_are_not_told() -> None:
    events = streamed(
        "anthropic", typed(START, *block(0, tool("t"), arguments(""), arguments('{"a":'), arguments(" 1}")), *end("tool_use"))
    )
    assert calls_of(checked(events)) == [("t", "f", '{"a": 1}')]
    assert [event.arguments for event in events if isinstance(event, ToolCallDelta)] == ['{"a":', " 1}"]


@pytest.mark.parametrize(
    "events",
    [
        [*block(0, tool("a"), arguments('{"a":1}'))[:-1], *block(1, tool("b"), arguments("{}"))],
        [*block(0, tool("a"))[:1], {"type": "content_block_delta", "index": 1, "delta": arguments("{}")}],
        [*block(0, tool("a"), arguments("{}")), {"type": "content_block_stop", "index": 0}],
        [*block(0, tool("a"), arguments("{}")), {"type": "content_block_delta", "index": 0, "delta": text("late")}],
        [*block(0, tool("a"))[:1], {"type": "content_block_stop", "index": 7}],
        block(0, tool("a"), arguments('{"a":1}'))[:-1],
        [{"type": "content_block_delta", "delta": text("a")}],
        [{"type": "content_block_stop"}],
    ],
    ids=["two open", "another's delta", "closed twice", "late delta", "another's stop", "never closed", "never opened", "nothing to close"],
)
def test_blocks_that_do_not_follow_each_other_break_the_stream(events: list[Event]) -> None:
    """PV12: rebuilt exactly or a stream error."""
    with pytest.raises(StreamBroken):
        claude(*events, stop="tool_use")


def test_blocks_without_an_index_are_told_apart_all_the_same() -> None:
    """And calls that are open at once are not mixed up only because nobody counts them."""
    bare = [{key: value for key, value in event.items() if key != "index"} for event in block(0, tool("a"), arguments('{"a":1}'))]
    assert calls_of(claude(*bare, *bare, stop="tool_use")) == [("a", "f", '{"a":1}'), ("a-2", "f", '{"a":1}')]
    with pytest.raises(StreamBroken, match="before the last one ended"):
        claude(*bare[:-1], *bare, stop="tool_use")


def test_a_text_block_that_is_never_closed_is_closed_by_the_end() -> None:
    assert claude(*block(0, TEXT, text("a"))[:-1]).message == assistant("a")


@given(
    quirks=st.sets(st.sampled_from(CallQuirk)),
    ids=st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=3),
    size=st.integers(0, 9),
)
def test_any_layout_is_rebuilt_exactly_or_breaks_the_stream(quirks: set[CallQuirk], ids: list[str], size: int) -> None:
    """PV12, for a server that lays out calls as Anthropic does not."""
    said = [CallStep(f"f{n}", f'{{"n":{{"a":{n}}}}}', id=call_id, piece_chars=size) for n, call_id in enumerate(ids)]
    body = recorded("anthropic", answer(*said, calls=tuple(quirks)))
    try:
        events = streamed("anthropic", body)
    except StreamBroken:
        assert CallQuirk.INTERLEAVED in quirks
        return
    calls = checked(events).message.calls
    assert [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in said]
    assert pieces_of(events) == {call.id: call.arguments for call in calls}


# --- usage ------------------------------------------------------------------------------------------------------------------


def test_usage_is_cumulative_and_the_delta_adds_to_the_start() -> None:
    started = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50, "output_tokens": 1}
    started |= {"cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30}}
    start = {"type": "message_start", "message": START["message"] | {"usage": started}}
    ending = end(usage={"output_tokens": 25, "output_tokens_details": {"thinking_tokens": 9}, "cache_read_input_tokens": None})
    events = streamed("anthropic", typed(start, *block(0, TEXT, text("a")), *ending))
    usage = checked(events).usage
    assert usage == Usage(10, 100, 50, output_tokens=25, thought_tokens=9, cache_write_1h_tokens=30)
    assert usage.input_tokens == 160
    assert [event.usage.output_tokens for event in events if isinstance(event, UsageUpdated)] == [1, 25]


def test_input_that_grew_while_answering_is_the_last_word() -> None:
    """A server-side search adds input: the delta's numbers replace the start's."""
    usage = {
        "input_tokens": 500,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 0,
        "output_tokens": 20,
        "server_tool_use": {"web_search_requests": 1},
    }
    assert answered("anthropic", typed(START, *block(0, TEXT, text("a")), *end(usage=usage))).usage == Usage(500, 7, output_tokens=20)


# --- how it ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("refusal", FinishReason.REFUSAL),
        ("pause_turn", FinishReason.OTHER),
        ("something_new", FinishReason.OTHER),
    ],
)
def test_every_stop_reason(word: str, reason: FinishReason) -> None:
    response = claude(*block(0, TEXT, text("a")), stop=word)
    assert (response.finish, response.raw_finish) == (reason, word)


def test_a_refusal_says_why() -> None:
    """PV13: stop_details carries the explanation."""
    details = {"type": "refusal", "category": "cyber", "explanation": "Not that."}
    response = answered("anthropic", typed(START, *block(0, TEXT, text("a")), *end("refusal", stop_details=details)))
    assert (response.finish, response.detail, response.message) == (FinishReason.REFUSAL, "Not that.", assistant("a"))
    assert answered("anthropic", typed(START, *end("refusal", stop_details=None))).detail == ""


@pytest.mark.parametrize("missing", ["message_stop", "message_delta"])
def test_both_ends_must_be_there(missing: str) -> None:
    """No terminal event = error."""
    events = [event for event in (START, *block(0, TEXT, text("a")), *end()) if event["type"] != missing]
    with pytest.raises(StreamBroken, match="broke off"):
        streamed("anthropic", typed(*events))


@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("overloaded_error", "Overloaded", Overloaded),
        ("api_error", "Internal server error", ServerError),
        ("rate_limit_error", "Slow down", RateLimited),
        ("invalid_request_error", "messages: bad", BadRequest),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextOverflow),
        ("timeout_error", "Timed out", ServerError),
    ],
)
def test_an_error_event_is_treated_like_its_status(kind: str, message: str, error: type[Exception]) -> None:
    """PV05: an `error` event in the middle of a 200 stream."""
    with pytest.raises(error, match=message.split(":")[0]) as caught:
        streamed("anthropic", typed(START, *block(0, TEXT, text("a")), {"type": "error", "error": {"type": kind, "message": message}}))
    assert type(caught.value) is error
    assert caught.value.code == kind  # type: ignore[attr-defined]


# --- what real streams taught ---------------------------------------------------------------------------------------------------


def test_the_limit_inside_a_call_is_a_cut_answer_though_the_block_is_not_closed() -> None:
    """The service ends the message without closing the block. Asked again, it would end alike: it is no broken stream."""
    unclosed = block(1, tool("t1"), arguments('{"path": "a.t'))[:-1]
    response = claude(*block(0, TEXT, text("I look.")), *unclosed, stop="max_tokens")
    assert (response.finish, response.fault) == (FinishReason.LENGTH, "cut_in_call")
    assert [(call.id, call.arguments) for call in response.message.calls] == [("t1", '{"path": "a.t')]
    with pytest.raises(StreamBroken, match="in the middle of a tool call"):
        claude(*unclosed, stop="tool_use")


def test_the_limit_inside_a_search_leaves_no_half_of_one() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    response = claude(*block(0, TEXT, text("I look.")), *block(1, search, arguments('{"query": "wea'))[:-1], stop="max_tokens")
    assert response.finish is FinishReason.LENGTH
    assert sent_back(response) == [{"type": "text", "text": "I look."}]


def test_a_pause_is_told_and_is_no_end() -> None:
    streamed_answer = claude(*block(0, TEXT, text("I look.")), stop="pause_turn")
    assert (streamed_answer.finish, streamed_answer.fault) == (FinishReason.OTHER, "paused")
    assert whole({"type": "text", "text": "I look."}, stop="pause_turn").fault == "paused"
    assert claude(*block(0, TEXT, text("Done."))).fault == ""


def test_who_called_goes_back_with_the_call() -> None:
    by_code = tool("t1") | {"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
    response = claude(*block(0, by_code, arguments('{"a": 1}')), *block(1, tool("t2"), arguments("{}")), stop="tool_use")
    assert sent_back(response) == [by_code | {"input": {"a": 1}}, tool("t2")]
    assert whole(by_code | {"input": {"a": 1}}, tool("t2"), stop="tool_use").message.calls[0].opaque == response.message.calls[0].opaque


def test_an_answer_goes_back_in_its_own_order() -> None:
    """Thinking that was moved fails the service's check of what is before it."""
    response = claude(
        *block(0, TEXT, text("\n\n")),
        *block(1, THINKING, thinking("one"), signature("MQ==")),
        *block(2, tool("t1"), arguments("{}")),
        *block(3, THINKING, thinking("two"), signature("Mg==")),
        *block(4, tool("t2"), arguments("{}")),
        *block(5, THINKING, thinking("three"), signature("Mw==")),
        stop="tool_use",
    )
    kinds = [each.get("text") or each.get("thinking") or each["id"] for each in sent_back(response)]
    assert kinds == ["\n\n", "one", "t1", "two", "t2"]  # nothing may end with thinking


def test_what_the_service_dropped_of_the_request_is_told() -> None:
    dropped = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    allowed = {"type": "thinking_mismatch_allowed", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
    start = {"type": "message_start", "message": START["message"] | {"input_transformations": [dropped, allowed]}}
    told = "1 thinking blocks of the request were dropped: prefix_binding_mismatch"
    assert answered("anthropic", typed(start, *block(0, TEXT, text("a")), *end())).detail == told
    late = [end()[0] | {"input_transformations": [dropped]}, STOP]
    assert answered("anthropic", typed(START, *block(0, TEXT, text("a")), *late)).detail == told
    assert answered("anthropic", typed(start, *end("refusal"))).detail == ""


@given(st.data())
def test_a_whole_answer_where_a_stream_was_asked_for(data: st.DataObject) -> None:
    """A proxy that does not stream, and whose header does not say so."""
    content = [{"type": "text", "text": "Hé."}, tool("t1") | {"input": {"a": 1}}]
    document = json.dumps(
        {"type": "message", "id": "msg", "model": "m", "content": content, "stop_reason": "tool_use", "usage": {"output_tokens": 3}}
    )
    body = data.draw(st.sampled_from(["", "\n "])).encode() + document.encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(body) - 1), max_size=4)))
    response = answered("anthropic", [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True)])
    assert (response.message.text, response.message.calls[0].args, response.usage.output_tokens) == ("Hé.", {"a": 1}, 3)
    with pytest.raises(BadRequest, match="no"):
        streamed("anthropic", b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}')
