"""The scheduler under every interleaving: finish order, failures, answers, cancels, and how long the disk takes.

Nothing sleeps. Tools, questions and syncs wait until the test lets them go on, one at a time and in any order; whenever nothing moves
any more, the oracle looks at what was allowed to happen and at what had to happen. It knows the plan of each call and the trace of what
came about, and nothing of how the scheduler works.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoman.tools.registry import Registry
from dragoman.tools.scheduler import CallReport, Scheduler
from dragoman.values.calls import Allow, Deny, Intent, Show, ToolOutput
from dragoman.values.errors import ToolBroken
from dragoman.values.events import ToolCallConfirmation, ToolCallFinished, ToolCallUpdated, TurnEvent
from dragoman.values.messages import Text, ToolCall, ToolResult, ToolSpec
from dragoman.values.record import ToolOutcome
from virtual_time import run_in_virtual_time

MAX_PARALLEL = 2
often = settings(max_examples=max(200, settings.default.max_examples))
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "edited": {"type": "boolean"}}, "required": ["id"]}
EDITED = '{"id": "%s", "edited": true}'


@dataclass(frozen=True)
class Plan:
    """What a call is like. Only a call that is well-formed gets as far as a decision, only an allowed one as far as its behaviour."""

    kind: str
    decision: str
    behaviour: str

    @property
    def is_called(self) -> bool:
        return self.kind in ("read", "write")

    @property
    def is_barrier(self) -> bool:
        return self.kind in ("write", "bad write", "impossible write")

    @property
    def is_asked(self) -> bool:
        return self.decision.startswith("ask")

    @property
    def is_allowed(self) -> bool:
        return self.is_called and self.decision in ("allow", "ask: allow", "ask: edit")

    @property
    def ending(self) -> ToolOutcome:
        """How it ends if nobody cancels it."""
        if not self.is_called:
            return "failed"
        if not self.is_allowed:
            return "refused"
        return "finished" if self.behaviour in ("succeed", "talkative", "stubborn", "reluctant") else "failed"

    @property
    def ignores_cancel(self) -> bool:
        """A stubborn tool does not stop at all, a reluctant one may still return before it is given up."""
        return self.behaviour in ("stubborn", "reluctant")


KINDS = st.sampled_from(["read"] * 4 + ["write"] * 3 + ["unknown", "bad read", "bad write", "impossible write"])
DECISIONS = st.sampled_from(["allow"] * 4 + ["deny", "raise", "ask: allow", "ask: allow", "ask: edit", "ask: deny", "ask: raise"])
BEHAVIOURS = ["succeed", "succeed", "talkative", "fail", "raise", "stubborn", "reluctant", "answers cancel"]


@dataclass
class World:
    """What surrounds the scheduler, and the trace of what happened in it."""

    plans: dict[str, Plan]
    gated_sync: bool
    trace: list[tuple[str, str]] = field(default_factory=list)
    tools: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    questions: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    syncs: list[asyncio.Future[None]] = field(default_factory=list)
    events: list[TurnEvent] = field(default_factory=list)
    results: dict[str, tuple[ToolResult, ToolOutcome]] = field(default_factory=dict)
    starts: dict[str, str] = field(default_factory=dict)
    beginnings: list[str] = field(default_factory=list)
    """Of calls that only read."""
    arguments: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def note(self, what: str, call_id: str = "") -> None:
        self.trace.append((what, call_id))

    def when(self, what: str, call_id: str = "") -> int | None:
        """Where in the trace it happened."""
        return next((at for at, entry in enumerate(self.trace) if entry == (what, call_id)), None)

    def happened(self, what: str, call_id: str) -> bool:
        return self.when(what, call_id) is not None

    # --- what the scheduler is given

    def decide(self, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny]:
        self.note("decided", call.id)
        match self.plans[call.id].decision:
            case "allow":
                return Allow()
            case "deny":
                return Deny("no")
            case "raise":
                raise OSError("no rules")
        return self._ask(call)

    async def _ask(self, call: ToolCall) -> Allow | Deny:
        self.note("asked", call.id)
        self.questions[call.id] = asyncio.get_running_loop().create_future()
        try:
            await self.questions[call.id]
        finally:
            del self.questions[call.id]
        self.note("answered", call.id)
        match self.plans[call.id].decision:
            case "ask: allow":
                return Allow()
            case "ask: edit":
                return Allow(EDITED % call.id)
            case "ask: deny":
                return Deny("no")
        raise EOFError("the terminal is gone")

    def emit(self, told: TurnEvent) -> None:
        self.events.append(told)
        match told:
            case ToolCallUpdated(call_id=call_id, state=state, output_delta=delta):
                self.note("output" if delta else state, call_id)
            case ToolCallFinished(call_id=call_id):
                self.note("told", call_id)
            case ToolCallConfirmation(call=call):
                self.note("confirmation", call.id)

    def start_tool(self, call: ToolCall, arguments: str = "", *, outside: bool = False, read_only: bool = False) -> None:
        if read_only:
            return self.beginnings.append(call.id)
        self.note("recorded start", call.id)
        self.starts[call.id] = arguments

    def finish_tool(
        self, result: ToolResult, outcome: ToolOutcome = "finished", display: str = "", extras: str = "", **files: tuple[str, ...]
    ) -> None:
        self.note("recorded end", result.call_id)
        assert result.call_id not in self.results, "a second result"
        self.results[result.call_id] = (result, outcome)

    async def sync(self) -> None:
        upto = len(self.trace)
        if self.gated_sync:
            gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.syncs.append(gate)
            try:
                await gate
            finally:
                self.syncs.remove(gate)
        self.trace.append(("synced", str(upto)))

    def is_synced(self, since: int, before: int) -> bool:
        """Whether a sync that began after `since` ended before `before`."""
        return any(what == "synced" and int(upto) > since for what, upto in self.trace[since:before])


class Tools:
    """One tool that reads and one that writes; what they do is the plan of the call."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self.spec = ToolSpec.of(name, "", SCHEMA, read_only=name == "read")

    def intend(self, args: Mapping[str, Any]) -> Intent:
        plan = self._world.plans[args["id"]]
        self._world.note("looked", args["id"])
        return Intent("title", problem="it cannot work" if plan.kind == "impossible write" else "")

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        world, call_id = self._world, args["id"]
        plan = world.plans[call_id]
        world.note("began", call_id)
        world.arguments[call_id] = args
        world.tools[call_id] = asyncio.get_running_loop().create_future()
        try:
            return await self._act(plan, call_id, show)
        finally:
            world.tools.pop(call_id, None)
            world.note("ended", call_id)

    async def _act(self, plan: Plan, call_id: str, show: Show) -> ToolOutput:
        gate = self._world.tools[call_id]
        while True:
            try:
                await asyncio.shield(gate)
                break
            except asyncio.CancelledError:
                if plan.behaviour == "answers cancel":
                    return ToolOutput((Text("half"),), changed=("/half",))
                if not plan.ignores_cancel:
                    raise
                self._world.note("ignored a cancel", call_id)
        if plan.ignores_cancel or plan.behaviour == "talkative":
            show("output")
        if plan.behaviour == "break":
            self._world.note("broke", call_id)
            raise ToolBroken("no space left")
        if plan.behaviour == "raise":
            raise ValueError("bad luck")
        return ToolOutput((Text(f"result of {call_id}"),), is_error=plan.behaviour in ("fail", "answers cancel"))


