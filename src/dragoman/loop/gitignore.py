""".gitignore patterns, read as git reads them. They are untrusted input: they never run in `re`, and take bounded time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import takewhile

import msgspec

MAX_FILE_BYTES = 100_000
MAX_PATTERN_CHARS = 1_000
MAX_STEPS = 200_000
"""How many steps wildcard patterns may take for one tree, all names together; beyond that they match nothing."""

MAX_READ = 300_000
"""What reading the rules for one tree may cost, all files together: about a unit for each character, more for sets like `[a-z]`. Seventy
files like those that projects begin with fit in."""

MAX_SPELLED_OUT = 32
"""`*.py[cod]` is three endings, and `[Bb]in` two names. Patterns with more alternatives are matched step by step."""

_STEPS_TO_BEGIN = 4
_COST_OF_RULE = 20
_COST_OF_SET = 60
_SPECIAL = "*?[\\"
_ALNUM = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PUNCT = "".join(char for char in map(chr, range(33, 127)) if char not in _ALNUM)
_CLASSES = {
    "alnum": _ALNUM,
    "alpha": _ALNUM[10:],
    "blank": " \t",
    "cntrl": "".join(map(chr, range(32))) + "\x7f",
    "digit": _ALNUM[:10],
    "graph": _ALNUM + _PUNCT,
    "lower": _ALNUM[10:36],
    "print": _ALNUM + _PUNCT + " ",
    "punct": _PUNCT,
    "space": " \t\n\r\v\f",
    "upper": _ALNUM[36:],
    "xdigit": _ALNUM[:16] + "ABCDEF",
}


class StepBudget:
    """The remaining budget of steps for matching patterns."""

    def __init__(self, left: int = MAX_STEPS) -> None:
        self.left = left


class ReadBudget:
    """The remaining budget for reading rules."""

    def __init__(self, left: int = MAX_READ) -> None:
        self.left = left

    def covers(self, line: str) -> bool:
        self.left -= len(line) + _COST_OF_RULE + _COST_OF_SET * line.count("[")
        return self.left >= 0


class _Star(msgspec.Struct, frozen=True):
    crosses: bool
    """Whether it also matches `/`."""


class _Skip(msgspec.Struct, frozen=True):
    """Precedes `**/`, which may match nothing."""


class _Chars(msgspec.Struct, frozen=True):
    """One character of these, or of all others. Never `/`."""

    members: frozenset[str]
    is_negated: bool = False


_Token = str | _Star | _Skip | _Chars
_NEVER = _Chars(frozenset())
_STAR, _CROSSING, _SKIP = _Star(False), _Star(True), _Skip()


class _Rule(msgspec.Struct, frozen=True):
    keeps: bool
    """`!`: re-includes what an earlier rule excluded."""
    only_folders: bool
    whole_path: bool
    """Whether it matches the path from the .gitignore's folder, or the name alone."""
    exact: frozenset[str] = frozenset()
    """Everything it matches, if that is little."""
    suffixes: tuple[str, ...] = ()
    """What follows its one leading star, if that is little."""
    start: str = ""
    """Else: its literal beginning,"""
    rest: tuple[_Token, ...] = ()
    needs: str = ""
    """and the longest literal part of the rest."""


class IgnoreFile:
    """The rules of one .gitignore. Names are compared byte by byte, each byte as a character, as git does."""

    def __init__(self, data: bytes, budget: ReadBudget | None = None) -> None:
        """With a budget that does not suffice, the rules behind are left out, and `is_whole` is false."""
        budget = budget or ReadBudget()
        lines = data[:MAX_FILE_BYTES].removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
        rules = [rule for rule in map(_rule, takewhile(budget.covers, lines)) if rule is not None]
        self.is_whole = len(data) <= MAX_FILE_BYTES and budget.left >= 0
        self._rules = tuple(reversed(rules))
        # Most names match nothing at all, and this shows it quickly.
        self._names = frozenset[str]().union(*(rule.exact for rule in rules if not rule.whole_path))
        self._paths = frozenset[str]().union(*(rule.exact for rule in rules if rule.whole_path))
        self._suffixes = tuple({suffix for rule in rules for suffix in rule.suffixes})
        self._others = tuple(rule for rule in self._rules if rule.rest)

    def verdict(self, path: str, is_folder: bool, steps: StepBudget) -> bool | None:
        """Whether a path, relative to this file's folder, is ignored; None if no rule matches."""
        path = byte_chars(path)
        name = path[path.rfind("/") + 1 :]
        is_likely = name in self._names or path in self._paths or name.endswith(self._suffixes)
        others = self._others if steps.left > 0 else ()
        for rule in self._rules if is_likely else others:
            if (is_folder or not rule.only_folders) and _fits(rule, path if rule.whole_path else name, steps):
                return not rule.keeps
        return None


