"""glob and grep: finding files by name and by content. ripgrep does the work; nothing outside the workspace is found."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman.base.jsontext import valid_unicode
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden, hidden_note
from dragoman.tools import ripgrep
from dragoman.tools.description import load_description
from dragoman.tools.matches import Counts, Line, Matches, Paths
from dragoman.tools.ripgrep import SearchStatus, find_ripgrep, run_ripgrep
from dragoman.tools.worker import Stop, in_thread
from dragoman.tools.workspace import ToolRefusal, Workspace
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

if TYPE_CHECKING:
    from dragoman.tools.path_pattern import PathPattern

MAX_RESULTS = 1_000
MAX_REGEX_CHARS = 10_000
MAX_CONTEXT_LINES = 10
MAX_TEXT_CHARS = 40_000
MAX_CANDIDATES = 400_000
"""glob looks for the newest among at most this many files."""
UNSORTED_RESULTS = 2_000
"""Up to this many results, ripgrep searches in parallel and we sort. With more, it searches again in order, on one core."""
MAX_FILE_MB = 200
"""ripgrep holds a line in memory, and a file may be a single line."""
MIN_SECOND_S = 1.0
"""What the second search may take at least."""
_DISPLAY_LINES = 20
_NO_LOOKING_AROUND = (
    "look-ahead, look-behind and backreferences are not to be had here: search for a simpler pattern and choose among its matches, "
    "or use run_shell (grep -P)"
)
_LEFT_OUT = "Hidden files and those that .gitignore names are left out."

C = TypeVar("C", Paths, Counts, Matches)


class _Finder(ABC):
    """What glob and grep share: the start directory, and the refusal if it cannot be searched."""

    spec: ToolSpec

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def intend(self, args: Mapping[str, Any]) -> Intent:
        title = f"{self.spec.name} {args.get('pattern', '')}"
        try:
            self._prepare(args)
        except ToolRefusal as refused:
            return _intent(title, args, refused.message)
        return _intent(title, args)

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            return await self._find(args)
        except ToolRefusal as refused:
            return refused.output()
        except OSError as error:
            return ToolRefusal(f"ripgrep could not be started: {error.strerror or error}", "not_started").output()

    @abstractmethod
    def _prepare(self, args: Mapping[str, Any]) -> object:
        """Validate the arguments. Raises ToolRefusal."""

    @abstractmethod
    async def _find(self, args: Mapping[str, Any]) -> ToolOutput: ...


class Glob(_Finder):
    """Finds files by name, the newest first."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.spec = ToolSpec.of(
            "glob",
            load_description("glob"),
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "Like *.py (in any directory), src/**/*.ts or {a,b}/*.md."},
                    "path": {"type": "string", "description": "The directory to search; the workspace's root unless told."},
                    "max_results": {"type": "integer", "description": "200 unless told."},
                },
                "required": ["pattern"],
                "additionalProperties": False,
            },
            display_name="Find files",
            kind="search",
            read_only=True,
        )

    def _prepare(self, args: Mapping[str, Any]) -> tuple[str, PathPattern]:
        """Where to start, and what to look for. Raises ToolRefusal."""
        from dragoman.tools.path_pattern import PathPattern

        pattern = PathPattern(str(args.get("pattern", "")))
        directory = self._workspace.resolve(str(args.get("path") or "."))
        if not os.path.isdir(directory):
            raise _missing_start_refusal(self._workspace, directory, "name the directory to search")
        # Literal directories of the pattern need no search, and may be ignored by .gitignore.
        return self._workspace.resolve(os.path.join(directory, pattern.start)) if pattern.start else directory, pattern

    async def _find(self, args: Mapping[str, Any]) -> ToolOutput:
        start, pattern = self._prepare(args)
        most = _clamp(args.get("max_results") or None, 200, MAX_RESULTS)
        prefix = os.path.join(start, "")
        hides = self._workspace.hides
        paths = Paths(lambda path: path.startswith(prefix) and pattern.matches(path[len(prefix) :]) and not hides(path), MAX_CANDIDATES)
        options = ["--files", "--null", *pattern.filters(), *(["--hidden"] if pattern.wants_hidden else [])]
        status = await run_ripgrep(find_ripgrep(self._workspace.root), options, start, paths.take, ripgrep.TIMEOUT_S)
        if status.problem and not paths.found:
            raise ToolRefusal(f"the search failed: {status.problem}", "search_failed")
        newest = await in_thread(lambda stop: _newest(paths.found, most, stop))
        lines = list(map(self._workspace.display_path, newest))
        note = _timeout_note(status, "files", "use a narrower pattern or path")
        if len(paths.found) > len(lines) or status.was_stopped:
            count = f"more than {MAX_CANDIDATES:,}" if status.was_stopped else f"{len(paths.found):,}"
            note = f"{note}\n({len(lines)} of {count} files, the newest first: use a narrower pattern or path for the others)"
        if not lines:
            return _to_output(f"No files match {escape_hidden(str(args['pattern']), one_line=True)}. {_LEFT_OUT}{note}", "no files")
        return _to_output(_join_within_cap(lines) + note, _format_count(len(paths.found), status, "file"))


