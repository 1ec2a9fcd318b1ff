"""A folder, a record, and calls that do to files what a test says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.loop.history import History
from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import UndoBounds
from dragoman.sessions.checkpoints import Checkpoints
from dragoman.sessions.restore import RestoreResult, restore
from dragoman.sessions.undo import UndoPlan, changes_of_last_run, is_written_ahead, plan_undo
from dragoman.testing.journal import MemoryJournal
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import Message, Text, ToolCall, tool_result, user
from dragoman.values.record import FilesChanged, ToolOutcome

Do = Callable[[], object]


class Desk:
    """A folder, a record, and calls that do to files what a test says."""

    def __init__(self, root: Path | str, blobs: Any = None) -> None:
        self.root = Path(os.path.realpath(root))
        self.journal = MemoryJournal()
        self.history = History(self.journal)
        self.blobs = blobs or MemoryBlobs()
        self.faults: list[str] = []
        self.writes: tuple[str, ...] = ()
        self.checkpoints = Checkpoints(self.history, self.blobs, lambda call, arguments: self.writes, on_fault=self.faults.append)
        self._calls = 0

    def path(self, name: str) -> Path:
        return self.root / name

    def start(self, *names: str) -> ToolCall:
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", "change")
        self.writes = tuple(str(self.path(name)) for name in names)
        self.checkpoints.start_tool(call)
        asyncio.run(self.checkpoints.sync())
        return call

    def finish(self, call: ToolCall, outcome: ToolOutcome = "finished") -> None:
        self.checkpoints.finish_tool(tool_result(call, "done"), outcome)

    def call(self, do: Do, *names: str, outcome: ToolOutcome = "finished") -> ToolCall:
        call = self.start(*names)
        do()
        self.finish(call, outcome)
        return call

    def write(self, name: str, data: bytes | str) -> ToolCall:
        return self.call(lambda: put(self.path(name), data), name)

    def prompt(self, text: str = "go on") -> None:
        self.history.say(user(text))
        self.history.say(Message("assistant", (Text("I will."),)))

    @property
    def changes(self) -> list[FilesChanged]:
        """What was written down, without what was written ahead."""
        return [entry for entry in self.history.entries if isinstance(entry, FilesChanged) and not is_written_ahead(entry)]

    def plan(self, runs: int = 1) -> UndoPlan:
        return plan_undo(changes_of_last_run(self.history.entries, runs), self.blobs, self.bounds)

    @property
    def bounds(self) -> UndoBounds:
        return UndoBounds((str(self.root),), is_guarded)

    def undo(self, runs: int = 1, *, force: bool = False) -> RestoreResult:
        plan = self.plan(runs)
        restored = restore(plan, force=force)
        self.history.restore_files(plan.changes)
        return restored

    def tree(self) -> dict[str, tuple[bytes | str, int]]:
        return tree(self.root)


def put(path: Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def tree(root: Path) -> dict[str, tuple[bytes | str, int]]:
    """Every file, link and odd thing: content and mode. Folders are no matter."""
    found: dict[str, tuple[bytes | str, int]] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            found[str(path.relative_to(root))] = (content, status.st_mode)
    return found