class IgnoreRules:
    """The .gitignore files that apply in a folder, the nearest first. Immutable: a folder below gets its own."""

    def __init__(self, files: Sequence[tuple[str, IgnoreFile]] = (), steps: StepBudget | None = None) -> None:
        self._files = tuple(files)
        self._steps = steps or StepBudget()

    def within(self, prefix: str, file: IgnoreFile) -> IgnoreRules:
        """With the file in the folder `prefix`, which ends in `/` or is empty."""
        return IgnoreRules(((prefix, file), *self._files), self._steps)

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether it is ignored, given that its parent folders are not."""
        for prefix, file in self._files:
            if (verdict := file.verdict(path[len(prefix) :], is_folder, self._steps)) is not None:
                return verdict
        return False


def byte_chars(name: str) -> str:
    """A name with every byte as one character."""
    return name if name.isascii() else os.fsencode(name).decode("latin-1")


# --- reading -------------------------------------------------------------------------------------------------------------


def _rule(line: str) -> _Rule | None:
    line = _without_spaces_at_end(line.removesuffix("\r"))
    if not line or line.startswith("#") or len(line) > MAX_PATTERN_CHARS:
        return None
    keeps = line.startswith("!")
    pattern = line[keeps:]
    only_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    whole_path = "/" in pattern
    pattern = pattern.removeprefix("/")
    # As in git, the literal beginning is compared first, and the wildcards see only what follows it.
    plain = next((at for at, char in enumerate(pattern) if char in _SPECIAL), len(pattern))
    start, rest = pattern[:plain], _tokens(pattern[plain:], whole_path)
    if not start and not rest:
        return None
    if exact := _expand(rest):
        return _Rule(keeps, only_folders, whole_path, frozenset(start + each for each in exact))
    if not whole_path and not start and rest[0] == _STAR and (suffixes := _expand(rest[1:])):
        return _Rule(keeps, only_folders, whole_path, suffixes=suffixes)
    return _Rule(keeps, only_folders, whole_path, start=start, rest=rest, needs=_longest_literal(rest))


def _expand(tokens: Sequence[_Token]) -> tuple[str, ...]:
    """Everything that tokens without stars match; empty if that is too much."""
    found = [""]
    for token in tokens:
        if isinstance(token, str):
            choices = {token}
        elif isinstance(token, _Chars) and not token.is_negated:
            choices = token.members - {"/"}
        else:
            return ()
        if len(found) * len(choices) > MAX_SPELLED_OUT:
            return ()
        found = [before + choice for before in found for choice in choices]
    return tuple(found)


def _longest_literal(tokens: Sequence[_Token]) -> str:
    # No line holds a newline. The slash of a `**/` that may match nothing is not required.
    plain = "".join(token if isinstance(token, str) else "\n\r" if token == _SKIP else "\n" for token in tokens)
    return max(plain.replace("\r\n/", "\n").split("\n"), key=len)


def _without_spaces_at_end(line: str) -> str:
    """Trailing spaces do not count, unless escaped with a backslash."""
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if backslashes % 2 and len(kept) < len(line) else kept


def _tokens(pattern: str, whole_path: bool) -> tuple[_Token, ...]:
    tokens: list[_Token] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            end = at + len(pattern[at:]) - len(pattern[at:].lstrip("*"))
            tokens += _stars(pattern, at, end) if whole_path else [_STAR]
            at = end
        elif char == "[":
            token, at = _bracket(pattern, at)
            tokens.append(token)
        elif char == "\\":
            tokens.append(pattern[at + 1] if at + 1 < len(pattern) else _NEVER)
            at += 2
        else:
            tokens.append(_Chars(frozenset(), is_negated=True) if char == "?" else char)
            at += 1
    return tuple(tokens)


def _stars(pattern: str, at: int, end: int) -> list[_Token]:
    """`**` crosses folders if it is alone between slashes, and is a `*` anywhere else."""
    behind = pattern[end : end + 2]
    if end - at < 2 or (at and pattern[at - 1] != "/") or (behind and behind[0] != "/" and behind != "\\/"):
        return [_STAR]
    return [_SKIP, _CROSSING] if behind.startswith("/") else [_CROSSING]


def _bracket(pattern: str, at: int) -> tuple[_Token, int]:
    """The set that begins at `at`, and where it ends. An unterminated set matches nothing."""
    at += 1
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    members: set[str] = set()
    before, is_first = "", True
    while is_first or pattern[at : at + 1] != "]":
        is_first = False
        char = pattern[at : at + 1]
        if not char:
            return _NEVER, len(pattern)
        if char == "-" and before and pattern[at + 1 : at + 2] not in ("", "]"):
            at += 2 if pattern[at + 1] == "\\" else 1
            last = pattern[at : at + 1]
            if not last:
                return _NEVER, len(pattern)
            members.update(map(chr, range(ord(before), ord(last) + 1)))
            before = ""
        elif char == "[" and pattern[at + 1 : at + 2] == ":":
            end = pattern.find("]", at + 2)
            if end < 0:
                return _NEVER, len(pattern)
            if end - at < 3 or pattern[end - 1] != ":":  # not a character class after all
                members.add("[")
                before = "["
            elif (named := _CLASSES.get(pattern[at + 2 : end - 1])) is None:
                return _NEVER, len(pattern)
            else:
                members.update(named)
                at, before = end, ""
        else:
            at += char == "\\"
            before = pattern[at : at + 1]
            if not before:
                return _NEVER, len(pattern)
            members.add(before)
        at += 1
    return _Chars(frozenset(members), is_negated), at + 1


# --- matching ------------------------------------------------------------------------------------------------------------


def _fits(rule: _Rule, text: str, steps: StepBudget) -> bool:
    if not rule.rest:
        return text in rule.exact or text.endswith(rule.suffixes)
    if rule.needs not in text or not text.startswith(rule.start):
        return False
    return _follow(rule.rest, text[len(rule.start) :], steps)


def _follow(tokens: Sequence[_Token], text: str, steps: StepBudget) -> bool:
    """All ways to match the text at once: the number of steps is at most the product of both lengths."""
    if steps.left <= 0:
        return False
    steps.left -= _STEPS_TO_BEGIN
    ways = _with_empty([0], tokens)
    for char in text:
        steps.left -= len(ways)
        if not ways or steps.left < 0:
            return False
        onward: list[int] = []
        for way in ways:
            token = tokens[way] if way < len(tokens) else None
            if isinstance(token, _Star):
                if token.crosses or char != "/":
                    onward.append(way)
            elif token == char or (isinstance(token, _Chars) and char != "/" and (char in token.members) != token.is_negated):
                onward.append(way + 1)
        ways = _with_empty(onward, tokens)
    return len(tokens) in ways


def _with_empty(ways: list[int], tokens: Sequence[_Token]) -> list[int]:
    """A star may match nothing, and so may `**/`."""
    found: dict[int, None] = {}
    waiting = ways[::-1]
    while waiting:
        way = waiting.pop()
        if way in found:
            continue
        token = tokens[way] if way < len(tokens) else None
        if isinstance(token, _Skip):
            waiting += [way + 3, way + 1]
            continue
        found[way] = None
        if isinstance(token, _Star):
            waiting.append(way + 1)
    return list(found)
