"""What a command would throw away, in words: for the question, for the model, and for the user."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.base.visible import escape_hidden
from dragoman.loop.kept_work import KeptWork, Lost
from dragoman.policy.discarding import Discarded, find_discards
from dragoman.policy.guarded_files import is_guarded
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.calls import Intent
from dragoman.words import say

SHOWN = 8
# Told to the model.
_REFUSAL = (
    "the command was not run: it throws away work that git does not hold ({names}), {kept}, and nobody can be asked here. Commit it or "
    "move it aside first, or leave this to the user and say which command they should run. A rule of theirs can allow it beforehand."
)
_NOTE = "Before it ran, copies were kept of the uncommitted work that it throws away: {names}. An undo by the user brings it back."


def find_lost(intent: Intent, work: KeptWork | None, directories: Sequence[str]) -> Discarded | None:
    """The work that a command would throw away; None: nothing. `work`: None where the session is not kept, and no copies are."""
    discards = find_discards(intent.command, intent.directory or directories[0])
    if not discards:
        return None
    looking = work or KeptWork(lambda: directories, is_guarded, MemoryBlobs())
    lost = looking.lost_by(discards, directories[0])
    if work is None:
        looking.close()
    if lost is None:
        return None
    return describe(Lost(lost.names, lost.not_kept or ("" if work is not None else str(say("loop.lost_not_saved")))))


def describe(lost: Lost) -> Discarded:
    names = list_names(lost.names)
    is_kept = not lost.not_kept
    why = say("loop.discards_kept", names=names) if is_kept else say("loop.discards_lost", names=names, reason=lost.not_kept)
    kept = "which only a person may allow" if is_kept else f"of which no copy is kept because {lost.not_kept}"
    return Discarded(
        str(why), _REFUSAL.format(names=names, kept=kept), _NOTE.format(names=names), str(say("loop.discards_done", names=names)), is_kept
    )


def list_names(names: Sequence[str]) -> str:
    """The first few by name, and how many there are."""
    shown = ", ".join(escape_hidden(name, one_line=True) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else str(say("loop.lost_and_more", names=shown, more=len(names) - SHOWN, count=len(names)))
