"""The user's choice about one result in the context: drop it, keep it, or undo the choice. Each choice is an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.values.errors import InputError
from dragoman.values.record import Kept, Pruned
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.plan_items import PlanItem
    from dragoman.loop.history import History
    from dragoman.loop.upkeep import Upkeep

ASKED = "asked"
"""The reason of a Pruned entry that a person chose."""


def drop(upkeep: Upkeep, history: History, seq: int) -> int:
    """A placeholder stands for the result of this entry from now on. Returns how many tokens shorter the next request is."""
    item = _result(upkeep, seq)
    if item.state == "pruned":
        return 0
    before = upkeep.size.tokens
    upkeep.room.prune((item.call_id,), item.tokens, ASKED, 0, lambda event: None)
    if item.call_id not in history.view.pruned:
        raise InputError(say("loop.too_short_to_drop", seq=seq))
    return max(before - upkeep.size.tokens, 0)


def keep(upkeep: Upkeep, history: History, seq: int) -> int:
    """The result of this entry stays whole: no rule prunes it, and if it had been, it is back. Returns how many tokens came back."""
    return _show_whole(history, _result(upkeep, seq), held=True)


def undo_choice(upkeep: Upkeep, history: History, seq: int) -> int:
    """Take back the last choice about the result of this entry. Returns by how many tokens the next request grows; less than 0: shrinks."""
    item = _result(upkeep, seq)
    last = _last_choice(history, item.call_id)
    match last:
        case Kept(held=True, restored_tokens=restored) if restored:
            history.append(Kept(*history.stamp(), (item.call_id,), held=False))
            before = upkeep.size.tokens
            upkeep.room.prune((item.call_id,), restored, ASKED, 0, lambda event: None)
            return upkeep.size.tokens - before
        case Kept(held=True) | Pruned():
            return _show_whole(history, item, held=False)
        case _:
            raise InputError(say("loop.nothing_chosen", seq=seq))


def _show_whole(history: History, item: PlanItem, *, held: bool) -> int:
    restored = max(item.whole_tokens - item.tokens, 1) if item.state == "pruned" else 0
    history.append(Kept(*history.stamp(), (item.call_id,), held, restored))
    return restored


def _last_choice(history: History, call_id: str) -> Pruned | Kept | None:
    for entry in reversed(history.entries):
        if isinstance(entry, Pruned | Kept) and call_id in entry.call_ids:
            return entry
    return None


def _result(upkeep: Upkeep, seq: int) -> PlanItem:
    found = [item for item in upkeep.plan().items if item.seq == seq and item.state in ("kept", "pruned")]
    result = next((item for item in found if item.kind == "result" and item.call_id), None)
    if result is None:
        raise InputError(say("loop.no_result_there" if found else "loop.not_in_context", seq=seq))
    return result
