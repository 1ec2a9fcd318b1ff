"""The answer is text, thinking or a call, and markers lead from one to the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

import msgspec

from dragoman.text_tools.admission import Admission
from dragoman.text_tools.blocks import BlockReader
from dragoman.text_tools.dialect import Dialect
from dragoman.text_tools.ledger import Ledger
from dragoman.text_tools.lexer import NotACall, Reading, Source, finder, literal, pattern, space, until
from dragoman.text_tools.lookahead import CODE_FENCE, CODE_FENCE_START, WRAPPED, Lookahead
from dragoman.text_tools.openers import BARE_ENDS, CHANNELS, ENDINGS, MESSAGE, MESSAGE_ENDS, NOISE, OPENERS, REASONING, RESPONSES
from dragoman.text_tools.place import Place
from dragoman.text_tools.raw_calls import Block
from dragoman.text_tools.toolset import Toolset

MAX_HEADING_CHARS = 300

_MAX_TICKS = 16
_TICKS = re.compile(rf"`{{1,{_MAX_TICKS}}}")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")

Unclosed = Callable[[str, int], None]


class Machine:
    """Reads one answer from a source into a ledger. `unclosed` is told thinking that the answer ended in, and where it began."""

    def __init__(
        self,
        source: Source,
        ledger: Ledger,
        place: Place,
        *,
        tools: Toolset | None,
        dialect: Dialect | None,
        admission: Admission,
        takes_calls: bool,
        unclosed: Unclosed,
    ) -> None:
        self._source = source
        self._ledger = ledger
        self._place = place
        self._tools = tools
        self._dialect = dialect
        self._admission = admission
        self._takes_calls = takes_calls
        self._unclosed = unclosed
        self._lookahead = Lookahead(tools)
        self._find = self._lookahead.finder if takes_calls else finder(("`", *REASONING, *BARE_ENDS))
        self._reader = BlockReader(source, tools, ledger.name)
        self._has_thought = False
        self.search = self._find.search
        self.is_idle = False
        """Whether text without a marker may go by without us."""

    # --- text

    def answer(self, *, is_thinking: bool) -> Reading:
        if is_thinking:
            yield from self._thinking("", tuple(BARE_ENDS))
        if self._takes_calls:
            yield from self._first_words()
        yield from self._text()
        self._ledger.settle(accept=True)

    def _text(self) -> Reading:
        source, ledger, find = self._source, self._ledger, self._find
        while True:
            text = source.buffer
            match = find.search(text, source.position)
            start = match.start() if match else len(text)
            if start > source.position:
                ledger.text(source.skip(start))
            if match is None:
                if source.closed:
                    return
                self.is_idle = self._place.is_plain and not ledger.holds
                yield
            elif find.may_grow(match, source) and not source.closed:
                yield
            elif match.group() in find.markers:
                yield from self._at(match.group())
            elif text[start] in "{[" and not self._place.is_quoted:
                yield from self._bare()
            else:
                self._plain(1)

    def _plain(self, length: int) -> None:
        """What stands here is text."""
        self._ledger.text(self._source.skip(self._source.position + length))

    def _at(self, marker: str) -> Reading:
        """A marker stands here, and may lead elsewhere."""
        place = self._place
        if marker == "`":
            yield from self._ticks()
        elif marker in BARE_ENDS and not place.is_mentioned:
            self._thought_so_far(marker)
        elif place.is_quoted:
            self._plain(len(marker))
        elif marker in REASONING:
            yield from self._maybe_thinking(marker)
        elif marker in OPENERS:
            yield from self._block(marker)
        elif marker in CHANNELS:
            yield from self._channel(marker)
        elif marker in self._lookahead.elements:
            yield from self._elements(marker)
        elif marker == ">>>":
            yield from self._arrows()
        elif marker in NOISE or (marker in ENDINGS and place.follows_call):
            self._ledger.mark(len(marker))
        else:
            if marker in RESPONSES and place.begins_line:
                self._ledger.is_invented = True
            self._plain(len(marker))

    # --- code fences and backticks

    def _ticks(self) -> Reading:
        source, place = self._source, self._place
        while True:
            run = _TICKS.match(source.buffer, source.position)
            count = run.end() - source.position if run else 1
            if count == _MAX_TICKS or source.position + count < len(source.buffer) or source.closed:
                break
            yield
        was_blank = place.is_blank
        if place.fence:
            if was_blank and count >= place.fence:
                place.fence = 0
        elif count >= 3 and not place.is_quoted and self._takes_calls and (yield from self._call_in_fence(count)):
            return
        elif count >= 3 and was_blank:
            place.fence = count
        elif place.ticks in (0, count):
            place.ticks = count - place.ticks
        self._plain(count)

    def _call_in_fence(self, count: int) -> Generator[None, None, bool]:
        """Whether a fence begins like a call; if so, it is taken."""
        source, ledger, was_blank = self._source, self._ledger, self._place.is_blank
        match = yield from pattern(source, CODE_FENCE, CODE_FENCE_START)
        if match is None or not (match["key"] in WRAPPED or self._may_be_bare()):
            return False
        start = ledger.begin()
        source.take(match.start("value"))
        try:
            block = yield from self._reader.json(source.offset, ("```",), is_bare=True)
            yield from space(source)
            if (yield from literal(source, ("`" * count,))):
                source.take(source.position + count)
            elif not source.is_empty:
                raise NotACall("the fence has more in it")
        except NotACall as fault:
            ledger.refuse(start, fault.reason)
            self._place.fence = count
            return True
        self._conclude_bare(block, start, was_blank, is_sure=match["key"] in WRAPPED)
        return True

    # --- thinking

    def _maybe_thinking(self, marker: str) -> Reading:
        if marker.startswith("<") and not marker.startswith("<|") and not self._place.begins_line:
            self._plain(len(marker))
            return
        self._ledger.settle(accept=False)
        yield from self._thinking(marker, (REASONING[marker],))

    def _thinking(self, marker: str, ends: tuple[str, ...]) -> Reading:
        """All up to the end of thinking."""
        source, ledger = self._source, self._ledger
        ledger.mark(len(marker))
        if marker == "<|channel>thought" and (yield from literal(source, ("\n",))):
            ledger.mark(1)
        start = source.offset
        parts: list[str] = []
        end = yield from self._speech(ends, parts.append)
        self._has_thought = True
        if end:
            ledger.mark(len(end))
        elif not ledger.is_cut:
            self._unclosed("".join(parts), start)

    def _speech(self, ends: tuple[str, ...], heard: Callable[[str], None] | None) -> Generator[None, None, str]:
        """Take all up to one of the ends, as thinking where someone hears it and as text otherwise. The end is not taken."""
        source, ledger, find = self._source, self._ledger, finder(ends)
        while True:
            match = find.search(source.buffer, source.position)
            is_end = match is not None and match.group() in find.markers
            stop = match.start() if match is not None and (is_end or not source.closed) else len(source.buffer)
            if stop > source.position:
                start = source.offset
                text = source.skip(stop)
                if heard is None:
                    ledger.text(text)
                else:
                    heard(text)
                    ledger.thought(text, start)
            if match is not None and is_end:
                return match.group()
            if source.closed:
                return ""
            yield

    def _thought_so_far(self, marker: str) -> None:
        self._ledger.settle(accept=False)
        if not self._has_thought:
            self._ledger.thought_so_far()
            self._place.is_first = True
        self._has_thought = True
        self._ledger.mark(len(marker))
        self._place.begins_anew()

    # --- messages with a heading (harmony, Muse Glimmer, Functionary)

    def _first_words(self) -> Reading:
        """An answer may begin in the middle of a heading, or with a tool's name: the template had written what stands before."""
        source = self._source
        match = yield from pattern(source, *self._lookahead.start)
        if match is None:
            return
        start = self._ledger.begin()
        if match.lastgroup == "recipient":
            source.take(match.end())
            yield from self._message(start, match.group(), "<|start|>")
        else:
            source.take(match.end("tool"))
            if (yield from literal(source, ("[ARGS]",))):
                source.take(source.position + len("[ARGS]"))
            yield from self._called(start, match["tool"], (">>>",), ">>>")

    def _channel(self, marker: str) -> Reading:
        source = self._source
        self._ledger.settle(accept=False)
        start = self._ledger.begin()
        source.take(source.position + len(marker))
        try:
            heading, stop = yield from until(source, (MESSAGE, "\n"), MAX_HEADING_CHARS)
            if stop != MESSAGE:
                raise NotACall("its heading has no end")
        except NotACall:
            self._ledger.release()
            return
        source.take(source.position + len(MESSAGE))
        yield from self._message(start, marker + heading, marker)

    def _message(self, start: int, heading: str, marker: str) -> Reading:
        """The body of a message: for a tool, for the model itself, or for the person. Only the first holds calls."""
        to, channels = _RECIPIENT.search(heading), _CHANNEL.findall(heading)
        recipient = to[1] if to else ""
        if recipient and recipient not in ("self", "user", "assistant", "all"):
            found = yield from literal(self._source, ("<atem:function_calls>", "<atem:invoke"))
            if not found:
                yield from self._called(start, recipient.removeprefix("functions."), MESSAGE_ENDS, marker)
                return
            self._ledger.take_heading(start)
            yield from self._block(found)
            return
        self._ledger.take_heading(start)
        is_thought = recipient == "self" or (channels[-1:] == ["analysis"] and not recipient)
        end = yield from self._speech(MESSAGE_ENDS, (lambda _: None) if is_thought else None)
        self._has_thought = self._has_thought or is_thought
        if end and end not in CHANNELS:
            self._ledger.mark(len(end))
        self._place.begins_anew()

    def _arrows(self) -> Reading:
        """Functionary: `>>>name` and JSON on the next line, or `>>>all` and text."""
        source = self._source
        match = yield from pattern(source, *self._lookahead.arrows)
        name = match[1].removeprefix(">>>") if match else ""
        is_known = self._tools is not None and name in self._tools
        if match is None or not (self._place.begins_line or is_known):
            self._plain(3)
            return
        self._ledger.settle(accept=False)
        start = self._ledger.begin()
        source.take(match.end(1))
        if name == "all" and not is_known:
            source.take(match.end())
            self._ledger.take_heading(start)
            return
        yield from self._called(start, name, (">>>",), ">>>")

    def _called(self, start: int, name: str, stops: tuple[str, ...], marker: str) -> Reading:
        """The arguments of a tool whose name has been read."""
        source = self._source
        try:
            block = yield from self._reader.json_args(name, stops)
            yield from space(source)
            end = yield from literal(source, tuple(stop for stop in stops if stop not in CHANNELS and stop != ">>>"))
            if end:
                source.take(source.position + len(end))
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._ledger.conclude(msgspec.structs.replace(block, opener=marker), start, begins_line=True)

    # --- calls

    def _block(self, marker: str) -> Reading:
        begins_line = self._place.begins_line
        if (yield from self._reader.is_hopeless(marker)):
            self._plain(len(marker))
            return
        self._ledger.settle(accept=False)
        start = self._ledger.begin()
        try:
            block = yield from self._reader.block(marker)
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._ledger.conclude(block, start, begins_line)

    def _elements(self, marker: str) -> Reading:
        """A tag named after a tool."""
        source, name, begins_line = self._source, marker[1:-1], self._place.begins_line
        if (yield from pattern(source, *self._lookahead.elements[marker])) is None:
            self._plain(len(marker))
            return
        self._ledger.settle(accept=False)
        start = self._ledger.begin()
        try:
            block = yield from self._reader.elements(name, self._lookahead.parameters(name))
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._ledger.conclude(block, start, begins_line)

    def _bare(self) -> Reading:
        """JSON or code that may be a call though no marker says so."""
        source, begins_line = self._source, self._place.is_blank
        kind = yield from self._lookahead.bare(source)
        if not kind or (kind != "wrapped" and not self._may_be_bare()):
            self._plain(1)
            return
        start = self._ledger.begin()
        try:
            if kind == "code":
                block = yield from self._reader.code_list(start)
            else:
                block = yield from self._reader.json(start, (), is_bare=True)
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._conclude_bare(block, start, begins_line, is_sure=kind == "wrapped")

    def _may_be_bare(self) -> bool:
        """Whether a call may stand here without a marker: first, on its own line, after a sentence, or in a dialect without markers."""
        place = self._place
        if self._dialect is not None and self._dialect.layout != "wrapped":
            return self._dialect.is_bare or self._dialect.in_fence or place.is_first
        return place.is_first or place.is_blank or place.begins_sentence or self._ledger.holds

    def _conclude_bare(self, block: Block, start: int, begins_line: bool, *, is_sure: bool) -> None:
        """A call without a marker counts at once in its own dialect, or first of all with a known tool; else only if nothing follows."""
        has_wrapper = self._dialect is not None and self._dialect.layout == "wrapped"
        is_own = bool(block.calls) and not has_wrapper and self._admission.is_negotiated("", block.calls[0])
        is_first = self._place.is_first and self._tools is not None and self._dialect is None and not self._ledger.holds
        if is_sure or is_own or is_first:
            self._ledger.settle(accept=False)
            self._ledger.conclude(block, start, begins_line, is_bare=not (is_sure or is_own))
        else:
            self._ledger.hold(block, start, begins_line)
