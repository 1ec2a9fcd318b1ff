"""Text for people's eyes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.text import bar, clip, closest, either, one_line, printable_input, size, strip_controls

# The name that was meant


@pytest.mark.parametrize(
    ("word", "names", "found"),
    [
        ("filePath", ["path", "file_path"], ["file_path"]),
        ("FILE-PATH", ["file_path"], ["file_path"]),
        ("read_fil", ["read_many_files", "read_file"], ["read_file"]),
        ("Grpe", ["grep", "glob"], ["grep"]),
        ("xyz", ["grep", "glob"], []),
        ("gpt4.1", ["gpt-5.1", "gpt-4.1"], ["gpt-4.1"]),
        ("x" * 1_000_000, ["x"], []),
        ("", [], []),
    ],
)
def test_the_closest_name_is_found(word: str, names: list[str], found: list[str]) -> None:
    assert closest(word, names) == found


def test_several_names_are_given_the_likeliest_first() -> None:
    assert closest("read_files", ["write_file", "read_file", "READ-FILES", "glob"], 3)[:2] == ["READ-FILES", "read_file"]


# Lines for a terminal


@given(st.text())
def test_harmless_text_holds_nothing_a_terminal_acts_on(text: str) -> None:
    shown = strip_controls(text)
    assert not any((ord(character) < 32 and character not in "\n\t") or 127 <= ord(character) < 160 for character in shown)
    assert [c for c in text if c.isprintable()] == [c for c in shown if c.isprintable()]


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text, 50).splitlines()) <= 1
    assert len(one_line(text, 50)) <= 50


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  a\n\tb\u2003c  ", "a b c"),
        ("a\x1b[31mb\x07", "a[31mb"),
        ("pay\u202e001$\u202c now\u2066\u200b", "pay001$ now"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # Persian, with a non-joiner that must stay
        ("❤\ufe0f 👩\u200d💻", "❤\ufe0f 👩\u200d💻"),
        ("\u200d\ufe0fa", "a"),
        ("\u0600١ kept: it is seen", "\u0600١ kept: it is seen"),
        ("a \u3164 b\u00ad\ufeff", "a b"),
        ("\ud800half", "�half"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_one_line_leaves_out_what_cannot_be_seen(text: str, line: str) -> None:
    assert one_line(text) == line


@given(st.text(max_size=200))
def test_one_line_made_again_is_the_same(text: str) -> None:
    line = one_line(text, 50)
    assert one_line(line, 50) == line
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in line)


def test_what_was_typed_is_repeated_without_what_cannot_be_printed() -> None:
    assert printable_input("--mo\x1bdel") == "--mo�del"
    assert printable_input("x" * 61) == "x" * 60 + "…"


def test_what_is_clipped_ends_in_a_sign() -> None:
    assert [clip(text, 3) for text in ("", "abc", "abcd")] == ["", "abc", "ab…"]


def test_choices_are_joined_in_words() -> None:
    assert [either(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a or b", "a, b or c"]


# Sizes and bars


def test_sizes_have_two_digits_and_a_unit() -> None:
    assert [size(count) for count in (0, 999, 1_000, 12_345, 999_999, 60_000_000, 5 * 10**9)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12 kB",
        "1.0 MB",
        "60 MB",
        "5.0 GB",
    ]


@given(share=st.floats(-1, 2), columns=st.integers(1, 80))
def test_a_bar_is_as_long_as_its_share(share: float, columns: int) -> None:
    drawn = bar(share, columns)
    assert len(drawn) <= columns
    assert bool(drawn) == (share > 0)
    assert abs(len(drawn) - max(min(share, 1), 0) * columns) <= 1
