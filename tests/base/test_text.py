"""Text for people's eyes."""

from __future__ import annotations

import pytest

from dragoman.base.text import closest

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
