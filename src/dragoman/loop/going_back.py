"""Going back: files as they were before the last runs or before an undo, and the conversation as it stood after an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import undo_bounds
from dragoman.sessions.restore import restore
from dragoman.sessions.undo import UndoPlan, changes_after, changes_of_last_run, plan_redo, plan_undo, undos_to_redo
from dragoman.values.errors import InputError
from dragoman.values.record import FileChange, FilesChanged, FilesRestored
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness


def undo(harness: Harness, runs: int, *, force: bool) -> tuple[str, ...]:
    """Undo what tools did to files in the last runs. Returns the paths that were changed by it."""
    _note_beside(harness)
    return _put_back(harness, changes_of_last_run(harness.session.history.entries, runs), force=force)


def redo(harness: Harness, *, force: bool) -> tuple[str, ...]:
    """Take back the last undo that can be redone. Returns the paths that were changed by it."""
    _note_beside(harness)
    session = harness.session
    undos = undos_to_redo(session.history.entries)
    if not undos:
        return ()
    bounds = undo_bounds(harness.directories, harness.memory_file, is_guarded, session.history.entries)
    files = _carry_out(harness, plan_redo(undos[-1], session.blobs, bounds), force=force)
    session.history.append(FilesRestored(*session.history.stamp(), undos[-1].seqs, files, undos[-1].seq))
    return tuple(file.path for file in files)


def rewind(harness: Harness, seq: int, *, files: bool, force: bool) -> tuple[str, ...]:
    """Go back to how things stood after entry `seq`. Returns the paths of files that were put back."""
    _note_beside(harness)
    history = harness.session.history
    entries = history.entries
    entry = next((entry for entry in entries if entry.seq == seq), None)
    if entry is None:
        raise InputError(say("loop.no_entry", seq=seq, last=entries[-1].seq if entries else 0))
    changed = _put_back(harness, changes_after(entries, seq), force=force) if files else ()
    history.rewind(entry)
    return changed


def restore_files(harness: Harness, seq: int, *, force: bool) -> tuple[str, ...]:
    """Files as they stood after entry `seq`; what was said stays. Returns the paths that were changed by it."""
    _note_beside(harness)
    return _put_back(harness, changes_after(harness.session.history.entries, seq), force=force)


def _note_beside(harness: Harness) -> None:
    """A command that goes on in the background may have changed files since the last look."""
    if harness.session.background is not None and (work := harness.kept_work) is not None and (beside := work.beside()):
        harness.session.history.change_files("", beside, unsure=True)


def _put_back(harness: Harness, changes: Sequence[FilesChanged], *, force: bool) -> tuple[str, ...]:
    session = harness.session
    bounds = undo_bounds(harness.directories, harness.memory_file, is_guarded, session.history.entries)
    plan = plan_undo(changes, session.blobs, bounds)
    if not plan.changes:
        return ()
    files = _carry_out(harness, plan, force=force)
    session.history.restore_files(plan.changes, files)
    return tuple(file.path for file in files)


def _carry_out(harness: Harness, plan: UndoPlan, *, force: bool) -> tuple[FileChange, ...]:
    if harness.session.log is not None:
        harness.session.log.note_folders(plan.folders)
    files = restore(plan, force=force).files
    if harness.session.background is not None and harness.kept_work is not None:
        harness.kept_work.note_restored(files)
    return files
