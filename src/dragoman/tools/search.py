"""glob and grep: finding files by name and by what is in them. ripgrep does the work; nothing outside the workspace is found."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dragoman.base.jsontext import valid_unicode
from dragoman.base.text import clip
from dragoman.base.visible import visible
from dragoman.tools.description import described
from dragoman.tools.matches import Counts, Line, Matches, Paths
from dragoman.tools.path_pattern import PathPattern
from dragoman.tools.ripgrep import Searched, find_ripgrep, run_ripgrep
from dragoman.tools.worker import Stop, in_thread
from dragoman.tools.workspace import Refused, Workspace
from dragoman.values.contracts import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

MAX_RESULTS = 1_000
MAX_REGEX_CHARS = 10_000
MAX_CONTEXT_LINES = 10
MAX_TEXT_CHARS = 40_000
MAX_CANDIDATES = 400_000
"""Of more files than this, glob does not look for the newest."""
UNSORTED_RESULTS = 2_000
"""Up to so many results are gathered by all cores at once and sorted here. Of more, the first are gathered in order by one."""
MAX_FILE_MB = 200
"""ripgrep holds a line in memory, and a file may be one line."""
_DISPLAY_LINES = 20
_LEFT_OUT = "Hidden files and those that .gitignore names are left out."

C = TypeVar("C", Paths, Counts, Matches)


class _Finder(ABC):
    """What glob and grep share: a place to begin, and what becomes of it when that cannot be searched."""

    spec: ToolSpec

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def intend(self, args: Mapping[str, Any]) -> Intent:
        title = f"{self.spec.name} {args.get('pattern', '')}"
        try:
            self._prepare(args)
        except Refused as refused:
            return _intent(title, args, refused.message)
        return _intent(title, args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            return await self._find(args)
        except Refused as refused:
            return refused.output()
        except OSError as error:
            return Refused(f"ripgrep could not be started: {error.strerror or error}", "not_started").output()

    @abstractmethod
    def _prepare(self, args: Mapping[str, Any]) -> object:
        """What the search begins with. Raises Refused."""

    @abstractmethod
    async def _find(self, args: Mapping[str, Any]) -> ToolOutput: ...


class Glob(_Finder):
    """Finds files by name, the newest first."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.spec = ToolSpec.of(
            "glob",
            described("glob"),
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "Like *.py (in any directory), src/**/*.ts or {a,b}/*.md."},
                    "path": {"type": "string", "description": "The directory to search; the workspace's root unless told."},
                    "max_results": {"type": "integer", "description": "200 unless told."},
                },
                "required": ["pattern"],
            },
            display_name="Find files",
            kind="search",
            read_only=True,
        )

    def _prepare(self, args: Mapping[str, Any]) -> tuple[str, PathPattern]:
        """Where to begin, and what to look for. Raises Refused."""
        pattern = PathPattern(str(args.get("pattern", "")))
        directory = self._workspace.resolve(str(args.get("path") or "."))
        if not os.path.isdir(directory):
            raise _no_place(self._workspace, directory, "name the directory to search")
        # What the pattern spells out need not be searched for, and may be what .gitignore would leave out.
        return self._workspace.resolve(os.path.join(directory, pattern.start)) if pattern.start else directory, pattern

    async def _find(self, args: Mapping[str, Any]) -> ToolOutput:
        start, pattern = self._prepare(args)
        most = _bounded(args.get("max_results"), 200, MAX_RESULTS)
        prefix = os.path.join(start, "")
        paths = Paths(lambda path: path.startswith(prefix) and pattern.matches(path[len(prefix) :]), MAX_CANDIDATES)
        options = ["--files", "--null", *pattern.filters(), *(["--hidden"] if pattern.wants_hidden else [])]
        searched = await run_ripgrep(find_ripgrep(self._workspace.root), options, start, paths.take)
        if searched.problem and not paths.found:
            raise Refused(f"the search failed: {searched.problem}", "search_failed")
        newest = await in_thread(lambda stop: _newest(paths.found, most, stop))
        lines = list(map(self._workspace.shown, newest))
        note = _cut_short(searched, "files", "use a narrower pattern or path")
        if len(paths.found) > len(lines) or searched.was_stopped:
            count = f"more than {MAX_CANDIDATES:,}" if searched.was_stopped else f"{len(paths.found):,}"
            note = f"{note}\n({len(lines)} of {count} files, the newest first: use a narrower pattern or path for the others)"
        if not lines:
            return _answer(f"No files match {visible(str(args['pattern']), one_line=True)}. {_LEFT_OUT}{note}", "no files")
        return _answer(_within_cap(lines) + note, _number(len(paths.found), searched, "file"))


