"""Lines broken between words, whatever the script, and continued where they began."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import fit, unbroken_parts, width
from dragoman.base.wrapping import LEAST_COLUMNS, lay_out, wrap_line

latin = st.text("abcdefghijk-./é", min_size=1, max_size=60)
scripts = st.sampled_from(
    ["解析器：全角字符丢了。", "「引用」です", "한국어", "👩‍👩‍👧👍🏽", "naïve", "e\u0301t\u0301", "🇩🇪🇫🇷", "x" * 90, "字" * 70]
)
lines = st.builds(
    lambda lead, parts: " " * lead + "".join(word + " " * blanks for word, blanks in parts),
    st.integers(0, 30),
    st.lists(st.tuples(latin | scripts, st.integers(1, 8)), min_size=1, max_size=15),
)
widths = st.integers(LEAST_COLUMNS, 120)
_STYLE = re.compile(r"\x1b\[\d+m")


@given(lines, widths)
def test_no_line_is_wider_and_no_word_is_lost(line: str, columns: int) -> None:
    wrapped = wrap_line(line, columns)
    assert all(width(each) <= columns for each in wrapped)
    assert "".join("".join(wrapped).split()) == "".join(line.split())


@given(lines, widths)
def test_a_word_that_fits_the_line_is_never_broken(line: str, columns: int) -> None:
    whole = [part for word in line.split() for part in unbroken_parts(word) if width(part) <= columns]
    shown = " ".join(wrap_line(line, columns))
    for part in whole:
        assert part in shown
    latin_words = [word for word in line.split() if word.isascii() and len(word) <= columns]
    assert [word for word in shown.split() if word.isascii() and word in latin_words] == latin_words


@given(lines, widths)
def test_what_fits_is_left_as_it_is_and_wrapping_twice_changes_nothing(line: str, columns: int) -> None:
    if width(line) <= columns:
        assert wrap_line(line, columns) == [line]
    once = lay_out(line, columns)
    assert lay_out(once, columns) == once


@given(lines, widths, st.sampled_from([("1", "22"), ("2", "22"), ("31", "39")]), st.data())
def test_styles_change_nothing_but_the_style_and_end_on_their_line(
    line: str, columns: int, codes: tuple[str, str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    while end < len(line) and not line[end - 1 : end + 1].isascii():  # a style inside one character is none of ours
        end += 1
    while start > 0 and not line[start - 1 : start + 1].isascii():
        start -= 1
    styled = f"{line[:start]}\x1b[{codes[0]}m{line[start:end]}\x1b[{codes[1]}m{line[end:]}"
    wrapped = wrap_line(styled, columns)
    assert [_STYLE.sub("", each).rstrip() for each in wrapped] == [each.rstrip() for each in wrap_line(line, columns)]
    for each in wrapped:
        assert each.count(f"\x1b[{codes[0]}m") == each.count(f"\x1b[{codes[1]}m")


@given(st.lists(latin, min_size=1, max_size=15), widths)
def test_what_is_shortened_keeps_whole_words(words: list[str], columns: int) -> None:
    line = " ".join(words)
    shown = fit(line, columns)
    assert width(shown) <= columns
    assert shown == line or shown.endswith("…")
    kept = shown.removesuffix("…").split()
    if len(kept) > 1 and width(words[len(kept) - 1]) < columns:
        assert kept == words[: len(kept)]


@given(lines.map(str.strip), widths)
def test_what_is_shortened_is_the_beginning_of_it(line: str, columns: int) -> None:
    shown = fit(line, columns)
    assert width(shown) <= columns
    assert line.startswith(shown if shown == line else shown.removesuffix("…"))


def test_continued_lines_stand_under_the_last_cell() -> None:
    line = "  -m, --model NAME         deployment/model, as dragoman models lists them; by default the model you configured"
    assert wrap_line(line, 80) == [
        "  -m, --model NAME         deployment/model, as dragoman models lists them; by",
        "                           default the model you configured",
    ]
    assert wrap_line(line, 40) == [
        "  -m, --model NAME  deployment/model, as",
        "      dragoman models lists them; by",
        "      default the model you configured",
    ]


def test_a_paragraph_keeps_its_indent_and_a_message_gets_the_one_it_asks_for() -> None:
    assert wrap_line("  one two three four five six", 20) == ["  one two three four", "  five six"]
    assert wrap_line("dragoman: one two three four", 20, hang=2) == ["dragoman: one two", "  three four"]


def test_a_word_as_wide_as_the_line_gives_up_its_indent() -> None:
    assert wrap_line(f"  label:  {'x' * 30}", 30) == ["  label:", "x" * 30]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("解析器全角字符丢了请再看一下", ["解析器全角字符丢了请", "再看一下"]),
        ("全角字符丢了请看看全，角字符", ["全角字符丢了请看看", "全，角字符"]),
        ("한국어는 낱말사이를 띄어씁니다", ["한국어는 낱말사이를", "띄어씁니다"]),
    ],
)
def test_chinese_breaks_between_characters_and_korean_between_words(line: str, expected: list[str]) -> None:
    assert wrap_line(line, 20) == expected