# --- driving it


class Story:
    """One batch, from its first call to its end, in an order that is drawn."""

    def __init__(self, data: st.DataObject, *, max_cancels: int = 0, cut: bool = False, may_break: bool = False) -> None:
        self._data = data
        behaviours = st.sampled_from([*BEHAVIOURS, *["break"] * (3 * may_break)])
        plans = data.draw(st.lists(st.builds(Plan, KINDS, DECISIONS, behaviours), min_size=1, max_size=8), label="plans")
        self.ids = [f"c{number}" for number in range(len(plans))]
        self.world = World(dict(zip(self.ids, plans, strict=True)), data.draw(st.booleans(), label="the disk takes its time"))
        registry = Registry([Tools(self.world, "read"), Tools(self.world, "write")])
        self.scheduler = Scheduler(registry, self.world, self.world.decide, self.world.emit, max_parallel=MAX_PARALLEL)
        self.calls = [self._call(call_id, plan) for call_id, plan in self.world.plans.items()]
        self.cancels_left = max_cancels
        self.cut_after = data.draw(st.integers(0, 12), label="the run is cancelled after") if cut else None
        self.cancelled: set[str] = set()
        self.was_cut = self.disk_hangs = self.was_broken = False
        self.reports: tuple[CallReport, ...] | None = None

    def _call(self, call_id: str, plan: Plan) -> ToolCall:
        name = "nothing" if plan.kind == "unknown" else plan.kind.split()[-1]
        return ToolCall(call_id, name, f'{{"id": "{call_id}"}}' if not plan.kind.startswith("bad") else '{"id": 1}')

    async def live(self) -> None:
        task = asyncio.create_task(self.scheduler.run(self.calls))
        for step in range(300):
            if not self._moves() or self._data.draw(st.booleans(), label="all come to rest"):
                await self._settle(task)
                if not task.done():
                    check_progress(self.world, self.ids, self.cancelled)
            else:
                for _ in range(self._data.draw(st.integers(1, 5), label="steps")):
                    await asyncio.sleep(0)
            if task.done():
                break
            if step == self.cut_after:
                await self._cut(task)
                break
            await self._move()
        assert task.done(), "it never ends"
        try:
            self.reports = task.result()
        except asyncio.CancelledError:
            assert self.was_cut
        except ToolBroken:
            self.was_broken = True
        told = len(self.world.events)
        await self._let_the_abandoned_end()
        assert len(self.world.events) == told, "an abandoned call is still heard"

    async def _cut(self, task: asyncio.Task[Any]) -> None:
        loop, world = asyncio.get_running_loop(), self.world
        self.disk_hangs = world.gated_sync and self._data.draw(st.booleans(), label="the disk hangs")
        if not self.disk_hangs:
            world.gated_sync = False
            for gate in world.syncs:
                gate.set_result(None)
        before_s = loop.time()
        self.was_cut = task.cancel()
        world.note("cut")
        await asyncio.wait([task], timeout=5)
        await self.scheduler.close_ended()
        assert loop.time() - before_s <= 1.0, "a cancel takes less than a second"

    async def _settle(self, task: asyncio.Task[Any]) -> None:
        """Until nothing moves. Twice the length of the trace standing still is more than any chain of wake-ups takes."""
        still = 0
        while still < 12 and not task.done():
            before = len(self.world.trace)
            await asyncio.sleep(0)
            still = still + 1 if len(self.world.trace) == before else 0

    def _moves(self) -> list[tuple[str, str]]:
        world = self.world
        stuck = {each for each in world.tools if each in self.cancelled and world.plans[each].behaviour == "stubborn"}
        moves = [("tool", each) for each, gate in world.tools.items() if not gate.done() and each not in stuck]
        moves += [("question", each) for each, gate in world.questions.items() if not gate.done()]
        moves += [("sync", str(at)) for at, gate in enumerate(world.syncs) if not gate.done()]
        open_calls = [each for each in self.ids if not world.happened("told", each)]
        return moves + [("cancel", each) for each in open_calls if self.cancels_left]

    async def _move(self) -> None:
        """One thing that can happen, happens."""
        world, moves = self.world, self._moves()
        if not moves:
            await asyncio.sleep(0.1)  # only a timer can help: the one after which a stubborn tool is abandoned
            return
        what, which = self._data.draw(st.sampled_from(moves), label="next")
        match what:
            case "tool":
                world.tools[which].set_result(None)
            case "question":
                world.questions[which].set_result(None)
            case "sync":
                world.syncs[int(which)].set_result(None)
            case "cancel":
                self.cancels_left -= 1
                could_be = not {which} & {*world.results, *self.cancelled} and not world.happened("ended", which)
                if self.scheduler.cancel(which):
                    assert could_be, "what has ended, or is being ended, cannot be cancelled"
                    self.cancelled.add(which)
                    world.note("cancel", which)

    async def _let_the_abandoned_end(self) -> None:
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert len(others) <= sum(plan.ignores_cancel for plan in self.world.plans.values()), "tasks are left behind"
        for gate in list(self.world.tools.values()):
            if not gate.done():
                gate.set_result(None)
        if others:
            await asyncio.wait(others, timeout=5)
        assert asyncio.all_tasks() == {asyncio.current_task()}


