"""Blobs in files: whole or not at all, found again, and never at the price of the conversation."""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crash.shim import FAULTS, Disk, Rename, Sync, Write, crashes
from dragoman.sessions.blobs import FileBlobs
from dragoman.values.contracts import BlobStore
from dragoman.values.messages import Blob

DATA = b"\x89PNG\r\n" + bytes(range(40))
NAME = sha256(DATA).hexdigest()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blobs")


@given(data=st.binary(max_size=5000), mime=st.text(max_size=9))
def test_what_was_put_is_got(shelf: Path, data: bytes, mime: str) -> None:
    store: BlobStore = FileBlobs(shelf)
    blob = store.put(mime, data)
    assert blob == Blob(mime, sha256(data).hexdigest(), len(data))
    assert store.get(blob.sha256) == data
    assert FileBlobs(shelf).get(blob.sha256) == data


def test_the_content_is_on_disk_before_the_name_and_both_before_put_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk().install(monkeypatch)
    FileBlobs(tmp_path).put("x", DATA)
    kinds = [type(call) for call in disk.calls if isinstance(call, Write | Sync | Rename)]
    assert kinds == [Write, Sync, Rename, Sync]
    assert os.listdir(tmp_path) == [NAME]


def test_a_power_cut_at_any_moment_leaves_a_whole_blob_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    with monkeypatch.context() as patch:
        disk.install(patch)
        FileBlobs(tmp_path).put("x", DATA)
    disk.acknowledge(1)
    name = str(tmp_path / NAME)
    seen = set()
    for acknowledged, files in crashes(disk.calls, {}):
        assert files.get(name) in ((DATA,) if acknowledged else (DATA, None))
        seen.add(files.get(name))
    assert seen == {DATA, None}


def test_the_same_bytes_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk().install(monkeypatch)
    store = FileBlobs(tmp_path)
    for _ in range(3):
        store.put("image/png", DATA)
    FileBlobs(tmp_path).put("image/png", DATA)
    assert disk.counts["write"] == 1


def test_a_damaged_file_is_as_good_as_none_and_mended_by_the_next_put(tmp_path: Path) -> None:
    store = FileBlobs(tmp_path)
    store.put("x", DATA)
    (tmp_path / NAME).write_bytes(DATA[:-1] + b"!")
    assert store.get(NAME) is None
    again = FileBlobs(tmp_path)
    again.put("x", DATA)
    assert again.get(NAME) == DATA


@pytest.mark.parametrize("name", ["", "../secret", "/etc/passwd", "0" * 63, "0" * 65, NAME.upper(), "0" * 62 + "/.", "٠" * 64])
def test_only_a_digest_is_a_name(tmp_path: Path, name: str) -> None:
    store = FileBlobs(tmp_path)
    assert store.get(name) is None
    with pytest.raises(ValueError, match="SHA-256"):
        store.path_of(name)


def test_an_unknown_blob_is_none(tmp_path: Path) -> None:
    assert FileBlobs(tmp_path / "nowhere").get("0" * 64) is None
    assert not (tmp_path / "nowhere").exists()


def test_a_link_in_a_blob_s_place_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    """SE02."""
    victim = tmp_path / "victim"
    victim.write_bytes(DATA)
    folder = tmp_path / "blobs"
    folder.mkdir()
    (folder / NAME).symlink_to(victim)
    store = FileBlobs(folder)
    assert store.get(NAME) is None
    victim.write_bytes(b"precious")
    store.put("x", DATA)
    assert victim.read_bytes() == b"precious"
    assert not (folder / NAME).is_symlink()
    assert store.get(NAME) == DATA


@pytest.mark.parametrize("code", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("name", ["open", "mkdir", "write", "fdatasync", "replace", "fsync"])
def test_a_fault_is_told_and_the_bytes_are_kept_until_they_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """SS04: at the n-th call for all n."""
    for nth in range(1, 5):
        folder = tmp_path / str(nth) / "blobs"
        told: list[str] = []
        with monkeypatch.context() as patch:
            disk = Disk(fails=lambda call, number, nth=nth: code if call == name and number >= nth else 0, part=0.5).install(patch)
            store = FileBlobs(folder, told.append)
            first, second = store.put("x", DATA), store.put("y", b"other")
            reached = disk.counts.get(name, 0) >= nth
            if reached and name != "open":
                assert store.fault == os.strerror(code)
            assert bool(told) == bool(store.fault)
            assert (store.get(first.sha256), store.get(second.sha256)) == (DATA, b"other")
            if name != "mkdir":
                assert not [each for each in os.listdir(folder) if each.endswith(".tmp")], "half a blob stayed"
            disk.fails = lambda call, number: 0
            assert store.retry()
            assert store.fault == ""
            assert not told or "saved again" in told[-1]
        assert FileBlobs(folder).get(NAME) == DATA
        assert FileBlobs(folder).get(second.sha256) == b"other"


def test_a_full_disk_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    Disk(fails=lambda call, number: errno.ENOSPC if call == "write" else 0).install(monkeypatch)
    store = FileBlobs(tmp_path, told.append)
    for number in range(5):
        store.put("x", bytes([number]))
    assert len(told) == 1
    assert "NOT being saved: No space left on device" in told[0]
