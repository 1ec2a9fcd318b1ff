"""Folders that are watched: whatever changes in them is noted before the call that made it returns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.base import folder_events
from dragoman.base.folder_events import FolderEvents

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

CHANGES: dict[str, Callable[[Path], object]] = {
    "made": lambda folder: (folder / "new").write_text("x"),
    "written in place": lambda folder: (folder / "a").write_text("y"),
    "cut": lambda folder: os.truncate(folder / "a", 0),
    "mode": lambda folder: (folder / "a").chmod(0o755),
    "time": lambda folder: os.utime(folder / "a"),
    "removed": lambda folder: (folder / "a").unlink(),
    "moved away": lambda folder: (folder / "a").rename(folder.parent / "b"),
    "folder made": lambda folder: (folder / "inner").mkdir(),
    "folder moved": lambda folder: folder.rename(folder.parent / "elsewhere"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noted_at_once_and_only_there(tmp_path: Path, change: str) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("x")
    events = FolderEvents()
    for name in ("one", "two"):
        events.watch(str(tmp_path / name))
    if not events.unchanged():
        pytest.skip("the system gives no watches")
    assert set(events.unchanged()) == {str(tmp_path / "one"), str(tmp_path / "two")}
    CHANGES[change](tmp_path / "one")
    assert set(events.unchanged()) == {str(tmp_path / "two")}
    events.close()
    assert not events.unchanged()


def test_where_there_are_no_watches_everything_counts_as_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_events, "MAX_FOLDERS", 0)
    events = FolderEvents()
    events.watch(str(tmp_path))
    assert not events.unchanged()
    events.close()


def test_it_ends_with_its_owner() -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(5):
        FolderEvents()
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1
