"""Undo the changes that calls made to files: find the changes, check for conflicts, then restore all of them or nothing.

changes = changes_of_last_run(history.entries)
plan = plan_undo(changes, blobs, bounds)  # touches nothing; plan.conflicts is for a person to read
restored = restore(plan)                # or refuses, and has touched nothing
history.restore_files(plan.changes, restored.files)

A redo takes an undo back in the same way: `plan_redo(undos_to_redo(entries)[-1], blobs, bounds)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import pairwise
from os.path import dirname
from stat import S_IFMT, S_IMODE, S_ISDIR, S_ISLNK

import msgspec

from dragoman.sessions.bounds import UndoBounds, last_imported_seq
from dragoman.sessions.checkpoints import UNKNOWN, UNSURE
from dragoman.sessions.file_state import BLOCKED, NOTHING, FileState, is_hash, read_file_state
from dragoman.values.contracts import BlobStore
from dragoman.values.notes import is_note
from dragoman.values.record import (
    Entry,
    FileChange,
    FilesChanged,
    FilesKept,
    FilesRestored,
    Rewound,
    Said,
    ToolFinished,
    ToolPostponed,
    fold,
)
from dragoman.words import say

PRIVATE = 0o600
"""The mode of a restored file if its old mode is not known."""

# --- which changes -------------------------------------------------------------------------------------------------------


def file_changes(entries: Sequence[Entry]) -> list[FilesChanged]:
    """The changes that calls made to files and that were not undone, in order. What was imported does not count.

    An entry written ahead counts only if its call never ended, or if no later entry says what the call had done by its end. For a command
    after which nobody could look, all that was kept before it counts.
    """
    changes, undone = _recorded_changes(entries)
    return [change for change in changes if change.seq not in undone]


@fold("undo")
def _recorded_changes(entries: Sequence[Entry]) -> tuple[list[FilesChanged], set[int]]:
    """As `file_changes`, with those that were undone, and the seqs of these."""
    changes, ahead, undone = list[FilesChanged](), dict[str, FilesChanged](), set[int]()
    unended = dict[str, FilesKept]()
    imported = last_imported_seq(entries)
    for entry in entries:
        if entry.seq <= imported:
            continue
        match entry:
            case FilesKept(call_id=call_id):
                unended[call_id] = entry
            case FilesChanged(call_id=call_id):
                unended.pop(call_id, None)
                before = ahead.pop(call_id, None)
                if not is_written_ahead(entry):
                    changes.append(entry)
                    continue
                if before is not None:
                    changes.append(before)
                ahead[call_id] = entry
            case ToolFinished(result=result, outcome=outcome):
                before = ahead.pop(result.call_id, None)
                if before is not None and outcome in UNSURE:
                    changes.append(before)
            case ToolPostponed(call_id=call_id):
                ahead.pop(call_id, None)  # what it did before it was put off has an entry of its own
            case FilesRestored(seqs=seqs, redoes=redoes):
                (undone.difference_update if redoes else undone.update)(seqs)
            case _:
                pass
    changes += (*ahead.values(), *(_all_that_was_kept(entries, each) for each in unended.values()))
    return sorted((change for change in changes if change.files), key=lambda change: change.seq), undone


def _all_that_was_kept(entries: Sequence[Entry], last: FilesKept) -> FilesChanged:
    """What a command may have done to the files that were kept before it."""
    kept = dict[str, FileChange]()
    for entry in entries:
        if isinstance(entry, FilesKept) and entry.seq <= last.seq:
            kept = {} if entry.whole else kept
            kept |= {file.path: file for file in entry.files}
    unknown = (FileChange(file.path, file.after, UNKNOWN, S_IMODE(file.before_mode)) for file in kept.values() if file.after)
    return FilesChanged(last.seq, last.timestamp_ms, last.call_id, tuple(unknown))


def is_written_ahead(change: FilesChanged) -> bool:
    """Whether it was written before the call ran, and so does not know the outcome."""
    return any(file.after == UNKNOWN for file in change.files)


def changes_after(entries: Sequence[Entry], seq: int) -> list[FilesChanged]:
    """The changes to undo so that files are as they were after entry `seq`: a rewind that includes files."""
    return [change for change in file_changes(entries) if change.seq > seq]


def changes_of_last_run(entries: Sequence[Entry], runs: int = 1) -> list[FilesChanged]:
    """The changes since the last prompt (or the `runs`-th last) that was not rewound.

    The program's own messages during a run are not prompts. Rewound prompts do not count, but the changes made after them do:
    the files were not rewound with them.
    """
    prompts = _prompts(entries)
    return changes_after(entries, prompts[-runs] - 1 if runs <= len(prompts) else 0)


def changes_of_last_changing_run(entries: Sequence[Entry]) -> list[FilesChanged]:
    """The changes of the last run that changed files and was not undone; later runs that changed none are skipped."""
    changes = file_changes(entries)
    if not changes:
        return []
    last = changes[-1].seq
    return changes_of_last_run([each for each in entries if each.seq <= last or isinstance(each, FilesRestored | ToolFinished)])


def undos_to_redo(entries: Sequence[Entry]) -> list[FilesRestored]:
    """The undos that can be redone, the last one at the end; rewinds that put files back are among them.

    As in an editor, they end with the next change that a call makes. What somebody else changes ends none: that is refused file by file.
    """
    imported = last_imported_seq(entries)
    made = {change.seq for change in _recorded_changes(entries)[0] if not change.unsure}
    undos = list[FilesRestored]()
    for entry in entries:
        if entry.seq in made:
            undos.clear()
        elif isinstance(entry, FilesRestored) and entry.seq > imported:
            if entry.redoes:
                undos = [undo for undo in undos if undo.seq != entry.redoes]
            elif entry.files:
                undos.append(entry)
    return undos


def _prompts(entries: Sequence[Entry]) -> list[int]:
    """The seqs of the prompts that were not rewound. Of several in a row, as with the environment message, the first."""
    current = _current_seqs(entries)
    prompts, answered = list[int](), True
    for entry in entries:
        if not isinstance(entry, Said) or entry.seq not in current:
            continue
        if entry.message.role == "assistant":
            answered = True
        elif answered and not is_note(entry.about):
            prompts.append(entry.seq)
            answered = False
    return prompts


def _current_seqs(entries: Sequence[Entry]) -> set[int]:
    """The seqs that were not rewound."""
    followed, head = dict[int, int](), 0
    for entry in entries:
        followed[entry.seq] = min(entry.to_seq if isinstance(entry, Rewound) else head, entry.seq - 1)
        head = entry.seq
    current = set[int]()
    while head > 0:
        current.add(head)
        head = followed.get(head, head - 1)  # an entry is missing: continue with the one before it
    return current


# --- the plan ------------------------------------------------------------------------------------------------------------


class Conflict(msgspec.Struct, frozen=True):
    """Why a file should not be restored, or cannot be."""

    path: str
    reason: str
    can_force: bool = True
    """Whether `restore(force=True)` overrides it. Files that cannot be restored are left out then."""
    is_guarded: bool = False
    """Whether it is there only because the file is guarded. Such files are always named."""


class UndoStep(msgspec.Struct, frozen=True):
    """One file to restore."""

    path: str
    content: str
    """The SHA-256 of the content to restore; empty: the file is removed."""
    mode: int | None
    """None: keep the current mode."""
    found: FileState
    """The state when this was planned."""


class UndoPlan(msgspec.Struct, frozen=True):
    """What an undo would do. Without steps there is nothing to do: everything is as it was."""

    changes: tuple[FilesChanged, ...]
    """The changes it undoes, to be recorded afterwards. Of a redo, none."""
    steps: tuple[UndoStep, ...]
    conflicts: tuple[Conflict, ...]
    blobs: BlobStore
    is_redo: bool = False
    """Whether it takes an undo back, for what is said."""

    @property
    def folders(self) -> set[str]:
        """Where `restore` makes temporary files."""
        return {dirname(step.path) for step in self.steps}


def plan_undo(changes: Iterable[FilesChanged], blobs: BlobStore, bounds: UndoBounds) -> UndoPlan:
    """Plan how to get from the current state to the one before these changes. Reads files and changes nothing."""
    changes = tuple(sorted(changes, key=lambda change: change.seq))
    chains: dict[str, list[FileChange]] = {}
    unsure = {file.path for change in changes if change.unsure for file in change.files}
    for change in changes:
        for file in change.files:
            chains.setdefault(file.path, []).append(file)
    steps, conflicts = list[UndoStep](), list[Conflict]()
    for path, chain in chains.items():
        if not bounds.holds(path):
            conflicts.append(Conflict(path, say("sessions.undo_outside"), can_force=False))
            continue
        now = read_file_state(path)
        step = UndoStep(path, chain[0].before, _mode(chain, now), FileState(now.content, now.mode))
        if _is_done(step, now):
            if reason := _inconsistency(chain):  # undoing only the later calls would restore it, undoing all of them loses it
                conflicts.append(Conflict(path, reason))
            continue
        if reason := obstacle(step, now, blobs):
            conflicts.append(Conflict(path, reason, can_force=False))
            continue
        steps.append(step)
        if bounds.is_guarded(path):
            conflicts.append(Conflict(path, say("sessions.undo_guarded"), is_guarded=True))
        if reason := bounds.doubt or _objection(chain, now) or (say("sessions.undo_unsure") if path in unsure else ""):
            conflicts.append(Conflict(path, reason))
    conflicts.sort(key=lambda each: not each.is_guarded)
    return UndoPlan(changes, tuple(steps), tuple(conflicts), blobs)


def plan_redo(undo: FilesRestored, blobs: BlobStore, bounds: UndoBounds) -> UndoPlan:
    """Plan how to get back to the state before this undo: of the files that it put back. Reads files and changes nothing."""
    plan = plan_undo((FilesChanged(undo.seq, undo.timestamp_ms, "", undo.files),), blobs, bounds)
    return msgspec.structs.replace(plan, changes=(), is_redo=True)


def _mode(chain: Sequence[FileChange], now: FileState) -> int | None:
    """A mode that no call has changed stays as it is, if the file still exists."""
    changed = next((file.before_mode for file in chain if S_IFMT(file.before_mode)), 0)
    if changed:
        return changed & 0o777
    return None if now.is_regular else chain[0].before_mode & 0o777 or PRIVATE


def _is_done(step: UndoStep, now: FileState) -> bool:
    if step.content != now.content:
        return False
    return step.content == NOTHING or step.mode in (None, now.permissions)


def obstacle(step: UndoStep, now: FileState, blobs: BlobStore) -> str:
    """Why a step cannot be taken; empty if it can."""
    if now.content == BLOCKED:
        return say("sessions.undo_folder_replaced")
    if now.content.startswith("error:"):
        return say("sessions.undo_unreadable")
    if S_ISDIR(now.mode):
        return say("sessions.undo_folder_there")
    if now.mode and not now.is_regular and not S_ISLNK(now.mode):
        return say("sessions.undo_not_regular")
    if step.content in (NOTHING, now.content):
        return ""
    if not is_hash(step.content):
        return say("sessions.undo_not_kept")
    return "" if saved_bytes(step.content, blobs) is not None else say("sessions.undo_copy_damaged")


def saved_bytes(content: str, blobs: BlobStore) -> bytes | None:
    """The bytes of a saved copy; None if they are missing or do not match their hash."""
    try:
        data = blobs.get(content)
    except OSError:
        return None
    return data if data is not None and sha256(data).hexdigest() == content else None


def _objection(chain: Sequence[FileChange], now: FileState) -> str:
    """Someone else's change that would be lost; empty if none is known."""
    if reason := _inconsistency(chain):
        return reason
    last = chain[-1]
    if last.after == UNKNOWN:
        return "" if now.content == last.before else say("sessions.undo_unknown_change")
    if now.content == last.after:
        return ""
    return say("sessions.undo_changed_since" if now.content else "sessions.undo_removed_since")


def _inconsistency(chain: Sequence[FileChange]) -> str:
    """Why the chain is inconsistent: a call did not find the file as the call before had left it. Empty if it is consistent."""
    for earlier, later in pairwise(chain):
        if later.before != (earlier.before if earlier.after == UNKNOWN else earlier.after):
            return say("sessions.undo_changed_between")
    return ""
