"""write_file: whole files, only over what was read, and never anywhere else."""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from file_tools import Desk, done, refused


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


def test_a_new_file_is_created_with_its_directories(desk: Desk) -> None:
    args = {"file_path": "src/deep/a.py", "content": "one\ntwo\n"}
    diff = "--- /dev/null\n+++ b/src/deep/a.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    intent = desk.intend("write_file", **args)
    path = str(desk.root / "src" / "deep" / "a.py")
    assert (intent.title, intent.preview, intent.writes, intent.problem) == ("write_file src/deep/a.py", diff, (path,), "")
    assert os.listdir(desk.root) == []
    output = desk.run("write_file", **args)
    assert done(output) == "created src/deep/a.py (+2 -0 lines)"
    assert output.display == f"+2 -0 src/deep/a.py\n{diff}".rstrip("\n")
    assert output.changed == (path,)
    assert Path(path).read_text() == "one\ntwo\n"


def test_an_existing_file_must_have_been_read_and_be_unchanged(desk: Desk) -> None:
    desk.plant("a.txt", "old\n")
    args = {"file_path": "a.txt", "content": "new\n"}
    problem = "a.txt exists: read it with read_file before you replace the whole of it, or change parts of it with edit"
    assert desk.intend("write_file", **args).problem == problem
    assert refused(desk.run("write_file", **args), "unread") == problem
    desk.read("a.txt")
    desk.plant("a.txt", "old, changed\n")
    problem = "a.txt changed since it was read: read it again before you replace the whole of it"
    assert desk.intend("write_file", **args).problem == problem
    assert refused(desk.run("write_file", **args), "stale") == problem
    desk.read("a.txt")
    assert done(desk.run("write_file", **args)) == "changed a.txt (+1 -1 lines)"


def test_an_empty_file_holds_nothing_to_lose(desk: Desk) -> None:
    desk.plant("empty")
    done(desk.run("write_file", file_path="empty", content="x"))


def test_the_same_content_is_not_written_again(desk: Desk) -> None:
    path = desk.plant("a.txt", "same\n")
    desk.read("a.txt")
    before = path.stat()
    output = desk.run("write_file", file_path="a.txt", content="same\n")
    assert "nothing was written" in done(output)
    assert output.changed == ()
    assert path.stat() == before


@pytest.mark.parametrize(
    ("old", "content", "new"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"a\nb\r\n", "x\ny\n", b"x\ny\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\x00\r\x00\n\x00", "b\n", b"\xff\xfeb\x00\r\x00\n\x00"),
        (b"caf\xe9", "na\xefve", b"na\xefve"),
        (b"caf\xe9", "世", "世".encode()),
    ],
)
def test_line_endings_and_encoding_are_kept(desk: Desk, old: bytes, content: str, new: bytes) -> None:
    path = desk.plant("a.txt", old)
    desk.run("read_file", file_path="a.txt")
    done(desk.run("write_file", file_path="a.txt", content=content))
    assert path.read_bytes() == new


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\nno NUL in it\n", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "image/png"),
        (b"PK\x03\x04\0\0", "zip archive or document"),
    ],
)
def test_text_does_not_replace_a_binary_file(desk: Desk, data: bytes, kind: str) -> None:
    path = desk.plant("report", data)
    desk.run("read_file", file_path="report")
    told = refused(desk.run("write_file", file_path="report", content="text\n"), "binary")
    assert told == (
        f"report is a binary file ({kind}, {len(data)} bytes), which text would replace: "
        "write to another name, or remove it first with run_shell if that is meant"
    )
    assert path.read_bytes() == data


def test_a_change_of_line_endings_alone_is_visible(desk: Desk) -> None:
    desk.plant("a.txt", "a\n")
    desk.read("a.txt")
    assert "+a<U+000D>\n" in desk.intend("write_file", file_path="a.txt", content="a\r\n").preview


def test_what_becomes_of_an_encoding_is_told(desk: Desk) -> None:
    desk.plant("a.txt", b"caf\xe9")
    desk.read("a.txt")
    assert "was encoded in cp1252, is now UTF-8" in done(desk.run("write_file", file_path="a.txt", content="世"))


