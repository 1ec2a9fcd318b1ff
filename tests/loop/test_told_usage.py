"""What is shown of an answer that was cancelled, cut or failed is what the service told, "at least" that, or unknown: never 0 for unknown.

Each case runs over every protocol against the loopback service, and is checked in every place that shows tokens or dollars.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman as dm
from agents import make_agent
from dragoman.cli.outcome import outcome_of
from dragoman.cli.stream_json import event_data, result_data
from dragoman.conversation.pages.context_page import _cost
from dragoman.conversation.pages.session_list import as_json as listed_json
from dragoman.conversation.pages.session_show import as_json as shown_json
from dragoman.conversation.pages.session_show import as_text
from dragoman.conversation.spent_words import spent_words
from dragoman.sessions.store import FileStore
from dragoman.sessions.transcript import read_transcript
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import Retrying, TextDelta, TurnFinished
from dragoman.values.messages import assistant
from dragoman.values.profile import Profile
from dragoman.values.record import AnswerRejected, Said, Spent, usage_of
from dragoman.values.usage import Prices, Usage
from program import KEY, PROTOCOLS

TELLS_EARLY = ("anthropic", "gemini")
"""Protocols whose first event has the input count."""
USED = "usage: fresh=1200 output=40\n"
CASES = {
    "cancelled before anything came": ("stall", False),
    "cancelled in the answer": (USED + "text: Once upon a\nstall", True),
    "cut before anything came": ("cut\n---\ncut\n---\ncut", False),
    "cut in the answer": (USED + "text: Once upon a\ncut", True),
    "failed in the answer": (USED + "text: Once upon a\nerror: 500", True),
    "garbled in the answer": (USED + "text: Once upon a\ngarbage", True),
}


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


async def play(protocol: str, script: str, folder: Path, *, cancel: bool) -> tuple[dm.Agent, dm.Result]:
    """One run that does not end well."""
    async with dm.testing.MockServer(script) as server:
        base_url = f"{server.url}/v1" if protocol.startswith("openai") else server.url
        provider = dm.connect(PROTOCOLS[protocol], base_url=base_url, key=KEY, retry=dm.RetryPolicy(attempts=1))
        agent = make_agent(provider, builtin=False, describe=False, sessions=folder)
        run = agent.run("hi")
        async with run:
            if cancel:
                await _wait_until(lambda: bool(server.requests))
                if "text:" in script:
                    async for event in run:
                        if isinstance(event, TextDelta):
                            break
                else:
                    await asyncio.sleep(0.05)
                run.cancel()
            async for _ in run:
                pass
        await provider.aclose()
        return agent, run.result


async def _wait_until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - the server is a double in another task, and has no event for it
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_a_loop
async def test_every_place_shows_what_was_told(protocol: str, case: str, tmp_path: Path) -> None:
    script, has_begun = CASES[case]
    agent, result = await play(protocol, script, tmp_path, cancel="stall" in script)
    assert result.exit_code, result
    await agent.aclose()
    entries, store = agent.history.entries, FileStore(tmp_path)
    is_told = has_begun and protocol in TELLS_EARLY
    transcript, plan = read_transcript(entries), agent.plan()
    listed = store.list()
    stats = outcome_of(result, agent.session_id, "").stats()
    line = result_data(outcome_of(result, agent.session_id, ""))["stats"]
    assert stats == line
    for usage in (result.usage, agent.history.usage, transcript.usage, plan.usage, listed[0].usage):
        assert usage.incomplete == 1
        assert usage.input_tokens == (1200 if is_told else 0)
        assert usage.is_unknown is not is_told
    assert stats["complete"] is False
    assert stats["tokens"]["input"] == stats["tokens"]["fresh"] == (1200 if is_told else None)
    assert stats["tokens"]["output"] in ((1, None) if is_told else (None,))
    words = spent_words(result.usage, result.cost_usd, estimated=False)
    for found in (listed_json(listed, store.short_ids(each.session_id for each in listed))[0]["usage"], shown_json(transcript)["usage"]):
        assert found["input_tokens"] == (1200 if is_told else None)
        assert found["incomplete"] == 1
    if is_told:
        assert result.cost_usd is not None
        assert result.cost_usd > 0
        assert stats["cost_usd"] == result.cost_usd == plan.costs.spent_usd == agent.cost_usd(entries)
        assert not plan.costs.spent_is_whole
        assert words.startswith("at least 1,200 tokens in")
        assert f"at least ${result.cost_usd:.4f}" in words
        assert "at least 1,200 tokens in" in as_text(entries)
        assert "at least $" in _cost(plan, "m")
    else:
        assert result.cost_usd is stats["cost_usd"] is plan.costs.spent_usd is agent.cost_usd(entries) is None
        assert words == "tokens used: unknown"
        assert "tokens unknown" in as_text(entries)
        assert "unknown" in _cost(plan, "m")
    assert "$0.0000" not in words + _cost(plan, "m")


@pytest.mark.parametrize("ending", ["stall", "cut"])
@in_a_loop
async def test_what_was_told_counts_though_nothing_was_said(ending: str, tmp_path: Path) -> None:
    """Anthropic tells the input before the first word: it is recorded though there is no answer to record it with."""
    agent, result = await play("anthropic", USED + ending, tmp_path, cancel=ending == "stall")
    assert result.usage == agent.history.usage == Usage(1200, output_tokens=1, incomplete=1)
    await agent.aclose()
    assert FileStore(tmp_path).list()[0].usage == result.usage


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_a_loop
async def test_a_request_that_was_refused_took_nothing(protocol: str, tmp_path: Path) -> None:
    """An error status comes instead of an answer: 0 is known, not unknown."""
    agent, result = await play(protocol, "error: 401", tmp_path, cancel=False)
    assert result.usage == Usage()
    assert result.requests == 1
    assert [entry for entry in agent.history.entries if isinstance(entry, Spent)] == []
    await agent.aclose()


@in_a_loop
async def test_an_unreachable_service_took_nothing() -> None:
    provider = dm.connect("anthropic/claude-opus-5", base_url="http://127.0.0.1:9", key=KEY, retry=dm.RetryPolicy(attempts=1))
    agent = make_agent(provider, builtin=False, describe=False)
    run = agent.run("hi")
    async for _ in run:
        pass
    assert run.result.usage == Usage()
    await provider.aclose()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_a_loop
async def test_an_answer_after_a_cut_one_adds_to_what_was_told(protocol: str, tmp_path: Path) -> None:
    """The retry succeeds; the attempt before it was paid for as well."""
    script = f"{USED}text: Once\ncut\n---\n{USED}text: Done."
    async with dm.testing.MockServer(script) as server:
        base_url = f"{server.url}/v1" if protocol.startswith("openai") else server.url
        policy = dm.RetryPolicy(attempts=2, first_delay_s=0.0)
        provider = dm.connect(PROTOCOLS[protocol], base_url=base_url, key=KEY, retry=policy)
        agent = make_agent(provider, builtin=False, describe=False)
        result = await agent.run("hi")
        await provider.aclose()
    assert result.usage.incomplete == 1
    assert result.usage.input_tokens == (2400 if protocol in TELLS_EARLY else 1200)
    assert "at least" in spent_words(result.usage, result.cost_usd, estimated=False)


@in_a_loop
async def test_a_cancel_while_waiting_for_a_retry_adds_nothing() -> None:
    """The attempt was refused, and the next has not been sent."""
    policy = dm.RetryPolicy(attempts=3, first_delay_s=30.0)
    async with dm.testing.MockServer("error: 503\n---\ntext: hi") as server:
        provider = dm.connect("anthropic/claude-opus-5", base_url=server.url, key=KEY, retry=policy)
        agent = make_agent(provider, builtin=False, describe=False)
        run = agent.run("hi")
        async for event in run:
            if isinstance(event, Retrying):
                run.cancel()
        await provider.aclose()
    assert run.result.usage == Usage()


@in_a_loop
async def test_figures_are_told_while_the_answer_is_under_way() -> None:
    """Whoever asks in the middle, as the program does when it has to leave at once, is told the same."""
    provider = ScriptedProvider("usage: fresh=700 output=1\ntext: Once\nstall", profile=Profile(prices=Prices(10.0, 50.0)))
    agent = make_agent(provider, builtin=False, describe=False)
    run = agent.run("hi")
    async with run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
        halfway = run.result
        run.cancel()
        async for _ in run:
            pass
    assert halfway.usage == run.result.usage == Usage(fresh_tokens=700, output_tokens=1, incomplete=1)
    assert halfway.cost_usd == run.result.cost_usd == pytest.approx(0.00705)


@in_a_loop
async def test_a_service_that_tells_nothing_is_unknown() -> None:
    """Servers that leave out the usage: the answer is whole, what it took is not known."""
    provider = ScriptedProvider("usage:\ntext: Hello.", profile=Profile(prices=Prices(10.0, 50.0)))
    agent = make_agent(provider, builtin=False, describe=False)
    run = agent.run("hi")
    finished = [event async for event in run if isinstance(event, TurnFinished)]
    assert run.result.usage.is_unknown
    assert run.result.cost_usd is None
    assert event_data(finished[0]) == {
        "type": "context",
        "event": "turn_finished",
        "reason": "stop",
        "tokens": {"input": None, "cache_read": None, "output": None},
    }


def test_only_requests_count() -> None:
    """A message that somebody put into the history was not asked of a model; an imported answer was, and its usage is not known."""
    assert usage_of(Said(1, 0, assistant("an example"), by="model")) is None
    assert usage_of(Said(1, 0, dm.user("hi"), by="person")) is None
    assert usage_of(Said(1, 0, assistant("hi"), "some-model", by="model")) == Usage(incomplete=1)
    assert usage_of(Said(1, 0, assistant("hi"), "some-model", Usage(5, output_tokens=2), by="model")) == Usage(5, output_tokens=2)
    assert usage_of(AnswerRejected(2, 0, 1, "no")) is None


def test_logs_of_earlier_versions_are_read() -> None:
    assert msgspec.json.decode(b'{"fresh_tokens":5}', type=Usage) == Usage(5)


def test_a_complete_usage_is_written_as_before() -> None:
    assert msgspec.json.encode(Usage(5, output_tokens=2)) == b'{"fresh_tokens":5,"output_tokens":2}'


def test_sums_of_usages() -> None:
    """One that is not whole makes the sum the least there can have been."""
    total = Usage(100, output_tokens=7) + Usage(incomplete=1)
    assert total == Usage(100, output_tokens=7, incomplete=1)
    assert not total.is_unknown
    assert total.told(total.cache_read_tokens) is None
    assert spent_words(total, 0.5, estimated=False) == "at least 100 tokens in · at least 7 out · at least $0.5000"
    assert spent_words(Usage(100, incomplete=1), None, estimated=False) == "at least 100 tokens in · unknown out"
