"""Trying again: never sooner than the server said, never for ever, never behind the user's back."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.faults import error_from_status
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import BadRequest, ProviderError, QuotaExhausted, RateLimited, ServerError, StreamBroken
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent, TextDelta
from dragoman.values.messages import Request, user
from virtual_time import run_in_virtual_time

REQUEST = Request("any", (user("hello"),))


class Waits:
    """A sleep that only writes down how long it should have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def policy(waits: Waits, **changes: object) -> RetryPolicy:
    return RetryPolicy(sleep=waits, **changes)  # type: ignore[arg-type]


async def events_of(provider: Retry, request: Request = REQUEST) -> list[StreamEvent]:
    async with aclosing(provider.stream(request)) as events:
        return [event async for event in events]


def stream(script: str, waits: Waits, **changes: object) -> list[StreamEvent]:
    return asyncio.run(events_of(Retry(ScriptedProvider(script), policy(waits, **changes))))


def test_a_failure_is_announced_and_tried_again() -> None:
    waits = Waits()
    events = stream("error: 500\n---\ntext: fine", waits)
    assert [type(event).__name__ for event in events[:1]] == ["Retrying"]
    assert isinstance(events[-1], ResponseFinished)
    assert events[-1].response.message.text == "fine"
    assert len(waits.seconds) == 1


def test_no_retry_after_output_was_shown_without_a_retry_event() -> None:
    """What was shown of the broken attempt is void: a Retrying event stands between it and the next."""
    events = stream("text: half of\ncut\n---\ntext: whole", Waits())
    shown = "".join("|" if isinstance(event, Retrying) else event.text for event in events if isinstance(event, TextDelta | Retrying))
    assert shown == "half of|whole"


def test_attempts_are_bounded() -> None:
    """RETRY-1: three attempts, five seconds first, doubling, at most thirty."""
    waits = Waits()
    with pytest.raises(ServerError):
        stream("answer: times=20\nerror: 500", waits, jitter=0.0)
    assert waits.seconds == [5.0, 10.0]
    waits = Waits()
    with pytest.raises(ServerError):
        stream("answer: times=20\nerror: 500", waits, jitter=0.0, attempts=7, deadline_s=1000.0)
    assert waits.seconds == [5.0, 10.0, 20.0, 30.0, 30.0, 30.0]


@given(failures=st.integers(1, 12), draw=st.floats(0, 1), hint=st.none() | st.floats(0, 500))
def test_a_wait_is_never_shorter_than_the_server_said(failures: int, draw: float, hint: float | None) -> None:
    """PV03; RETRY-2: thirty per cent of jitter either way, but never below a hint."""
    rules = RetryPolicy(draw=lambda: draw)
    wait = rules.delay_s(failures, RateLimited("slow down", retry_after_s=hint))
    if hint is not None:
        assert hint <= wait <= 1.1 * hint + 1e-9
    else:
        backoff = min(30.0, 5.0 * 2 ** (failures - 1))
        assert 0.7 * backoff - 1e-9 <= wait <= 1.3 * backoff + 1e-9


def test_a_hint_may_exceed_the_cap_but_not_the_deadline() -> None:
    waits = Waits()
    stream("error: 429 retry_after=45\n---\ntext: fine", waits)
    assert waits.seconds[0] >= 45
    waits = Waits()
    with pytest.raises(RateLimited, match=r"the service asks to wait 3600 s, until \d\d:\d\d:\d\d, which is longer than the limit of 60 s"):
        stream("error: 429 retry_after=3600\n---\ntext: never", waits)
    assert waits.seconds == []


