"""Going back: the conversation to an earlier moment, and files to how they were. The record keeps everything."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.loop.history import History
from dragoman.sessions.restore import restore
from dragoman.sessions.undo import changes_after, changes_of_last_run, plan_undo
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.record import FilesChanged


def undo(history: History, blobs: BlobStore, runs: int, *, force: bool) -> tuple[str, ...]:
    """Undo what tools did to files in the last runs. Returns the paths that were changed by it."""
    return _put_back(history, blobs, changes_of_last_run(history.entries, runs), force=force)


def rewind(history: History, blobs: BlobStore, seq: int, *, files: bool, force: bool) -> tuple[str, ...]:
    """Go back to how things stood after entry `seq`. Returns the paths of files that were put back."""
    entry = next((entry for entry in history.entries if entry.seq == seq), None)
    if entry is None:
        raise InputError(f"there is no entry {seq}: the last is {history.entries[-1].seq if history.entries else 0}")
    changed = _put_back(history, blobs, changes_after(history.entries, seq), force=force) if files else ()
    history.rewind(entry)
    return changed


def _put_back(history: History, blobs: BlobStore, changes: Sequence[FilesChanged], *, force: bool) -> tuple[str, ...]:
    plan = plan_undo(changes, blobs)
    if not plan.changes:
        return ()
    restored = restore(plan, force=force)
    history.restore_files(plan.changes)
    return tuple(file.path for file in restored.files)
