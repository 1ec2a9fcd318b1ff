"""What happened to the model's files beside it: changes that were undone or redone, and files in its context that somebody else changed.

It is told with the next prompt. What the model knows stands on the record: each call has the files that it read or changed, as they were
then, and each note those that it told of. So a resumed session tells what the live one would have told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dragoman.context.environment import CHANGED_FILES, REDONE, UNDONE
from dragoman.context.view import View
from dragoman.sessions.bounds import last_imported_seq
from dragoman.sessions.file_state import NOTHING, FileState, is_hash, read_file_state
from dragoman.tools.diff import diff_texts
from dragoman.tools.seen import WHOLE_FILE_BYTES, version_of
from dragoman.tools.textfile import decode
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Text
from dragoman.values.record import Entry, FilesChanged, FilesRestored, FileVersion, Rewound, Said, ToolFinished

MAX_LOOKED_AT = 500
"""Of more files, those that the model knew last are looked at."""
MAX_COMPARED_BYTES = 1_000_000
"""Of larger files it is not counted how many lines an undo changed."""
MAX_TOLD = 20
"""More files are counted, and not named."""


class FileNews(msgspec.Struct, frozen=True):
    """What to tell: fragments of a note, and the files as they are now."""

    fragments: tuple[str, ...] = ()
    files: tuple[FileVersion, ...] = ()


class Undone(msgspec.Struct, frozen=True):
    """What calls did to a file and was undone: the SHA-256 of its content before them and after them, empty where there was none."""

    before: str
    after: str


class FilesToCheck(msgspec.Struct, frozen=True):
    """What the record says of files, by path."""

    known: dict[str, FileVersion]
    """Files in the model's context, as it knows them, those that it knew last at the end."""
    undone: dict[str, Undone]
    """What was undone and not told yet."""
    redone: dict[str, Undone]
    """What the model was told was undone, and was redone since."""
    left: dict[str, str]
    """Files as calls of the model left them since it knew them: the SHA-256 of the content."""


# --- what the record says ------------------------------------------------------------------------------------------------


def files_to_check(view: View, entries: Sequence[Entry]) -> FilesToCheck:
    """What to compare with the disk. Reads no file. What was imported says nothing about the files here."""
    imported = last_imported_seq(entries)
    own = [entry for entry in entries if entry.seq > imported]
    gone = _find_rewound(entries)
    known = _known_versions(view, own)
    undone, redone = _find_undone(own, gone)
    left: dict[str, str] = {}
    for entry in own:
        if isinstance(entry, FilesChanged) and entry.seq not in gone and not entry.unsure:
            left |= {file.path: file.after for file in entry.files if file.path in known and entry.seq > known[file.path][0]}
    return FilesToCheck({path: version for path, (_, version) in known.items()}, undone, redone, left)


def _find_rewound(entries: Sequence[Entry]) -> set[int]:
    if not any(isinstance(entry, Rewound) for entry in entries):
        return set()
    from dragoman.context.plan_path import find_rewound

    return set(find_rewound(entries))


def _known_versions(view: View, entries: Sequence[Entry]) -> dict[str, tuple[int, FileVersion]]:
    """By path: the last entry in view that says what the file was, and what that was."""
    said = {item.seq: item for item in view.items}
    answered = {outcome.result.call_id for outcome in view.outcomes}
    finished = {entry.result.call_id: entry for entry in entries if isinstance(entry, ToolFinished) and entry.files}  # the last of an id
    found: list[tuple[int, FileVersion]] = []
    for entry in finished.values():
        if entry.result.call_id in answered:
            hidden = entry.saw if entry.result.call_id in view.pruned else ()
            found += [(entry.seq, file) for file in entry.files if file.path not in hidden]
    for entry in entries:
        if isinstance(entry, Said) and entry.seq in said:
            found += [(entry.seq, file) for file in entry.files]
            attached = (part.attached for part in entry.message.parts if isinstance(part, Text) and part.attached is not None)
            found += [(entry.seq, FileVersion(each.path, each.digest, each.lines)) for each in attached if each.digest]
    known: dict[str, tuple[int, FileVersion]] = {}
    for seq, file in sorted(found, key=lambda each: each[0]):
        known.pop(file.path, None)
        known[file.path] = seq, file
    return known


def _find_undone(entries: Sequence[Entry], gone: set[int]) -> tuple[dict[str, Undone], dict[str, Undone]]:
    """By path: what was undone, and what was redone, of changes that the model knows of, and has not been told that they were.

    What was undone and redone before it was told is as the model knows it, and the other way round.
    """
    changes = {entry.seq: entry for entry in entries if isinstance(entry, FilesChanged)}
    undone: dict[str, set[int]] = {}
    redone: dict[str, set[int]] = {}
    for entry in entries:
        if isinstance(entry, FilesRestored):
            done, taken_back = (redone, undone) if entry.redoes else (undone, redone)
            for seq in entry.seqs:
                for file in changes[seq].files if seq in changes and seq not in gone else ():
                    if seq in taken_back.get(file.path, ()):
                        taken_back[file.path].discard(seq)
                    else:
                        done.setdefault(file.path, set()).add(seq)
        elif isinstance(entry, Said) and entry.seq not in gone:
            for told in entry.files:
                undone.pop(told.path, None)
                redone.pop(told.path, None)
    return _as_chains(undone, changes), _as_chains(redone, changes)


