"""read_file: bounded, streamed, honest about what it left out, and never stuck on what is not a file."""

from __future__ import annotations

import os
import socket
import struct
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import beneath
from dragoman.tools import window
from dragoman.tools.files import MAX_CHARS
from dragoman.tools.seen import state_of
from dragoman.tools.textfile import decode
from dragoman.tools.window import LineWindow
from dragoman.tools.worker import never_stop
from dragoman.values.messages import Blob
from file_tools import Desk, done, refused, text_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(40)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


def test_a_file_is_shown_as_it_is_without_line_numbers(desk: Desk) -> None:
    desk.plant("a.py", "def f():\n    return 1\n")
    output = desk.run("read_file", file_path="a.py")
    assert done(output) == "def f():\n    return 1\n"
    assert output.display == "2 lines"
    desk.plant("b.py", "no newline at the end")
    assert desk.read("b.py") == "no newline at the end"


def test_a_long_file_is_cut_after_2000_lines_and_says_how_to_go_on(desk: Desk) -> None:
    desk.plant("long.txt", "".join(f"{number}\n" for number in range(1, 5001)))
    first = desk.read("long.txt")
    assert first.startswith("1\n2\n")
    assert first.endswith("\n2000\n[lines 1-2000 of 5000: go on with offset=2001]")
    assert desk.read("long.txt", offset=2001).startswith("2001\n")
    assert desk.read("long.txt", offset=4999) == "4999\n5000\n[lines 4999-5000 of 5000]"
    assert desk.read("long.txt", offset=10, limit=2) == "10\n11\n[lines 10-11 of 5000: go on with offset=12]"
    assert desk.read("long.txt", limit=3000).endswith("\n3000\n[lines 1-3000 of 5000: go on with offset=3001]")


def test_characters_are_bounded_at_whole_lines(desk: Desk) -> None:
    desk.plant("wide.txt", "".join(f"{number:03} {'x' * 995}\n" for number in range(1, 101)))
    text = desk.read("wide.txt", limit=100_000)
    assert len(text) <= MAX_CHARS
    assert text.endswith("x\n[lines 1-39 of 100: go on with offset=40]")
    assert desk.read("wide.txt", offset=40).startswith("040 ")


def test_a_line_too_long_is_cut_and_the_next_one_is_named(desk: Desk) -> None:
    desk.plant("min.js", "a" * 100_000 + "\nshort\n")
    text = desk.read("min.js")
    assert len(text) <= MAX_CHARS
    assert text.endswith("a\n[the beginning of line 1 of 2: see its rest with run_shell (cut -c, jq), or go on with offset=2]")
    assert desk.read("min.js", offset=2) == "short\n[lines 2-2 of 2]"


def test_an_offset_behind_the_end_is_an_error_that_tells_the_length(desk: Desk) -> None:
    desk.plant("a.txt", "1\n2\n3\n")
    assert refused(desk.run("read_file", file_path="a.txt", offset=4), "out_of_range") == "a.txt has only 3 lines: offset=4 is past its end"


def test_an_empty_file_is_said_to_be_empty(desk: Desk) -> None:
    desk.plant("empty")
    assert desk.read("empty") == "(the file is empty)"
    assert not desk.run("read_file", file_path="empty").is_error


@pytest.mark.parametrize("chunk_bytes", [1, 7, 4096])
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfwith a mark\n", "with a mark\n"),
        ("ünïcode 世界 🎉\n".encode(), "ünïcode 世界 🎉\n"),
        (
            b"\xff\xfe" + "sechzehn ü 🎉\r\n".encode("utf-16-le"),
            "sechzehn ü 🎉\n[encoded in utf-16-le; has CRLF line endings, which edit keeps]",
        ),
        (b"\xfe\xff" + "sechzehn ü 🎉\n".encode("utf-16-be"), "sechzehn ü 🎉\n[encoded in utf-16-be]"),
        ("caf\xe9 \x93x\x94\n".encode("latin-1"), "café “x”\n[not UTF-8: read as cp1252, characters may be wrong]"),
        (b"caf\xe9 \x81\n", "café \x81\n[not UTF-8: read as latin-1, characters may be wrong]"),
        (b"one\r\ntwo\rthree\r\n", "one\ntwo\rthree\n[has CRLF line endings, which edit keeps]"),
        (b"a\r", "a\r"),
        (b"\xff\xfe" + "half".encode("utf-16-le") + b"x", "half\ufffd\n[encoded in utf-16-le]"),
    ],
)
def test_encodings_are_recognised_and_told(desk: Desk, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, data: bytes, shown: str) -> None:
    monkeypatch.setattr(window, "CHUNK_BYTES", chunk_bytes)
    desk.plant("a.txt", data)
    assert desk.read("a.txt") == shown


