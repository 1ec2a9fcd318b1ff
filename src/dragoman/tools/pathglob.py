"""Expanding glob patterns (`*`, `?`, `[a-z]`, `{a,b}`, `**`) by a directory walk that is bounded in count and time.

Patterns come from the model, so they never run in `re`: matching takes at most the product of both lengths.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from dragoman.tools.names import escape_name, truncate_path
from dragoman.tools.worker import Stop
from dragoman.tools.workspace import PathRefusal, ToolRefusal, Workspace

MAX_SCANNED = 50_000
MAX_SECONDS = 5.0
MAX_ALTERNATIVES = 64
"""How many patterns the braces of one may expand to."""
SKIPPED = frozenset({"node_modules", "__pycache__"})
"""Directories that `**` skips, like hidden ones: they contain generated or third-party files."""


class FoundFiles(msgspec.Struct, frozen=True):
    paths: tuple[str, ...]
    """Absolute, sorted."""
    is_complete: bool
    """False if the walk reached its limits."""


def is_pattern(path: str) -> bool:
    return any(char in path for char in "*?[{")


def find_files(workspace: Workspace, pattern: str, stop: Stop) -> FoundFiles:
    """The files that match a pattern. Links to directories are not followed. Raises PathRefusal."""
    walk = _Walk(workspace, stop)
    for plain in expand_braces(pattern):
        parts = [part for part in plain.split("/") if part not in ("", ".")]
        fixed = next((index for index, part in enumerate(parts) if is_pattern(part)), len(parts))
        if ".." in parts[fixed:]:
            raise PathRefusal(f"{truncate_path(escape_name(pattern))}: `..` cannot follow a wildcard: name the directory itself", "invalid")
        start = ("/" if plain.startswith("/") else "") + "/".join(parts[:fixed])
        walk.go(workspace.resolve(start or "."), _normalise(parts[fixed:]))
    return FoundFiles(tuple(sorted(walk.found)), walk.is_complete)


def _normalise(parts: Sequence[str]) -> list[str]:
    """Collapse repeated `**`; one at the end means every file beneath."""
    kept = [part for index, part in enumerate(parts) if part != "**" or parts[index - 1 : index] != ["**"]]
    return [*kept, "*"] if kept[-1:] == ["**"] else kept


class _Walk:
    def __init__(self, workspace: Workspace, stop: Stop) -> None:
        self.found: set[str] = set()
        self.is_complete = True
        self._workspace = workspace
        self._stop = stop
        self._listed: dict[str, list[tuple[str, bool]]] = {}
        self._scanned = 0
        self._deadline_s = time.monotonic() + MAX_SECONDS

    def go(self, start: str, parts: Sequence[str]) -> None:
        """Breadth first: if the limits are reached, files near the start have been found."""
        if not parts:
            self._take_if_file(start)
            return
        waiting = deque([(start, 0)])
        known = {(start, 0)}
        while waiting:
            self._stop()
            for step in self._steps(*waiting.popleft(), parts):
                if step not in known:
                    known.add(step)
                    waiting.append(step)

    def _steps(self, directory: str, position: int, parts: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Where to look next, from a directory in which parts[position] is searched."""
        part, is_last = parts[position], position == len(parts) - 1
        if part == "**":
            yield directory, position + 1
            yield from ((path, position) for path, is_directory in self._list(directory) if is_directory and _is_entered(path))
        elif is_pattern(part):
            for path, is_directory in self._list(directory):
                if is_directory == is_last or not matches_name(os.path.basename(path), part):
                    continue
                if is_last:
                    self.found.add(path)
                else:
                    yield path, position + 1
        elif is_last:
            self._take_if_file(os.path.join(directory, part))
        else:
            yield os.path.join(directory, part), position + 1

    def _list(self, directory: str) -> list[tuple[str, bool]]:
        """The paths in a directory, and whether each is a directory; links to directories, FIFOs and devices are left out."""
        if directory in self._listed:
            return self._listed[directory]
        listed: list[tuple[str, bool]] = []
        self._listed[directory] = listed
        if self._is_exhausted():
            return listed
        try:
            with self._workspace.directory(directory) as opened, opened.scan() as entries:
                for entry in entries:
                    if self._is_exhausted():
                        break
                    self._scanned += 1
                    if (is_directory := entry.is_dir(follow_symlinks=False)) or entry.is_file():
                        listed.append((os.path.join(directory, entry.name), is_directory))
        except (OSError, ToolRefusal):
            pass  # removed, not a directory, or not readable
        return listed

    def _is_exhausted(self) -> bool:
        """Whether the limits are reached. What is already listed is still processed."""
        if self._scanned < MAX_SCANNED and time.monotonic() <= self._deadline_s:
            return False
        self.is_complete = False
        return True

    def _take_if_file(self, path: str) -> None:
        if os.path.isfile(path):
            self.found.add(path)


