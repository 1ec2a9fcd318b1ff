"""Undoing what a command left behind, inside its boundary: links lead nowhere, FIFOs do not hold it up, and it has an end."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.policy.sandbox.launcher.mending import Repairs, mend
from dragoman.policy.sandbox.launcher.order import Boundary, Order, read_order

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


def never() -> bool:
    return False


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    work, outside = tmp_path.resolve() / "work", tmp_path.resolve() / "outside"
    for folder in (work, outside):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "file").write_text("mine")
    return work, outside


def test_it_reaches_nothing_through_a_link(places: tuple[Path, Path]) -> None:
    work, outside = places
    (work / "link").symlink_to(outside)
    (work / "inner" / "down").symlink_to(outside / "inner")
    file = stat.S_IFREG | 0o644
    todo = Repairs(
        remove=(f"{work}/link/inner", f"{work}/link/inner/file", f"{work}/inner"),
        write=((f"{work}/link/new", file, b"x"), (f"{work}/link/inner/file", file, b"x"), (f"{work}/link/d", stat.S_IFDIR | 0o755, b"")),
        copy=((f"{work}/link/inner", ("file",)),),
    )
    assert mend(todo, never) == 6
    assert sorted(path.name for path in outside.rglob("*")) == ["file", "inner"]
    assert (outside / "inner" / "file").read_text() == "mine"
    assert os.listdir(work) == ["link"]


def test_a_link_itself_goes(places: tuple[Path, Path]) -> None:
    work, outside = places
    (work / "link").symlink_to(outside / "inner")
    assert mend(Repairs(remove=(f"{work}/link", f"{work}/not-there")), never) == 0
    assert not (work / "link").is_symlink()
    assert (outside / "inner" / "file").exists()


def test_what_is_written_takes_the_place_of_anything(places: tuple[Path, Path]) -> None:
    work, outside = places
    os.mkfifo(work / "fifo")
    (work / "link").symlink_to(outside / "inner" / "file")
    os.link(outside / "inner" / "file", work / "hard")
    (work / "folder" / "deep").mkdir(parents=True)
    names = ("fifo", "link", "hard", "folder", "absent")
    assert mend(Repairs(write=tuple((f"{work}/{name}", stat.S_IFREG | 0o755, b"new") for name in names)), never) == 0
    for name in names:
        assert stat.S_IMODE((work / name).lstat().st_mode) == 0o755
        assert (work / name).read_text() == "new"
    assert (outside / "inner" / "file").read_text() == "mine"
    assert sorted(os.listdir(work)) == sorted([*names, "inner"]), "no temporary file is left"


def test_a_folder_without_rights_goes_too(places: tuple[Path, Path]) -> None:
    work, _ = places
    (work / "inner" / "closed" / "deep").mkdir(parents=True)
    (work / "inner" / "closed").chmod(0)
    assert mend(Repairs(remove=(f"{work}/inner",)), never) == 0
    assert os.listdir(work) == []


def test_what_is_too_deep_loses_its_name_all_the_same(places: tuple[Path, Path]) -> None:
    work, _ = places
    at = work / "hooks"
    at.mkdir()
    descriptor = os.open(at, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    assert mend(Repairs(remove=(str(at),)), never) == 1
    assert not at.exists()


def test_it_stops_when_nobody_waits_any_more(places: tuple[Path, Path]) -> None:
    work, outside = places
    os.link(outside / "inner" / "file", work / "hard")
    assert mend(Repairs(copy=((str(work), ("hard",)),)), lambda: True) == 1
    assert (work / "hard").stat().st_nlink == 2


def test_only_files_with_several_names_are_copied(places: tuple[Path, Path]) -> None:
    work, outside = places
    os.mkfifo(work / "fifo")
    (work / "link").symlink_to(outside / "inner" / "file")
    before = (work / "inner" / "file").stat().st_ino
    assert mend(Repairs(copy=((str(work), ("fifo", "link", "absent")), (f"{work}/inner", ("file",)))), never) == 2
    assert (work / "inner" / "file").stat().st_ino == before
    assert (outside / "inner" / "file").stat().st_nlink == 1


PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)


@settings(max_examples=50)
@given(st.lists(PATHS), st.lists(st.tuples(PATHS, st.integers(0, 0o177777), st.binary(max_size=50))))
def test_an_order_to_mend_arrives_as_it_was_sent(remove: list[str], write: list[tuple[str, int, bytes]]) -> None:
    work = Repairs(tuple(remove), tuple(write), (("/a", ("b", "c\udce4")),))
    arrived = read_order(Order((), {}, "/", "landlock", Boundary(writable=("/w",)), repairs=work).to_bytes())
    assert arrived.repairs is not None
    assert vars(arrived.repairs) == vars(work)
    assert read_order(Order(("a",), {}, "/").to_bytes()).repairs is None
