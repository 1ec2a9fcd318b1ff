"""Where files lie on each platform."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dragoman.base.places import Places, find_places
from dragoman.base.private import make_directory


def test_dragoman_home_holds_everything(tmp_path: Path) -> None:
    places = find_places({"DRAGOMAN_HOME": str(tmp_path), "XDG_CONFIG_HOME": "/elsewhere", "HOME": "/home/me"}, "linux")
    assert places == Places(str(tmp_path), str(tmp_path / "data"), str(tmp_path / "cache"))
    assert places.config_file == str(tmp_path / "config.toml")


def test_xdg_on_linux() -> None:
    env = {"HOME": "/home/me", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/k"}
    assert find_places(env, "linux") == Places("/c/dragoman", "/d/dragoman", "/k/dragoman")


def test_without_xdg_the_usual_folders() -> None:
    expected = Places("/home/me/.config/dragoman", "/home/me/.local/share/dragoman", "/home/me/.cache/dragoman")
    assert find_places({"HOME": "/home/me"}, "linux") == expected
    assert find_places({"HOME": "/home/me", "XDG_CONFIG_HOME": "not/absolute", "DRAGOMAN_HOME": " "}, "linux") == expected


def test_macos_and_windows_have_their_own() -> None:
    mac = find_places({"HOME": "/Users/me"}, "darwin")
    assert mac.config == "/Users/me/Library/Application Support/dragoman"
    assert mac.cache == "/Users/me/Library/Caches/dragoman"
    windows = find_places({"APPDATA": "R:", "LOCALAPPDATA": "L:"}, "win32")
    assert windows.config.startswith("R:")
    assert windows.data.startswith("L:")
    assert windows.data != windows.cache


def test_nothing_is_made_until_something_is_written(tmp_path: Path) -> None:
    places = find_places({"DRAGOMAN_HOME": str(tmp_path / "home")})
    assert not (tmp_path / "home").exists()
    make_directory(places.data)
    for folder in (tmp_path / "home", tmp_path / "home" / "data"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    make_directory(places.data)


def test_prompts_lie_beside_weights() -> None:
    places = find_places({"HOME": "/home/me"}, "linux")
    assert os.path.dirname(places.prompts) == os.path.dirname(places.weights) == places.cache
