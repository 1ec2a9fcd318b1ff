"""A directory held open: nothing on the way to it is a link, with descriptors or without."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.base import beneath
from dragoman.base.beneath import is_inside, open_beneath, open_parent


@pytest.fixture(params=[True, False], ids=["descriptor", "plain"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(beneath, "BY_DESCRIPTOR", request.param)
    return Path(os.path.realpath(tmp_path))


def test_what_is_made_on_the_way_is_listed(home: Path) -> None:
    made: list[str] = []
    (home / "a").mkdir()
    with open_beneath(str(home), ["a", "b", "c"], create=True, made=made) as directory:
        os.close(directory.create("new", 0o600))
        assert directory.path == str(home / "a" / "b" / "c")
    assert made == [str(home / "a" / "b"), str(home / "a" / "b" / "c")]
    assert (home / "a" / "b" / "c" / "new").exists()


def test_the_directory_of_a_path_is_opened_from_the_root(home: Path) -> None:
    (home / "a.txt").write_text("words")
    with open_parent(str(home / "a.txt")) as directory:
        assert stat.S_ISREG(directory.stat("a.txt").st_mode)
    with open_parent("/somewhere") as root:
        assert root.path == "/"


@pytest.mark.parametrize("create", [True, False])
def test_a_link_or_a_file_on_the_way_is_not_a_directory(home: Path, create: bool) -> None:
    (home / "real" / "inner").mkdir(parents=True)
    (home / "link").symlink_to(home / "real")
    (home / "dangling").symlink_to(home / "nowhere")
    (home / "file").write_text("")
    for way in ("link", "link/inner", "dangling", "file", "file/inner"):
        with pytest.raises(NotADirectoryError):
            open_beneath(str(home), way.split("/"), create=create)
    assert not (home / "nowhere").exists()


def test_what_is_missing_is_said_to_be_missing(home: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_beneath(str(home), ["none"])
    with pytest.raises(FileNotFoundError):
        open_parent(str(home / "none" / "a.txt"))


def test_links_are_named_moved_and_removed_themselves(home: Path) -> None:
    (home / "file").write_text("mine")
    (home / "link").symlink_to("file")
    with open_beneath(str(home), []) as directory:
        assert directory.readlink("link") == "file"
        assert stat.S_ISLNK(directory.stat("link").st_mode)
        directory.link("link", "second")
        directory.replace("link", "moved")
        directory.unlink("second")
        with pytest.raises(OSError):
            directory.open_for_reading("moved")
    assert sorted(os.listdir(home)) == ["file", "moved"]


def test_inside_is_by_whole_components() -> None:
    assert is_inside("/w", "/w")
    assert is_inside("/w/a", "/w")
    assert is_inside("/anything", "/")
    assert not is_inside("/w-evil", "/w")
    assert not is_inside("/", "/w")
