"""A journal in a file: every entry is one write at once, on disk when `sync` returns, and nothing half is ever left behind.

Faults do not raise. What cannot be written waits in memory, in order, and is written as soon as it can be; meanwhile `fault` says what
is wrong, and whoever is listening is told when it begins and when it ends.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from dragoman.base.private import sync_directory, sync_file, write_whole
from dragoman.sessions.log import encode_line
from dragoman.values.record import Entry

OnFault = Callable[[str], None]
"""Takes one line for the user: saving has stopped, or works again. `journal.fault` is up to date when it is called."""


class SessionJournal:
    """A contracts.Journal over an open, locked log. It owns the descriptor, and with it the lock.

    `size` is where the next line goes: everything before it is on disk. `directories` are synced with the first lines, so that a new
    file is found after a crash. `prepare` is what must have succeeded before the first line is written: it is tried at once, and raises
    OSError until it succeeds. One event loop at a time may use it.
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
        self.path = path
        self.fault = ""
        """What keeps entries from being saved, in a few words; empty while nothing does."""
        self.lost = 0
        """How many entries can never be written: a gap in the log."""
        self._descriptor = descriptor
        self._on_fault = on_fault
        self._directories = directories
        self._prepare = prepare
        self._synced_bytes = size
        self._lines: list[bytes] = []
        """Everything that is not known to be on disk. Lines are dropped after a sync only: when that fails, what was written before it
        may be gone although a later sync succeeds, and has to be written again."""
        self._written = 0
        """How many of the lines are in the file."""
        self._unclean = False
        """Whether the file may hold something after the lines that are in it."""
        self._appended = 0
        self._tried = 0
        """How many of all that were ever appended the last sync was for, whether it succeeded or not."""
        self._syncing: asyncio.Task[None] | None = None
        self._write()

    @property
    def saved(self) -> bool:
        """Whether the log holds everything that was appended, as far as is known: the session can be resumed whole."""
        return not self.fault and not self.lost and self._written == len(self._lines)

    @property
    def closed(self) -> bool:
        return self._descriptor < 0

    def append(self, entry: Entry) -> None:
        """Write an entry. It is kept once `sync` has returned and `fault` is empty."""
        try:
            line = encode_line(entry)
        except Exception as error:  # whatever is wrong with an entry, the conversation goes on
            self.lost += 1
            self._tell(f"Entry {entry.seq} of this session cannot be saved ({error}): it will be missing when the session is resumed.")
            return
        if self.closed:
            self.lost += 1
            self._stop_saving("the session was closed")
            return
        self._lines.append(line)
        self._appended += 1
        self._write()

    async def sync(self) -> None:
        """Returns when everything appended is on disk, or is known not to be: then `fault` says why.

        Callers share the work: those who come while the disk is busy wait for the next turn together. A caller that is cancelled leaves
        it going.
        """
        if self.closed or not (self._lines or self._directories or self.fault):
            return
        upto = self._appended
        while not self.closed:
            if self._syncing is None or self._syncing.get_loop() is not asyncio.get_running_loop():
                self._syncing = asyncio.create_task(self._sync())
            await asyncio.shield(self._syncing)
            if self._tried >= upto:
                return

    def close(self) -> None:
        """Write and sync what is left, and give the lock up. Blocks for as long as the disk takes; does not raise."""
        if self.closed:
            return
        self._write()
        if self._lines or self._directories or self.fault:
            self._settle(self._written, self._try_to_sync())
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.close(descriptor)
        except OSError as error:
            self._stop_saving(_in_words(error))

    # --- writing

    def _write(self) -> None:
        """Bring the file up to date with the lines, as far as it goes. After a fault no part of a line stays in it."""
        if self._written == len(self._lines) and not self._unclean and self._prepare is None:
            return
        try:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
            if self._unclean:
                self._cut_back()
            while self._written < len(self._lines):
                self._unclean = True  # until it is counted: an interrupt here may come before, within or after the write
                write_whole(self._descriptor, self._lines[self._written])
                self._written += 1
                self._unclean = False
        except OSError as error:
            self._stop_saving(_in_words(error))
            if self._unclean and self._prepare is None:  # before that, what follows the lines is not ours to cut
                self._try_to_cut_back()

    def _cut_back(self) -> None:
        os.ftruncate(self._descriptor, self._synced_bytes + sum(map(len, self._lines[: self._written])))
        self._unclean = False

    def _try_to_cut_back(self) -> None:
        try:
            self._cut_back()
        except OSError:
            pass  # tried again before the next write; if we die first, the next opener sets the torn line aside

    # --- syncing

    async def _sync(self) -> None:
        try:
            self._write()
            upto, count = self._appended, self._written
            self._settle(count, await asyncio.to_thread(self._try_to_sync))
            self._tried = upto
        finally:
            self._syncing = None

    def _try_to_sync(self) -> str:
        """Runs beside the loop, so it changes nothing here. Returns what went wrong."""
        try:
            sync_file(self._descriptor)
            for directory in self._directories:
                sync_directory(directory)
            if not os.fstat(self._descriptor).st_nlink:
                return "its file was removed"
        except OSError as error:
            return _in_words(error)
        return ""

    def _settle(self, count: int, fault: str) -> None:
        """Draw the conclusion from a sync of the first `count` lines."""
        if self.closed:
            return
        if fault:
            self._stop_saving(fault)
            # The system counts what it failed to write as written and will not try again: so we do.
            self._written, self._unclean = 0, True
            self._write()
            return
        self._synced_bytes += sum(map(len, self._lines[:count]))
        del self._lines[:count]
        self._written -= count
        self._directories = ()
        if self.fault and self._written == len(self._lines) and self._prepare is None:
            self._go_on_saving()

    # --- telling

    def _stop_saving(self, fault: str) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        self._tell(
            f"This session is NOT being saved: {fault} ({self.path or 'its file'}). "
            "What is said from here on is kept in memory only, and written as soon as it can be."
        )

    def _go_on_saving(self) -> None:
        self.fault = ""
        gap = f", except {self.lost} entries that are lost" if self.lost else ""
        self._tell(f"This session is being saved again: everything said meanwhile is in {self.path or 'its file'}{gap}.")

    def _tell(self, message: str) -> None:
        if self._on_fault is None:
            return
        try:
            self._on_fault(message)
        except Exception:
            pass  # `append` does not raise, whoever listens


def _in_words(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
