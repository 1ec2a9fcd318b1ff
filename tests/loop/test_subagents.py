"""Agents as tools: over the loopback service, in every protocol."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dragoman as dm
from dragoman.errors import BudgetExceeded, InputError
from dragoman.events import StreamEvent, SubagentEvent, ToolCallUpdated, TurnEvent, TurnFinished, UserCancelled
from dragoman.loop.budget import Account
from dragoman.loop.harness import Harness
from dragoman.options import Budget, Limits
from dragoman.record import Spent, Started, ToolFinished
from dragoman.sessions.store import FileStore
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import run_at_work
from dragoman.values.profile import Profile
from dragoman.values.usage import Prices, Usage
from loop.together_service import in_loop, playing
from program import PROTOCOLS

CAPTAIN, SCOUT = "You are the captain.", "You are a scout."


@dm.tool(read_only=True)
def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def scripted(script: str, **options: Any) -> ScriptedProvider:
    return ScriptedProvider(script, **options)


def calling(name: str = "scout", prompt: str = "Look around.", answer: str = "Aye.") -> str:
    return f'call: {name} {{"prompt": "{prompt}"}}\n---\ntext: {answer}'


def results_of(agent: dm.Agent[Any, Any]) -> dict[str, ToolFinished]:
    return {entry.result.call_id: entry for entry in agent.history.entries if isinstance(entry, ToolFinished)}


def text_of(finished: ToolFinished) -> str:
    return "".join(part.text for part in finished.result.content if isinstance(part, dm.Text))


def innermost(event: TurnEvent) -> tuple[tuple[str, ...], TurnEvent]:
    names: tuple[str, ...] = ()
    while isinstance(event, SubagentEvent):
        names, event = (*names, event.name), event.event
    return names, event


# --- over HTTP


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_loop
async def test_three_at_once_one_fails_one_is_cancelled(protocol: str) -> None:
    all_began, began = asyncio.Event(), set[str]()

    @dm.tool(read_only=True)
    async def reach(place: str) -> str:
        """Reach a place."""
        began.add(place)
        if len(began) == 2:
            all_began.set()
        await (all_began.wait() if place == "east" else asyncio.Event().wait())
        return f"reached {place}"

    scripts = {
        CAPTAIN: """