@pytest.mark.parametrize("hints", [[20, 20, 20, 20], [7, 50, 10]])
def test_the_total_of_all_waits_stays_within_the_deadline(hints: list[int]) -> None:
    waits = Waits()
    script = "\n---\n".join(f"error: 429 retry_after={hint}" for hint in hints)
    with pytest.raises(RateLimited):
        stream(script, waits, attempts=10)
    assert sum(waits.seconds) <= 60


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("error: 400", BadRequest),
        ("error: 401", ProviderError),
        ("error: 403", ProviderError),
        ("error: 429 code=insufficient_quota", QuotaExhausted),
        ("error: 429 quota_id=GenerateRequestsPerDayPerProject", QuotaExhausted),
    ],
)
def test_what_waiting_cannot_mend_fails_at_once(script: str, kind: type[ProviderError]) -> None:
    """PV04"""
    waits = Waits()
    provider = ScriptedProvider(f"answer: times=5\n{script}")
    with pytest.raises(kind) as raised:
        asyncio.run(events_of(Retry(provider, policy(waits))))
    assert not raised.value.retryable
    assert len(provider.requests) == 1
    assert waits.seconds == []


def test_the_predicate_for_errors_is_injectable() -> None:
    waits = Waits()
    events = stream("error: 400\n---\ntext: fine", waits, retry_on_error=lambda error: error.status == 400)
    assert isinstance(events[-1], ResponseFinished)
    with pytest.raises(StreamBroken):
        stream("text: a\ncut", waits, retry_on_error=lambda error: False)


def test_the_predicate_for_content_is_injectable() -> None:
    """RETRY-4."""
    waits = Waits()
    provider = ScriptedProvider("text: bad\n---\ntext: good")
    wrapped = Retry(provider, policy(waits, retry_on_content=lambda response: response.message.text == "bad"))
    assert asyncio.run(wrapped.generate(REQUEST)).message.text == "good"
    assert len(waits.seconds) == 1


def test_content_that_stays_bad_is_handed_over_in_the_end() -> None:
    provider = ScriptedProvider("answer: times=9\ntext: bad")
    wrapped = Retry(provider, policy(Waits(), retry_on_content=lambda response: True))
    assert asyncio.run(wrapped.generate(REQUEST)).message.text == "bad"
    assert len(provider.requests) == 3


def test_a_persistent_429_may_switch_the_model() -> None:
    """RETRY-5."""
    waits, asked = Waits(), []

    async def choose(error: RateLimited) -> str | None:
        asked.append(error)
        return "smaller"

    provider = ScriptedProvider("answer: times=3\nerror: 429\n---\ntext: from the smaller one")
    events = asyncio.run(events_of(Retry(provider, policy(waits, on_persistent_429=choose))))
    assert isinstance(events[-1], ResponseFinished)
    assert [request.model for request in provider.requests] == ["any", "any", "any", "smaller"]
    assert len(asked) == 1


def test_a_hook_that_declines_leaves_the_error() -> None:
    async def decline(error: RateLimited) -> str | None:
        return None

    with pytest.raises(RateLimited):
        stream("answer: times=9\nerror: 429", Waits(), on_persistent_429=decline)


def test_a_wait_is_cancellable() -> None:
    async def main() -> None:
        service = ScriptedProvider("error: 429 retry_after=30\n---\ntext: late")
        task = asyncio.create_task(events_of(Retry(service)))
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (asyncio.get_running_loop().time(), len(service.requests)) == (10, 1)

    run_in_virtual_time(main())


def test_generate_counts_and_embeds_through_the_same_policy() -> None:
    waits = Waits()
    wrapped = Retry(ScriptedProvider("error: 503\n---\ntext: fine"), policy(waits))
    assert asyncio.run(wrapped.generate(REQUEST)).message.text == "fine"
    assert asyncio.run(wrapped.count_tokens(REQUEST)) > 0
    assert len(asyncio.run(wrapped.embed(["a", "b"]))) == 2


# --- content and models in streams -----------------------------------------------------------------------------------------------------


def test_content_is_retried_in_a_stream_too_and_what_was_shown_is_void() -> None:
    """RETRY-4."""
    waits = Waits()
    provider = ScriptedProvider("text: bad\n---\ntext: good")
    wrapped = Retry(provider, policy(waits, retry_on_content=lambda response: response.message.text == "bad"))
    events = asyncio.run(events_of(wrapped))
    shown = "".join("|" if isinstance(event, Retrying) else event.text for event in events if isinstance(event, TextDelta | Retrying))
    assert shown == "bad|good"
    assert [event.response.message.text for event in events if isinstance(event, ResponseFinished)] == ["good"]
    assert len(waits.seconds) == 1


