"""Ends servers left over from a run that was killed together with its watcher: they are found by a mark in their environment.

Linux only: elsewhere there is no /proc.
"""

from __future__ import annotations

import os

from dragoman.base.processes import end_processes

MARK = "DRAGOMAN_MCP_OWNER"
"""The environment variable that names the process a server belongs to."""
_MOST_PROCESSES = 20_000


def mark_of_this_process() -> str:
    return f"{os.getpid()}.{_started(os.getpid())}.{_namespace()};"


def reap_leftovers() -> int:
    """End the servers of processes that are gone. Returns how many of those there were. Blocks for a moment where it finds any."""
    owners = {owner for owner in _marks() if not _is_alive(owner)}
    for owner in owners:
        end_processes(None, f"{MARK}={owner}")
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


def _is_alive(owner: str) -> bool:
    """A process that has the number of another one by now started at another time. Those of another container are not ours to judge."""
    pid, started, namespace = [*owner.removesuffix(";").split("."), "", ""][:3]
    return not pid.isdigit() or namespace != _namespace() or _started(int(pid)) == started


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").rpartition("[")[2].rstrip("]")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process was started, in the system's own count; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    is_gone = not fields or fields[0] in (b"Z", b"X")
    return "" if is_gone else fields[19].decode()
