"""One line of the screen: pieces of text, each with the names of its styles. A theme makes colours of them (`tui/theme.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dragoman.base import graphemes
from dragoman.base.visible import SHAPING, is_hidden

TAB_COLUMNS = 4


class Span(NamedTuple):
    """A piece of a line. Its text holds no line break and nothing that acts on a terminal: text of others goes through `visible`."""

    text: str
    style: str = ""
    """Names of a theme's styles, joined by blanks."""


Line = tuple[Span, ...]

EMPTY: Line = ()
INDENT: Line = (Span("  "),)
"""Before what belongs to the line above."""

# What `base/visible.py` calls hidden, the two separators that some terminals break a line at, and halves of characters.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def line(text: str, style: str = "") -> Line:
    """A line of one piece. The text is ours, or was made visible before."""
    return (Span(text, style),) if text else EMPTY


def plain(spans: Iterable[Span]) -> str:
    """The text of a line without its styles: what is copied from the screen."""
    return "".join([span.text for span in spans])


def columns_of(spans: Iterable[Span]) -> int:
    """How many columns the line takes in a terminal."""
    return graphemes.width(plain(spans))


def restyle(spans: Iterable[Span], style: str) -> Line:
    """The line with one more style under those it has: where two say the same thing, that of the piece holds."""
    return tuple(Span(span.text, f"{style} {span.style}".strip()) for span in spans)


def visible(text: str) -> str:
    """Text of others as it may stand on a line: tabs become blanks, and whatever acts on a terminal, reorders a line or cannot be seen
    is shown as a sign. Joiners and variation selectors stay where they shape the character before them."""
    if "\t" in text:
        text = text.expandtabs(TAB_COLUMNS)
    return visible_after("", text, kept="")


def visible_after(before: str, text: str, kept: str = "\n\t") -> str:
    """The same for a piece of a longer text, after the character `before`. `kept` stays as it is."""

    def sign(found: re.Match[str]) -> str:
        char, at = found.group(), found.start()
        if char in kept or (char in SHAPING and _is_shaped(text[at - 1] if at else before, char)):
            return char
        return _sign(ord(char))

    return text if _HIDDEN.search(text) is None else _HIDDEN.sub(sign, text)


def _sign(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return "�" if 0xD800 <= code <= 0xDFFF else f"<U+{code:04X}>"


def _is_shaped(before: str, char: str) -> bool:
    if before == "\ufe0f":  # a flag in colours is a flag, an emoji style, a joiner and a rainbow
        return char == "\u200d"
    if not before:
        return False
    return (before > "\x7f" and not is_hidden(before)) or (before in "0123456789#*" and char == "\ufe0f")
