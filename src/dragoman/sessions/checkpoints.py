"""Files as they were before a call changed them, kept so that the change can be undone.

Checkpoints stands between the scheduler and the record. When a call starts it looks at the files the call would write; before the tool
runs their bytes are in the blob store and an entry names them; when the call ends, however it ends, an entry says what became of them.

    ToolStarted → FilesChanged(after unknown) → sync → the tool runs → FilesChanged → ToolFinished → sync

The first FilesChanged is written ahead. It counts only where nothing is known of how the call ended, because the program died in between:
`undo.file_changes` sorts that out. The second is written only where something changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from typing import Protocol

from dragoman.sessions.file_state import BLOCKED, FileState, is_hash, look_at
from dragoman.values.contracts import BlobStore, Ledger
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.record import FileChange, ToolOutcome

UNKNOWN = "unknown"
"""What a file is after a call that has not ended."""

UNSURE: tuple[ToolOutcome, ...] = ("cancelled", "unknown")
"""How calls end of which it is not clear what they did, unless an entry says so."""

Writes = Callable[[ToolCall, str], tuple[str, ...]]
"""The files a call would change, given the arguments a person edited, or none."""


class FileLedger(Ledger, Protocol):
    """A ledger that also takes down what calls do to files. History is one."""

    def change_files(self, call_id: str, files: Iterable[FileChange]) -> object: ...


class Checkpoints:
    """A Ledger around another. `on_fault` is told when a file cannot be kept; the call runs all the same."""

    def __init__(self, ledger: FileLedger, blobs: BlobStore, writes: Writes, *, on_fault: Callable[[str], None] | None = None) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._writes = writes
        self._on_fault = on_fault or (lambda message: None)
        self._open: dict[str, dict[str, _Before]] = {}
        """By call id: the files it would write, as they were when it started."""
        self._unkept: list[str] = []
        """Ids of calls whose files are not in the blob store yet."""

    def start_tool(self, call: ToolCall, arguments: str = "") -> object:
        started = self._ledger.start_tool(call, arguments)
        if files := {path: _Before(path, _found(path)) for path in self._paths(call, arguments)}:
            self._open[call.id] = files
            self._unkept.append(call.id)
        return started

    def finish_tool(self, result: ToolResult, outcome: ToolOutcome = "finished", display: str = "", extras: str = "") -> object:
        before = self._open.pop(result.call_id, {})
        files = self._changed(before)
        # A cancelled call may also be closed by somebody who cannot tell what it did, so one that did nothing has to be told apart.
        if files or (before and outcome in UNSURE):
            self._ledger.change_files(result.call_id, files)
        return self._ledger.finish_tool(result, outcome, display, extras)

    async def sync(self) -> None:
        """What calls are about to change is kept first. It may take a while, so not in the event loop's own thread."""
        call_ids, self._unkept = self._unkept, list[str]()
        for call_id in call_ids:
            if files := self._open.get(call_id):
                import asyncio

                self._tell(await asyncio.to_thread(self._keep, files.values()))
                if self._open.get(call_id) is files:
                    self._ledger.change_files(call_id, [before.changed_to(None) for before in files.values()])
        await self._ledger.sync()

    def _paths(self, call: ToolCall, arguments: str) -> list[str]:
        try:
            paths = dict.fromkeys(os.path.realpath(path) for path in self._writes(call, arguments))
        except Exception as error:  # of somebody's own tool, most likely: a call must not fail because it cannot be undone
            self._on_fault(f"what {call.name} would change is not known ({type(error).__name__}: {error}): it cannot be undone")
            return []
        return [path for path in paths if self._can_be_named(path)]

    def _can_be_named(self, path: str) -> bool:
        try:
            path.encode()
        except UnicodeEncodeError:
            self._on_fault(f"the name {path!r} is not UTF-8 and cannot be written down: what is done to this file cannot be undone")
            return False
        return True

    def _changed(self, files: dict[str, _Before]) -> list[FileChange]:
        changes = list[FileChange]()
        for path, before in files.items():
            after = _found(path)
            if before.is_still(after):
                continue
            self._tell(self._keep([before]))  # where nobody waited for sync
            changes.append(before.changed_to(after))
        return changes

    def _keep(self, files: Iterable[_Before]) -> list[str]:
        """Returns what went wrong."""
        faults = list[str]()
        for before in files:
            if before.data is None:
                continue
            try:
                self._blobs.put("application/octet-stream", before.data)
            except Exception as error:  # whatever it is, it is no reason not to run a call
                faults.append(f"no copy of {before.path} could be kept ({error}): what is done to it cannot be undone")
            before.data = None
        return faults

    def _tell(self, faults: Iterable[str]) -> None:
        for fault in faults:
            self._on_fault(fault)


class _Before:
    """A file as it was when a call started."""

    def __init__(self, path: str, state: FileState) -> None:
        self.path = path
        self.data = state.data if is_hash(state.content) else None
        """What is still to be kept; None once it is."""
        self._content, self._mode = state.content, state.mode

    def is_still(self, after: FileState) -> bool:
        return (self._content, self._mode & 0o777) == (after.content, after.permissions)

    def changed_to(self, after: FileState | None) -> FileChange:
        """None: that is not known yet.

        The mode is written down with the type of the file where the call changed the mode or may have, and without where it did not: a
        mode that somebody else sets meanwhile is not taken back with a call that left it alone.
        """
        stayed = after is not None and after.content and after.permissions == self._mode & 0o777
        mode = stat.S_IMODE(self._mode) if stayed else self._mode
        return FileChange(self.path, self._content, UNKNOWN if after is None else after.content, mode)


def _found(path: str) -> FileState:
    state = look_at(path)
    return FileState() if state.content == BLOCKED else state  # no file can be there
