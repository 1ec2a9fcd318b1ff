"""Reads calls whose arguments are between tags, as text that the tool's schema types."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from typing import Any, Literal

import msgspec

from dragoman.text_tools import json_text
from dragoman.text_tools.json_reader import read_value
from dragoman.text_tools.lexer import LexerSource, NotACall, has_more, match_literal, take_space, take_until

MAX_TAG_CHARS = 400
MAX_ARGS = 500
CDATA, CDATA_END = "<![CDATA[", "]]>"
"""Around text that could be mistaken for tags or for a number."""

_AWKWARD = re.compile(r"\A/|[^\w.\-/]")
_NO_TAG = re.compile(r"\A/|[<>]")
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|(\w{2,4}));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ATTRIBUTE = re.compile(r"""([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))""")


class Tags(msgspec.Struct, frozen=True):
    """How one dialect marks a call and its arguments."""

    call: tuple[str, ...]
    """Beginnings of the tag that names the tool."""
    call_end: str
    arg: tuple[str, ...]
    arg_end: str
    is_attribute: bool = True
    """Whether names are written as `name="…"`, not right after the tag's beginning."""
    trim: Literal["", "lines", "space"] = ""
    """What around a value belongs to the layout: nothing, one line break on each side, all white space."""
    tag_end: str = ">"
    typed_by: str = ""
    """The attribute that declares a value's type."""


FUNCTION = Tags(
    ("<function=", "<function "), "</function>", ("<parameter=", "<parameter "), "</parameter>", is_attribute=False, trim="lines"
)
FUNCTION_NAME = Tags(
    ("<function name=", "<functionname=", "<functionĠname="),
    "</function>",
    ("<param name=", "<paramname=", "<paramĠname=", "<parameter name="),
    "</param>",
    trim="space",
)
INVOKE = Tags(("<invoke name=", "<invoke "), "</invoke>", ("<parameter name=", "<parameter "), "</parameter>")
DSML = Tags(("<｜DSML｜invoke",), "</｜DSML｜invoke>", ("<｜DSML｜parameter",), "</｜DSML｜parameter>", typed_by="string")
ATEM = Tags(("<atem:invoke",), "</atem:invoke>", ("<atem:parameter",), "</atem:parameter>")
STEPTML = Tags(("<steptml:invoke",), "</steptml:invoke>", ("<steptml:parameter",), "</steptml:parameter>")
XTML = Tags(
    ("<|open|>call ",), "<|close|>call<|sep|>", ("<|open|>argument ",), "<|close|>argument<|sep|>", tag_end="<|sep|>", typed_by="type"
)

ALL_TAGS: tuple[Tags, ...] = (FUNCTION, FUNCTION_NAME, INVOKE, DSML, ATEM, STEPTML, XTML)
TAGS_BY_MARKER: dict[str, Tags] = {marker: tags for tags in ALL_TAGS for marker in tags.call}
TAG_MARKERS: tuple[str, ...] = tuple(TAGS_BY_MARKER)


class Tagged(msgspec.Struct, frozen=True):
    """A call as written between its tags."""

    name: str
    args: dict[str, Any]
    """Text as written, and values with a declared type."""
    is_closed: bool
    is_raw: bool = True
    repairs: tuple[str, ...] = ()


def escape_name(name: str) -> str:
    """A name for use inside a tag: everything but letters, digits and a few signs becomes a character reference."""
    return _AWKWARD.sub(lambda match: f"&#{ord(match[0])};", name)


def element_tags(names: Iterable[str]) -> dict[str, str]:
    """Tag → name: each name's escaped tag, and its unescaped one if that is valid and not another's."""
    names = tuple(names)
    return {f"<{name}>": name for name in names if not _NO_TAG.search(name)} | {f"<{escape_name(name)}>": name for name in names}


def unescape_name(name: str) -> str:
    """A name with its character references resolved."""
    return _REFERENCE.sub(_decode_character, name) if "&" in name else name


def _decode_character(match: re.Match[str]) -> str:
    if match[2]:
        return _ENTITIES.get(match[2], match[0])
    code = int(match[1])
    return chr(code) if code < 0x110000 else match[0]


def read_tagged(source: LexerSource, marker: str, outer: tuple[str, ...]) -> Generator[None, None, Tagged]:
    """Take one call, beginning with the marker of its tag; `outer` ends the enclosing block."""
    tags = TAGS_BY_MARKER[marker]
    source.take(source.position + len(marker))
    name, attributes, is_empty = yield from _read_tag(source, tags, marker)
    name = name or attributes.get("name", "") or attributes.get("tool", "")
    if not name:
        raise NotACall("it names no tool")
    if is_empty:
        return Tagged(name, {}, is_closed=True)
    args: dict[str, Any] = {}
    ends = (tags.call_end, *outer)
    while True:
        yield from take_space(source)
        if not (yield from has_more(source)):
            if not args:
                raise NotACall("it breaks off")
            return Tagged(name, args, is_closed=False)
        found = yield from match_literal(source, (*tags.arg, *ends, "{"))
        if found == tags.call_end:
            source.take(source.position + len(found))
            return Tagged(name, args, is_closed=True)
        if found == "{" and not args:
            return (yield from _read_json_body(source, name, ends))
        if not found or found == "{":
            raise NotACall("something stands between its arguments")
        if found in outer:
            return Tagged(name, args, is_closed=True)
        key, value = yield from _read_argument(source, tags, found, ends)
        args[key] = value
        if len(args) > MAX_ARGS:
            raise NotACall("it has too many arguments")


