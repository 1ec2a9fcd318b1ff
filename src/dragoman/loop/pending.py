"""The calls that wait for a person's decision, or for a result from outside. They are on the record, so they outlive the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from dragoman.values.calls import Intent, PendingCall
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.view import View
    from dragoman.loop.session import Session
    from dragoman.values.messages import ToolCall


def pending_calls(view: View) -> tuple[PendingCall, ...]:
    """In call order."""
    return tuple(_pending_call(view, call) for call in view.open_calls if call.id in view.postponed)


def leave_pending(session: Session) -> tuple[PendingCall, ...]:
    """The run ends with these. What a budget was charged for calls that have not begun is given back: it is charged when they do."""
    view = session.history.view
    if session.purse is not None:
        begun = {call_id for call_id, entry in view.postponed.items() if entry.waits_for == "result"}
        session.purse.give_calls_back({call.id for call in view.open_calls} - begun)
    return pending_calls(view)


def refuse_pending(view: View) -> NoReturn:
    """Raises InputError. A new prompt does not answer them: somebody may be looking at the question just now, and would
    then decide about a call that is gone."""
    calls = ", ".join(f"{each.name} ({each.id})" for each in pending_calls(view))
    raise InputError(say("loop.calls_wait", calls=calls))


def _pending_call(view: View, call: ToolCall) -> PendingCall:
    entry = view.postponed[call.id]
    intent = Intent(entry.title, entry.preview, entry.writes, guarded=entry.guarded, outside=entry.outside)
    return PendingCall(call, intent, entry.waits_for, call.id in view.decided, entry.arguments or call.arguments)