def test_content_that_stays_bad_ends_a_stream_too() -> None:
    provider = ScriptedProvider("answer: times=9\ntext: bad")
    events = asyncio.run(events_of(Retry(provider, policy(Waits(), retry_on_content=lambda response: True))))
    assert len(provider.requests) == 3
    assert isinstance(events[-1], ResponseFinished)
    assert sum(isinstance(event, Retrying) for event in events) == 2


@pytest.mark.parametrize(
    ("script", "attempts"),
    [("error: 429 quota_id=RequestsPerDay", 1), ("error: 429 retry_after=3600", 1), ("answer: times=3\nerror: 429", 3)],
    ids=["daily quota", "wait beyond the deadline", "every attempt"],
)
def test_the_hook_is_asked_whenever_no_further_attempt_is_made_after_a_429(script: str, attempts: int) -> None:
    """RETRY-5."""

    async def choose(error: RateLimited) -> str | None:
        return "smaller"

    provider = ScriptedProvider(f"{script}\n---\ntext: from the smaller one")
    events = asyncio.run(events_of(Retry(provider, policy(Waits(), on_persistent_429=choose))))
    assert [request.model for request in provider.requests] == ["any"] * attempts + ["smaller"]
    changes = [event.model for event in events if isinstance(event, Retrying)]
    assert changes == [""] * (attempts - 1) + ["smaller"], "the stream tells which model is asked next"


def test_the_hook_is_not_asked_about_other_errors() -> None:
    async def choose(error: RateLimited) -> str | None:
        raise AssertionError("not a 429")

    with pytest.raises(ServerError):
        stream("answer: times=9\nerror: 503", Waits(), on_persistent_429=choose)
    with pytest.raises(BadRequest):
        stream("error: 400", Waits(), on_persistent_429=choose)


# --- a caller's own call


