"""Lookahead for calls without a dialect's own marker: a few characters, so that plain text is hardly delayed."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache, lru_cache
from typing import Literal

from dragoman.text_tools.align import fold
from dragoman.text_tools.envelope import OPENING_KEYS, WRAPPER_KEYS
from dragoman.text_tools.lexer import Finder, LexerSource, trie_pattern
from dragoman.text_tools.openers import BARE_ENDS, CHANNELS, ENDINGS, NOISE, OPENERS, REASONING, RESPONSES
from dragoman.text_tools.tag_reader import element_tags
from dragoman.text_tools.toolset import Toolset

Patterns = tuple[re.Pattern[str], re.Pattern[str]]
"""A pattern, and one for everything that may still become a match."""

WINDOW = 160
WRAPPED = frozenset(WRAPPER_KEYS) - {"function"}

_KEYS = "|".join(sorted(OPENING_KEYS, key=len, reverse=True))
_VALUE = rf"""\[?\s{{0,16}}\{{\s{{0,16}}["'](?P<key>{_KEYS})["']\s{{0,8}}:"""
_KEY_NEXT = rf"""\s{{0,16}}(?:["'](?:(?:{_KEYS})(?:["']\s{{0,8}}(?::|\Z)|\Z)|\w{{0,16}}\Z)|\Z)"""
_OBJECT_NEXT = rf"\{{{_KEY_NEXT}"
_LIST_NEXT = rf"\[\s{{0,16}}(?:\{{{_KEY_NEXT}|[^\W\d][\w.\-]{{0,63}}(?:\(|\Z)|\Z)"
_VALUE_START = r"""(?:\[?\s{0,16}(?:\{\s{0,16}(?:["'](?P<key>\w{0,16})(?:["']\s{0,8})?)?)?)?"""
_FENCE = r"`{3,16}(?!`)[ \t]{0,8}(?:(?:json\w?|JSON|tool_calls?|tool|javascript|js)\b)?[ \t]{0,8}\r?\n?\s{0,32}"
_FENCE_START = r"`{3,16}[ \t]{0,8}\w{0,12}[ \t]{0,8}\r?\n?\s{0,32}"

_ELEMENT_NEXT = r"<[^\W\d][\w.\-]{0,127}(?:>|\Z)"
BESIDE = (_OBJECT_NEXT, _LIST_NEXT, _ELEMENT_NEXT)
"""Patterns of what begins, or may still begin, a call without a marker. They name no tool, so one finder serves every set of tools."""

CODE_FENCE = re.compile(rf"{_FENCE}(?P<value>{_VALUE})")
CODE_FENCE_START = re.compile(rf"{_FENCE_START}{_VALUE_START}")
FENCE_HEAD = re.compile(r"`{3,16}(?!`)[ \t]{0,8}(?:(?:[\w+#.\-]{1,20}[ \t]{0,8})?\r?\n)?")
FENCE_HEAD_START = re.compile(r"`{3,16}[ \t]{0,8}(?:[\w+#.\-]{1,20}[ \t]{0,8})?\r?")
"""A code fence of any kind, with its line."""
_BARE, _BARE_START = re.compile(_VALUE), re.compile(_VALUE_START)
_CODE = re.compile(r"\[\s{0,16}(?P<name>[^\W\d][\w.\-]{0,63})\(")
_CODE_START = re.compile(r"\[\s{0,16}(?P<name>(?:[^\W\d][\w.\-]{0,63})?)")

_ARROWS = re.compile(r"(>>>(?:all(?=\n)|[\w.\-]{1,128}(?=\n\s{0,8}\{)))\n?")
_ARROWS_START = re.compile(r">>>[\w.\-]{0,128}(?:\n\s{0,8})?")
_TOOL = r"(?P<tool>[\w.\-]{1,128})(?:\n\s{0,8}(?=\{)|(?=\[ARGS\]))"
_TOOL_START = r"(?P<tool>[\w.\-]{1,128})(?:\n\s{0,8}|\[[ARGS]{0,4})?"
_CONSTRAINED = r"(?:\s{0,4}<\|constrain\|>\w{1,20})?"
_CHANNEL = r"(?:analysis|commentary|final)(?:\s{1,4}to=[^\s<]{1,120})?"
_RECIPIENT = rf"(?P<recipient>(?:{_CHANNEL}|to=[^\s<]{{1,120}}\s{{0,4}}(?:<\|channel\|>\w{{1,20}})?){_CONSTRAINED}<\|message\|>)"
_TOKEN_START = r"(?:<\|?[a-z]{0,9}\|?(?:>\w{0,20}\s{0,4}(?:<\|?[a-z]{0,9}\|?(?:>\w{0,20}(?:<\|?[a-z]{0,9}\|?)?)?)?)?)?"
_CHANNEL_START = trie_pattern(("analysis", "commentary", "final"))
_RECIPIENT_START = (
    rf"(?:t|to|(?:{_CHANNEL_START})(?:\s{{1,4}}(?:t|to)?)?|(?:{_CHANNEL}\s{{0,4}}|to=[^\s<]{{0,120}}\s{{0,4}}){_TOKEN_START})"
)


_HEADING, _HEADING_START = re.compile(rf"\s{{0,8}}{_RECIPIENT}"), re.compile(rf"\s{{0,8}}(?:{_RECIPIENT_START})?")
_NAMED, _NAMED_START = re.compile(_TOOL), re.compile(_TOOL_START)


class Lookahead:
    """Lookahead for one set of tools. Nothing is compiled for the set as a whole: a conversation may change its tools at any time."""

    def __init__(self, tools: Toolset | None) -> None:
        self._tools = tools
        self._folded = tuple(fold(name) for name in tools.names) if tools is not None else None
        names = tools.names if tools is not None else ()
        self.elements = frozenset(tag for name in names if (tag := f"<{name}>") not in FIXED)
        """Tags that are a tool's name."""
        self.finder = _finder()
        self.arrows: Patterns = (_ARROWS, _ARROWS_START)

    def element(self, tag: str) -> Patterns:
        """A tool's tag followed directly by a parameter's tag or its own end tag."""
        return _element_patterns(tag[1:-1], self.parameters(tag[1:-1]))

    def may_be_element(self, beginning: str) -> bool:
        return any(tag.startswith(beginning) for tag in self.elements)

    def heading(self, source: LexerSource) -> Generator[None, None, re.Match[str] | None]:
        """What an answer begins with if the chat template wrote the part before it: the rest of a heading, or a tool's name."""
        names = self._tools.names if self._tools is not None else ()
        while True:
            rest = source.buffer[source.position : source.position + WINDOW]
            named = _NAMED.match(rest)
            if found := _HEADING.match(rest) or (named if named and named["tool"] in names else None):
                return found
            if source.closed or len(rest) == WINDOW:
                return None
            named = _NAMED_START.fullmatch(rest)
            may_be_named = named is not None and any(name.startswith(named["tool"]) for name in names)
            if not may_be_named and not _HEADING_START.fullmatch(rest):
                return None
            yield

    def parameters(self, name: str) -> tuple[str, ...]:
        schema = self._tools.schema(name) if self._tools is not None else None
        properties = (schema or {}).get("properties")
        return tuple(map(str, properties)) if isinstance(properties, dict) else ()

    def bare_kind(self, source: LexerSource) -> Generator[None, None, Literal["", "wrapped", "json", "code"]]:
        """The kind of call that may begin at this bracket."""
        while True:
            rest = source.buffer[source.position : source.position + WINDOW]
            if value := _BARE.match(rest):
                return "wrapped" if value["key"] in WRAPPED else "json"
            if code := _CODE.match(rest):
                return "code" if self._may_name(code["name"]) else ""
            if source.closed or len(rest) == WINDOW:
                return ""
            value = _BARE_START.fullmatch(rest)
            if not (value and _may_be_key(value["key"] or "")) and not _CODE_START.fullmatch(rest):
                return ""
            yield

    def _may_name(self, written: str) -> bool:
        """Whether it ends with a tool's name: a module may precede it, so only the complete name decides."""
        return self._folded is None or fold(written).endswith(self._folded)


def _may_be_key(beginning: str) -> bool:
    return any(key.startswith(beginning) for key in OPENING_KEYS)


FIXED: frozenset[str] = frozenset((*OPENERS, *REASONING, *BARE_ENDS, *CHANNELS, *NOISE, *ENDINGS, *RESPONSES, "`", ">>>"))


@cache
def _finder() -> Finder:
    return Finder(FIXED, BESIDE)


@lru_cache(maxsize=256)
def _element_patterns(name: str, parameters: tuple[str, ...]) -> Patterns:
    """A tool's tag followed directly by a parameter's tag or its own end tag."""
    tag = re.escape(name)
    inner = (f"</{name}>", *element_tags(parameters))
    longest = max(map(len, inner)) - len("<>")
    whole = "|".join(map(re.escape, inner))
    return re.compile(rf"<{tag}>\s{{0,32}}(?:{whole})"), re.compile(rf"<{tag}>\s{{0,32}}(?:<[^<>]{{0,{longest}}})?")
