"""The file tools in a folder where another process puts links and hard links in the way."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from file_tools import Desk
from swaps import LIMIT_S, contents_of, swapping


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    for name in ("a.txt", "inner/a.txt"):
        (folder / name).write_text("the user's")
    return folder


def write_around(desk: Desk, number: int) -> int:
    """Say how many of three tries wrote."""
    written = 0
    for name in ("sub/inner/a.txt", f"sub/inner/new-{number % 7}/b.txt"):
        desk.run("read_file", file_path=name)
        written += not desk.run("write_file", file_path=name, content=str(number)).is_error
    return written + (not desk.run("edit", file_path="sub/inner/a.txt", old_string=str(number), new_string="x").is_error)


@pytest.mark.parametrize("part", ["sub", "sub/inner"])
def test_nothing_outside_is_written_while_links_come_and_go(tmp_path: Path, outside: Path, part: str) -> None:
    (tmp_path / "area").mkdir()
    desk = Desk(tmp_path / "area" / "work")
    (desk.root / "sub" / "inner").mkdir(parents=True)
    before, written = contents_of(outside), 0
    with swapping(desk.root / part, outside if part == "sub" else outside / "inner") as swaps:
        end_s = time.monotonic() + LIMIT_S
        for number in swaps:
            written += write_around(desk, number)
        while not written and time.monotonic() < end_s:  # on a busy machine the link may be there at each of the first tries
            written += write_around(desk, 0)
    assert written
    assert contents_of(outside) == before


def test_a_workspace_that_is_behind_a_link_by_now_is_not_written_to(tmp_path: Path, outside: Path) -> None:
    """As where a folder around the workspace is one that commands may write to."""
    (tmp_path / "around").mkdir()
    desk = Desk(tmp_path / "around" / "inner")
    (tmp_path / "around").rename(tmp_path / "moved")
    (tmp_path / "around").symlink_to(outside)
    before = contents_of(outside)
    assert desk.run("write_file", file_path="b.txt", content="new").is_error
    assert contents_of(outside) == before


def test_a_hard_link_is_replaced_and_its_other_name_keeps_its_content(tmp_path: Path, outside: Path) -> None:
    desk = Desk(tmp_path / "work")
    os.link(outside / "a.txt", desk.root / "a.txt")
    before = contents_of(outside)
    assert not desk.run("read_file", file_path="a.txt").is_error
    assert not desk.run("write_file", file_path="a.txt", content="new").is_error
    assert (desk.root / "a.txt").read_text() == "new"
    assert contents_of(outside) == before