def test_what_is_not_utf_8_further_on_is_read_as_edit_will_read_it(desk: Desk) -> None:
    desk.plant("a.txt", "é\n".encode() + b"x\n" * 3000 + b"\xe9\n")
    assert desk.read("a.txt", limit=1).startswith("Ã©\n")


def test_a_nul_far_behind_the_beginning_is_made_visible(desk: Desk) -> None:
    desk.plant("log", b"line\n" * 5000 + b"a\0b\n")
    assert desk.read("log", offset=5001).startswith("a␀b\n")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(100), "ELF program, 107 bytes"),
        (b"PK\x03\x04" + bytes(1996), "zip archive or document, 2.0 KB"),
        (b"text\0text", "unknown type, 9 bytes"),
    ],
)
def test_a_binary_file_is_named_by_type_and_size(desk: Desk, data: bytes, kind: str) -> None:
    desk.plant("thing", data)
    message = refused(desk.run("read_file", file_path="thing"), "binary")
    assert message.startswith(f"thing is a binary file ({kind}): use run_shell")
    assert not desk.seen.has(str(desk.root / "thing"))


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(30), "image/jpeg"),
        (b"GIF89a" + bytes(30), "image/gif"),
        (b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8 " + bytes(22), "image/webp"),
        (b"%PDF-1.7\n1 0 obj\n", "application/pdf"),
    ],
)
def test_pictures_and_pdfs_become_blobs_with_text_before_them(desk: Desk, data: bytes, mime: str) -> None:
    desk.plant("misnamed.txt", data)
    output = desk.run("read_file", file_path="misnamed.txt")
    assert done(output) == f"Binary content of type {mime} was processed."
    blob = output.content[1]
    assert isinstance(blob, Blob)
    assert (blob.mime, blob.size) == (mime, len(data))
    assert desk.blobs.get(blob.sha256) == data


def test_a_picture_too_large_is_refused_without_being_kept(desk: Desk) -> None:
    path = desk.plant("huge.png", PNG)
    os.truncate(path, 20_000_001)
    assert "20.0 MB" in refused(desk.run("read_file", file_path="huge.png"), "too_large")


def test_a_missing_file_names_those_like_it(desk: Desk) -> None:
    for name in ("src/application.py", "src/appliance.py", "src/other.rs"):
        desk.plant(name)
    message = refused(desk.run("read_file", file_path="src/aplication.py"), "not_found")
    assert message == "src/aplication.py does not exist; similar: src/application.py, src/appliance.py"
    assert "similar: src" in refused(desk.run("read_file", file_path="scr/application.py"), "not_found")
    assert "similar: src/other.rs" in refused(desk.run("read_file", file_path="src/Other.RS"), "not_found")
    assert "find it with glob" in refused(desk.run("read_file", file_path="src/zzzz"), "not_found")


def test_a_directory_is_to_be_listed(desk: Desk) -> None:
    (desk.root / "sub").mkdir()
    assert refused(desk.run("read_file", file_path="sub"), "is_directory") == "sub is a directory: list it with list_directory"
    refused(desk.run("read_file", file_path="."), "is_directory")
    desk.plant("a.txt", "x")
    refused(desk.run("read_file", file_path="a.txt/b.txt"), "not_directory")


def test_a_file_that_may_not_be_read_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.plant("a.txt", "x")

    def deny(self: Any, name: str) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(beneath.Directory, "open_for_reading", deny)
    assert refused(desk.run("read_file", file_path="a.txt"), "permission").startswith("a.txt: permission denied")


