"""Reads the calls after a marker. What follows it decides how they are written: JSON, a name and JSON, tags, or code."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from dragoman.text_tools import json_text
from dragoman.text_tools.brace_reader import read_braces
from dragoman.text_tools.code_reader import Code, UnreadableArguments, parse_arguments, read_parentheses
from dragoman.text_tools.envelope import calls_in
from dragoman.text_tools.json_reader import read_value
from dragoman.text_tools.lexer import LexerSource, NotACall, finder, has_more, match_literal, match_pattern, take_space, take_until
from dragoman.text_tools.openers import ENDINGS, M3, OPENERS, Opener
from dragoman.text_tools.pair_reader import KEYS, read_elements, read_nested, read_pairs, take_blank
from dragoman.text_tools.raw_calls import CallBlock, Form, RawCall
from dragoman.text_tools.tag_reader import TAG_MARKERS, TAGS_BY_MARKER, Tagged, read_tagged, read_text, unescape_name
from dragoman.text_tools.toolset import Toolset
from dragoman.text_tools.words import NAME, NAME_START

MAX_CALLS_IN_BLOCK = 200
MAX_NOISE_CHARS = 10_000
MAX_RAW_NAME_CHARS = 200


class BlockReader:
    """Reads calls from a source. `on_name` gets a tool's name as soon as it is known."""

    def __init__(self, source: LexerSource, tools: Toolset | None, on_name: Callable[[str], None]) -> None:
        self._source = source
        self._tools = tools
        self._on_name = on_name

    def is_hopeless(self, marker: str) -> Generator[None, None, bool]:
        """Whether no call can follow the marker, because the tag right after it is not allowed there."""
        source, opener = self._source, OPENERS[marker]
        if opener.left:
            return False
        find = finder((*_INNER, *opener.close, *opener.inner))
        while True:
            at = source.position + len(marker)
            if at < len(source.buffer):
                if source.buffer[at] != "<":
                    return False
                match = find.match(source.buffer, at)
                if match is None or match.group() in find.markers:
                    return match is None
            if source.closed:
                return False
            yield

    # --- a marker, and everything up to its end

    def read_block(self, marker: str) -> Generator[None, None, CallBlock]:
        opener, source = OPENERS[marker], self._source
        source.take(source.position + len(marker) - opener.left)
        calls: list[RawCall] = []
        faults: list[str] = []

        def read(*, is_closed: bool = True, is_cut: bool = False) -> CallBlock:
            return CallBlock(tuple(calls), is_closed, is_cut, marker, tuple(faults))

        while True:
            yield from self._take_separators()
            if not (yield from has_more(source)):
                return read(is_closed=opener.is_optional or not opener.close)
            while calls and (yield from match_literal(source, ("}", "]", M3))) in ("}", "]"):  # brackets too many
                source.take(source.position + 1)
                yield from take_space(source)
            found = yield from match_literal(source, (*opener.close, *opener.inner))
            if found in opener.close:
                source.take(source.position + len(found))
                return read()
            if not found and opener.has_noise:
                yield from take_until(source, (*opener.close, *opener.inner), MAX_NOISE_CHARS)
                continue
            if not found and calls and not (yield from self._begins_another(opener)):
                return read(is_closed=not self._breaks_off_in(opener))
            try:
                each = yield from self.read_block(found) if found else self.read_payload(opener)
            except NotACall as fault:
                if not calls and not found:
                    raise
                faults.append(fault.reason)
                if found:
                    continue
                return read()
            calls += each.calls
            faults += each.faults
            if not each.is_closed or opener.left or len(calls) > MAX_CALLS_IN_BLOCK:
                return read(is_closed=each.is_closed, is_cut=each.is_cut)

    def _breaks_off_in(self, opener: Opener) -> bool:
        """Whether the answer ends within the end marker."""
        source = self._source
        rest = source.buffer[source.position :]
        return source.closed and any(close.startswith(rest) for close in opener.close)

    def _take_separators(self) -> Generator[None, None, None]:
        """Take blanks and separators between calls."""
        source = self._source
        while True:
            yield from take_blank(source)
            if (yield from match_literal(source, (",", ";"))):
                source.take(source.position + 1)
            else:
                return

    def _begins_another(self, opener: Opener) -> Generator[None, None, bool]:
        """Whether another call begins here."""
        source = self._source
        if (yield from match_literal(source, ("{", *TAG_MARKERS, f"{M3}<invoke"))):
            return True
        if not opener.is_code:
            return False
        match = yield from match_pattern(source, _CODE, _CODE_START)
        return match is not None

    # --- between markers

    def read_payload(self, opener: Opener) -> Generator[None, None, CallBlock]:
        """Read one value, call or list of calls."""
        source = self._source
        start = source.offset
        found = yield from match_literal(source, ("{", "[", "<", "```", "call:", M3))
        match found:
            case "{":
                return (yield from self.read_json(start, opener.close, name_as_key=opener.name_as_key))
            case "[":
                if opener.is_code and (yield from self._is_code_list()):
                    return (yield from self.read_code_list(start))
                if opener.open == "<tool_call>" and (yield from self._is_code_list()):
                    return (yield from self.read_code_list(start))
                return (yield from self.read_json(start, opener.close, name_as_key=opener.name_as_key))
            case "<":
                return (yield from self._read_tagged(start, opener))
            case "```":
                return (yield from self._read_fenced(start, opener.close))
            case "call:":
                return (yield from self._read_braces(start, opener.close))
            case _ if found == M3:
                return (yield from self._read_nested(start, opener.close))
            case _:
                return (yield from self._read_named_call(start, opener))

    def read_json(
        self, start: int, stops: tuple[str, ...], *, name_as_key: bool = False, is_bare: bool = False
    ) -> Generator[None, None, CallBlock]:
        """Read a JSON value that contains calls."""
        source = self._source
        value = yield from read_value(source, stops)
        was_cut = value.is_open and source.is_empty and source.closed
        if was_cut and not value.is_settled:
            raise NotACall("it breaks off")
        found, repairs = _decode(value.text)
        calls = calls_in(found, name_as_key=name_as_key, is_bare=is_bare)
        if isinstance(calls, str):
            raise NotACall(calls)
        self._on_name(calls[0].name)
        read = [RawCall(call.name, call.args, "json", start, source.offset, repairs=(*repairs, *call.repairs)) for call in calls]
        if len(read) == 1 and not was_cut and "</tool_call>" in stops:
            read = [(yield from self._read_raw_bodies(read[0]))]
        return CallBlock(tuple(read), not was_cut, was_cut)

    def _read_raw_bodies(self, call: RawCall) -> Generator[None, None, RawCall]:
        """Read the unescaped text blocks after a call: our own dialect's way to keep long text out of JSON."""
        source, args = self._source, dict(call.args)
        while True:
            yield from take_space(source)
            if not (yield from match_literal(source, (RAW_OPEN,))):
                return call if len(args) == len(call.args) else msgspec.structs.replace(call, args=args, form="raw", end=source.offset)
            source.take(source.position + len(RAW_OPEN))
            key, stop = yield from take_until(source, ('">',), MAX_RAW_NAME_CHARS)
            if not stop:
                raise NotACall("it breaks off")
            source.take(source.position + len(stop))
            args[unescape_name(key)] = str((yield from read_text(source, RAW_CLOSE, (RAW_OPEN, "</tool_call>"), "lines")))

    def _read_fenced(self, start: int, stops: tuple[str, ...]) -> Generator[None, None, CallBlock]:
        """Read JSON in a code fence between markers."""
        source = self._source
        args = yield from self._read_fence(stops)
        calls = calls_in(args[0])
        if isinstance(calls, str):
            raise NotACall(calls)
        return CallBlock(tuple(RawCall(call.name, call.args, "json", start, source.offset, repairs=args[1]) for call in calls), True)

    def _read_fence(self, stops: tuple[str, ...]) -> Generator[None, None, tuple[Any, tuple[str, ...]]]:
        source = self._source
        source.take(source.position + 3)
        if (yield from match_literal(source, ("json",))):
            source.take(source.position + 4)
        yield from take_space(source)
        if not (yield from match_literal(source, ("{", "["))):
            raise NotACall("it is not JSON")
        value = yield from read_value(source, ("```", *stops))
        yield from take_space(source)
        if (yield from match_literal(source, ("```",))):
            source.take(source.position + 3)
        elif value.is_open:
            raise NotACall("it breaks off")
        return _decode(value.text)

    # --- a name, then its arguments

    def _read_named_call(self, start: int, opener: Opener) -> Generator[None, None, CallBlock]:
        source = self._source
        name = yield from self._read_name()
        end = opener.close or ()
        is_numbered = False
        while True:
            yield from take_blank(source)
            found = yield from match_literal(source, (*_SEPARATORS, "{", "(", "```", ":", *KEYS, *TAG_MARKERS, *end))
            if found in _SEPARATORS:
                source.take(source.position + len(found))
                match found:
                    case "[CALL_ID]":
                        yield from take_until(source, ("[ARGS]",), 100)
                    case "<|tool_call:name|>":
                        name = yield from self._read_name()
                    case "<｜tool▁sep｜>" | "<｜tool_sep｜>" if name == "function":
                        yield from take_blank(source)
                        if not (yield from match_literal(source, ("{", "<"))):
                            name = yield from self._read_name()
                    case _:
                        is_numbered = found == "<|tool_call_argument_begin|>"
                continue
            break
        name = _strip_number(name) if is_numbered else name
        if found == ":" and name == "✿FUNCTION✿":
            raise NotACall("it names no tool")
        self._on_name(name)
        match found:
            case "{":
                return (yield from self._read_json_args(start, name, end))
            case "```":
                args, repairs = yield from self._read_fence(end)
                return CallBlock((_object_call(name, args, start, source.offset, repairs),), True)
            case "(" if opener.is_code or opener.open == "<tool_call>":
                return (yield from self._read_code_call(start, name))
            case _ if found in KEYS:
                tagged = yield from read_pairs(source, name, end)
                return self._from_tags(tagged, "pairs", start)
            case _ if found in TAGS_BY_MARKER:
                return (yield from self._read_tagged(start, opener))
            case _ if found and found in end:
                return CallBlock((RawCall(name, {}, "pairs", start, source.offset),), True)
            case _:
                raise NotACall("its arguments are missing")

    def _read_name(self) -> Generator[None, None, str]:
        source = self._source
        yield from take_space(source)
        if (yield from match_literal(source, (":",))):
            source.take(source.position + 1)
            yield from take_space(source)
        match = yield from match_pattern(source, NAME, NAME_START)
        if match is None:
            raise NotACall("it names no tool")
        return source.take(match.end())

    def _read_json_args(self, start: int, name: str, stops: tuple[str, ...]) -> Generator[None, None, CallBlock]:
        source = self._source
        value = yield from read_value(source, stops)
        was_cut = value.is_open and source.is_empty and source.closed
        if was_cut and not value.is_settled:
            raise NotACall("it breaks off")
        args, repairs = _decode(value.text)
        return CallBlock((_object_call(name, args, start, source.offset, repairs),), not was_cut, was_cut)

    def read_arguments(self, name: str, stops: tuple[str, ...]) -> Generator[None, None, CallBlock]:
        """Read the arguments of a tool that was named elsewhere."""
        source = self._source
        start = source.offset
        yield from take_space(source)
        self._on_name(name)
        if (yield from match_literal(source, ("```",))):
            args, repairs = yield from self._read_fence(stops)
            return CallBlock((_object_call(name, args, start, source.offset, repairs),), True)
        if not (yield from match_literal(source, ("{",))):
            raise NotACall("its arguments are not JSON")
        return (yield from self._read_json_args(start, name, stops))

    # --- tags

    def _read_tagged(self, start: int, opener: Opener) -> Generator[None, None, CallBlock]:
        source = self._source
        marker = yield from match_literal(source, TAG_MARKERS)
        if not marker:
            raise NotACall("what follows the marker is no call")
        tagged = yield from read_tagged(source, marker, opener.close or tuple(_OUTER))
        self._on_name(tagged.name)
        return self._from_tags(tagged, _FORMS.get(TAGS_BY_MARKER[marker].call_end, "invoke"), start)

    def _read_nested(self, start: int, stops: tuple[str, ...]) -> Generator[None, None, CallBlock]:
        source = self._source
        source.take(source.position + len(M3))
        yield from take_space(source)
        if not (yield from match_literal(source, ("<invoke",))):
            raise NotACall("what follows the marker is no call")
        tagged = yield from read_nested(source, self._tools, stops)
        return self._from_tags(tagged, "nested", start)

    def read_elements(self, name: str, parameters: tuple[str, ...]) -> Generator[None, None, CallBlock]:
        """Read a call whose tag is the tool's name, with a tag for each parameter."""
        source = self._source
        start = source.offset
        source.take(source.position + len(name) + 2)
        self._on_name(name)
        tagged = yield from read_elements(source, name, parameters, f"</{name}>")
        return self._from_tags(tagged, "elements", start)

    def _from_tags(self, tagged: Tagged, form: Form, start: int) -> CallBlock:
        call = RawCall(tagged.name, tagged.args, form, start, self._source.offset, tagged.is_raw, tagged.repairs)
        return CallBlock((call,), tagged.is_closed)

    # --- code

    def _is_code_list(self) -> Generator[None, None, bool]:
        match = yield from match_pattern(self._source, _CODE_LIST, _CODE_LIST_START)
        return match is not None

    def read_code_list(self, start: int) -> Generator[None, None, CallBlock]:
        """`[name(key=value), …]`."""
        source = self._source
        source.take(source.position + 1)
        calls: list[RawCall] = []
        faults: list[str] = []
        while True:
            yield from self._take_separators()
            if (yield from match_literal(source, ("]",))):
                source.take(source.position + 1)
                if faults and not calls:
                    raise NotACall(faults[0])
                return CallBlock(tuple(calls), True, faults=tuple(faults))
            if not (yield from has_more(source)) or len(calls) > MAX_CALLS_IN_BLOCK:
                raise NotACall("it breaks off")
            at = source.offset
            name = yield from self._read_name()
            try:
                read = yield from self._read_code_call(at, name)
            except UnreadableArguments as fault:  # its neighbours may be good
                faults.append(fault.reason)
            else:
                calls += read.calls

    def _read_code_call(self, start: int, name: str) -> Generator[None, None, CallBlock]:
        source = self._source
        yield from take_space(source)
        if not (yield from match_literal(source, ("(",))):
            raise NotACall("it is no call")
        self._on_name(name)
        inside = yield from read_parentheses(source)
        code: Code = parse_arguments(inside)
        call = RawCall(name, code.args, "code", start, source.offset, repairs=code.repairs, positional=code.positional)
        return CallBlock((call,), True)

    def _read_braces(self, start: int, stops: tuple[str, ...]) -> Generator[None, None, CallBlock]:
        source = self._source
        source.take(source.position + len("call:"))
        name = yield from self._read_name()
        self._on_name(name)
        yield from take_space(source)
        if not (yield from match_literal(source, ("{",))):
            raise NotACall("its arguments are missing")
        braces = yield from read_braces(source, stops)
        was_cut = braces.is_open and source.is_empty and source.closed
        if was_cut:
            raise NotACall("it breaks off")
        return CallBlock((RawCall(name, braces.args, "braces", start, source.offset, repairs=braces.repairs),), True)


