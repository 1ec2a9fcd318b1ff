"""Checkpoints: copies of files from before a call changed them, so that the change can be undone.

Checkpoints wraps the ledger between the scheduler and the record. When a call starts, it reads the files the call would write; before the
tool runs, their bytes are in the blob store and an entry names them; when the call ends, however it ends, an entry says what changed.

    ToolStarted → FilesChanged(after unknown) → sync → the tool runs → FilesChanged → ToolFinished → sync

The first FilesChanged is written ahead. It counts only if the program died before the call's end was recorded: `undo.file_changes` sorts
that out. The second is written only if something changed.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from dragoman.sessions.file_state import BLOCKED, FileState, is_hash, read_file_state
from dragoman.values.calls import Intent, Ledger
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Part, ToolCall, ToolResult
from dragoman.values.record import CommandOutput, FileChange, FileVersion, ToolOutcome, WaitsFor
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.watched_files import SeenAtOnce, WatchedFiles

UNKNOWN = "unknown"
"""The content of a file after a call that has not ended."""

UNSURE: tuple[ToolOutcome, ...] = ("cancelled", "unknown")
"""Outcomes that leave open what a call did, unless an entry says so."""

Writes = Callable[[ToolCall, str], tuple[str, ...]]
"""The files a call would change, given the call and the arguments a person edited (empty: not edited)."""


class FileLedger(Ledger, Protocol):
    """A ledger that also records what calls do to files. History is one."""

    def change_files(self, call_id: str, files: Iterable[FileChange]) -> object: ...


class Checkpoints:
    """A Ledger around another. `keep` is given a result's content before the result is recorded. `on_fault` is called if a file cannot be
    saved; the call runs all the same. `note_folders` is told in which folders calls are about to write. `watched` are files that a call may
    change besides: what became of them is found by looking before it and after it."""

    def __init__(
        self,
        ledger: FileLedger,
        blobs: BlobStore,
        writes: Writes,
        *,
        keep: Callable[[Iterable[Part]], None] = lambda content: None,
        on_fault: Callable[[str], None] | None = None,
        note_folders: Callable[[Iterable[str]], None] | None = None,
        watched: Callable[[ToolCall], WatchedFiles | None] = lambda call: None,
    ) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._writes = writes
        self._keep = keep
        self._on_fault = on_fault or (lambda message: None)
        self._note_folders = note_folders or (lambda folders: None)
        self._watched = watched
        self._looks: dict[str, tuple[WatchedFiles, SeenAtOnce]] = {}
        """By call id: the watched files, as they were when it started."""
        self._open: dict[str, dict[str, _FileBefore]] = {}
        """By call id: the files it would write, as they were when it started."""
        self._unsaved: list[str] = []
        """Ids of calls whose files are not in the blob store yet."""

    def start_tool(self, call: ToolCall, arguments: str = "", *, outside: bool = False, read_only: bool = False) -> object:
        started = self._ledger.start_tool(call, arguments, outside=outside, read_only=read_only)
        if read_only:
            return started
        if files := {path: _FileBefore(path, _state_of(path)) for path in self._paths(call, arguments)}:
            self._open[call.id] = files
            self._unsaved.append(call.id)
        if watched := self._watched(call):
            self._looks[call.id] = watched, watched.look()
        return started

    def postpone_tool(
        self, call: ToolCall, waits_for: WaitsFor, intent: Intent, arguments: str = "", repairs: tuple[str, ...] = ()
    ) -> object:
        if files := [*self._find_changes(self._open.pop(call.id, {})), *self._find_watched_changes(call.id)]:
            self._ledger.change_files(call.id, files)
        return self._ledger.postpone_tool(call, waits_for, intent, arguments, repairs)

    def finish_tool(
        self,
        result: ToolResult,
        outcome: ToolOutcome = "finished",
        display: str = "",
        extras: str = "",
        *,
        saw: tuple[str, ...] = (),
        wrote: tuple[str, ...] = (),
        repairs: tuple[str, ...] = (),
        command: CommandOutput | None = None,
        files: tuple[FileVersion, ...] = (),
    ) -> object:
        before = self._open.pop(result.call_id, {})
        changes = [*self._find_changes(before), *self._find_watched_changes(result.call_id)]
        # A cancelled call may also be closed by code that does not know what it did, so record explicitly that it did nothing.
        if changes or (before and outcome in UNSURE):
            self._ledger.change_files(result.call_id, changes)
        self._keep(result.content)
        return self._ledger.finish_tool(
            result, outcome, display, extras, saw=saw, wrote=wrote, repairs=repairs, command=command, files=files
        )

    async def sync(self) -> None:
        """Save the files that calls are about to change, then sync the ledger. Saving may be slow, so it runs in a thread."""
        call_ids, self._unsaved = self._unsaved, list[str]()
        for call_id in call_ids:
            if files := self._open.get(call_id):
                self._report(await asyncio.to_thread(self._save_copies, files.values()))
                if self._open.get(call_id) is files:
                    self._ledger.change_files(call_id, [before.change_to(None) for before in files.values()])
        await self._ledger.sync()

    def _paths(self, call: ToolCall, arguments: str) -> list[str]:
        try:
            paths = dict.fromkeys(os.path.realpath(path) for path in self._writes(call, arguments))
        except Exception as error:  # most likely raised by a user's own tool: a call must not fail because it cannot be undone
            self._on_fault(say("sessions.undo_unknown_writes", tool=call.name, reason=f"{type(error).__name__}: {error}"))
            return []
        return [path for path in paths if self._can_be_named(path)]

    def _can_be_named(self, path: str) -> bool:
        try:
            path.encode()
        except UnicodeEncodeError:
            self._on_fault(say("sessions.undo_name_not_utf8", path=path))
            return False
        return True

    def _find_changes(self, files: dict[str, _FileBefore]) -> list[FileChange]:
        changes = list[FileChange]()
        for path, before in files.items():
            after = _state_of(path)
            if before.is_still(after):
                continue
            self._report(self._save_copies([before]))  # in case sync was never awaited
            changes.append(before.change_to(after))
        return changes

    def _find_watched_changes(self, call_id: str) -> list[FileChange]:
        """Those that the call changed, removed or, where all of them were known, made."""
        watched, before = self._looks.pop(call_id, (None, None))
        if watched is None or before is None:
            return []
        after = watched.look().files
        new = (path for path in after if before.is_whole and path not in before.files and path not in before.not_read)
        gone_or_changed = (path for path, state in before.files.items() if after.get(path) != state)
        return self._find_changes({path: _FileBefore(path, before.files.get(path, FileState())) for path in (*gone_or_changed, *new)})

    def _save_copies(self, files: Iterable[_FileBefore]) -> list[str]:
        """Put the files' bytes into the blob store. Returns what went wrong."""
        files = tuple(files)
        self._note_folders(os.path.dirname(before.path) for before in files)
        faults = list[str]()
        for before in files:
            if before.data is None:
                continue
            try:
                self._blobs.put("application/octet-stream", before.data)
            except Exception as error:  # whatever went wrong, the call still runs
                faults.append(say("sessions.undo_no_copy", path=before.path, reason=error))
            before.data = None
        return faults

    def _report(self, faults: Iterable[str]) -> None:
        for fault in faults:
            self._on_fault(fault)


class _FileBefore:
    """A file as it was when a call started."""

    def __init__(self, path: str, state: FileState) -> None:
        self.path = path
        self.data = state.data if is_hash(state.content) else None
        """The bytes still to be saved; None once they are."""
        self._content, self._mode = state.content, state.mode

    def is_still(self, after: FileState) -> bool:
        return (self._content, self._mode & 0o777) == (after.content, after.permissions)

    def change_to(self, after: FileState | None) -> FileChange:
        """The change from this state to `after`; None: not known yet.

        The mode includes the file type if the call changed the mode or may have, and excludes it otherwise: undo must not revert a mode
        that someone else set in the meantime.
        """
        stayed = after is not None and after.content and after.permissions == self._mode & 0o777
        mode = stat.S_IMODE(self._mode) if stayed else self._mode
        return FileChange(self.path, self._content, UNKNOWN if after is None else after.content, mode)


def _state_of(path: str) -> FileState:
    state = read_file_state(path)
    return FileState() if state.content == BLOCKED else state  # no file can exist there