call: scout {"prompt": "Go east."}
call: scout {"prompt": "Go north."}
call: scout {"prompt": "Go west."}
usage: fresh=100 output=10
---
text: One of three came back.
usage: fresh=200 output=20
""",
        "Go east.": 'call: reach {"place": "east"}\nusage: fresh=30 output=3\n---\ntext: All clear.\nusage: fresh=40 output=4',
        "Go north.": 'error: 400 "The pass is closed"',
        "Go west.": 'call: reach {"place": "west"}\nusage: fresh=50 output=5',
    }
    async with playing(scripts, protocol) as (provider, _):
        scout = dm.Agent(provider, system=SCOUT, tools=[reach])
        captain = dm.Agent(provider, system=CAPTAIN, tools=[scout.as_tool("scout", "Send a scout.")])
        run, events = captain.run("Where can we land?"), list[TurnEvent]()
        calls: list[str] = []
        async for event in run:
            events.append(event)
            if isinstance(event, dm.ToolCallRequested):
                calls.append(event.call.id)
            if (
                all_began.is_set()
                and isinstance(event, SubagentEvent)
                and event.call_id == calls[0]
                and isinstance(event.event, TurnFinished)
            ) and run.cancel_call(calls[2]):
                all_began.clear()
        result = run.result

    assert result.text == "One of three came back."
    assert not result.error
    east, north, west = (results_of(captain)[call] for call in calls)
    assert text_of(east) == "All clear."
    assert east.outcome == "finished"
    assert north.result.is_error
    assert "The pass is closed" in text_of(north)
    assert west.outcome == "cancelled"

    assert (result.usage.fresh_tokens, result.usage.output_tokens) == (100 + 200 + 30 + 40 + 50, 10 + 20 + 3 + 4 + 5)
    spent = [entry for entry in captain.history.entries if isinstance(entry, Spent)]
    by_call = {call: sum((entry.usage for entry in spent if entry.call_id == call), Usage()) for call in calls}
    assert [by_call[call].fresh_tokens for call in calls] == [70, 0, 50]
    assert {entry.what for entry in spent} == {"scout"}
    prices = provider.profile(provider.model).prices
    assert prices is not None
    paid = [(100, 10), (200, 20), (30, 3), (40, 4), (50, 5)]
    assert result.cost_usd == pytest.approx(sum(prices.cost_usd(Usage(fresh, output_tokens=out)) for fresh, out in paid))
    assert result.requests == 2 + 2 + 1 + 1

    inner = [event for event in events if isinstance(event, SubagentEvent)]
    assert {event.call_id for event in inner} == set(calls)
    assert {event.name for event in inner} == {"scout"}
    assert [event.event for event in inner if event.call_id == calls[2]][-1] == UserCancelled()
    assert scout.history.entries == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_loop
async def test_a_kept_session_keeps_the_inner_conversation_and_links_it(protocol: str, tmp_path: Path) -> None:
    scripts = {CAPTAIN: calling(), SCOUT: 'call: look {"at": "the bay"}\n---\ntext: A quiet bay.'}
    async with playing(scripts, protocol) as (provider, _):
        scout = dm.Agent(provider, system=SCOUT, tools=[look])
        async with dm.Agent(provider, system=CAPTAIN, tools=[scout.as_tool("scout", "Send one.")], session=tmp_path) as captain:
            result = await captain.run("Where can we land?")
            (call,) = results_of(captain)
            session_id = captain.session_id
    store = FileStore(tmp_path)
    assert result.text == "Aye."
    (inner,) = [summary for summary in store.list() if summary.parent]
    assert inner.parent == session_id
    assert store.find("latest", ".").session_id == session_id
    entries = store.read(inner.path).entries
    assert isinstance(entries[0], Started)
    assert entries[0].parent_call == call
    said = dm.History(entries=entries)
    assert said.view.messages[-1].text == "A quiet bay."
    assert said.view.agent == "scout"
    (spent,) = {entry.session_id for entry in captain.history.entries if isinstance(entry, Spent)}
    assert spent == inner.session_id
    assert sum((entry.usage for entry in captain.history.entries if isinstance(entry, Spent)), Usage()) == said.usage


KILLED = """
import asyncio, os, signal, sys
import dragoman as dm

@dm.tool(read_only=True)
def die() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

scout = dm.Agent(dm.testing.ScriptedProvider("text: On my way.\\ncall: die {}"), tools=[die])
script = 'call: scout {"prompt": "Go."}'
captain = dm.Agent(dm.testing.ScriptedProvider(script), tools=[scout.as_tool("scout", "Send one.")], session=sys.argv[1])
captain.run_sync("Where can we land?")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@in_loop
async def test_a_kill_inside_leaves_both_sessions_whole(tmp_path: Path) -> None:
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED, str(tmp_path)], cwd=tmp_path, timeout=20, check=False)
    assert done.returncode == -9
    store = FileStore(tmp_path)
    inner, outer = sorted(store.list(), key=lambda summary: not summary.parent)
    assert inner.parent == outer.session_id
    assert dm.History(entries=store.read(inner.path).entries).view.messages[-1].text == "On my way."
    options = dm.SessionOptions(tmp_path, resume=outer.session_id)
    async with dm.Agent(scripted("text: Gone."), session=options) as captain:
        assert (await captain.run("And now?")).text == "Gone."
    (finished,) = results_of(captain).values()
    assert finished.result.is_error


