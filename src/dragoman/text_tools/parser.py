"""Splits a streaming answer into text, thinking and calls. No I/O, no clock, no backtracking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from dragoman.text_tools.admission import Admission
from dragoman.text_tools.align import NameMapping
from dragoman.text_tools.calls import CallReady, Done, Event, Parsed, Piece, PlainText
from dragoman.text_tools.dialect import AUTO
from dragoman.text_tools.dialect_table import find_dialect
from dragoman.text_tools.ledger import CallLedger
from dragoman.text_tools.lexer import LexerSource
from dragoman.text_tools.machine import Machine
from dragoman.text_tools.pieces import fill_gaps
from dragoman.text_tools.place import Place
from dragoman.text_tools.toolset import Tool, Toolset


class StreamParser:
    """Reads one answer. Call `feed` with each piece of text, then `finish`; `result` is the whole answer.

    `tools=None` accepts any tool name. With a named dialect, its calls are accepted wherever a call may occur, and calls in other dialects
    only if they begin a line, name a known tool and fit its schema. `auto` accepts any marker, and a call without a marker if nothing else
    precedes or follows it.
    """

    def __init__(
        self,
        tools: Iterable[Tool] | Toolset | None = None,
        *,
        dialect: str = AUTO,
        tool_choice: str = "auto",
        mapping: NameMapping | None = None,
        is_thinking: bool = False,
        is_strict: bool = False,
    ) -> None:
        """`mapping` is the user's table of names (see `align`). `is_thinking`: the chat template has opened the model's thinking.
        `is_strict`: text calls were not requested, so each must begin a line and fit its tool, like a call in a foreign dialect."""
        self._tools = Toolset.of(tools)
        self._options = (dialect, tool_choice, mapping)
        self._is_strict = is_strict
        spoken = None if dialect == AUTO else find_dialect(dialect)
        self._source = LexerSource()
        self._place = Place()
        admission = Admission(self._tools, spoken, tool_choice, mapping, is_strict=is_strict)
        self._ledger = CallLedger(self._source, self._place, admission)
        self._takes_calls = tool_choice != "none" and (self._tools is None or len(self._tools) > 0)
        self._machine = Machine(
            self._source,
            self._ledger,
            self._place,
            tools=self._tools,
            dialect=spoken,
            admission=admission,
            takes_calls=self._takes_calls,
            unclosed=self._calls_at_end,
        )
        self._search = self._machine.search
        self._is_within = False
        """Whether this parser reads the unclosed thinking of another one's answer."""
        self._chunks: list[str] = []
        self._result: Parsed | None = None
        self._run = self._machine.read_answer(is_thinking=is_thinking)
        next(self._run, None)

    def feed(self, text: str) -> list[Event]:
        """Read more of the answer; returns the events it decides."""
        if not text or self._ledger.reason:
            return []
        self._chunks.append(text)
        if self._machine.is_idle and self._search(text) is None:
            self._source.base += len(text)
            place = self._place
            if place.is_blank or "\n" in text or text.isspace():
                place.advance(text)
            else:
                place.before = place.solid = text
            return [PlainText(text)]
        self._source.push(text)
        return self._go_on()

    def finish(self, reason: str = "stop") -> list[Event]:
        """End the answer, with its finish reason. A call truncated by the output limit is rejected."""
        ledger = self._ledger
        if ledger.reason:
            return []
        ledger.reason = str(reason) or "stop"
        self._source.closed = True
        out = self._go_on()
        if self._tools is not None and self._takes_calls and not ledger.calls and not ledger.rejected:
            ledger.note_mention("".join(self._chunks), self._tools)
            out = ledger.out
        out += [CallReady(call, call.span, call.repairs, call.trust) for call in ledger.calls]
        out.append(Done(ledger.reason))
        return out

    @property
    def result(self) -> Parsed:
        """The answer as read so far; final once it is finished."""
        if self._result is not None:
            return self._result
        ledger, original = self._ledger, "".join(self._chunks)
        pieces = fill_gaps(ledger.pieces, len(original))
        joined = {kind: "".join(original[each.start : each.end] for each in pieces if each.kind == kind) for kind in ("text", "reasoning")}
        rejected = tuple(msgspec.structs.replace(each, text=original[slice(*each.span)]) for each in ledger.rejected)
        parsed = Parsed(tuple(ledger.calls), joined["text"], joined["reasoning"], rejected, original, pieces)
        if ledger.reason:
            self._result = parsed
        return parsed

    def _go_on(self) -> list[Event]:
        self._machine.is_idle = False
        self._ledger.out = []
        next(self._run, None)
        self._ledger.emit_more()
        return self._ledger.out

    def _calls_at_end(self, thought: str, start: int) -> None:
        """Unclosed thinking may end in calls; the thinking then ends where they begin."""
        if self._is_within or not self._takes_calls:
            return
        dialect, tool_choice, mapping = self._options
        within = StreamParser(self._tools, dialect=dialect, tool_choice=tool_choice, mapping=mapping, is_strict=self._is_strict)
        within._is_within = True
        within.feed(thought)
        within.finish(self._ledger.reason)
        read = within.result
        solid = max((each.end for each in read.pieces if each.kind in ("text", "reasoning") and _is_solid(thought, each)), default=0)
        tail = [each for each in read.pieces if each.kind == "call" and each.start >= solid]
        if not tail:
            return
        at = start + tail[0].start
        kept = [each for each in self._ledger.pieces if each.end <= at]
        cut = [Piece(each.kind, each.start, at) for each in self._ledger.pieces if each.start < at < each.end]
        rest = [each for each in read.pieces if each.start >= tail[0].start]  # calls, and what is between and after them
        self._ledger.pieces = [*kept, *cut, *(Piece(_kind_at_end(each), start + each.start, start + each.end) for each in rest)]
        self._ledger.calls += [
            msgspec.structs.replace(call, span=(call.span[0] + start, call.span[1] + start))
            for call in read.calls
            if call.span[0] >= tail[0].start
        ]


def _kind_at_end(piece: Piece) -> Literal["call", "marker"]:
    return "call" if piece.kind == "call" else "marker"


def _is_solid(text: str, piece: Piece) -> bool:
    return bool(text[piece.start : piece.end].strip())


def parse(
    text: str,
    tools: Iterable[Tool] | Toolset | None = None,
    *,
    dialect: str = AUTO,
    finish: str = "stop",
    tool_choice: str = "auto",
) -> Parsed:
    """Read a whole answer."""
    parser = StreamParser(tools, dialect=dialect, tool_choice=tool_choice)
    parser.feed(text)
    parser.finish(finish)
    return parser.result
