"""Titles: one line that fits a list, in any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import clusters, width_of
from dragoman.sessions.titles import MAX_COLUMNS, own_words, title_of

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


# Imported prompts


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("<environment_context>\n<cwd>/p</cwd>\n</environment_context>", ""),
        ("<environment_context><cwd>/p</cwd></environment_context>\n\nFix the parser", "Fix the parser"),
        ("<user_instructions>\nBe good\n</user_instructions>", ""),
        ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nBe good\n</INSTRUCTIONS>", ""),
        ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nBe good\n</INSTRUCTIONS>\nFix it", "Fix it"),
        ("<permissions instructions>\nAsk first\n</permissions instructions>Fix it", "Fix it"),
        ("<command-name>/init</command-name>\n<command-message>init</command-message>", ""),
        ("<system-reminder>today</system-reminder><system-reminder>more</system-reminder> Fix it", "Fix it"),
        ("<environment_context>never closed", ""),
        ("This is the Gemini CLI. We are setting up the context for our chat.", ""),
        ("<div>why is this not shown?</div>", "<div>why is this not shown?</div>"),
        ("Why is <environment_context> in my title?", "Why is <environment_context> in my title?"),
    ],
)
def test_what_another_program_said_in_the_persons_name_is_left_out(prompt: str, words: str) -> None:
    assert own_words(prompt).rstrip() == words


@given(st.text() | st.text("<>/_-aBC \n#"))
def test_own_words_are_the_end_of_the_prompt(prompt: str) -> None:
    assert prompt.endswith(own_words(prompt))
