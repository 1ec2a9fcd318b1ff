"""Files of decisions: what cannot be read is left out, what cannot be written is an OSError."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from dragoman.base import saved_lines
from dragoman.base.saved_lines import append_line, read_lines, replace_lines
from dragoman.policy.grants import Grants


class Decision(msgspec.Struct, frozen=True):
    folder: str
    yes: bool = True


def test_lines_come_back_in_order_and_the_file_is_for_the_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "decisions"
    append_line(str(file), Decision("a"))
    append_line(str(file), Decision("b", yes=False))
    assert read_lines(str(file), Decision) == [Decision("a"), Decision("b", yes=False)]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    file.write_bytes(b'{"folder": "a"}\n{"folder": "torn')
    append_line(str(file), Decision("b"))
    assert read_lines(str(file), Decision) == [Decision("a"), Decision("b")]


def test_a_pipe_in_its_place_is_an_error_and_no_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "decisions")
    with pytest.raises(OSError, match="No such device"):
        append_line(str(tmp_path / "decisions"), Decision("a"))


def test_a_missing_file_and_one_that_is_too_long_have_no_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "decisions"
    assert read_lines(str(file), Decision) == []
    replace_lines(str(file), [Decision("a")])
    monkeypatch.setattr(saved_lines, "MAX_FILE_BYTES", 5)
    assert read_lines(str(file), Decision) == []


def test_a_folder_whose_name_is_not_utf8_cannot_be_saved(tmp_path: Path) -> None:
    file = str(tmp_path / "decisions")
    folder = os.fsdecode(b"/home/caf\xe9")
    with pytest.raises(OSError, match=r"wide character|llegal"):
        append_line(file, Decision(folder))
    grants = Grants(file, folder)
    assert grants.add("edit", saved=True)  # why it could not be saved
    assert grants.keys == {"edit"}  # it holds for the session
