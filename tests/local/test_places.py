"""Where weights lie, files of the user's own, and removing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.base.places import find_places
from dragoman.local.weights import MODELS, find, models, remove, weights_folder
from dragoman.local.weights.places import hold_lock, scratch_folder, unfinished_file
from dragoman.values.errors import InputError
from tiny_model import CONTENT, TINY


@pytest.fixture(autouse=True)
def in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.MODELS, "tiny", TINY)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    "env",
    [
        {"HOME": "/home/me"},
        {"HOME": "/home/me", "XDG_CACHE_HOME": "/k"},
        {"HOME": "/home/me", "XDG_CACHE_HOME": "not/absolute"},
        {"HOME": "/home/me", "DRAGOMAN_HOME": "/d"},
        {"HOME": "/home/me", "DRAGOMAN_HOME": " "},
        {"USERPROFILE": "/u", "HOME": "/home/me"},
        {"LOCALAPPDATA": "/l", "HOME": "/home/me"},
    ],
)
def test_the_library_and_the_program_look_in_one_place(env: dict[str, str], platform: str) -> None:
    assert str(weights_folder(env, platform)) == find_places(env, platform).weights


def test_a_file_is_found_where_it_is_whole(tmp_path: Path) -> None:
    assert find("tiny", tmp_path) is None
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)
    assert find("tiny", tmp_path) == find("local/tiny", tmp_path) == tmp_path / "tiny.gguf"


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", b"x" * len(CONTENT), b""])
def test_what_cannot_be_the_model_is_not_found(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tiny.gguf").write_bytes(content)
    assert find("tiny", tmp_path) is None


def test_an_unfinished_file_is_never_found(tmp_path: Path) -> None:
    unfinished_file(TINY, tmp_path).write_bytes(CONTENT)
    assert find("tiny", tmp_path) is None


# A file of the user's own


def test_a_gguf_by_its_path_is_used_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"GGUF and more")
    assert find(f"local/{own}", tmp_path / "elsewhere") == own
    assert find(str(own)) == own
    monkeypatch.chdir(tmp_path)
    assert find("mine.gguf") == find("./mine.gguf") == own
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/mine.gguf") == own


def test_a_path_that_is_no_gguf_is_told(tmp_path: Path) -> None:
    text = tmp_path / "mine.gguf"
    text.write_text("hello")
    with pytest.raises(InputError, match="not a GGUF file"):
        find(str(text))
    with pytest.raises(InputError, match="not a GGUF file"):
        find(f"{tmp_path}/")
    with pytest.raises(InputError, match="no such file"):
        find(str(tmp_path / "nowhere.gguf"))


def test_a_name_of_the_table_is_no_path() -> None:
    assert "smollm2" in MODELS
    assert find("smollm2.gguf", Path("/nonexistent")) is None


# Removing


def test_removing_takes_everything_and_says_how_much(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)
    unfinished_file(TINY, tmp_path).write_bytes(b"12345")
    scratch_folder(TINY, tmp_path).mkdir()
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    assert remove("tiny", tmp_path) == len(CONTENT) + 5
    assert [path.name for path in tmp_path.iterdir()] == ["other.gguf"]
    assert remove("tiny", tmp_path) == 0
    assert remove("tiny", tmp_path / "nowhere") == 0


def test_what_is_being_pulled_is_not_removed(tmp_path: Path) -> None:
    async def while_held() -> None:
        async with hold_lock(TINY, tmp_path, lambda: None):
            with pytest.raises(InputError, match="being downloaded"):
                remove("tiny", tmp_path)

    (tmp_path / "tiny.gguf").write_bytes(CONTENT)
    asyncio.run(while_held())
    assert remove("tiny", tmp_path) == len(CONTENT)
