"""Turns a streaming text answer into the events and response of a service with native tool calls."""

from __future__ import annotations

import logging
from bisect import bisect_right
from hashlib import sha256
from typing import assert_never

import msgspec

from dragoman.base import jsontext
from dragoman.text_tools import calls as read
from dragoman.text_tools.answer_parts import assemble, call_arguments, without_text
from dragoman.text_tools.call_note import CallNote, attach_note, read_note
from dragoman.text_tools.calls import Parsed, Piece, Rejected
from dragoman.text_tools.constrained import PartialAnswer, read_constrained, words_so_far
from dragoman.text_tools.echo import RecentResults
from dragoman.text_tools.feedback import UNFIT_ANSWER, is_cut, render_feedback, unreadable_calls
from dragoman.text_tools.parser import StreamParser
from dragoman.text_tools.toolset import Toolset
from dragoman.values.events import ResponseFinished, StreamEvent, TextDelta, ThoughtDelta, ToolCallDelta, ToolCallReady, ToolCallStarted
from dragoman.values.messages import FinishReason, Message, Request, Response, Text, ToolCall, unique_id
from dragoman.values.parts import used_call_ids

log = logging.getLogger("dragoman.text_tools")


class ReaderOptions(msgspec.Struct, frozen=True):
    """How the answer to a request is read."""

    request: Request
    tools: Toolset
    dialect: str
    preserve_context: bool = True
    is_native: bool = False
    """The service supports tools natively: its own calls take precedence, and an unreadable text call is not an error."""


class AnswerReader:
    """Reads one answer: `read_event` converts a stream event, `read_response` a whole response."""

    _holds_text = True
    """Whether text is held back until the end where it is dropped beside calls."""

    def __init__(self, options: ReaderOptions, parser: StreamParser) -> None:
        self._options = options
        self._parser = parser
        self._ids = _Ids(options.request)
        self._start = 0
        """Where the call that is being streamed begins. There is one at a time."""
        self._started_ids: dict[int, str] = {}
        """Ids of calls already reported as started, by where the call begins."""
        self._last_char = ""
        """Of the text that was emitted."""
        self._is_in_gap = False
        """Behind thinking, where blank lines do not belong to the answer."""

    def read_event(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, TextDelta):
            return [out for each in self._parser.feed(event.text) for out in self._stream_events(each)]
        if isinstance(event, ResponseFinished):
            events = [out for each in self._parser.finish(event.reason.value) for out in self._stream_events(each)]
            parsed = self._parser.result
            response = self._finish_response(event.response, parsed)
            ready: list[StreamEvent] = [ToolCallReady(call) for call in response.message.calls if read_note(call) is not None]
            if not self._options.preserve_context and self._holds_text:
                ready = ready or [TextDelta(text) for text in (response.message.text,) if text]
            elif parsed.calls and not ready:  # they are text after all, and have not been emitted yet
                ready = [TextDelta(parsed.original_text[piece.start : piece.end]) for piece in parsed.pieces if piece.kind == "call"]
            return [*events, *ready, ResponseFinished(response.finish, response)]
        return [event]

    def read_response(self, response: Response) -> Response:
        read = self._parser.feed("".join(part.text for part in response.message.parts if isinstance(part, Text)))
        for event in (*read, *self._parser.finish(response.finish.value)):
            self._stream_events(event)  # calls get the ids that they would have if it were streamed
        return self._finish_response(response, self._parser.result)

    # --- while it streams

    def _stream_events(self, event: read.Event) -> list[StreamEvent]:
        match event:
            case read.PlainText(text=text):
                return self._text_events(text)
            case read.Reasoning(text=text):
                self._is_in_gap = self._last_char in ("", "\n")
                return [ThoughtDelta(text)]
            case read.CallBegin(start=start):
                self._start = start
                return []
            case read.CallName(name=name):
                call_id = self._started_ids[self._start] = self._ids.new()
                return [ToolCallStarted(call_id, jsontext.valid_unicode(name))]
            case read.ArgDelta(text=text):
                call_id = self._started_ids.get(self._start, "")
                return [ToolCallDelta(call_id, text)] if call_id else []
            case read.CallReady() | read.CallRejected() | read.Done():
                return []  # emitted when the whole answer is known to be good
            case _:
                assert_never(event)

    def _text_events(self, text: str) -> list[StreamEvent]:
        if not self._options.preserve_context:
            return []  # text beside calls is dropped, and whether there are any is known at the end
        if self._is_in_gap:
            text = text.lstrip("\r\n") if self._last_char else text.lstrip()
        if not text:
            return []
        self._is_in_gap, self._last_char = False, text[-1]
        return [TextDelta(text)]

    # --- when it is over

    def _finish_response(self, response: Response, parsed: Parsed) -> Response:
        is_native = self._options.is_native
        if is_native and (response.message.calls or any(call.problems for call in parsed.calls)):
            parsed = _calls_as_text(parsed)
        faults = () if is_native and not parsed.calls else unreadable_calls(parsed)
        if faults and response.finish is FinishReason.LENGTH:
            cut = msgspec.structs.replace(response, fault="cut_in_call") if is_cut(parsed, faults) else response
            return self._with_parts(cut, parsed, response.finish, response.detail)
        if faults:
            dialect = parsed.calls[0].dialect if is_native else self._options.dialect
            detail = render_feedback(faults, self._options.tools, dialect, others_ran=bool(parsed.calls))
            unreadable = msgspec.structs.replace(response, fault="unreadable_call")
            if parsed.calls:  # they run, and the model is told of the rest beside their results
                return self._with_parts(unreadable, parsed, FinishReason.TOOL_CALLS, detail)
            return self._with_parts(unreadable, _calls_as_text(parsed), FinishReason.MALFORMED_TOOL_CALL, detail)
        if parsed.calls and response.finish is FinishReason.STOP:
            return self._with_parts(response, parsed, FinishReason.TOOL_CALLS, response.detail)
        return self._with_parts(response, parsed, response.finish, response.detail)

    def _with_parts(self, response: Response, parsed: Parsed, finish: FinishReason, detail: str) -> Response:
        message = response.message
        if parsed.calls or parsed.reasoning:
            untrusted = RecentResults(self._options.request.messages if parsed.calls else ())
            parts = assemble(message, parsed, self._options.dialect, self._ids_by_call(parsed), untrusted.find_echo)
            _log_parts(parsed, is_kept=self._options.preserve_context)
            message = Message("assistant", without_text(parts) if parsed.calls and not self._options.preserve_context else parts)
        if message is response.message and finish is response.finish and detail == response.detail:
            return response
        return msgspec.structs.replace(response, message=message, finish=finish, detail=detail)

    def _ids_by_call(self, parsed: Parsed) -> dict[int, str]:
        """The id of each call: the first call of a block keeps the id that was reported when it started."""
        starts = [piece.start for piece in parsed.pieces if piece.kind == "call"]
        ids: dict[int, str] = {}
        for call in parsed.calls:
            block = starts[place - 1] if (place := bisect_right(starts, call.span[0])) else -1
            ids[id(call)] = self._started_ids.pop(block, "") or self._ids.new()
        return ids


