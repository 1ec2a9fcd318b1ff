"""Lookahead for calls without a dialect's own marker: a few characters, so that plain text is hardly delayed."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import lru_cache
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

BESIDE = (_OBJECT_NEXT, _LIST_NEXT)
"""Patterns of what begins, or may still begin, a call without a marker."""

CODE_FENCE = re.compile(rf"{_FENCE}(?P<value>{_VALUE})")
CODE_FENCE_START = re.compile(rf"{_FENCE_START}{_VALUE_START}")
_BARE, _BARE_START = re.compile(_VALUE), re.compile(_VALUE_START)
_CODE = re.compile(r"\[\s{0,16}(?P<name>[^\W\d][\w.\-]{0,63})\(")
_CODE_START = re.compile(r"\[\s{0,16}(?P<name>(?:[^\W\d][\w.\-]{0,63})?)")

_ARROWS = re.compile(r"(>>>(?:all(?=\n)|[\w.\-]{1,128}(?=\n\s{0,8}\{)))\n?")
_ARROWS_START = re.compile(r">>>[\w.\-]{0,128}(?:\n\s{0,8})?")
_RECIPIENT = r"(?P<recipient>to=[^\s<]{1,120}\s{0,4}(?:<\|channel\|>\w{1,20})?<\|message\|>)"
_RECIPIENT_START = r"t|to|to=[^\s<]{0,120}\s{0,4}(?:<\|?[a-z]{0,8}\|?(?:>\w{0,20})?(?:<\|?[a-z]{0,8}\|?)?)?"


class Lookahead:
    """Lookahead for one set of tools."""

    def __init__(self, tools: Toolset | None) -> None:
        self._tools = tools
        self._folded = tuple(fold(name) for name in tools.names) if tools is not None else None
        names = tools.names if tools is not None else ()
        self.elements: dict[str, Patterns] = {
            f"<{name}>": _element_patterns(name, self.parameters(name)) for name in names if f"<{name}>" not in FIXED
        }
        self.finder = _finder(tuple(self.elements))
        self.start: Patterns = _start_patterns(names)
        self.arrows: Patterns = (_ARROWS, _ARROWS_START)

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


@lru_cache(maxsize=32)
def _finder(elements: tuple[str, ...]) -> Finder:
    return Finder((*FIXED, *elements), BESIDE)


@lru_cache(maxsize=256)
def _element_patterns(name: str, parameters: tuple[str, ...]) -> Patterns:
    """A tool's tag followed directly by a parameter's tag or its own end tag."""
    tag = re.escape(name)
    inner = (f"</{name}>", *element_tags(parameters))
    longest = max(map(len, inner)) - len("<>")
    whole = "|".join(map(re.escape, inner))
    return re.compile(rf"<{tag}>\s{{0,32}}(?:{whole})"), re.compile(rf"<{tag}>\s{{0,32}}(?:<[^<>]{{0,{longest}}})?")


@lru_cache(maxsize=32)
def _start_patterns(names: tuple[str, ...]) -> Patterns:
    if not names:
        return re.compile(rf"\s{{0,8}}{_RECIPIENT}"), re.compile(rf"\s{{0,8}}(?:{_RECIPIENT_START})?")
    any_name = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    whole = rf"\s{{0,8}}{_RECIPIENT}|(?P<tool>{any_name})(?:\n\s{{0,8}}(?=\{{)|(?=\[ARGS\]))"
    beginning = rf"\s{{0,8}}(?:{_RECIPIENT_START})?|(?:{trie_pattern(names)})(?:\n\s{{0,8}}|\[[ARGS]{{0,4}})?"
    return re.compile(whole), re.compile(beginning)
