"""Titles: one line that fits a list, in any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import clusters, width_of
from dragoman.sessions.titles import MAX_COLUMNS, title_of

FAMILY = "👨‍👩‍👧‍👦"
WAVE = "👋🏽"
FLAG = "🇩🇪"
HEART = "❤️"


def columns(text: str) -> int:
    return sum(map(width_of, clusters(text)))


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ("  Fix the parser\n\n\tplease  ", "Fix the parser please"),
        ("修复解析器", "修复解析器"),
        ("أصلح المحلل", "أصلح المحلل"),
        (f"{FAMILY} {WAVE} {FLAG} {HEART}", f"{FAMILY} {WAVE} {FLAG} {HEART}"),
        ("می‌خواهم", "می‌خواهم"),  # Persian, with a non-joiner that must stay
        ("a\x1b[31mb\x07c\x00d", "a[31mbcd"),
        ("pay\u202e001$\u202c now\u2066\u200b", "pay001$ now"),
        ("\ud800half", "�half"),
        ("", ""),
        (" \n\t\u200b\u202e ", ""),
    ],
)
def test_a_short_prompt_is_its_own_title(prompt: str, title: str) -> None:
    assert title_of(prompt) == title


@pytest.mark.parametrize(
    "unit",
    [
        "word ",
        "请修复这个错误",
        "برنامج يقرأ الملفات ",
        FAMILY,
        WAVE,
        FLAG,
        HEART,
        "e\u0301",
        "한국어",
        "\u1112\u1161\u11ab",
        "क्षत्रिय",
        "1\ufe0f\u20e3",
    ],
)
def test_a_long_prompt_is_cut_between_characters(unit: str) -> None:
    title = title_of(unit * 100)
    assert title.endswith("…")
    assert MAX_COLUMNS - 8 <= columns(title) <= MAX_COLUMNS
    whole = list(clusters(unit * 100))
    kept = list(clusters(title[:-1]))
    assert kept == whole[: len(kept)]


def test_marks_piled_up_without_end_do_not_make_a_title_endless() -> None:
    assert len(title_of("a" + "\u0301" * 100_000 + " b")) < 100


def test_a_huge_prompt_costs_little() -> None:
    assert title_of(" " * 5_000_000 + "x" * 5_000_000) == "x" * 59 + "…"


@given(st.text(max_size=300))
def test_any_text_makes_a_line_that_fits_and_acts_on_nothing(prompt: str) -> None:
    title = title_of(prompt)
    assert columns(title) <= MAX_COLUMNS
    assert title == title.strip()
    title.encode()
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in title)
    assert not set(title) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


@given(st.text(max_size=120))
def test_a_title_is_its_own_title(prompt: str) -> None:
    assert title_of(title_of(prompt)) == title_of(prompt)
