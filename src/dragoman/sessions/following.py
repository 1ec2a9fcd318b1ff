"""Reads a session's log while another process writes it: what is new since the last look, without reading the rest again."""

from __future__ import annotations

import os

from dragoman.sessions.log import Damaged, decode_line
from dragoman.sessions.summary import open_log
from dragoman.sessions.upgrade import Upgrader
from dragoman.values.record import Entry

_TAIL_BYTES = 48
"""Enough of the last bytes read to recognise them: the end of a line with its checksum."""


class LogFollower:
    """One log, from its beginning. Lines that are damaged or out of place are left out, as `read_log` does."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.damaged = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.damaged = 0
        self._version: tuple[int, int, int] | None = None
        self._offset = 0
        self._tail = b""
        self._last_seq = 0
        self._upgrading = Upgrader()

    def read_new(self) -> tuple[list[Entry], bool]:
        """The entries written since the last call, and whether these are all there are: the first time, and where it is another file than
        the one that was read before. Raises OSError where there is none."""
        with open_log(self.path) as log:
            status = os.fstat(log.fileno())
            version = (status.st_ino, status.st_size, status.st_mtime_ns)
            if version == self._version:
                return [], False
            is_anew = self._version is None or self._version[0] != status.st_ino or status.st_size < self._offset
            if not is_anew:
                log.seek(self._offset - len(self._tail))
                is_anew = log.read(len(self._tail)) != self._tail
            if is_anew:
                self._begin_anew()
                log.seek(0)
            self._version = version
            return [entry for line in log if (entry := self._take(line)) is not None], is_anew

    def _take(self, line: bytes) -> Entry | None:
        if not line.endswith(b"\n"):
            return None  # it is being written
        self._offset += len(line)
        self._tail = line[-_TAIL_BYTES:]
        try:
            entry = self._upgrading.take(decode_line(line))
        except Damaged:
            self.damaged += 1
            return None
        if entry.seq <= self._last_seq:
            self.damaged += 1
            return None
        self._last_seq = entry.seq
        return entry
