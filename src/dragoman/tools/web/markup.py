"""HTML tokenizer: tags and text. It never goes back, so any page takes time linear in its length.

The standard library's parser rescans unfinished markup, and takes minutes for a megabyte of `<!--`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

MAX_ATTRIBUTES = 64
"""Further attributes of a tag are skipped."""

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
"""Elements whose content is raw text, and the pattern that ends them."""


class StartTag(NamedTuple):
    name: str
    attributes: dict[str, str]


class EndTag(NamedTuple):
    name: str


class TextToken(NamedTuple):
    text: str


Token = StartTag | EndTag | TextToken


def tokenize(html: str) -> Iterator[Token]:
    """Tokens with lower-case names and character references decoded. Comments, declarations and unclosed tags are left out."""
    at = 0
    while at < len(html):
        opening = html.find("<", at)
        if opening < 0:
            opening = len(html)
        if opening > at:
            yield TextToken(unescape_text(html[at:opening]))
        if opening == len(html):
            return
        token, at = _read_markup(html, opening)
        if token is not None:
            yield token
        if isinstance(token, StartTag) and (ending := _RAW.get(token.name)) is not None:
            found = ending.search(html, at)
            end = found.start() if found is not None else len(html)
            yield TextToken(unescape_text(html[at:end]) if token.name in ("title", "textarea") else html[at:end])
            at = end


def unescape_text(text: str) -> str:
    if "&" not in text:
        return text
    try:
        return unescape(text)
    except ValueError:  # a numeric reference with thousands of digits
        return text


def _read_markup(html: str, at: int) -> tuple[Token | None, int]:
    """The token that begins with the `<` at `at`, and where it ends."""
    following = html[at + 1 : at + 2]
    if following.isascii() and following.isalpha():
        return _read_start_tag(html, at + 1)
    if following == "/":
        name = _TAG_NAME.match(html, at + 2)
        end = html.find(">", at + 2)
        end = len(html) if end < 0 else end + 1
        return (EndTag(name[0].lower()) if name is not None else None), end
    if html.startswith("<!--", at):
        end = html.find("-->", at + 2)  # from where `<!-->` would end
        return None, len(html) if end < 0 else end + 3
    if following in ("!", "?") and following:
        end = html.find(">", at + 1)
        return None, len(html) if end < 0 else end + 1
    return TextToken("<"), at + 1


def _read_start_tag(html: str, at: int) -> tuple[Token | None, int]:
    name = _TAG_NAME.match(html, at)
    assert name is not None
    at = _match_end(_REST_OF_NAME, html, name.end())
    attributes: dict[str, str] = {}
    while True:
        at = _match_end(_BETWEEN, html, at)
        if at >= len(html):
            return None, at
        if html[at] == ">":
            return StartTag(name[0].lower(), attributes), at + 1
        key_end = _match_end(_ATTRIBUTE_NAME, html, at)
        key, at = html[at:key_end], key_end
        value = ""
        if (equals := _EQUALS.match(html, at)) is not None:
            value, at = _read_value(html, equals.end())
        if len(attributes) < MAX_ATTRIBUTES:
            attributes.setdefault(key[:100].lower(), unescape_text(value))


def _read_value(html: str, at: int) -> tuple[str, int]:
    quote = html[at : at + 1]
    if quote not in ('"', "'") or not quote:
        end = _match_end(_UNQUOTED, html, at)
        return html[at:end], end
    end = html.find(quote, at + 1)
    return (html[at + 1 :], len(html)) if end < 0 else (html[at + 1 : end], end + 1)


def _match_end(pattern: re.Pattern[str], html: str, at: int) -> int:
    found = pattern.match(html, at)
    return found.end() if found is not None else at