def test_hard_links_are_told_to_part(desk: Desk) -> None:
    path = desk.plant("a.txt", "old")
    os.link(path, desk.root / "b.txt")
    desk.read("a.txt")
    assert "it had 2 hard links: the other names keep the old content" in done(desk.run("write_file", file_path="a.txt", content="new"))
    assert (desk.root / "b.txt").read_text() == "old"


def test_write_protection_is_respected(desk: Desk) -> None:
    path = desk.plant("a.txt", "old")
    path.chmod(0o444)
    desk.read("a.txt")
    refused(desk.run("write_file", file_path="a.txt", content="new"), "permission")
    refused(desk.run("edit", file_path="a.txt", old_string="old", new_string="new"), "permission")
    assert path.read_text() == "old"


def test_directories_and_what_lies_beneath_files_are_refused(desk: Desk) -> None:
    desk.plant("dir/a.txt", "x")
    refused(desk.run("write_file", file_path="dir", content="x"), "is_directory")
    refused(desk.run("write_file", file_path=".", content="x"), "is_directory")
    refused(desk.run("write_file", file_path="dir/a.txt/b", content="x"), "not_directory")
    assert "half a surrogate pair" in refused(desk.run("write_file", file_path="new", content="a\ud800"), "invalid")
    assert not (desk.root / "new").exists()


def test_a_link_inside_stays_a_link_and_its_target_is_written(desk: Desk) -> None:
    desk.plant("real/a.txt", "old")
    (desk.root / "alias").symlink_to("real/a.txt")
    desk.read("alias")
    output = desk.run("write_file", file_path="alias", content="new")
    assert output.changed == (str(desk.root / "real" / "a.txt"),)
    assert (desk.root / "alias").is_symlink()
    assert (desk.root / "real" / "a.txt").read_text() == "new"


def test_a_long_preview_is_bounded_and_says_so(desk: Desk) -> None:
    content = "".join(f"line {number}\n" for number in range(50_000))
    intent = desk.intend("write_file", file_path="a.txt", content=content)
    assert len(intent.preview) < 101_000
    assert "more lines, which are not shown]" in intent.preview[-100:]
    output = desk.run("write_file", file_path="a.txt", content=content)
    assert output.display.startswith("+50000 -0 a.txt\n")


def test_a_name_cannot_forge_lines_of_a_title_or_diff(desk: Desk) -> None:
    intent = desk.intend("write_file", file_path="a\n+++ b", content="x")
    assert intent.title == "write_file a\\n+++ b"
    assert "a\n" not in intent.preview


def test_fs04_a_directory_swapped_for_a_link_never_lets_a_write_out(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """security_dev FS04: 500 writes while another thread swaps `x` between a directory and a link to the outside."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # waiting for the disk would only make the race rarer
    evil = tmp_path / "w-evil"
    evil.mkdir()
    (evil / "secret.txt").write_text("secret")
    (desk.root / "x").mkdir()
    is_over = threading.Event()
    swaps = itertools.count()

    def swap() -> None:
        place, aside = desk.root / "x", desk.root / "aside"
        while not is_over.is_set():
            lost = desk.root / f"lost{next(swaps)}"
            # A write may make the directory anew at any moment, so any step may find something else than the last one left.
            steps = [
                lambda: place.rename(aside),
                lambda: place.symlink_to(evil),
                place.unlink,
                lambda: aside.rename(place),
                lambda lost=lost: aside.rename(lost),
            ]
            for step in steps:
                with suppress(OSError):
                    step()

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        outputs = [desk.run("write_file", file_path="x/f.txt", content=str(number)) for number in range(500)]
        reads = [desk.run("read_file", file_path="x/secret.txt") for _ in range(100)]
    finally:
        is_over.set()
        swapping.join()
    assert os.listdir(evil) == ["secret.txt"]
    assert next(swaps) > 50
    assert {output.error_type for output in outputs} <= {"", "outside", "not_directory", "symlink", "not_found", "stale", "unread", "io"}
    assert all(read.is_error for read in reads)
    assert desk.leftovers() == []
