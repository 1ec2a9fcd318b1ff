"""The screens of a conversation, kept as they look: tests/tui/screens. WRITE_SCREENS=1 writes them anew; then look at them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.tui.line import columns_of, plain
from dragoman.tui.theme import NAMES, STYLES, Theme
from dragoman.words import choose_language
from tui.scenes import SCENES

FOLDER = Path(__file__).parent / "screens"


@pytest.fixture
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    choose_language(request.param)
    yield request.param
    choose_language("en")


def drawn(columns: int) -> str:
    parts = [f"## {name}\n" + "".join(f"{plain(row)}\n" for row in draw(columns)) for name, draw in SCENES.items()]
    return "\n".join(parts)


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("language", ["en", "zh"], indirect=True)
def test_the_screens_look_as_they_were_looked_at(columns: int, language: str) -> None:
    path = FOLDER / f"{columns}-{language}.txt"
    shown = drawn(columns)
    if os.environ.get("WRITE_SCREENS"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["en", "zh"], indirect=True)
@pytest.mark.parametrize("name", SCENES)
def test_every_row_of_every_screen_fits(name: str, language: str) -> None:
    for columns in (24, 40, 60, 79, 80, 99, 100, 101, 120, 200):
        assert [row for row in SCENES[name](columns) if columns_of(row) > columns] == []


@pytest.mark.parametrize("theme", NAMES)
def test_every_style_on_a_screen_has_a_name(theme: str) -> None:
    for draw in SCENES.values():
        for row in draw(100):
            assert {style for span in row for style in span.style.split()} <= STYLES
            painted = Theme(theme).paint(row)
            assert painted.count("\n") == 0
            if theme == "none":
                assert painted == plain(row)
