"""A journal in a file: every entry is one write, it is on disk when `sync` returns, and no partial line is ever left behind.

Faults do not raise. Entries that cannot be written wait in memory, in order, and are written as soon as possible; meanwhile `fault` says
what is wrong, and `on_fault` is called when the fault begins and when it ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from dragoman.base.private import sync_directory, sync_file, write_whole
from dragoman.sessions.log import encode_line
from dragoman.values.record import Entry, Journal, ToolStarted
from dragoman.words import say

OnFault = Callable[[str], None]
"""Takes one line for the user: saving has stopped, or works again. `journal.fault` is up to date when it is called."""


class SavedJournal(Journal, Protocol):
    """The journal of a session in a store. It holds the session until it is closed, or its process ends, however that happens."""

    @property
    def fault(self) -> str:
        """Why entries cannot be saved at the moment, in a few words; empty while they can."""
        ...

    @property
    def lost(self) -> int:
        """How many entries can never be written."""
        ...

    @property
    def is_saved(self) -> bool:
        """Whether the session can be resumed completely, as far as is known."""
        ...

    def close(self) -> None:
        """Save what is left, and let others have the session. May take as long as the disk does; does not raise."""
        ...


class SharedSync(ABC):
    """What every journal of a store does alike: it never raises, its callers share a sync, and it belongs to one process.

    Subclasses say how lines are kept: `is_closed`, `is_saved`, `close`, and below. Only one event loop at a time may use a journal.

    It belongs to the process that opened it: two that number their entries alike would make each other's unreadable. So a forked child
    writes nothing, and what it appends counts as lost.
    """

    def __init__(self, on_fault: OnFault | None, path: str) -> None:
        self.path = path
        self.fault = ""
        """Why entries cannot be saved at the moment, in a few words; empty while they can."""
        self.lost = 0
        """How many entries can never be written: a gap in the log."""
        self._on_fault = on_fault
        self._appended = 0
        self._tried = 0
        """How many of all entries ever appended the last sync covered, whether it succeeded or not."""
        self._syncing: asyncio.Task[None] | None = None
        self._pid = os.getpid()

    def __del__(self) -> None:
        """A journal that nobody closed: what it holds, and its lock, must not outlive it."""
        if getattr(self, "_pid", 0) != os.getpid() or self.is_closed or sys.is_finalizing():
            return
        try:
            warnings.warn(f"unclosed session {self.path}", ResourceWarning, stacklevel=2, source=self)
        finally:
            self.close()

    @property
    @abstractmethod
    def is_saved(self) -> bool:
        """Whether the log holds everything that was appended, as far as is known, so that the session can be resumed completely."""
        ...

    @property
    @abstractmethod
    def is_closed(self) -> bool: ...

    def append(self, entry: Entry) -> None:
        """Take an entry. It is durable once `sync` has returned and `fault` is empty."""
        try:
            line = encode_line(entry)
        except Exception as error:  # whatever is wrong with an entry, the conversation goes on
            self.lost += 1
            self._report(say("sessions.entry_not_saved", entry=entry.seq, reason=error))
            return
        self._leave_to_parent()
        if self.is_closed:
            self.lost += 1
            self._stop_saving(say("sessions.closed" if self._pid == os.getpid() else "sessions.forked"))
            return
        self._appended += 1
        # When a call that only reads began may wait for the next line: nobody relies on it after a crash, and a write costs time.
        self._take(line, waits=isinstance(entry, ToolStarted) and entry.read_only)

    async def sync(self) -> None:
        """Returns when everything appended is on disk, or is known not to be: then `fault` says why.

        Callers share the work: those that arrive while the disk is busy wait for the next sync together. If a caller is cancelled, the
        sync continues.
        """
        if self.is_closed or not self._has_work:
            return
        self._leave_to_parent()
        upto = self._appended
        while not self.is_closed:
            if self._syncing is None or self._syncing.get_loop() is not asyncio.get_running_loop():
                self._syncing = asyncio.create_task(self._sync())
            await asyncio.shield(self._syncing)
            if self._tried >= upto:
                return

    @abstractmethod
    def close(self) -> None:
        """Write and sync what is left, and release the lock. Blocks for as long as the disk takes; does not raise."""
        ...

    async def _sync(self) -> None:
        try:
            upto = self._appended
            await self._save()
            self._tried = upto
        finally:
            self._syncing = None

    # --- how lines are kept

    @property
    @abstractmethod
    def _has_work(self) -> bool:
        """Whether a sync has something to do."""
        ...

    @abstractmethod
    def _take(self, line: bytes, *, waits: bool) -> None:
        """Keep a line; one that waits may go to the file together with the next, or with a sync."""
        ...

    @abstractmethod
    async def _save(self) -> None:
        """Bring what was appended to the disk, or set `fault`. What takes long is done in a thread."""
        ...

    @abstractmethod
    def _leave_to_parent(self) -> None:
        """In a forked child: let go of what was inherited, and become closed."""
        ...

    # --- reporting

    def _stop_saving(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        self._report(say("sessions.saving_stopped", reason=fault, path=self.path or say("sessions.its_file")))

    def _resume_saving(self) -> None:
        self.fault = ""
        path = self.path or say("sessions.its_file")
        if self.lost:
            self._report(say("sessions.saving_again_with_gap", path=path, lost=self.lost))
        else:
            self._report(say("sessions.saving_again", path=path))

    def _report(self, message: str) -> None:
        if self._on_fault is None:
            return
        try:
            self._on_fault(message)
        except Exception:
            pass  # `append` must not raise because a listener does


class SessionJournal(SharedSync):
    """A contracts.Journal over an open, locked log. It owns the descriptor, and with it the lock.

    `size` is where the next line goes: everything before it is on disk. `directories` are synced with the first lines, so that a new
    file is found after a crash. `prepare` must succeed before the first line is written: it is called at once, and raises OSError until
    it succeeds.
    """

    def __init__(
        self,
        descriptor: int,
        size: int,
        on_fault: OnFault | None = None,
        *,
        path: str = "",
        directories: tuple[str, ...] = (),
        prepare: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(on_fault, path)
        self._descriptor = descriptor
        self._directories = directories
        self._prepare = prepare
        self._synced_bytes = size
        self._lines: list[bytes] = []
        """Everything not known to be on disk. Lines are dropped only after a sync: when one fails, earlier writes may be gone even though
        a later sync succeeds, and have to be written again."""
        self._held = b""
        """Lines that wait for the next one."""
        self._written = 0
        """How many of the lines are in the file."""
        self._unclean = False
        """Whether the file may hold something after the lines counted as written."""
        self._at_disk = threading.Lock()
        """Held while the file is synced, in whatever thread: it is not closed meanwhile."""
        self._write()

    @property
    def is_saved(self) -> bool:
        return not self.fault and not self.lost and self._written == len(self._lines) and not self._held

    @property
    def is_closed(self) -> bool:
        return self._descriptor < 0

    @property
    def _has_work(self) -> bool:
        return bool(self._lines or self._held or self._directories or self.fault)

    def _take(self, line: bytes, *, waits: bool) -> None:
        self._held += line
        if not waits:
            self._write()

    def close(self) -> None:
        self._leave_to_parent()
        if self.is_closed:
            return
        self._write()
        if self._has_work:
            self._finish_sync(self._written, self._try_to_sync())
        with self._at_disk:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            except OSError as error:
                self._stop_saving(_reason_of(error))

    def _leave_to_parent(self) -> None:
        """In a forked child: close its copy of the descriptor. The parent keeps the lock, and writes what was waiting."""
        if self.is_closed or self._pid == os.getpid():
            return
        os.close(self._descriptor)
        self._descriptor = -1
        self._lines.clear()
        self._held = b""
        self._written = 0

    # --- writing

    def _write(self) -> None:
        """Write the lines that are not in the file yet, as far as possible. After a fault no partial line stays in the file."""
        if self._held:
            self._lines.append(self._held)
            self._held = b""
        if self._written == len(self._lines) and not self._unclean and self._prepare is None:
            return
        try:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
            if self._unclean:
                self._truncate()
            while self._written < len(self._lines):
                self._unclean = True  # until it is counted: an interrupt may come before, during or after the write
                write_whole(self._descriptor, self._lines[self._written])
                self._written += 1
                self._unclean = False
        except OSError as error:
            self._stop_saving(_reason_of(error))
            if self._unclean and self._prepare is None:  # before that, what follows the lines is not ours to truncate
                self._try_to_truncate()

    def _truncate(self) -> None:
        os.ftruncate(self._descriptor, self._synced_bytes + sum(map(len, self._lines[: self._written])))
        self._unclean = False

    def _try_to_truncate(self) -> None:
        try:
            self._truncate()
        except OSError:
            pass  # tried again before the next write; if we die first, whoever opens the log next sets the torn line aside

    # --- syncing

    async def _save(self) -> None:
        self._write()
        count = self._written
        self._finish_sync(count, await asyncio.to_thread(self._try_to_sync))

    def _try_to_sync(self) -> str:
        """Runs in a thread, so it changes nothing here. Returns what went wrong. A journal that was closed meanwhile is on disk."""
        with self._at_disk:
            if self.is_closed:
                return ""
            try:
                sync_file(self._descriptor)
                for directory in self._directories:
                    sync_directory(directory)
                if not os.fstat(self._descriptor).st_nlink:
                    return say("sessions.file_removed")
            except OSError as error:
                return _reason_of(error)
            return ""

    def _finish_sync(self, count: int, fault: str) -> None:
        """Update the state after a sync of the first `count` lines."""
        if self.is_closed:
            return
        if fault:
            self._stop_saving(fault)
            # The system marks what it failed to write as written and will not try again, so we write it again.
            self._written, self._unclean = 0, True
            self._write()
            return
        self._synced_bytes += sum(map(len, self._lines[:count]))
        del self._lines[:count]
        self._written -= count
        self._directories = ()
        if self.fault and self._written == len(self._lines) and self._prepare is None:
            self._resume_saving()


def _reason_of(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