class Grep(_Finder):
    """Finds lines by a regular expression."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.spec = ToolSpec.of(
            "grep",
            load_description("grep"),
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
                "additionalProperties": False,
            },
            display_name="Search",
            kind="search",
            read_only=True,
        )

    def tidy(self, args: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        from dragoman.tools.habits import tidy_grep  # only for arguments that do not fit

        return tidy_grep(args)

    def _prepare(self, args: Mapping[str, Any]) -> tuple[str, PathPattern | None]:
        """Where to search, and in which files. Raises ToolRefusal."""
        regex = str(args.get("pattern", ""))
        if not regex:
            raise ToolRefusal("the pattern is empty: say what to look for", "invalid")
        if len(regex) > MAX_REGEX_CHARS or "\0" in regex:
            raise ToolRefusal(f"the pattern holds a NUL or more than {MAX_REGEX_CHARS:,} characters: use a simpler one", "invalid")
        start = self._workspace.resolve(str(args.get("path") or "."))
        if not os.path.exists(start):
            raise _missing_start_refusal(self._workspace, start, "name what to search")
        if not os.path.isdir(start):
            self._workspace.require_regular(start, os.lstat(start))  # reading a FIFO or a device may never end
        # Literal directories in the pattern are still relative to `path`, so they are not removed.
        include = str(args.get("include") or "")
        from dragoman.tools.path_pattern import PathPattern

        return start, PathPattern(include, hidden=bool(args.get("hidden"))) if include else None

    async def _find(self, args: Mapping[str, Any]) -> ToolOutput:
        start, include = self._prepare(args)
        most = _clamp(args.get("max_results") or None, 100, MAX_RESULTS)
        context = _clamp(args.get("context"), 0, MAX_CONTEXT_LINES, least=0)
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
        search = _Search(self._workspace, start, include)
        match args.get("output_mode"):
            case "files":
                paths, status = await search.run(["--files-with-matches", "--null", *options], Paths, most)
                return self._render_paths(
                    [self._workspace.display_path(path) for path in sorted(paths.found, key=_parts)], most, status, "files"
                )
            case "count":
                counts, status = await search.run(["--count", "--with-filename", "--null", *options], Counts, most)
                found = sorted(counts.found.items(), key=lambda item: _parts(item[0]))
                return self._render_paths(
                    [f"{self._workspace.display_path(path)}: {count}" for path, count in found], most, status, "files"
                )
            case _:
                options += ["--json", f"--context={context}"]
                matches, status = await search.run(options, Matches, most)
                return self._render_lines(matches, most, context, status)

    def _render_paths(self, lines: list[str], most: int, status: SearchStatus, what: str) -> ToolOutput:
        if not lines:
            return _no_matches(status)
        note = _timeout_note(status, what, "narrow it by path or include")
        if len(lines) > most:
            note = f"{note}\n({most} of {_format_total(len(lines), status)} {what}: narrow it by path or include)"
        return _to_output(_join_within_cap(lines[:most]) + note, _format_count(len(lines), status, "file"))

    def _render_lines(self, matches: Matches, most: int, context: int, status: SearchStatus) -> ToolOutput:
        lines: list[str] = []
        left = most
        for path in sorted(matches.found, key=_parts):
            lines += ["", self._workspace.display_path(path)] if lines else [self._workspace.display_path(path)]
            last = 0
            for line in _first(matches.found[path], left, context):
                if context and last and line.number != last + 1:
                    lines.append("--")
                lines.append(f"{line.number}{':' if line.is_match else '-'} {line.text}")
                left, last = left - line.is_match, line.number
            if left <= 0:
                break
        note = _timeout_note(status, "matches", "narrow it by path or include")
        if matches.passed_over:
            note = f"{note}\n({matches.passed_over} matches are in lines of more than a megabyte and are not shown)"
        if not lines:
            return _to_output(f"No line that can be shown matches.{note}", "no matches") if note else _no_matches(status)
        if matches.count > most:
            note = f"{note}\n({most} of {_format_total(matches.count, status)} matches: narrow it by path or include)"
        files = f" in {_format_count(len(matches.found), status, 'file')}"
        shown_lines = _join_within_cap(lines)
        if hidden := hidden_note(shown_lines):
            note = f"{note}\n(this result {hidden})"
        return _to_output(shown_lines + note, _format_count(matches.count, status, "match", "matches") + files)


class _Search:
    """One search, or two: first in parallel; if that finds too much, again in order and only as far as needed."""

    def __init__(self, workspace: Workspace, start: str, include: PathPattern | None) -> None:
        self._program = find_ripgrep(workspace.root)
        self._may_read = workspace.may_read
        self._start = start
        self._include = include
        self._base = os.path.join(start if os.path.isdir(start) else os.path.dirname(start), "")

    async def run(self, options: Sequence[str], collector: type[C], most: int) -> tuple[C, SearchStatus]:
        ends_at_s = time.monotonic() + ripgrep.TIMEOUT_S
        found = collector(self._is_wanted, UNSORTED_RESULTS)
        status = await run_ripgrep(self._program, options, self._start, found.take, ripgrep.TIMEOUT_S)
        if "--pcre2" in status.problem and not found.found:  # the pattern looks around or back, which ripgrep's own engine does not
            options = ["--pcre2", "--messages", *options]
            status = await run_ripgrep(self._program, options, self._start, found.take, ripgrep.TIMEOUT_S)
            if "PCRE2 is not available" in status.problem:
                raise ToolRefusal(_NO_LOOKING_AROUND, "bad_pattern")
            status = _end_of_pcre2(status)
        if status.was_stopped:
            left_s = max(MIN_SECOND_S, ends_at_s - time.monotonic())
            in_order = collector(self._is_wanted, most)
            second = await run_ripgrep(self._program, ["--sort=path", *options], self._start, in_order.take, left_s)
            if second.timed_out:  # what the first found is more, though not the first in order
                return found, msgspec.structs.replace(status, timed_out=True)
            found, status = in_order, second
        if status.problem and not found.found:
            raise ToolRefusal(f"the search failed: {_without_advice(status.problem)}", "bad_pattern")
        return found, status

    def _is_wanted(self, path: str) -> bool:
        return self._is_included(path) and self._may_read(path)

    def _is_included(self, path: str) -> bool:
        if self._include is None:
            return True
        relative = path[len(self._base) :]
        start = self._include.start
        if not start:
            return self._include.matches(relative)
        return relative.startswith(start + "/") and self._include.matches(relative[len(start) + 1 :])


def _end_of_pcre2(status: SearchStatus) -> SearchStatus:
    """PCRE2 gives up a line after so many steps, which counts as taking too long; files that cannot be read are left out, as ever."""
    is_pattern_wrong = "PCRE2: error compiling" in status.problem
    gave_up = "PCRE2: error matching" in status.problem
    return SearchStatus(status.problem if is_pattern_wrong else "", status.was_stopped, status.timed_out or gave_up)


def _without_advice(problem: str) -> str:
    """ripgrep's error, without advice about flags that this tool does not have."""
    return problem.partition("\n\nConsider enabling")[0]


