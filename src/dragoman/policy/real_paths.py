"""The place that a path of a command leads to, links resolved: the same for us and for the command."""

from __future__ import annotations

import os

from dragoman.base.beneath import is_inside

SYSTEM = ("/proc", "/sys", "/dev")
_MOST_LINKS = 40
"""As Linux has it."""


def real_path(path: str) -> str:
    """As os.path.realpath, but it ends where the path enters /proc, /sys or /dev: `/proc/self/cwd` is one folder for us and another one
    for a command that was started elsewhere, or has changed its folder."""
    at, links = os.sep, 0
    rest = path.split(os.sep)[::-1]
    while rest:
        part = rest.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            at = os.path.dirname(at)
            continue
        at = os.path.join(at, part)
        if any(is_inside(at, system) for system in SYSTEM):
            return os.path.join(at, *rest[::-1])
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            continue
        links += 1
        if links > _MOST_LINKS:
            return at
        at = os.sep if target.startswith(os.sep) else os.path.dirname(at)
        rest += target.split(os.sep)[::-1]
    return at
