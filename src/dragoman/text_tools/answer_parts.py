"""A parsed answer → the parts of a message, as a service with native tool calls would have returned them.

Each call keeps its original text, with the space and markers around it, so that the answer can be sent back verbatim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from dragoman.base import jsontext
from dragoman.text_tools.call_note import CallNote, attach_note
from dragoman.text_tools.calls import Call, Parsed
from dragoman.values.messages import Message, Part, Text, Thought, ToolCall

Echoes = Callable[[Call, str], str]
"""The tool whose result contains the call, or "". See `echo.RecentResults.find_echo`."""


def assemble(came: Message, parsed: Parsed, dialect: str, ids: Mapping[int, str], echoes: Echoes) -> tuple[Part, ...]:
    """The parts of an answer that contains calls or thinking. Parts other than text (thoughts, citations) stay in their place.

    `ids` maps each call's `id()` to its call id.
    """
    writing = _PartsBuilder(parsed, dialect, ids, echoes)
    for start, end, kind in _split_pieces(parsed, _non_text_parts(came)):
        writing.take(kind, start, end)
    return writing.close()


def call_arguments(args: dict[str, object]) -> str:
    """Arguments as JSON text, including integers of any length and lone surrogates."""
    try:
        return jsontext.dumps(args)
    except (ValueError, OverflowError, TypeError):
        import json  # for integers longer than a machine's

        return jsontext.clean(json.dumps(args, separators=(",", ":"), default=str))


Kind = str | Part
"""The kind of a piece, or a part between two pieces."""


def _non_text_parts(came: Message) -> list[tuple[int, Part]]:
    """The parts that are not text, each with the length of the text before it."""
    found: list[tuple[int, Part]] = []
    length = 0
    for part in came.parts:
        if isinstance(part, Text) and part.text:
            length += len(part.text)
        elif not isinstance(part, Text) or part.opaque is not None:
            found.append((length, part))
    return found


def _split_pieces(parsed: Parsed, beside: list[tuple[int, Part]]) -> Iterable[tuple[int, int, Kind]]:
    """All pieces in order, with text split where another part belongs."""
    waiting = deque(beside)
    for piece in parsed.pieces:
        start = piece.start
        while waiting and waiting[0][0] < piece.end and (piece.kind == "text" or waiting[0][0] <= start):
            place, part = waiting.popleft()
            if place > start:
                yield start, place, piece.kind
                start = place
            yield place, place, part
        yield start, piece.end, piece.kind
    for place, part in waiting:
        yield place, place, part


class _PartsBuilder:
    def __init__(self, parsed: Parsed, dialect: str, ids: Mapping[int, str], echoes: Echoes) -> None:
        self._text = parsed.original_text
        self._calls = deque(parsed.calls)
        self._dialect = dialect
        self._ids = ids
        self._echoes = echoes
        self._parts: list[Part] = []
        self._run: list[tuple[Call, str]] = []
        """Calls separated only by space, each with its text."""
        self._space = ""
        """Space and markers that belong to the call before or after them."""
        self._after_thinking = False
        """Whether only thinking came before: the blank lines behind it do not belong to the answer."""

    def take(self, kind: Kind, start: int, end: int) -> None:
        piece = self._text[start:end]
        match kind:
            case "call":
                self._take_calls(start, end)
            case "marker":
                self._space += piece
            case "text":
                self._take_text(piece)
            case "reasoning":
                self._after_thinking = self._after_thinking or not any(isinstance(part, Text | ToolCall) for part in self._parts)
                self._add(Thought(piece))
            case str():
                raise AssertionError(f"no such piece: {kind}")
            case _:
                self._end_run()
                self._parts.append(kind)

    def _take_calls(self, start: int, end: int) -> None:
        written, self._space = self._space + self._text[start:end], ""
        while self._calls and self._calls[0].span[0] < end:
            self._run.append((self._calls.popleft(), written))
            written = ""
        if written and self._run:
            call, before = self._run[-1]
            self._run[-1] = (call, before + written)

    def _take_text(self, piece: str) -> None:
        body = piece.strip()
        if not body:
            self._space += piece
            return
        lead, tail = piece[: piece.index(body)], piece[piece.index(body) + len(body) :]
        if self._run:
            self._space += lead
        elif self._after_thinking:
            self._space = ""
        else:
            body = self._take_leading_space() + lead + body
        self._add(Text(body))
        self._space, self._after_thinking = tail, False

    def _take_leading_space(self) -> str:
        """Space before text that does not follow a call: it belongs to the text."""
        space = self._space if self._space.isspace() else ""
        self._space = ""
        return space

    def _add(self, part: Part) -> None:
        self._end_run()
        last = self._parts[-1] if self._parts else None
        if isinstance(part, Text) and isinstance(last, Text) and last.opaque is None:
            self._parts[-1] = Text(last.text + part.text)
        elif isinstance(part, Thought) and isinstance(last, Thought) and last.opaque is None:
            self._parts[-1] = Thought(last.text + part.text)
        else:
            self._parts.append(part)

    def _end_run(self) -> None:
        if not self._run:
            return
        call, written = self._run[-1]
        self._run[-1] = (call, written + self._space)
        self._space = ""
        is_exact = all(not call.repairs and call.trust == "negotiated" for call, _ in self._run)
        for call, written in self._run:
            self._parts.append(self._tool_call(call, written, is_exact=is_exact))
        self._run = []

    def _tool_call(self, call: Call, written: str, *, is_exact: bool) -> ToolCall:
        text = self._text[call.span[0] : call.span[1]]
        note = CallNote(call.dialect or self._dialect, written if is_exact else None, call.repairs, call.trust, self._echoes(call, text))
        made = ToolCall(self._ids[id(call)], jsontext.valid_unicode(call.name), call_arguments(call.args))
        return attach_note(made, note)

    def close(self) -> tuple[Part, ...]:
        ends_in_call = bool(self._run)
        self._end_run()
        last = self._parts[-1] if self._parts else None
        if not ends_in_call and self._space.isspace() and isinstance(last, Text) and last.opaque is None:
            self._parts[-1] = Text(last.text + self._space)
        return tuple(self._parts)


def without_text(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts without the text beside calls, as some services with native calls return them."""
    return tuple(part for part in parts if not isinstance(part, Text) or part.opaque is not None)