@in_loop
async def test_a_call_that_has_ended_leaves_nothing_behind() -> None:
    scout = dm.Agent(scripted("\n---\n".join(["text: Fine."] * 20)))
    captain = dm.Agent(scripted("\n---\n".join([calling()] * 20)), tools=[scout.as_tool("scout", "…")])
    await captain.run("Go.")
    gc.collect()
    before = sum(isinstance(each, Harness) for each in gc.get_objects())
    for _ in range(10):
        await captain.run("Again.")
    gc.collect()
    assert sum(isinstance(each, Harness) for each in gc.get_objects()) <= before


# --- what holds inside


@in_loop
async def test_events_are_nested_as_deep_as_the_agents() -> None:
    deepest = dm.Agent(scripted("text: Deep."))
    middle = dm.Agent(scripted(calling("deepest")), tools=[deepest.as_tool("deepest", "…")])
    captain = dm.Agent(scripted(calling("middle")), tools=[middle.as_tool("middle", "…")])
    run = captain.run("Go.")
    told = [innermost(event) async for event in run]
    assert (("middle", "deepest"), dm.TextDelta("Deep.")) in told
    assert (("middle",), dm.TextDelta("Aye.")) in told
    assert ((), dm.TextDelta("Aye.")) in told
    assert run.result.requests == 5


@in_loop
async def test_the_depth_is_bounded_also_in_a_circle() -> None:
    provider = ScriptedProvider(_calls_again)
    agent = dm.Agent(provider)
    agent.tools.register(agent.as_tool("again", "Call yourself."))
    result = await agent.run("Go.")
    assert result.text == "Enough."
    assert len([1 for request in provider.requests if len(request.messages) == 1]) == 1 + Limits().max_depth
    shallow = dm.Agent(ScriptedProvider(_calls_again), limits=Limits(max_depth=0))
    shallow.tools.register(shallow.as_tool("again", "Call yourself."))
    await shallow.run("Go.")
    (finished,) = results_of(shallow).values()
    assert finished.result.is_error
    assert "no deeper" in text_of(finished)


def _calls_again(request: Any) -> Any:
    from dragoman.testing.script import Script

    return Script.parse('call: again {"prompt": "Again."}' if len(request.messages) == 1 else "text: Enough.").answers[0]


@in_loop
async def test_a_value_comes_back_as_json() -> None:
    @dataclass
    class Bay:
        name: str
        depth_m: float

    scout = dm.Agent(scripted('call: final_answer {"name": "Muscat", "depth_m": 7.5}'), output=Bay)
    captain = dm.Agent(scripted(calling()), tools=[scout.as_tool("scout", "…")])
    await captain.run("Go.")
    (finished,) = results_of(captain).values()
    assert text_of(finished) == '{"name":"Muscat","depth_m":7.5}'


@in_loop
async def test_a_failed_agent_says_what_it_had() -> None:
    scout = dm.Agent(scripted('text: So far so good.\ncall: look {"at": "a"}\n---\nerror: 400 "Lost"'), tools=[look])
    captain = dm.Agent(scripted(calling()), tools=[scout.as_tool("scout", "…")])
    result = await captain.run("Go.")
    (finished,) = results_of(captain).values()
    assert finished.result.is_error
    assert "Lost" in text_of(finished)
    assert "So far so good." in text_of(finished)
    assert result.tool_failures == 1
    assert result.text == "Aye."


@in_loop
async def test_cancelling_the_outer_run_ends_the_inner_one() -> None:
    ended = asyncio.Event()

    @dm.tool(read_only=True)
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    scout = dm.Agent(scripted("call: wait {}\nusage: fresh=11 output=1"), tools=[wait])
    captain = dm.Agent(scripted(calling()), tools=[scout.as_tool("scout", "…")])
    run, inner = captain.run("Go."), list[TurnEvent]()
    async for event in run:
        if isinstance(event, SubagentEvent):
            inner.append(event.event)
            if isinstance(event.event, ToolCallUpdated) and event.event.state == "executing":
                run.cancel()
    assert ended.is_set()
    assert inner[-1] == UserCancelled()
    assert run.result.error_type == "Cancelled"
    assert sum(entry.usage.fresh_tokens for entry in captain.history.entries if isinstance(entry, Spent)) == 11


