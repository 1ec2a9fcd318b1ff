"""What the model has read, and in which state: by content, not by time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.tools.edit import UNSEEN_NOTE
from dragoman.tools.seen import WHOLE_FILE_BYTES, SeenFiles, new_hasher, state_of, state_of_large
from file_tools import Desk, done, refused


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


def test_a_file_is_unknown_known_stale_and_forgotten() -> None:
    seen = SeenFiles()
    assert "exists: read it" in seen.problem("/a", state_of(b"1"))
    seen.note("/a", state_of(b"1"))
    assert seen.problem("/a", state_of(b"1")) == ""
    assert "changed since it was read: read it again" in seen.problem("/a", state_of(b"2"))
    seen.note("/a", state_of(b"2"))
    assert seen.problem("/a", state_of(b"2")) == ""
    seen.forget("/a")
    seen.forget("/never")
    assert not seen.has("/a")
    assert "exists: read it" in seen.problem("/a", state_of(b"2"))


def test_a_state_is_the_same_whole_or_in_pieces() -> None:
    hasher = new_hasher()
    hasher.update(b"ab")
    hasher.update(b"c")
    assert hasher.hexdigest() == state_of(b"abc")


def test_a_change_that_leaves_size_time_and_inode_is_noticed(desk: Desk) -> None:
    """Coarse clocks and tools that set times must not hide a change."""
    path = desk.plant("a.txt", "one\n")
    before = path.stat()
    desk.read("a.txt")
    with path.open("r+b") as file:
        file.write(b"two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    refused(desk.run("write_file", file_path="a.txt", content="three"), "stale")
    assert UNSEEN_NOTE in done(desk.run("edit", file_path="a.txt", old_string="two", new_string="three"))


def test_a_touch_or_a_copy_of_the_same_content_is_no_change(desk: Desk) -> None:
    path = desk.plant("a.txt", "one\n")
    desk.read("a.txt")
    os.utime(path, ns=(1, 1))
    done(desk.run("edit", file_path="a.txt", old_string="one", new_string="two"))
    path.unlink()
    desk.plant("a.txt", "two\n")
    done(desk.run("edit", file_path="a.txt", old_string="two", new_string="three"))


def test_a_whole_file_is_replaced_only_when_all_of_it_was_read(desk: Desk) -> None:
    desk.plant("long.txt", "".join(f"line {number}\n" for number in range(5000)))
    desk.read("long.txt", offset=10, limit=1)
    told = refused(desk.run("write_file", file_path="long.txt", content="x\n"), "stale")
    assert told == (
        "long.txt was read only in part (lines 10-10): change parts of it with edit; to replace the whole of it, "
        "read the rest first, or remove the file with run_shell if nothing in it matters"
    )
    desk.read("long.txt", offset=4000)
    desk.read("long.txt", offset=1)
    assert "(lines 1-2000, 4000-5000)" in refused(desk.run("write_file", file_path="long.txt", content="x\n"), "stale")
    desk.read("long.txt", offset=2001)
    done(desk.run("write_file", file_path="long.txt", content="x\n"))


def test_half_of_a_line_is_not_the_whole_of_it(desk: Desk) -> None:
    desk.plant("one.json", "x" * 50_000)
    desk.read("one.json")
    assert "was read only in part:" in refused(desk.run("write_file", file_path="one.json", content="x"), "stale")


def test_an_edit_of_a_part_does_not_make_the_whole_known(desk: Desk) -> None:
    desk.plant("long.txt", "".join(f"line {number}\n" for number in range(50)))
    desk.read("long.txt", offset=10, limit=1)
    done(desk.run("edit", file_path="long.txt", old_string="line 43\n", new_string=""))
    refused(desk.run("write_file", file_path="long.txt", content="x\n"), "stale")
    desk.read("long.txt")
    done(desk.run("edit", file_path="long.txt", old_string="line 42\n", new_string=""))
    done(desk.run("write_file", file_path="long.txt", content="x\n"))


def test_reading_many_counts(desk: Desk) -> None:
    desk.plant("b.txt", "b")
    desk.run("read_many_files", paths=["*.txt"])
    done(desk.run("write_file", file_path="b.txt", content="c"))


def test_a_file_read_through_a_link_is_the_same_file(desk: Desk) -> None:
    desk.plant("real.txt", "one\n")
    (desk.root / "alias").symlink_to("real.txt")
    desk.read("alias")
    done(desk.run("edit", file_path="real.txt", old_string="one", new_string="two"))
    done(desk.run("edit", file_path="alias", old_string="two", new_string="three"))
    assert (desk.root / "alias").is_symlink()
    assert (desk.root / "real.txt").read_text() == "three\n"


def test_what_was_written_counts_as_seen_in_its_new_state(desk: Desk) -> None:
    done(desk.run("write_file", file_path="new.txt", content="one\n"))
    done(desk.run("edit", file_path="new.txt", old_string="one", new_string="two"))
    done(desk.run("write_file", file_path="new.txt", content="three\n"))
    desk.plant("new.txt", "by somebody else\n")
    refused(desk.run("write_file", file_path="new.txt", content="four\n"), "stale")


def test_a_failed_read_is_no_read(desk: Desk) -> None:
    desk.plant("thing", b"\0\1\2")
    refused(desk.run("read_file", file_path="thing"), "binary")
    refused(desk.run("write_file", file_path="thing", content="x"), "binary")
    assert not desk.seen.paths


def test_a_file_too_large_to_hash_goes_by_its_status(desk: Desk) -> None:
    path = desk.plant("large.log", b"line\n" * 2000)
    os.truncate(path, WHOLE_FILE_BYTES + 1)
    state = state_of_large(path.stat())
    desk.read("large.log")
    assert "was read only in part (lines 1-2000)" in desk.seen.problem(str(path), state)
    with path.open("r+b") as file:
        file.write(b"LINE")
    refused(desk.run("write_file", file_path="large.log", content="x"), "stale")
    desk.seen.note(str(path), state_of_large(path.stat()))  # as if somebody had read all of it
    assert "replaces a large file of 10.0 MB" in done(desk.run("write_file", file_path="large.log", content="x"))
    assert path.read_bytes() == b"x"
