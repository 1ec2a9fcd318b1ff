"""Themes: what a style's name looks like, as SGR codes of a terminal.

Five: for a dark and a light background, for terminals with 16 colours, without colour (NO_COLOR: bold, underlined and reversed stay), and
with nothing at all (TERM=dumb). The first two use the fixed colours of the 256 alone, because the first 16 are what a user made of them: so
their contrast is known (`tests/tui/test_theme.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.tui.line import Line

RESET = "\x1b[m"

_SHAPES = {
    "bold": "1", "italic": "3", "underline": "4", "strike": "9", "reverse": "7",
    "heading": "1", "strong": "1", "emphasis": "3", "link": "4", "title": "1", "question": "1", "key": "1", "selected": "1",
    "caret": "7", "add_word": "4", "del_word": "4",
}  # fmt: skip
"""Without colour."""
_NAMES = (
    "dim", "accent", "prompt", "good", "bad", "warn", "code", "quote", "rule", "border", "thinking", "tool", "status", "add",
    "del", "add_word", "del_word", "number", "keyword", "string", "comment", "literal", "name",
)  # fmt: skip

_DARK = {
    "dim": "38;5;245", "accent": "38;5;80", "prompt": "38;5;80", "good": "38;5;114", "bad": "38;5;210", "warn": "38;5;221",
    "code": "38;5;180", "quote": "38;5;248", "rule": "38;5;245", "border": "38;5;245", "thinking": "3;38;5;245", "tool": "38;5;111",
    "status": "38;5;245", "add": "38;5;114", "del": "38;5;210", "add_word": "38;5;157;48;5;22", "del_word": "38;5;224;48;5;52",
    "keyword": "38;5;176", "string": "38;5;150", "comment": "3;38;5;245", "literal": "38;5;180", "name": "38;5;111", "number": "38;5;245",
    "heading": "1;38;5;80", "link": "4;38;5;111", "key": "1;38;5;80", "selected": "1;38;5;80",
}  # fmt: skip
_LIGHT = {
    "dim": "38;5;242", "accent": "38;5;24", "prompt": "38;5;24", "good": "38;5;22", "bad": "38;5;124", "warn": "38;5;94",
    "code": "38;5;94", "quote": "38;5;240", "rule": "38;5;242", "border": "38;5;242", "thinking": "3;38;5;242", "tool": "38;5;25",
    "status": "38;5;242", "add": "38;5;22", "del": "38;5;124", "add_word": "38;5;22;48;5;194", "del_word": "38;5;88;48;5;224",
    "keyword": "38;5;90", "string": "38;5;22", "comment": "3;38;5;242", "literal": "38;5;94", "name": "38;5;25", "number": "38;5;242",
    "heading": "1;38;5;24", "link": "4;38;5;25", "key": "1;38;5;24", "selected": "1;38;5;24",
}  # fmt: skip
_SIXTEEN = {
    "dim": "2", "accent": "36", "prompt": "36", "good": "32", "bad": "31", "warn": "33", "code": "33", "quote": "2", "rule": "2",
    "border": "2", "thinking": "2", "tool": "34", "status": "2", "add": "32", "del": "31", "add_word": "7;32", "del_word": "7;31",
    "keyword": "35", "string": "32", "comment": "2", "literal": "33", "name": "34", "number": "2",
    "heading": "1;36", "link": "4;34", "key": "1;36", "selected": "1;36",
}  # fmt: skip
_BARE = {**dict.fromkeys(_NAMES, ""), **_SHAPES}
_STYLES: Mapping[str, Mapping[str, str]] = {
    "dark": {**_BARE, **_DARK},
    "light": {**_BARE, **_LIGHT},
    "16": {**_BARE, **_SIXTEEN},
    "mono": _BARE,
    "none": dict.fromkeys(_BARE, ""),
}
NAMES = tuple(_STYLES)
STYLES = frozenset(_BARE)
"""Every style that has a name."""
_WITH_256_COLOURS = ("alacritty", "foot", "ghostty", "wezterm", "xterm-ghostty", "xterm-kitty")
"""Terminals whose TERM does not say so."""


class Theme:
    """Paints lines."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._styles = _STYLES[name]
        self._codes: dict[str, str] = {"": ""}

    def codes(self, style: str) -> str:
        """The SGR codes of a style, or of several joined by blanks; empty where nothing is to be set."""
        if style not in self._codes:
            self._codes[style] = ";".join(filter(None, (self._styles[name] for name in style.split())))
        return self._codes[style]

    def paint(self, line: Line) -> str:
        """The line for the terminal. It sets what it needs and leaves nothing set."""
        painted: list[str] = []
        last = ""
        for text, style in line:
            if not text:
                continue
            codes = self.codes(style) if style else ""
            if codes != last:
                if last:
                    painted.append(RESET)
                if codes:
                    painted.append(f"\x1b[{codes}m")
                last = codes
            painted.append(text)
        if last:
            painted.append(RESET)
        return "".join(painted)


def choose_theme(environment: Mapping[str, str], wanted: str = "auto", *, is_light: bool | None = None) -> Theme:
    """The theme that was asked for, or the one that suits the terminal. `is_light` is what the terminal says of its background, if it
    was asked; COLORFGBG is believed otherwise, and dark is assumed."""
    if environment.get("TERM", "") in ("", "dumb"):
        return Theme("none")
    if environment.get("NO_COLOR") and wanted == "auto":
        return Theme("mono")
    if wanted in _STYLES:
        return Theme(wanted)
    if not _has_256_colours(environment):
        return Theme("16")
    if is_light is None:
        is_light = _is_light(environment.get("COLORFGBG", ""))
    return Theme("light" if is_light else "dark")


def _has_256_colours(environment: Mapping[str, str]) -> bool:
    term = environment.get("TERM", "")
    if "256color" in term or "direct" in term or term.startswith(_WITH_256_COLOURS):
        return True
    return environment.get("COLORTERM", "") in ("truecolor", "24bit") or bool(environment.get("WT_SESSION"))


def _is_light(colours: str) -> bool:
    """`0;15` is black on white. The colours 7 and 9 to 15 are bright ones."""
    background = colours.rpartition(";")[2]
    return background.isdecimal() and (int(background) == 7 or 9 <= int(background) <= 15)
