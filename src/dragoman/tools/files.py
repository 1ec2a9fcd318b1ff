"""The tools that read files: read_file, read_many_files, list_directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from typing import Any

from dragoman.base.beneath import Directory
from dragoman.tools.description import load_description
from dragoman.tools.names import escape_name, escape_relative_path, format_size, truncate_path
from dragoman.tools.nearest import missing_refusal
from dragoman.tools.pathglob import find_files, is_pattern
from dragoman.tools.reading import MAX_MEDIA_BYTES, read_path, with_notes
from dragoman.tools.seen import SeenFiles, version_of
from dragoman.tools.worker import Stop, in_thread
from dragoman.tools.workspace import PathRefusal, ToolRefusal, Workspace
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob, Media, Text, ToolSpec
from dragoman.values.record import FileVersion

MAX_LINES = 2_000
MAX_CHARS = 40_000
"""Limit of one result, including its notes."""
NOTE_CHARS = 500
"""Reserved for the notes."""
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
            "offset": {"type": "integer", "description": "Line to start at; the first is 1."},
            "limit": {"type": "integer", "description": "How many lines; 2000 unless told."},
        }
        self.spec = ToolSpec.of(
            "read_file",
            load_description("read_file"),
            {"type": "object", "properties": properties, "required": ["file_path"], "additionalProperties": False},
            display_name="Read file",
            kind="read",
            read_only=True,
        )

    def tidy(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        from dragoman.tools.habits import tidy_read  # only for arguments that do not fit

        return tidy_read(args)

    def intend(self, args: Mapping[str, Any]) -> Intent:
        intent = read_intent(self._workspace, "read_file", str(args.get("file_path", "")))
        negative = next((name for name in ("offset", "limit") if int(args.get(name) or 0) < 0), "")
        if not negative or intent.problem:
            return intent
        return Intent(title=intent.title, problem=f"{negative} is negative: count lines from the beginning, from 1")

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        first_line, max_lines = max(1, int(args.get("offset") or 1)), max(1, int(args.get("limit") or MAX_LINES))

        path = ""

        def read(stop: Stop) -> ToolOutput | Media:
            nonlocal path
            path = self._workspace.resolve(args["file_path"])
            found = read_path(
                self._workspace, self._seen, path, stop, first_line=first_line, max_lines=max_lines, max_chars=MAX_CHARS - NOTE_CHARS
            )
            if isinstance(found, Media):
                return found
            if found.total_lines == 0:
                return ToolOutput((Text("(the file is empty)"),), display="empty file", saw=(path,), files=found.version(path))
            if not found.text:
                shown, total = truncate_path(self._workspace.display_path(path)), found.total_lines
                raise ToolRefusal(f"{shown} has only {total} lines: offset={first_line} is past its end", "out_of_range")
            display = _format_count(found.last_line - found.first_line + 1, "line", of=found.total_lines or 0)
            return ToolOutput((Text(with_notes(found)),), display=display, saw=(path,), files=found.version(path))

        try:
            output = await in_thread(read)
        except ToolRefusal as refused:
            return refused.output()
        if isinstance(output, Media):
            display = f"{output.mime}, {format_size(len(output.data))}"
            content = (Text(f"Binary content of type {output.mime} was processed."), self._blobs.put(output.mime, output.data))
            return ToolOutput(content, display=display, saw=(path,), files=(version_of(path, output.data),))
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
            load_description("read_many_files"),
            {"type": "object", "properties": {"paths": paths}, "required": ["paths"], "additionalProperties": False},
            display_name="Read files",
            kind="read",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        paths = [str(path) for path in args.get("paths") or ()]
        intents = [read_intent(self._workspace, "", path if not is_pattern(path) else ".") for path in paths]
        problem = intents[0].problem if intents and all(intent.problem for intent in intents) else ""
        reads = tuple(path for intent in intents for path in intent.reads)
        return Intent(title=truncate_path(f"read_many_files {', '.join(map(escape_name, paths))}"), problem=problem, reads=reads)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        requested = [str(path) for path in args["paths"]]
        try:
            collected = await in_thread(lambda stop: _FileCollector(self._workspace, self._seen, stop).collect(requested))
        except ToolRefusal as refused:
            return refused.output()
        pictures: tuple[Blob, ...] = tuple(self._blobs.put(media.mime, media.data) for media in collected.media)
        return ToolOutput(
            (Text(collected.text), *pictures),
            display=_format_count(collected.read_count, "file")
            + (f" read, {collected.failed_count} not" if collected.failed_count else ""),
            is_error=collected.read_count == 0,
            error_type="" if collected.read_count else collected.error_type or "not_found",
            saw=tuple(collected.saw),
            files=tuple(collected.files),
        )


class _FileCollector:
    """Several files as one text. Each gets a share of the limit; what it does not use goes to the next."""

    def __init__(self, workspace: Workspace, seen: SeenFiles, stop: Stop) -> None:
        self._workspace, self._seen, self._stop = workspace, seen, stop
        self._room_chars = MAX_CHARS - 2 * NOTE_CHARS
        self._sections: list[str] = []
        self._notes: list[str] = []
        self.media: list[Media] = []
        self.saw: list[str] = []
        self.files: list[FileVersion] = []
        self.read_count = 0
        self.failed_count = 0
        self.error_type = ""

    @property
    def text(self) -> str:
        return "\n".join([*self._sections, *(f"[{note}]" for note in self._notes)])

    def collect(self, requested: list[str]) -> _FileCollector:
        paths = self._paths(requested)
        chosen = list(paths)[:MAX_FILES]
        for index, path in enumerate(chosen):
            if self._room_chars < MIN_SHARE_CHARS:
                chosen = chosen[:index]
                break
            share_chars = self._room_chars // (len(chosen) - index)
            self._read(path, max(share_chars, MIN_SHARE_CHARS), named=paths[path])
        if left := list(paths)[len(chosen) :]:
            self.failed_count += len(left)
            names = ", ".join(truncate_path(self._workspace.display_path(path)) for path in left[:3])
            self._notes.append(truncate_path(f"no room for {_format_count(len(left), 'more file')}: {names}{', …' * (len(left) > 3)}"))
        return self

    def _paths(self, requested: list[str]) -> dict[str, bool]:
        """Each requested file once, in order, and whether it was named directly instead of by a pattern."""
        paths: dict[str, bool] = {}
        for each in requested:
            self._stop()
            try:
                literal = self._workspace.resolve(each)
            except ToolRefusal as refused:
                if not is_pattern(each):
                    self._fail(truncate_path(escape_name(each)), refused)
                    continue
                literal = ""
            if literal and (not is_pattern(each) or os.path.lexists(literal)):  # a file name may contain brackets
                paths[literal] = True
            else:
                self._expand(each, paths)
        return paths

    def _expand(self, pattern: str, paths: dict[str, bool]) -> None:
        shown = truncate_path(escape_name(pattern))
        try:
            found = find_files(self._workspace, pattern, self._stop)
        except ToolRefusal as refused:
            self._fail(shown, refused)
            return
        if not found.is_complete:
            self._notes.append(f"{shown}: the search was too wide and stopped early: name a narrower directory")
        if not found.paths:
            self._fail(shown, ToolRefusal(f"{shown} matches no file", "not_found"))
        for path in found.paths:
            paths.setdefault(path, False)

    def _read(self, path: str, share_chars: int, *, named: bool) -> None:
        shown = self._workspace.display_path(path)
        room_chars = max(1, share_chars - len(shown) - NOTE_CHARS // 2)
        try:
            real = self._workspace.resolve(path)
            found = read_path(self._workspace, self._seen, real, self._stop, max_lines=MAX_LINES, max_chars=room_chars)
            if isinstance(found, Media):
                self._take_media(found, shown, named=named)
                self.saw.append(real)
                self.files.append(version_of(real, found.data))
                return
        except ToolRefusal as refused:
            self._fail(shown, refused)
            return
        self.read_count += 1
        self.saw.append(real)
        self.files += found.version(real)
        self._add(f"--- {shown} ---\n{with_notes(found) or '(the file is empty)'}")

    def _take_media(self, media: Media, shown: str, *, named: bool) -> None:
        display = f"{media.mime}, {format_size(len(media.data))}"
        if not named or sum(len(other.data) for other in self.media) + len(media.data) > MAX_MEDIA_BYTES:
            raise ToolRefusal(f"{display}: look at it with read_file", "binary")
        self.read_count += 1
        self.media.append(media)
        self._add(f"--- {shown} ---\n({display}: picture {len(self.media)} below)")

    def _fail(self, shown: str, refused: ToolRefusal) -> None:
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
            load_description("list_directory"),
            {"type": "object", "properties": {"path": path}, "additionalProperties": False},
            display_name="List directory",
            kind="read",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return read_intent(self._workspace, "list_directory", str(args.get("path") or "."))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            return await in_thread(lambda stop: self._list(str(args.get("path") or "."), stop))
        except ToolRefusal as refused:
            return refused.output()

    def _list(self, wanted: str, stop: Stop) -> ToolOutput:
        path = self._workspace.resolve(wanted)
        counter = _Counter(stop)
        try:
            with self._workspace.directory(path) as directory, self._workspace.refusing(path), directory.scan() as entries:
                # The first in order, without storing all names of a huge directory.
                first = nsmallest(MAX_ENTRIES, counter.rank(entries))
                lines = _lines_that_fit([_entry_line(directory, entry) for _, _, entry in first])
        except PathRefusal as refused:
            if refused.error_type == "not_found":
                raise missing_refusal(self._workspace, path) from refused
            if refused.error_type == "not_directory" and os.path.lexists(path):
                from dragoman.tools.path_refusals import file_kind

                shown = truncate_path(self._workspace.display_path(path))
                advice = (
                    "a file: read it with read_file" if os.path.isfile(path) else f"{file_kind(os.lstat(path).st_mode)}, not a directory"
                )
                raise PathRefusal(f"{shown} is {advice}", "not_directory") from refused
            raise
        if not lines:
            return ToolOutput((Text("(the directory is empty)"),), display="empty directory")
        display = _format_count(len(lines), "entry", "entries", of=counter.count)
        if len(lines) < counter.count:
            total = f"{'more than ' if counter.count >= MAX_SCANNED else ''}{counter.count}"
            lines.append(f"[{len(lines)} of {total} entries: find others with glob]")
        return ToolOutput((Text("\n".join(lines)),), display=display)


class _Counter:
    """Counts entries while iterating."""

    def __init__(self, stop: Stop) -> None:
        self.count = 0
        self._stop = stop

    def rank(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[bool, str, os.DirEntry[str]]]:
        """Entries with their sort key: directories first, then by name."""
        for entry in entries:
            self.count += 1
            if self.count % 1024 == 0:
                self._stop()
            yield not entry.is_dir(follow_symlinks=False), entry.name, entry
            if self.count >= MAX_SCANNED:
                return


def _entry_line(directory: Directory, entry: os.DirEntry[str]) -> str:
    name = escape_relative_path(entry.name)
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    try:
        if entry.is_symlink():
            return f"{name} -> {escape_name(directory.readlink(entry.name))}"
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return name  # removed since it was listed
    if stat.S_ISREG(status.st_mode):
        return f"{name}  {format_size(status.st_size)}"
    from dragoman.tools.path_refusals import file_kind

    return f"{name} ({file_kind(status.st_mode)})"


def _lines_that_fit(lines: list[str]) -> list[str]:
    """As many lines as fit."""
    room_chars = MAX_CHARS - NOTE_CHARS
    for index, line in enumerate(lines):
        room_chars -= len(line) + 1
        if room_chars < 0:
            return lines[:index]
    return lines


def read_intent(workspace: Workspace, tool: str, path: str) -> Intent:
    """The intent of a tool that only reads: what it would read, or why it may not."""
    try:
        real = workspace.resolve(path)
        return Intent(title=f"{tool} {truncate_path(workspace.display_path(real))}", reads=(real,))
    except ToolRefusal as refused:
        return Intent(title=f"{tool} {truncate_path(escape_name(path))}", problem=refused.message)


def _format_count(count: int, one: str, many: str = "", *, of: int = 0) -> str:
    if of > count:
        return f"{count} of {_format_count(of, one, many)}"
    return f"{count} {one if count == 1 else many or one + 's'}"
