"""Arguments as pairs of tags (`<arg_key>…</arg_key><arg_value>…</arg_value>`), as elements named after them, and as elements within
elements."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from dragoman.text_tools.coerce import Coercion
from dragoman.text_tools.lexer import LexerSource, NotACall, has_more, match_literal, take_space, take_until
from dragoman.text_tools.openers import M3
from dragoman.text_tools.tag_reader import (
    CDATA,
    MAX_ARGS,
    MAX_TAG_CHARS,
    DeclaredText,
    Tagged,
    element_tags,
    read_cdata,
    read_text,
    unescape_name,
)
from dragoman.text_tools.toolset import Toolset

MAX_ELEMENTS = 10_000
MAX_DEPTH = 50

KEYS = ("<arg_key>", "<arg_key:opensource>")


def take_blank(source: LexerSource) -> Generator[None, None, None]:
    """Take white space and line breaks that were escaped once too often."""
    yield from take_space(source)
    while (yield from match_literal(source, ("\\n",))):
        source.take(source.position + 2)
        yield from take_space(source)


def read_pairs(source: LexerSource, name: str, ends: tuple[str, ...]) -> Generator[None, None, Tagged]:
    """Take pairs up to the end of the call, which is not taken. A key without a value is dropped."""
    args: dict[str, Any] = {}
    while True:
        yield from take_blank(source)
        if not (yield from has_more(source)):
            if not args:
                raise NotACall("it breaks off")
            return Tagged(name, args, is_closed=False)
        opened = yield from match_literal(source, (*KEYS, *ends))
        if opened in ends and opened:
            return Tagged(name, args, is_closed=True)
        if not opened:
            raise NotACall("something stands between its arguments")
        suffix = opened.removeprefix("<arg_key").removesuffix(">")
        source.take(source.position + len(opened))
        key, stop = yield from take_until(source, (f"</arg_key{suffix}>", "<"), MAX_TAG_CHARS)
        if len(stop) <= 1:
            raise NotACall("a key has no end")
        source.take(source.position + len(stop))
        yield from take_blank(source)
        value = f"<arg_value{suffix}>"
        if not (yield from match_literal(source, (value,))):
            continue
        source.take(source.position + len(value))
        args[unescape_name(key.strip())] = yield from read_text(source, f"</arg_value{suffix}>", (opened, *ends), "")
        if len(args) > MAX_ARGS:
            raise NotACall("it has too many arguments")


def read_elements(source: LexerSource, name: str, parameters: tuple[str, ...], closer: str) -> Generator[None, None, Tagged]:
    """Take elements named after the tool's parameters, up to the closing tag, which is taken."""
    args: dict[str, Any] = {}
    openers = element_tags(parameters)
    while True:
        yield from take_space(source)
        if not (yield from has_more(source)):
            raise NotACall("it breaks off")
        found = yield from match_literal(source, (closer, *openers))
        if found == closer:
            source.take(source.position + len(closer))
            return Tagged(name, args, is_closed=True)
        if not found:
            raise NotACall("something stands between its arguments")
        source.take(source.position + len(found))
        args[openers[found]] = yield from read_text(source, f"</{found[1:]}", (closer, *openers), "lines")


# --- MiniMax M3 -----------------------------------------------------------------------------------------------------------------------


def read_nested(source: LexerSource, tools: Toolset | None, outer: tuple[str, ...]) -> Generator[None, None, Tagged]:
    """Take one `invoke` whose arguments are elements, each tag after the namespace token."""
    opening, stop = yield from take_until(source, (">",), MAX_TAG_CHARS)
    if not stop or 'name="' not in opening:
        raise NotACall("it names no tool")
    name = unescape_name(opening.partition('name="')[2].rpartition('"')[0])
    source.take(source.position + 1)
    reader = _Nested(source, tools.schema(name) if tools is not None else None)
    args = yield from reader.arguments()
    return Tagged(name, args, is_closed=True, is_raw=True)


class _Nested:
    def __init__(self, source: LexerSource, schema: dict[str, Any] | None) -> None:
        self._source = source
        self._schema = schema
        self._elements = 0

    def arguments(self) -> Generator[None, None, dict[str, Any]]:
        args: dict[str, Any] = {}
        while (tag := (yield from self._tag())) != "/invoke":
            if tag.startswith("/"):
                raise NotACall("its tags do not match")
            name = unescape_name(tag)
            args[name] = yield from self._element(tag, 0, self._is_text(name))
        return args

    def _is_text(self, name: str) -> bool:
        """Whether a parameter is declared as text, so that tags inside it are part of its value."""
        properties = (self._schema or {}).get("properties")
        if not isinstance(properties, dict) or name not in properties:
            return False
        types = Coercion(self._schema).shape(properties[name]).types
        return types is not None and not types & {"object", "array"}

    def _tag(self) -> Generator[None, None, str]:
        yield from take_space(self._source)
        if not (yield from match_literal(self._source, (M3,))):
            raise NotACall("something stands between its arguments")
        return (yield from self._inside())

    def _inside(self) -> Generator[None, None, str]:
        """Take a tag with the token before it; returns the text between `<` and `>`."""
        source = self._source
        source.take(source.position + len(M3))
        yield from take_space(source)
        if not (yield from match_literal(source, ("<",))):
            raise NotACall("its tags do not match")
        source.take(source.position + 1)
        tag, stop = yield from take_until(source, (">",), MAX_TAG_CHARS)
        if not stop:
            raise NotACall("it breaks off")
        source.take(source.position + 1)
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise NotACall("it has too many arguments")
        return tag.strip()

    def _element(self, name: str, depth: int, is_text: bool) -> Generator[None, None, Any]:
        """Read the value of an element: text, or the value of its child elements."""
        if depth > MAX_DEPTH:
            raise NotACall("it is nested too deeply")
        source = self._source
        if (yield from match_literal(source, (CDATA,))):
            sections = yield from read_cdata(source)
            if (yield from self._tag()) != f"/{name}":
                raise NotACall("its tags do not match")
            text = "".join(sections)
            return text if depth else DeclaredText(text)
        if is_text:
            end = f"{M3}</{name}>"
            text, stop = yield from take_until(source, (end,))
            if not stop:
                raise NotACall("it breaks off")
            source.take(source.position + len(end))
            return text
        text, stop = yield from take_until(source, (M3,))
        if not stop:
            raise NotACall("it breaks off")
        tag = yield from self._inside()
        if tag == f"/{name}":
            return text
        if text.strip():
            raise NotACall("text and elements stand side by side")
        children: list[tuple[str, Any]] = []
        while not tag.startswith("/"):
            children.append((unescape_name(tag), (yield from self._element(tag, depth + 1, False))))
            tag = yield from self._tag()
        if tag != f"/{name}":
            raise NotACall("its tags do not match")
        return [value for _, value in children] if all(key == "item" for key, _ in children) else dict(children)
