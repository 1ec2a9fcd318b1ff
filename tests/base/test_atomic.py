"""Replacing files whole: what a failure leaves is what there was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.base import atomic
from dragoman.base.atomic import FileChanged, replace_file, require_unchanged, write_aside, write_atomically
from dragoman.base.beneath import open_beneath


def test_a_file_is_replaced_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    replace_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_a_block_that_raises_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def break_off() -> None:
        with write_aside(str(path)) as descriptor:
            os.write(descriptor, b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_is_replaced_and_what_it_leads_to_is_left(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("theirs")
    link.symlink_to(target)
    replace_file(str(link), b"ours")
    assert target.read_text() == "theirs"
    assert not link.is_symlink()


@pytest.mark.parametrize("has_hard_links", [True, False])
def test_without_over_what_has_come_meanwhile_stays(tmp_path: Path, has_hard_links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_hard_links:

        def no_links(*args: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "a"
    replace_file(str(path), b"first", over=False)
    with pytest.raises(FileExistsError), write_aside(str(path), over=False) as descriptor:
        os.write(descriptor, b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_somebody_else_changed_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with open_beneath(os.path.realpath(tmp_path), []) as directory:
        old = directory.stat("a")
        require_unchanged(directory, "a", old)
        require_unchanged(directory, "none", None)
        path.write_text("theirs")
        with pytest.raises(FileChanged):
            write_atomically(directory, "a", b"ours", old, lambda: None)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a"]


def test_a_passing_fault_does_not_leave_the_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("")
    faults = [OSError(5, "I/O error")]

    def remove() -> None:
        if faults:
            raise faults.pop()
        path.unlink()

    atomic.remove_with_retry(remove)
    assert not path.exists()
