"""Looking at real processes: who is alive, whose child it is. Linux only, like the tests that use it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from uuid import uuid4


def marked_sleep() -> str:
    """A command that sleeps for long, and can be told from every other."""
    return f"sleep 1000.{uuid4().int % 10**12:012d}"


def alive(mark: str) -> list[int]:
    """The processes with this text in their command line, zombies aside."""
    return [
        pid for pid, line in _each("cmdline") if mark.replace(" ", "\0").encode() in line and pid != os.getpid() and _state(pid) not in "ZX"
    ]


def started_within(seconds: float, mark: str, count: int = 1) -> bool:
    """Whether so many of them come to life in time."""
    deadline = time.monotonic() + seconds
    while len(alive(mark)) < count:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def gone_within(seconds: float, mark: str) -> bool:
    """Whether all of them end in time."""
    deadline = time.monotonic() + seconds
    while alive(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def wait_for_rest(pid: int, seconds: float = 0.3) -> None:
    """Wait until a process has nothing to do: it sleeps, and has not run for so long."""
    deadline, since, before = time.monotonic() + 60, time.monotonic(), list[str]()
    while time.monotonic() - since < seconds:
        assert time.monotonic() < deadline, "it never came to rest"
        fields = _fields(pid)
        if (ran := fields[11:15]) != before or fields[0] != "S":
            since, before = time.monotonic(), ran
        time.sleep(0.02)


def wait_until_stopped(pid: int) -> None:
    """Wait until a process that was sent SIGSTOP stands still."""
    deadline = time.monotonic() + 60
    while _state(pid) != "T":
        assert time.monotonic() < deadline, "it does not stop"
        time.sleep(0.01)


def children() -> list[int]:
    """Processes we started and that are alive, or have ended and were not collected."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and parent(int(entry)) == os.getpid()]


def none_left(before: set[int]) -> bool:
    """Whether no child remains beside these. A thread of the program collects what has ended a moment later."""
    deadline = time.monotonic() + 60
    while set(children()) - before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def parent(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _state(pid: int) -> str:
    fields = _fields(pid)
    return fields[0] if fields else "X"


def _fields(pid: int) -> list[str]:
    """State, parent, group … of a process; nothing where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _each(name: str) -> Iterator[tuple[int, bytes]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/{name}", "rb") as file:
                    yield int(entry), file.read()
            except OSError:
                continue


def below(pid: int) -> list[int]:
    """All living processes that this one has started, and those have."""
    found = [each for each, _ in _each("cmdline") if parent(each) == pid]
    return found + [other for each in found for other in below(each)]
