"""The buffer of streamed text, and finding markers in it. Only a possible beginning of a marker is held back.

Readers are generators that yield when they need more text to decide. Decisions depend on the text alone, never on how it was chunked.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from functools import lru_cache

MAX_CALL_CHARS = 4_000_000
"""Longer calls are rejected."""

Reading = Generator[None, None, None]
"""A reader: it yields when it needs more text."""


class NotACall(Exception):
    """What was being read is not a call; what was taken of it is text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LexerSource:
    """The undecided part of the answer. `kept` holds what was taken since a possible call began."""

    __slots__ = ("_kept_chars", "base", "buffer", "closed", "kept", "position")

    def __init__(self) -> None:
        self.buffer = ""
        self.position = 0
        self.base = 0
        self.closed = False
        self.kept: list[str] = []
        self._kept_chars = 0

    def push(self, text: str) -> None:
        self.base += self.position
        self.buffer = self.buffer[self.position :] + text if self.position < len(self.buffer) else text
        self.position = 0

    @property
    def offset(self) -> int:
        """The position in the whole answer."""
        return self.base + self.position

    @property
    def is_empty(self) -> bool:
        return self.position >= len(self.buffer)

    def keep(self) -> None:
        """Start keeping: a call may begin here."""
        self.kept = []
        self._kept_chars = 0

    def take(self, end: int) -> str:
        is_too_long = self._kept_chars + end - self.position > MAX_CALL_CHARS
        if is_too_long:
            end = self.position + MAX_CALL_CHARS - self._kept_chars
        text = self.buffer[self.position : end]
        self.position = end
        self.kept.append(text)
        self._kept_chars += len(text)
        if is_too_long:
            raise NotACall("it is too long")
        return text

    def skip(self, end: int) -> str:
        """Take text that does not belong to a call."""
        text = self.buffer[self.position : end]
        self.position = end
        return text


# --- reading steps: each takes only what it has decided -------------------------------------------------------------------------------

_SPACE = re.compile(r"\s*")


def has_more(source: LexerSource) -> Generator[None, None, bool]:
    """Whether there is another character; waits for it."""
    while source.position >= len(source.buffer):
        if source.closed:
            return False
        yield
    return True


def take_space(source: LexerSource) -> Generator[None, None, str]:
    """Take all white space."""
    taken: list[str] = []
    while True:
        match = _SPACE.match(source.buffer, source.position)
        end = match.end() if match else source.position
        if end > source.position:
            taken.append(source.take(end))
        if end < len(source.buffer) or source.closed:
            return "".join(taken)
        yield


def match_literal(source: LexerSource, options: tuple[str, ...]) -> Generator[None, None, str]:
    """The longest of the options at this position, not taken; empty if there is none."""
    if not options:
        return ""
    find = finder(options)
    while True:
        match = find.match(source.buffer, source.position)
        if match is None:
            if source.position < len(source.buffer) or source.closed:
                return ""
        elif source.closed or not find.may_grow(match, source):
            return match.group() if match.group() in find.markers else find.longest_at(source.buffer, source.position)
        yield


def match_pattern(source: LexerSource, whole: re.Pattern[str], start: re.Pattern[str]) -> Generator[None, None, re.Match[str] | None]:
    """The match of a pattern at this position, not taken. `start` matches everything that may still become a match; it must be bounded."""
    while not source.closed and start.fullmatch(source.buffer, source.position) is not None:
        yield
    return whole.match(source.buffer, source.position)


def take_until(source: LexerSource, stops: tuple[str, ...], limit: int = MAX_CALL_CHARS) -> Generator[None, None, tuple[str, str]]:
    """Take text up to one of the stops. Returns the text and the stop, which is not taken and is empty at the end of the answer."""
    find, taken, left = finder(stops), list[str](), limit
    while True:
        window = source.position + left + find.longest
        match = find.search(source.buffer, source.position, window)
        end = match.start() if match else min(window, len(source.buffer))
        if end - source.position > left:
            source.take(source.position + left)
            raise NotACall("it is too long")
        if end > source.position:
            left -= end - source.position
            taken.append(source.take(end))
        if match is not None and match.group() in find.markers and (source.closed or not find.may_grow(match, source)):
            return "".join(taken), match.group()
        if source.closed:
            if match is not None:
                taken.append(source.take(len(source.buffer)))
            return "".join(taken), ""
        yield


# --- markers --------------------------------------------------------------------------------------------------------------------------


class Finder:
    """Finds the first of many markers, or the beginning of one at the end of the text, in one pass.

    `beside` holds further patterns. Each must begin with a plain character, or finding is slow.
    """

    __slots__ = ("_beginnings", "longest", "markers", "match", "search")

    def __init__(self, markers: Iterable[str], beside: Iterable[str] = ()) -> None:
        self.markers = frozenset(markers)
        self.longest = max(map(len, self.markers), default=1)
        self._beginnings = frozenset(marker[:size] for marker in self.markers for size in range(1, len(marker)))
        compiled = re.compile("|".join((trie_pattern(self.markers), *beside)))
        self.search = compiled.search
        self.match = compiled.match

    def may_grow(self, match: re.Match[str], source: LexerSource) -> bool:
        """Whether more text may turn it into a longer marker."""
        return match.end() == len(source.buffer) and match.group() in self._beginnings

    def longest_at(self, text: str, position: int) -> str:
        """The longest complete marker at a position where the text ends within a longer one."""
        return max((marker for marker in self.markers if text.startswith(marker, position)), key=len, default="")


@lru_cache(maxsize=512)
def finder(markers: tuple[str, ...]) -> Finder:
    return Finder(markers)


def trie_pattern(markers: Iterable[str]) -> str:
    """A pattern that matches each marker, longest first, and at the end of the text any beginning of one."""
    trie: dict[str, dict] = {}  # pyrefly: ignore[implicit-any-type-argument]
    for marker in markers:
        node = trie
        for character in marker:
            node = node.setdefault(character, {})
        node[""] = {}
    return _node_pattern(trie, is_root=True)


def _node_pattern(node: dict[str, dict], *, is_root: bool = False) -> str:  # pyrefly: ignore[implicit-any-type-argument]
    branches: list[str] = []
    for character in sorted(key for key in node if key):
        path, below = character, node[character]
        while len(below) == 1 and "" not in below:  # a run without branches, any prefix of which may end the text
            ((character, below),) = below.items()
            path += character
        branches.append(_run_pattern(path, _node_pattern(below)))
    if is_root:
        return "|".join(branches)
    if not branches:
        return ""
    ending = "" if "" in node else r"|\Z"
    optional = "?" if "" in node else ""
    return f"(?:{'|'.join(branches)}{ending}){optional}"


def _run_pattern(path: str, rest: str) -> str:
    """The run and what follows, or as much of the run as is left of the text."""
    pattern = re.escape(path[-1]) + rest
    for character in reversed(path[:-1]):
        pattern = f"{re.escape(character)}(?:{pattern}|\\Z)"
    return pattern
