"""Functions of an embedder's own: plain ones are tools too, plan mode runs none that may change something, and having to call ends."""

from __future__ import annotations

import asyncio

import dragoman as dm
from dragoman.options import ToolOptions
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import ToolCallFinished

SCRIPT = 'call: depth {"harbour": "Muscat"}\n---\ntext: Deep enough.'


def depth(harbour: str) -> str:
    """How deep a harbour is."""
    return f"{harbour}: 12 m"


def outcomes(agent: dm.Agent) -> list[str]:
    async def go() -> list[str]:
        async with agent:
            return [event.outcome async for event in agent.run("Is it deep?") if isinstance(event, ToolCallFinished)]

    return asyncio.run(go())


def test_a_plain_function_is_a_tool() -> None:
    provider = ScriptedProvider(SCRIPT)
    assert outcomes(dm.Agent(provider, tools=[depth])) == ["finished"]
    (spec,) = [tool for tool in provider.requests[0].tools if tool.name == "depth"]
    assert spec.description == "How deep a harbour is."
    assert not spec.read_only
    assert outcomes(dm.Agent(ScriptedProvider(SCRIPT), tools=ToolOptions([depth], builtin=False))) == ["finished"]


def test_plan_mode_runs_no_function_that_may_change_something() -> None:
    assert outcomes(dm.Agent(ScriptedProvider(SCRIPT), tools=[depth], approval="plan")) == ["refused"]
    reading = dm.tool(depth, read_only=True)
    assert outcomes(dm.Agent(ScriptedProvider(SCRIPT), tools=[reading], approval="plan")) == ["finished"]


def test_a_model_that_must_call_may_answer_when_it_has_called() -> None:
    """It had to call in every round, so the run never ended by itself."""
    provider = ScriptedProvider(SCRIPT)
    settings = dm.Settings(tool_choice="required")
    assert outcomes(dm.Agent(provider, tools=[depth], settings=settings)) == ["finished"]
    assert [request.settings.tool_choice for request in provider.requests] == ["required", "auto"]
