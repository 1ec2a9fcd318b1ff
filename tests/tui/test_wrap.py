"""Rows fit their width, words stay whole, and nothing is lost or doubled, whatever the text."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import unbroken_parts, width
from dragoman.tui.asking import KEY_GAP
from dragoman.tui.line import Line, Span, columns_of, line, plain, visible
from dragoman.tui.wrap import fit, pad, spread, wrap, wrap_code, wrap_parts
from dragoman.words.en import program as english
from dragoman.words.zh import program as chinese

SCRIPTS = ["a", "word", "-", "汉", "字", "，", "。", "（", "カ", "한", "국", "é", "e\u0301", "1️⃣", "שלום", "مرحبا", "क्षि", "ﷺ"]
EMOJI = ["👩\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈", "🇩🇪", "🇫🇷", "🎉"]
HOSTILE = ["\xad", "\u200b", "\u202e", "\x1b[31m", "\x00", "\r", "\x9b", "\u2028", "\ufe0f", "\u200d", "\u0301", "\U000e0041", "\ud800"]
ODD = st.sampled_from([*SCRIPTS, *EMOJI, *HOSTILE, " ", "  ", "\t", "x" * 30])
TEXTS = st.one_of(st.text(max_size=60), st.lists(ODD, max_size=40).map("".join))
WIDTHS = st.integers(2, 60)
STYLES = st.sampled_from(["", "bold", "dim", "code"])


@st.composite
def lines(draw: st.DrawFn) -> Line:
    return tuple(Span(visible(text), draw(STYLES)) for text in draw(st.lists(TEXTS, max_size=4)))


PREFIXES = st.sampled_from([(), line("- "), line("│ ", "dim"), line("10. ")])


@given(lines(), WIDTHS, PREFIXES)
def test_every_row_fits(text: Line, columns: int, prefix: Line) -> None:
    for row in [*wrap(text, columns, prefix), *wrap_code(text, columns, prefix), fit(text, columns), spread(text, prefix, columns)]:
        assert columns_of(row) <= columns
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in plain(row))


@pytest.mark.parametrize("words", [english.TEXTS, chinese.TEXTS])
@pytest.mark.parametrize("columns", [20, 30, 39])
def test_in_a_narrow_window_no_key_of_a_question_is_parted_from_its_words(words: Mapping[str, str], columns: int) -> None:
    question = words["trust_question"]
    rows = [plain(row) for row in wrap_parts(question, columns, KEY_GAP)]
    assert len(rows) > 1
    assert KEY_GAP.join(rows) == question
    assert all(width(row) <= columns for row in rows)


@given(lines(), WIDTHS)
def test_a_paragraph_gives_its_words_back(text: Line, columns: int) -> None:
    rows = [plain(row) for row in wrap(text, columns)]
    assert "".join(rows).replace(" ", "") == plain(text).replace(" ", "")
    assert [word for word in plain(text).split(" ") if word and word.isascii() and len(word) <= columns] == [
        word for row in rows for word in row.split(" ") if word in plain(text).split(" ") and word.isascii() and word
    ] or any(width(word) > columns or not word.isascii() for word in plain(text).split(" "))


@given(st.lists(st.text(st.sampled_from("abcdefgh,.-_/"), min_size=1, max_size=12), max_size=30), st.integers(12, 60))
def test_copied_rows_joined_by_blanks_are_the_paragraph(words: list[str], columns: int) -> None:
    assert " ".join(plain(row) for row in wrap(line(" ".join(words)), columns)) == " ".join(words)


@given(lines(), WIDTHS)
def test_no_row_ends_inside_a_word_that_fits(text: Line, columns: int) -> None:
    joined = plain(text)
    allowed = {0}
    at = 0
    for word in joined.split(" "):
        for part in unbroken_parts(word):
            allowed |= set(range(at, at + len(part))) if width(part) > columns else {at}
            at += len(part)
        allowed.add(at)
        at += 1
    at = 0
    for row in wrap(text, columns):
        bare = plain(row)
        start = joined.index(bare, at) if bare else at
        assert start in allowed or joined[start] == " "
        at = start + len(bare)
        assert at in allowed or at == len(joined)


@given(lines(), WIDTHS)
def test_code_is_kept_to_the_last_blank(text: Line, columns: int) -> None:
    assert "".join(plain(row) for row in wrap_code(text, columns)) == plain(text)


@given(lines(), WIDTHS)
def test_every_character_keeps_its_style(text: Line, columns: int) -> None:
    before = [(char, span.style) for span in text for char in span.text if char != " "]
    assert [(char, span.style) for row in wrap(text, columns) for span in row for char in span.text if char != " "] == before


def test_continued_rows_stand_under_the_first() -> None:
    rows = wrap(line("one two three four"), 12, line("- ", "dim"))
    assert [plain(row) for row in rows] == ["- one two", "  three four"]


def test_a_prefix_gives_way_in_a_narrow_window() -> None:
    assert [plain(row) for row in wrap(line("one two"), 9, line("      - "))] == ["one two"]


@pytest.mark.parametrize(("columns", "shown"), [(20, "hello world and more"), (15, "hello world…"), (4, "hel…"), (1, "…"), (0, "")])
def test_what_does_not_fit_is_left_out_by_words(columns: int, shown: str) -> None:
    assert plain(fit(line("hello world and more"), columns)) == shown


def test_what_is_at_the_right_gives_way() -> None:
    assert plain(spread(line("left"), line("right"), 12)) == "left   right"
    assert plain(spread(line("left"), line("right"), 10)) == "left"
    assert plain(pad(line("汉"), 4)) == "汉  "


@pytest.mark.parametrize("char", ["x", "x ", "汉", "e\u0301", "👩‍👩‍👧‍👦", " ", "\u0301", "क्", "🇩"])
def test_time_grows_with_the_text_and_not_faster(char: str) -> None:
    def seconds(size: int) -> float:
        text = line(visible(char * (size // len(char))))
        start = time.process_time()
        wrap(text, 80)
        wrap_code(text, 80)
        fit(text, 80)
        return time.process_time() - start

    seconds(1_000)
    most = 40 * max(seconds(4_000), 0.002)
    assert any(seconds(40_000) < most for _ in range(3))  # a busy machine may be slow once
