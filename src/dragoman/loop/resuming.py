"""A run that goes on with calls that waited: what was decided goes on the record, then the calls run, then the model is asked.

Written ahead: a decision is on disk before its call starts, and every call of such a batch is noted before it runs. A process that dies
in between leaves a call that is decided and has not begun, which the next resume runs, or one that has begun, which is never run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.loop.harness import Harness
from dragoman.loop.options import RunOptions
from dragoman.loop.result import T
from dragoman.loop.run import Run
from dragoman.tools.job import CallReport, finished_event
from dragoman.tools.results import add_edit_note, add_repair_note, finish_in, prepare_to_send
from dragoman.tools.returned import to_output
from dragoman.values.calls import Allow, Deny, Later, ToolOutput
from dragoman.values.errors import InputError
from dragoman.values.events import ToolCallRequested, ToolCallUpdated, TurnEvent
from dragoman.values.messages import ToolCall, ToolResult, tool_result
from dragoman.values.parts import INTERRUPTED
from dragoman.values.record import Entry, ToolDecided, ToolFinished, ToolOutcome, ToolPostponed
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.history import History
    from dragoman.loop.typed_answer import TypedAnswer


class ResumedRun(Run[T]):
    """What `agent.resume()` returns."""

    def __init__(
        self,
        harness: Harness,
        options: RunOptions,
        typed: TypedAnswer[T] | None,
        decisions: Mapping[str, Allow | Deny],
        results: Mapping[str, Any],
    ) -> None:
        super().__init__(harness, None, options, typed)
        self._decisions = dict(decisions)
        self._results = dict(results)
        self._decided: dict[str, Allow | Deny] = {}

    async def _begin(self) -> None:
        check_answers(self._history, self._decisions, self._results)
        if self._history.view.postponed:
            if self._session.log is not None:
                self._session.log.begin(self._session, self._harness.directories)
            await self._go_on()
        if not self._pending:
            await super()._begin()

    async def _go_on(self) -> None:
        """Run what may run now. A call that is not decided holds up what it held up before."""
        self._close_begun()
        told = await self._take_results()
        view = self._history.view
        for call_id, decision in self._decisions.items():
            self._history.decide_tool(call_id, decision)
        await self._accept()
        calls, waiting = view.open_calls, view.postponed.keys() - view.decided.keys()
        self._decided = {call_id: _decision_of(entry) for call_id, entry in view.decided.items()}
        going_on = [call for call in calls if call.id not in waiting]
        self._requested.update(call.id for call in going_on)
        for event in (*told, *map(ToolCallRequested, going_on)):
            self._emit(event)
        self._scheduler = self._harness.scheduler(self._emit, self._decide)
        self._check_for_loops(await self._carry_out(calls, waiting))

    def _close_begun(self) -> None:
        """Calls that a process began and did not end: they may have taken effect."""
        begun = frozenset(self._history.view.started)
        for call in self._history.view.open_calls:
            if call.id in begun:
                self._harness.ledger.finish_tool(tool_result(call, INTERRUPTED, is_error=True), "unknown")

    async def _take_results(self) -> list[TurnEvent]:
        """Record the results that came from outside. Returns what to tell of them, once they are on disk."""
        postponed, told = self._history.view.postponed, list[TurnEvent]()
        waited = [(call, postponed[call.id]) for call in self._history.view.open_calls if call.id in self._results]
        outputs = [await _output_for(entry, self._results[call.id], self._harness) for call, entry in waited]
        for (call, entry), output in zip(waited, outputs, strict=True):
            result = ToolResult(call.id, call.name, output.content, output.is_error)
            outcome: ToolOutcome = "failed" if output.is_error else "finished"
            finish_in(self._harness.ledger, result, outcome, output, entry.repairs)
            report = CallReport(call, result, outcome, output)
            self._reports.append(report)
            told.append(ToolCallUpdated(call.id, "error" if output.is_error else "success"))
            told.append(finished_event(report, entry.repairs, entry.arguments))
        return told

    def _decide(self, call: ToolCall) -> Allow | Deny | Awaitable[Allow | Deny | Later]:
        decision = self._decided.pop(call.id, None)
        approvals = self._harness.approvals
        if decision is None:
            return approvals.decide(call)
        waited = self._history.view.postponed.get(call.id)
        return approvals.apply(call, decision, waited.preview if waited is not None else "")


def check_answers(history: History, decisions: Mapping[str, object], results: Mapping[str, object]) -> None:
    """Raises InputError where a decision or a result does not belong to a call that waits for it."""
    if both := decisions.keys() & results.keys():
        raise InputError(say("loop.decided_and_answered", id=min(both)))
    for call_id, decision in decisions.items():
        if not isinstance(decision, Allow | Deny):
            raise InputError(say("loop.not_a_decision", id=call_id, given=repr(decision)[:80]))
        entry = _waiting_entry(history, call_id)
        if entry.waits_for == "result":
            raise InputError(say("loop.waits_for_result", id=call_id, name=entry.name))
        if call_id in history.view.decided:
            raise InputError(say("loop.decided_already", id=call_id, name=entry.name))
    for call_id, value in results.items():
        entry = _waiting_entry(history, call_id)
        if entry.waits_for == "decision":
            raise InputError(say("loop.waits_for_decision", id=call_id, name=entry.name))
        if isinstance(value, Later):
            raise InputError(say("loop.not_a_result", id=call_id, name=entry.name))


def _waiting_entry(history: History, call_id: str) -> ToolPostponed:
    entry = history.view.postponed.get(call_id)
    if entry is not None:
        return entry
    is_over = any(_is_about(entry, call_id) for entry in history.entries)
    raise InputError(say("loop.call_over" if is_over else "loop.call_unknown", id=repr(call_id)[:80]))


def _is_about(entry: Entry, call_id: str) -> bool:
    if isinstance(entry, ToolFinished):
        return entry.result.call_id == call_id
    return isinstance(entry, ToolPostponed) and entry.call_id == call_id


def _decision_of(entry: ToolDecided) -> Allow | Deny:
    return Allow(entry.arguments, entry.remember) if entry.allowed else Deny(entry.reason)


async def _output_for(entry: ToolPostponed, value: object, harness: Harness) -> ToolOutput:
    """A value from outside as if the tool had returned it."""
    output = await prepare_to_send(await to_output(value, entry.name), entry.name, harness.outputs)
    if entry.repairs:
        return add_repair_note(output, entry.repairs)
    return add_edit_note(output, entry.arguments) if entry.arguments else output
