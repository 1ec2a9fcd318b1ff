"""Colours that can be read, and as few of them as the terminal can show."""

from __future__ import annotations

import pytest

from dragoman.tui.line import Span
from dragoman.tui.theme import NAMES, STYLES, Theme, choose_theme

BLACK, DARK, WHITE, CREAM = (0, 0, 0), (30, 30, 30), (255, 255, 255), (253, 246, 227)
LEAST_CONTRAST = 4.5
"""What WCAG asks for text."""


def colour_of(number: int) -> tuple[int, int, int]:
    """One of the fixed colours of the 256."""
    assert number >= 16, "the first 16 are the user's own"
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return steps[number // 36], steps[number // 6 % 6], steps[number % 6]


def contrast(one: tuple[int, int, int], two: tuple[int, int, int]) -> float:
    def light(colour: tuple[int, int, int]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    bright, dim = sorted((light(one), light(two)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_contrast_is_measured_as_it_is_defined() -> None:
    assert round(contrast(BLACK, WHITE), 1) == 21.0
    assert round(contrast((119, 119, 119), WHITE), 2) == 4.48


@pytest.mark.parametrize(("theme", "grounds"), [("dark", (BLACK, DARK)), ("light", (WHITE, CREAM))])
@pytest.mark.parametrize("style", sorted(STYLES))
def test_every_style_can_be_read(theme: str, grounds: tuple[tuple[int, int, int], ...], style: str) -> None:
    codes = Theme(theme).codes(style).split(";")
    foreground = [int(codes[at + 2]) for at in range(len(codes)) if codes[at : at + 2] == ["38", "5"]]
    background = [int(codes[at + 2]) for at in range(len(codes)) if codes[at : at + 2] == ["48", "5"]]
    for colour in foreground:
        for ground in [colour_of(each) for each in background] or grounds:
            assert contrast(colour_of(colour), ground) >= LEAST_CONTRAST


@pytest.mark.parametrize(
    ("environment", "wanted", "name"),
    [
        ({"TERM": "xterm-256color"}, "auto", "dark"),
        ({"TERM": "xterm-256color", "COLORFGBG": "0;15"}, "auto", "light"),
        ({"TERM": "xterm-256color", "COLORFGBG": "15;0"}, "auto", "dark"),
        ({"TERM": "xterm-256color"}, "light", "light"),
        ({"TERM": "xterm-kitty"}, "auto", "dark"),
        ({"TERM": "linux"}, "auto", "16"),
        ({"TERM": "screen"}, "auto", "16"),
        ({"TERM": "screen", "COLORTERM": "truecolor"}, "auto", "dark"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "auto", "mono"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "auto", "dark"),
        ({"TERM": "dumb"}, "dark", "none"),
        ({}, "auto", "none"),
    ],
)
def test_the_terminal_chooses_the_theme(environment: dict[str, str], wanted: str, name: str) -> None:
    assert choose_theme(environment, wanted).name == name


def test_what_the_terminal_says_of_its_background_goes_before_its_environment() -> None:
    assert choose_theme({"TERM": "xterm-256color", "COLORFGBG": "15;0"}, is_light=True).name == "light"


def test_no_colour_means_none() -> None:
    mono = Theme("mono")
    assert {code for style in STYLES for code in mono.codes(style).split(";") if code} <= {"1", "3", "4", "7", "9"}
    assert {Theme("none").codes(style) for style in STYLES} == {""}


@pytest.mark.parametrize("name", NAMES)
def test_a_line_leaves_nothing_set(name: str) -> None:
    theme = Theme(name)
    painted = theme.paint((Span("a"), Span("b", "strong"), Span("c", "strong"), Span("", "bad"), Span("d", "link emphasis"), Span("e")))
    assert painted.replace("\x1b[", "").count("abcde") or painted.endswith("e")
    assert painted.count("\x1b[m") == (0 if name == "none" else 2)


def test_styles_are_joined() -> None:
    assert Theme("mono").codes("strong emphasis") == "1;3"
    with pytest.raises(KeyError):
        Theme("dark").codes("unheard-of")
