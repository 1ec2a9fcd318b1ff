"""Files that a rule denies reading (`deny = ["read_file secrets/**"]`, `Read(./.env)` of Claude Code), for commands as well.

A rule about reading is about our own tools first. A command that only reads is asked about when it names such a file; in the sandbox those
files are hidden, whatever the command does.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from dragoman.policy.rules import Rule, fits_target

READING = "read_file"
_MOST = 200
"""So many files outside the workspace are hidden for one pattern."""
_MOST_NAMES = 20_000
"""So many denied files are compared with one that has several names."""


def denied_patterns(rules: Iterable[Rule]) -> tuple[str, ...]:
    """The patterns of rules that deny reading certain files. A rule that denies all reading names no file."""
    found = (rule.pattern.strip() for rule in rules if rule.decision == "deny" and rule.tool == READING)
    return tuple(dict.fromkeys(pattern for pattern in found if pattern not in ("", "*", "**")))


def is_denied(patterns: Sequence[str], root: str) -> Callable[[str], bool] | None:
    """Tells it of a path; None if there is nothing to tell."""
    if not patterns:
        return None
    return lambda path: any(fits_target(pattern, path, root) for pattern in patterns)


def find_denied_elsewhere(patterns: Iterable[str]) -> list[str]:
    """What is there of those that name a place by its whole path."""
    found: list[str] = []
    for pattern in patterns:
        if pattern.startswith(("/", "~")):
            whole = os.path.expanduser(pattern).removesuffix("/**")
            found += islice(glob.iglob(whole), _MOST)
    return [path for path in dict.fromkeys(found) if path != "/"]


def has_denied_name(path: str, patterns: Sequence[str], root: str) -> bool:
    """Whether a file is one of those under another name: a hard link. Only a file that has several names is looked for."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    tells = is_denied(patterns, root)
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode) or tells is None:
        return False
    from dragoman.policy.sandbox.depths import Depths

    inside = Depths([root], tells).denied if root else ()
    found = islice(_files_in((*inside, *find_denied_elsewhere(patterns))), _MOST_NAMES)
    return any(os.path.samestat(status, other) for other in found)


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
