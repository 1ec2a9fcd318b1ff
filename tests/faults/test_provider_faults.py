"""PV03 to PV05, the provider's half: services that refuse and fail, over real HTTP, in all four protocols."""

from __future__ import annotations

import time

import pytest

from dragoman.testing.script import Script
from dragoman.testing.script_steps import Fail, RawStep, answer
from dragoman.values.errors import (
    BadRequest,
    Forbidden,
    NotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerError,
    Unauthorized,
)
from dragoman.values.events import TextDelta
from dragoman.values.messages import assistant
from faulty_service import Bench, always, retries, run
from streaming import PROTOCOLS, checked

KEYS = {"gemini": "GEMINI_API_KEY", "openai_chat": "OPENAI_API_KEY", "openai_responses": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


# --- PV03: how long to wait -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("fail", "least_s"),
    [
        (Fail(429, retry_after_s=7), 7),
        (Fail(429, retry_after_s=0.5), 0.5),
        (Fail(429, retry_after_s=25), 25),
        (Fail(429, retry_date_s=20), 18.5),
        (Fail(503, retry_after_s=3), 3),
        (Fail(529, retry_after_s=3), 3),
    ],
    ids=["seconds", "less than the backoff", "more than half the cap", "date", "503", "529"],
)
def test_the_wait_is_never_shorter_than_the_service_asks(protocol: str, fail: Fail, least_s: float) -> None:
    """PV03: Retry-After in seconds and as an HTTP date; jitter only adds."""

    async def wait(bench: Bench) -> None:
        events, error = await bench.ask(Script((answer(fail), answer("ok"))))
        assert error is None
        assert len(bench.waits) == 1
        assert least_s <= bench.waits[0] <= (fail.retry_after_s or fail.retry_date_s or 0) * 1.1 + 0.1
        assert [event.wait_s for event in retries(events)] == list(bench.waits), "the countdown is told"
        assert checked(events[events.index(retries(events)[0]) + 1 :]).message == assistant("ok")

    for _ in range(3):
        run(protocol, wait)


@pytest.mark.parametrize(
    "fail",
    [
        Fail(429, retry_info_s=45.837906927),
        Fail(429, retry_info_s=45.837906927, retry_after_s=7),
        Fail(429, retry_info_s=7, retry_after_s=45.837906927),
    ],
    ids=["RetryInfo", "both, RetryInfo longer", "both, header longer"],
)
def test_of_two_hints_the_longer_counts(fail: Fail) -> None:
    """PV03: google.rpc.RetryInfo, alone and beside Retry-After."""

    async def wait(bench: Bench) -> None:
        events, error = await bench.ask(Script((answer(fail), answer("ok"))))
        assert error is None
        assert 45.837906927 <= bench.waits[0] <= 45.837906927 * 1.1
        assert len(retries(events)) == 1

    run("gemini", wait)


def test_a_hint_inside_the_stream_counts_too() -> None:
    async def wait(bench: Bench) -> None:
        _, error = await bench.ask(Script((answer("half", Fail(429, retry_info_s=12)), answer("ok"))))
        assert error is None
        assert bench.waits[0] >= 12

    run("gemini", wait)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("hint", [{"retry_after_s": 600}, {"retry_date_s": 600}, {"retry_after_s": 100_000}])
def test_a_wait_beyond_the_deadline_fails_at_once_and_names_the_time(protocol: str, hint: dict[str, float]) -> None:
    """PV03: a delay above the cap fails fast with the reset time."""

    async def give_up(bench: Bench) -> None:
        events, error = await bench.fails(always(Fail(429, **hint)))
        assert type(error) is RateLimited
        assert (len(bench.server.requests), list(bench.waits), events) == (1, [], [])
        assert not error.retryable
        assert error.retry_after_s is not None
        asked_s = next(iter(hint.values()))
        reset = time.localtime(time.time() + asked_s)
        assert f"the service asks to wait {error.retry_after_s:.0f} s, until " in str(error)
        assert time.strftime("%H:%M" if asked_s < 12 * 3600 else "%Y-%m-%d", reset) in str(error)

    run(protocol, give_up)


# --- PV04: what waiting does not help ---------------------------------------------------------------------------------------

