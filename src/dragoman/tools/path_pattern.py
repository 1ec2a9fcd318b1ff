"""Glob patterns, matched against the paths that ripgrep lists.

ripgrep's own `--glob` overrides .gitignore. So ripgrep only lists files, and we match them here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dragoman.tools.pathglob import expand_braces, is_pattern, matches_name
from dragoman.tools.workspace import ToolRefusal

MAX_PATTERN_CHARS = 1_000
_KNOWN_DIRECTORIES = 10_000
"""Cache size: files arrive by directory, so the match of a directory is computed once."""

_Fits = Callable[[str], bool]
_ANY_DEPTH = "**"


class PathPattern:
    """`*.py` in any directory, `src/*.py` in one, `src/**/*.py` beneath it, `{a,b}/*.md` in two.

    Hidden files and directories need a dot in the pattern, unless `hidden`.
    """

    def __init__(self, pattern: str, *, hidden: bool = False) -> None:
        """Raises ToolRefusal for an invalid pattern."""
        alternatives = [_segments(each) for each in _expand(pattern)]
        self.start = _shared_start(alternatives)
        """The directory that contains everything that can match; empty if there is none."""
        depth = len(self.start.split("/")) if self.start else 0
        self._hidden = hidden
        self._alternatives = [segments[depth:] for segments in alternatives]
        self._known: dict[str, list[_Fits]] = {}
        self._compiled = [[_compile_segment(segment, hidden) for segment in segments] for segments in self._alternatives]

    @property
    def wants_hidden(self) -> bool:
        """Whether hidden files can match."""
        return self._hidden or any(segment.startswith(".") for segments in self._alternatives for segment in segments)

    def filters(self) -> list[str]:
        """ripgrep options that skip files whose names cannot match."""
        names = {segments[-1] for segments in self._alternatives}
        if not all(map(_is_simple, names)):
            return []
        # A file type, unlike a glob, does not override .gitignore.
        return [*(f"--type-add=wanted:{name}" for name in sorted(names)), "--type=wanted"]

    def matches(self, path: str) -> bool:
        """Whether a path, relative to `start`, matches."""
        directory, _, name = path.rpartition("/")
        last = self._known.get(directory)
        if last is None:
            last = self._last_parts(directory.split("/") if directory else [])
            if len(self._known) >= _KNOWN_DIRECTORIES:
                self._known.clear()
            self._known[directory] = last
        return any(fits(name) for fits in last)

    def _last_parts(self, directories: list[str]) -> list[_Fits]:
        """The patterns of which a name in these directories must match one."""
        return [last for *before, last in self._compiled if last is not None and self._leads_to(directories, before)]

    def _leads_to(self, directories: list[str], before: Sequence[_Fits | None]) -> bool:
        # All alternatives in parallel (as an NFA), so that no pattern backtracks.
        ways = _with_skips({0}, before)
        for directory in directories:
            ways = _with_skips({way for start in ways for way in self._steps(start, before, directory)}, before)
        return len(before) in ways

    def _steps(self, way: int, before: Sequence[_Fits | None], directory: str) -> list[int]:
        if way == len(before):
            return []
        fits = before[way]
        if fits is None:
            return [way] if self._hidden or not directory.startswith(".") else []
        return [way + 1] if fits(directory) else []


def _expand(pattern: str) -> list[str]:
    if not pattern.strip():
        raise ToolRefusal("the pattern is empty: `**/*` means every file", "invalid")
    if pattern.startswith("!"):
        raise ToolRefusal("the pattern begins with `!`: a pattern says what to find, not what to leave out", "invalid")
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ToolRefusal(
            f"the pattern has {len(pattern):,} characters, and {MAX_PATTERN_CHARS:,} are allowed: use a simpler one", "invalid"
        )
    alternatives = expand_braces(pattern)
    for each in alternatives:
        if each.startswith("/"):
            raise ToolRefusal(
                "the pattern begins with `/`: patterns are relative, so name the directory in `path` and leave it out here", "invalid"
            )
        if ".." in each.split("/"):
            raise ToolRefusal("the pattern holds `..`: name the directory to search in `path` instead", "invalid")
    return alternatives


def _segments(pattern: str) -> list[str]:
    segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
    if not segments:
        return [_ANY_DEPTH, "*"]
    if pattern.endswith("/") and segments[-1] != _ANY_DEPTH:
        segments.append(_ANY_DEPTH)
    if segments[-1] == _ANY_DEPTH:
        segments.append("*")
    if len(segments) == 1 and "/" not in pattern:
        segments.insert(0, _ANY_DEPTH)
    return [segment for at, segment in enumerate(segments) if not (segment == _ANY_DEPTH and segments[at - 1 : at] == [_ANY_DEPTH])]


def _shared_start(alternatives: list[list[str]]) -> str:
    """The literal directories with which all alternatives begin."""
    shared: list[str] = []
    for level in zip(*(segments[:-1] for segments in alternatives), strict=False):
        if len(set(level)) > 1 or is_pattern(level[0]):
            break
        shared.append(level[0])
    return "/".join(shared)


def _with_skips(ways: set[int], before: Sequence[_Fits | None]) -> set[int]:
    """`**` may match no directory at all."""
    for way in range(len(before)):
        if way in ways and before[way] is None:
            ways.add(way + 1)
    return ways


def _compile_segment(segment: str, hidden: bool) -> _Fits | None:
    """A matcher for one segment of a pattern; None for `**`."""
    if segment == _ANY_DEPTH:
        return None
    if not is_pattern(segment):
        return segment.__eq__
    if segment == "*":
        return lambda name: hidden or not name.startswith(".")
    suffix = segment[1:]
    if segment.startswith("*") and not is_pattern(suffix):
        return lambda name: name.endswith(suffix) and (hidden or not name.startswith("."))
    if hidden:  # with a letter before both, no name counts as hidden
        return lambda name: matches_name("a" + name, "a" + segment)
    return lambda name: matches_name(name, segment)


def _is_simple(name: str) -> bool:
    """Whether ripgrep interprets it as we do, and it filters anything."""
    return name.isascii() and name.strip("*") != "" and all(char.isalnum() or char in "*?._-" for char in name)
