"""Diffs: every line with its number, every changed word marked, nothing lost in one column or two."""

from __future__ import annotations

import difflib
import time

from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.diff import diff_texts
from dragoman.tui.diff import find_diff, lay_out, mark_words, read_diff
from dragoman.tui.line import columns_of, plain
from tui.scenes import LEXER

LINES = st.lists(
    st.sampled_from(["", "a = 1", "b = 2", "def f(x):", "    return x", "# a comment that is somewhat longer", "汉字 = '字'"]), max_size=12
)


@given(LINES, LINES)
def test_a_diff_is_read_as_it_was_written(old: list[str], new: list[str]) -> None:
    made = diff_texts("\n".join([*old, ""]), "\n".join([*new, ""]), "x.py")
    if not made.text:
        return
    found = read_diff(made.text)
    assert (found.name, found.added, found.removed) == ("x.py", made.added, made.removed)
    for each in found.lines:
        if each.sign in "+ ":
            assert new[each.number - 1] == each.text if each.number <= len(new) else each.text == ""
        if each.sign == "-":
            assert old[each.number - 1] == each.text if each.number <= len(old) else each.text == ""


@given(LINES, LINES, st.integers(24, 160))
def test_every_line_of_it_is_shown_once(old: list[str], new: list[str], columns: int) -> None:
    made = diff_texts("\n".join([*old, ""]), "\n".join([*new, ""]), "x.py")
    found = read_diff(made.text) if made.text else None
    if found is None:
        return
    rows = lay_out(found, columns)
    assert all(columns_of(row) <= columns for row in rows)
    shown = "".join(plain(row) for row in rows)
    assert shown.count("+ ") + shown.count("+│") >= sum(each.sign == "+" and each.text != "" for each in found.lines)
    if columns < 100:
        words = "".join(plain(row)[2:].replace("↪", "") for row in rows).replace(" ", "")
        wanted = _in_order(found.lines)
        assert words == wanted


def _in_order(lines: tuple) -> str:  # type: ignore[type-arg]
    """In one column, what a block removes stands before what it adds."""
    out: list[str] = []
    added: list[str] = []
    for each in lines:
        sign = {"-": "−", "⋮": "⋮"}.get(each.sign, each.sign)
        row = f"{each.number or ''}{sign}{each.text}".replace(" ", "")
        if each.sign == "+":
            added.append(row)
            continue
        if each.sign != "-":
            out += added
            added = []
        out.append(row)
    return "".join([*out, *added])


def test_the_words_that_changed_are_marked() -> None:
    old, new = mark_words("WIDTH = 80  # columns", "WIDTH = 120  # columns")
    assert [(span.text, span.style) for span in new] == [("WIDTH = ", "add"), ("120", "add_word"), ("  # columns", "add")]
    assert [(span.text, span.style) for span in old if span.style == "del_word"] == [("80", "del_word")]


@given(st.text(st.sampled_from("ab c(),.汉"), max_size=30), st.text(st.sampled_from("ab c(),.汉"), max_size=30))
def test_marking_changes_no_letter(old: str, new: str) -> None:
    before, after = mark_words(old, new)
    assert (plain(before), plain(after)) == (old, new)


def test_lines_that_have_nothing_in_common_are_not_compared() -> None:
    old, new = mark_words("return compute(x)", "import os, sys")
    assert {span.style for span in (*old, *new)} == {"del", "add"}


def test_a_line_may_stand_before_the_diff() -> None:
    found = find_diff(f"+4 -2 src/parser/lexer.py\n{LEXER}")
    assert found is not None
    assert found.size == "+4 −2"
    assert find_diff("+++ this is no diff\n--- at all") is None


def test_a_large_diff_takes_no_time_to_begin() -> None:
    old = [f"value_{number} = {number}" for number in range(3_000)]
    new = [f"value_{number} = {number + 1}" for number in range(3_000)]
    text = "\n".join(difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm=""))
    start = time.process_time()
    rows = lay_out(read_diff(text), 80, most_rows=30)
    assert len(rows) == 30
    assert time.process_time() - start < 5
