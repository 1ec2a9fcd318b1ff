"""Calls as models write them that were taught no dialect: `name(key=value)` bare, quoted, numbered, in a list, in a code fence of any kind,
with escaped underscores; or an object whose keys are tools' names.

Nothing marks them, so they count only where a whole answer, or a whole fence, holds nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

from dragoman.text_tools import json_text
from dragoman.text_tools.align import fold
from dragoman.text_tools.code_reader import UnreadableArguments, parse_arguments, read_parentheses
from dragoman.text_tools.envelope import OPENING_KEYS, calls_in
from dragoman.text_tools.json_reader import read_value
from dragoman.text_tools.lexer import LexerSource, NotACall, has_more, match_literal, match_pattern, trie_pattern
from dragoman.text_tools.raw_calls import CallBlock, RawCall
from dragoman.text_tools.toolset import Toolset

ESCAPED = "escaped underscores"
QUOTED = "a call in quotes"
TEXT_BESIDE = "text stands beside it"
END_OF_CALLS = "<bot_end>"
"""Raven ends its calls with it, and explains them afterwards."""
MAX_CALLS_IN_REGION = 200
WINDOW = 256

# Bounded, so that what may still become a call is never longer than a window.
_NAME = r"[^\W\d](?:\\?[\w.\-]){0,127}"
LEADS = ("Call", "Action", "Function call", "Function", "Tool call", "Answer", "Output", "Assistant")
"""What some models write before their calls, with a colon."""
_LEAD = rf"(?:(?:{'|'.join(LEADS)}):)"
_DECORATION = r"""(?:[\s"'“”‘’\[;,|]|[\-*•·+]|`{1,2}(?!`)|\(?\d{1,3}[.):](?=\s))"""
_TOKEN = r"<\|\w{1,24}\|>(?:assistant)?|</s>"
_TOKEN_NEXT = rf"</?s?|<\|\w{{0,24}}\|?|<\|\w{{1,24}}\|>(?:{trie_pattern(['assistant'])})"
_AROUND = (
    rf"""(?:{_TOKEN}|[\s"'“”‘’\[\]();,|.]|[\-*•·+]|`{{1,2}}(?!`)|\d{{1,3}}[.):](?=\s)|#[^\n]{{0,300}}(?:\n|\Z)|//[^\n]{{0,300}}(?:\n|\Z))"""
)
_BEFORE = rf"{_DECORATION}{{0,32}}(?:{_LEAD}{_DECORATION}{{0,8}})?"
_OPENING = re.compile(rf"""(?P<before>{_BEFORE})(?:(?P<name>{_NAME})\s{{0,2}}\(|\{{\s{{0,16}}["'](?P<key>{_NAME})["']\s{{0,4}}:)""")
_WORD_NEXT = rf"(?:{_NAME})?\\?\s{{0,2}}"
_KEY_NEXT = rf"""\{{\s{{0,16}}(?:["'](?:{_NAME})?\\?(?:["']\s{{0,4}})?)?"""
_NEXT = rf"(?:\(?\d{{0,3}}[.):]?|`{{1,3}}|{_WORD_NEXT}|{_KEY_NEXT})"
_LEAD_NEXT = rf"(?:{trie_pattern([f'{lead}:' for lead in LEADS])})(?:{_DECORATION}{{0,8}}{_NEXT})?"
_OPENING_START = re.compile(rf"{_DECORATION}{{0,32}}(?:{_NEXT}|{_LEAD_NEXT})")
_CALL = re.compile(rf"(?P<name>{_NAME})\s{{0,2}}(?=\()")
_CALL_START = re.compile(rf"(?:{_NAME})?\\?\s{{0,2}}")
_QUOTES = frozenset("\"'")


class PlainReader:
    """Reads calls without markers. `on_name` gets a tool's name as soon as it is known."""

    def __init__(self, source: LexerSource, tools: Toolset, on_name: Callable[[str], None]) -> None:
        self._source = source
        self._names = {fold(name): name for name in tools.names}
        self._endings = tuple(self._names)
        self._on_name = on_name

    def begins(self, at: int = 0) -> Generator[None, None, bool]:
        """Whether a call to a known tool begins `at` characters ahead, behind nothing but decoration."""
        source = self._source
        while True:
            rest = source.buffer[source.position + at : source.position + at + WINDOW]
            if match := _OPENING.match(rest):
                return self._is_opening(match, in_fence=at > 0)
            if source.closed or len(rest) == WINDOW:
                return False
            if _OPENING_START.fullmatch(rest) is None:
                return False
            yield

    def _is_opening(self, match: re.Match[str], *, in_fence: bool) -> bool:
        name, key = match["name"], match["key"]
        if name and not in_fence and match["before"].strip() == "[" and "\\" not in name:
            return False  # a list: it has a reader of its own
        if name:
            return self._may_name(name)
        return self._is_key(key) or (in_fence and key in OPENING_KEYS)

    def read(self, stop: str = "") -> Generator[None, None, CallBlock]:
        """Read calls up to the end of the answer, or up to the stop, which is not taken. Raises NotACall if anything else stands there."""
        source = self._source
        calls: list[RawCall] = []
        faults: list[str] = []
        while True:
            quote = yield from self._take_decoration(is_first=not calls and not faults)
            if not (yield from has_more(source)) or (stop and (yield from match_literal(source, (stop,)))):
                break
            if len(calls) > MAX_CALLS_IN_REGION:
                raise NotACall("it holds too many calls")
            try:
                calls += yield from self._read_item(quote)
            except UnreadableArguments as fault:
                faults.append(fault.reason)
        if not calls:
            raise NotACall(faults[0] if faults else "it holds no call")
        return CallBlock(tuple(calls), True, faults=tuple(faults))

    def stray_heading(self) -> Generator[None, None, int]:
        """The length of the rest of a heading that a chat template left at the beginning of the answer."""
        match = yield from match_pattern(self._source, _HEADING, _HEADING_START)
        return match.end() - match.start() if match else 0

    # --- what stands around calls

    def _take_decoration(self, *, is_first: bool) -> Generator[None, None, str]:
        """Take separators, bullets, numbers, quotes and comments. Returns the quote right before what follows, or ""."""
        source = self._source
        last = ""
        if is_first and (match := _FIRST.match(source.buffer, source.position)):  # it is all here: `begins` has seen it
            last = source.take(match.end()).rstrip(" \t")[-1:]
        while True:
            match = yield from match_pattern(source, _BETWEEN, _BETWEEN_START)
            if match is None or match.end() == source.position:
                return last if last in _QUOTES else ""
            last = source.take(match.end()).rstrip(" \t")[-1:]

    # --- one call

    def _read_item(self, quote: str) -> Generator[None, None, list[RawCall]]:
        source = self._source
        start = source.offset
        if (yield from match_literal(source, ("{",))):
            return (yield from self._read_object(start))
        match = yield from match_pattern(source, _CALL, _CALL_START)
        if match is None or not self._may_name(match["name"]):
            raise NotACall(TEXT_BESIDE)
        written = source.take(match.end("name"))
        name = written.replace("\\", "")
        self._on_name(name)
        source.take(source.position + match.end() - match.end("name"))
        inside = yield from read_parentheses(source, is_escaped=bool(quote))
        repairs = [*((ESCAPED,) if "\\_" in written or "\\_" in inside else ()), *((QUOTED,) if quote else ())]
        inside = inside.replace("\\_", "_")
        if quote:
            inside = inside.replace(f"\\{quote}", quote)
        code = parse_arguments(inside)
        return [RawCall(name, code.args, "code", start, source.offset, repairs=(*repairs, *code.repairs), positional=code.positional)]

    def _read_object(self, start: int) -> Generator[None, None, list[RawCall]]:
        source = self._source
        value = yield from read_value(source, ("```",))
        if value.is_open and not value.is_settled:
            raise NotACall("it breaks off")
        text = value.text.replace("\\_", "_")
        try:
            found, repairs = json_text.loads(text)
        except json_text.NotReadable as fault:
            raise UnreadableArguments("it is not JSON") from fault
        calls = calls_in(found, is_bare=True, is_tool=self._is_key)
        if isinstance(calls, str):
            raise NotACall(calls)
        repairs = (*((ESCAPED,) if text != value.text else ()), *repairs)
        return [RawCall(each.name, each.args, "json", start, source.offset, repairs=(*repairs, *each.repairs)) for each in calls]

    # --- names

    def _may_name(self, written: str) -> bool:
        """Whether it ends with a tool's name: a module may precede it."""
        return fold(written.replace("\\", "")).endswith(self._endings)

    def _is_key(self, written: str) -> bool:
        return fold(written.replace("\\", "")) in self._names


_FIRST = re.compile(_BEFORE)
_HEADING = re.compile(r"\s{0,4}assistant<\|end_header_id\|>")
_HEADING_START = re.compile(rf"\s{{0,4}}(?:{trie_pattern(['assistant<|end_header_id|>'])})?")
_BETWEEN = re.compile(rf"{_AROUND}{{0,64}}")
_BETWEEN_START = re.compile(rf"{_AROUND}{{0,64}}(?:\(?\d{{0,3}}[.):]?|`{{1,3}}|{_TOKEN_NEXT}|/|#[^\n]{{0,300}}|//[^\n]{{0,300}})")