class Flaky:
    """Fails as it is told, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def later(self) -> str:
        await asyncio.sleep(0)
        return self()


class NotYet(Exception):
    retry_after_s = 7.0


@pytest.mark.parametrize("error", [ServerError("down"), RateLimited("slow down"), ConnectionResetError(), TimeoutError()])
def test_a_callers_own_call_is_tried_again(error: Exception) -> None:
    waits, told = Waits(), []
    flaky = Flaky(error, error)
    assert asyncio.run(dm.retry(flaky.later, policy(waits), on_retry=told.append)) == "done"
    assert flaky.calls == 3
    assert [event.attempt for event in told] == [1, 2]
    assert [event.wait_s for event in told] == waits.seconds
    assert all(seconds > 0 for seconds in waits.seconds)


def test_a_plain_function_is_tried_again_without_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    flaky = Flaky(ServerError("down", retry_after_s=3))
    result: str = dm.retry(flaky, RetryPolicy(draw=lambda: 0.0))
    assert (result, flaky.calls, waited) == ("done", 2, [3.0])


def test_a_lambda_that_makes_a_coroutine_is_awaited() -> None:
    waits, flaky = Waits(), Flaky(ServerError("down"))
    assert asyncio.run(dm.retry(lambda: flaky.later(), policy(waits))) == "done"


@pytest.mark.parametrize("error", [BadRequest("no"), ValueError("no"), QuotaExhausted("empty")])
def test_what_waiting_cannot_mend_is_not_called_again(error: Exception) -> None:
    flaky = Flaky(error)
    with pytest.raises(type(error)):
        dm.retry(flaky)
    assert flaky.calls == 1


def test_attempts_of_a_callers_call_are_bounded() -> None:
    waits, flaky = Waits(), Flaky(*[ServerError(str(number)) for number in range(9)])
    with pytest.raises(ServerError, match="3"):
        asyncio.run(dm.retry(flaky.later, policy(waits, attempts=4)))
    assert flaky.calls == 4


@given(hint=st.floats(0, 50), draw=st.floats(0, 1))
def test_a_callers_wait_is_never_shorter_than_asked(hint: float, draw: float) -> None:
    waits, error = Waits(), NotYet()
    error.retry_after_s = hint
    asyncio.run(dm.retry(Flaky(error).later, policy(waits, draw=lambda: draw), retry_on_error=lambda error: isinstance(error, NotYet)))
    assert waits.seconds[0] >= hint


def test_a_wait_beyond_the_deadline_fails_at_once_and_says_what_was_asked() -> None:
    waits, error = Waits(), NotYet("busy")
    with pytest.raises(NotYet) as caught:
        asyncio.run(dm.retry(Flaky(error).later, policy(waits), retry_on_error=lambda error: True, retry_after_s=lambda error: 3600.0))
    assert waits.seconds == []
    assert "asks to wait 3600 s" in caught.value.__notes__[0]


def test_a_cancel_passes_through() -> None:
    async def go() -> None:
        task = asyncio.ensure_future(dm.retry(lambda: asyncio.sleep(30)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())


# --- hints of any size


@pytest.mark.parametrize("hint", ["1000000000", "99999999999999999999", "3" * 500])
@pytest.mark.parametrize("protocol", ["gemini", "anthropic"])
def test_a_huge_wait_is_heeded(hint: str, protocol: str) -> None:
    """It was ignored, and the service asked again after five seconds. Nobody waits that long: it fails at once and says what was asked."""
    deployment = builtin_catalog().deployments[protocol]
    error = error_from_status(429, {"retry-after": hint}, b"{}", deployment)
    assert error.retry_after_s is not None
    assert error.retry_after_s >= 1e9
    waits = Waits()

    async def refuse() -> str:
        raise error

    provider = ScriptedProvider("text: never")
    provider.generate = lambda request: refuse()  # type: ignore[assignment,return-value,method-assign]
    with pytest.raises(RateLimited, match="asks to wait") as caught:
        asyncio.run(Retry(provider, policy(waits)).generate(REQUEST))
    assert waits.seconds == []
    assert not caught.value.retryable


@pytest.mark.parametrize("hint", ["-1", "nan", "soon", ""])
def test_what_is_no_wait_is_no_hint(hint: str) -> None:
    deployment = builtin_catalog().deployments["anthropic"]
    assert error_from_status(429, {"retry-after": hint}, b"{}", deployment).retry_after_s is None


# --- the policy's hooks, for a caller's own call too


class Answers:
    """Returns one after the other, and raises what is an error."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def __call__(self) -> object:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def later(self) -> object:
        return self()