def _as_chains(untold: dict[str, set[int]], changes: dict[int, FilesChanged]) -> dict[str, Undone]:
    found: dict[str, Undone] = {}
    for path, seqs in untold.items():
        if chain := [file for seq in sorted(seqs) for file in changes[seq].files if file.path == path]:
            found[path] = Undone(chain[0].before, chain[-1].after)
    return found


# --- what the disk says --------------------------------------------------------------------------------------------------


def find_news(check: FilesToCheck, blobs: BlobStore, may_read: Callable[[str], bool], display: Callable[[str], str]) -> FileNews:
    """Compare with the files as they are now. For a thread. `may_read`: whether the model may read a file; others are left alone."""
    paths = dict.fromkeys((*check.undone, *check.redone, *reversed(check.known)))
    undone, redone, changed, files = list[str](), list[str](), list[str](), list[FileVersion]()
    for path in list(paths)[:MAX_LOOKED_AT]:
        if not may_read(path):
            continue
        state = read_file_state(path)
        if state.content.startswith("error:"):
            continue
        before, now = check.known.get(path), _version_now(path, state)
        was_undone, was_redone = check.undone.get(path), check.redone.get(path)
        if was_undone is not None and state.content == was_undone.before != was_undone.after:
            undone.append(f"{display(path)}{_undone_words(was_undone, state, blobs)}")
        elif was_redone is not None and state.content == was_redone.after != was_redone.before:
            redone.append(f"{display(path)}{_redone_words(was_redone, state, blobs)}")
        elif _is_as_known(before, now, was_undone, check.left.get(path), state):
            continue
        else:
            changed.append(f"{display(path)}{_changed_words(before, now)}")
        files.append(now)
    return FileNews((fragment(UNDONE, undone), fragment(REDONE, redone), fragment(CHANGED_FILES, changed)), tuple(files))


def fragment(heading: str, files: Sequence[str]) -> str:
    """A part of a note: a line for each file. Empty if there are none."""
    more = [f"… and {len(files) - MAX_TOLD} more"] if len(files) > MAX_TOLD else []
    return "\n".join([heading, *(f"  {line}" for line in (*files[:MAX_TOLD], *more))]) if files else ""


def _is_as_known(before: FileVersion | None, now: FileVersion, undone: Undone | None, left: str | None, state: FileState) -> bool:
    """Whether the file is as the model knows it, or as its own calls left it."""
    if state.content == left or (undone is not None and state.content == undone.after):
        return True
    return before is not None and before.digest == now.digest


def _version_now(path: str, state: FileState) -> FileVersion:
    if state.data is not None and len(state.data) <= WHOLE_FILE_BYTES:
        return version_of(path, state.data)
    return FileVersion(path, state.content)


def _undone_words(undone: Undone, state: FileState, blobs: BlobStore) -> str:
    if undone.before == NOTHING:
        return " (removed: there was no such file)"
    if undone.after == NOTHING:
        return " (there again)"
    counted = _count_changed_lines(undone.after, state, blobs)
    return f" ({counted} lines)" if counted else ""


def _redone_words(redone: Undone, state: FileState, blobs: BlobStore) -> str:
    if redone.after == NOTHING:
        return " (removed again)"
    if redone.before == NOTHING:
        return " (there again)"
    counted = _count_changed_lines(redone.before, state, blobs)
    return f" ({counted} lines)" if counted else ""


def _count_changed_lines(replaced: str, state: FileState, blobs: BlobStore) -> str:
    """How many lines an undo or a redo added and removed; empty where that cannot be counted."""
    if state.data is None or len(state.data) > MAX_COMPARED_BYTES or not is_hash(replaced):
        return ""
    try:
        old = blobs.get(replaced)
    except OSError:
        return ""
    if old is None or len(old) > MAX_COMPARED_BYTES:
        return ""
    texts = decode(old), decode(state.data)
    return diff_texts(texts[0].text, texts[1].text, "").summary if texts[0] is not None and texts[1] is not None else ""


def _changed_words(before: FileVersion | None, now: FileVersion) -> str:
    if not now.digest:
        return " (removed)"
    if now.lines is None:
        return ""
    if before is None or before.lines is None:
        return f" ({_lines(now.lines)})"
    then = f"{before.lines:,} before" if before.lines != now.lines else "as many as before"
    return f" ({_lines(now.lines)}, {then})"


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"
