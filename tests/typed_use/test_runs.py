"""Runs, events, errors, budgets, sessions and settings, as a program uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import dragoman as dm
from dragoman.errors import BudgetExceeded, InUse, NoSession, OutputInvalid, RateLimited
from dragoman.options import Account, AnswerPolicy, Budget, FallbackOptions, LoopLimits, Spending
from dragoman.stores import FileStore, Store

HELLO = "text: Hello\nusage: fresh=10 output=2"


def test_a_run_is_awaited_and_watched() -> None:
    async def main() -> str:
        async with dm.Agent(dm.testing.ScriptedProvider("---".join([HELLO + "\n", "\n" + HELLO]))) as agent:
            result = await agent.run("Hello", settings=dm.Settings(temperature=0), instructions="Briefly.", budget=Budget(requests=3))
            assert_type(result, dm.Result[str])
            assert_type(result.usage, dm.Usage)
            assert_type(result.cost_usd, float | None)
            assert_type(result.changed, tuple[str, ...])
            seen: list[str] = []
            async with agent.run("Again") as run:
                assert_type(run, dm.Run[str])
                async for event in run:
                    assert_type(event, dm.TurnEvent)
                    seen.append(describe(event))
                async for at_ms, _ in run.timed():
                    assert_type(at_ms, int)
            run.cancel()
            assert_type(agent.cancel(), bool)
            assert_type(run.result, dm.Result[str])
            task = asyncio.create_task(agent.run("No more"))
            task.cancel()
            return "".join(seen)

    assert asyncio.run(main()) == "Hello"


def describe(event: dm.TurnEvent) -> str:
    match event:
        case dm.TextDelta(text=text) | dm.ThoughtDelta(text=text):
            return assert_type(text, str)
        case dm.ToolCallRequested(call=call):
            return assert_type(call, dm.ToolCall).name
        case dm.events.ToolCallUpdated(state=state):
            assert_type(state, dm.events.ToolState)
            return state
        case dm.ToolCallFinished(parts=parts, error=error):
            return f"{len(parts)} {error}"
        case dm.TurnFinished(reason=reason, usage=usage):
            assert_type(reason, dm.FinishReason)
            assert_type(usage, dm.Usage)
            return ""
        case dm.events.ErrorRaised(message=message, exit_code=exit_code):
            return f"{message} {assert_type(exit_code, int)}"
        case _:
            return ""


def test_events_without_asyncio() -> None:
    with dm.Agent(dm.testing.ScriptedProvider(HELLO)) as agent:
        events = agent.stream_sync("Hello")
        assert_type(events, Iterator[dm.TurnEvent])
        assert "".join(describe(event) for event in events) == "Hello"


def test_a_prompt_may_have_parts() -> None:
    image = dm.Blob("image/png", sha256="0" * 64, size=1)
    assert_type(image, dm.Blob)
    model = dm.testing.ScriptedProvider(HELLO)
    with dm.Agent(model) as agent:
        agent.run_sync([dm.Text("What is"), "this?"])
    message = model.requests[0].messages[-1]
    assert_type(message, dm.Message)
    assert message.text.endswith("this?")


def test_what_can_go_wrong_has_a_type(tmp_path: Path) -> None:
    with dm.Agent(dm.testing.ScriptedProvider(HELLO), budget=Account(Budget(requests=1, usd=None)), session=tmp_path) as agent:
        agent.run_sync("Hello")
        assert reason_of(agent) == "requests"
        assert agent.account is not None
        assert_type(agent.account.spent, Spending)
        assert agent.account.spent.requests == 1


def reason_of(agent: dm.Agent) -> str:
    try:
        return agent.run_sync("Again").text
    except BudgetExceeded as error:
        assert_type(error.exit_code, int)
        return assert_type(error.budget, str)
    except InUse as error:
        return assert_type(error.session_id, str)
    except (NoSession, OutputInvalid, RateLimited, dm.ProviderError, dm.DragomanError) as error:
        return f"{error.key} {assert_type(error.exit_code, int)}"


def test_sessions_are_kept_and_gone_on_with(tmp_path: Path) -> None:
    store: Store = FileStore(tmp_path)
    options = dm.SessionOptions(store, key="user-42")
    with dm.Agent(dm.testing.ScriptedProvider(HELLO), session=options) as agent:
        agent.run_sync("Hello")
        assert_type(agent.session_id, str)
        text = agent.history.to_json()
    assert_type(text, str)
    history = dm.History.from_json(text)
    assert_type(history, dm.History)
    with dm.Agent(dm.testing.ScriptedProvider(HELLO), session=history) as agent:
        assert_type(agent.history.entries[0], dm.Entry)
        assert_type(agent.history.request, dm.Request)
        assert_type(agent.plan(), dm.Plan)
    assert [summary.session_id for summary in store.list()]


def test_everything_an_agent_can_be_set_up_with(tmp_path: Path) -> None:
    answers = AnswerPolicy(attempts=1, allow_empty_end=True)
    limits = dm.Limits(max_turns=3, answers=answers, loop=LoopLimits(same_call=9, polled=("mcp__ci__*",)), budget=Budget(tokens=10_000))
    agent = dm.Agent(
        dm.testing.ScriptedProvider(HELLO),
        system="You are brief.",
        tools=dm.ToolOptions(builtin=["read_file"], calling="native"),
        workspace=dm.WorkspaceOptions(tmp_path, include=[tmp_path], describe=False),
        approval="plan",
        session=None,
        settings=dm.Settings(temperature=0, max_output_tokens=100, thinking=dm.Thinking(budget_tokens=10)),
        limits=limits,
        context=dm.ContextSettings(),
        fallback=FallbackOptions([dm.testing.ScriptedProvider(HELLO)]),
        budget=Budget(requests=2),
    )
    with agent:
        assert_type(agent, dm.Agent[None, str])
        assert_type(agent.limits, dm.Limits)
        assert_type(agent.model, str)
        assert_type(agent.provider, dm.Provider)
        assert agent.run_sync("Hello").text == "Hello"
