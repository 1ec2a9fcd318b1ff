"""Prompts of commands: where arguments, commands of the shell and files stand."""

from __future__ import annotations

import shlex
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.extensions.templates import MAX_PARTS, FilePart, ShellPart, fill_in, split_arguments


def text_of(template: str, arguments: str = "", style: str = "markdown", **options: Any) -> str:
    parts = fill_in(template, "toml" if style == "toml" else "markdown", arguments, **options)
    return "".join(part if isinstance(part, str) else repr(part) for part in parts)


def test_arguments_by_number() -> None:
    assert text_of("$1-$2-$3 $ARGUMENTS[0] $ARGUMENTS", "'a b' c") == "a b-c- a b 'a b' c"
    assert text_of("$2 of $1", "a b c", swallows=True) == "b c of a"
    assert text_of("costs $100", "") == "costs $100"
    assert text_of("$0, then $1", "a b") == "a, then b", "where there is a $0, they count from there"


def test_arguments_by_name() -> None:
    assert text_of("Fix $issue on $branch for $HOME, $$5", "12 main", names=("issue", "branch")) == "Fix 12 on main for $HOME, $$5"
    assert text_of("$issue$branch", "12", names=("issue", "branch")) == "12"
    assert text_of("$FILE as $TITLE: $OTHER $$5", "FILE=a.py TITLE='b c'", names=None) == "a.py as b c: $OTHER $5"
    assert text_of("echo $HOME", "x") == "echo $HOME\n\nArguments: x"


def test_arguments_without_a_place_are_added() -> None:
    assert text_of("Do it.", "now") == "Do it.\n\nArguments: now"
    assert text_of("Do it.", "now", "toml") == "Do it.\n\nArguments: now"
    assert text_of("Do it.") == "Do it."


def test_what_a_template_names() -> None:
    parts = fill_in("See @src/$1.py, !`git log $1`! not a!`b` or x@y.z @a.", "markdown", "main")
    assert parts[1] == FilePart("src/main.py", "@src/main.py")
    assert parts[3] == ShellPart("git log main")
    assert [part.path for part in parts if isinstance(part, FilePart)] == ["src/main.py", "a"]
    assert len([part for part in parts if isinstance(part, ShellPart)]) == 1


def test_braces_of_toml_nest() -> None:
    parts = fill_in("!{awk '{print $1}'} @{a.txt} {{args}} !{open", "toml", "x y")
    assert parts == ["", ShellPart("awk '{print $1}'"), " ", FilePart("a.txt", "@{a.txt}"), " x y !{open"]


@given(st.text(max_size=40))
def test_what_the_user_gives_is_one_word_of_the_shell(arguments: str) -> None:
    [_, part, *_] = fill_in("!{echo {{args}}}", "toml", arguments)
    assert isinstance(part, ShellPart)
    if arguments and "\0" not in arguments:
        assert shlex.split(part.command) == ["echo", arguments]


@given(st.text(max_size=60), st.text(st.sampled_from("!`@{}$1 aARGUMENTS"), max_size=60), st.sampled_from(["markdown", "toml"]))
def test_arguments_bring_no_commands_and_no_files(template: str, arguments: str, style: str) -> None:
    plain = template.replace("!", "").replace("@", "")
    parts = fill_in(plain, "toml" if style == "toml" else "markdown", arguments)
    assert all(isinstance(part, str) for part in parts)


def test_there_are_only_so_many() -> None:
    parts = fill_in("@a " * 1_000, "markdown", "")
    assert sum(isinstance(part, FilePart) for part in parts) == MAX_PARTS
    parts = fill_in("!{" * 5_000, "toml", "")
    assert all(isinstance(part, str) for part in parts)


def test_quotes_that_do_not_close() -> None:
    assert split_arguments("it's here") == ["it's", "here"]
