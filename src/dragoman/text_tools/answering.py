"""One answer as it comes: text in, and out of it what a service that knows tools would have told."""

from __future__ import annotations

from typing import assert_never

import msgspec

from dragoman.base import jsontext
from dragoman.text_tools import calls as read
from dragoman.text_tools.answer_parts import assemble, call_arguments, without_words
from dragoman.text_tools.call_note import CUT, CallNote, note_on, noted
from dragoman.text_tools.calls import Parsed, Piece, Rejected
from dragoman.text_tools.constrained import WordsComing, read_constrained, words_so_far
from dragoman.text_tools.echo import Untrusted
from dragoman.text_tools.feedback import UNFIT_ANSWER, feedback, is_cut, worth_telling
from dragoman.text_tools.parser import StreamParser
from dragoman.text_tools.toolset import Toolset
from dragoman.values.events import ResponseFinished, StreamEvent, TextDelta, ThoughtDelta, ToolCallDelta, ToolCallReady, ToolCallStarted
from dragoman.values.messages import FinishReason, Message, Request, Response, Text, ToolCall
from dragoman.values.parts import unique_id


class Reading(msgspec.Struct, frozen=True):
    """How answers to a request are read."""

    request: Request
    tools: Toolset
    dialect: str
    preserve_context: bool = True
    is_native: bool = False
    """The service knows tools: its own calls go before, and what cannot be read is no fault."""


class Answering:
    """Reads one answer. `event` takes what the service tells and returns what is to be told; `whole` takes an answer in one."""

    def __init__(self, reading: Reading, parser: StreamParser) -> None:
        self._reading = reading
        self._parser = parser
        self._ids = _Ids(reading.request)
        self._start = 0
        """Where the call being written begins. There is one at a time."""
        self._begun: dict[int, str] = {}
        """Ids already told, by where the call begins."""

    def event(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, TextDelta):
            return [told for each in self._parser.feed(event.text) for told in self._told(each)]
        if isinstance(event, ResponseFinished):
            told = [told for each in self._parser.finish(event.reason.value) for told in self._told(each)]
            parsed = self._parser.result
            response = self._answer(event.response, parsed)
            ready: list[StreamEvent] = [ToolCallReady(call) for call in response.message.calls if note_on(call) is not None]
            if parsed.calls and not ready:  # they are words after all, and nobody has been told them
                ready = [TextDelta(parsed.original_text[piece.start : piece.end]) for piece in parsed.pieces if piece.kind == "call"]
            return [*told, *ready, ResponseFinished(response.finish, response)]
        return [event]

    def whole(self, response: Response) -> Response:
        self._parser.feed("".join(part.text for part in response.message.parts if isinstance(part, Text)))
        self._parser.finish(response.finish.value)
        return self._answer(response, self._parser.result)

    # --- while it streams

    def _told(self, event: read.Event) -> list[StreamEvent]:
        match event:
            case read.Text(text=text):
                return [TextDelta(text)]
            case read.Reasoning(text=text):
                return [ThoughtDelta(text)]
            case read.CallBegin(start=start):
                self._start = start
                return []
            case read.CallName(name=name):
                call_id = self._begun[self._start] = self._ids.new()
                return [ToolCallStarted(call_id, jsontext.valid_unicode(name))]
            case read.ArgDelta(text=text):
                call_id = self._begun.get(self._start, "")
                return [ToolCallDelta(call_id, text)] if call_id else []
            case read.CallReady() | read.CallRejected() | read.Done():
                return []  # told when the whole answer is known to be good
            case _:
                assert_never(event)

    # --- when it is over

    def _answer(self, response: Response, parsed: Parsed) -> Response:
        is_native = self._reading.is_native
        if is_native and (response.message.calls or any(call.problems for call in parsed.calls)):
            parsed = _as_words(parsed)
        faults = () if is_native else worth_telling(parsed)
        if faults and response.finish is FinishReason.LENGTH:
            return self._with_parts(response, parsed, response.finish, CUT if is_cut(parsed, faults) else response.detail)
        if faults:
            told = feedback(faults, self._reading.tools, self._reading.dialect)
            return self._with_parts(response, _as_words(parsed), FinishReason.MALFORMED_TOOL_CALL, told)
        if parsed.calls and response.finish is FinishReason.STOP:
            return self._with_parts(response, parsed, FinishReason.TOOL_CALLS, response.detail)
        return self._with_parts(response, parsed, response.finish, response.detail)

    def _with_parts(self, response: Response, parsed: Parsed, finish: FinishReason, detail: str) -> Response:
        message = response.message
        if parsed.calls or parsed.reasoning:
            untrusted = Untrusted(self._reading.request.messages if parsed.calls else ())
            parts = assemble(message, parsed, self._reading.dialect, self._identified(parsed), untrusted.holds)
            message = Message("assistant", without_words(parts) if parsed.calls and not self._reading.preserve_context else parts)
        if message is response.message and finish is response.finish and detail == response.detail:
            return response
        return msgspec.structs.replace(response, message=message, finish=finish, detail=detail)

    def _identified(self, parsed: Parsed) -> dict[int, str]:
        """Ids by where a call begins: the first call of a block has the id that was told when it began."""
        starts = [piece.start for piece in parsed.pieces if piece.kind == "call"]
        ids: dict[int, str] = {}
        for call in parsed.calls:
            block = max((start for start in starts if start <= call.span[0]), default=-1)
            ids[id(call)] = self._begun.pop(block, "") or self._ids.new()
        return ids


