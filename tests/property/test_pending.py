"""Runs, calls that wait, decisions and kills in any order: every call has one result, and none runs twice or overtakes another.

A kill is simulated exactly: the next process finds the entries up to some point at or behind the last sync, and what a tool did counts if
the record was synced that far when it ran.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.context.repair import repair
from dragoman.contracts import Later
from dragoman.record import ToolDecided, ToolStarted
from dragoman.testing import ScriptedProvider
from dragoman.testing.script_steps import CallStep, ScriptedAnswer, answer
from dragoman.values.parts import INTERRUPTED, text_of

KINDS = ("pay", "notify", "look", "survey", "begin")
batches = st.lists(st.lists(st.sampled_from(("pay", *KINDS)), min_size=1, max_size=5), min_size=1, max_size=3)


class Disk:
    """A journal that remembers how far it was synced."""

    def __init__(self, entries: list[dm.Entry]) -> None:
        self.entries = list(entries)
        self.synced = len(entries)

    def append(self, entry: dm.Entry) -> None:
        self.entries.append(entry)

    async def sync(self) -> None:
        await asyncio.sleep(0)
        self.synced = len(self.entries)


class World:
    """What outlives the processes: the entries, what the model will still call, and what was done."""

    def __init__(self, coming: list[list[str]]) -> None:
        self.coming = coming
        self.entries: list[dm.Entry] = []
        self.done: list[tuple[int, int]] = []
        """The number of each call that changed something, and how far the record was synced when it ran."""
        self.seen: list[tuple[int, int]] = []
        """The number of each call that only read, and how many that changed something had run."""
        self.asked = 0

    def answer(self, request: object) -> ScriptedAnswer:
        """A batch, if one is left. Calls are numbered, so that each is known by its arguments."""
        if not self.coming:
            return answer("Done.")
        steps = []
        for kind in self.coming.pop(0):
            self.asked += 1
            steps.append(CallStep(kind, f'{{"number": {self.asked}}}', id=f"id-{self.asked}"))
        return answer(*steps)

    async def live(self, work: Any) -> None:
        disk = Disk(self.entries)

        def do(number: int) -> str:
            self.done.append((number, disk.synced))
            return f"did {number}"

        def look(number: int) -> str:
            self.seen.append((number, len(self.done)))
            return f"did {number}"

        async def begin(number: int) -> Later:
            do(number)
            return Later()

        tools = [
            dm.tool(do, name="pay", kind="execute"),
            dm.tool(do, name="notify"),
            dm.tool(look, read_only=True),
            dm.tool(do, name="survey", external=True),
            dm.tool(begin, name="begin"),
        ]
        history = dm.History(disk, entries=self.entries)
        ask = dm.ApprovalOptions(ask=lambda call, intent: Later())
        async with dm.Agent(ScriptedProvider(self.answer), tools=tools, approval=ask, session=history) as agent:
            await work(agent)
            assert dm.History(entries=disk.entries).request == agent.history.request
        self.entries = disk.entries

    def kill(self, at: int) -> None:
        self.entries = self.entries[:at]
        self.done = [(number, synced) for number, synced in self.done if synced <= at]
        self.seen = [(number, done) for number, done in self.seen if done <= len(self.done)]


def number_of(call: dm.ToolCall) -> int:
    return int(call.id.removeprefix("id-"))


@given(data=st.data())
def test_every_call_has_one_result_and_none_runs_twice(data: st.DataObject) -> None:
    world = World(data.draw(batches))
    for step in range(data.draw(st.integers(2, 8))):
        before = len(world.entries)
        asyncio.run(world.live(lambda agent, step=step: go_on(agent, data, step)))
        if data.draw(st.booleans(), label="killed"):
            world.kill(data.draw(st.sampled_from(moments(world.entries, before)), label="at"))
        check_order(world)
    for _ in range(30):
        asyncio.run(world.live(finish))
        if not dm.History(entries=world.entries).view.open_calls and not world.coming:
            break
    check_end(world)


def moments(entries: list[dm.Entry], before: int) -> list[int]:
    """Where it may be killed: most of all right behind a decision, or a start."""
    crucial = [place + 1 for place in range(before, len(entries)) if isinstance(entries[place], ToolStarted | ToolDecided)]
    return [*crucial, *crucial, *range(before, len(entries) + 1)]


async def go_on(agent: dm.Agent, data: st.DataObject, step: int) -> None:
    waiting = [call for call in agent.pending if not call.is_decided]
    is_new = not agent.history.view.messages
    if not agent.pending and (is_new or data.draw(st.booleans(), label="prompt")):
        await agent.run(f"Prompt {step}.")
        return
    chosen = [call for call in waiting if data.draw(st.integers(0, 3), label=call.id) < 3]
    decisions: dict[str, dm.Allow | dm.Deny] = {}
    for call in chosen:
        if call.waits_for == "decision":
            decisions[call.id] = dm.Deny("no") if data.draw(st.integers(0, 3), label="denied") == 3 else dm.Allow()
    results = {call.id: f"did {number_of(call.call)}" for call in chosen if call.waits_for == "result"}
    result = await agent.resume(decisions, results)
    assert {call.id for call in waiting} - {call.id for call in chosen} <= {call.id for call in result.pending}


async def finish(agent: dm.Agent) -> None:
    decisions = {call.id: dm.Allow() for call in agent.pending if call.waits_for == "decision" and not call.is_decided}
    results = {call.id: f"did {number_of(call.call)}" for call in agent.pending if call.waits_for == "result"}
    if agent.pending:
        await agent.resume(decisions, results)
    else:
        await agent.run("Go on.")


def check_order(world: World) -> None:
    numbers = [number for number, _ in world.done]
    assert numbers == sorted(set(numbers)), "none twice, and none before an earlier one"
    for number, done in world.seen:
        assert all(later > number for later in numbers[done:]), "what reads waits for what changes something before it"


def check_end(world: World) -> None:
    check_order(world)
    history = dm.History(entries=world.entries)
    messages = history.request.messages
    assert not [note for note in repair(messages).notes if "closing" not in note]
    names = {call.id: call.name for message in messages for call in message.calls}
    done = {number for number, _ in world.done}
    answered = {result.call_id: text_of(result.content) for message in messages for result in message.results}
    assert answered.keys() == names.keys()
    for call_id, text in answered.items():
        number, name = int(call_id.removeprefix("id-")), names[call_id]
        if text == f"did {number}" and name in ("pay", "notify", "begin"):
            assert number in done
        elif name in ("pay", "notify", "begin"):
            assert number not in done or text == INTERRUPTED