def _is_entered(path: str) -> bool:
    name = os.path.basename(path)
    return not name.startswith(".") and name not in SKIPPED


# --- patterns ------------------------------------------------------------------------------------------------------------


def expand_braces(pattern: str) -> list[str]:
    """`a.{b,c}` → `a.b`, `a.c`. Unbalanced braces stay as they are; beyond MAX_ALTERNATIVES nothing more is expanded."""
    done: list[str] = []
    waiting = deque([pattern])
    while waiting:
        each = waiting.popleft()
        alternatives = _first_alternatives(each)
        if alternatives and len(done) + len(waiting) + len(alternatives) <= MAX_ALTERNATIVES:
            waiting.extendleft(reversed(alternatives))
        else:
            done.append(each)
    return done


def _first_alternatives(pattern: str) -> list[str]:
    """The expansions of the first innermost pair of braces; empty if there is none."""
    end = pattern.find("}")
    start = pattern.rfind("{", 0, end)
    if end < 0 or start < 0:
        return []
    return [pattern[:start] + choice + pattern[end + 1 :] for choice in pattern[start + 1 : end].split(",")]


def matches_name(name: str, pattern: str) -> bool:
    """Whether a pattern without `/` matches a whole name. A hidden name needs a pattern that begins with a dot."""
    if name.startswith(".") and not pattern.startswith("."):
        return False
    tokens = _tokens(pattern)
    at_name = at_token = 0
    star, star_name = -1, 0
    while at_name < len(name):
        if at_token < len(tokens) and tokens[at_token] == "*":
            star, star_name = at_token, at_name
            at_token += 1
        elif at_token < len(tokens) and _fits(name[at_name], tokens[at_token]):
            at_name += 1
            at_token += 1
        elif star >= 0:  # let the last star match one character more; earlier ones need no backtracking
            star_name += 1
            at_name, at_token = star_name, star + 1
        else:
            return False
    return all(token == "*" for token in tokens[at_token:])


def _tokens(pattern: str) -> list[str]:
    """`*`, `?`, `[…]` with its brackets, or a single character."""
    tokens: list[str] = []
    position = 0
    while position < len(pattern):
        # A leading `]` is literal.
        first = position + (3 if pattern[position + 1 : position + 2] in ("!", "^") else 2)
        end = pattern.find("]", first) if pattern[position] == "[" else -1
        token = pattern[position : end + 1] if end > 0 else pattern[position]
        tokens.append(token)
        position += len(token)
    return tokens


def _fits(char: str, token: str) -> bool:
    if len(token) == 1:
        return token in ("?", char)
    is_negated = token[1] in "!^"
    members = token[2:-1] if is_negated else token[1:-1]
    is_member = False
    position = 0
    while position < len(members):
        if members[position + 1 : position + 2] == "-" and position + 2 < len(members):
            is_member |= members[position] <= char <= members[position + 2]
            position += 3
        else:
            is_member |= members[position] == char
            position += 1
    return is_member != is_negated
