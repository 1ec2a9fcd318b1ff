"""`dragoman sessions undo` and `redo`: restore the files that the last run changed, and take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import UndoBounds, folders_of, imported_changes, undo_bounds
from dragoman.sessions.leftovers import WritingNote
from dragoman.sessions.restore import RestoreResult, UndoRefused, restore
from dragoman.sessions.undo import UndoPlan, changes_of_last_changing_run, plan_redo, plan_undo, undos_to_redo
from dragoman.values.errors import InputError
from dragoman.values.record import FilesRestored
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.store import StoredSession

_Act = Literal["undo", "redo"]


def undo_last_run(session: StoredSession, name: str, memory_file: str, *, force: bool) -> str:
    """All files or none. The undo is recorded in the session, so that a second undo undoes the run before.

    Only files in the session's folders are touched, and `memory_file`, where the memory tool writes. `name`: of the session.
    """
    entries = session.loaded.entries
    changes = changes_of_last_changing_run(entries)
    if not changes:
        return say("undo_nothing_but_imported" if imported_changes(entries) else "undo_nothing", session=name) + "\n"
    plan = plan_undo(changes, session.blobs, _bounds(session, memory_file))
    restored = _carry_out(session, plan, "undo", force=force)
    session.journal.append(FilesRestored(entries[-1].seq + 1, now_ms(), tuple(change.seq for change in plan.changes), restored.files))
    return _words("undo", restored, session, name)


def redo_last_undo(session: StoredSession, name: str, memory_file: str, *, force: bool) -> str:
    """All files of the last undo that was not redone, or none. The redo is recorded too, so that a second one redoes the undo before."""
    entries = session.loaded.entries
    undos = undos_to_redo(entries)
    if not undos:
        return say("redo_nothing", session=name) + "\n"
    undo = undos[-1]
    restored = _carry_out(session, plan_redo(undo, session.blobs, _bounds(session, memory_file)), "redo", force=force)
    session.journal.append(FilesRestored(entries[-1].seq + 1, now_ms(), undo.seqs, restored.files, undo.seq))
    return _words("redo", restored, session, name)


def _bounds(session: StoredSession, memory_file: str) -> UndoBounds:
    entries = session.loaded.entries
    return undo_bounds(folders_of(entries), memory_file, is_guarded, entries)


def _carry_out(session: StoredSession, plan: UndoPlan, act: _Act, *, force: bool) -> RestoreResult:
    writing = WritingNote(session.note)
    writing.add(plan.folders)
    try:
        return restore(plan, force=force)
    except UndoRefused as refused:
        raise InputError(_refusal_words(refused, act)) from refused
    finally:
        writing.remove()


def _words(act: _Act, restored: RestoreResult, session: StoredSession, name: str) -> str:
    lines = [say(f"{act}_restored" if file.after else f"{act}_removed", path=one_line(file.path, 300)) for file in restored.files]
    lines += [say("undo_left", path=one_line(each.path, 300), reason=each.reason) for each in restored.left]
    return "\n".join([*lines, say(f"{act}_done", session=name, count=len(restored.files), path=session.path)]) + "\n"


def _refusal_words(refused: UndoRefused, act: _Act) -> str:
    shown = "; ".join(f"{one_line(each.path, 200)}: {each.reason}" for each in refused.shown)
    more = "; …" if len(refused.conflicts) > len(refused.shown) else ""
    force = ""
    if refused.can_force:  # these as well, or without them
        force = say(f"{act}_force" if any(each.can_force for each in refused.conflicts) else f"{act}_force_rest")
    return say(f"{act}_refused", conflicts=shown + more, force=force)
