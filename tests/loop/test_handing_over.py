"""Handing a conversation over: a tool returns an agent, which goes on with the same record, also after a restart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.errors import LoopDetected
from dragoman.events import HandedOver, TurnEvent
from dragoman.loop.budget import Account
from dragoman.options import Budget, Limits
from dragoman.record import Configured
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.profile import Profile
from dragoman.values.usage import Prices
from loop.together_service import in_loop, playing
from program import PROTOCOLS

CAPTAIN, PURSER = "You are the captain.", "You are the purser."


@dm.tool(read_only=True)
def count(what: str) -> str:
    """Count something."""
    return f"12 {what}"


def handing_to(agent: dm.Agent[Any, Any], name: str = "to_purser") -> Any:
    @dm.tool(name=name)
    def hand() -> dm.Agent[Any, Any]:
        """Hand over to somebody else."""
        return agent

    return hand


def configured(agent: dm.Agent[Any, Any]) -> list[tuple[str, str]]:
    return [(entry.agent, entry.system) for entry in agent.history.entries if isinstance(entry, Configured)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_loop
async def test_the_next_request_is_the_other_agents(protocol: str) -> None:
    scripts = {
        CAPTAIN: "call: to_purser {}",
        PURSER: 'call: count {"what": "coins"}\n---\ntext: There are twelve.\n---\ntext: Still twelve.',
    }
    async with playing(scripts, protocol) as (provider, server):
        purser = dm.Agent(provider, name="purser", system=PURSER, tools=[count], settings=dm.Settings(max_output_tokens=4_000))
        captain = dm.Agent(provider, system=CAPTAIN, tools=[handing_to(purser)])
        run, events = captain.run("How much have we got?"), list[TurnEvent]()
        async for event in run:
            events.append(event)
        (over,) = [event for event in events if isinstance(event, HandedOver)]
        assert over.name == run.result.agent == captain.held_by == "purser"
        assert run.result.text == "There are twelve."
        assert (await captain.run("And now?")).text == "Still twelve."
        assert len(server.requests) == 4
        assert configured(captain) == [("", CAPTAIN), ("purser", PURSER)]
        request = captain.history.request
        assert [spec.name for spec in request.tools] == ["count"]
        assert request.settings.max_output_tokens == 4_000
        assert purser.history.entries == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_loop
async def test_after_a_restart_the_conversation_goes_on_with_whom_it_is_handed_to(protocol: str, tmp_path: Path) -> None:
    scripts = {CAPTAIN: "call: to_purser {}\n---\ntext: I have it again.", PURSER: "text: Twelve.\n---\ntext: Still twelve."}
    async with playing(scripts, protocol) as (provider, server):

        def make(**session: Any) -> tuple[dm.Agent[Any, Any], dm.Agent[Any, Any]]:
            purser = dm.Agent(provider, name="purser", system=PURSER, tools=[count])
            options = dm.SessionOptions(tmp_path, **session)
            return dm.Agent(provider, system=CAPTAIN, tools=[handing_to(purser)], session=options), purser

        captain, _ = make()
        async with captain:
            await captain.run("How much have we got?")
            before = captain.history.request
        captain, purser = make(resume="latest")
        async with captain:
            assert captain.held_by == "purser"
            assert captain.history.request == before
            captain.hand_over(purser)
            assert len(configured(captain)) == 2  # what the record says already is not said again
            result = await captain.run("And now?")
            assert (result.text, result.agent) == ("Still twelve.", "purser")
            assert captain.history.request.system == PURSER
        captain, _ = make(resume="latest")
        async with captain:  # nobody handed it over here: whoever resumes it has it
            result = await captain.run("Who is there?")
            assert (result.text, result.agent) == ("I have it again.", "")
            assert captain.history.request.system == CAPTAIN
        assert len(server.requests) == 4


@in_loop
async def test_another_model_goes_on_and_each_answer_costs_what_its_model_costs() -> None:
    cheap, dear = Profile(prices=Prices(1.0, 1.0)), Profile(prices=Prices(100.0, 100.0))
    purser = dm.Agent(
        ScriptedProvider("text: Twelve.\nusage: fresh=10 output=10", name="dear", model="two", profile=dear), name="purser", system=PURSER
    )
    first = ScriptedProvider("call: to_purser {}\nusage: fresh=10 output=10", name="cheap", model="one", profile=cheap)
    captain = dm.Agent(first, system=CAPTAIN, tools=[handing_to(purser)])
    run = captain.run("How much?")
    models = [event.model async for event in run if isinstance(event, dm.events.TurnStarted | HandedOver)]
    assert models == ["cheap/one", "dear/two", "dear/two"]
    assert run.result.cost_usd == pytest.approx(20 * 1e-6 + 20 * 100e-6)
    assert captain.cost_usd(captain.history.entries) == pytest.approx(run.result.cost_usd)
    assert captain.model == "two"
    assert purser.history.entries == []


@in_loop
async def test_going_back_before_it_gives_the_conversation_back() -> None:
    model = ScriptedProvider("text: Hello.\n---\ncall: to_purser {}\n---\ntext: Mine again.")
    purser = dm.Agent(ScriptedProvider("text: Twelve.", name="other"), name="purser", system=PURSER)
    captain = dm.Agent(model, system=CAPTAIN, tools=[handing_to(purser)])
    await captain.run("Hello?")
    seq = captain.history.entries[-1].seq
    await captain.run("How much?")
    assert captain.held_by == "purser"
    captain.rewind(seq)
    result = await captain.run("How much?")
    assert (result.text, captain.held_by, captain.history.request.system) == ("Mine again.", "", CAPTAIN)


@in_loop
async def test_it_may_be_handed_back_and_not_for_ever() -> None:
    purser = dm.Agent(ScriptedProvider("\n---\n".join(["call: to_captain {}"] * 30)), name="purser", system=PURSER)
    captain = dm.Agent(
        ScriptedProvider("\n---\n".join(["call: to_purser {}"] * 30)),
        name="captain",
        system=CAPTAIN,
        tools=[handing_to(purser)],
        limits=Limits(max_hand_overs=4),
    )
    purser.tools.register(handing_to(captain, "to_captain"))
    run = captain.run("How much?")
    names = [event.name async for event in run if isinstance(event, HandedOver)]
    assert names == ["purser", "captain", "purser", "captain"]
    assert run.result.error_type == LoopDetected.__name__
    assert not captain.history.view.open_calls
    assert [name for name, _ in configured(captain)] == ["captain", "purser", "captain", "purser", "captain"]


@in_loop
async def test_the_value_that_was_asked_for_is_asked_of_the_other_agent() -> None:
    @dataclass
    class Sum:
        coins: int

    purser = dm.Agent(ScriptedProvider('call: final_answer {"coins": 12}\n---\ncall: final_answer {"coins": 13}'), name="purser")
    captain = dm.Agent(ScriptedProvider("call: to_purser {}"), tools=[handing_to(purser)], output=Sum)
    assert (await captain.run("How much?")).output == Sum(12)
    assert (await captain.run("And now?")).output == Sum(13)
    assert "final_answer" not in captain.tools
    assert "final_answer" not in purser.tools


@in_loop
async def test_limits_and_budgets_stay_the_callers() -> None:
    account = Account(Budget(requests=2))
    purser = dm.Agent(ScriptedProvider('call: count {"what": "coins"}\n---\ntext: Twelve.'), name="purser", tools=[count])
    captain = dm.Agent(ScriptedProvider("call: to_purser {}"), tools=[handing_to(purser)], budget=account)
    run = captain.run("How much?")
    async for _ in run:
        pass
    assert run.result.error_type == "BudgetExceeded"
    assert account.spent.requests == 2


@in_loop
async def test_two_agents_without_names_are_told_apart() -> None:
    one = dm.Agent(ScriptedProvider("call: to_two {}"), system="one")
    two = dm.Agent(ScriptedProvider("text: Two here."), system="two")
    one.tools.register(handing_to(two, "to_two"))
    captain = dm.Agent(ScriptedProvider("call: to_one {}"), tools=[handing_to(one, "to_one")])
    result = await captain.run("Go.")
    assert (result.text, result.agent) == ("Two here.", "to_two")
    assert [name for name, _ in configured(captain)] == ["", "to_one", "to_two"]


@in_loop
async def test_a_called_agent_may_hand_its_own_conversation_over() -> None:
    purser = dm.Agent(ScriptedProvider("text: Twelve."), name="purser")
    mate = dm.Agent(ScriptedProvider("call: to_purser {}"), tools=[handing_to(purser)])
    captain = dm.Agent(ScriptedProvider('call: mate {"prompt": "Ask."}\n---\ntext: Twelve, I hear.'), tools=[mate.as_tool("mate", "…")])
    result = await captain.run("How much?")
    assert (result.text, result.agent, captain.held_by) == ("Twelve, I hear.", "", "")
    assert result.requests == 4
