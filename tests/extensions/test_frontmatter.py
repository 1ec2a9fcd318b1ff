"""Frontmatter as people write it: what YAML allows is read as YAML has it, what it does not allow is read as it was meant."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman.extensions.frontmatter import MAX_DEPTH, MAX_FAULTS, part_outside_brackets, read_frontmatter

TEXTS = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"], include_characters=" ", exclude_characters="\ufeff\x85"
    ),
    max_size=60,
) | st.sampled_from(
    [
        "true",
        "no",
        "3",
        "a: b",
        "- x",
        "# no",
        "x # y",
        "two\nlines",
        "two\n\nlines\n",
        " edge ",
        "[a",
        "{b}",
        "'q'",
        '"q"',
        "---",
        "",
        "a\n  deeper\nb",
    ]
)
KEYS = st.text("abcdefghijklmnop-_", min_size=1, max_size=12).filter(lambda key: key[0] not in "-")
TREES = st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12)


class PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def read(text: str) -> dict[str, Any]:
    return dict(read_frontmatter(f"---\n{text}\n---\nbody").values)


@given(
    st.dictionaries(KEYS, TREES, max_size=5),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, '"', "'", "|", ">"]),
    st.integers(20, 200),
    st.sampled_from([2, 4]),
)
def test_what_yaml_writes_is_read_as_yaml_reads_it(
    values: dict[str, Any], flow: bool | None, style: str | None, width: int, indent: int
) -> None:
    text = yaml.dump(
        values, Dumper=PlainDumper, default_flow_style=flow, default_style=style, width=width, indent=indent, allow_unicode=True
    )
    text = "".join(text) if isinstance(text, str) else text
    if text.startswith(("{", "[")):  # frontmatter is written as lines of keys
        return
    found = read_frontmatter(f"---\n{text}---\nbody")
    assert found.values == yaml.load(text, yaml.BaseLoader)
    assert found.faults == ()
    assert found.body == "body"


@given(st.text(), st.booleans())
def test_nothing_makes_it_fail(text: str, framed: bool) -> None:
    found = read_frontmatter(f"---\n{text}\n---\nx" if framed else text)
    assert all(1 <= fault.line <= text.count("\n") + text.count("\r") + 5 for fault in found.faults)


@given(st.text(st.sampled_from("ab:- \n\t[]{}'\"|>#,&*!"), max_size=80))
def test_no_order_of_signs_makes_it_fail(text: str) -> None:
    read(text)


def test_colons_in_values_are_text() -> None:
    assert read("name: review\ndescription: Use when: the user asks, e.g. fix: or feat: commits") == {
        "name": "review",
        "description": "Use when: the user asks, e.g. fix: or feat: commits",
    }


def test_what_only_begins_like_yaml_is_text() -> None:
    values = read('hint: [file] [options]\nname: @scope/x\nglob: *.py\nsay: "yes" or "no"\nopen: "never closed\npercent: %d\ntick: `x`')
    assert values == {
        "hint": "[file] [options]",
        "name": "@scope/x",
        "glob": "*.py",
        "say": '"yes" or "no"',
        "open": '"never closed',
        "percent": "%d",
        "tick": "`x`",
    }


def test_lists_in_every_way() -> None:
    found = read_frontmatter("---\na: [x, 'y, z']\nb:\n- x\n- y\nc:\n  - x\n  - k: v\n    l: w\nd: x, Bash(git add:*, y)\n---\n")
    assert found.values == {"a": ["x", "y, z"], "b": ["x", "y"], "c": ["x", {"k": "v", "l": "w"}], "d": "x, Bash(git add:*, y)"}
    assert found.words("a") == ["x", "y, z"]
    assert found.words("d") == ["x", "Bash(git add:*, y)"]
    assert found.words("missing") == []
    assert part_outside_brackets("Bash(git *)  Read", " ,") == ["Bash(git *)", "", "Read"]


def test_blocks_keep_or_join_lines() -> None:
    assert read("a: |\n  one\n  two\nb: >-\n  one\n  two\nc: one\n  two") == {"a": "one\ntwo\n", "b": "one two", "c": "one two"}


def test_a_byte_order_mark_and_windows_line_ends() -> None:
    found = read_frontmatter("\ufeff---\r\nname: x\r\nlist:\r\n  - a\r\n---\r\nbody\r\nmore")
    assert (found.values, found.body, found.body_line) == ({"name": "x", "list": ["a"]}, "body\nmore", 6)


def test_a_missing_end_is_named_and_the_rest_read() -> None:
    found = read_frontmatter("---\nname: x\ndescription: y\n\n# Title\n\nText: here\n")
    assert found.values == {"name": "x", "description": "y"}
    assert found.body == "\n# Title\n\nText: here\n"
    assert [fault.line for fault in found.faults] == [1]


def test_a_line_across_the_page_is_no_frontmatter() -> None:
    assert read_frontmatter("---\nSome text.\n").body == "---\nSome text.\n"
    assert read_frontmatter("no frontmatter\n---\n").body == "no frontmatter\n---\n"
    assert read_frontmatter("").body == ""


def test_what_cannot_be_read_is_named_with_its_line() -> None:
    found = read_frontmatter("---\nname: x\nthis is nothing\ndescription: y\n---\nbody")
    assert found.values == {"name": "x", "description": "y"}
    assert [(fault.line, "this is nothing" in fault.reason) for fault in found.faults] == [(3, True)]
    assert found.lines == {"name": 2, "description": 4}


def test_one_line_values_can_be_had_as_written() -> None:
    found = read_frontmatter("---\nargument-hint: [issue] \nallowed: [a, b]\nlist:\n - a\n - b\non: yes\nx: maybe\n---\n")
    assert found.text("argument-hint") == "[issue]"
    assert found.text("list") == "a, b"
    assert (found.flag("on"), found.flag("x"), found.flag("missing")) == (True, None, None)


def test_tabs_indent() -> None:
    assert read("meta:\n\tauthor: x\n\ttags:\n\t\t- y") == {"meta": {"author": "x", "tags": ["y"]}}


def test_what_is_nested_too_deep_is_named() -> None:
    deep = "".join(f"{' ' * level}k:\n" for level in range(MAX_DEPTH + 5))
    found = read_frontmatter(f"---\n{deep}name: x\n---\n")
    assert found.text("name") == "x"
    assert found.faults
    assert read_frontmatter("---\na: " + "[" * 5000 + "]" * 5000 + "\nb: x\n---\n").text("b") == "x"


@pytest.mark.parametrize(
    "line",
    ["a: [", "a: {", 'a: "', "nothing", "- x", "a:", "  a: x", "a: |", "a: 'x", "a: [\n  b", "a b" * 50 + ":", "a: <b>", "a: </b><c>"],
)
def test_long_files_take_no_longer_for_their_length(line: str) -> None:
    text = "---\n" + (line + "\n") * 20_000 + "---\n"
    began = time.process_time()
    found = read_frontmatter(text)
    assert time.process_time() - began < 5
    assert len(found.faults) <= MAX_FAULTS


def test_one_long_line_takes_no_longer_for_its_length() -> None:
    for value in (" " * 300_000 + "x", '"' + " " * 300_000, "[" + "a, " * 100_000, "x" + " #" * 100_000, "x:" * 100_000, "<a>" * 100_000):
        began = time.process_time()
        read_frontmatter(f"---\na: {value}\n---\n")
        assert time.process_time() - began < 5
