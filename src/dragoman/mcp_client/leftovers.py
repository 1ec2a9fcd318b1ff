"""Ends servers left over from a run that was killed together with its watcher: they are found by a mark in their environment.

Linux only: elsewhere there is no /proc.
"""

from __future__ import annotations

import os

from dragoman.base.processes import end_processes, identify_this_process, is_alive

MARK = "DRAGOMAN_MCP_OWNER"
"""The environment variable that names the process a server belongs to."""
_MOST_PROCESSES = 20_000


def mark_of_this_process() -> str:
    return f"{identify_this_process()};"


def reap_leftovers() -> int:
    """End the servers of processes that are gone. Returns how many of those there were. Blocks for a moment where it finds any."""
    owners = {owner for owner in _marks() if not is_alive(owner.removesuffix(";"))}
    for owner in owners:
        end_processes(None, owner, MARK)
    return len(owners)


def _marks() -> set[str]:
    found: set[str] = set()
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    wanted = f"{MARK}=".encode()
    for name in names[:_MOST_PROCESSES]:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                environment = file.read()
        except OSError:  # it has ended, or is not ours
            continue
        if wanted in environment:
            found |= {each[len(wanted) :].decode(errors="replace") for each in environment.split(b"\0") if each.startswith(wanted)}
    return found
