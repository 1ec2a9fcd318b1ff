"""Undoing what calls did to files: which changes, what stands against it, and then all of it or nothing.

changes = changes_of_last_run(history.entries)
plan = plan_undo(changes, blobs)        # touches nothing; plan.conflicts is for a person to read
restore(plan)                           # or refuses, and has touched nothing
history.restore_files(plan.changes)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from stat import S_IFMT, S_ISDIR, S_ISLNK

import msgspec

from dragoman.sessions.checkpoints import UNKNOWN, UNSURE
from dragoman.sessions.file_state import BLOCKED, NOTHING, FileState, is_hash, look_at
from dragoman.values.contracts import BlobStore
from dragoman.values.notes import is_note
from dragoman.values.record import Entry, FileChange, FilesChanged, FilesRestored, Rewound, Said, ToolFinished

PRIVATE = 0o600
"""What a file comes back with where its mode is not known."""

# --- which changes -------------------------------------------------------------------------------------------------------


def file_changes(entries: Iterable[Entry]) -> list[FilesChanged]:
    """What calls did to files and nobody has undone, in the order it happened.

    An entry written ahead counts only where its call never ended, or where none says what it had done by its end.
    """
    changes, ahead, restored = list[FilesChanged](), dict[str, FilesChanged](), set[int]()
    for entry in entries:
        match entry:
            case FilesChanged(call_id=call_id):
                before = ahead.pop(call_id, None)
                if not is_ahead(entry):
                    changes.append(entry)
                    continue
                if before is not None:
                    changes.append(before)
                ahead[call_id] = entry
            case ToolFinished(result=result, outcome=outcome):
                before = ahead.pop(result.call_id, None)
                if before is not None and outcome in UNSURE:
                    changes.append(before)
            case FilesRestored(seqs=seqs):
                restored.update(seqs)
            case _:
                pass
    changes += ahead.values()
    return sorted((change for change in changes if change.files and change.seq not in restored), key=lambda change: change.seq)


def is_ahead(change: FilesChanged) -> bool:
    """Whether it was written before the call ran, and so does not know what became of the files."""
    return any(file.after == UNKNOWN for file in change.files)


def changes_after(entries: Iterable[Entry], seq: int) -> list[FilesChanged]:
    """What is to be undone to have files as they were after entry `seq`: rewinding with files."""
    return [change for change in file_changes(entries) if change.seq > seq]


def changes_of_last_run(entries: Sequence[Entry], runs: int = 1) -> list[FilesChanged]:
    """What was changed since the last prompt (or the last but `runs - 1`) that still stands.

    What the program itself said during a run is no prompt. Prompts that were rewound do not count, but what was changed after them does:
    files were not rewound with them.
    """
    prompts = _prompts(entries)
    return changes_after(entries, prompts[-runs] - 1 if runs <= len(prompts) else 0)


def _prompts(entries: Sequence[Entry]) -> list[int]:
    """The seqs of the prompts that led to where things stand. Of several in a row, as the first with our greeting, the first."""
    standing = _standing(entries)
    prompts, answered = list[int](), True
    for entry in entries:
        if not isinstance(entry, Said) or entry.seq not in standing:
            continue
        if entry.message.role == "assistant":
            answered = True
        elif answered and not is_note(entry.message):
            prompts.append(entry.seq)
            answered = False
    return prompts


def _standing(entries: Sequence[Entry]) -> set[int]:
    """The seqs of what was not rewound."""
    followed, head = dict[int, int](), 0
    for entry in entries:
        followed[entry.seq] = min(entry.to_seq if isinstance(entry, Rewound) else head, entry.seq - 1)
        head = entry.seq
    standing = set[int]()
    while head > 0:
        standing.add(head)
        head = followed.get(head, head - 1)  # an entry that was lost: what stood before it
    return standing


# --- what it takes -------------------------------------------------------------------------------------------------------


class Conflict(msgspec.Struct, frozen=True):
    """Why a file is better left alone, or cannot be brought back at all."""

    path: str
    reason: str
    can_force: bool = True
    """Whether `restore(force=True)` overrides it. What cannot be done is left out then."""


class Step(msgspec.Struct, frozen=True):
    """One file to be put back."""

    path: str
    content: str
    """The SHA-256 of what is to be in it; empty: it is to be removed."""
    mode: int | None
    """None: as it is."""
    found: FileState
    """As it was when this was planned."""


class Plan(msgspec.Struct, frozen=True):
    """What undoing takes. Without steps there is nothing to do: everything is as it was."""

    changes: tuple[FilesChanged, ...]
    """What is undone by it: for the record, once it is."""
    steps: tuple[Step, ...]
    conflicts: tuple[Conflict, ...]
    blobs: BlobStore


def plan_undo(changes: Iterable[FilesChanged], blobs: BlobStore) -> Plan:
    """How to get from what is there to what was there before these changes. Looks, and touches nothing."""
    changes = tuple(sorted(changes, key=lambda change: change.seq))
    chains: dict[str, list[FileChange]] = {}
    for change in changes:
        for file in change.files:
            chains.setdefault(file.path, []).append(file)
    steps, conflicts = list[Step](), list[Conflict]()
    for path, chain in chains.items():
        now = look_at(path)
        step = Step(path, chain[0].before, _mode(chain, now), FileState(now.content, now.mode))
        if _is_done(step, now):
            if reason := _broken(chain):  # it comes back with the later calls undone, and is gone with all of them
                conflicts.append(Conflict(path, reason))
            continue
        if reason := obstacle(step, now, blobs):
            conflicts.append(Conflict(path, reason, can_force=False))
            continue
        steps.append(step)
        if reason := _objection(chain, now):
            conflicts.append(Conflict(path, reason))
    return Plan(changes, tuple(steps), tuple(conflicts), blobs)


def _mode(chain: Sequence[FileChange], now: FileState) -> int | None:
    """A mode that no call has changed stays as it is, where there is still something that has one."""
    changed = next((file.before_mode for file in chain if S_IFMT(file.before_mode)), 0)
    if changed:
        return changed & 0o777
    return None if now.is_regular else chain[0].before_mode & 0o777 or PRIVATE


def _is_done(step: Step, now: FileState) -> bool:
    if step.content != now.content:
        return False
    return step.content == NOTHING or step.mode in (None, now.permissions)


def obstacle(step: Step, now: FileState, blobs: BlobStore) -> str:
    """Why a step cannot be taken; empty where it can."""
    if now.content == BLOCKED:
        return "a link or a file has taken the place of its folder: move that out of the way"
    if now.content.startswith("error:"):
        return "it cannot be looked at: check its path, and the permissions of its folder"
    if S_ISDIR(now.mode):
        return "there is a folder in its place: move that out of the way"
    if now.mode and not now.is_regular and not S_ISLNK(now.mode):
        return "it is no plain file any more: move it out of the way"
    if step.content in (NOTHING, now.content):
        return ""
    if not is_hash(step.content):
        return "it was not kept: it was too large, unreadable, or no plain file"
    return "" if kept_bytes(step.content, blobs) is not None else "the copy that was kept of it is missing or damaged"


def kept_bytes(content: str, blobs: BlobStore) -> bytes | None:
    """None where they are not there, or are not what they should be."""
    from hashlib import sha256

    try:
        data = blobs.get(content)
    except OSError:
        return None
    return data if data is not None and sha256(data).hexdigest() == content else None


def _objection(chain: Sequence[FileChange], now: FileState) -> str:
    """What somebody else did that would be lost; empty where nothing is known of it."""
    if reason := _broken(chain):
        return reason
    last = chain[-1]
    if last.after == UNKNOWN:
        return "" if now.content == last.before else "a call that would write it was broken off, and it is not known who changed it since"
    if now.content == last.after:
        return ""
    return "it was changed by somebody else since" if now.content else "it was removed by somebody else since"


def _broken(chain: Sequence[FileChange]) -> str:
    """Where a call did not find a file as the call before had left it."""
    for earlier, later in pairwise(chain):
        if later.before != (earlier.before if earlier.after == UNKNOWN else earlier.after):
            return "it was changed by somebody else between two of the calls"
    return ""
