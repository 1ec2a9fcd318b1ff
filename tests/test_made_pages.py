"""Parts of pages that are made of the source are what the source says today, and leave nothing out."""

from __future__ import annotations

import re
import typing

import pytest
from checks import command_line, entries, errors, events
from checks.marked import ROOT, Part, parts

import dragoman as dm
from dragoman.app.arguments import COMMANDS, OPTIONS
from dragoman.values.record import Fold

OWN_SCRIPTS = ("defaults", "generated")
"""Marks that other scripts fill, with tests of their own."""


@pytest.mark.parametrize("part", parts(), ids=lambda part: f"{part.page.name}: {part.mark}")
def test_a_part_is_what_the_source_says(part: Part) -> None:
    page = part.page.read_text(encoding="utf-8")
    assert part.filled(page) == page, "make docs writes it anew"


def test_no_mark_on_a_page_is_without_its_part() -> None:
    """Else nobody would write or compare what stands there."""
    known = {(part.page.relative_to(ROOT).as_posix(), part.mark) for part in parts()}
    marked = {
        (page.relative_to(ROOT).as_posix(), line.removeprefix("<!-- end of ").removesuffix(" -->"))
        for page in (ROOT / "docs").rglob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("<!-- end of ")
    }
    assert {(page, mark) for page, mark in marked - known if mark not in OWN_SCRIPTS} == set()


@pytest.mark.parametrize("page", ["events.md", "entries.md"])
def test_every_type_of_words_is_told_with_its_words(page: str) -> None:
    """An enumeration had an empty row."""
    rows = [line for line in (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    (row,) = [row for row in rows if row.startswith("| `FinishReason` | ")]
    assert row == f"| `FinishReason` | {' '.join(f'`{each}`' for each in dm.FinishReason)} |"
    assert [row for row in rows if row.count("|") == 3 and row.endswith("| |")] == []


def test_every_event_has_its_place() -> None:
    placed = [kind for kinds in events.GROUPS.values() for kind in kinds]
    assert len(placed) == len(set(placed))
    assert set(placed) == {*typing.get_args(dm.TurnEvent), *typing.get_args(dm.StreamEvent)}


def test_every_reader_of_entries_is_explained() -> None:
    assert tuple(entries.FOLDS) == typing.get_args(Fold)


def test_every_public_error_is_in_the_tree() -> None:
    assert {kind.__name__ for kind, _ in errors.tree()} == {name for name in dm.errors.__all__ if name[0].isupper()}


@pytest.mark.parametrize("command", ["run", *COMMANDS])
def test_every_option_of_a_command_is_explained(command: str) -> None:
    section = command_line.section(command)
    for option in OPTIONS:
        if command in option.commands:
            named = re.compile(rf"\| [^|]*`{option.names[-1]}[` ]")
            [row] = filter(named.match, section.splitlines())
            assert len(row.split(" | ")[-1].strip(" |")) > 3, row
