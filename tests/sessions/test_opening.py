"""Opening a log: new, after a crash, after damage, or against somebody's will."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crash.shim import FAULTS, Disk
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.log import encode_line, read_log
from dragoman.sessions.opening import create, open_for_writing, open_read_only
from dragoman.values.errors import InputError
from sessions.entries import SESSION, entry, some, started

LINES = [encode_line(each) for each in some(6)]
WHOLE = b"".join(LINES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf")


def side_files(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in sorted(path.parent.glob(f"{path.stem}.torn-*"))]


def resume_append_resume(path: Path, whole: int, tail: bytes) -> None:
    """SS02, from end to end."""
    told: list[str] = []
    journal, loaded = open_for_writing(path, told.append)
    assert loaded.entries == some(whole)
    assert loaded.torn == tail
    assert told == []
    assert bool(loaded.notices()) == bool(tail)
    if tail:
        assert Path(loaded.torn_file).read_bytes() == tail
        assert loaded.torn_file in loaded.notices()[0]
    journal.append(entry(whole + 1))
    asyncio.run(journal.sync())
    assert journal.is_saved
    journal.close()
    again, loaded = open_for_writing(path, told.append)
    again.close()
    assert loaded.entries == some(whole + 1)
    assert (loaded.torn, loaded.damage) == (b"", ())
    assert side_files(path) == ([tail] if tail else [])


def fresh(shelf: Path) -> Path:
    folder = shelf / os.urandom(8).hex()
    folder.mkdir()
    return folder / f"{SESSION}.jsonl"


def test_cut_at_every_byte_of_the_last_record(shelf: Path) -> None:
    """SS02."""
    before = b"".join(LINES[:-1])
    for kept in range(len(LINES[-1])):
        path = fresh(shelf)
        path.write_bytes(before + LINES[-1][:kept])
        resume_append_resume(path, 5, LINES[-1][:kept])


@given(tail=st.binary(min_size=1, max_size=200) | st.integers(1, 9000).map(bytes))
def test_a_tail_of_zeros_or_random_bytes(shelf: Path, tail: bytes) -> None:
    """SS02."""
    path = fresh(shelf)
    path.write_bytes(WHOLE + tail)
    resume_append_resume(path, 6, tail)


def test_each_torn_tail_has_a_side_file_of_its_own(path: Path) -> None:
    path.write_bytes(WHOLE)
    for number in range(1, 4):
        with path.open("ab") as file:
            file.write(b"torn %d" % number)
        journal, loaded = open_for_writing(path)
        journal.close()
        assert loaded.torn_file == str(path.parent / f"{SESSION}.torn-{number}")
    assert side_files(path) == [b"torn 1", b"torn 2", b"torn 3"]


def test_damage_in_the_middle_is_reported_and_the_file_kept(path: Path) -> None:
    """SS03: and the session goes on behind it."""
    data = WHOLE.replace(b"entry 3", b"entry X").replace(LINES[4], b"garbage\n")
    path.write_bytes(data)
    journal, loaded = open_for_writing(path)
    assert [each.seq for each in loaded.entries] == [1, 2, 4, 6]
    assert [(each.line_number, each.offset) for each in loaded.damage] == [(3, len(LINES[0] + LINES[1])), (5, sum(map(len, LINES[:4])))]
    assert len(loaded.notices()) == 2
    journal.append(entry(7))
    journal.close()
    assert path.read_bytes() == data + encode_line(entry(7))
    assert side_files(path) == []


def test_reading_changes_nothing(path: Path) -> None:
    path.write_bytes(WHOLE + b"torn")
    loaded = open_read_only(path)
    assert (loaded.entries, loaded.torn, loaded.torn_file) == (some(6), b"torn", "")
    assert "left as they are" in loaded.notices()[0]
    assert path.read_bytes() == WHOLE + b"torn"
    assert side_files(path) == []


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"torn", LINES[0][:-1], b"# not a session\nat all\n"])
def test_a_file_without_one_whole_record_is_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(InputError, match="no complete record"):
        open_for_writing(path)
    assert path.read_bytes() == data
    assert side_files(path) == []
    assert open_read_only(path).entries == ()


def test_no_such_session(path: Path) -> None:
    with pytest.raises(InputError, match=r"Store\.list"):
        open_for_writing(path)
    with pytest.raises(FileNotFoundError):
        open_read_only(path)


# --- the disk fails while a tail is set aside


@pytest.mark.parametrize("code", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("name", ["open", "write", "fdatasync", "fsync", "ftruncate"])
def test_whatever_fails_while_a_tail_is_set_aside_it_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    """SS04: at the n-th call for all n. The session opens, it is told, and saving goes on when it can."""
    tail = LINES[5][:40]
    for nth in range(1, 6):
        path = tmp_path / f"{nth}" / f"{SESSION}.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"".join(LINES[:5]) + tail)
        told: list[str] = []
        with monkeypatch.context() as patch:
            # The first file that is opened is the log itself: that is not what this is about.
            after = 1 if name == "open" else 0
            disk = Disk(fails=lambda call, number, nth=nth + after: code if call == name and number >= nth else 0, part=0.5).install(patch)
            journal, loaded = open_for_writing(path, told.append)
            assert loaded.entries == some(5)
            journal.append(entry(6))
            asyncio.run(journal.sync())
            reached = disk.counts.get(name, 0) >= nth + after
            assert bool(told) == reached
            disk.fails = lambda call, number: 0
            data = path.read_bytes()
            assert tail in data or tail in side_files(path), "the tail is gone"
            assert read_log(path).entries[:5] == some(5)
            assert tail + LINES[5] not in data, "glued to the torn record"

            journal.append(entry(7))
            asyncio.run(journal.sync())
            assert journal.is_saved
            journal.close()
        assert read_log(path).entries == some(7)
        assert read_log(path).damage == ()
        assert tail in side_files(path)


# --- one's own alone


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_whatever_the_umask_files_are_0600_and_directories_0700(tmp_path: Path) -> None:
    """SE02."""
    folder = tmp_path / "data" / "sessions" / "project-0123456789ab"
    path = folder / f"{SESSION}.jsonl"
    journal = create(path, started())
    FileBlobs(folder / "blobs").put("image/png", b"\x89PNG")
    asyncio.run(journal.sync())
    journal.close()
    with path.open("ab") as file:
        file.write(b"torn")
    open_for_writing(path)[0].close()
    made = {each.relative_to(tmp_path): stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
    assert len(made) == 7
    assert {mode for name, mode in made.items() if (tmp_path / name).is_dir()} == {0o700}
    assert {mode for name, mode in made.items() if (tmp_path / name).is_file()} == {0o600}


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_planted_where_a_session_is_to_be_made_is_refused(path: Path, tmp_path: Path, exists: bool) -> None:
    """SE02."""
    victim = tmp_path / "victim"
    if exists:
        victim.write_bytes(b"precious")
    path.symlink_to(victim)
    with pytest.raises(InputError, match="exists already"):
        create(path, started())
    assert victim.read_bytes() == b"precious" if exists else not victim.exists()


def test_a_link_planted_in_a_session_s_place_is_refused(path: Path, tmp_path: Path) -> None:
    """SE02."""
    victim = tmp_path / "victim.jsonl"
    victim.write_bytes(WHOLE + b"torn")
    path.symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link"):
        open_for_writing(path)
    with pytest.raises(InputError, match="symbolic link"):
        open_read_only(path)
    assert victim.read_bytes() == WHOLE + b"torn"


def test_a_link_planted_where_a_tail_is_to_be_kept_is_passed_by(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / f"{SESSION}.torn-1").symlink_to(victim)
    path.write_bytes(WHOLE + b"torn")
    journal, loaded = open_for_writing(path)
    journal.close()
    assert loaded.torn_file.endswith(".torn-2")
    assert not victim.exists()


def test_a_pipe_in_a_session_s_place_does_not_hold_us_up(path: Path) -> None:
    os.mkfifo(path)
    for opened in (open_for_writing, open_read_only):
        with pytest.raises(InputError, match="not a regular file"):
            opened(path)


def test_a_session_is_never_written_over(path: Path) -> None:
    path.write_bytes(WHOLE)
    with pytest.raises(InputError, match="never overwritten"):
        create(path, started())
    assert path.read_bytes() == WHOLE


@pytest.mark.parametrize("name", ["mkdir", "open"])
@pytest.mark.parametrize("code", [*FAULTS.values(), errno.EACCES])
def test_where_no_file_can_be_made_it_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> None:
    Disk(fails=lambda call, number: code if call == name else 0).install(monkeypatch)
    with pytest.raises(InputError, match=os.strerror(code)):
        create(tmp_path / "new" / f"{SESSION}.jsonl", started())


def test_a_file_in_a_directory_s_place(tmp_path: Path) -> None:
    (tmp_path / "project").write_text("a file")
    with pytest.raises(InputError):
        create(tmp_path / "project" / f"{SESSION}.jsonl", started())


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        path = tmp_path / f"{number}.jsonl"
        create(path, started()).close()
        open_for_writing(path)[0].close()
        path.write_bytes(random.Random(number).randbytes(50))
        with pytest.raises(InputError):
            open_for_writing(path)
        with pytest.raises(InputError):
            create(path, started())
    assert len(os.listdir("/proc/self/fd")) == before
