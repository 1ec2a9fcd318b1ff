"""How a run ends on the record: one result for each open call, as much of an answer as a person saw, and what became of the run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dragoman.loop.harness import Harness
from dragoman.loop.history import History
from dragoman.loop.result import Result, event_of
from dragoman.tools.scheduler import Scheduler
from dragoman.values.errors import BudgetExceeded, Cancelled, Refused
from dragoman.values.events import NoticeGiven, ToolCallFinished, ToolCallUpdated, TurnEvent
from dragoman.values.messages import ToolCall, tool_result
from dragoman.values.partial import Arrived
from dragoman.values.parts import says_something
from dragoman.values.record import AttemptFailed, Entry, RunEnded, RunOutcome
from dragoman.words import say

CANCELLED = "Cancelled by the user before it was run."
CANCELLED_RUNNING = "Cancelled by the user while it ran: it may have taken effect in part. Check before you rely on it."
ENDED = "The run failed before this was run."
ENDED_RUNNING = "The run failed while this ran: it may have taken effect in part. Check before you rely on it."
MOST_ERROR_CHARS = 2_000
"""How much is kept of what a service says about an error."""
STILL_RUNNING = "It did not stop when told to, and may still be running."


def record_end(
    harness: Harness,
    error: Exception,
    arrived: Arrived | None,
    before: Entry | None,
    scheduler: Scheduler | None,
    requested: Collection[str] | None,
) -> list[TurnEvent]:
    """What the error of a run leaves on the record; returns what to tell of it. `before` stood before the prompt, if that has to be taken
    back where it is refused; `requested` are the calls that were told, or None where the run had not begun."""
    history = harness.session.history
    if isinstance(error, Cancelled | BudgetExceeded) and arrived is not None:
        record_stopped(history, arrived)
    told = take_back(history, before) if isinstance(error, Refused) and before is not None else []
    if requested is None:
        return told
    return told + close_calls(harness, scheduler, requested, by_user=isinstance(error, Cancelled))


def record_attempt(history: History, attempt: int, words: str, wait_s: float = 0.0, model: str = "") -> None:
    """Record a request that failed, before it is made again."""
    history.append(AttemptFailed(*history.stamp(), attempt, words[:MOST_ERROR_CHARS], wait_s, model))


def record_outcome(history: History, outcome: RunOutcome, result: Result[Any], error: BaseException | None) -> RunEnded:
    """Record what became of a run and what it took. The error is kept as a person is told it."""
    ended = RunEnded(
        *history.stamp(),
        outcome,
        error=result.error_type,
        words=event_of(error).message[:MOST_ERROR_CHARS] if isinstance(error, Exception) else "",
        exit_code=result.exit_code,
        turns=result.turns,
        requests=result.requests,
        cost_usd=result.cost_usd,
        is_cost_least=result.usage.incomplete > 0,
        duration_ms=result.duration_ms,
    )
    return history.append(ended)


def record_stopped(history: History, arrived: Arrived) -> None:
    """What a person stopped stays in view as far as it came: they have read it, and what they say next may be about it."""
    if says_something(arrived.message()):
        history.answer(arrived.response("cancelled"), sent_ms=arrived.sent_ms, first_ms=arrived.first_ms)
    else:
        record_broken(history, arrived, "broken off")
    arrived.finish()


def record_broken(history: History, arrived: Arrived, reason: str, *, may_have_cost: bool = True) -> None:
    """What came of an answer that broke off is recorded, and rejected; where nothing came, what it took."""
    usage = arrived.usage(may_have_cost=may_have_cost)
    if arrived.message().parts:
        said = history.answer(arrived.response("broken off"), sent_ms=arrived.sent_ms, first_ms=arrived.first_ms)
        history.reject(said, reason)
    elif usage is not None:
        history.spend(history.view.model, usage)


def take_back(history: History, before: Entry | None) -> list[TurnEvent]:
    """A prompt that was refused outright leaves the view: with it in there, whatever is asked next would be refused as well. It stays on
    the record, and the user is told."""
    if before is None:
        return []
    history.rewind(before)
    return [NoticeGiven("prompt", str(say("loop.prompt_taken_back")))]


def close_calls(harness: Harness, scheduler: Scheduler | None, requested: Collection[str], *, by_user: bool) -> list[TurnEvent]:
    """Record the results. Returns the events for the calls that were announced before, which are `requested`."""
    events: list[TurnEvent] = []
    for call in harness.session.history.view.open_calls:
        closed = tool_result(call, _text_for(call, scheduler, by_user=by_user), is_error=True)
        harness.ledger.finish_tool(closed, "cancelled")
        if call.id in requested:
            events.append(ToolCallUpdated(call.id, "cancelled"))
            finished = ToolCallFinished(call.id, (closed,), error="cancelled", error_type="cancelled", outcome="cancelled", name=call.name)
            events.append(finished)
    return events


def _text_for(call: ToolCall, scheduler: Scheduler | None, *, by_user: bool) -> str:
    running = scheduler is not None and call.id in scheduler.started
    text = (CANCELLED_RUNNING if running else CANCELLED) if by_user else (ENDED_RUNNING if running else ENDED)
    return f"{text} {STILL_RUNNING}" if scheduler is not None and call.id in scheduler.abandoned else text
