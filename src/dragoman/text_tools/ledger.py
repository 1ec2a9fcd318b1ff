"""What the parser has decided so far: events to emit, pieces, accepted calls and rejected ones."""

from __future__ import annotations

from bisect import insort

import msgspec

from dragoman.text_tools.admission import Admission, CallRefusal
from dragoman.text_tools.calls import ArgDelta, Call, CallBegin, CallName, CallRejected, Event, Piece, PlainText, Reasoning, Rejected, Span
from dragoman.text_tools.lexer import LexerSource
from dragoman.text_tools.openers import OPENERS
from dragoman.text_tools.place import Place
from dragoman.text_tools.raw_calls import CallBlock
from dragoman.text_tools.toolset import Toolset

MAX_CALLS = 128
"""Calls in one answer. More are rejected."""
_BETWEEN = " \t\r\n;,"
MAX_SEEN_CHARS = 20_000
"""How far an answer in which nothing was read is searched for the mention of a call. What is longer is a text, and no call."""
_IN_NAME = ("_", ".", "-", "\\")
MENTIONED = "it stands within other text"
CUT_SHORT = frozenset(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete"))


class _HeldCall(msgspec.Struct, frozen=True):
    """A call that counts only if nothing follows it."""

    block: CallBlock
    start: int
    gap: str
    """The text between the previous call and this one."""
    text: str
    begins_line: bool
    beside_text: bool = False
    """Whether it is a code fence behind other text: all of it must then fit."""
    may_precede: bool = False
    """Whether it counts, as one beside text, even if text follows."""


class CallLedger:
    """The ledger of one answer. Text is held back only after a call that counts only if nothing follows."""

    def __init__(self, source: LexerSource, place: Place, admission: Admission) -> None:
        self._source = source
        self._place = place
        self._admission = admission
        self.out: list[Event] = []
        self.pieces: list[Piece] = []
        """What is not text, in the order of the answer."""
        self.calls: list[Call] = []
        self.rejected: list[Rejected] = []
        self.reason = ""
        """The finish reason; empty while the answer streams."""
        self.has_invented_result = False
        """Whether the model has made up a tool's result."""
        self._begun: int | None = None
        self._index = 0
        self._emitted = 0
        self._name = ""
        self._held: list[_HeldCall] = []
        self._gap: list[str] = []

    @property
    def is_cut(self) -> bool:
        return self.reason in CUT_SHORT

    @property
    def has_held(self) -> bool:
        return bool(self._held)

    # --- text and thinking

    def add_text(self, text: str) -> None:
        if self._held:
            if not text.strip(_BETWEEN):
                self._gap.append(text)
                return
            self.settle_held(accept=False)
        self._emit_text(text)

    def _emit_text(self, text: str) -> None:
        if text:
            self.out.append(PlainText(text))
            self._place.advance(text)

    def add_thought(self, text: str, start: int) -> None:
        self.out.append(Reasoning(text))
        self.pieces.append(Piece("reasoning", start, start + len(text)))

    def skip_marker(self, length: int) -> None:
        """Skip a marker: it is neither text nor a call."""
        start = self._source.offset
        self._source.skip(self._source.position + length)
        self.pieces.append(Piece("marker", start, self._source.offset))

    def turn_into_thinking(self) -> None:
        """Turn everything so far into thinking, and reject the calls in it."""
        self.pieces = [Piece("reasoning", 0, self._source.offset)]
        for call in self.calls:
            self._reject(call.span, CallRefusal("it was written while thinking", call.name))
        self.calls = []
        self.has_invented_result = False

    # --- something that may be a call

    def begin(self) -> int:
        """A call may begin here."""
        self._begun = self._source.offset
        self._source.keep()
        self._emitted, self._name = 0, ""
        self.out.append(CallBegin(self._index, self._begun))
        return self._begun

    def set_name(self, name: str) -> None:
        if self._begun is not None and not self._name:
            self._name = name
            self.out.append(CallName(self._index, name))

    def emit_more(self) -> None:
        """Emit the new text of the current call."""
        kept = self._source.kept
        if self._begun is not None and len(kept) > self._emitted:
            self.out.append(ArgDelta(self._index, "".join(kept[self._emitted :])))
            self._emitted = len(kept)

    def take_heading(self, start: int) -> None:
        """What was read is the heading of a message, not a call."""
        self._begun = None
        self.pieces.append(Piece("marker", start, self._source.offset))
        self._source.keep()

    def refuse(self, start: int, reason: str) -> None:
        text = self.release()
        self._reject((start, start + len(text)), CallRefusal(reason, self._name))

    def release(self) -> str:
        """Turn what may have been a call back into text."""
        self.settle_held(accept=False)
        self._begun = None
        text = "".join(self._source.kept)
        self._source.keep()
        self._emit_text(text)
        return text

    def hold(self, block: CallBlock, start: int, begins_line: bool, *, beside_text: bool = False, may_precede: bool = False) -> None:
        written = "".join(self._source.kept)
        self._held.append(_HeldCall(block, start, "".join(self._gap), written, begins_line, beside_text, may_precede))
        self._begun = None
        self._gap.clear()

    def settle_held(self, *, accept: bool) -> None:
        """Accept or reject the calls that count only if nothing follows."""
        if not self._held:
            return
        held, gap = tuple(self._held), "".join(self._gap)
        self._held.clear()
        self._gap.clear()
        # Another may have begun meanwhile: it goes on as it was.
        kept, begun, emitted, name = self._source.kept, self._begun, self._emitted, self._name
        for each in held:
            self._emit_text(each.gap)
            if accept or each.may_precede:
                self._source.kept = [each.text]
                beside_text = each.beside_text or not accept
                self.conclude(each.block, each.start, each.begins_line, is_bare=True, beside_text=beside_text)
            else:
                self._emit_text(each.text)
                self._reject((each.start, each.start + len(each.text)), CallRefusal("text follows it"))
        self._source.kept, self._begun, self._emitted, self._name = kept, begun, emitted, name
        self._emit_text(gap)

    def note_mention(self, answer: str, tools: Toolset) -> None:
        """Say why a known tool's name with a bracket behind it was not read: it is never passed over in silence."""
        seen = answer[:MAX_SEEN_CHARS]
        if "(" not in seen:
            return
        is_escaped = "\\" in seen
        for name in tools.names:
            for written in (name, name.replace("_", "\\_")) if is_escaped else (name,):
                at = _find_call(seen, written)
                if at >= 0 and not self._is_reasoning(at):
                    self._reject((at, at + len(written)), CallRefusal(MENTIONED, name))
                    return

    def _is_reasoning(self, at: int) -> bool:
        return any(piece.kind == "reasoning" and piece.start <= at < piece.end for piece in self.pieces)

    # --- the verdict

    def conclude(self, block: CallBlock, start: int, begins_line: bool, *, is_bare: bool = False, beside_text: bool = False) -> None:
        """Accept or refuse each call of a block; if none is accepted, the block is text."""
        end = start + sum(map(len, self._source.kept))
        refusal = CallRefusal(fault) if (fault := self._fault(block)) else self._unfit(block) if beside_text else None
        refused: list[tuple[Span, CallRefusal]] = [((start, end), CallRefusal(each)) for each in block.faults]
        is_accepted = False
        for raw in block.calls if refusal is None else ():
            verdict = (
                self._admission.admit(raw, block.opener, at_line_start=begins_line, is_bare=is_bare, beside_text=beside_text)
                if len(self.calls) < MAX_CALLS
                else CallRefusal("there are too many calls", raw.name)
            )
            if isinstance(verdict, CallRefusal):
                refused.append(((raw.start, raw.end), verdict))
                continue
            is_accepted = True
            self.set_name(raw.name)
            self.calls.append(verdict if len(block.calls) > 1 else msgspec.structs.replace(verdict, span=(start, end)))
            self._index += 1
        if is_accepted:
            self.emit_more()
            self._begun = None
            insort(self.pieces, Piece("call", start, end), key=lambda piece: piece.start)  # markers may have been added while it was held
            self._place.advance_past_call()
        else:
            self.release()
            refused = refused or [((start, end), refusal or CallRefusal("it holds no call"))]
        for span, each in refused:
            self._reject(span, each)

    def _unfit(self, block: CallBlock) -> CallRefusal | None:
        """Why a code fence beside other text is code and no calls: one of them does not fit."""
        for raw in block.calls:
            verdict = self._admission.admit(raw, block.opener, at_line_start=True, is_bare=True, beside_text=True)
            if isinstance(verdict, CallRefusal):
                return verdict
        return CallRefusal(block.faults[0]) if block.faults else None

    def _fault(self, block: CallBlock) -> str:
        if self.has_invented_result:
            return "it stands behind a tool result that the model made up"
        if self.is_cut and not block.is_closed:
            return "the answer was cut off"
        opener = OPENERS.get(block.opener)
        if block.is_cut and opener is not None and opener.close and not opener.is_optional:
            return "it breaks off"
        return ""

    def _reject(self, span: Span, refused: CallRefusal) -> None:
        if len(self.rejected) < MAX_CALLS:
            self.rejected.append(Rejected(span, refused.reason, name=refused.name, suggestions=refused.suggestions))
            self.out.append(CallRejected(span, refused.reason, refused.suggestions))


def _find_call(answer: str, name: str) -> int:
    """Where a name stands by itself with a bracket behind it, or -1."""
    at = answer.find(name)
    while at >= 0:
        before, behind = answer[at - 1 : at], answer[at + len(name) : at + len(name) + 2]
        if behind.lstrip(" ").startswith("(") and not (before.isalnum() or before in _IN_NAME):
            return at
        at = answer.find(name, at + len(name))
    return -1
