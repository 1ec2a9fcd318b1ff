"""Files that a rule denies reading (`deny = ["read_file secrets/**"]`, `Read(./.env)` of Claude Code), for commands as well.

A rule about reading is about our own tools first: whichever opens such a file or finds a line in it is refused. A command that only reads
is asked about when it names such a file; in the sandbox those files are hidden, whatever the command does.
"""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from dragoman.policy.rules import Rule, fits_target

READING = "read_file"
_MOST = 200
"""So many files outside the workspace are hidden for one pattern."""
_MOST_NAMES = 20_000
MAX_FOLDERS = 2_000
"""So many folders are searched for such files when a command is judged."""
"""So many denied files are compared with one that has several names."""
_AGAIN_S = 5.0


def denied_patterns(rules: Iterable[Rule]) -> tuple[str, ...]:
    """The patterns of rules that deny reading certain files. A rule that denies all reading names no file."""
    found = (rule.pattern.strip() for rule in rules if rule.decision == "deny" and rule.tool == READING)
    return tuple(dict.fromkeys(pattern for pattern in found if pattern not in ("", "*", "**")))


def is_denied(patterns: Sequence[str], root: str) -> Callable[[str], bool] | None:
    """Tells it of a path; None if there is nothing to tell."""
    if not patterns:
        return None
    return lambda path: any(fits_target(pattern, path, root) for pattern in patterns)


class DeniedReads:
    """Tells of a file that a tool has opened or found, by its real path and status. One in a folder that is denied is denied too, and so is
    another name of one (a hard link): which these are is looked for again when some seconds have passed."""

    def __init__(self, patterns: Sequence[str], root: str) -> None:
        self._patterns = tuple(patterns)
        self._root = root
        self._looked_s = 0.0
        self._known: frozenset[tuple[int, int]] = frozenset()

    def __call__(self, path: str, status: os.stat_result) -> bool:
        if any(fits_target(pattern, name, self._root) for name in self._names(path) for pattern in self._patterns):
            return True
        return self.is_other_name(status)

    def is_other_name(self, status: os.stat_result) -> bool:
        """Whether a file is a denied one under another name."""
        return status.st_nlink > 1 and (status.st_dev, status.st_ino) in self._with_several_names()

    def _names(self, path: str) -> Iterator[str]:
        """The file, and the folders it is in, up to the workspace."""
        yield path
        while (parent := os.path.dirname(path)) not in (path, self._root):
            yield parent
            path = parent

    def _with_several_names(self) -> frozenset[tuple[int, int]]:
        now = time.monotonic()
        if not self._looked_s or now - self._looked_s > _AGAIN_S:
            found = islice(_denied_files(self._patterns, self._root), _MOST_NAMES)
            self._known = frozenset((each.st_dev, each.st_ino) for each in found if each.st_nlink > 1)
            self._looked_s = now
        return self._known


def deny_reads(rules: Iterable[Rule], root: str) -> DeniedReads | None:
    """None if no rule denies reading certain files."""
    patterns = denied_patterns(rules)
    return DeniedReads(patterns, os.path.realpath(root)) if patterns else None


def find_denied_elsewhere(patterns: Iterable[str]) -> list[str]:
    """What is there of those that name a place by its whole path."""
    found: list[str] = []
    for pattern in patterns:
        if pattern.startswith(("/", "~")):
            whole = os.path.expanduser(pattern).removesuffix("/**")
            # A name may hold what else would be a pattern: /data/[1].
            found += [whole] if os.path.lexists(whole) else islice(glob.iglob(whole), _MOST)
    return [path for path in dict.fromkeys(found) if path != "/"]


def has_denied_name(path: str, patterns: Sequence[str], root: str) -> bool:
    """Whether a file is one of those under another name: a hard link. Only a file that has several names is looked for."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return False
    return any(os.path.samestat(status, other) for other in islice(_denied_files(patterns, root), _MOST_NAMES))


def _denied_files(patterns: Sequence[str], root: str) -> Iterator[os.stat_result]:
    tells = is_denied(patterns, root)
    if tells is None:
        return
    from dragoman.policy.sandbox.survey import Survey

    inside = Survey([root], tells, most=MAX_FOLDERS).look().denied if root else ()
    yield from _files_in((*inside, *find_denied_elsewhere(patterns)))


def _files_in(paths: Iterable[str]) -> Iterator[os.stat_result]:
    for path in paths:
        names = [path]
        if os.path.isdir(path) and not os.path.islink(path):
            names = [os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files]
        for name in names:
            try:
                yield os.lstat(name)
            except OSError:
                continue
