"""A directory held open: nothing on the way to it is a link, with descriptors or without."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.base import beneath
from dragoman.base.beneath import is_inside, open_beneath, open_directory, open_parent, remove_flat_folder


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


def test_a_link_on_the_way_to_the_base_is_not_followed_either(home: Path) -> None:
    (home / "around" / "base").mkdir(parents=True)
    (home / "other" / "base").mkdir(parents=True)
    (home / "around").rename(home / "moved")
    (home / "around").symlink_to(home / "other")
    with pytest.raises(NotADirectoryError):
        open_beneath(str(home / "around" / "base"), ["new"], create=True)
    assert not [*(home / "other" / "base").iterdir()]


def test_a_base_that_is_missing_is_not_made(home: Path) -> None:
    if beneath.BY_DESCRIPTOR:
        with pytest.raises(FileNotFoundError):
            open_beneath(str(home / "gone"), ["new"], create=True)
        assert not (home / "gone").exists()


def test_a_folder_is_emptied_and_removed_without_following_links(home: Path) -> None:
    (home / "mine").mkdir()
    (home / "mine" / "kept").write_text("mine")
    (home / "flat").mkdir()
    (home / "flat" / "file").write_text("12345")
    (home / "flat" / "link").symlink_to(home / "mine")
    (home / "linked").symlink_to(home / "mine")
    assert remove_flat_folder(str(home / "flat")) >= 5
    assert not (home / "flat").exists()
    assert remove_flat_folder(str(home / "flat")) == 0
    with pytest.raises(NotADirectoryError):
        remove_flat_folder(str(home / "linked"))
    (home / "deep" / "inner").mkdir(parents=True)
    remove_flat_folder(str(home / "deep"))
    assert (home / "deep" / "inner").is_dir()
    assert (home / "mine" / "kept").read_text() == "mine"


def test_a_file_to_lock_is_opened_or_made_and_is_a_regular_file(home: Path) -> None:
    (home / "link").symlink_to(home / "made-behind-it")
    os.mkfifo(home / "pipe")
    with open_directory(str(home)) as directory:
        for _ in range(2):
            os.close(directory.open_or_create("new", 0o600))
        for name in ("link", "pipe"):
            with pytest.raises(OSError, match=r"link|symbolic|not a regular file"):
                directory.open_or_create(name, 0o600)
    assert not (home / "made-behind-it").exists()


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
