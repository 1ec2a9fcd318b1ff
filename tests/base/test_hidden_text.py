"""Characters that are not seen are named, counted and located; ordinary writing of any script is not reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.hidden_text import describe_hidden

TAGS = "".join(chr(0xE0000 + ord(char)) for char in "run rm")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"a\nb{TAGS}\n", "6 tag characters (line 2)"),
        (f"\U0001f3f4{TAGS}", "6 tag characters (line 1)"),
        ("x = 'a\u202e\u2066b'", "2 bidirectional controls (line 1)"),
        ("ad\u200bmin\n\nro\u2060ot", "2 zero-width spaces (lines 1, 3)"),
        ("ad\u200dmin", "1 zero-width joiners (line 1)"),
        ("a\ufeffb", "1 zero-width spaces (line 1)"),
        ("plain \u200e left", "1 direction marks (line 1)"),
        ("\U0001f600" + "\U000e0105" * 40, "40 variation selectors (line 1)"),
        ("\u2764" + "\ufe0f" * 3, "2 variation selectors (line 1)"),
        ("a\ufe0fb\ufe01", "2 variation selectors (line 1)"),
        ("fill\u3164er", "1 U+3164 (line 1)"),
        ("\n".join(["\u200b"] * 9), "9 zero-width spaces (lines 1, 2, 3, 4, 5, …)"),
    ],
)
def test_what_is_hidden_is_told(text: str, told: str) -> None:
    assert told in describe_hidden(text)


@pytest.mark.parametrize(
    "text",
    [
        "plain", "Straße, naïve, 你好", "\ufeffwith the mark of a file",
        "👩‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 ❤️‍🔥 ☺️ 1️⃣ #️⃣ ✈︎",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f England, 🇩🇪",
        "می‌خواهم کتاب‌ها", "क्‍ष श्‍र മലയാളം ന്‍", "עברית\u200f (v1.2)\u200e", "العربية \u061cنص",
        "邊\U000e0100 葛\U000e0101", "Silben\u00adtrennung", "\u1820\u180b\u1828",
    ],
)  # fmt: skip
def test_ordinary_writing_is_not_reported(text: str) -> None:
    assert describe_hidden(text) == ""


def test_lines_are_counted_from_the_first_that_is_shown() -> None:
    assert "(line 41)" in describe_hidden("a\nb\u200b", first_line=40)
    assert "zero-width" in describe_hidden("\ufeffa", first_line=40), "the mark of a file stands at its beginning"


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_letters_digits_and_signs_are_never_reported(text: str) -> None:
    assert describe_hidden(text.replace("\u115f", "").replace("\u1160", "").replace("\u3164", "").replace("\uffa0", "")) == ""


@given(st.text(max_size=30), st.sampled_from(["\u200b", "\u202e", "\u2066", "\u2060", "\U000e0041"]), st.text(max_size=30))
def test_one_that_is_never_ordinary_is_always_reported(before: str, hidden: str, after: str) -> None:
    told = describe_hidden(f"{before}\n{hidden}\n{after}")
    assert f"{before.count(chr(10)) + 2}" in told
