"""Which files are still in the model's context. A file that dropped out must be read again before it may be replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.context.view import View
from dragoman.values.messages import Text
from dragoman.values.record import Entry, ToolFinished


def files_in_context(view: View, entries: Iterable[Entry]) -> set[str]:
    """Absolute paths: shown by a result that is in view and not pruned, or by a prompt; or written whole by a call that is in view."""
    results = {outcome.result.call_id for outcome in view.outcomes if not outcome.result.is_error}
    calls = {call.id for item in view.items for call in item.message.calls} & results
    finished = {entry.result.call_id: entry for entry in entries if isinstance(entry, ToolFinished)}  # of an id used twice, the last
    found = {
        part.attached.path for item in view.items for part in item.message.parts if isinstance(part, Text) and part.attached is not None
    }
    for call_id in calls & finished.keys():
        found.update(finished[call_id].wrote)
        if call_id not in view.pruned:
            found.update(finished[call_id].saw)
    return found


def files_in_part(view: View, call_ids: Iterable[str]) -> set[str]:
    """Absolute paths of which these results, now pruned, showed lines that nothing in the context shows any more."""
    from dragoman.context.superseded import files_shown, no_longer_shown

    gone, pruned = frozenset(call_ids), view.pruned
    shown = [(outcome.result.call_id, files_shown(outcome.call, outcome.result, outcome.saw, outcome.wrote)) for outcome in view.outcomes]
    return no_longer_shown([files for id, files in shown if id in gone & pruned], [files for id, files in shown if id not in pruned])
