"""Files and directories that are the user's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.base.private import create_file, make_directory, open_file, require_unshared


def test_what_is_missing_above_a_directory_is_made_private_too(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        changed = make_directory(str(tmp_path / "a" / "b"))
        os.close(create_file(str(tmp_path / "a" / "b" / "file")))
    finally:
        os.umask(before)
    for made in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b" / "file").stat().st_mode) == 0o600
    assert changed == (str(tmp_path / "a" / "b"), str(tmp_path), str(tmp_path / "a"))
    assert make_directory(str(tmp_path / "a")) == (str(tmp_path / "a"),)


def test_a_file_or_a_dangling_link_in_its_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for way in ("file", "file/inner", "dangling"):
        with pytest.raises(NotADirectoryError):
            make_directory(str(tmp_path / way))


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError):
        require_unshared(str(tmp_path), tmp_path.stat())
    tmp_path.chmod(0o1777)
    require_unshared(str(tmp_path), tmp_path.stat())


def test_only_ordinary_files_are_opened_and_the_caller_chooses_the_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("link", "symbolic link"), ("pipe", "not a regular file")):
        with pytest.raises(ValueError, match=words):
            open_file(str(tmp_path / name))
        with pytest.raises(LookupError, match=words):
            open_file(str(tmp_path / name), refuse=LookupError)
