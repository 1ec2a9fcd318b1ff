"""What an undo may touch: files in the session's own folders, as those resolve now, and nothing that was imported.

A record that came from a file says what it likes about paths and contents. So its changes to files are never undone; they only stay on
the record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.values.record import Configured, Entry, FilesChanged, Started
from dragoman.words import say

OWN_EXPORT = "dragoman "
"""How `imported_from` begins for an export or a log of ours."""


class UndoBounds(msgspec.Struct, frozen=True):
    """Which files an undo may change."""

    folders: tuple[str, ...]
    """Absolute and resolved. A single file may stand here too."""
    is_guarded: Callable[[str], bool]
    """Whether a file makes other programs run or is trusted later: it is undone by force only."""
    doubt: str = ""
    """A reason not to undo anything, unless it is forced."""

    def holds(self, path: str) -> bool:
        return any(is_inside(path, folder) for folder in self.folders)


def undo_bounds(folders: Iterable[str], memory_file: str, is_guarded: Callable[[str], bool], entries: Sequence[Entry]) -> UndoBounds:
    """The bounds of a session that was held in these folders. The memory file counts like a file in them: only our own tool wrote to it,
    one line that was approved."""
    own = os.path.realpath(memory_file) if memory_file else ""
    places = (*folders, own) if own else tuple(folders)
    return UndoBounds(places, lambda path: path != own and is_guarded(path), doubt_about(entries))


def folders_of(entries: Iterable[Entry]) -> tuple[str, ...]:
    """The folders that a session was held in, with links resolved as they are now. What an import says about them does not count."""
    entries = tuple(entries)
    imported = last_imported_seq(entries)
    named = list[str]()
    for entry in entries:
        match entry:
            case Started(directories=directories):  # of an import, it names the folder it was imported to
                named += directories
            case Configured(directories=directories) if entry.seq > imported:
                named += directories
            case _:
                pass
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in named if os.path.isabs(folder)))


def last_imported_seq(entries: Sequence[Entry]) -> int:
    """The last entry that was imported; 0 if none was."""
    heads = [entry for entry in entries if isinstance(entry, Started)]
    if any(head.imported_from.startswith(OWN_EXPORT) and not head.imported_through for head in heads):
        return entries[-1].seq  # imported by a version that did not note where the import ends: any of it may be
    return max((head.imported_through for head in heads), default=0)


def imported_changes(entries: Sequence[Entry]) -> list[FilesChanged]:
    """The changes to files that an import brought along."""
    imported = last_imported_seq(entries)
    return [entry for entry in entries if isinstance(entry, FilesChanged) and entry.files and entry.seq <= imported]


def doubt_about(entries: Sequence[Entry]) -> str:
    """Where the first line of a log could not be read, nobody knows whether the session was imported."""
    is_head_missing = bool(entries) and entries[0].seq > 1 and not isinstance(entries[0], Started)
    return say("sessions.undo_headless") if is_head_missing else ""