def _newest(paths: Sequence[str], most: int, stop: Stop) -> list[str]:
    def age(path: str) -> tuple[int, str]:
        stop()
        try:
            return -os.lstat(path).st_mtime_ns, path
        except OSError:  # removed in the meantime
            return 0, path

    return nsmallest(most, paths, key=age)


def _first(lines: Sequence[Line], most: int, context: int) -> list[Line]:
    """The first `most` lines that match, with the lines around them."""
    chosen: list[Line] = []
    last_match = 0
    for line in lines:
        if line.is_match:
            if not most:
                # The lines in between are context of this match too: keep only the context of the last one.
                return [each for each in chosen if each.number <= last_match + context]
            most -= 1
            last_match = line.number
        chosen.append(line)
    return chosen if most else [each for each in chosen if each.number <= last_match + context]


def _parts(path: str) -> list[str]:
    return path.split(os.sep)


def _clamp(value: Any, default: int, most: int, least: int = 1) -> int:
    return default if value is None else max(least, min(int(value), most))


def _format_total(count: int, status: SearchStatus) -> str:
    return f"more than {count - 1:,}" if status.was_stopped else f"{count:,}"


def _format_count(count: int, status: SearchStatus, one: str, many: str = "") -> str:
    more = "+" if status.was_stopped or status.timed_out else ""
    return f"{count:,}{more} {one if count == 1 and not more else many or one + 's'}"


