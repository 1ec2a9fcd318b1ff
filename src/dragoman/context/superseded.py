"""Which results of reading files are no longer true, because the file was read again since.

A later reading supersedes an earlier one if it shows at least as much of the file, or if the file was changed between them and it shows
some of the same lines. So the latest reading of a file stays, and that of every part that was not looked at again. An edit alone supersedes
nothing: the model still needs what it edited. Failed calls neither go nor stand for anything.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from dragoman.values.messages import Text, ToolCall, ToolResult
from dragoman.values.notes import EDITED_BEGINS, REPAIRED_BEGINS

_READERS = ("read", "read_file", "read_text_file", "view_file")
_WRITERS = ("write", "write_file", "create_file")
_EDITORS = ("edit", "edit_file", "multiedit", "replace", "str_replace")
"""What programs call the tools whose record does not say which files they showed or wrote: imported sessions, MCP servers."""
_PATHS = ("file_path", "path", "filePath", "absolute_path")
_CONTENTS = ("content", "text", "file_text")
_NOTE_CHARS = 400


class PartRead(NamedTuple):
    """The part of a file that a result shows."""

    path: str
    first: int = 1
    limit: int = 0
    """How many lines were asked for; 0: as many as there are."""
    last: float = inf
    """The last line that is shown."""
    is_whole: bool = False
    """It is all of the file, from the first line to the last."""

    def overlaps(self, other: PartRead) -> bool:
        return self.path == other.path and self.first <= other.last and other.first <= self.last

    def covers(self, other: PartRead) -> bool:
        """Whether this one, which came later, shows at least as much."""
        if self.path != other.path:
            return False
        if self.is_whole or ((self.limit or self.first > 1) and (self.first, self.limit) == (other.first, other.limit)):
            return True
        return self.first <= other.first and other.last <= self.last < inf


class FilesShown(NamedTuple):
    """What one call showed of files, which it wrote whole, and which it changed."""

    read: tuple[PartRead, ...] = ()
    wrote: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """As the model named them."""


NONE_SHOWN = FilesShown()


def files_shown(call: ToolCall | None, result: ToolResult, saw: Sequence[str] = (), wrote: Sequence[str] = ()) -> FilesShown:
    """By what the record says of it, `saw` and `wrote`, and else by the name of the tool and its arguments."""
    if result.is_error or call is None or _was_changed(result):
        return NONE_SHOWN
    name = call.name.rpartition("__")[2].casefold()
    if not saw and call.name == "read_file" and "file_path" in (call.args or {}):
        return NONE_SHOWN  # our own, and a hook put other words in the place of what was read
    if wrote or (not saw and name in _WRITERS):
        return FilesShown(wrote=tuple(wrote) or _named_path(call, _CONTENTS))
    if name in _EDITORS:
        return FilesShown(changed=_named_path(call))
    if len(saw) > 1:
        return FilesShown(tuple(map(PartRead, saw)))
    paths = tuple(saw) or (_named_path(call) if name in _READERS else ())
    return FilesShown((_reading(paths[0], call.args or {}, result),)) if paths else NONE_SHOWN


def find_superseded(shown: Sequence[FilesShown | None], hidden: Collection[int] = ()) -> dict[int, int]:
    """Position of a result → position of the one that superseded it. `hidden`: those that are pruned stand for nothing."""
    later: dict[str, list[tuple[int, PartRead]]] = {}
    changes: list[tuple[int, str]] = []
    found: dict[int, int] = {}
    for position in range(len(shown) - 1, -1, -1):
        readings, wrote, changed = shown[position] or NONE_SHOWN
        by = [_first_later(position, reading, later.get(reading.path, ()), changes) for reading in readings]
        if by and None not in by:
            found[position] = max(each for each in by if each is not None)
        changes += [(position, path) for path in (*wrote, *changed)]
        if position in hidden:
            continue
        for reading in (*readings, *(PartRead(path, is_whole=True) for path in wrote)):
            later.setdefault(reading.path, []).append((position, reading))
    return found


def no_longer_shown(gone: Sequence[FilesShown], shown: Sequence[FilesShown]) -> set[str]:
    """Paths of which results that are gone showed lines that no result still shows."""
    readings = [each for files in shown for each in (*files.read, *(PartRead(path, is_whole=True) for path in files.wrote))]
    return {reading.path for files in gone for reading in files.read if not _is_shown(reading, readings)}


def _first_later(position: int, reading: PartRead, later: Sequence[tuple[int, PartRead]], changes: Sequence[tuple[int, str]]) -> int | None:
    """The first of the later readings of its file that supersedes this one."""
    changed_at = min((place for place, path in changes if place > position and _is_same(path, reading.path)), default=inf)
    for place, other in reversed(later):
        if other.covers(reading) or (changed_at < place and other.overlaps(reading)):
            return place
    return None


def _is_same(named: str, path: str) -> bool:
    """Whether the model meant this file: it may have named it from the folder it works in."""
    return named == path or path.endswith(f"/{named}")


def _is_shown(reading: PartRead, others: Sequence[PartRead]) -> bool:
    runs = sorted((each.first, each.last) for each in others if each.path == reading.path)
    if any(each.is_whole for each in others if each.path == reading.path):
        return True
    reached: float = reading.first - 1
    for first, last in runs:
        if first <= reached + 1:
            reached = max(reached, last)
    return reading.last <= reached < inf


def _reading(path: str, args: Mapping[str, Any], result: ToolResult) -> PartRead:
    first, limit = max(_whole(args.get("offset")), 1), _whole(args.get("limit"))
    texts = [part.text for part in result.content if isinstance(part, Text)]
    if len(texts) != 1 or len(result.content) != 1:
        return PartRead(path, first, limit, is_whole=not texts and not args.keys() & {"offset", "limit"})
    lines = texts[0].splitlines()
    count = len(lines) - (bool(lines) and lines[-1].startswith("["))
    is_cut = "offset=" in texts[0][-_NOTE_CHARS:]  # our own note, and that of others: go on with offset=…
    last = first + (min(count, limit) if limit else count) - 1
    return PartRead(path, first, limit, last, first == 1 and not is_cut and (not limit or count < limit))


def _was_changed(result: ToolResult) -> bool:
    """Whether the call ran with other arguments than the model wrote."""
    return any(isinstance(part, Text) and part.text.startswith((REPAIRED_BEGINS, EDITED_BEGINS)) for part in result.content)


def _named_path(call: ToolCall, needed: Sequence[str] = ()) -> tuple[str, ...]:
    args = call.args or {}
    if needed and not any(isinstance(args.get(name), str) for name in needed):
        return ()
    path = next((args[name] for name in _PATHS if isinstance(args.get(name), str) and args[name]), "")
    return (posixpath.normpath(path),) if path else ()


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
