"""Caps: head and tail, the whole in a file, memory bounded, and no way of cutting makes a difference."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.base.beneath import Directory
from dragoman.tools import output
from dragoman.tools.output import CappedText, Outputs, remove_outputs
from swaps import contents_of, swapping

NOTE = re.compile(r"\n\[([\d,]+) characters left out here\. ([^\n]*)\]\n")

texts = st.text(st.characters(codec="utf-8"), max_size=400)
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def parted(capped: CappedText) -> tuple[str, str, str]:
    """Head, note, tail."""
    found = [*NOTE.finditer(capped.text)]
    assert found, capped.text
    # The output may hold such a line itself; ours counts what is missing.
    for each in found:
        if int(each[1].replace(",", "")) == capped.dropped_chars:
            return capped.text[: each.start()], each[2], capped.text[each.end() :]
    raise AssertionError(capped.text)


def spooled(outputs: Outputs, data: bytes, cuts: list[int]) -> tuple[str, str]:
    """The file, and what is said of it."""
    spool = outputs.spool("run")
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        spool.feed(data[start:end])
    spool.end()
    return spool.save()


# Text that is there as a whole


@in_a_folder
@given(text=texts, max_chars=st.integers(2, 50))
def test_head_and_tail_are_kept_and_the_file_holds_the_whole(tmp_path: Path, text: str, max_chars: int) -> None:
    capped = Outputs(tmp_path / "kept", max_chars).cap(text, "run")
    if len(text) <= max_chars:
        assert capped == CappedText(text)
        return
    head, note, tail = parted(capped)
    assert len(head) + len(tail) == max_chars
    assert text.startswith(head)
    assert text.endswith(tail)
    assert capped.dropped_chars == len(text) - max_chars
    assert capped.output_file in note
    assert Path(capped.output_file).read_bytes() == text.encode()


def test_the_note_is_no_longer_than_promised(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / ("long" * 20), 10)
    capped = outputs.cap("x" * 1000, "label" * 50)
    assert capped.output_file
    assert len(capped.text) <= 10 + outputs.note_chars


def test_text_with_half_a_character_is_kept_as_valid_unicode(tmp_path: Path) -> None:
    capped = Outputs(tmp_path, 4).cap("a\ud800" * 5, "run")
    assert Path(capped.output_file).read_text(encoding="utf-8") == "a\ufffd" * 5


def test_a_long_text_is_written_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_STEP_CHARS", 7)
    text = "añ🎉" * 50
    assert Path(Outputs(tmp_path, 10).cap(text, "run").output_file).read_text(encoding="utf-8") == text


# Output that arrives in pieces


@in_a_folder
@given(
    data=st.one_of(st.binary(max_size=300), texts.map(str.encode)),
    cuts=st.lists(st.integers(0, 400), max_size=30),
    max_chars=st.integers(2, 60),
)
def test_any_chunking_gives_the_same_file(tmp_path: Path, data: bytes, cuts: list[int], max_chars: int) -> None:
    outputs = Outputs(tmp_path / "kept", max_chars)
    (at_once, _), (in_pieces, _) = spooled(outputs, data, []), spooled(outputs, data, cuts)
    whole = data.decode("utf-8", "replace").replace("\0", "␀")
    assert Path(at_once).read_bytes().decode() == whole
    assert Path(in_pieces).read_bytes() == Path(at_once).read_bytes()


@in_a_folder
@given(text=st.text(st.sampled_from("aé漢🎉\n"), min_size=1500, max_size=3000), cuts=st.lists(st.integers(0, 9000), max_size=20))
def test_the_file_too_is_capped_to_head_and_tail(tmp_path: Path, text: str, cuts: list[int]) -> None:
    path, note = spooled(Outputs(tmp_path / "kept", 100, max_file_bytes=1000), text.encode(), cuts)
    assert "beginning and end" in note
    kept = Path(path).read_bytes()
    assert len(kept) <= 1000
    found = re.fullmatch(r"(.*)\n\[([\d,]+) bytes left out here[^\n]*\]\n(.*)", kept.decode(), re.DOTALL)
    assert found, "it is valid UTF-8 and says what is missing"
    assert text.startswith(found[1])
    assert text.endswith(found[3])
    assert len(found[1].encode()) + len(found[3].encode()) + int(found[2].replace(",", "")) == len(text.encode())
    assert len(found[1].encode()) > 290
    assert len(found[3].encode()) > 490


def test_a_file_that_just_fits_misses_nothing(tmp_path: Path) -> None:
    text = "x" * 800
    path, note = spooled(Outputs(tmp_path, 100, max_file_bytes=1000), text.encode(), [1, 299, 301])
    assert Path(path).read_text() == text
    assert "The whole output" in note


def test_feeding_tells_what_it_could_decode(tmp_path: Path) -> None:
    spool = Outputs(tmp_path).spool("run")
    assert [spool.feed("é".encode()[:1]), spool.feed("é".encode()[1:] + b"a\0")] == ["", "éa␀"]


def test_the_end_of_a_cut_character_is_shown(tmp_path: Path) -> None:
    spool = Outputs(tmp_path).spool("run")
    spool.feed("aé".encode()[:2])
    assert spool.end() == "\ufffd"


def test_memory_is_bounded_whatever_comes(tmp_path: Path) -> None:
    import tracemalloc

    spool = Outputs(tmp_path, 1000, max_file_bytes=1_000_000).spool("run")
    tracemalloc.start()
    piece = b"line of output\n" * 4000
    for _ in range(1000):  # 60 MB
        spool.feed(piece)
    for _ in range(200_000):
        spool.feed(b"abc")
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6_000_000
    assert held < 4_000_000
    spool.end()
    assert os.path.getsize(spool.save()[0]) <= 1_000_000


def test_nothing_is_written_before_it_must(tmp_path: Path) -> None:
    spool = Outputs(tmp_path / "kept", 100).spool("run")
    spool.feed(b"x" * 100)
    assert not (tmp_path / "kept").exists()
    spool.feed(b"x")
    assert (tmp_path / "kept").exists()
    spool.discard()
    assert not [*(tmp_path / "kept").iterdir()]


def test_what_is_discarded_after_the_end_leaves_no_file(tmp_path: Path) -> None:
    spool = Outputs(tmp_path / "kept", 100).spool("run")
    spool.feed(b"x" * 200)
    spool.end()
    assert os.path.exists(spool.save()[0])
    spool.discard()
    assert not [*(tmp_path / "kept").iterdir()]


# Who may read it


def test_files_and_folders_are_their_owners_alone(tmp_path: Path) -> None:
    """SE02: with umask 000 every file is 0600 and every directory 0700."""
    before = os.umask(0)
    try:
        capped = Outputs(tmp_path / "a" / "b", 10).cap("x" * 100, "../evil name\n")
    finally:
        os.umask(before)
    path = Path(capped.output_file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path.parent.parent)] == [0o700, 0o700]
    assert path.parent == tmp_path / "a" / "b"
    assert re.fullmatch(r"___evil_name_-[0-9a-f]{16}\.txt", path.name)


def test_names_cannot_be_guessed_and_nothing_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = Outputs(tmp_path / "kept", 10)
    assert outputs.cap("x" * 100, "run").output_file != outputs.cap("x" * 100, "run").output_file
    monkeypatch.setattr(os, "urandom", bytes)
    target = tmp_path / "target"
    (tmp_path / "kept" / f"run-{'0' * 16}.txt").symlink_to(target)
    capped = outputs.cap("x" * 100, "run")
    assert not target.exists()
    assert capped.output_file == ""
    assert "could not be kept: File exists" in capped.text


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "could not be kept: its directory" in Outputs(shared, 10).cap("x" * 100, "run").text
    shared.chmod(0o1777)
    assert Outputs(shared, 10).cap("x" * 100, "run").output_file


def test_a_link_put_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside, kept = tmp_path / "outside", tmp_path / "work" / "kept"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    outputs = Outputs(kept, 10)
    assert outputs.cap("x" * 100, "run").output_file
    kept.rename(tmp_path / "work" / "moved")
    kept.symlink_to(outside)
    assert "could not be kept" in outputs.cap("x" * 100, "run").text
    remove_outputs(outputs.directory, os.getpid())
    assert contents_of(outside) == {"mine.txt": (0o100644, b"mine")}


@pytest.mark.parametrize("part", ["kept", "kept/results"])
def test_nothing_outside_is_written_or_removed_while_links_come_and_go(tmp_path: Path, part: str) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    (outside / "results").mkdir(parents=True)
    for folder in (outside, outside / "results"):
        (folder / "mine.txt").write_text("mine")
    before = contents_of(outside)
    outputs = Outputs(work / "kept" / "results", 10)
    outputs.cap("x" * 100, "run")
    with swapping(work / part, outside) as swaps:
        for _ in swaps:
            outputs.cap("x" * 100, "run")
            outputs.spool("run").discard()
            remove_outputs(outputs.directory, os.getpid())
    assert contents_of(outside) == before


# Disks that fail


def test_a_full_disk_is_told_and_nothing_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Directory, "create", lambda directory, name, mode: os.open("/dev/full", os.O_WRONLY))
    monkeypatch.setattr(output, "_remove", lambda path: None)
    outputs = Outputs(tmp_path, 10)
    capped = outputs.cap("x" * 100_000, "run")
    head, note, tail = parted(capped)
    assert (head, tail, capped.output_file) == ("xxxxx", "xxxxx", "")
    for path, said in (("", note), spooled(outputs, b"x" * 100_000, [5, 50, 20_000]), spooled(outputs, b"x" * 20, [])):
        assert (path, said) == ("", "The whole output could not be kept: No space left on device.")


def test_a_disk_that_fills_up_meanwhile_is_left_as_it_was(tmp_path: Path) -> None:
    """With a real limit on file size, in a process of its own."""
    code = f"""
import resource
from dragoman.tools.output import Outputs
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
spool = Outputs({str(tmp_path / "kept")!r}, 100).spool("run")
for _ in range(100):
    spool.feed(b"x" * 5_000)
spool.end()
path, note = spool.save()
assert "could not be kept: File too large" in note, note
assert path == ""
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert not [*(tmp_path / "kept").iterdir()]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    capped = Outputs(tmp_path / "file" / "kept", 10).cap("x" * 100, "run")
    assert "could not be kept: Not a directory" in capped.text
    assert "could not be kept: Not a directory" in Outputs(tmp_path / "file", 10).cap("x" * 100, "run").text
