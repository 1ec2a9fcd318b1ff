"""Colours in code: they change no letter, and go over lines where strings and comments do."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tui.highlight import MOST_CHARS, highlight, language_of
from dragoman.tui.languages import LANGUAGES, NAMES
from dragoman.tui.line import plain
from dragoman.tui.theme import STYLES

PIECES = [
    '"',
    "'",
    '"""',
    "'''",
    "/*",
    "*/",
    "//",
    "#",
    "--",
    "--[[",
    "]]",
    "`",
    "<!--",
    "-->",
    "\\",
    "def ",
    "name",
    "12",
    "0x1f",
    "1.5e3",
    " ",
    "(",
    "$x",
    "汉",
]


@given(st.sampled_from(["", *LANGUAGES, "diff"]), st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), max_size=5))
def test_no_letter_is_changed(language: str, lines: list[str]) -> None:
    inside = ""
    for text in lines:
        spans, inside = highlight(text, language, inside)
        assert plain(spans) == text
        assert {style for span in spans for style in span.style.split()} <= STYLES


def styles(text: str, language: str) -> dict[str, str]:
    return {span.text: span.style for span in highlight(text, language)[0] if span.style}


@pytest.mark.parametrize(
    ("text", "language", "shown"),
    [
        (
            'def div(a): return "x"  # why',
            "python",
            {"def": "keyword", "div": "name", "return": "keyword", '"x"': "string", "# why": "comment"},
        ),
        ("if x == None or y > 1.5e3:", "python", {"if": "keyword", "None": "literal", "or": "keyword", "1.5e3": "literal"}),
        ("const a = `t`; // c", "javascript", {"const": "keyword", "`t`": "string", "// c": "comment"}),
        ("echo ${#name} # c", "shell", {"echo": "keyword", "# c": "comment"}),
        ("run --for x do-for-a; for y", "shell", {"for": "keyword"}),
        ('{"key": "value", "n": null}', "json", {'"key"': "name", '"value"': "string", '"n"': "name", "null": "literal"}),
        ("SELECT a FROM b -- c", "sql", {"SELECT": "keyword", "FROM": "keyword", "-- c": "comment"}),
        ("fn main<'a>() { 'x' }", "rust", {"fn": "keyword", "main": "name"}),
        ("+added", "diff", {"+added": "add"}),
        ("anything at all", "", {}),
    ],
)
def test_what_is_coloured(text: str, language: str, shown: dict[str, str]) -> None:
    assert styles(text, language) == shown


def test_a_string_over_lines_is_one() -> None:
    _, inside = highlight('x = """one', "python")
    spans, inside = highlight("def two", "python", inside)
    assert [span.style for span in spans] == ["string"]
    spans, inside = highlight('three""" + y', "python", inside)
    assert (spans[0].text, spans[0].style, inside) == ('three"""', "string", "")


def test_every_name_means_a_language() -> None:
    assert {name for name in NAMES if language_of(name) not in LANGUAGES} == set()
    assert language_of("Python") == "python"
    assert language_of("brainfuck") == ""


@pytest.mark.parametrize("piece", ['"', "\\", "a", "1", "/*", "'", "#", "<!--"])
def test_a_long_line_takes_linear_time(piece: str) -> None:
    start = time.process_time()
    for language in LANGUAGES:
        highlight(piece * (MOST_CHARS // len(piece)), language)
    assert time.process_time() - start < 5