class Grep(_Finder):
    """Finds lines by a regular expression."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.spec = ToolSpec.of(
            "grep",
            described("grep"),
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "A regular expression, in Rust's syntax."},
                    "path": {"type": "string", "description": "The directory or file to search; the workspace's root unless told."},
                    "include": {"type": "string", "description": "Only files like this: *.py, src/**/*.ts."},
                    "case_sensitive": {"type": "boolean", "description": "True unless told."},
                    "context": {"type": "integer", "description": f"Lines to show around each match, up to {MAX_CONTEXT_LINES}."},
                    "output_mode": {
                        "type": "string",
                        "enum": ["content", "files", "count"],
                        "description": "Lines, only paths, or matches per file.",
                    },
                    "hidden": {"type": "boolean", "description": "Search hidden files as well."},
                    "max_results": {"type": "integer", "description": "100 unless told."},
                },
                "required": ["pattern"],
            },
            display_name="Search",
            kind="search",
            read_only=True,
        )

    def _prepare(self, args: Mapping[str, Any]) -> tuple[str, PathPattern | None]:
        """Where to search, and in which files. Raises Refused."""
        regex = str(args.get("pattern", ""))
        if not regex:
            raise Refused("the pattern is empty: say what to look for", "invalid")
        if len(regex) > MAX_REGEX_CHARS or "\0" in regex:
            raise Refused(f"the pattern holds a NUL or more than {MAX_REGEX_CHARS:,} characters: use a simpler one", "invalid")
        start = self._workspace.resolve(str(args.get("path") or "."))
        if not os.path.exists(start):
            raise _no_place(self._workspace, start, "name what to search")
        # A pattern that spells out where to look still counts from `path`, so nothing is taken off it.
        include = str(args.get("include") or "")
        return start, PathPattern(include, hidden=bool(args.get("hidden"))) if include else None

    async def _find(self, args: Mapping[str, Any]) -> ToolOutput:
        start, include = self._prepare(args)
        most = _bounded(args.get("max_results"), 100, MAX_RESULTS)
        context = _bounded(args.get("context"), 0, MAX_CONTEXT_LINES, least=0)
        options = [
            f"--max-filesize={MAX_FILE_MB}M",
            "--regexp=" + str(args["pattern"]),
            "--case-sensitive" if args.get("case_sensitive", True) else "--ignore-case",
        ]
        if args.get("hidden"):
            options += ["--hidden", "--glob=!.git"]
        if include is not None:
            options += include.filters()
            if include.wants_hidden and not args.get("hidden"):
                options.append("--hidden")
        search = _Search(find_ripgrep(self._workspace.root), start, include)
        match args.get("output_mode"):
            case "files":
                paths, searched = await search.run(["--files-with-matches", "--null", *options], Paths, most)
                return self._told([self._workspace.shown(path) for path in sorted(paths.found, key=_parts)], most, searched, "files")
            case "count":
                counts, searched = await search.run(["--count", "--null", *options], Counts, most)
                found = sorted(counts.found.items(), key=lambda item: _parts(item[0]))
                return self._told([f"{self._workspace.shown(path)}: {count}" for path, count in found], most, searched, "files")
            case _:
                options += ["--json", f"--context={context}"]
                matches, searched = await search.run(options, Matches, most)
                return self._told_lines(matches, most, context, searched)

    def _told(self, lines: list[str], most: int, searched: Searched, what: str) -> ToolOutput:
        if not lines:
            return _nothing(searched)
        note = _cut_short(searched, what, "narrow it by path or include")
        if len(lines) > most:
            note = f"{note}\n({most} of {_counted(len(lines), searched)} {what}: narrow it by path or include)"
        return _answer(_within_cap(lines[:most]) + note, _number(len(lines), searched, "file"))

    def _told_lines(self, matches: Matches, most: int, context: int, searched: Searched) -> ToolOutput:
        lines: list[str] = []
        left = most
        for path in sorted(matches.found, key=_parts):
            shown, last = self._workspace.shown(path), 0
            for line in _first(matches.found[path], left, context):
                if context and lines and line.number != last + 1:
                    lines.append("--")
                lines.append(f"{shown}:{line.number}: {line.text}" if line.is_match else f"{shown}-{line.number}- {line.text}")
                left, last = left - line.is_match, line.number
            if left <= 0:
                break
        note = _cut_short(searched, "matches", "narrow it by path or include")
        if matches.passed_over:
            note = f"{note}\n({matches.passed_over} matches are in lines of more than a megabyte and are not shown)"
        if not lines:
            return _answer(f"No line that can be shown matches.{note}", "no matches") if note else _nothing(searched)
        if matches.count > most:
            note = f"{note}\n({most} of {_counted(matches.count, searched)} matches: narrow it by path or include)"
        files = f" in {_number(len(matches.found), searched, 'file')}"
        return _answer(_within_cap(lines) + note, _number(matches.count, searched, "match", "matches") + files)


class _Search:
    """One search, or two: by all cores first, and only where that brings too much, in order and as far as needed."""

    def __init__(self, program: str, start: str, include: PathPattern | None) -> None:
        self._program = program
        self._start = start
        self._include = include
        self._base = os.path.join(start if os.path.isdir(start) else os.path.dirname(start), "")

    async def run(self, options: Sequence[str], collector: type[C], most: int) -> tuple[C, Searched]:
        found = collector(self._wanted, UNSORTED_RESULTS)
        searched = await run_ripgrep(self._program, options, self._start, found.take)
        if searched.was_stopped:
            found = collector(self._wanted, most)
            searched = await run_ripgrep(self._program, ["--sort=path", *options], self._start, found.take)
        if searched.problem and not found.found:
            raise Refused(f"the search failed: {searched.problem}", "bad_pattern")
        return found, searched

    def _wanted(self, path: str) -> bool:
        if self._include is None:
            return True
        relative = path[len(self._base) :]
        start = self._include.start
        if not start:
            return self._include.matches(relative)
        return relative.startswith(start + "/") and self._include.matches(relative[len(start) + 1 :])


def _newest(paths: Sequence[str], most: int, stop: Stop) -> list[str]:
    from heapq import nsmallest

    def age(path: str) -> tuple[int, str]:
        stop()
        try:
            return -os.lstat(path).st_mtime_ns, path
        except OSError:  # removed meanwhile
            return 0, path

    return nsmallest(most, paths, key=age)


def _first(lines: Sequence[Line], most: int, context: int) -> list[Line]:
    """The first `most` lines that match, with the lines around them."""
    chosen: list[Line] = []
    last_match = 0
    for line in lines:
        if line.is_match:
            if not most:
                # What stands between belongs to this match as well: keep what belongs to the last one.
                return [each for each in chosen if each.number <= last_match + context]
            most -= 1
            last_match = line.number
        chosen.append(line)
    return chosen if most else [each for each in chosen if each.number <= last_match + context]


def _parts(path: str) -> list[str]:
    return path.split(os.sep)


def _bounded(value: Any, default: int, most: int, least: int = 1) -> int:
    return default if value is None else max(least, min(int(value), most))


def _counted(count: int, searched: Searched) -> str:
    return f"more than {count - 1:,}" if searched.was_stopped else f"{count:,}"


def _number(count: int, searched: Searched, one: str, many: str = "") -> str:
    more = "+" if searched.was_stopped or searched.timed_out else ""
    return f"{count:,}{more} {one if count == 1 and not more else many or one + 's'}"


def _cut_short(searched: Searched, what: str, advice: str) -> str:
    return f"\n(not all {what}: the search was ended because it took too long; {advice})" if searched.timed_out else ""


def _within_cap(lines: Sequence[str]) -> str:
    """As many lines as may be told."""
    room = MAX_TEXT_CHARS
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*lines[:count], f"({len(lines) - count} more lines would be too long to show: narrow the search)"])
    return "\n".join(lines)


def _nothing(searched: Searched) -> ToolOutput:
    left_out = f"{_LEFT_OUT} So are files of more than {MAX_FILE_MB} MB."
    return _answer(f"No matches. {left_out}{_cut_short(searched, 'files were searched', 'narrow it by path or include')}", "no matches")


def _answer(text: str, summary: str) -> ToolOutput:
    """`summary` is what a person sees first."""
    text = valid_unicode(text)
    lines = text.split("\n")
    shown = lines if len(lines) <= _DISPLAY_LINES else [*lines[:_DISPLAY_LINES], f"… {len(lines) - _DISPLAY_LINES} more lines"]
    return ToolOutput((Text(text),), display=visible("\n".join([summary, *shown])))


def _intent(title: str, args: Mapping[str, Any], problem: str = "") -> Intent:
    where = str(args.get("path") or "")
    whole = visible(f"{title} in {where}" if where else title, one_line=True)
    return Intent(title=clip(whole, 100), preview=whole, problem=problem)


def _no_place(workspace: Workspace, path: str, advice: str) -> Refused:
    if os.path.lexists(path):
        return Refused(f"{workspace.shown(path)} is not a directory: {advice}", "not_directory")
    return Refused(f"{workspace.shown(path)} does not exist: {advice}", "not_found")