def test_fifos_sockets_and_devices_are_refused_without_waiting(desk: Desk) -> None:
    os.mkfifo(desk.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(desk.root)  # a socket's path must be short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for name, kind in (("fifo", "a FIFO"), ("socket", "a socket")):
            assert refused(desk.run("read_file", file_path=name), "not_regular").startswith(f"{name} is {kind}")
            refused(desk.run("write_file", file_path=name, content="x"), "not_regular")
    assert "a device" in refused(Desk(desk.root / "more", include=["/dev"]).run("read_file", file_path="/dev/null"), "not_regular")


def test_a_file_that_becomes_a_fifo_meanwhile_does_not_hang(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(desk.root / "fifo")
    regular = desk.plant("regular", "x").stat()
    monkeypatch.setattr(beneath.Directory, "stat", lambda self, name: regular)
    refused(desk.run("read_file", file_path="fifo"), "not_regular")


def test_a_name_that_is_not_utf_8_is_shown_escaped_and_accepted_so(desk: Desk) -> None:
    (desk.root / os.fsdecode(b"caf\xe9.txt")).write_text("content")
    assert desk.read("caf\\xe9.txt") == "content"
    assert "similar: caf\\xe9.txt" in refused(desk.run("read_file", file_path="caf.txt"), "not_found")


def test_intents_of_readers_are_titles_and_what_stands_against_it(desk: Desk) -> None:
    intent = desk.intend("read_file", file_path=str(desk.root / "src" / "a.py"))
    assert (intent.title, intent.problem, intent.writes) == ("read_file src/a.py", "", ())
    assert desk.intend("list_directory").title == "list_directory ."
    outside = desk.intend("read_file", file_path="../x\ny")
    assert outside.title == "read_file ../x\\ny"
    assert "outside the workspace" in outside.problem
    assert desk.intend("read_many_files", paths=["a", "*.py"]).title == "read_many_files a, *.py"


# --- memory --------------------------------------------------------------------------------------------------------------


def peak_bytes(desk: Desk, **args: Any) -> int:
    desk.read("huge", limit=1)  # what is imported on first use does not count
    tracemalloc.start()
    try:
        desk.read("huge", **args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line", [b"x" * 79 + b"\n", b"x" * 80], ids=["lines", "one line"])
def test_a_gigabyte_is_not_loaded(desk: Desk, line: bytes) -> None:
    path = desk.plant("huge", line * 20_000)
    os.truncate(path, 1 << 30)  # the rest is a hole, which is one long line
    text = desk.read("huge")
    assert "of a file of 1.1 GB" in text
    assert len(text) <= MAX_CHARS
    assert peak_bytes(desk) < 4_000_000


def test_skipping_through_a_large_file_takes_no_memory(desk: Desk) -> None:
    path = desk.plant("huge", b"first\n" * 2000)
    os.truncate(path, 64_000_000)
    with path.open("ab") as file:
        file.write(b"\nlast\n")
    assert desk.read("huge", offset=2002) == "last\n[lines 2002-2002 of 2002]"
    assert peak_bytes(desk, offset=2002) < 4_000_000


# --- any text, any window ------------------------------------------------------------------------------------------------


@given(
    text=st.text(alphabet="ab\n", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    first=st.integers(1, 8),
    lines=st.integers(1, 6),
    chars=st.integers(1, 20),
)
def test_a_window_is_the_same_however_the_text_comes(text: str, cuts: list[int], first: int, lines: int, chars: int) -> None:
    line_window = LineWindow(first, lines, chars)
    places = [0, *sorted(cuts), len(text)]
    for start, end in pairwise(places):
        line_window.feed(text[start:end])
    shown, last, is_cut = line_window.lines()
    every = text.splitlines(keepends=True)
    assert line_window.lines_fed == len(every)
    wanted = every[first - 1 : first - 1 + lines]
    if is_cut:
        assert shown == wanted[0][:chars]
        assert len(wanted[0].rstrip("\n")) > chars
        assert last == first
        return
    count = last - first + 1
    assert shown == "".join(wanted[:count])
    assert len(shown) <= chars + shown.endswith("\n")
    if count < len(wanted):  # one line more would not have fitted
        assert len("".join(wanted[: count + 1]).removesuffix("\n")) > chars


@given(data=st.binary(max_size=200), cut=st.sampled_from([1, 3, 64]))
def test_reading_agrees_with_what_edit_makes_of_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "CHUNK_BYTES", cut)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            reading = window.read_window(descriptor, os.fstat(descriptor), 1, 1000, 1000, never_stop)
        finally:
            os.close(descriptor)
    whole = decode(data)
    if whole is None:
        assert reading is None or reading.encoding.bom  # damaged text is shown, but not edited
        return
    assert reading is not None
    assert reading.encoding == whole.encoding
    assert reading.state == state_of(data)
    assert reading.text == whole.text.replace("\r\n", "\n").replace("\0", "␀")
    assert whole.encode(whole.text) == data


def test_text_of_any_bytes_is_valid_unicode(desk: Desk) -> None:
    desk.plant("odd", b"\xff\xfe\x00\xd8a\x00")
    assert text_of(desk.run("read_file", file_path="odd")) == "\ufffda\n[encoded in utf-16-le]"