EMPTY = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
HOPELESS: list[tuple[str, Fail, type[ProviderError], str]] = [
    ("gemini", Fail(429, quota_id="GenerateRequestsPerDayPerProjectPerModel-FreeTier"), QuotaExhausted, "daily quota"),
    ("gemini", Fail(429, quota_id="GenerateRequestsPerDay", retry_info_s=30), QuotaExhausted, "daily quota"),
    ("openai_chat", Fail(429, code="insufficient_quota"), QuotaExhausted, "billing"),
    ("openai_responses", Fail(429, code="insufficient_quota"), QuotaExhausted, "billing"),
    ("anthropic", Fail(400, EMPTY), QuotaExhausted, "billing"),
    ("anthropic", Fail(402), QuotaExhausted, "credit"),
    ("gemini", Fail(400, "API key not valid. Please pass a valid API key."), Unauthorized, "GEMINI_API_KEY"),
]
HOPELESS += [(protocol, Fail(401), Unauthorized, KEYS[protocol]) for protocol in PROTOCOLS]
HOPELESS += [(protocol, Fail(403), Forbidden, KEYS[protocol]) for protocol in PROTOCOLS]
HOPELESS += [(protocol, Fail(404), NotFound, "model's name") for protocol in PROTOCOLS]
HOPELESS += [(protocol, Fail(400, "tools.0.name: too long"), BadRequest, "tools.0.name: too long") for protocol in PROTOCOLS]


@pytest.mark.parametrize(("protocol", "fail", "kind", "advice"), HOPELESS)
def test_what_waiting_does_not_help_fails_at_once(protocol: str, fail: Fail, kind: type[ProviderError], advice: str) -> None:
    """PV04: not retried, and nothing is waited for; one clear message naming quota, billing or auth."""

    async def fail_once(bench: Bench) -> None:
        events, error = await bench.fails(always(fail))
        assert type(error) is kind
        assert (len(bench.server.requests), events, list(bench.waits)) == (1, [], [])
        assert advice in error.message
        assert "\n" not in str(error)
        assert (error.status, error.retryable) == (fail.status, False)
        assert bool(error.request_id) == (protocol != "gemini")
        with pytest.raises(kind):
            await bench.connection.generate(bench.request())
        assert len(bench.server.requests) == 2

    run(protocol, fail_once)


# --- PV05: overload, again and again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "kind"), [(529, Overloaded), (503, Overloaded), (500, ServerError), (502, ServerError), (504, ServerError)]
)
@pytest.mark.parametrize("said", ["", "half an answer"], ids=["as a status", "inside the stream"])
def test_overload_is_tried_again_a_bounded_number_of_times(protocol: str, status: int, kind: type[ProviderError], said: str) -> None:
    """PV05: exponential backoff with jitter, bounded; then an error, and the same prompt can be asked again as it was."""

    async def twenty(bench: Bench) -> None:
        failing = answer(*([said] if said else []), Fail(status), times=20)
        events, error = await bench.fails(Script((failing,)))
        assert isinstance(error, kind if not said or protocol == "gemini" else ServerError)
        assert len(bench.server.requests) == 3
        assert 3.5 <= bench.waits[0] <= 6.5
        assert 7 <= bench.waits[1] <= 13
        assert [event.attempt for event in retries(events)] == [1, 2]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == said * 3
        bodies = [exchange.body for exchange in bench.server.requests]
        assert bodies == [bodies[0]] * 3
        assert (await bench.answer("text: ok")).message == assistant("ok")
        assert bench.body() == bodies[0], "no duplicate history"

    run(protocol, twenty)


def test_the_total_time_of_waiting_is_bounded() -> None:
    """PV05: bounded attempts and total time."""

    async def patience(bench: Bench) -> None:
        _, error = await bench.fails(always(Fail(503)))
        assert isinstance(error, Overloaded)
        assert 2 <= len(bench.waits) < 20
        assert sum(bench.waits) <= 60

    run("anthropic", patience, attempts=100)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_overload_that_passes_leaves_a_whole_answer(protocol: str) -> None:
    async def passes(bench: Bench) -> None:
        events, error = await bench.ask(Script((answer("half", Fail(529)), answer(Fail(500)), answer("whole"))))
        assert error is None
        assert len(retries(events)) == 2
        assert checked(events[events.index(retries(events)[-1]) + 1 :]).message == assistant("whole")

    run(protocol, passes)


def test_an_error_line_in_a_stream_is_told_in_its_words() -> None:
    """llama.cpp and servers around it write `error:` where the standard has only `data:`."""

    async def ask(bench: Bench) -> None:
        line = RawStep(b'error: {"code":500,"message":"no slot is free","type":"server_error"}\n\n')
        _, error = await bench.fails(always(answer("Half", line)))
        assert type(error) is ServerError
        assert "no slot is free" in error.message

    run("openai_chat", ask)