def _timeout_note(status: SearchStatus, what: str, advice: str) -> str:
    return f"\n(not all {what}: the search was ended because it took too long; {advice})" if status.timed_out else ""


def _join_within_cap(lines: Sequence[str]) -> str:
    """As many lines as fit, with a note about the rest."""
    room = MAX_TEXT_CHARS
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*lines[:count], f"({len(lines) - count} more lines would be too long to show: narrow the search)"])
    return "\n".join(lines)


def _no_matches(status: SearchStatus) -> ToolOutput:
    left_out = f"{_LEFT_OUT} So are files of more than {MAX_FILE_MB} MB."
    return _to_output(f"No matches. {left_out}{_timeout_note(status, 'files were searched', 'narrow it by path or include')}", "no matches")


def _to_output(text: str, summary: str) -> ToolOutput:
    """`summary` is what the user sees first."""
    text = valid_unicode(text)
    lines = text.split("\n")
    shown = lines if len(lines) <= _DISPLAY_LINES else [*lines[:_DISPLAY_LINES], f"… {len(lines) - _DISPLAY_LINES} more lines"]
    return ToolOutput((Text(text),), display=escape_hidden("\n".join([summary, *shown])))


def _intent(title: str, args: Mapping[str, Any], problem: str = "") -> Intent:
    where = str(args.get("path") or "")
    whole = escape_hidden(f"{title} in {where}" if where else title, one_line=True)
    return Intent(title=clip(whole, 100), preview=whole, problem=problem)


def _missing_start_refusal(workspace: Workspace, path: str, advice: str) -> ToolRefusal:
    if os.path.lexists(path):
        return ToolRefusal(f"{workspace.display_path(path)} is not a directory: {advice}", "not_directory")
    return ToolRefusal(f"{workspace.display_path(path)} does not exist: {advice}", "not_found")
