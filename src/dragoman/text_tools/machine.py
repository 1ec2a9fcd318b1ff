"""The state machine of the parser: an answer is text, thinking or a call, and markers switch between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

import msgspec

from dragoman.text_tools.admission import Admission
from dragoman.text_tools.blocks import BlockReader
from dragoman.text_tools.dialect import Dialect
from dragoman.text_tools.ledger import CallLedger
from dragoman.text_tools.lexer import LexerSource, NotACall, Reading, finder, match_literal, match_pattern, take_space, take_until
from dragoman.text_tools.lookahead import CODE_FENCE, CODE_FENCE_START, FENCE_HEAD, FENCE_HEAD_START, WRAPPED, Lookahead
from dragoman.text_tools.openers import BARE_ENDS, CHANNELS, ENDINGS, MESSAGE, MESSAGE_ENDS, NOISE, OPENERS, REASONING, RESPONSES
from dragoman.text_tools.place import Place
from dragoman.text_tools.plain_calls import END_OF_CALLS, PlainReader
from dragoman.text_tools.raw_calls import CallBlock
from dragoman.text_tools.toolset import Toolset

MAX_HEADING_CHARS = 300

_MAX_TICKS = 16
_TICKS = re.compile(rf"`{{1,{_MAX_TICKS}}}")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")

Unclosed = Callable[[str, int], None]


class Machine:
    """Reads one answer from a source into a ledger. `unclosed` gets the thinking that was still open at the end, and where it began."""

    def __init__(
        self,
        source: LexerSource,
        ledger: CallLedger,
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
        self._reader = BlockReader(source, tools, ledger.set_name)
        self._plain = PlainReader(source, tools, ledger.set_name) if tools is not None and takes_calls else None
        self._may_be_plain = takes_calls
        """Whether the answer may begin here with calls that nothing marks."""
        self._has_thought = False
        self.search = self._find.search
        self.is_idle = False
        """Whether text without a marker may bypass the machine."""

    # --- text

    def read_answer(self, *, is_thinking: bool) -> Reading:
        if is_thinking:
            yield from self._read_thinking("", tuple(BARE_ENDS))
        if self._takes_calls:
            yield from self._read_beginning()
        yield from self._read_text()
        self._ledger.settle_held(accept=True)

    def _read_text(self) -> Reading:
        source, ledger, find = self._source, self._ledger, self._find
        while True:
            if self._may_be_plain:
                self._may_be_plain = False
                yield from self._read_plain()
            text = source.buffer
            match = find.search(text, source.position)
            start = match.start() if match else len(text)
            if start > source.position:
                ledger.add_text(source.skip(start))
            if match is None:
                if source.closed:
                    return
                self.is_idle = self._place.is_plain and not ledger.has_held
                yield
            elif find.may_grow(match, source) and not source.closed:
                yield
            elif match.group() in find.markers:
                yield from self._read_marker(match.group())
            elif text[start] == "<":
                yield from self._read_tag(match)
            elif text[start] in "{[" and not self._place.is_quoted:
                yield from self._read_bare()
            else:
                self._take_text(1)

    def _take_text(self, length: int) -> None:
        """Take the next characters as text."""
        self._ledger.add_text(self._source.skip(self._source.position + length))

    def _read_marker(self, marker: str) -> Reading:
        """Handle the marker at this position."""
        place = self._place
        if marker == "`":
            yield from self._read_ticks()
        elif marker in BARE_ENDS and not place.is_mentioned:
            self._end_untagged_thinking(marker)
        elif place.is_quoted:
            self._take_text(len(marker))
        elif marker in REASONING:
            yield from self._read_thinking_tag(marker)
        elif marker in OPENERS:
            yield from self._read_block(marker)
        elif marker in CHANNELS:
            yield from self._read_channel(marker)
        elif marker == ">>>":
            yield from self._read_arrows()
        elif marker in NOISE or (marker in ENDINGS and place.follows_call):
            self._ledger.skip_marker(len(marker))
            self._may_be_plain = place.is_first
        else:
            if marker in RESPONSES and place.begins_line:
                self._ledger.has_invented_result = True
            self._take_text(len(marker))

    # --- code fences and backticks

    def _read_ticks(self) -> Reading:
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
        elif count >= 3 and not place.is_quoted and self._takes_calls and (yield from self._read_fenced_call(count)):
            return
        elif count >= 3 and was_blank:
            place.fence = count
        elif place.ticks in (0, count):
            place.ticks = count - place.ticks
        self._take_text(count)

    def _read_fenced_call(self, count: int) -> Generator[None, None, bool]:
        """Read the fence if it begins like a call; returns whether it did."""
        source, ledger, was_blank = self._source, self._ledger, self._place.is_blank
        match = yield from match_pattern(source, CODE_FENCE, CODE_FENCE_START)
        if match is None or not (match["key"] in WRAPPED or self._may_be_bare()):
            return (yield from self._read_plain_fence(count))
        start = ledger.begin()
        source.take(match.start("value"))
        try:
            block = yield from self._reader.read_json(source.offset, ("```",), is_bare=True)
            yield from take_space(source)
            if (yield from match_literal(source, ("`" * count,))):
                source.take(source.position + count)
            elif not source.is_empty:
                raise NotACall("the fence has more in it")
        except NotACall as fault:
            ledger.refuse(start, fault.reason)
            self._place.fence = count
            return True
        self._conclude_bare(block, start, was_blank, is_sure=match["key"] in WRAPPED)
        return True

    def _read_plain_fence(self, count: int) -> Generator[None, None, bool]:
        """Read calls that nothing marks, if the fence begins like one; returns whether it did. They count if the fence is first or last."""
        source, ledger, place = self._source, self._ledger, self._place
        if self._plain is None or not place.is_blank or ledger.has_held:
            return False
        head = yield from match_pattern(source, FENCE_HEAD, FENCE_HEAD_START)
        size = head.end() - source.position if head else 0
        if not size or not (yield from self._plain.begins(size)):
            return False
        start, follows_text, fence = ledger.begin(), not place.is_first, "`" * count
        source.take(source.position + size)
        try:
            block = yield from self._plain.read(fence)
            if not source.is_empty:
                source.take(source.position + count)
        except NotACall as fault:
            ledger.refuse(start, fault.reason)
            place.fence = count
            return True
        is_code = all(call.form == "code" for call in block.calls)  # coding models explain their calls afterwards
        may_precede = is_code and not follows_text and self._dialect is None
        ledger.hold(block, start, begins_line=True, beside_text=follows_text, may_precede=may_precede)
        return True

    # --- thinking

    def _read_thinking_tag(self, marker: str) -> Reading:
        if marker.startswith("<") and not marker.startswith("<|") and not self._place.begins_line:
            self._take_text(len(marker))
            return
        self._ledger.settle_held(accept=False)
        yield from self._read_thinking(marker, (REASONING[marker],))

    def _read_thinking(self, marker: str, ends: tuple[str, ...]) -> Reading:
        """Read up to the end of thinking."""
        source, ledger = self._source, self._ledger
        ledger.skip_marker(len(marker))
        if marker == "<|channel>thought" and (yield from match_literal(source, ("\n",))):
            ledger.skip_marker(1)
        start = source.offset
        parts: list[str] = []
        end = yield from self._read_speech(ends, parts.append)
        self._has_thought = True
        self._may_be_plain = self._place.is_first
        if end:
            ledger.skip_marker(len(end))
        elif not ledger.is_cut:
            self._unclosed("".join(parts), start)

    def _read_speech(self, ends: tuple[str, ...], heard: Callable[[str], None] | None) -> Generator[None, None, str]:
        """Take everything up to one of the ends: as thinking if `heard` is given, else as text. The end is not taken."""
        source, ledger, find = self._source, self._ledger, finder(ends)
        while True:
            match = find.search(source.buffer, source.position)
            is_end = match is not None and match.group() in find.markers
            stop = match.start() if match is not None and (is_end or not source.closed) else len(source.buffer)
            if stop > source.position:
                start = source.offset
                text = source.skip(stop)
                if heard is None:
                    ledger.add_text(text)
                else:
                    heard(text)
                    ledger.add_thought(text, start)
            if match is not None and is_end:
                return match.group()
            if source.closed:
                return ""
            yield

    def _end_untagged_thinking(self, marker: str) -> None:
        self._ledger.settle_held(accept=False)
        if not self._has_thought:
            self._ledger.turn_into_thinking()
            self._place.is_first = True
        self._has_thought = True
        self._ledger.skip_marker(len(marker))
        self._place.restart()

    # --- messages with a heading (harmony, Muse Glimmer, Functionary)

    def _read_beginning(self) -> Reading:
        """An answer may begin in the middle of a heading, or with a tool's name, if the chat template wrote the part before it."""
        source = self._source
        match = yield from self._lookahead.heading(source)
        if match is None:
            return
        start = self._ledger.begin()
        if match.lastgroup == "recipient":
            source.take(source.position + match.end())
            yield from self._read_message(start, f"<|channel|>{match.group().strip()}", "<|start|>")
        else:
            source.take(source.position + match.end("tool"))
            if (yield from match_literal(source, ("[ARGS]",))):
                source.take(source.position + len("[ARGS]"))
            yield from self._read_arguments(start, match["tool"], (">>>",), ">>>")

    def _read_channel(self, marker: str) -> Reading:
        source = self._source
        self._ledger.settle_held(accept=False)
        start = self._ledger.begin()
        source.take(source.position + len(marker))
        try:
            heading, stop = yield from take_until(source, (MESSAGE, "\n"), MAX_HEADING_CHARS)
            if stop != MESSAGE:
                raise NotACall("its heading has no end")
        except NotACall:
            self._ledger.release()
            return
        source.take(source.position + len(MESSAGE))
        yield from self._read_message(start, marker + heading, marker)

    def _read_message(self, start: int, heading: str, marker: str) -> Reading:
        """Read the body of a message: for a tool, for the model itself, or for the user. Only the first contains calls."""
        to, channels = _RECIPIENT.search(heading), _CHANNEL.findall(heading)
        recipient = to[1] if to else ""
        if recipient and recipient not in ("self", "user", "assistant", "all"):
            found = yield from match_literal(self._source, ("<atem:function_calls>", "<atem:invoke"))
            if not found:
                yield from self._read_arguments(start, recipient.removeprefix("functions."), MESSAGE_ENDS, marker)
                return
            self._ledger.take_heading(start)
            yield from self._read_block(found)
            return
        self._ledger.take_heading(start)
        is_thought = recipient == "self" or (channels[-1:] == ["analysis"] and not recipient)
        end = yield from self._read_speech(MESSAGE_ENDS, (lambda _: None) if is_thought else None)
        self._has_thought = self._has_thought or is_thought
        if end and end not in CHANNELS:
            self._ledger.skip_marker(len(end))
        self._place.restart()

    def _read_arrows(self) -> Reading:
        """Functionary: `>>>name` and JSON on the next line, or `>>>all` and text."""
        source = self._source
        match = yield from match_pattern(source, *self._lookahead.arrows)
        name = match[1].removeprefix(">>>") if match else ""
        is_known = self._tools is not None and name in self._tools
        if match is None or not (self._place.begins_line or is_known):
            self._take_text(3)
            return
        self._ledger.settle_held(accept=False)
        start = self._ledger.begin()
        source.take(match.end(1))
        if name == "all" and not is_known:
            source.take(match.end())
            self._ledger.take_heading(start)
            return
        yield from self._read_arguments(start, name, (">>>",), ">>>")

    def _read_arguments(self, start: int, name: str, stops: tuple[str, ...], marker: str) -> Reading:
        """Read the arguments of a tool whose name has been read."""
        source = self._source
        try:
            block = yield from self._reader.read_arguments(name, stops)
            yield from take_space(source)
            end = yield from match_literal(source, tuple(stop for stop in stops if stop not in CHANNELS and stop != ">>>"))
            if end:
                source.take(source.position + len(end))
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._ledger.conclude(msgspec.structs.replace(block, opener=marker), start, begins_line=True)

    # --- calls that nothing marks

    def _read_plain(self) -> Reading:
        """Read calls that are the whole answer, if it begins like one."""
        if self._plain is None or not self._place.is_first or self._ledger.has_held:
            return
        if size := (yield from self._plain.stray_heading()):
            self._ledger.skip_marker(size)
        if not (yield from self._plain.begins()):
            return
        start = self._ledger.begin()
        try:
            block = yield from self._plain.read(END_OF_CALLS)
            is_ended = not self._source.is_empty
            if is_ended:
                self._source.take(self._source.position + len(END_OF_CALLS))
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        if is_ended:  # what follows explains them
            self._ledger.conclude(block, start, begins_line=True, is_bare=True)
        else:
            self._ledger.hold(block, start, begins_line=True)

    # --- calls

    def _read_block(self, marker: str) -> Reading:
        begins_line = self._place.begins_line
        if (yield from self._reader.is_hopeless(marker)):
            self._take_text(len(marker))
            return
        self._ledger.settle_held(accept=False)
        start = self._ledger.begin()
        try:
            block = yield from self._reader.read_block(marker)
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._ledger.conclude(block, start, begins_line)

    def _read_tag(self, match: re.Match[str]) -> Reading:
        """Read a tag that may be a tool's name."""
        tag = match.group()
        if tag in self._lookahead.elements and not self._place.is_quoted:
            yield from self._read_elements(tag)
        elif match.end() == len(self._source.buffer) and not self._source.closed and self._lookahead.may_be_element(tag):
            yield
        else:
            self._take_text(1)

    def _read_elements(self, marker: str) -> Reading:
        """Read a call whose tag is the tool's name."""
        source, name, begins_line = self._source, marker[1:-1], self._place.begins_line
        if (yield from match_pattern(source, *self._lookahead.element(marker))) is None:
            self._take_text(len(marker))
            return
        self._ledger.settle_held(accept=False)
        start = self._ledger.begin()
        try:
            block = yield from self._reader.read_elements(name, self._lookahead.parameters(name))
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._ledger.conclude(block, start, begins_line)

    def _read_bare(self) -> Reading:
        """Read JSON or code that may be a call without a marker."""
        source, begins_line = self._source, self._place.is_blank
        kind = yield from self._lookahead.bare_kind(source)
        if not kind or (kind != "wrapped" and not self._may_be_bare()):
            self._take_text(1)
            return
        start = self._ledger.begin()
        try:
            if kind == "code":
                block = yield from self._reader.read_code_list(start)
            else:
                block = yield from self._reader.read_json(start, (), is_bare=True)
        except NotACall as fault:
            self._ledger.refuse(start, fault.reason)
            return
        self._conclude_bare(block, start, begins_line, is_sure=kind == "wrapped")

    def _may_be_bare(self) -> bool:
        """Whether a call without a marker may begin here: first, on its own line, after a sentence, or in a dialect without markers."""
        place = self._place
        if self._dialect is not None and self._dialect.layout != "wrapped":
            return self._dialect.is_bare or self._dialect.in_fence or place.is_first
        return place.is_first or place.is_blank or place.begins_sentence or self._ledger.has_held

    def _conclude_bare(self, block: CallBlock, start: int, begins_line: bool, *, is_sure: bool) -> None:
        """Accept a call without a marker if it is in the named dialect or first with a known tool; hold others until nothing follows."""
        has_wrapper = self._dialect is not None and self._dialect.layout == "wrapped"
        is_own = bool(block.calls) and not has_wrapper and self._admission.is_negotiated("", block.calls[0])
        is_first = self._place.is_first and self._tools is not None and self._dialect is None and not self._ledger.has_held
        if is_sure or is_own or is_first:
            self._ledger.settle_held(accept=False)
            self._ledger.conclude(block, start, begins_line, is_bare=not (is_sure or is_own))
        else:
            self._ledger.hold(block, start, begins_line)
