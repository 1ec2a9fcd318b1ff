"""Which entries led to where a session stands, which were taken back, and what became of each call's result on the way."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.values.record import AnswerRejected, Compressed, Configured, Entry, Pruned, Rewound, Said, ToolFinished

Batch = dict[str, ToolFinished | None]
"""The calls of one answer, by id: how each ended, where that is known."""


class Path:
    """A second reading of the record, beside the view's: the view keeps what the model sees, this keeps what became of the rest."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.taken_back = _taken_back(entries)
        """Seq of an entry that no longer counts → seq of the rewind that took it back."""
        self.batches: dict[int, Batch] = {}
        """Results that reached the model together, by the entry that made them complete."""
        self.open: Batch = {}
        """Calls of the last answer, while not all of them have ended."""
        self.rejected: dict[int, AnswerRejected] = {}
        self.void: dict[int, AnswerRejected] = {}
        """Results of an answer that was rejected, by their own seq."""
        self.unmatched: set[int] = set()
        """Results for which no call was open."""
        self.compressions: list[Compressed] = []
        self.configured: Configured | None = None
        self._prunings: dict[str, list[Pruned]] = {}
        self._open_seq = -1
        for entry in entries:
            if entry.seq not in self.taken_back:
                self._take(entry)

    def pruned_by(self, call_id: str, after_seq: int) -> Pruned | None:
        """Ids may come again once what had them is out of view: the first pruning behind the result is the one."""
        return next((entry for entry in self._prunings.get(call_id, ()) if entry.seq > after_seq), None)

    def summarised_by(self, seq: int, since: int) -> Compressed | None:
        """The summary that stands for a message: `seq` is the message's place, `since` the entry that brought it."""
        return next((each for each in self.compressions if each.seq > since and each.after_seq < seq <= each.through_seq), None)

    def _take(self, entry: Entry) -> None:
        match entry:
            case Said():
                self._close(entry.seq)
                if entry.message.role == "assistant":
                    self.open = dict.fromkeys(call.id for call in entry.message.calls)
                    self._open_seq = entry.seq
            case ToolFinished(result=result):
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
            case Pruned(call_ids=call_ids):
                for call_id in call_ids:
                    self._prunings.setdefault(call_id, []).append(entry)
            case Compressed():
                self.compressions.append(entry)
            case Configured():
                self.configured = entry
            case _:
                pass

    def _close(self, seq: int) -> None:
        if self.open:
            self.batches[seq] = self.open
            self.open = {}


def _taken_back(entries: Sequence[Entry]) -> dict[int, int]:
    """As the view goes back: along what each entry followed, and past what was lost."""
    follows: dict[int, int] = {}
    taken_back: dict[int, int] = {}
    head = 0
    for entry in entries:
        follows[entry.seq] = min(entry.to_seq if isinstance(entry, Rewound) else head, entry.seq - 1)
        head = entry.seq
        if isinstance(entry, Rewound):
            standing = _standing(follows, head)
            taken_back = {seq: taken_back.get(seq, head) for seq in follows if seq not in standing}
    return taken_back


def _standing(follows: dict[int, int], head: int) -> set[int]:
    standing: set[int] = set()
    while head > 0:
        if head in follows:
            standing.add(head)
        head = follows.get(head, head - 1)
    return standing