def _log_parts(parsed: Parsed, *, is_kept: bool) -> None:
    """Write down at DEBUG what was taken out of the text, and what became of the words beside calls."""
    if parsed.reasoning:
        log.debug("took %d characters of thinking out of the text of an answer", len(parsed.reasoning))
    if parsed.calls and (words := parsed.text.strip()):
        log.debug("%s %d characters of text beside %d tool calls", "kept" if is_kept else "dropped", len(words), len(parsed.calls))


class BoundAnswerReader(AnswerReader):
    """Reads an answer constrained by a grammar (see `constrained`). Text is emitted as it streams, a call when it is complete."""

    _holds_text = False

    def __init__(self, options: ReaderOptions, parser: StreamParser) -> None:
        super().__init__(options, parser)
        self._words = PartialAnswer()

    def _stream_events(self, event: read.Event) -> list[StreamEvent]:
        match event:
            case read.Reasoning(text=text):
                return [ThoughtDelta(text)]
            case read.PlainText(text=text) if words := self._words.feed(text):
                return [TextDelta(words)]
            case _:
                return []

    def read_event(self, event: StreamEvent) -> list[StreamEvent]:
        events = super().read_event(event)
        if isinstance(event, ResponseFinished) and isinstance(last := events[-1], ResponseFinished):
            text = last.response.message.text
            if text.startswith(self._words.text) and (rest := text[len(self._words.text) :]):
                return [*events[:-1], TextDelta(rest), last]
        return events

    def _finish_response(self, response: Response, parsed: Parsed) -> Response:
        from dragoman.text_tools.align import AlignedCall, align

        beside = tuple(part for part in response.message.parts if not isinstance(part, Text))
        found = read_constrained(parsed.text)
        if self._options.request.settings.tool_choice == "none" and not isinstance(found, str):
            words = words_so_far(parsed.text)  # truncated, or from a server that ignores the grammar
            found = parsed.text if words is None else words
        if isinstance(found, str):
            return msgspec.structs.replace(response, message=Message("assistant", (*beside, Text(found))))
        if found is not None and response.finish is not FinishReason.LENGTH:
            aligned = align(found[0], found[1], self._options.tools)
            if isinstance(aligned, AlignedCall):
                note = CallNote(self._options.dialect, None, aligned.repairs)
                call = attach_note(ToolCall(self._ids.new(), aligned.name, call_arguments(aligned.args)), note)
                return msgspec.structs.replace(response, message=Message("assistant", (*beside, call)), finish=FinishReason.TOOL_CALLS)
        if response.finish is FinishReason.LENGTH:
            words = words_so_far(parsed.text)
            if words is None:
                return msgspec.structs.replace(response, message=Message("assistant", beside), fault="cut_in_call")
            return msgspec.structs.replace(response, message=Message("assistant", (*beside, Text(words)) if words else beside))
        detail = render_feedback([Rejected((0, 0), UNFIT_ANSWER)], self._options.tools, self._options.dialect)
        return msgspec.structs.replace(response, finish=FinishReason.MALFORMED_TOOL_CALL, detail=detail, fault="unreadable_call")


def _calls_as_text(parsed: Parsed) -> Parsed:
    """The same answer with its calls turned back into text. Thinking markers stay markers."""
    pieces: list[Piece] = []
    for place, piece in enumerate(parsed.pieces):
        beside = parsed.pieces[max(place - 1, 0) : place + 2]
        is_words = piece.kind == "call" or (piece.kind == "marker" and all(each.kind != "reasoning" for each in beside))
        pieces.append(Piece("text", piece.start, piece.end) if is_words else piece)
    return msgspec.structs.replace(parsed, calls=(), pieces=tuple(pieces))


class _Ids:
    """Ids for text calls: deterministic for a conversation, and unique within it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._taken: set[str] | None = None
        self._stem = ""

    def new(self) -> str:
        if self._taken is None:
            messages = self._request.messages
            self._taken = used_call_ids(messages)
            last = jsontext.encode(messages[-1]) if messages else b""
            self._stem = sha256(b"%d %s " % (len(messages), self._request.cache_key.encode()) + last).hexdigest()[:10]
        call_id = unique_id(f"text-{self._stem}", self._taken)
        self._taken.add(call_id)
        return call_id