# --- the tests: one for each kind of trouble, and in each all properties hold


@often
@given(data=st.data())
def test_calls_end_in_any_order_and_answers_come_in_any(data: st.DataObject) -> None:
    check_all(lived(data))


@often
@given(data=st.data())
def test_single_calls_are_cancelled(data: st.DataObject) -> None:
    check_all(lived(data, max_cancels=4))


@often
@given(data=st.data())
def test_the_run_is_cancelled(data: st.DataObject) -> None:
    check_all(lived(data, max_cancels=1, cut=True))


@often
@given(data=st.data())
def test_a_tool_is_broken(data: st.DataObject) -> None:
    check_all(lived(data, max_cancels=1, may_break=True))


def lived(data: st.DataObject, **troubles: Any) -> Story:
    async def main() -> Story:
        story = Story(data, **troubles)
        await story.live()
        return story

    story = run_in_virtual_time(main())
    gc.collect(0)  # what nobody retrieved or awaited complains now
    return story


def check_all(story: Story) -> None:
    check_results(story)
    check_barriers(story)
    check_company(story)
    check_ledger(story)
    check_states(story)
    check_endings(story)
    check_breaking(story)


# --- the oracle: what had to happen by now


def check_progress(world: World, ids: list[str], cancelled: set[str]) -> None:
    """When nothing moves, everything that may happen has: reads run side by side, and open questions hold up nobody else."""
    if world.syncs:
        return  # something waits for the disk, and what follows from it is not due yet
    closed = {each for each in ids if world.happened("told", each)}
    executing = [each for each in ids if world.happened("began", each) and each not in closed]
    for position, call_id in enumerate(ids):
        plan, before = world.plans[call_id], ids[:position]
        if call_id in closed:
            continue
        if call_id in cancelled:
            assert world.happened("ignored a cancel", call_id), "a call that was cancelled is told at once"
            continue
        assert plan.is_called or (plan.kind == "impossible write" and not barriers_done(world, before)), "what cannot run is told at once"
        if not barriers_done(world, before):
            continue
        assert world.happened("decided", call_id), "it may be decided, and is not"
        if plan.is_asked:
            assert world.happened("asked", call_id), "nobody was asked"
            if not world.happened("answered", call_id):
                continue
        assert plan.is_allowed, "a refused call is told at once"
        if plan.kind == "write" and not set(before) <= closed:
            continue
        assert world.happened("began", call_id) or len(executing) >= MAX_PARALLEL, "it may run, and does not"


