"""Budgets: what surely would exceed one is not sent, everything that was asked counts, and the next run may go on.

Most cases run over the loopback service, so that what counts is what a service tells.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from agents import make_agent
from dragoman.errors import BudgetExceeded, InputError
from dragoman.loop.budget import Account, LeastUse
from dragoman.options import Budget, CompressSettings, ContextSettings, Limits
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import ErrorRaised, TextDelta, ToolCallFinished
from dragoman.values.profile import Profile
from dragoman.values.record import NotCompressed, Said, ToolFinished
from dragoman.values.usage import Prices, Usage
from program import KEY, PROTOCOLS

PRICED = Profile(prices=Prices(1.0, 10.0, cache_read=0.1))
TOOL_TURN = 'call: look {"at": "%d"}\nusage: fresh=1000 output=50'
ANSWER = "text: Done.\nusage: fresh=1000 output=50"


@dm.tool(read_only=True)
def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def turns(count: int) -> str:
    return "\n---\n".join([*(TOOL_TURN % number for number in range(count)), ANSWER])


@asynccontextmanager
async def served(script: str, protocol: str = "anthropic", **options: Any) -> AsyncIterator[tuple[dm.Agent, Any]]:
    """An agent over HTTP, and the service it talks to."""
    async with dm.testing.MockServer(script) as server:
        base_url = f"{server.url}/v1" if protocol.startswith("openai") else server.url
        retry = dm.RetryPolicy(first_delay_s=0.01, jitter=0)
        async with aclosing(dm.connect(PROTOCOLS[protocol], base_url=base_url, key=KEY, retry=retry)) as provider:
            options = {"builtin": False, "describe": False, "system": "", "tools": [look]} | options
            async with make_agent(provider, **options) as agent:
                yield agent, server


def time_passes(seconds: float) -> None:
    """The clock of the running loop goes on by so much at once: what it had to wait for is due."""
    loop = asyncio.get_running_loop()
    usual = loop.time
    loop.time = lambda: usual() + seconds  # type: ignore[method-assign]


async def refusal(run: Any) -> BudgetExceeded:
    with pytest.raises(BudgetExceeded) as caught:
        await run
    assert run.result.error_type == "BudgetExceeded"
    assert run.result.exit_code == 60
    return caught.value


def test_requests_are_counted_and_the_next_run_goes_on() -> None:
    async def main() -> None:
        async with served(turns(4)) as (agent, server):
            error = await refusal(agent.run("look", budget=Budget(requests=2)))
            assert (error.budget, error.limit, error.spent) == ("requests", 2, 2)
            assert "requests=2" in str(error)
            assert len(server.requests) == 2
            assert not agent.history.view.open_calls
            result = await agent.run(budget=Budget(requests=3))
            assert result.text == "Done."
            assert len(server.requests) == 5

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_account_says_the_same_as_the_result(protocol: str) -> None:
    """Over every protocol: what was told is what was charged, tokens and dollars."""

    async def main() -> None:
        account = Account(Budget(tokens=1_000_000))
        async with served(turns(2), protocol, budget=account) as (agent, _):
            assert agent.account is account
            result = await agent.run("look")
            spent = account.spent
            assert spent.usage == result.usage
            assert spent.usd == pytest.approx(result.cost_usd)
            assert (spent.requests, spent.tool_calls) == (result.requests, result.tool_calls) == (3, 2)
            assert spent.usage.total_tokens == 3150
            assert 0 < spent.seconds < 60

    asyncio.run(main())


@pytest.mark.parametrize(
    ("budget", "name"),
    [
        (Budget(tokens=4_000), "tokens"),
        (Budget(input_tokens=3_900), "input_tokens"),
        (Budget(output_tokens=99), "output_tokens"),
        (Budget(usd=0.0045), "usd"),
    ],
)
def test_after_an_answer_over_the_budget_nothing_more_is_called_or_sent(budget: Budget, name: str) -> None:
    async def main() -> None:
        dear = TOOL_TURN.replace("fresh=1000", "fresh=3000") % 2
        provider = ScriptedProvider(f"{TOOL_TURN % 1}\n---\n{dear}\n---\n{ANSWER}", profile=PRICED)
        async with make_agent(provider, builtin=False, describe=False, tools=[look]) as agent:
            run = agent.run("look", budget=budget)
            error = await refusal(run)
            assert error.budget == name
            assert len(provider.requests) == 2
            assert error.spent > error.limit
            finished = [entry for entry in agent.history.entries if isinstance(entry, ToolFinished)]
            assert [entry.outcome for entry in finished] == ["finished", "refused"]
            assert (await agent.run()).text == "Done."

    asyncio.run(main())


def test_a_request_that_surely_would_exceed_it_is_not_sent() -> None:
    async def main() -> None:
        provider = ScriptedProvider(ANSWER, profile=PRICED)
        async with make_agent(provider, builtin=False, describe=False) as agent:
            error = await refusal(agent.run("word " * 10_000, budget=Budget(tokens=2_000)))
            assert error.spent == 0
            assert "at least" in str(error)
            assert provider.requests == []
            error = await refusal(agent.run(budget=Budget(usd=0.0001)))
            assert error.budget == "usd"
            assert provider.requests == []
            assert (await agent.run(budget=Budget(tokens=100_000))).text == "Done."

    asyncio.run(main())


def test_the_count_of_the_last_request_makes_the_estimate_exact() -> None:
    """Once the service has counted the conversation, a request is held back that by any tokenizer might have been sent."""

    async def main() -> None:
        script = 'call: look {"at": "x"}\nusage: fresh=30000 output=50\n---\n' + ANSWER
        provider = ScriptedProvider(script, profile=PRICED)
        async with make_agent(provider, builtin=False, describe=False, tools=[look]) as agent:
            error = await refusal(agent.run("look", budget=Budget(tokens=50_000)))
            assert error.spent == 30_050
            assert len(provider.requests) == 1
            assert [entry.outcome for entry in agent.history.entries if isinstance(entry, ToolFinished)] == ["finished"]

    asyncio.run(main())


def test_calls_over_the_budget_are_refused_and_the_others_are_kept() -> None:
    script = "\n".join(f'call: look {{"at": "{number}"}}' for number in range(5)) + "\n---\n" + ANSWER

    async def main() -> None:
        async with served(script) as (agent, server):
            run = agent.run("look", budget=Budget(tool_calls=3))
            events = [event async for event in run]
            assert isinstance(events[-1], ErrorRaised)
            assert events[-1].error_type == "BudgetExceeded"
            outcomes = [event.outcome for event in events if isinstance(event, ToolCallFinished)]
            assert sorted(outcomes) == ["finished"] * 3 + ["refused"] * 2
            assert len(server.requests) == 1
            assert not agent.history.view.open_calls
            assert (await agent.run()).text == "Done."

    asyncio.run(main())


def test_nobody_is_asked_about_a_call_that_there_is_no_budget_for() -> None:
    asked: list[str] = []

    @dm.tool(kind="execute")
    def launch() -> str:
        """Launch it."""
        return "launched"

    def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow:
        asked.append(call.name)
        return dm.Allow()

    async def main() -> None:
        provider = ScriptedProvider("call: launch {}\ncall: launch {}\n---\ntext: Done.")
        async with make_agent(provider, builtin=False, describe=False, tools=[launch], ask=ask) as agent:
            await refusal(agent.run("go", budget=Budget(tool_calls=1)))

    asyncio.run(main())
    assert asked == ["launch"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_time_ends_an_answer_under_way_and_keeps_what_came(protocol: str) -> None:
    async def main() -> None:
        script = "usage: fresh=1200 output=40\ntext: Once upon a\nstall\n---\n" + ANSWER
        account = Account(Budget(requests=5))
        async with served(script, protocol, budget=account) as (agent, _):
            run, told = agent.run("tell", budget=Budget(seconds=30)), ""
            async with asyncio.timeout(60):  # the service stalls for ever
                async for event in run:
                    told += event.text if isinstance(event, TextDelta) else ""
                    if isinstance(event, TextDelta) and told == "Once upon a":
                        time_passes(30)
            assert told == "Once upon a"
            error = await refusal(run)
            assert error.budget == "seconds"
            said = [entry for entry in agent.history.entries if isinstance(entry, Said) and entry.message.role == "assistant"]
            assert said[-1].message.text == "Once upon a"
            assert account.spent.usage == run.result.usage
            assert account.spent.usage.incomplete == 1
            assert (await agent.run("go on")).text == "Done."

    asyncio.run(main())


def test_the_time_ends_a_tool_that_runs() -> None:
    @dm.tool
    async def wait() -> str:
        """Wait."""
        time_passes(30)
        await asyncio.sleep(300)
        return "done"

    async def main() -> None:
        async with served("call: wait {}\n---\n" + ANSWER, tools=[wait], limits=Limits(budget=Budget(seconds=30))) as (agent, _):
            await asyncio.wait_for(refusal(agent.run("wait")), 60)
            finished = [entry for entry in agent.history.entries if isinstance(entry, ToolFinished)]
            assert [entry.outcome for entry in finished] == ["cancelled"]
            assert (await agent.run()).text == "Done."

    asyncio.run(main())


def test_a_cancel_stays_a_cancel_within_a_budget() -> None:
    async def main() -> None:
        async with served("text: Once\nstall") as (agent, _):
            run = agent.run("tell", budget=Budget(seconds=30, tokens=100_000))
            async with run:
                async for event in run:
                    if isinstance(event, TextDelta):
                        run.cancel()
            assert run.result.error_type == "Cancelled"

    asyncio.run(main())


def test_failed_attempts_count_and_the_next_is_not_made_without_budget() -> None:
    async def main() -> None:
        account = Account(Budget(tokens=100_000))
        cut = "usage: fresh=1000 output=40\ntext: half of\ncut"
        async with served(f"{cut}\n---\n{cut}\n---\n{ANSWER}", budget=account) as (agent, server):
            run = agent.run("hi", budget=Budget(requests=2))
            error = await refusal(run)
            assert error.spent == 2
            assert len(server.requests) == 2
            assert account.spent.requests == 2
            assert account.spent.usage == run.result.usage
            assert account.spent.usage.incomplete == 2
            assert account.spent.usage.input_tokens == 2_000

    asyncio.run(main())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("script", "incomplete"),
    [
        (f"error: 429 retry_after=0\n---\n{ANSWER}", 0),
        (f"usage: fresh=1000 output=40\ntext: half\ncut\n---\n{ANSWER}", 1),
        ("error: 400", 0),
        ("error: 401", 0),
        ("cut\n---\ncut\n---\ncut\n---\ncut\n---\ncut\n---\ncut", 3),
    ],
)
def test_what_is_told_of_failures_is_what_the_result_says(protocol: str, script: str, incomplete: int) -> None:
    async def main() -> None:
        account = Account(Budget(requests=50))
        async with served(script, protocol, budget=account) as (agent, _):
            run = agent.run("hi")
            _ = [event async for event in run]
            assert account.spent.usage == run.result.usage
            assert account.spent.usage.incomplete == incomplete
            assert account.spent.requests == run.result.requests

    asyncio.run(main())


def test_what_is_unknown_of_the_last_attempt_is_on_record_as_unknown() -> None:
    """A cut before anything came may have cost: with no budget for another attempt, the record still says so."""

    async def main() -> None:
        async with served("cut\n---\ncut\n---\ncut") as (agent, _):
            run = agent.run("hi", budget=Budget(requests=1))
            await refusal(run)
            assert run.result.usage.incomplete == 1

    asyncio.run(main())


@pytest.mark.parametrize("requests", [3, 4])
def test_summaries_count(requests: int) -> None:
    async def main() -> None:
        snapshot = "text: <snapshot><goal>all is well</goal></snapshot>\nusage: fresh=700 output=30"
        provider = ScriptedProvider("\n---\n".join([ANSWER, ANSWER, ANSWER, snapshot]), profile=PRICED)
        account = Account(Budget(requests=requests))
        context = ContextSettings(compress=CompressSettings(keep=0.1))
        async with make_agent(provider, builtin=False, describe=False, budget=account, context=context) as agent:
            for number in range(3):
                await agent.run(f"{number} " + "tell me a long story " * 2_000)
            if requests == 4:
                assert (await agent.compress()).status == "compressed"
                assert account.spent.usage.total_tokens == 3 * 1050 + 730
            else:
                with pytest.raises(BudgetExceeded):
                    await agent.compress()
                assert not any(isinstance(entry, NotCompressed) for entry in agent.history.entries)
            assert account.spent.requests == len(provider.requests) == requests
            await refusal(agent.run("more"))

    asyncio.run(main())


def test_what_the_web_tools_ask_counts() -> None:
    call = 'call: google_web_search {"query": "tides"}\nusage: fresh=100 output=5'
    script = "\n---\n".join([call, "text: High at noon.\nusage: fresh=50 output=10", "text: At noon.\nusage: fresh=200 output=5"])

    async def main() -> None:
        web = dm.WebAccess(search_model="none")
        account = Account(Budget(requests=3))
        async with served(script, "gemini", budget=account, web=web) as (agent, _):
            result = await agent.run("when?")
            assert result.text == "At noon."
            assert account.spent.requests == result.requests == 3
            assert account.spent.usage == result.usage
            assert account.spent.usage.total_tokens == 370
        async with served(script, "gemini", web=web) as (agent, server):
            await refusal(agent.run("when?", budget=Budget(requests=1)))
            assert len(server.requests) == 1

    asyncio.run(main())


def test_dollars_need_prices() -> None:
    async def main() -> None:
        provider = ScriptedProvider(ANSWER, profile=Profile(known=True))
        async with make_agent(provider, builtin=False, describe=False) as agent:
            run = agent.run("hi", budget=Budget(usd=1))
            with pytest.raises(InputError, match=r"prices of scripted/.*Budget\.tokens"):
                await run
            assert agent.history.entries == []
            assert (await agent.run("hi", budget=Budget(tokens=10_000))).text == "Done."

    asyncio.run(main())


def test_an_account_without_prices_does_not_pretend_to_know_the_cost() -> None:
    async def main() -> None:
        account = Account(Budget(requests=3))
        async with make_agent(ScriptedProvider(ANSWER), builtin=False, describe=False, budget=account) as agent:
            await agent.run("hi")
        assert account.spent.usd is None

    asyncio.run(main())


def test_the_budget_of_every_run_begins_anew_and_one_for_a_run_takes_its_place() -> None:
    async def main() -> None:
        provider = ScriptedProvider("answer: times=9\n" + ANSWER)
        async with make_agent(provider, builtin=False, describe=False, limits=Limits(budget=Budget(requests=1))) as agent:
            for _ in range(3):
                await agent.run("hi")
        provider = ScriptedProvider(turns(2))
        async with make_agent(provider, builtin=False, describe=False, tools=[look], limits=Limits(budget=Budget(requests=1))) as agent:
            assert (await agent.run("look", budget=Budget(requests=3))).text == "Done."

    asyncio.run(main())


def test_the_agents_own_budget_holds_for_all_its_runs() -> None:
    with make_agent(ScriptedProvider("answer: times=9\n" + ANSWER), builtin=False, describe=False, budget=Budget(requests=2)) as agent:
        agent.run_sync("one")
        agent.run_sync("two", budget=Budget(requests=5))
        with pytest.raises(BudgetExceeded):
            agent.run_sync("three", budget=Budget(requests=5))
        assert agent.account is not None
        assert agent.account.spent.requests == 2


def test_the_time_of_an_account_runs_from_its_first_run() -> None:
    now_s = 100.0
    account = Account(Budget(seconds=10), clock=lambda: now_s)
    with make_agent(ScriptedProvider("answer: times=9\n" + ANSWER), builtin=False, describe=False, budget=account) as agent:
        now_s = 200.0
        agent.run_sync("one")
        now_s = 209.0
        agent.run_sync("two")
        now_s = 210.5
        entries = len(agent.history.entries)
        with pytest.raises(BudgetExceeded) as caught:
            agent.run_sync("three")
        assert (caught.value.budget, caught.value.limit, caught.value.spent) == ("seconds", 10, 10.5)
        assert len(agent.history.entries) == entries, "nothing of it is recorded"


# --- many at once


def test_many_agents_never_overspend_an_account_they_share() -> None:
    """Forty agents in one loop over HTTP: requests are exact, and tokens are exceeded by no more than what was under way."""
    limit = 60_000

    async def main() -> None:
        by_requests, by_tokens = Account(Budget(requests=50)), Account(Budget(tokens=limit))
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(dm.testing.MockServer(f"answer: times=2000\nwait: 0.01\n{ANSWER}"))
            provider = await stack.enter_async_context(aclosing(dm.connect(PROTOCOLS["anthropic"], base_url=server.url, key=KEY)))

            async def work(account: Account) -> int:
                async with make_agent(provider, builtin=False, describe=False, budget=account) as agent:
                    for done in range(50):
                        try:
                            await agent.run("hi")
                        except BudgetExceeded:
                            return done
                return 50

            assert sum(await asyncio.gather(*(work(by_requests) for _ in range(40)))) == 50
            assert len(server.requests) == by_requests.spent.requests == 50
            answered = sum(await asyncio.gather(*(work(by_tokens) for _ in range(40))))
        spent = by_tokens.spent
        assert spent.requests == answered == len(server.requests) - 50
        assert spent.usage.total_tokens == answered * 1050
        assert limit - 1050 < spent.usage.total_tokens <= limit + 40 * 1050

    asyncio.run(main())


def test_agents_in_many_threads_share_an_account() -> None:
    account = Account(Budget(requests=60, tool_calls=1_000))
    done: list[int] = []

    def work() -> None:
        with make_agent(ScriptedProvider("answer: times=99\n" + ANSWER), builtin=False, describe=False, budget=account) as agent:
            for count in range(99):
                try:
                    agent.run_sync("hi")
                except BudgetExceeded:
                    done.append(count)
                    return

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == account.spent.requests == 60


@given(
    st.integers(0, 300),
    st.lists(st.tuples(st.sampled_from(["open", "close", "withdraw"]), st.integers(1, 50), st.integers(0, 80)), max_size=60),
)
def test_an_account_is_exceeded_only_by_what_was_under_way(limit: int, steps: list[tuple[str, int, int]]) -> None:
    """Whatever the order: when a request is let through, what was spent and what is surely under way fits the budget."""
    account = Account(Budget(tokens=limit))
    under_way: list[LeastUse] = []
    spent = sent = 0
    for what, least, output in steps:
        if what == "open":
            estimate = LeastUse(least)
            fits = spent + sum(each.input_tokens for each in under_way) + least <= limit
            if not fits:
                with pytest.raises(BudgetExceeded, match=f"{spent}|used up"):
                    account.open(estimate)
                continue
            account.open(estimate)
            sent += 1
            under_way.append(estimate)
        elif under_way and what == "close":
            closed = under_way.pop(0)
            account.close(closed, Usage(closed.input_tokens, output_tokens=output), 0.0)
            spent += closed.input_tokens + output
        elif under_way:
            account.withdraw(under_way.pop())
            sent -= 1
    assert account.spent.usage.total_tokens == spent
    assert account.spent.requests == sent


# --- over a restart


def test_what_a_session_spent_before_counts_when_it_is_opened_again(tmp_path: Path) -> None:
    def open_agent(script: str) -> dm.Agent:
        provider = ScriptedProvider(script, profile=PRICED)
        session = dm.SessionOptions(tmp_path / "sessions", key="user-42")
        return dm.Agent(provider, tools=[look], session=session, budget=Budget(requests=3, usd=1))

    with open_agent(turns(1)) as agent:
        agent.run_sync("Look once.")
        assert agent.account is not None
        before = agent.account.spent
    with open_agent(turns(1)) as agent:
        assert agent.account is not None
        assert msgspec.structs.replace(agent.account.spent, seconds=before.seconds) == before
        with pytest.raises(BudgetExceeded) as exceeded:
            agent.run_sync("Look again.")
    assert (exceeded.value.budget, exceeded.value.spent) == ("requests", 3)


# --- what is refused


@pytest.mark.parametrize("wrong", [Budget(usd=0), Budget(tokens=-1), Budget(requests=0), Budget(seconds=0), Budget(tool_calls=-1), 5])
def test_what_cannot_be_meant_is_refused(wrong: Any) -> None:
    provider = ScriptedProvider(ANSWER)
    with pytest.raises(InputError, match="budget"):
        make_agent(provider, budget=wrong)
    with make_agent(provider) as agent, pytest.raises(InputError, match="budget"):
        agent.run("hi", budget=wrong)


def test_the_error_can_be_copied_and_pickled() -> None:
    error = BudgetExceeded("too much", "usd", 1.5, 2.0)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (other.budget, other.limit, other.spent, str(other)) == ("usd", 1.5, 2.0, "too much")


def test_without_a_budget_nothing_of_it_is_loaded() -> None:
    import subprocess
    import sys

    code = (
        "import sys, dragoman as dm\n"
        "from dragoman.testing.scripted import ScriptedProvider\n"
        "with dm.Agent(ScriptedProvider('text: hi')) as agent: agent.run_sync('hi')\n"
        "print([name for name in sys.modules if name in ('dragoman.loop.budget', 'dragoman.loop.charging')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("budget", [Budget(tokens=600), Budget(input_tokens=600), Budget(output_tokens=100), Budget(usd=0.002)])
def test_a_service_that_tells_nothing_is_charged_by_an_estimate_that_is_never_shown_as_told(protocol: str, budget: Budget) -> None:
    async def main() -> None:
        silent = "\n---\n".join(
            f'text: {"Let me look. " * 10}\ncall: look {{"at": "{number}"}}\nusage: fresh=0 output=0' for number in range(90)
        )
        account = Account(budget)
        async with served(silent, protocol, budget=account) as (agent, server):
            run = agent.run("go")
            error = await refusal(run)
        assert len(server.requests) < 40
        assert 0 < error.estimated <= error.spent
        assert "by our own estimate" in str(error)
        assert account.spent.usage.total_tokens == 0
        assert run.result.usage.is_unknown

    asyncio.run(main())


def test_a_service_that_tells_no_output_is_charged_for_what_came() -> None:
    async def main() -> None:
        silent = "\n---\n".join(
            f'text: {"Let me look. " * 20}\ncall: look {{"at": "{number}"}}\nusage: fresh=10 output=0' for number in range(90)
        )
        agent = make_agent(ScriptedProvider(silent), builtin=False, describe=False, tools=[look], budget=Budget(output_tokens=300))
        error = await refusal(run := agent.run("go"))
        assert error.estimated == error.spent
        assert run.result.usage.output_tokens == 0

    asyncio.run(main())
