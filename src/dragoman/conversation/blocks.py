"""ViewEvents and the blocks they are about: what all events together have left, and the event that makes one block of another.

A block is the ViewEvent that would show it at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.conversation.types import ViewEvent


def join_events(events: Iterable[ViewEvent]) -> tuple[ViewEvent, ...]:
    """What is left to show of them: one event for each block, in the order in which they came. What is passing is left out."""
    blocks: dict[str, ViewEvent] = {}
    for event in events:
        if event.passing:
            continue
        if event.state == "gone":
            blocks.pop(event.id, None)
        else:
            blocks[event.id] = _changed(blocks.get(event.id), event)
    return tuple(blocks.values())


def _changed(block: ViewEvent | None, event: ViewEvent) -> ViewEvent:
    if block is None or not event.append:
        return msgspec.structs.replace(event, append=False)
    return msgspec.structs.replace(
        event, text=block.text + event.text, append=False, state=event.state or block.state, data={**block.data, **event.data}
    )


def change_of(before: ViewEvent | None, after: ViewEvent) -> ViewEvent | None:
    """The shortest event that makes the one block the other; None if they are the same. Data is never taken away from a block."""
    if before is None or before.kind != after.kind or not after.text.startswith(before.text):
        return after
    data = {key: value for key, value in after.data.items() if key not in before.data or before.data[key] != value}
    state = after.state if after.state != before.state else ""
    if len(before.text) == len(after.text) and not data and not state:
        return None
    if before.data.keys() - after.data.keys() or (before.state and not after.state):
        return after
    return msgspec.structs.replace(after, text=after.text[len(before.text) :], append=True, state=state, data=data)
