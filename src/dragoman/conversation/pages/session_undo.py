"""`dragoman sessions undo`: restores the files that the last run changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import folders_of, imported_changes, undo_bounds
from dragoman.sessions.leftovers import WritingNote
from dragoman.sessions.restore import UndoRefused, restore
from dragoman.sessions.undo import changes_of_last_changing_run, plan_undo
from dragoman.values.errors import InputError
from dragoman.values.record import FilesRestored
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.store import StoredSession


def undo_last_run(session: StoredSession, name: str, memory_file: str, *, force: bool) -> str:
    """All files or none. The undo is recorded in the session, so that a second undo undoes the run before.

    Only files in the session's folders are touched, and `memory_file`, where the memory tool writes. `name`: of the session.
    """
    entries = session.loaded.entries
    changes = changes_of_last_changing_run(entries)
    if not changes:
        return say("undo_nothing_but_imported" if imported_changes(entries) else "undo_nothing", session=name) + "\n"
    bounds = undo_bounds(folders_of(entries), memory_file, is_guarded, entries)
    plan = plan_undo(changes, session.blobs, bounds)
    writing = WritingNote(session.note)
    writing.add(plan.folders)
    try:
        restored = restore(plan, force=force)
    except UndoRefused as refused:
        raise InputError(_refusal_words(refused)) from refused
    finally:
        writing.remove()
    session.journal.append(FilesRestored(entries[-1].seq + 1, now_ms(), tuple(change.seq for change in plan.changes), restored.files))
    lines = [say("undo_restored" if file.after else "undo_removed", path=one_line(file.path, 300)) for file in restored.files]
    lines += [say("undo_left", path=one_line(each.path, 300), reason=each.reason) for each in restored.left]
    return "\n".join([*lines, say("undo_done", session=name, count=len(restored.files), path=session.path)]) + "\n"


def _refusal_words(refused: UndoRefused) -> str:
    shown = "; ".join(f"{one_line(each.path, 200)}: {each.reason}" for each in refused.shown)
    more = "; …" if len(refused.conflicts) > len(refused.shown) else ""
    force = say(_force_words(refused)) if refused.can_force else ""
    return say("undo_refused", conflicts=shown + more, force=force)


def _force_words(refused: UndoRefused) -> str:
    """What force would do: undo these as well, or leave them out and undo the rest."""
    return "undo_force" if any(each.can_force for each in refused.conflicts) else "undo_force_rest"
