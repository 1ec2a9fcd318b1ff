"""Looks at the repository around the workspace while the first answer is waited for, so that the first request does not wait for git.

The model is told with the next request, if there is one, which folder was looked at and when. Where it had called a tool by then, what was
found may be its own work, and nothing is told.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from itertools import islice

from dragoman.base.clock import now_ms
from dragoman.context.environment import STATUS
from dragoman.loop.history import History
from dragoman.tools.names import escape_name, truncate_path
from dragoman.values.errors import InputError
from dragoman.values.record import ToolStarted

MAX_FILES = 10
LOOK_S = 2.0
"""How long git may take. What takes longer is not told."""
SOON_S = 0.1
"""How long it waits before it begins: the request is sent first."""
_STATUS = ("status", "--porcelain", "-z", "--branch", "--no-ahead-behind", "--no-renames", "--ignore-submodules=all")


class StatusLook:
    """Looks once, in a thread. Implements loop.surroundings.GitStatus."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._has_begun = self._is_taken = False
        self._before = 0
        """How many entries there were when it began."""
        self._found: tuple[int, int, Sequence[str]] | None = None
        """When git began to look and when it had looked, and the lines."""

    def begin(self, history: History) -> None:
        if not self._has_begun:
            self._has_begun, self._before = True, len(history.entries)
            thread = threading.Thread(target=self._look, name="git status")
            asyncio.get_running_loop().call_later(SOON_S, thread.start)

    def take(self, history: History) -> str:
        if self._found is None or self._is_taken:
            return ""
        self._is_taken = True
        began_ms, ended_ms, lines = self._found
        calls = (entry for entry in islice(history.entries, self._before, None) if isinstance(entry, ToolStarted) and not entry.read_only)
        if any(call.timestamp_ms <= ended_ms for call in calls):
            return ""
        return status_text(self._root, began_ms, lines)

    def _look(self) -> None:
        from dragoman.app.safe_git import SafeGit  # takes as long to load as git takes to look

        began_ms = now_ms()
        try:
            said = SafeGit([self._root], look_s=LOOK_S).look(self._root, *_STATUS)
        except InputError:
            return
        self._found = began_ms, now_ms(), status_lines(said.split("\0"))


def status_text(folder: str, looked_ms: int, lines: Sequence[str]) -> str:
    """What git said of the repository in a folder at that time. Without lines it was clean."""
    looked = f"{STATUS}{escape_name(folder)} at {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(looked_ms / 1000))}"
    if not lines:
        return f"{looked}: clean. What happened since may not be in it."
    return "\n".join([f"{looked} (what happened since may not be in it):", *(f"  {line}" for line in lines)])


def status_lines(entries: Sequence[str]) -> tuple[str, ...]:
    """What git says of each file, with its two letters; at most MAX_FILES."""
    files = [entry for entry in entries if entry and not entry.startswith("## ")]
    lines = [f"{entry[:2]} {truncate_path(escape_name(entry[3:]))}" for entry in files[:MAX_FILES]]
    more = len(files) - MAX_FILES
    return (*lines, f"… and {more} more") if more > 0 else tuple(lines)