RAW_OPEN, RAW_CLOSE = '<raw name="', "</raw>"

_SEPARATORS = (
    *("<|tool_call_argument_begin|>", "<｜tool▁sep｜>", "<｜tool_sep｜>", "<tool_sep>", "<tool_sep:opensource>", "[ARGS]", "[CALL_ID]"),
    *("<|tool_call:name|>", "<|tool_call:args|>", "✿ARGS✿:", "✿ARGS✿"),
)
_INNER = (*TAG_MARKERS, *KEYS)
_OUTER = frozenset(ending for ending in ENDINGS if ending.startswith("</"))
_FORMS: dict[str, Form] = {"</function>": "function", "<|close|>call<|sep|>": "xtml"}
_CODE = re.compile(r"[^\W\d][\w.\-]{0,127}\(")
_CODE_START = re.compile(r"(?:[^\W\d][\w.\-]{0,127})?")
_CODE_LIST = re.compile(r"\[\s{0,16}[^\W\d][\w.\-]{0,127}\(")
_CODE_LIST_START = re.compile(r"\[\s{0,16}(?:[^\W\d][\w.\-]{0,127})?")
_NUMBERED = re.compile(r"(?:functions?\.)?(.+?)(?::\d+)?", re.DOTALL)


def _strip_number(name: str) -> str:
    """Kimi writes `functions.name:0`."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else name


def _decode(text: str) -> tuple[Any, tuple[str, ...]]:
    try:
        return json_text.loads(text)
    except json_text.NotReadable as error:
        raise NotACall("it is not JSON") from error


def _object_call(name: str, args: Any, start: int, end: int, repairs: tuple[str, ...]) -> RawCall:
    calls = calls_in({"name": name, "arguments": args})
    if isinstance(calls, str):
        raise NotACall(calls)
    return RawCall(calls[0].name, calls[0].args, "named", start, end, repairs=(*repairs, *calls[0].repairs))
