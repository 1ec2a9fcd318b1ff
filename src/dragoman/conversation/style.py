"""Styles of text in a terminal, and the sequences that switch them on and off."""

from __future__ import annotations

from typing import Literal

Style = Literal["", "dim", "red", "green", "yellow", "cyan", "bold"]
_CODES = {"dim": ("2", "22"), "bold": ("1", "22"), "red": ("31", "39"), "green": ("32", "39"), "yellow": ("33", "39"), "cyan": ("36", "39")}


def add_style(text: str, style: Style) -> str:
    if not style:
        return text
    on, off = _CODES[style]
    body = text.rstrip("\n")
    return f"\x1b[{on}m{body}\x1b[{off}m{text[len(body) :]}"