@in_loop
async def test_the_caller_pays_and_the_agent_pays_for_itself() -> None:
    priced = Profile(prices=Prices(1.0, 10.0))
    own, outer = Account(Budget(requests=10)), Account(Budget(tokens=10_000))
    scout = dm.Agent(scripted('call: look {"at": "a"}\n---\ntext: Fine.', profile=priced), tools=[look], budget=own)
    captain = dm.Agent(scripted(calling(), profile=priced), tools=[scout.as_tool("scout", "…")], budget=outer)
    result = await captain.run("Go.")
    assert own.spent.requests == 2
    assert outer.spent.requests == 4
    assert outer.spent.usage == result.usage
    assert outer.spent.usd == pytest.approx(result.cost_usd)
    assert outer.spent.tool_calls == 2


@in_loop
async def test_a_shared_account_is_charged_once() -> None:
    shared = Account(Budget(requests=10))
    scout = dm.Agent(scripted("text: Fine."), budget=shared)
    captain = dm.Agent(scripted(calling()), tools=[scout.as_tool("scout", "…")], budget=shared)
    await captain.run("Go.")
    assert shared.spent.requests == 3


@in_loop
async def test_what_the_outer_budget_has_not_the_inner_run_does_not_spend() -> None:
    scout_model = scripted('call: look {"at": "a"}\n---\ntext: Fine.')
    captain = dm.Agent(scripted(calling()), tools=[dm.Agent(scout_model, tools=[look]).as_tool("scout", "…")])
    with pytest.raises(BudgetExceeded):
        await captain.run("Go.", budget=Budget(requests=2))
    assert len(scout_model.requests) == 1
    (finished,) = results_of(captain).values()
    assert "BudgetExceeded" in text_of(finished)


@in_loop
async def test_its_own_limit_ends_the_inner_run_only() -> None:
    scout = dm.Agent(scripted("stall"), limits=Limits(budget=Budget(seconds=0.05)))
    captain = dm.Agent(scripted(calling()), tools=[scout.as_tool("scout", "…")])
    assert (await captain.run("Go.")).text == "Aye."
    (finished,) = results_of(captain).values()
    assert "seconds" in text_of(finished)


@in_loop
async def test_the_callers_ask_is_asked_where_the_agent_has_none() -> None:
    asked: list[str] = []

    @dm.tool(kind="edit")
    def mend(what: str) -> str:
        """Mend something."""
        return f"mended {what}"

    def ask_of(who: str) -> Any:
        def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow:
            asked.append(f"{who} {call.name}")
            return dm.Allow()

        return ask

    script = 'call: mend {"what": "sail"}\n---\ntext: Done.'
    for approval in (dm.ApprovalOptions(), dm.ApprovalOptions(ask=ask_of("mate"))):
        mate = dm.Agent(scripted(script), tools=[mend], approval=approval)
        captain = dm.Agent(scripted(calling("mate")), tools=[mate.as_tool("mate", "…")], approval=dm.ApprovalOptions(ask=ask_of("captain")))
        await captain.run("Go.")
    assert asked == ["captain mend", "mate mend"]


@in_loop
async def test_the_callers_deps_are_handed_on_where_the_agent_has_none() -> None:
    found: list[str] = []

    @dm.tool(read_only=True)
    async def find() -> str:
        """Find the deps of the run that this call belongs to."""
        found.append(run_at_work.get()().deps)
        return ""

    for deps in (None, "the mate's"):
        mate = dm.Agent(scripted("call: find {}\n---\ntext: Done."), tools=[find], deps=deps)
        await dm.Agent(scripted(calling("mate")), tools=[mate.as_tool("mate", "…")], deps="the captain's").run("Go.")
    assert found == ["the captain's", "the mate's"]