class Bound(Answering):
    """Reads an answer that was bound to a grammar: see `constrained`. Words are told as they come; a call when it is whole."""

    def __init__(self, reading: Reading, parser: StreamParser) -> None:
        super().__init__(reading, parser)
        self._words = WordsComing()

    def _told(self, event: read.Event) -> list[StreamEvent]:
        match event:
            case read.Reasoning(text=text):
                return [ThoughtDelta(text)]
            case read.Text(text=text) if words := self._words.feed(text):
                return [TextDelta(words)]
            case _:
                return []

    def event(self, event: StreamEvent) -> list[StreamEvent]:
        told = super().event(event)
        if isinstance(event, ResponseFinished) and isinstance(last := told[-1], ResponseFinished):
            text = last.response.message.text
            if text.startswith(self._words.told) and (rest := text[len(self._words.told) :]):
                return [*told[:-1], TextDelta(rest), last]
        return told

    def _answer(self, response: Response, parsed: Parsed) -> Response:
        from dragoman.text_tools.align import Aligned, align

        beside = tuple(part for part in response.message.parts if not isinstance(part, Text))
        found = read_constrained(parsed.text)
        if self._reading.request.settings.tool_choice == "none" and not isinstance(found, str):
            words = words_so_far(parsed.text)  # cut; or else from a server that binds nothing
            found = parsed.text if words is None else words
        if isinstance(found, str):
            return msgspec.structs.replace(response, message=Message("assistant", (*beside, Text(found))))
        if found is not None and response.finish is not FinishReason.LENGTH:
            aligned = align(found[0], found[1], self._reading.tools)
            if isinstance(aligned, Aligned):
                note = CallNote(self._reading.dialect, None, aligned.repairs)
                call = noted(ToolCall(self._ids.new(), aligned.name, call_arguments(aligned.args)), note)
                return msgspec.structs.replace(response, message=Message("assistant", (*beside, call)), finish=FinishReason.TOOL_CALLS)
        if response.finish is FinishReason.LENGTH:
            words = words_so_far(parsed.text)
            if words is None:
                return msgspec.structs.replace(response, message=Message("assistant", beside), detail=CUT)
            return msgspec.structs.replace(response, message=Message("assistant", (*beside, Text(words)) if words else beside))
        told = feedback([Rejected((0, 0), UNFIT_ANSWER)], self._reading.tools, self._reading.dialect)
        return msgspec.structs.replace(response, finish=FinishReason.MALFORMED_TOOL_CALL, detail=told)


def _as_words(parsed: Parsed) -> Parsed:
    """The same answer, its calls as what they are in the end: text. Marks of thinking stay marks."""
    pieces: list[Piece] = []
    for place, piece in enumerate(parsed.pieces):
        beside = parsed.pieces[max(place - 1, 0) : place + 2]
        is_words = piece.kind == "call" or (piece.kind == "marker" and all(each.kind != "reasoning" for each in beside))
        pieces.append(Piece("text", piece.start, piece.end) if is_words else piece)
    return msgspec.structs.replace(parsed, calls=(), pieces=tuple(pieces))


class _Ids:
    """Ids for calls that come without one: the same for the same conversation, and like no other in it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._taken: set[str] | None = None
        self._stem = ""

    def new(self) -> str:
        if self._taken is None:
            from hashlib import sha256  # not needed before the first call

            messages = self._request.messages
            self._taken = {call.id for message in messages for call in message.calls}
            last = jsontext.encode(messages[-1]) if messages else b""
            self._stem = sha256(b"%d %s " % (len(messages), self._request.cache_key.encode()) + last).hexdigest()[:10]
        call_id = unique_id(f"text-{self._stem}", self._taken)
        self._taken.add(call_id)
        return call_id
