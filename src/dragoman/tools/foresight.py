"""What a change to a file would do, computed in a thread and remembered: a diff of a large file takes seconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.tools.worker import Stop, in_thread, never_stop
from dragoman.values.contracts import Intent

Foresee = Callable[[Mapping[str, Any], Stop], Intent]


class Foresight:
    """The intent of a tool's last call. It is asked for several times: by the rules, for the user, and before the file is saved."""

    def __init__(self, foresee: Foresee) -> None:
        self._foresee = foresee
        self._last: tuple[dict[str, Any], Intent, tuple[object, ...]] | None = None

    async def prepare(self, args: Mapping[str, Any]) -> None:
        """Compute it without blocking the event loop."""
        intent = await in_thread(lambda stop: self._foresee(args, stop))
        self._last = (dict(args), intent, _states(intent.writes))

    def intent(self, args: Mapping[str, Any]) -> Intent:
        """Computed now, unless it was prepared and the file is still the same. A problem is told once: it may be gone the next time."""
        last = self._last
        if last is not None and last[0] == args and _states(last[1].writes) == last[2]:
            self._last = None if last[1].problem else last
            return last[1]
        return self._foresee(args, never_stop)


def _states(paths: tuple[str, ...]) -> tuple[object, ...]:
    """What shows that a file has changed, cheaply."""
    states: list[object] = []
    for path in paths:
        try:
            found = os.lstat(path)
        except OSError:
            states.append(None)
            continue
        states.append((found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode))
    return tuple(states)