def _read_json_body(source: LexerSource, name: str, ends: tuple[str, ...]) -> Generator[None, None, Tagged]:
    value = yield from read_value(source, ends)
    try:
        args, repairs = json_text.loads(value.text)
    except json_text.NotReadable as error:
        raise NotACall("its arguments are not JSON") from error
    if not isinstance(args, dict):
        raise NotACall("its arguments are no object")
    yield from take_space(source)
    end = yield from match_literal(source, ends[:1])
    if end:
        source.take(source.position + len(end))
    return Tagged(name, args, is_closed=bool(end) or not value.is_open, is_raw=False, repairs=repairs)


def _read_tag(source: LexerSource, tags: Tags, marker: str) -> Generator[None, None, tuple[str, dict[str, str], bool]]:
    """Read the rest of a tag: the name right after its beginning, its attributes, and whether it is self-closing."""
    inside, stop = yield from take_until(source, (tags.tag_end, "\n<") if tags.tag_end == ">" else (tags.tag_end,), MAX_TAG_CHARS)
    if stop == tags.tag_end:
        source.take(source.position + len(stop))
    elif not stop:
        raise NotACall("it breaks off")
    if not tags.is_attribute:
        return unescape_name(inside.strip()), {}, False
    is_empty = inside.rstrip().endswith("/") and tags.tag_end == ">"
    text = "name=" + inside if marker.endswith("name=") else inside
    attributes = {match[1]: unescape_name(match[2] or match[3] or match[4] or "") for match in _ATTRIBUTE.finditer(text)}
    return "", attributes, is_empty


def _read_argument(source: LexerSource, tags: Tags, marker: str, ends: tuple[str, ...]) -> Generator[None, None, tuple[str, Any]]:
    source.take(source.position + len(marker))
    key, attributes, is_empty = yield from _read_tag(source, tags, marker)
    if tags.is_attribute:
        named = attributes.get("name", attributes.get("key"))
        if named is None:
            raise NotACall("an argument has no name")
        key = named
    if is_empty:
        return key, ""
    end = "</parameter>" if marker.startswith("<parameter") else tags.arg_end
    value = yield from read_text(source, end, (*tags.arg, *ends), tags.trim)
    return key, _declare_type(value, attributes, tags.typed_by)


def _declare_type(value: str, attributes: dict[str, str], typed_by: str) -> Any:
    """A value with its type attribute applied: declared text stays text; other values are typed by the schema."""
    declared = attributes.get(typed_by) if typed_by else None
    match declared:
        case None:
            return value
        case "string" | "true":
            return DeclaredText(value)
        case _:
            return DeclaredValue(value)


class DeclaredText(str):
    """A value that its tag declares as text."""

    __slots__ = ()


class DeclaredValue(str):
    """A value that its tag declares as something other than text."""

    __slots__ = ()


def read_text(source: LexerSource, end: str, beyond: tuple[str, ...], trim: str) -> Generator[None, None, str]:
    """Take a value up to its end tag. The tag ends it only if something follows that may follow an argument, so that the text may contain
    the tag itself. A missing end tag is assumed where a line begins with the next tag."""
    parts: list[str] = []
    if (yield from match_literal(source, (CDATA,))):
        sections = yield from read_cdata(source)
        if (yield from match_literal(source, (end,))):
            source.take(source.position + len(end))
            return DeclaredText("".join(sections))
        parts.append(f"{CDATA}{(CDATA_END + CDATA).join(sections)}{CDATA_END}")
    forgotten = tuple(f"\n{marker}" for marker in beyond)
    while True:
        text, stop = yield from take_until(source, (end, *forgotten))
        parts.append(text)
        if not stop:
            raise NotACall("it breaks off")
        if stop != end:
            source.take(source.position + 1)
            return _trim("".join(parts) + "\n", trim)
        source.take(source.position + len(end))
        gap = yield from take_space(source)
        if source.is_empty and source.closed:
            return _trim("".join(parts), trim)
        if (yield from match_literal(source, beyond)):
            return _trim("".join(parts), trim)
        parts += (end, gap)


def read_cdata(source: LexerSource) -> Generator[None, None, list[str]]:
    """Take all CDATA sections at this position."""
    sections: list[str] = []
    while (yield from match_literal(source, (CDATA,))):
        source.take(source.position + len(CDATA))
        text, stop = yield from take_until(source, (CDATA_END,))
        if not stop:
            raise NotACall("it breaks off")
        source.take(source.position + len(stop))
        sections.append(text)
    return sections


def _trim(value: str, trim: str) -> str:
    match trim:
        case "lines":
            return value.removeprefix("\n").removesuffix("\n")
        case "space" if "\n" not in value.strip():
            return value.strip()
        case "space":  # several lines: their indentation and a last line break are part of the text
            return value.removeprefix("\n").removesuffix("\n")
        case _:
            return value
