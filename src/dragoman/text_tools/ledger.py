"""What has been decided of an answer: events to tell, pieces, calls that stand and what was refused."""

from __future__ import annotations

from bisect import insort

import msgspec

from dragoman.text_tools.admission import Admission, Refused
from dragoman.text_tools.calls import ArgDelta, Call, CallBegin, CallName, CallRejected, Event, Piece, Reasoning, Rejected, Span, Text
from dragoman.text_tools.lexer import Source
from dragoman.text_tools.openers import OPENERS
from dragoman.text_tools.place import Place
from dragoman.text_tools.raw_calls import Block

MAX_CALLS = 128
"""Calls in one answer. More are rejected."""
_BETWEEN = " \t\r\n;,"
CUT_SHORT = frozenset(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete"))


class _Held(msgspec.Struct, frozen=True):
    """A call that counts only if nothing follows it."""

    block: Block
    start: int
    gap: str
    """What parts it from the one before."""
    text: str
    begins_line: bool


class Ledger:
    """One answer's. Text waits here only behind a call that counts only if nothing follows."""

    def __init__(self, source: Source, place: Place, admission: Admission) -> None:
        self._source = source
        self._place = place
        self._admission = admission
        self.out: list[Event] = []
        self.pieces: list[Piece] = []
        """What is not text, in the order of the answer."""
        self.calls: list[Call] = []
        self.rejected: list[Rejected] = []
        self.reason = ""
        """Why the answer ended; empty while it goes on."""
        self.is_invented = False
        """Whether the model has made up a tool's result."""
        self._begun: int | None = None
        self._index = 0
        self._told = 0
        self._told_name = ""
        self._held: list[_Held] = []
        self._gap: list[str] = []

    @property
    def is_cut(self) -> bool:
        return self.reason in CUT_SHORT

    @property
    def holds(self) -> bool:
        return bool(self._held)

    # --- text and thinking

    def text(self, text: str) -> None:
        if self._held:
            if not text.strip(_BETWEEN):
                self._gap.append(text)
                return
            self.settle(accept=False)
        self._say(text)

    def _say(self, text: str) -> None:
        if text:
            self.out.append(Text(text))
            self._place.passed(text)

    def thought(self, text: str, start: int) -> None:
        self.out.append(Reasoning(text))
        self.pieces.append(Piece("reasoning", start, start + len(text)))

    def mark(self, length: int) -> None:
        """What stands here says nothing to anyone."""
        start = self._source.offset
        self._source.skip(self._source.position + length)
        self.pieces.append(Piece("marker", start, self._source.offset))

    def thought_so_far(self) -> None:
        """All before was thinking, and what it called it only thought of."""
        self.pieces = [Piece("reasoning", 0, self._source.offset)]
        for call in self.calls:
            self._refused(call.span, Refused("it was written while thinking", call.name))
        self.calls = []
        self.is_invented = False

    # --- something that may be a call

    def begin(self) -> int:
        """From here on it may be a call."""
        self._begun = self._source.offset
        self._source.keep()
        self._told, self._told_name = 0, ""
        self.out.append(CallBegin(self._index, self._begun))
        return self._begun

    def name(self, name: str) -> None:
        if self._begun is not None and not self._told_name:
            self._told_name = name
            self.out.append(CallName(self._index, name))

    def tell_more(self) -> None:
        """As much of a call as has come."""
        kept = self._source.kept
        if self._begun is not None and len(kept) > self._told:
            self.out.append(ArgDelta(self._index, "".join(kept[self._told :])))
            self._told = len(kept)

    def take_heading(self, start: int) -> None:
        """What was read is the heading of a message, and no call."""
        self._begun = None
        self.pieces.append(Piece("marker", start, self._source.offset))
        self._source.keep()

    def refuse(self, start: int, reason: str) -> None:
        text = self.release()
        self._refused((start, start + len(text)), Refused(reason, self._told_name))

    def release(self) -> str:
        """What was taken for a call is text."""
        self.settle(accept=False)
        self._begun = None
        text = "".join(self._source.kept)
        self._source.keep()
        self._say(text)
        return text

    def hold(self, block: Block, start: int, begins_line: bool) -> None:
        self._held.append(_Held(block, start, "".join(self._gap), "".join(self._source.kept), begins_line))
        self._begun = None
        self._gap.clear()

    def settle(self, *, accept: bool) -> None:
        """Calls that counted only if nothing followed: now it is known."""
        if not self._held:
            return
        held, gap = tuple(self._held), "".join(self._gap)
        self._held.clear()
        self._gap.clear()
        for each in held:
            self._say(each.gap)
            if accept:
                self._source.kept = [each.text]
                self.conclude(each.block, each.start, each.begins_line, is_bare=True)
            else:
                self._say(each.text)
                self._refused((each.start, each.start + len(each.text)), Refused("text follows it"))
        self._say(gap)

    # --- the verdict

    def conclude(self, block: Block, start: int, begins_line: bool, *, is_bare: bool = False) -> None:
        """The calls of a block: some stand, some are refused; where none stands, the block is text."""
        end = start + sum(map(len, self._source.kept))
        fault = self._fault(block)
        refused: list[tuple[Span, Refused]] = [((start, end), Refused(each)) for each in block.faults]
        stands = False
        for raw in block.calls if not fault else ():
            verdict = (
                self._admission.admit(raw, block.opener, at_line_start=begins_line, is_bare=is_bare)
                if len(self.calls) < MAX_CALLS
                else Refused("there are too many calls", raw.name)
            )
            if isinstance(verdict, Refused):
                refused.append(((raw.start, raw.end), verdict))
                continue
            stands = True
            self.name(raw.name)
            self.calls.append(verdict if len(block.calls) > 1 else msgspec.structs.replace(verdict, span=(start, end)))
            self._index += 1
        if stands:
            self.tell_more()
            self._begun = None
            insort(self.pieces, Piece("call", start, end), key=lambda piece: piece.start)  # markers may have gone by while it was held
            self._place.passed_call()
        else:
            self.release()
            refused = refused or [((start, end), Refused(fault or "it holds no call"))]
        for span, each in refused:
            self._refused(span, each)

    def _fault(self, block: Block) -> str:
        if self.is_invented:
            return "it stands behind a tool result that the model made up"
        if self.is_cut and not block.is_closed:
            return "the answer was cut off"
        opener = OPENERS.get(block.opener)
        if block.is_cut and opener is not None and opener.close and not opener.is_optional:
            return "it breaks off"
        return ""

    def _refused(self, span: Span, refused: Refused) -> None:
        if len(self.rejected) < MAX_CALLS:
            self.rejected.append(Rejected(span, refused.reason, name=refused.name, suggestions=refused.suggestions))
            self.out.append(CallRejected(span, refused.reason, refused.suggestions))