def barriers_done(world: World, before: list[str]) -> bool:
    return all(world.happened("told", each) for each in before if world.plans[each].is_barrier)


# --- the oracle: what must be so in the end


def check_results(story: Story) -> None:
    """Each call has exactly one result, and the reports stand in call order."""
    recorded = [report.call.id for report in story.scheduler.reports]
    assert recorded == [each for each in story.ids if each in story.world.results]
    if story.reports is not None:
        assert [report.call for report in story.reports] == story.calls
        assert {report.result.call_id: (report.result, report.outcome) for report in story.reports} == story.world.results
    else:
        assert story.was_cut or (story.was_broken and recorded == story.ids)


def check_barriers(story: Story) -> None:
    """A barrier is never overtaken: not by a run, and not by a question either."""
    world = story.world
    for position, call_id in enumerate(story.ids):
        for earlier in story.ids[:position]:
            done = world.when("told", earlier) or len(world.trace)
            if world.plans[earlier].is_barrier:
                steps = [world.when(step, call_id) for step in ("looked", "decided", "asked", "confirmation", "began")]
                assert all(at is None or at > done for at in steps), f"{call_id} did not wait for {earlier}"
            elif world.plans[call_id].kind == "write":
                began = world.when("began", call_id)
                assert began is None or began > done, f"{call_id} ran before {earlier} was done"


def check_company(story: Story) -> None:
    """A write runs alone, and reads are few enough. What was abandoned counts as over: nobody can know when it really ends."""
    running: set[str] = set()
    for what, call_id in story.world.trace:
        if what == "began":
            running.add(call_id)
        elif what in ("ended", "recorded end"):
            running.discard(call_id)
        assert not any(story.world.plans[each].kind == "write" for each in running) or len(running) == 1
        assert len(running) <= MAX_PARALLEL


def check_ledger(story: Story) -> None:
    """What is run is on disk before it runs, and what is told before it is told."""
    world = story.world
    for call_id, plan in world.plans.items():
        marked = plan.kind == "write" or plan.decision == "ask: edit"
        assert marked or call_id not in world.starts
        for first, then in (("recorded start", "began" if marked else ""), ("recorded end", "told")):
            if (after := world.when(then, call_id)) is not None:
                before = world.when(first, call_id)
                assert before is not None
                assert before < after
                assert world.is_synced(before, after)


