"""The provider in the process: the script's answers as events, its faults as errors."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

from dragoman.testing.script import Source
from dragoman.testing.script_steps import answer
from dragoman.testing.scripted import ScriptedProvider, reason_of
from dragoman.values import errors
from dragoman.values.contracts import Provider
from dragoman.values.events import (
    CitationAdded,
    ResponseFinished,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdated,
)
from dragoman.values.messages import (
    Citation,
    FinishReason,
    Message,
    Opaque,
    Request,
    Response,
    Text,
    Thought,
    ToolCall,
    assistant,
    tool_result,
    user,
)
from dragoman.values.profile import Profile
from dragoman.values.usage import Usage

REQUEST = Request("a-model", (user("hello"),))


async def collect(provider: ScriptedProvider, request: Request = REQUEST, into: list[StreamEvent] | None = None) -> list[StreamEvent]:
    events = [] if into is None else into
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            events.append(event)
    return events


def played(source: Source, request: Request = REQUEST) -> list[StreamEvent]:
    return asyncio.run(collect(ScriptedProvider(source), request))


def failing(source: Source) -> tuple[list[StreamEvent], errors.ProviderError]:
    """What was told before it went wrong, and how it went wrong."""
    events: list[StreamEvent] = []
    with pytest.raises(errors.ProviderError) as caught:
        asyncio.run(collect(ScriptedProvider(source), into=events))
    assert caught.value.provider == "scripted"
    return events, caught.value


def response(source: Source, request: Request = REQUEST) -> Response:
    return asyncio.run(ScriptedProvider(source).generate(request))


def test_it_is_a_provider() -> None:
    provider: Provider = ScriptedProvider("text: hello")
    assert provider.name == "scripted"


def test_an_answer_is_told_event_by_event() -> None:
    events = played("""
        thought signature=abc piece=2: Hmm
        text piece=3: Hello
        text: , you.
        call id=c1 piece=5: read_file {"path": 1}
        cite title=Page text=Hello: https://example.org
        usage: fresh=10 output=5
    """)
    call = ToolCall("c1", "read_file", '{"path": 1}')
    citation = Citation("https://example.org", "Page", "Hello")
    usage = Usage(fresh_tokens=10, output_tokens=5)
    assert events[:-1] == [
        ResponseStarted("scripted-1", "a-model"),
        ThoughtDelta("Hm"),
        ThoughtDelta("m"),
        TextDelta("Hel"),
        TextDelta("lo"),
        TextDelta(", you."),
        ToolCallStarted("c1", "read_file"),
        ToolCallDelta("c1", '{"pat'),
        ToolCallDelta("c1", 'h": 1'),
        ToolCallDelta("c1", "}"),
        ToolCallReady(call),
        CitationAdded(citation),
        UsageUpdated(usage),
    ]
    thought = Thought("Hmm", Opaque("scripted", '"abc"', "a-model"))
    message = Message("assistant", (thought, Text("Hello, you."), call, citation))
    finished = Response(message, FinishReason.TOOL_CALLS, "tool_calls", usage, "scripted-1", "a-model")
    assert events[-1] == ResponseFinished(FinishReason.TOOL_CALLS, finished)


def test_requests_are_kept_and_prepared_as_json() -> None:
    provider = ScriptedProvider("text: a")
    first = asyncio.run(provider.generate(REQUEST))
    asyncio.run(provider.generate(REQUEST))
    assert provider.requests == [REQUEST, REQUEST]
    assert first.message.text == "a"
    prepared = provider.prepare(REQUEST)
    assert prepared.body == b'{"model":"a-model","messages":[{"role":"user","parts":[{"type":"text","text":"hello"}]}]}'
    assert asyncio.run(provider.count_tokens(REQUEST)) == len(prepared.body) // 4 == first.usage.fresh_tokens


def test_ids_become_unique() -> None:
    history = (user("go"), assistant(ToolCall("c1", "f")), user(tool_result(ToolCall("c1", "f"), "done")))
    source = 'call id="": f\ncall id=c1: f\ncall id=c2: f\ncall id=c2: f {"a": 1}\ncall: f'
    calls = response(source, Request("m", history)).message.calls
    ids = [call.id for call in calls]
    assert len({*ids, "c1"}) == 6
    assert ids[2] == "c2"
    assert all(ids)


@pytest.mark.parametrize(
    ("line", "error", "retryable"),
    [
        ("error: 400", errors.BadRequest, False),
        ("error: 401", errors.Unauthorized, False),
        ("error: 403", errors.Forbidden, False),
        ("error: 404", errors.NotFound, False),
        ("error: 429", errors.RateLimited, True),
        ("error: 429 code=insufficient_quota", errors.QuotaExhausted, False),
        ("error: 429 quota_id=RequestsPerDay", errors.QuotaExhausted, False),
        ("error: 500", errors.ServerError, True),
        ("error: 503", errors.Overloaded, True),
        ("error: 529", errors.Overloaded, True),
        ("cut", errors.ConnectionFailed, True),
        ("cut: 0", errors.StreamBroken, True),
        ("garbage", errors.StreamBroken, True),
        ("nothing", errors.StreamBroken, True),
        ("finish: none", errors.StreamBroken, True),
    ],
)
def test_a_fault_is_an_error_of_its_class(line: str, error: type[errors.ProviderError], retryable: bool) -> None:
    _, raised = failing(line)
    assert type(raised) is error
    assert raised.retryable is retryable


def test_an_error_carries_what_the_service_said() -> None:
    _, raised = failing('error: 429 code=slow retry_after=7 retry_info=9.5 "Slow down"')
    assert (raised.message, raised.status, raised.code, raised.retry_after_s) == ("Slow down", 429, "slow", 9.5)


def test_a_fault_in_the_middle_comes_after_what_was_said() -> None:
    for line in ("error: 529", "cut", "garbage", "finish: none"):
        events, _ = failing(f"text: half\n{line}")
        assert events == [ResponseStarted("scripted-1", "a-model"), TextDelta("half")]


def test_a_cut_by_bytes_cuts_inside_a_delta() -> None:
    events, raised = failing('text: half é\ncall: f {"path": 1}\ncut: 6')
    assert isinstance(raised, errors.StreamBroken)
    assert events[1:] == [TextDelta("half ")]
    events, _ = failing('text: half\ncall id=c: f {"path": 1}\ncut: 9')
    assert events[1:] == [TextDelta("half"), ToolCallStarted("c", "f"), ToolCallDelta("c", '{"pat')]
    assert isinstance(played("text: half\ncut: 5")[-1], ResponseFinished)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("length", FinishReason.LENGTH),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("MALFORMED_FUNCTION_CALL", FinishReason.MALFORMED_TOOL_CALL),
        ("UNEXPECTED_TOOL_CALL", FinishReason.MALFORMED_TOOL_CALL),
        ("PROHIBITED_CONTENT", FinishReason.SAFETY),
        ("content_filter", FinishReason.SAFETY),
        ("RECITATION", FinishReason.RECITATION),
        ("refusal", FinishReason.REFUSAL),
        ("tool_use", FinishReason.TOOL_CALLS),
        ("end_turn", FinishReason.STOP),
        ("something_new", FinishReason.OTHER),
    ],
)
def test_a_bad_end_is_an_answer_that_says_so(word: str, reason: FinishReason) -> None:
    answered = response(f'text: half\nfinish: {word} "why"')
    assert (answered.finish, answered.raw_finish, answered.detail, answered.message.text) == (reason, word, "why", "half")
    assert reason_of(word) is reason


def test_a_blocked_prompt_is_an_empty_answer() -> None:
    answered = response("block: SAFETY")
    assert (answered.finish, answered.raw_finish, answered.message.parts) == (FinishReason.SAFETY, "SAFETY", ())
    assert "SAFETY" in answered.detail


def test_only_a_finish_is_an_empty_answer() -> None:
    assert response("finish: stop").message.parts == ()


@pytest.mark.parametrize("line", ["stall", "stall: 2", "ping: forever every=0.01", "wait: 1000"])
def test_a_stall_can_be_cancelled_at_once(line: str) -> None:
    async def run() -> list[StreamEvent]:
        events: list[StreamEvent] = []
        task = asyncio.create_task(collect(ScriptedProvider(f"text: half\n{line}\ntext: more"), into=events))
        await asyncio.sleep(0.02)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(task), 60)
        return events

    events = asyncio.run(run())
    assert events == [ResponseStarted("scripted-1", "a-model"), TextDelta("half")]


def test_waits_and_pings_take_time_and_say_nothing() -> None:
    start = time.monotonic()
    assert len(played("wait: 0.01\nping: 2 every=0.01\ntext: a")) == 4
    assert time.monotonic() - start >= 0.03


def test_an_answer_may_depend_on_the_request() -> None:
    assert response(lambda request: answer(f"{len(request.messages)} message")).message.text == "1 message"


def test_profiles_are_as_given() -> None:
    small, large = Profile(context_window=10), Profile(context_window=1000)
    provider = ScriptedProvider("", name="mine", profile=small, profiles={"large": large})
    assert (provider.name, provider.profile("any"), provider.profile("large")) == ("mine", small, large)


def test_embeddings_depend_on_the_text_alone() -> None:
    first, second, third = asyncio.run(ScriptedProvider("").embed(["a", "b", "a"]))
    assert first == third != second
    assert sum(value * value for value in first) == pytest.approx(1)
