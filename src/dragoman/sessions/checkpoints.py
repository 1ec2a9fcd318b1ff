"""Checkpoints: copies of files from before a call changed them, so that the change can be undone.

Checkpoints wraps the ledger between the scheduler and the record. When a call starts, it reads the files the call would write; before the
tool runs, their bytes are in the blob store and an entry names them; when the call ends, however it ends, an entry says what changed.

    ToolStarted → FilesChanged(after unknown) → sync → the tool runs → FilesChanged → ToolFinished → sync

The first FilesChanged is written ahead. It counts only if the program died before the call's end was recorded: `undo.file_changes` sorts
that out. The second is written only if something changed.

A command may change any file, so it is not asked which. A CommandWatch keeps what git does not hold before it runs, and finds what it
changed after it has ended, while the loop goes on:

    ToolStarted → FilesKept → sync → the command runs → ToolFinished → sync → FilesChanged

Nothing else that writes begins before that last entry, and no run ends.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from dragoman.sessions.file_state import BLOCKED, FileState, is_hash, read_file_state
from dragoman.values.calls import Intent, Ledger
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Part, ToolCall, ToolResult
from dragoman.values.record import CommandOutput, FileChange, FileVersion, ToolOutcome, WaitsFor
from dragoman.words import say

UNKNOWN = "unknown"
"""The content of a file after a call that has not ended."""

UNSURE: tuple[ToolOutcome, ...] = ("cancelled", "unknown")
"""Outcomes that leave open what a call did, unless an entry says so."""

Writes = Callable[[ToolCall, str], tuple[str, ...]]
"""The files a call would change, given the call and the arguments a person edited (empty: not edited)."""


class FileLedger(Ledger, Protocol):
    """A ledger that also records what calls do to files. History is one."""

    def change_files(self, call_id: str, files: Iterable[FileChange], *, unsure: bool = False) -> object: ...

    def keep_files(self, call_id: str, files: Iterable[FileChange], *, whole: bool = False) -> object: ...


class Begun(NamedTuple):
    """What was found before a command began."""

    kept: dict[str, tuple[str, int]]
    """Content and mode of each file that git does not hold, by path."""
    beside: tuple[FileChange, ...] = ()
    """What changed since the command before, while another went on in the background."""


class CommandWatch(Protocol):
    """Looks at the files around a command. Called from other threads. KeptWork is one."""

    def begin(self, call_id: str) -> Begun: ...

    def end(self, call_id: str) -> tuple[FileChange, ...]: ...

    def note_edits(self, files: Iterable[FileChange]) -> None: ...


class Checkpoints:
    """A Ledger around another. `keep` is given a result's content before the result is recorded. `on_fault` is called if a file cannot be
    saved; the call runs all the same. `note_folders` is told in which folders calls are about to write. `watch` looks at all files around a
    call that may write any; None: it may not. `noted` is given what calls changed for which that is known."""

    def __init__(
        self,
        ledger: FileLedger,
        blobs: BlobStore,
        writes: Writes,
        *,
        keep: Callable[[Iterable[Part]], None] = lambda content: None,
        on_fault: Callable[[str], None] | None = None,
        note_folders: Callable[[Iterable[str]], None] | None = None,
        watch: Callable[[ToolCall], CommandWatch | None] = lambda call: None,
        noted: Callable[[Sequence[FileChange]], None] = lambda files: None,
    ) -> None:
        self._ledger = ledger
        self._blobs = blobs
        self._writes = writes
        self._keep = keep
        self._on_fault = on_fault or (lambda message: None)
        self._note_folders = note_folders or (lambda folders: None)
        self._watch = watch
        self._noted = noted
        self._watching: dict[str, CommandWatch] = {}
        """By call id: who looks at the files around it."""
        self._to_begin: list[str] = []
        """Ids of calls before which nobody has looked yet."""
        self._ending: set[asyncio.Task[None]] = set()
        """Looks after calls that have ended."""
        self._last_kept: dict[str, tuple[str, int]] | None = None
        """What the record says is kept; None: nothing since the session was opened."""
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
        self.watch_command(call)
        return started

    def watch_command(self, call: ToolCall) -> None:
        """Look at the files with the next `sync`, if the call may write any."""
        if call.id not in self._watching and (watch := self._watch(call)) is not None:
            self._watching[call.id] = watch
            self._to_begin.append(call.id)

    def postpone_tool(
        self, call: ToolCall, waits_for: WaitsFor, intent: Intent, arguments: str = "", repairs: tuple[str, ...] = ()
    ) -> object:
        files = self._find_changes(self._open.pop(call.id, {}))
        if (watch := self._watching.pop(call.id, None)) is not None:
            files += watch.end(call.id)
        if files:
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
        changes = self._find_changes(before)
        self._noted(changes)
        # A cancelled call may also be closed by code that does not know what it did, so record explicitly that it did nothing.
        if changes or (before and outcome in UNSURE):
            self._ledger.change_files(result.call_id, changes)
        self._keep(result.content)
        self._end_watch(result.call_id)
        return self._ledger.finish_tool(
            result, outcome, display, extras, saw=saw, wrote=wrote, repairs=repairs, command=command, files=files
        )

    async def sync(self) -> None:
        """Save the files that calls are about to change, then sync the ledger. Saving may be slow, so it runs in a thread."""
        if self._unsaved or self._to_begin:
            await self.settle()
        to_begin, self._to_begin = self._to_begin, list[str]()
        for call_id in to_begin:
            if (watch := self._watching.get(call_id)) is not None:
                self._record_kept(call_id, await asyncio.to_thread(watch.begin, call_id))
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

    # --- around commands

    async def settle(self) -> None:
        """Wait until what ended commands changed is on the record."""
        while self._ending:
            await asyncio.wait(set(self._ending))

    def _record_kept(self, call_id: str, begun: Begun) -> None:
        if begun.beside:
            self._ledger.change_files("", begun.beside, unsure=True)
        last, self._last_kept = self._last_kept, begun.kept
        known = last or {}
        files = [FileChange(path, "", *each) for path, each in begun.kept.items() if known.get(path) != each]
        files += [FileChange(path) for path in known.keys() - begun.kept.keys()]
        self._ledger.keep_files(call_id, files, whole=last is None)

    def _end_watch(self, call_id: str) -> None:
        """Find what a command changed, in a task of its own: the model can be asked meanwhile."""
        watch = self._watching.pop(call_id, None)
        if watch is None or call_id in self._to_begin:
            self._to_begin = [each for each in self._to_begin if each != call_id]
            return
        try:
            task = asyncio.get_running_loop().create_task(self._look_after(watch, call_id))
        except RuntimeError:  # no event loop: nobody waits meanwhile
            self._ledger.change_files(call_id, watch.end(call_id))
            return
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _look_after(self, watch: CommandWatch, call_id: str) -> None:
        """An entry follows in any case: without one, a resumed session takes it that the program died while the command ran."""
        self._ledger.change_files(call_id, await asyncio.to_thread(watch.end, call_id))

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
