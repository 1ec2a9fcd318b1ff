"""`--worktree [NAME]`: runs the command in a git worktree of its own."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from dragoman.app.console import Messages
from dragoman.app.options import Options
from dragoman.app.setup import require_directory
from dragoman.app.worktrees import Worktree, leave_worktree, open_worktree
from dragoman.words import say


def run_in_worktree(options: Options, run: Callable[[Options], int]) -> int:
    """Make the worktree or go into it, run there, and say what became of it. Raises InputError if there can be none."""
    directory = require_directory(options.directory or ".", "-C")
    worktree = open_worktree(directory, options.worktree or f"session-{os.urandom(3).hex()}")
    messages = Messages()
    for line in _greeting(worktree):
        messages.line(say("notice", text=line))
    try:
        return run(_in_worktree(options, directory, worktree))
    finally:
        for line in leave_worktree(worktree).splitlines():
            messages.line(say("notice", text=line.strip()))


def _greeting(worktree: Worktree) -> list[str]:
    made = bool(worktree.base)
    lines = [say("worktrees.made" if made else "worktrees.entered", path=worktree.path, branch=worktree.branch)]
    if worktree.left_behind:
        lines.append(say("worktrees.left_behind", count=worktree.left_behind))
    if worktree.unfiltered:
        lines.append(say("worktrees.unfiltered", key=worktree.unfiltered))
    return lines


def _in_worktree(options: Options, directory: str, worktree: Worktree) -> Options:
    """Paths that were given are meant from where the user is."""
    include = tuple(os.path.join(directory, os.path.expanduser(path)) for path in options.include)
    config = os.path.join(directory, os.path.expanduser(options.config)) if options.config else ""
    return replace(options, directory=worktree.workspace, include=include, config=config, worktree=None)
