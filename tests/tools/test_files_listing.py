"""list_directory: directories first, sizes, odd names made readable, and bounded however much there is."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.base import beneath
from dragoman.tools import files
from file_tools import Desk, done, refused


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


@pytest.mark.parametrize("by_descriptor", [True, False])
def test_directories_come_first_then_files_with_sizes(desk: Desk, monkeypatch: pytest.MonkeyPatch, by_descriptor: bool) -> None:
    monkeypatch.setattr(beneath, "BY_DESCRIPTOR", by_descriptor)
    desk.plant("zoo/x")
    desk.plant(".hidden/x")
    desk.plant("b.py", b"x" * 1234)
    desk.plant("a.py", b"x")
    desk.plant(".env", b"12")
    (desk.root / "link").symlink_to("zoo")
    (desk.root / "dangling").symlink_to("/nowhere/at all")
    os.mkfifo(desk.root / "pipe")
    output = desk.run("list_directory")
    expected = [
        ".hidden/",
        "zoo/",
        ".env  2 bytes",
        "a.py  1 byte",
        "b.py  1.2 KB",
        "dangling -> /nowhere/at all",
        "link -> zoo",
        "pipe (a FIFO)",
    ]
    assert done(output).splitlines() == expected
    assert output.display == "8 entries"
    assert done(desk.run("list_directory", path="zoo")) == "x  0 bytes"


def test_odd_names_are_escaped(desk: Desk) -> None:
    for name in (b"new\nline", b"tab\t", b"-rf", b"caf\xe9", "bidi\u202e".encode(), b" space ", b"back\\slash", b"esc\x1b[2J"):
        (desk.root / os.fsdecode(name)).write_bytes(b"")
    (desk.root / os.fsdecode(b"dir\xff")).mkdir()
    (desk.root / "odd link").symlink_to("to\n")
    assert done(desk.run("list_directory")).splitlines() == [
        "dir\\xff/",
        "\\x20space\\x20  0 bytes",
        "./-rf  0 bytes",
        "back\\\\slash  0 bytes",
        "bidi\\u202e  0 bytes",
        "caf\\xe9  0 bytes",
        "esc\\x1b[2J  0 bytes",
        "new\\nline  0 bytes",
        "odd link -> to\\n",
        "tab\\t  0 bytes",
    ]


def test_an_empty_directory_is_said_to_be_empty(desk: Desk) -> None:
    assert done(desk.run("list_directory")) == "(the directory is empty)"


def test_more_than_500_entries_are_counted_and_not_shown(desk: Desk) -> None:
    for number in range(600):
        desk.plant(f"f{number:03}")
    desk.plant("zz/x")
    lines = done(desk.run("list_directory")).splitlines()
    assert lines[:2] == ["zz/", "f000  0 bytes"]
    assert len(lines) == 501
    assert lines[-1] == "[500 of 601 entries: find others with glob]"


def test_long_names_are_bounded_by_characters_too(desk: Desk) -> None:
    for number in range(300):
        desk.plant(f"{number:03}{'x' * 240}")
    text = done(desk.run("list_directory"))
    assert len(text) <= files.MAX_CHARS
    assert "of 300 entries" in text.splitlines()[-1]


def test_what_is_no_directory_is_refused(desk: Desk) -> None:
    desk.plant("sources/a.py")
    assert refused(desk.run("list_directory", path="source"), "not_found") == "source does not exist; similar: sources"
    assert refused(desk.run("list_directory", path="sources/a.py"), "not_directory") == "sources/a.py is a file: read it with read_file"
    refused(desk.run("list_directory", path=".."), "outside")


class FakeEntry:
    """A directory entry that needs no file."""

    def __init__(self, number: int) -> None:
        self.name = f"file-{number:07}"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return False

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(__file__)


def test_300000_entries_are_listed_in_bounded_memory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.run("list_directory")  # what is imported on first use does not count

    @contextmanager
    def scan(self: Any) -> Iterator[Iterator[Any]]:
        yield (FakeEntry(number) for number in range(300_000, 0, -1))

    monkeypatch.setattr(beneath.Directory, "scan", scan)
    tracemalloc.start()
    try:
        lines = done(desk.run("list_directory")).splitlines()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lines[0].startswith("file-0000001  ")
    assert lines[-1] == "[500 of 300000 entries: find others with glob]"
    assert peak < 3_000_000


def test_counting_ends_at_a_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_SCANNED", 700)
    for number in range(800):
        desk.plant(f"f{number:03}")
    assert done(desk.run("list_directory")).splitlines()[-1] == "[500 of more than 700 entries: find others with glob]"
