"""A journal in memory."""

from __future__ import annotations

from dragoman.values.record import Entry


class MemoryJournal:
    """A journal for scripts and tests: holds what would be on disk."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.synced = 0
        """Number of entries at the last sync."""

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)

    async def sync(self) -> None:
        self.synced = len(self.entries)
