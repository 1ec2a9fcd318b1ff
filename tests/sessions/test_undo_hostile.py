"""An undo in a folder where a command has prepared links, hard links and other things: nothing outside is touched."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.base.atomic import process_mark, temporary_prefix
from dragoman.base.beneath import open_parent
from dragoman.base.ids import new_session_id
from dragoman.sessions.leftovers import WritingNote, sweep_leftovers
from dragoman.sessions.projects import WRITING, log_name
from dragoman.sessions.restore import UndoFailed, UndoRefused, restore
from dragoman.sessions.undo import changes_of_last_run, plan_undo
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import Blob
from sessions.desks import Desk, put
from swaps import contents_of, swapping


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "area" / "work").mkdir(parents=True)
    return Desk(tmp_path / "area" / "work", MemoryBlobs())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    for name in ("old.txt", "new.txt", "inner/old.txt", "inner/new.txt"):
        put(folder / name, "the user's")
    (folder / "gone" / "x").mkdir(parents=True)
    return folder


def changed(desk: Desk) -> None:
    put(desk.path("sub/old.txt"), "old")
    put(desk.path("sub/inner/old.txt"), "old")
    put(desk.path("sub/gone/x/file"), "gone")
    desk.prompt()
    names = ("sub/old.txt", "sub/inner/old.txt", "sub/new.txt", "sub/inner/new.txt", "sub/gone/x/file")

    def do() -> None:
        for name in names[:4]:
            put(desk.path(name), "by a tool")
        desk.path("sub/gone/x/file").unlink()
        desk.path("sub/gone/x").rmdir()
        desk.path("sub/gone").rmdir()

    desk.call(do, *names)


def put_beneath(path: Path, data: bytes) -> None:
    """As a tool writes: following no link, and over what is there."""
    with open_parent(str(path), create=True) as directory:
        name = f"{path.name}.{os.urandom(4).hex()}"
        descriptor = directory.create(name, 0o644)
        os.write(descriptor, data)
        os.close(descriptor)
        directory.replace(name, path.name)


def test_a_folder_that_is_a_link_out_by_now_is_left_alone(desk: Desk, outside: Path) -> None:
    changed(desk)
    before = contents_of(outside)
    desk.path("sub").rename(desk.path("moved"))
    desk.path("sub").symlink_to(outside)
    for force in (False, True):
        with suppress(UndoRefused):
            desk.undo(force=force)
    assert contents_of(outside) == before


@pytest.mark.parametrize("part", ["sub", "sub/inner"])
def test_nothing_outside_changes_while_links_come_and_go(desk: Desk, outside: Path, part: str) -> None:
    changed(desk)
    changes = changes_of_last_run(desk.history.entries)
    before = contents_of(outside)
    with swapping(desk.path(part), outside if part == "sub" else outside / "inner") as swaps:
        for _ in swaps:
            with suppress(UndoRefused, UndoFailed, OSError):
                restore(plan_undo(changes, desk.blobs, desk.bounds), force=True)
            for name in ("sub/old.txt", "sub/new.txt", "sub/inner/old.txt", "sub/inner/new.txt"):
                with suppress(OSError):  # as a tool would: beneath the workspace
                    put_beneath(desk.path(name), b"by a tool")
    assert contents_of(outside) == before


class SwappingBlobs(MemoryBlobs):
    """Puts a link in the place of a folder while an undo is under way, at a moment when it saves what it is about to replace."""

    def __init__(self, folder: Path, outside: Path) -> None:
        super().__init__()
        self._folder, self._outside, self.is_armed = folder, outside, False

    def put(self, mime: str, data: bytes) -> Blob:
        if self.is_armed and not self._folder.is_symlink():
            self._folder.rename(f"{self._folder}.moved")
            self._folder.symlink_to(self._outside)
        return super().put(mime, data)


def test_folders_that_a_refused_undo_had_made_are_taken_away_only_where_they_were_made(tmp_path: Path, outside: Path) -> None:
    work = tmp_path / "area" / "work"
    blobs = SwappingBlobs(work / "sub", outside)
    desk = Desk(work, blobs)
    put(desk.path("sub/gone/x/file"), "gone")
    desk.prompt()

    def do() -> None:
        desk.path("sub/gone/x/file").unlink()
        desk.path("sub/gone/x").rmdir()
        desk.path("sub/gone").rmdir()
        put(desk.path("second"), "by a tool")
        put(desk.path("third"), "by a tool")

    desk.call(do, "sub/gone/x/file", "second", "third")
    plan, before = desk.plan(), contents_of(outside)
    put(desk.path("third"), "somebody's")
    blobs.is_armed = True
    with pytest.raises(UndoRefused):
        restore(plan)
    assert desk.path("sub").is_symlink()
    assert contents_of(outside) == before


def test_a_mode_is_not_changed_through_a_hard_link(desk: Desk, outside: Path) -> None:
    put(desk.path("a"), "same")
    desk.path("a").chmod(0o600)
    desk.prompt()
    desk.call(lambda: desk.path("a").chmod(0o640), "a")
    put(outside / "cached", "same")
    (outside / "cached").chmod(0o640)
    desk.path("a").unlink()
    os.link(outside / "cached", desk.path("a"))
    before = contents_of(outside)
    desk.undo()
    assert contents_of(outside) == before
    assert desk.path("a").stat().st_mode & 0o777 == 0o600
    assert desk.path("a").read_text() == "same"


def test_content_is_not_put_back_through_a_hard_link(desk: Desk, outside: Path) -> None:
    put(desk.path("a"), "old")
    desk.prompt()
    desk.write("a", "the user's")
    desk.path("a").unlink()
    os.link(outside / "old.txt", desk.path("a"))
    before = contents_of(outside)
    desk.undo()
    assert contents_of(outside) == before
    assert desk.path("a").read_text() == "old"


@pytest.mark.parametrize("kind", ["FIFO", "socket", "folder", "link"])
def test_what_is_not_a_file_by_now_neither_blocks_nor_is_written_through(
    desk: Desk, outside: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(desk.path("a"), "old")
    desk.prompt()
    desk.write("a", "new")
    desk.path("a").unlink()
    with socket.socket(socket.AF_UNIX) as held:
        match kind:
            case "FIFO":
                os.mkfifo(desk.path("a"))
            case "socket":
                monkeypatch.chdir(desk.root)  # the path of a socket is short
                held.bind("a")
            case "folder":
                put(desk.path("a/inner"), "somebody's")
            case _:
                desk.path("a").symlink_to(outside / "old.txt")
        before = contents_of(outside)
        for force in (False, True):
            with suppress(UndoRefused):
                desk.undo(force=force)
        assert contents_of(outside) == before
    if kind == "link":
        assert (desk.path("a").is_symlink(), desk.path("a").read_text()) == (False, "old")


def test_what_a_killed_process_left_is_not_swept_behind_a_link(tmp_path: Path) -> None:
    kept, work, outside = tmp_path / "kept", tmp_path / "work", tmp_path / "outside"
    session_id = new_session_id()
    name = f"{temporary_prefix(process_mark())}000000000000.tmp"
    for folder in (kept, work / "sub", work / "other", outside):
        folder.mkdir(parents=True)
        (folder / name).write_text("")
    put(kept / log_name(session_id), "")
    note = WritingNote(str(kept / WRITING / session_id))
    note.add([str(work / "sub"), str(work / "other")])
    (work / "sub").rename(work / "moved")
    (work / "sub").symlink_to(outside)
    sweep_leftovers(str(kept))
    assert (outside / name).exists()
    assert not (work / "other" / name).exists()
