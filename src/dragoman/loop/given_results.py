"""Finds the call of each result that somebody gives who carries calls out themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dragoman.values.messages import ToolCall, ToolResult


def assign_results(calls: Sequence[ToolCall], given: Iterable[ToolResult]) -> tuple[dict[str, ToolResult], list[ToolResult]]:
    """The results of these calls, by their ids and in their order, and the results that belong to none of them.

    A result belongs to the call with its id. Without an id, or with the name of the tool in its place, as the founding documents and some
    services write it, it belongs to the first call of that name that has no result yet. It comes back under the name of its call: a service
    refuses one that names another tool.
    """
    open_calls = {call.id: call for call in calls}
    assigned: dict[str, ToolResult] = {}
    strange: list[ToolResult] = []
    for result in given:
        call = open_calls.get(result.call_id)
        if call is None and (not result.name or result.call_id in (result.name, "")):
            call = next((each for each in open_calls.values() if each.name == (result.name or result.call_id)), None)
        if call is None:
            strange.append(result)
            continue
        del open_calls[call.id]
        assigned[call.id] = msgspec.structs.replace(result, call_id=call.id, name=call.name)
    return {call.id: assigned[call.id] for call in calls if call.id in assigned}, strange
