"""Files that a rule keeps from being read (`deny = ["read_file secrets/**"]`, `Read(./.env)` of Claude Code), for commands as well.

A rule about reading is about our own tools first. A command that only reads is asked about when it names such a file; in the sandbox those
files are hidden, whatever the command does.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from dragoman.policy.rules import Rule, fits_target

READING = "read_file"
_MOST = 200
"""So many files outside the workspace are hidden for one pattern."""


def denied_patterns(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Those of rules that refuse the reading of some files. One that refuses all reading says nothing about a file."""
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
