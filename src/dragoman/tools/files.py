"""The tools that look at files: read_file, read_many_files, list_directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.base.beneath import Directory
from dragoman.tools.description import described
from dragoman.tools.names import as_path, clipped, escaped, size_shown
from dragoman.tools.nearest import missing
from dragoman.tools.pathglob import find_files, is_pattern
from dragoman.tools.reading import MAX_MEDIA_BYTES, Media, look_at, with_notes
from dragoman.tools.seen import SeenFiles
from dragoman.tools.worker import Stop, in_thread
from dragoman.tools.workspace import PathRefused, Refused, Workspace, file_kind
from dragoman.values.contracts import BlobStore, Intent, Show, ToolOutput
from dragoman.values.messages import Blob, Text, ToolSpec

MAX_LINES = 2_000
MAX_CHARS = 40_000
"""Of one answer, its notes included."""
NOTE_CHARS = 500
"""What is kept free for the notes."""
MAX_FILES = 200
MIN_SHARE_CHARS = 500
"""Less than this of a file is not worth showing."""
MAX_ENTRIES = 500
MAX_SCANNED = 1_000_000


class ReadFile:
    def __init__(self, workspace: Workspace, seen: SeenFiles, blobs: BlobStore) -> None:
        self._workspace, self._seen, self._blobs = workspace, seen, blobs
        properties = {
            "file_path": {"type": "string", "description": "Path of the file."},
            "offset": {"type": "integer", "minimum": 1, "description": "Line to start at; the first is 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines; 2000 unless told."},
        }
        self.spec = ToolSpec.of(
            "read_file",
            described("read_file"),
            {"type": "object", "properties": properties, "required": ["file_path"]},
            display_name="Read file",
            kind="read",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return intend_to_look(self._workspace, "read_file", str(args.get("file_path", "")))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        first_line, max_lines = max(1, int(args.get("offset") or 1)), max(1, int(args.get("limit") or MAX_LINES))

        def read(stop: Stop) -> ToolOutput | Media:
            path = self._workspace.resolve(args["file_path"])
            found = look_at(
                self._workspace, self._seen, path, stop, first_line=first_line, max_lines=max_lines, max_chars=MAX_CHARS - NOTE_CHARS
            )
            if isinstance(found, Media):
                return found
            if found.total_lines == 0:
                return ToolOutput((Text("(the file is empty)"),), display="empty file")
            if not found.text:
                shown, total = clipped(self._workspace.shown(path)), found.total_lines
                raise Refused(f"{shown} has only {total} lines: offset={first_line} is past its end", "out_of_range")
            return ToolOutput((Text(with_notes(found)),), display=_counted(found.last_line - found.first_line + 1, "line"))

        try:
            output = await in_thread(read)
        except Refused as refused:
            return refused.output()
        if isinstance(output, Media):
            told = f"{output.mime}, {size_shown(len(output.data))}"
            content = (Text(f"Binary content of type {output.mime} was processed."), self._blobs.put(output.mime, output.data))
            return ToolOutput(content, display=told)
        return output


class ReadManyFiles:
    def __init__(self, workspace: Workspace, seen: SeenFiles, blobs: BlobStore) -> None:
        self._workspace, self._seen, self._blobs = workspace, seen, blobs
        paths = {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "Paths or glob patterns, such as src/**/*.py; ** leaves out hidden directories and node_modules.",
        }
        self.spec = ToolSpec.of(
            "read_many_files",
            described("read_many_files"),
            {"type": "object", "properties": {"paths": paths}, "required": ["paths"]},
            display_name="Read files",
            kind="read",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        paths = [str(path) for path in args.get("paths") or ()]
        intents = [intend_to_look(self._workspace, "", path if not is_pattern(path) else ".") for path in paths]
        problem = intents[0].problem if intents and all(intent.problem for intent in intents) else ""
        return Intent(title=clipped(f"read_many_files {', '.join(map(escaped, paths))}"), problem=problem)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        asked = [str(path) for path in args["paths"]]
        try:
            gathered = await in_thread(lambda stop: _Gathering(self._workspace, self._seen, stop).gather(asked))
        except Refused as refused:
            return refused.output()
        pictures: tuple[Blob, ...] = tuple(self._blobs.put(media.mime, media.data) for media in gathered.media)
        return ToolOutput(
            (Text(gathered.text), *pictures),
            display=_counted(gathered.read_count, "file") + (f" read, {gathered.failed_count} not" if gathered.failed_count else ""),
            is_error=gathered.read_count == 0,
            error_type="" if gathered.read_count else gathered.error_type or "not_found",
        )


class _Gathering:
    """Several files as one text. Each gets its share of the room, and what one leaves goes to the next."""

    def __init__(self, workspace: Workspace, seen: SeenFiles, stop: Stop) -> None:
        self._workspace, self._seen, self._stop = workspace, seen, stop
        self._room_chars = MAX_CHARS - 2 * NOTE_CHARS
        self._sections: list[str] = []
        self._notes: list[str] = []
        self.media: list[Media] = []
        self.read_count = 0
        self.failed_count = 0
        self.error_type = ""

    @property
    def text(self) -> str:
        return "\n".join([*self._sections, *(f"[{note}]" for note in self._notes)])

    def gather(self, asked: list[str]) -> _Gathering:
        paths = self._paths(asked)
        chosen = list(paths)[:MAX_FILES]
        for index, path in enumerate(chosen):
            if self._room_chars < MIN_SHARE_CHARS:
                chosen = chosen[:index]
                break
            share_chars = self._room_chars // (len(chosen) - index)
            self._read(path, max(share_chars, MIN_SHARE_CHARS), named=paths[path])
        if left := list(paths)[len(chosen) :]:
            self.failed_count += len(left)
            names = ", ".join(clipped(self._workspace.shown(path)) for path in left[:3])
            self._notes.append(clipped(f"no room for {_counted(len(left), 'more file')}: {names}{', …' * (len(left) > 3)}"))
        return self

    def _paths(self, asked: list[str]) -> dict[str, bool]:
        """Each file asked for, once, in order; and whether it was named itself, not by a pattern."""
        paths: dict[str, bool] = {}
        for each in asked:
            self._stop()
            try:
                literal = self._workspace.resolve(each)
            except Refused as refused:
                if not is_pattern(each):
                    self._fail(clipped(escaped(each)), refused)
                    continue
                literal = ""
            if literal and (not is_pattern(each) or os.path.lexists(literal)):  # a name may hold brackets
                paths[literal] = True
            else:
                self._expand(each, paths)
        return paths

    def _expand(self, pattern: str, paths: dict[str, bool]) -> None:
        shown = clipped(escaped(pattern))
        try:
            found = find_files(self._workspace, pattern, self._stop)
        except Refused as refused:
            self._fail(shown, refused)
            return
        if not found.is_complete:
            self._notes.append(f"{shown}: the search was too wide and stopped early: name a narrower directory")
        if not found.paths:
            self._fail(shown, Refused(f"{shown} matches no file", "not_found"))
        for path in found.paths:
            paths.setdefault(path, False)

    def _read(self, path: str, share_chars: int, *, named: bool) -> None:
        shown = self._workspace.shown(path)
        room_chars = max(1, share_chars - len(shown) - NOTE_CHARS // 2)
        try:
            real = self._workspace.resolve(path)
            found = look_at(self._workspace, self._seen, real, self._stop, max_lines=MAX_LINES, max_chars=room_chars)
            if isinstance(found, Media):
                self._take_media(found, shown, named=named)
                return
        except Refused as refused:
            self._fail(shown, refused)
            return
        self.read_count += 1
        self._add(f"--- {shown} ---\n{with_notes(found) or '(the file is empty)'}")

    def _take_media(self, media: Media, shown: str, *, named: bool) -> None:
        told = f"{media.mime}, {size_shown(len(media.data))}"
        if not named or sum(len(other.data) for other in self.media) + len(media.data) > MAX_MEDIA_BYTES:
            raise Refused(f"{told}: look at it with read_file", "binary")
        self.read_count += 1
        self.media.append(media)
        self._add(f"--- {shown} ---\n({told}: picture {len(self.media)} below)")

    def _fail(self, shown: str, refused: Refused) -> None:
        self.failed_count += 1
        self.error_type = self.error_type or refused.error_type
        if self._room_chars >= MIN_SHARE_CHARS:
            self._add(f"--- {shown} ---\n(not read: {refused.message})")

    def _add(self, section: str) -> None:
        self._sections.append(section)
        self._room_chars -= len(section) + 1


class ListDirectory:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        path = {"type": "string", "description": "The directory; the workspace itself unless told."}
        self.spec = ToolSpec.of(
            "list_directory",
            described("list_directory"),
            {"type": "object", "properties": {"path": path}},
            display_name="List directory",
            kind="read",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return intend_to_look(self._workspace, "list_directory", str(args.get("path") or "."))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            return await in_thread(lambda stop: self._list(str(args.get("path") or "."), stop))
        except Refused as refused:
            return refused.output()

    def _list(self, wanted: str, stop: Stop) -> ToolOutput:
        from heapq import nsmallest

        path = self._workspace.resolve(wanted)
        counter = _Counter(stop)
        try:
            with self._workspace.directory(path) as directory, self._workspace.refusing(path), directory.scan() as entries:
                # The first in order, without keeping the names of a huge directory.
                first = nsmallest(MAX_ENTRIES, counter.ranked(entries))
                lines = _fitting([_entry_line(directory, entry) for _, _, entry in first])
        except PathRefused as refused:
            if refused.error_type == "not_found":
                raise missing(self._workspace, path) from refused
            if refused.error_type == "not_directory" and os.path.isfile(path):
                raise PathRefused(f"{clipped(self._workspace.shown(path))} is a file: read it with read_file", "not_directory") from refused
            raise
        if not lines:
            return ToolOutput((Text("(the directory is empty)"),), display="empty directory")
        if len(lines) < counter.count:
            total = f"{'more than ' if counter.count >= MAX_SCANNED else ''}{counter.count}"
            lines.append(f"[{len(lines)} of {total} entries: find others with glob]")
        return ToolOutput((Text("\n".join(lines)),), display=_counted(counter.count, "entry", "entries"))


class _Counter:
    """Counts entries as they pass."""

    def __init__(self, stop: Stop) -> None:
        self.count = 0
        self._stop = stop

    def ranked(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[bool, str, os.DirEntry[str]]]:
        """With what to sort by: directories first, then by name."""
        for entry in entries:
            self.count += 1
            if self.count % 1024 == 0:
                self._stop()
            yield not entry.is_dir(follow_symlinks=False), entry.name, entry
            if self.count >= MAX_SCANNED:
                return


def _entry_line(directory: Directory, entry: os.DirEntry[str]) -> str:
    name = as_path(entry.name)
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    try:
        if entry.is_symlink():
            return f"{name} -> {escaped(directory.readlink(entry.name))}"
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return name  # gone since it was listed
    return f"{name}  {size_shown(status.st_size)}" if stat.S_ISREG(status.st_mode) else f"{name} ({file_kind(status.st_mode)})"


def _fitting(lines: list[str]) -> list[str]:
    """As many lines as there is room for."""
    room_chars = MAX_CHARS - NOTE_CHARS
    for index, line in enumerate(lines):
        room_chars -= len(line) + 1
        if room_chars < 0:
            return lines[:index]
    return lines


def intend_to_look(workspace: Workspace, tool: str, path: str) -> Intent:
    """The intent of a tool that only looks: what it would look at, or why it may not."""
    try:
        return Intent(title=f"{tool} {clipped(workspace.shown(workspace.resolve(path)))}")
    except Refused as refused:
        return Intent(title=f"{tool} {clipped(escaped(path))}", problem=refused.message)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