STEPS = {"validating": "v", "awaiting_approval": "a", "confirmation": "c", "scheduled": "s", "executing": "e", "output": "o"}
STEPS |= {"success": "+", "error": "-", "cancelled": "x", "refused": "r", "told": "."}
MACHINE = re.compile(r"v(-|x|r|(ac)?(-|x|r|s(x|eo*[+x-])))\.")
CUT_OFF = re.compile(r"(v((ac)?(s(eo*)?)?)?)?")


def check_states(story: Story) -> None:
    """TOOLS-1: validating → awaiting_approval → scheduled → executing → success | error | cancelled | refused, each told once."""
    world = story.world
    for call_id, plan in world.plans.items():
        steps = "".join(STEPS[what] for what, each in world.trace if each == call_id and what in STEPS)
        assert ("e" in steps) == world.happened("began", call_id) == (call_id in story.scheduler.started)
        assert ("a" in steps) <= (plan.is_called and plan.is_asked)
        if call_id not in world.results or (story.disk_hangs and not world.happened("told", call_id)):
            assert story.was_cut
            assert CUT_OFF.fullmatch(steps), steps
        else:
            assert MACHINE.fullmatch(steps), steps
            assert steps[-2] == {"finished": "+", "failed": "-", "refused": "r", "cancelled": "x"}[world.results[call_id][1]]
            event(steps.replace("o", ""))


def check_endings(story: Story) -> None:
    """Each call ends as its plan, the cancels and the end of the run say, and the model is told so."""
    world = story.world
    for call_id, plan in world.plans.items():
        began = world.happened("began", call_id)
        assert plan.is_allowed or not began, "it was not allowed"
        if call_id not in world.results:
            assert call_id in story.cancelled or not ended_by_itself(world, call_id), "it had ended, and its result is lost"
            continue
        result, outcome = world.results[call_id]
        text = "".join(part.text for part in result.content if isinstance(part, Text))
        assert result.is_error == (outcome != "finished")
        if call_id in story.cancelled:
            assert outcome == "cancelled"
            assert "The user cancelled this call" in text
        elif outcome != "cancelled":
            assert outcome == plan.ending
        else:
            assert story.was_broken or (story.was_cut and (plan.behaviour == "answers cancel" or plan.ignores_cancel))
        if outcome == "cancelled":
            assert ("It had not started" in text) == (not began)
            assert ("may have taken effect" in text) == (plan.kind == "write" and began)
            assert ("may still be running" in text) <= world.happened("ignored a cancel", call_id)
            assert ("returned:\nhalf" in text) == (began and plan.behaviour == "answers cancel")
        if outcome == "finished":
            assert text.endswith(f"result of {call_id}")
        check_edit(world, call_id, text)


def ended_by_itself(world: World, call_id: str) -> bool:
    """Before anyone cut it off, that is."""
    ended = world.when("ended", call_id)
    return ended is not None and ended < (world.when("cut") or 0)


def check_edit(world: World, call_id: str, text: str) -> None:
    """What a person changed is what runs, is on the record, and is told."""
    edited = world.plans[call_id].decision == "ask: edit" and world.happened("scheduled", call_id)
    assert text.startswith("The arguments of this call were changed before it ran, to " + EDITED % call_id) == edited
    if world.happened("began", call_id):
        assert world.arguments[call_id] == ({"id": call_id, "edited": True} if edited else {"id": call_id})
        assert world.starts.get(call_id, "") == (EDITED % call_id if edited else "")


def check_breaking(story: Story) -> None:
    """A broken tool ends the run: what had not begun never does, what was at work is ended, and the error goes out last."""
    world = story.world
    broken = [each for what, each in world.trace if what == "broke" and each not in story.cancelled]
    assert story.was_broken == bool(broken)
    if not broken:
        return
    seen = min(world.when("recorded end", each) or 0 for each in broken)
    at_work: set[str] = set()
    for what, call_id in world.trace[:seen]:
        if what == "began":
            at_work.add(call_id)
        elif what == "ended":
            at_work.discard(call_id)
    assert all(world.results[each][1] == "cancelled" for each in at_work)
    assert all(what != "began" for what, _ in world.trace[seen:])
