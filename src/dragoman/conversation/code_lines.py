"""What a server or hook runs of a project, in words: what a yes to it covers."""

from __future__ import annotations

import os

from dragoman.base.runs.search import ProjectCode
from dragoman.words import say

MAX_NAMES = 12


def code_lines(code: ProjectCode, project: str) -> list[str]:
    """Lines for the question: the files it runs, and what cannot be known."""
    root = os.path.realpath(project)
    lines = [say("offers_files", names=_names(code.files, root))] if code.files else []
    if code.unknown:
        lines.append(say("offers_unknown", names=_names(code.unknown, root)))
    if code.is_too_much:
        lines.append(say("offers_too_much"))
    return lines


def _names(paths: tuple[str, ...], root: str) -> str:
    shown = [os.path.relpath(path, root) for path in paths[:MAX_NAMES]]
    more = len(paths) - MAX_NAMES
    return ", ".join([*shown, say("trust_more", count=more)] if more > 0 else shown)
