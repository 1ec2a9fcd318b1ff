"""The diff a person approves says exactly what will be written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools import diff
from dragoman.tools.diff import TracedText, diff_texts, split_lines
from dragoman.tools.edit_list import OneEdit, apply_edits
from dragoman.tools.replace import Replacement, replace_text
from dragoman.tools.workspace import ToolRefusal

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "a b\n", "\n", "\x0c\n", "\u2028\n"]), max_size=30).map("".join)
TEXTS = st.builds(lambda lines, last: lines + last, LINES, st.sampled_from(["", "a", "end"]))


def applied(old: str, text: str) -> str:
    """What a unified diff makes of a text, every line of it checked on the way."""
    lines, new, position = split_lines(old), [], 0
    body = split_lines(text)[2:]
    index = 0
    while index < len(body):
        line = body[index]
        index += 1
        if line.startswith("@@"):
            old_range = line.split()[1].removeprefix("-")
            start, count = (int(number) for number in old_range.split(","))
            start -= 1 if count else 0
            assert start >= position
            new += lines[position:start]
            position = start
            continue
        content = line[1:]
        if index < len(body) and body[index].startswith("\\"):
            content = content.removesuffix("\n")
            index += 1
        if line[0] != "+":
            assert lines[position] == content
            position += 1
        if line[0] != "-":
            new.append(content)
    return "".join([*new, *lines[position:]])


@given(old=TEXTS, new=TEXTS)
def test_a_diff_leads_from_the_old_text_to_the_new(old: str, new: str) -> None:
    made = diff_texts(old, new, "a.txt")
    assert applied(old, made.text) == new
    assert (made.text == "") == (old == new)
    body = made.text.splitlines(keepends=True)[2:] if "\x0c" not in old + new and "\u2028" not in old + new else None
    if body is not None:
        assert made.added == sum(line.startswith("+") for line in body)
        assert made.removed == sum(line.startswith("-") for line in body)


@given(
    old=TEXTS,
    needle=st.sampled_from(["a", "b", "a\n", "\n", "a\nb", "\n\n", " "]),
    by=st.sampled_from(["", "x", "x\n", "\n", "a\nc", "x\ny\nz\n"]),
)
def test_the_diff_of_an_edit_is_found_without_comparing_the_whole(old: str, needle: str, by: str) -> None:
    try:
        replaced = replace_text(old, needle, by, replace_all=True, shown="a.txt")
    except ToolRefusal:
        return
    made = diff_texts(replaced.shown_old, replaced.shown_new, "a.txt", coarse=blocks_of(replaced))
    assert applied(old, made.text) == replaced.text


EDITS = st.builds(
    OneEdit,
    st.sampled_from(["a", "b", "a\n", "\n", "a\nb", "x", "x\n", "\n\n"]),
    st.sampled_from(["", "x", "x\n", "\n", "a\nc", "x\ny\nz\n"]),
    st.booleans(),
)


@given(old=TEXTS, edits=st.lists(EDITS, min_size=1, max_size=5))
def test_the_diff_of_several_edits_leads_from_the_first_text_to_the_last(old: str, edits: list[OneEdit]) -> None:
    expected = old
    for edit in edits:
        if edit.old not in expected or edit.old == edit.new or (expected.count(edit.old) > 1 and not edit.replace_all):
            return
        expected = expected.replace(edit.old, edit.new)
    try:
        edited = apply_edits(old, edits, "a.txt")
    except ToolRefusal:
        return  # occurrences that overlap are ambiguous
    assert edited.text == expected
    assert applied(old, edited.diff.text) == expected


def test_edits_far_apart_in_a_long_file_are_hunks_of_their_own() -> None:
    old = "".join(f"line {number}\n" for number in range(20_000))
    edited = apply_edits(old, [OneEdit("line 15000\n", "new\n"), OneEdit("line 10\n", ""), OneEdit("new\n", "newer\n")], "a.txt")
    assert edited.diff.summary == "+1 -2"
    assert edited.diff.text.count("@@ -") == 2
    assert applied(old, edited.diff.text) == edited.text


def blocks_of(replaced: Replacement) -> list[diff.DiffBlock]:
    traced = TracedText(replaced.shown_old)
    traced.replace(replaced.spans, len(replaced.by))
    return traced.blocks(replaced.shown_new)


def test_only_the_lines_that_differ_are_shown(tmp_path: Path) -> None:
    old = "".join(f"{number}\n" for number in range(1000))
    replaced = replace_text(old, "500\n501\n502\n", "500\nnew\n502\n", replace_all=False, shown="a.txt")
    made = diff_texts(replaced.shown_old, replaced.shown_new, "a.txt", coarse=blocks_of(replaced))
    expected = "--- a/a.txt\n+++ b/a.txt\n@@ -499,7 +499,7 @@\n 498\n 499\n 500\n-501\n+new\n 502\n 503\n 504\n"
    assert (made.text, made.summary) == (expected, "+1 -1")


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_git_takes_our_diffs(tmp_path: Path) -> None:
    old = "".join(f"{number}\n" for number in range(40)) + "end"
    new = old.replace("3\n", "three\n").replace("20\n", "").replace("end", "end\n")
    (tmp_path / "a.txt").write_text(old)
    made = diff_texts(old, new, "a.txt")
    subprocess.run(["git", "apply", "-"], input=made.text, text=True, cwd=tmp_path, check=True)
    assert (tmp_path / "a.txt").read_text() == new


def test_texts_too_different_to_compare_are_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_PRODUCT", 3)
    made = diff_texts("same\na\nb\n", "same\nb\nc\n", "a.txt")
    assert made.text.endswith("@@ -1,3 +1,3 @@\n same\n-a\n-b\n+b\n+c\n")


def test_a_single_endless_line_is_bounded_too() -> None:
    made = diff_texts("", "x" * 1_000_000, "a.txt", is_new=True)
    assert len(made.text) < diff.MAX_CHARS + 200
    assert "not shown" in made.text
