"""Functions of an embedder's own: plain ones are tools too, plan mode runs none that may change something, and having to call ends."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import pydantic
import pytest

import dragoman as dm
from dragoman.errors import LoopDetected, TurnLimit
from dragoman.options import LoopLimits, ToolOptions
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


class Voyage(pydantic.BaseModel):
    harbour: str
    days: int = pydantic.Field(ge=1, description="how long")


def plan(voyage: Voyage, crew: Annotated[int, pydantic.Field(ge=2)], notes: list[str] | None = None) -> list[Voyage]:
    """Plan a voyage."""
    return [voyage, Voyage(harbour="home", days=crew)]


def test_pydantic_models_are_parameters_and_results() -> None:
    made = dm.tool(plan)
    schema = json.loads(made.spec.parameters)
    assert schema["properties"]["voyage"]["properties"]["days"] == {
        "description": "how long",
        "minimum": 1,
        "title": "Days",
        "type": "integer",
    }
    assert schema["properties"]["crew"]["minimum"] == 2
    script = 'call: plan {"voyage": {"harbour": "Sur", "days": 3}, "crew": 2}\n---\ntext: Planned.'
    provider = ScriptedProvider(script)
    assert outcomes(dm.Agent(provider, tools=[plan])) == ["finished"]
    (result,) = provider.requests[1].messages[-1].results
    assert json.loads(result.text) == [{"harbour": "Sur", "days": 3}, {"harbour": "home", "days": 2}]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [('{"voyage": {"harbour": "Sur", "days": 0}, "crew": 2}', "days"), ('{"voyage": {"harbour": "Sur", "days": 3}, "crew": 1}', "crew")],
)
def test_what_pydantic_refuses_is_told_to_the_model(arguments: str, told: str) -> None:
    provider = ScriptedProvider(f"call: plan {arguments}\n---\ntext: Well.")
    assert outcomes(dm.Agent(provider, tools=[plan])) != ["finished"]
    (result,) = provider.requests[1].messages[-1].results
    assert result.is_error
    assert told in result.text


def poll(times: int, *, polled: bool, limits: dm.Limits | None = None) -> dm.Result:
    left = times

    def status(build: str) -> str:
        """How a build stands."""
        nonlocal left
        left -= 1
        return "running" if left else "done"

    script = f'answer: times={times}\ncall: status {{"build": "7"}}\n---\ntext: It is done.'
    agent = dm.Agent(ScriptedProvider(script), tools=[dm.tool(status, read_only=True, polled=polled)], limits=limits or dm.Limits())
    with agent:
        return agent.run_sync("Wait for build 7.")


def test_a_tool_may_be_polled_as_often_as_there_are_turns() -> None:
    """M12: with native tools, the same call ten times ended the run, and nothing could be done about it for one tool."""
    assert poll(30, polled=True).text == "It is done."
    with pytest.raises(LoopDetected):
        poll(30, polled=False)
    with pytest.raises(TurnLimit):
        poll(30, polled=True, limits=dm.Limits(max_turns=20))
    assert poll(30, polled=False, limits=dm.Limits(loop=LoopLimits(polled=("stat*",)))).text == "It is done."
