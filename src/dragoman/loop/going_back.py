"""Going back: files as they were before the last runs, and the conversation as it stood after an entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import undo_bounds
from dragoman.sessions.restore import restore
from dragoman.sessions.undo import changes_after, changes_of_last_run, plan_undo
from dragoman.values.errors import InputError
from dragoman.values.record import FilesChanged
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.harness import Harness


def undo(harness: Harness, runs: int, *, force: bool) -> tuple[str, ...]:
    """Undo what tools did to files in the last runs. Returns the paths that were changed by it."""
    _note_beside(harness)
    return _put_back(harness, changes_of_last_run(harness.session.history.entries, runs), force=force)


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
    if session.log is not None:
        session.log.note_folders(plan.folders)
    restored = restore(plan, force=force)
    session.history.restore_files(plan.changes, restored.files)
    return tuple(file.path for file in restored.files)
