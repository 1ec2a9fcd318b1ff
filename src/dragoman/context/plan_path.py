"""Which entries of a session still count, which were rewound, and what happened to each call's result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dragoman.context.shown import holds
from dragoman.values.record import (
    AnswerRejected,
    Compressed,
    Configured,
    Entry,
    FilesChanged,
    Kept,
    Pruned,
    Rewound,
    Said,
    ToolFinished,
    fold,
)

Batch = dict[str, ToolFinished | None]
"""The calls of one answer, by id: how each ended, if known."""


class Path:
    """A second pass over the record, beside the view's: the view keeps what the model sees, this keeps what happened to the rest."""

    def __init__(self, entries: Sequence[Entry], window: int = 0) -> None:
        """`window`: that of the current model; what a smaller one forced does not count for it."""
        self.entries = entries
        self._window = window
        self.rewound_by = find_rewound(entries)
        """Seq of an entry that no longer counts → seq of the rewind that undid it."""
        self.batches: dict[int, Batch] = {}
        """Results that reached the model together, by the entry that completed them."""
        self.open: Batch = {}
        """Calls of the last answer, while not all of them have ended."""
        self.rejected: dict[int, AnswerRejected] = {}
        self.void: dict[int, AnswerRejected] = {}
        """Results of a rejected answer, by their own seq."""
        self.unmatched: set[int] = set()
        """Results without an open call."""
        self.compressions: list[Compressed] = []
        self.configured: Configured | None = None
        self._prunings: dict[str, list[Pruned]] = {}
        self.kept: dict[str, Kept] = {}
        """By call id: what a person chose last about its result."""
        self._seen_last: dict[str, int] = {}
        self._written_last: dict[str, int] = {}
        """By path: the last result that shows it, and the last entry that changed it."""
        self._open_seq = -1
        for entry in entries:
            if entry.seq not in self.rewound_by:
                self._take(entry)

    def pruned_by(self, call_id: str, after_seq: int) -> Pruned | None:
        """Ids may be reused once the old ones are out of view: the first pruning after the result is the one."""
        return next((entry for entry in self._prunings.get(call_id, ()) if entry.seq > after_seq), None)

    def since(self, finished: ToolFinished) -> Literal["", "read", "edited"]:
        """Whether a file that a result shows was read again or edited after it."""
        found: Literal["", "read", "edited"] = ""
        for path in finished.saw:
            if self._seen_last.get(path, 0) > finished.seq:
                return "read"
            if self._written_last.get(path, 0) > finished.seq:
                found = "edited"
        return found

    def summarised_by(self, seq: int, since: int) -> Compressed | None:
        """The summary that replaced a message: `seq` is the message's place, `since` the entry it came with."""
        return next((each for each in self.compressions if each.seq > since and each.after_seq < seq <= each.through_seq), None)

    @fold("path")
    def _take(self, entry: Entry) -> None:
        match entry:
            case Said():
                self._close(entry.seq)
                if entry.message.role == "assistant":
                    self.open = dict.fromkeys(call.id for call in entry.message.calls)
                    self._open_seq = entry.seq
            case ToolFinished(result=result):
                self._seen_last |= dict.fromkeys(entry.saw, entry.seq)
                self._written_last |= dict.fromkeys(entry.wrote, entry.seq)
                if result.call_id in self.open and self.open[result.call_id] is None:
                    self.open[result.call_id] = entry
                    if None not in self.open.values():
                        self._close(entry.seq)
                else:
                    self.unmatched.add(entry.seq)
            case AnswerRejected(said_seq=said_seq):
                self.rejected[said_seq] = entry
                if said_seq == self._open_seq:
                    self.void |= {finished.seq: entry for finished in self.open.values() if finished is not None}
                    self.open = {}
            case Pruned() | Compressed() if not holds(entry.window, self._window):
                pass  # a smaller window forced it
            case Pruned(call_ids=call_ids):
                for call_id in call_ids:
                    self._prunings.setdefault(call_id, []).append(entry)
            case Kept(call_ids=call_ids):
                for call_id in call_ids:
                    self._prunings.pop(call_id, None)
                    self.kept[call_id] = entry
            case Compressed():
                self.compressions.append(entry)
            case FilesChanged(files=files):
                self._written_last |= dict.fromkeys((each.path for each in files), entry.seq)
            case Configured():
                self.configured = entry
            case _:
                pass

    def _close(self, seq: int) -> None:
        if self.open:
            self.batches[seq] = self.open
            self.open = {}


def find_rewound(entries: Sequence[Entry]) -> dict[int, int]:
    """Map each entry that no longer counts to the rewind that undid it. Follows the rewinds as the view does: along each entry's
    predecessor, and past missing entries."""
    follows: dict[int, int] = {}
    rewound_by: dict[int, int] = {}
    head = 0
    for entry in entries:
        follows[entry.seq] = min(entry.to_seq if isinstance(entry, Rewound) else head, entry.seq - 1)
        head = entry.seq
        if isinstance(entry, Rewound):
            current = _current_seqs(follows, head)
            rewound_by = {seq: rewound_by.get(seq, head) for seq in follows if seq not in current}
    return rewound_by


def _current_seqs(follows: dict[int, int], head: int) -> set[int]:
    current: set[int] = set()
    while head > 0:
        if head in follows:
            current.add(head)
        head = follows.get(head, head - 1)
    return current
