"""The rate limiter: never more than the limit within any minute, in order, cancellable, over all event loops and threads."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dragoman as dm
from agents import make_agent
from dragoman.errors import InputError, RateLimited
from dragoman.events import RequestDelayed
from dragoman.options import RateLimit
from dragoman.providers import pace
from dragoman.providers.catalog import Catalog, builtin_catalog
from dragoman.providers.pace import Limiter, Paced, limiter_for
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import Retrying, TextDelta
from dragoman.values.messages import Request, user
from dragoman.values.record import Spent
from program import KEY, PROTOCOLS, service
from virtual_time import run_in_virtual_time

ASKED = Request("scripted", (user("hi"),))
ANSWERS = "script: end=repeat\n---\ntext: Done.\nusage: fresh=90 output=10"


def virtual(limit: RateLimit) -> Limiter:
    return Limiter(limit, asyncio.get_running_loop().time)


# --- by a clock that waiting moves


def test_no_more_than_the_limit_within_any_minute_and_in_order() -> None:
    async def main() -> list[tuple[float, int]]:
        limiter, loop = virtual(RateLimit(3)), asyncio.get_running_loop()
        sent: list[tuple[float, int]] = []

        async def ask(number: int) -> None:
            await asyncio.sleep(number)
            await limiter.enter("m")
            sent.append((loop.time(), number))

        await asyncio.gather(*(ask(number) for number in range(8)))
        return sent

    sent = run_in_virtual_time(main())
    assert [number for _, number in sent] == list(range(8))
    assert [round(at) for at, _ in sent] == [0, 1, 2, 60, 61, 62, 120, 121]


@settings(max_examples=60)
@given(
    st.integers(1, 5),
    st.one_of(st.none(), st.integers(10, 200)),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 150), st.booleans()), min_size=1, max_size=25),
)
def test_whatever_comes_when_the_window_holds(requests: int, tokens: int | None, asked: list[tuple[int, int, bool]]) -> None:
    """Any arrivals, any sizes, any cancels: no window of 60 s has more, nobody overtakes, and everybody gets through."""

    async def main() -> None:
        limiter, loop = virtual(RateLimit(requests, tokens)), asyncio.get_running_loop()
        arrived: list[int] = []
        sent: list[tuple[float, int, int]] = []

        async def ask(number: int, at_s: float, size: int) -> None:
            await asyncio.sleep(at_s)
            arrived.append(number)
            await limiter.enter("m", size)
            sent.append((loop.time(), number, size))

        tasks = [asyncio.create_task(ask(number, at_s, size)) for number, (at_s, size, _) in enumerate(asked)]
        for task, (at_s, _, is_cancelled) in zip(tasks, asked, strict=True):
            if is_cancelled:
                loop.call_later(at_s + 20, task.cancel)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [each for each in done if isinstance(each, Exception)]
        went = [number for _, number, _ in sent]
        assert went == [number for number in arrived if number in went]
        assert len(went) >= sum(not cancelled for _, _, cancelled in asked)
        for start, _, size in sent:
            window = [(at, each) for at, _, each in sent if start - 59.999 < at <= start]
            assert len(window) <= requests
            assert tokens is None or sum(each for _, each in window) <= tokens or len([each for _, each in window if each]) <= 1 or not size

    run_in_virtual_time(main())


def test_tokens_are_corrected_by_what_the_answer_took() -> None:
    """A small question with a long answer: the next one waits, though by its question there would have been room."""

    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        provider = ScriptedProvider("script: end=repeat\n---\ntext: Long.\nusage: fresh=10 output=990")
        limiter = virtual(RateLimit(tokens_per_minute=1_000))
        paced = Paced(provider, limiter)
        await paced.generate(ASKED)
        events = [event async for event in paced.stream(ASKED)]
        delayed = [event for event in events if isinstance(event, RequestDelayed)]
        assert len(delayed) == 1
        assert delayed[0].wait_s == pytest.approx(60, abs=1)
        assert "scripted" in delayed[0].reason
        return loop.time(), len(provider.requests)

    waited_s, requests = run_in_virtual_time(main())
    assert waited_s == pytest.approx(60, abs=1.1)
    assert requests == 2


def test_a_request_larger_than_the_limit_goes_when_no_other_counts() -> None:
    async def main() -> float:
        limiter = virtual(RateLimit(tokens_per_minute=100))
        await limiter.enter("m", 50)
        await limiter.enter("m", 5_000)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == pytest.approx(60, abs=1.1)


def test_one_who_is_told_to_wait_makes_the_others_wait() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        provider = ScriptedProvider('error: 429 retry_after=20 "Slow down"\n---\n' + ANSWERS.partition("---\n")[2] + "\n---\ntext: Done.")
        limiter = virtual(RateLimit())
        first, second = Paced(provider, limiter), Paced(provider, limiter)
        with pytest.raises(RateLimited):
            await first.generate(ASKED)
        assert loop.time() == 0
        events = [event async for event in second.stream(ASKED)]
        assert isinstance(events[0], RequestDelayed)
        assert events[0].wait_s == pytest.approx(20)
        assert loop.time() == pytest.approx(20)
        assert len(provider.requests) == 2

    run_in_virtual_time(main())


def test_a_429_holds_up_its_own_model_alone() -> None:
    """A fallback to another model of the same service must not wait for the first."""

    async def main() -> None:
        limiter = virtual(RateLimit(100))
        limiter.hold("large", RateLimited("slow down", retry_after_s=50))
        await limiter.enter("small")
        assert asyncio.get_running_loop().time() == 0
        waiting = asyncio.create_task(limiter.enter("large"))
        await asyncio.sleep(1)
        await limiter.enter("small")
        assert asyncio.get_running_loop().time() == 1
        await waiting
        assert asyncio.get_running_loop().time() == pytest.approx(50)

    run_in_virtual_time(main())


def test_a_wait_beyond_patience_fails_for_all_with_what_the_service_said() -> None:
    async def main() -> None:
        provider = ScriptedProvider(ANSWERS)
        limiter = virtual(RateLimit())
        limiter.hold("scripted", RateLimited("come back tomorrow", retry_after_s=3_600, status=429))
        paced = Paced(provider, limiter, patience_s=60)
        with pytest.raises(RateLimited, match="come back tomorrow") as caught:
            _ = [event async for event in paced.stream(ASKED)]
        assert caught.value.retry_after_s == pytest.approx(3_600)
        assert provider.requests == []

    run_in_virtual_time(main())


def test_a_cancelled_waiter_loses_nobodys_place() -> None:
    async def main() -> None:
        limiter, loop = virtual(RateLimit(1)), asyncio.get_running_loop()
        await limiter.enter("m")
        waiting = [asyncio.create_task(limiter.enter("m")) for _ in range(3)]
        await asyncio.sleep(5)
        waiting[0].cancel()
        await waiting[1]
        assert loop.time() == pytest.approx(60, abs=0.1)
        waiting[2].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(60)
        await limiter.enter("m")
        assert loop.time() == pytest.approx(120, abs=0.1)

    run_in_virtual_time(main())


# --- by the real clock, over loopback


def test_agents_of_several_connections_and_threads_share_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads with a loop, a connection and two agents each: no more is sent than the limit in any window."""
    minute_s, answered, sent_s = 0.6, list[str](), list[float]()
    count = Limiter._count
    monkeypatch.setattr(pace, "MINUTE_S", minute_s)
    monkeypatch.setattr(Limiter, "_count", lambda self, tokens: sent_s.append(time.monotonic()) or count(self, tokens))

    async def work(url: str) -> None:
        async with aclosing(dm.connect(PROTOCOLS["anthropic"], base_url=url, key=KEY, rate=RateLimit(4))) as connection:

            async def ask_twice() -> None:
                async with make_agent(connection, builtin=False, describe=False) as agent:
                    for _ in range(2):
                        texts = [event.text async for event in agent.run("hi") if isinstance(event, TextDelta)]
                        answered.append("".join(texts))

            await asyncio.gather(ask_twice(), ask_twice())

    with service(ANSWERS) as served:
        threads = [threading.Thread(target=lambda: asyncio.run(work(served.url))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(served.requests) == 12
    assert answered == ["Done."] * 12
    assert len(sent_s) == 12
    assert all(later - earlier > minute_s - 0.01 for earlier, later in zip(sent_s, sent_s[4:], strict=False))


def test_over_http_a_429_of_one_agent_makes_the_others_wait() -> None:
    async def main() -> None:
        script = 'error: 429 retry_after=1 "Slow down"\n---\n' + "\n---\n".join(["text: Done."] * 6)
        async with dm.testing.MockServer(script) as server:
            connection = dm.connect(PROTOCOLS["anthropic"], base_url=server.url, key=KEY, rate=RateLimit())
            seen: list[Any] = []

            async def ask(delay_s: float) -> None:
                await asyncio.sleep(delay_s)
                async with make_agent(connection, builtin=False, describe=False) as agent:
                    seen.extend([event async for event in agent.run("hi")])

            await asyncio.gather(ask(0), *(ask(0.3) for _ in range(4)))
            await connection.aclose()
            assert len(server.requests) == 6, "one was refused, and nobody else ran into it"
            assert sum(isinstance(event, Retrying) for event in seen) == 1
            assert sum(isinstance(event, RequestDelayed) for event in seen) >= 4

    asyncio.run(main())


def test_a_request_that_is_cancelled_while_it_waits_has_cost_nothing() -> None:
    async def main() -> None:
        provider = ScriptedProvider(ANSWERS)
        limiter = Limiter(RateLimit(1))
        await limiter.enter("scripted")
        async with make_agent(Paced(provider, limiter), builtin=False, describe=False) as agent:
            run = agent.run("hi")
            async for event in run:
                if isinstance(event, RequestDelayed):
                    run.cancel()
            assert run.result.error_type == "Cancelled"
            assert run.result.usage.incomplete == 0
            assert not any(isinstance(entry, Spent) for entry in agent.history.entries)
            assert provider.requests == []

    asyncio.run(main())


# --- who shares one


def test_one_limiter_for_a_service_and_a_key() -> None:
    one = limiter_for("acme", "http://a", ("key",), RateLimit(1))
    assert limiter_for("acme", "http://a", ("key",), RateLimit(2)) is one
    assert one.limit == RateLimit(2)
    assert limiter_for("acme", "http://a", ("other",), RateLimit(1)) is not one
    assert limiter_for("acme", "http://b", ("key",), RateLimit(1)) is not one
    assert "key" not in repr(list(pace._limiters))


def test_what_a_closed_connection_sent_still_counts() -> None:
    """An agent for each question opens and closes its own connection: together they keep to the limit."""

    async def main() -> None:
        async with dm.testing.MockServer(ANSWERS) as server:
            for number in range(3):
                connection = dm.connect(PROTOCOLS["gemini"], base_url=server.url, key=KEY, rate=RateLimit(2))
                async with make_agent(connection, builtin=False, describe=False) as agent, agent.run("hi") as run:
                    delayed = [event async for event in run if not isinstance(event, RequestDelayed) or run.cancel()]
                    assert run.result.error_type == ("Cancelled" if number == 2 else ""), delayed
                await connection.aclose()
                del connection, agent, run
                gc.collect()
            assert len(server.requests) == 2

    asyncio.run(main())


def test_limiters_with_nothing_to_remember_are_let_go() -> None:
    busy = limiter_for("busy", "", ("key",), RateLimit(1))
    asyncio.run(busy.enter("m"))
    for number in range(3 * pace.KEPT):
        limiter_for("acme", "", (f"key {number}",), RateLimit(1))
    gc.collect()
    assert len(pace._kept) <= pace.KEPT + 1
    assert busy in pace._kept
    assert len(pace._limiters) <= pace.KEPT + 1


def test_a_row_of_the_catalog_sets_it() -> None:
    import msgspec

    row = builtin_catalog()["anthropic"]
    catalog = Catalog({"anthropic": msgspec.structs.replace(row, requests_per_minute=7, tokens_per_minute=900)})
    provider = dm.connect("anthropic/claude-opus-5", key=KEY, catalog=catalog).provider
    assert isinstance(provider, Paced)
    assert provider.limiter.limit == RateLimit(7, 900)
    assert not isinstance(dm.connect("anthropic/claude-opus-5", key=KEY).provider, Paced)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "60"])
def test_what_cannot_be_meant_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="requests_per_minute"):
        RateLimit(wrong)


def test_without_a_limit_nothing_of_it_is_loaded() -> None:
    code = "import sys, dragoman as dm; dm.connect('anthropic', key='k'); print('dragoman.providers.pace' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