@in_loop
async def test_where_the_caller_only_plans_nothing_is_written() -> None:
    written: list[str] = []

    @dm.tool
    def write(what: str) -> str:
        """Write."""
        written.append(what)
        return "written"

    scout_model = scripted('call: write {"what": "log"}\n---\ntext: Done.')
    scout = dm.Agent(scout_model)
    tool = scout.as_tool("scout", "…")  # it reads only, as far as the spec says
    scout.tools.register(write)
    captain = dm.Agent(scripted(calling()), tools=[tool], approval="plan")
    await captain.run("Go.")
    assert written == []
    assert len(scout_model.requests) == 2


@in_loop
async def test_what_was_changed_about_the_template_holds_for_the_next_call() -> None:
    model = scripted("text: Fine.\n---\ntext: Fine.")
    scout = dm.Agent(model, system=SCOUT, tools=[look], settings=dm.Settings(temperature=0.5))
    captain = dm.Agent(scripted("\n---\n".join([calling()] * 2)), tools=[scout.as_tool("scout", "…")])
    await captain.run("Go.")
    scout.tools.remove("look")
    scout.settings = dm.Settings(temperature=0.1)
    await captain.run("Again.")
    first, second = model.requests
    assert [spec.name for spec in first.tools] == ["look"]
    assert second.tools == ()
    assert (first.settings.temperature, second.settings.temperature) == (0.5, 0.1)
    assert first.system == second.system == SCOUT
    assert len(first.messages) == len(second.messages) == 1


@in_loop
async def test_a_call_outside_any_run_works_too() -> None:
    tool = dm.Agent(scripted("text: Fine.")).as_tool("scout", "…")
    output = await tool.run({"prompt": "Go."}, lambda text: None)
    assert output.content == (dm.Text("Fine."),)
    assert not output.is_error
    assert (await tool.run({"prompt": " "}, lambda text: None)).is_error


def test_a_name_that_no_service_takes_is_refused() -> None:
    with pytest.raises(InputError):
        dm.Agent(scripted("")).as_tool("not a name", "…")


class Slow(dm.contracts.WrappingProvider):
    """Waits its turn: so calls end in another order than they began."""

    def __init__(self, provider: dm.Provider, waits: list[int]) -> None:
        super().__init__(provider)
        self._waits = waits

    async def stream(self, request: dm.Request) -> AsyncGenerator[StreamEvent, None]:
        for _ in range(self._waits.pop() if self._waits else 0):
            await asyncio.sleep(0)
        async for event in self.provider.stream(request):
            yield event


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_whatever_the_order_the_usage_adds_up(calls: list[tuple[int, int]]) -> None:
    """Each of several agents side by side calls a tool a few times; the total is the sum of all that was answered."""

    async def main() -> None:
        tools, models = [], []
        for number, (turns, wait) in enumerate(calls):
            model = scripted("\n---\n".join([*[f'call: look {{"at": "{n}"}}' for n in range(turns)], "text: Fine."]))
            models.append(model)
            tools.append(dm.Agent(Slow(model, [wait] * 4), tools=[look]).as_tool(f"scout_{number}", "…"))
        asked = "\n".join(f'call: scout_{number} {{"prompt": "Go."}}' for number in range(len(calls)))
        captain = dm.Agent(scripted(f"{asked}\n---\ntext: Aye."), tools=tools)
        run = captain.run("Go.")
        told = [event async for event in run]
        finished = [event.usage for _, event in map(innermost, told) if isinstance(event, TurnFinished)]
        assert run.result.usage == sum(finished, Usage())
        assert run.result.requests == len(finished)
        assert [len(model.requests) for model in models] == [turns + 1 for turns, _ in calls]

    asyncio.run(main())
