"""HTML as a run of tags and text. Forward only: whatever a page holds, reading it takes time in proportion to its length.

The standard library's parser goes back over what it could not finish, and takes minutes for a megabyte of `<!--`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

MAX_ATTRIBUTES = 64
"""More of a tag's attributes are read over."""

_TAG_NAME = re.compile(r"[A-Za-z][^\s/>]{0,60}")
_REST_OF_NAME = re.compile(r"[^\s/>]*")
_BETWEEN = re.compile(r"[\s/]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s/>][^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_UNQUOTED = re.compile(r"[^\s>]*")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
"""Elements whose content is no markup, and how they end."""


class Start(NamedTuple):
    name: str
    attributes: dict[str, str]


class End(NamedTuple):
    name: str


class Words(NamedTuple):
    text: str


Token = Start | End | Words


def tokens(html: str) -> Iterator[Token]:
    """Names in lower case, character references undone. Comments, declarations and what is never closed are left out."""
    at = 0
    while at < len(html):
        opening = html.find("<", at)
        if opening < 0:
            opening = len(html)
        if opening > at:
            yield Words(unescaped(html[at:opening]))
        if opening == len(html):
            return
        token, at = _markup(html, opening)
        if token is not None:
            yield token
        if isinstance(token, Start) and (ending := _RAW.get(token.name)) is not None:
            found = ending.search(html, at)
            end = found.start() if found is not None else len(html)
            yield Words(unescaped(html[at:end]) if token.name in ("title", "textarea") else html[at:end])
            at = end


def unescaped(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return unescape(text)
    except ValueError:  # a number of thousands of digits
        return text


def _markup(html: str, at: int) -> tuple[Token | None, int]:
    """What begins with the `<` at `at`, and where it ends."""
    following = html[at + 1 : at + 2]
    if following.isascii() and following.isalpha():
        return _start_tag(html, at + 1)
    if following == "/":
        name = _TAG_NAME.match(html, at + 2)
        end = html.find(">", at + 2)
        end = len(html) if end < 0 else end + 1
        return (End(name[0].lower()) if name is not None else None), end
    if html.startswith("<!--", at):
        end = html.find("-->", at + 2)  # from where `<!-->` would end
        return None, len(html) if end < 0 else end + 3
    if following in ("!", "?") and following:
        end = html.find(">", at + 1)
        return None, len(html) if end < 0 else end + 1
    return Words("<"), at + 1


def _start_tag(html: str, at: int) -> tuple[Token | None, int]:
    name = _TAG_NAME.match(html, at)
    assert name is not None
    at = _after(_REST_OF_NAME, html, name.end())
    attributes: dict[str, str] = {}
    while True:
        at = _after(_BETWEEN, html, at)
        if at >= len(html):
            return None, at
        if html[at] == ">":
            return Start(name[0].lower(), attributes), at + 1
        key_end = _after(_ATTRIBUTE_NAME, html, at)
        key, at = html[at:key_end], key_end
        value = ""
        if (equals := _EQUALS.match(html, at)) is not None:
            value, at = _value(html, equals.end())
        if len(attributes) < MAX_ATTRIBUTES:
            attributes.setdefault(key[:100].lower(), unescaped(value))


def _value(html: str, at: int) -> tuple[str, int]:
    quote = html[at : at + 1]
    if quote not in ('"', "'") or not quote:
        end = _after(_UNQUOTED, html, at)
        return html[at:end], end
    end = html.find(quote, at + 1)
    return (html[at + 1 :], len(html)) if end < 0 else (html[at + 1 : end], end + 1)


def _after(pattern: re.Pattern[str], html: str, at: int) -> int:
    found = pattern.match(html, at)
    return found.end() if found is not None else at