@pytest.mark.parametrize("plain", [True, False])
def test_content_that_the_policy_finds_unusable_is_fetched_again(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, told = Waits(), []
    monkeypatch.setattr(time, "sleep", waits.seconds.append)
    wanted = policy(waits, retry_on_content=lambda page: not page)
    answers = Answers("", "", "the page")
    result = (
        dm.retry(answers, wanted, on_retry=told.append) if plain else asyncio.run(dm.retry(answers.later, wanted, on_retry=told.append))
    )
    assert result == "the page"
    assert [event.wait_s for event in told] == waits.seconds
    assert len(told) == 2
    assert "unusable" in told[0].reason
    assert dm.retry(Answers("", "", "", "never"), wanted) == "", "the last attempt's is returned as it is"


def test_the_policys_predicate_for_errors_holds_unless_the_call_brings_its_own() -> None:
    wanted = policy(Waits(), retry_on_error=lambda error: isinstance(error, KeyError))
    assert asyncio.run(dm.retry(Answers(KeyError("x"), "done").later, wanted)) == "done"
    with pytest.raises(ServerError):
        asyncio.run(dm.retry(Answers(ServerError("down"), "done").later, wanted))
    with pytest.raises(KeyError):
        asyncio.run(dm.retry(Answers(KeyError("x"), "done").later, wanted, retry_on_error=lambda error: False))


class Status(Exception):
    """An error of another library, by its status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


@pytest.mark.parametrize(("status", "calls"), [(400, 1), (404, 1), (429, 2), (500, 2), (599, 2), (600, 1)])
def test_an_error_of_another_library_is_judged_by_its_status(status: int, calls: int) -> None:
    flaky = Flaky(Status(status))
    if calls == 2:
        assert asyncio.run(dm.retry(flaky.later, policy(Waits()))) == "done"
    else:
        with pytest.raises(Status):
            asyncio.run(dm.retry(flaky.later, policy(Waits())))
    assert flaky.calls == calls


def deciding(decision: object, plain: bool) -> object:
    def now(error: Exception) -> object:
        return decision

    async def later(error: Exception) -> object:
        return decision

    return now if plain else later


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("decision", ["small", True])
@pytest.mark.parametrize("error", [RateLimited("slow down"), QuotaExhausted("empty"), Status(429)])
def test_a_persistent_429_of_a_callers_call_goes_by_the_hook(error: Exception, decision: object, plain: bool) -> None:
    told: list[Retrying] = []
    hooked = policy(Waits(), attempts=1, on_persistent_429=deciding(decision, plain))
    assert asyncio.run(dm.retry(Answers(error, "done").later, hooked, on_retry=told.append)) == "done"
    assert [(event.wait_s, event.model) for event in told] == [(0.0, decision if decision == "small" else "")]
    with pytest.raises(type(error)):  # it is asked once
        asyncio.run(dm.retry(Answers(error, error, "never").later, hooked))


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("decision", [None, False, ""])
def test_a_hook_that_gives_up_leaves_the_error_of_a_request_and_of_a_call(decision: object, plain: bool) -> None:
    hooked = {"attempts": 1, "on_persistent_429": deciding(decision, plain)}
    with pytest.raises(RateLimited):
        stream("error: 429\n---\ntext: never", Waits(), **hooked)
    with pytest.raises(RateLimited):
        asyncio.run(dm.retry(Answers(RateLimited("slow down"), "never").later, policy(Waits(), **hooked)))


@pytest.mark.parametrize("plain", [True, False])
def test_a_hook_may_have_the_same_model_asked_once_more(plain: bool) -> None:
    waits = Waits()
    events = stream("error: 429\n---\ntext: fine", waits, attempts=1, on_persistent_429=deciding(True, plain))
    retrying = [event for event in events if isinstance(event, Retrying)]
    assert [(event.wait_s, event.model) for event in retrying] == [(0.0, "")]
    assert isinstance(events[-1], ResponseFinished)
    with pytest.raises(RateLimited):
        stream("answer: times=9\nerror: 429", Waits(), on_persistent_429=deciding(True, plain))


@pytest.mark.parametrize("plain", [True, False])
def test_what_is_no_decision_is_refused_in_words(plain: bool) -> None:
    hooked = {"attempts": 1, "on_persistent_429": deciding(30, plain)}
    with pytest.raises(dm.errors.InputError, match="on_persistent_429 returned 30") as refused:
        stream("error: 429\n---\ntext: never", Waits(), **hooked)
    assert isinstance(refused.value.__cause__, RateLimited)
    with pytest.raises(dm.errors.InputError, match="on_persistent_429 returned 30"):
        asyncio.run(dm.retry(Answers(RateLimited("slow down")).later, policy(Waits(), **hooked)))


def test_a_plain_call_goes_by_a_plain_hook_and_refuses_an_async_one() -> None:
    def hooked(plain: bool) -> RetryPolicy:
        return policy(Waits(), attempts=1, on_persistent_429=deciding(True, plain))

    assert dm.retry(Answers(RateLimited("slow down"), "done"), hooked(plain=True)) == "done"
    with pytest.raises(dm.errors.InputError, match="nothing can await"):
        dm.retry(Answers(RateLimited("slow down"), "never"), hooked(plain=False))
