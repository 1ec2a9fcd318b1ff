"""Tells a user who looks elsewhere that a question waits or a long run is over: the terminal's bell, or a notice of the desktop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dragoman.base.text import one_line

LONG_S = 10.0
"""A run that took less was waited for, and whoever pressed a key since then is looking."""
_WITH_NOTICES = ("iTerm.app", "WezTerm", "ghostty", "kitty")


def notice_bytes(environment: Mapping[str, str], wanted: Literal["auto", "bell", "off"], text: str) -> str:
    """What to write to the terminal."""
    if wanted == "off":
        return ""
    has_notices = environment.get("TERM_PROGRAM", "") in _WITH_NOTICES or environment.get("TERM", "").startswith(("xterm-kitty", "foot"))
    if wanted == "auto" and has_notices and not environment.get("TMUX"):
        return f"\x1b]9;{one_line(text, 100)}\x07"
    return "\x07"
