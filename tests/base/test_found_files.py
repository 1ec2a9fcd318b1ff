"""The door to files that others have prepared: only regular files, never waited for, never more than the limit."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.found_files import NotRegularFile, NotUtf8File, TooLargeFile, open_found, read_found, read_found_text, read_opened
from special_files import inside, watchdog

NOT_FILES = ("pipe", "socket", "zero", "full", "terminal")


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    with watchdog():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "full").symlink_to("/dev/full")
    (tmp_path / "terminal").symlink_to("/dev/ptmx")
    (tmp_path / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        with inside(tmp_path):
            listening.bind("socket")
        yield tmp_path


@pytest.mark.parametrize("name", NOT_FILES)
@pytest.mark.parametrize("through_link", [False, True])
def test_what_is_not_a_file_is_refused_in_words(folder: Path, name: str, through_link: bool) -> None:
    path = folder / name
    if through_link:
        path = folder / "link"
        path.symlink_to(name)
    for read in (lambda: open_found(str(path)), lambda: read_found(str(path), 10, cut=True), lambda: read_found_text(str(path), 10)):
        with pytest.raises(NotRegularFile) as refused:
            read()
        assert refused.value.strerror
        assert {"pipe": "named pipe", "socket": "socket"}.get(name, "device") in refused.value.strerror
        assert refused.value.filename == str(path)


def test_a_directory_and_what_is_missing_are_told_apart(folder: Path) -> None:
    with pytest.raises(IsADirectoryError, match="it is a directory"):
        read_found(str(folder / "directory"), 10)
    with pytest.raises(FileNotFoundError):
        read_found(str(folder / "none"), 10)
    for name in ("a\0b", "a\ud800b"):
        with pytest.raises(OSError, match="no file can have this name"):
            read_found(name, 10)


def test_links_are_followed_unless_they_must_not_be(folder: Path) -> None:
    (folder / "file").write_bytes(b"words")
    (folder / "link").symlink_to("file")
    assert read_found(str(folder / "link"), 10) == b"words"
    with pytest.raises(OSError, match="symbolic link"):
        read_found(str(folder / "link"), 10, follow=False)
    assert read_found(str(folder / "file"), 10, follow=False) == b"words"


def test_a_name_is_opened_in_a_directory_that_is_held(folder: Path) -> None:
    (folder / "directory" / "file").write_bytes(b"words")
    held = os.open(folder / "directory", os.O_RDONLY)
    try:
        assert read_found("file", 10, dir_fd=held, follow=False) == b"words"
    finally:
        os.close(held)


def test_a_descriptor_is_not_left_open_or_inherited(folder: Path) -> None:
    (folder / "file").write_bytes(b"words")
    before = len(os.listdir("/proc/self/fd"))
    for name in (*NOT_FILES, "directory", "none"):
        with pytest.raises(OSError):
            read_found(str(folder / name), 10)
    with pytest.raises(TooLargeFile):
        read_found(str(folder / "file"), 1)
    assert len(os.listdir("/proc/self/fd")) == before
    descriptor = open_found(str(folder / "file"))
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_a_file_with_a_lease_is_not_waited_for(folder: Path) -> None:
    path = folder / "leased"
    path.write_bytes(b"words")
    script = "import fcntl, os, sys, signal\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nf = os.open(sys.argv[1], os.O_RDWR)\n"
    script += "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('held', flush=True)\nsys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin
    assert holder.stdout
    try:
        if holder.stdout.readline() != b"held\n":
            pytest.skip("this file system has no leases")
        with pytest.raises(NotRegularFile, match="wait for another program"):
            read_found(str(path), 10)
    finally:
        holder.stdin.close()
        holder.wait(60)
        holder.stdout.close()


def test_a_huge_file_costs_no_memory(folder: Path) -> None:
    path = folder / "huge"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooLargeFile, match="larger than 1,000 bytes"):
        read_found(str(path), 1_000)
    assert read_found(str(path), 1_000, cut=True) == bytes(1_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_a_file_that_tells_no_size_is_bounded_too() -> None:
    with pytest.raises(TooLargeFile):
        read_found("/proc/self/maps", 100)
    assert len(read_found("/proc/self/maps", 100, cut=True)) == 100


def test_a_file_that_may_not_be_read_says_so(folder: Path) -> None:
    path = folder / "unreadable"
    path.write_text("words")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    with pytest.raises(PermissionError):
        read_found(str(path), 10)


def test_a_byte_order_mark_is_no_text(folder: Path) -> None:
    (folder / "file").write_bytes(b"\xef\xbb\xbfwords")
    assert read_found_text(str(folder / "file"), 100) == "words"


def test_what_is_not_utf8_is_told_with_its_place(folder: Path) -> None:
    (folder / "file").write_bytes(b"\xef\xbb\xbfwor\xffds")
    with pytest.raises(NotUtf8File, match=r"not UTF-8 text \(byte 6\)"):
        read_found_text(str(folder / "file"), 100)
    assert read_found_text(str(folder / "file"), 100, errors="replace") == "wor�ds"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.integers(0, 80))
def test_a_text_that_is_cut_is_the_beginning_of_the_text(tmp_path_factory: pytest.TempPathFactory, text: str, limit: int) -> None:
    path = tmp_path_factory.mktemp("texts", numbered=True) / "file"
    data = text.encode()
    path.write_bytes(data)
    read = read_found_text(str(path), limit, cut=True)
    assert text.removeprefix("\ufeff").startswith(read)
    assert read == data[:limit].decode("utf-8", "ignore").removeprefix("\ufeff")
    assert read_found(str(path), limit, cut=True) == data[:limit]
    if len(data) <= limit:
        assert read_found(str(path), limit) == data
    else:
        with pytest.raises(TooLargeFile):
            read_found(str(path), limit)


def test_what_is_opened_is_read_on_from_where_it_stands(folder: Path) -> None:
    (folder / "file").write_bytes(b"words and more")
    descriptor = open_found(str(folder / "file"))
    try:
        assert (read_opened(descriptor, 5), read_opened(descriptor, 4), read_opened(descriptor, 100)) == (b"words", b" and", b" more")
        assert not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_WRONLY
    finally:
        os.close(descriptor)
