"""Which paths a pattern means."""

from __future__ import annotations

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.path_pattern import PathPattern
from dragoman.tools.workspace import ToolRefusal


def means(pattern: str, path: str, hidden: bool = False) -> bool:
    compiled = PathPattern(pattern, hidden=hidden)
    if not compiled.start:
        return compiled.matches(path)
    return path.startswith(compiled.start + "/") and compiled.matches(path[len(compiled.start) + 1 :])


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "x/y/a.py"),
        ("a.py", "x/a.py"),
        ("**/*", "a"),
        ("**/*", "x/y/a"),
        ("**", "x/a"),
        ("src/*.ts", "src/a.ts"),
        ("src/**/*.ts", "src/a.ts"),
        ("src/**/*.ts", "src/x/y/a.ts"),
        ("src/**", "src/x/a"),
        ("src/", "src/x/a"),
        ("./src/*.ts", "src/a.ts"),
        ("{a,b}/*.md", "b/c.md"),
        ("*.{ts,tsx}", "x/a.tsx"),
        ("**/test_*.py", "tests/unit/test_a.py"),
        ("a/**/b/**/c", "a/x/b/y/z/c"),
        ("a/**/b/**/c", "a/b/c"),
        ("**/x/**/x/*", "x/x/x/y"),
        ("[ab]?.c", "ax.c"),
        ("[!a].c", "b.c"),
        (".github/**/*.yml", ".github/workflows/ci.yml"),
        (".*", "x/.env"),
        ("*漢*", "x/a漢b"),
        ("a b.txt", "a b.txt"),
    ],
)
def test_it_is_meant(pattern: str, path: str) -> None:
    assert means(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.pyc"),
        ("src/*.ts", "src/x/a.ts"),
        ("src/*.ts", "x/src/a.ts"),
        ("src/**/*.ts", "srcs/a.ts"),
        ("*/a", "a"),
        ("{a,b}/*.md", "c/c.md"),
        ("a/**/b", "a/x/c"),
        ("*", ".env"),
        ("*.py", ".hidden.py"),
        ("**/*.py", ".venv/a.py"),
        ("[ab].c", "c.c"),
        ("A.py", "a.py"),
    ],
)
def test_it_is_not_meant(pattern: str, path: str) -> None:
    assert not means(pattern, path)


def test_hidden_ones_too_where_asked() -> None:
    assert means("*.py", ".venv/.a.py", hidden=True)
    assert means("?x", ".x", hidden=True)
    assert not means("*.py", ".venv/.a.ts", hidden=True)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "empty"),
        (" ", "empty"),
        ("/etc/*", "relative"),
        ("{a,/etc}/*", "relative"),
        ("../*", "`..`"),
        ("a/{b,..}/*", "`..`"),
        ("!*.py", "`!`"),
        ("x" * 2000, "2,000 characters"),
    ],
)
def test_what_is_no_pattern_here_is_said_to_be_none(pattern: str, words: str) -> None:
    with pytest.raises(ToolRefusal, match=words):
        PathPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "start"),
    [("src/**/*.ts", "src"), ("a/b/*.c", "a/b"), ("*.py", ""), ("{a,b}/*.md", ""), ("x/{a,b}/*.md", "x"), ("a/b", "a"), ("**/*", "")],
)
def test_where_to_begin_is_known(pattern: str, start: str) -> None:
    assert PathPattern(pattern).start == start


def test_only_names_that_say_something_are_left_to_ripgrep() -> None:
    assert PathPattern("src/**/*.{ts,tsx}").filters() == ["--type-add=wanted:*.ts", "--type-add=wanted:*.tsx", "--type=wanted"]
    assert PathPattern("**/*").filters() == []
    assert PathPattern("[a-c]*.py").filters() == []
    assert PathPattern("a b,c:*.py").filters() == []


segments = st.text(st.sampled_from("ab*?."), min_size=1, max_size=6).filter(lambda text: "**" not in text and text not in (".", ".."))
names = st.text(st.sampled_from("ab."), min_size=1, max_size=6).filter(lambda text: text not in (".", ".."))


@given(pattern=st.lists(segments, min_size=2, max_size=4), path=st.lists(names, min_size=2, max_size=4))
def test_without_double_stars_each_part_matches_its_own(pattern: list[str], path: list[str]) -> None:
    def fits(name: str, part: str) -> bool:
        return fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))

    expected = len(pattern) == len(path) and all(map(fits, path, pattern))
    assert means("/".join(pattern), "/".join(path)) == expected


@given(path=st.lists(names.filter(lambda name: not name.startswith(".")), min_size=1, max_size=6), data=st.data())
def test_double_stars_stand_for_any_directories(path: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(path) - 1))
    end = data.draw(st.integers(start, len(path) - 1))
    assert means("/".join([*path[:start], "**", *path[end:]]), "/".join(path))
    assert means("/".join(["**", *path]), "/".join(path))


def test_no_pattern_takes_long() -> None:
    deep = "/".join(["a" * 50] * 200)
    start = time.process_time()
    assert not means("/".join(["**", "*a*a*a*a*b"] * 20), deep)
    assert not means("*a" * 100 + "b", "x/" + "a" * 200)
    assert time.process_time() - start < 5
