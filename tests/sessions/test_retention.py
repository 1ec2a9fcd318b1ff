"""Housekeeping: off unless asked for, and only for what was understood to its last byte."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sessions import store as store_module
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.log import encode_line
from dragoman.sessions.retention import believe_clock, choose_expired
from dragoman.sessions.store import FileStore
from dragoman.sessions.stores import Store
from dragoman.sessions.summary import KNOWN_FORMAT, Summary
from dragoman.values.errors import InputError
from dragoman.values.messages import Message, user
from dragoman.values.record import Said, Unknown
from sessions.stores import add, add_to, any_store, append, append_to, kind, session_id, store, workspace

__all__ = ["any_store", "kind", "store", "workspace"]

DAY_MS = 24 * 60 * 60 * 1000


def add_old(store: FileStore, workspace: Path, number: int, days: float) -> Path:
    """A session that was used last so many days ago."""
    return add(store, workspace, number, started_ms=int(time.time() * 1000 - days * DAY_MS) - number * 1_000_000 - 4000)


def add_old_to(store: Store, workspace: Path, number: int, days: float) -> str:
    return add_to(store, workspace, number, started_ms=int(time.time() * 1000 - days * DAY_MS) - number * 1_000_000 - 4000)


def left(store: Store) -> set[str]:
    return {each.session_id for each in store.list()}


def test_without_a_rule_everything_stays(any_store: Store, workspace: Path) -> None:
    add_old_to(any_store, workspace, 1, 10_000)
    assert any_store.delete_expired().session_ids == ()
    assert left(any_store) == {session_id(1)}


def test_what_was_not_used_for_so_long_goes(any_store: Store, workspace: Path) -> None:
    for number, days in enumerate((0.5, 29.9, 30.1, 400)):
        add_old_to(any_store, workspace, number, days)
    removed = any_store.delete_expired(age_days=30)
    assert set(removed.session_ids) == {session_id(2), session_id(3)}
    assert left(any_store) == {session_id(0), session_id(1)}
    assert removed.freed_bytes > 0


def test_the_newest_so_many_stay_in_each_folder(any_store: Store, workspace: Path, tmp_path: Path) -> None:
    for number, days in enumerate((5, 1, 3, 2, 4)):
        add_old_to(any_store, workspace, number, days)
    add_old_to(any_store, tmp_path, 9, 100)
    any_store.delete_expired(count=2)
    assert left(any_store) == {session_id(1), session_id(3), session_id(9)}
    any_store.delete_expired(workspace, count=0)
    assert left(any_store) == {session_id(9)}


def test_the_conversation_of_a_called_agent_goes_with_the_session_it_was_called_in() -> None:
    def summary(name: str, parent: str = "") -> Summary:
        return Summary(name, updated_ms=1, entries=2, format=KNOWN_FORMAT, parent=parent)

    found = [summary("new.1", "new"), summary("new.2", "new.1"), summary("new"), summary("old.1", "old"), summary("lost.1", "lost")]
    found += [summary("old"), summary("own", "own")]  # the last has a damaged head
    assert {each.session_id for each in choose_expired(found, 1, count=1)} == {"old", "old.1"}
    assert {each.session_id for each in choose_expired(found, 1, count=0)} == {"old", "old.1", "new", "new.1", "new.2"}


def test_an_old_session_that_was_used_again_stays(any_store: Store, workspace: Path) -> None:
    path = add_old_to(any_store, workspace, 1, 100)
    append_to(any_store, path, Said(5, int(time.time() * 1000), user("again"), by="person"))
    assert any_store.delete_expired(age_days=30).session_ids == ()


def test_what_is_open_stays(any_store: Store, workspace: Path) -> None:
    add_old_to(any_store, workspace, 0, 10)
    path = add_old_to(any_store, workspace, 1, 100)
    add_old_to(any_store, workspace, 2, 100)
    session = any_store.open(path)
    assert any_store.delete_expired(age_days=30).session_ids == (session_id(2),)
    session.journal.close()
    assert any_store.delete_expired(age_days=30).session_ids == (session_id(1),)


@pytest.mark.parametrize(
    "harm", ["a byte", "garbage line", "torn tail", "no head", "later kind", "later format", "empty", "foreign", "side file"]
)
def test_what_cannot_be_read_to_the_end_stays(store: FileStore, workspace: Path, harm: str) -> None:
    path = add_old(store, workspace, 1, 100)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    match harm:
        case "a byte":
            path.write_bytes(whole.replace(b"Answer", b"Answfr"))
        case "garbage line":
            path.write_bytes(whole + b"garbage\n" + encode_line(Said(9, 9, user("x"), by="person")))
        case "torn tail":
            path.write_bytes(whole + b'{"seq":9')
        case "no head":
            path.write_bytes(b"".join(lines[1:]))
        case "later kind":
            append(path, Unknown(9, 9, '{"seq":9,"timestamp_ms":9,"kind":"of_tomorrow"}'))
        case "later format":
            body = lines[0].rsplit(b',"crc"', 1)[0] + b',"format":2}'
            path.write_bytes(encode_line(Unknown(1, 1, body.decode())) + b"".join(lines[1:]))
        case "empty":
            path.write_bytes(b"")
        case "foreign":
            path.write_bytes(b'{"type":"user","message":"from another program"}\n')
        case "side file":
            path.with_name(f"{path.stem}.torn-1").write_bytes(b"what was cut off")
    before = path.read_bytes()
    os.utime(path, (0, 0))
    assert store.delete_expired(age_days=30, count=0).session_ids == ()
    assert path.read_bytes() == before


def test_a_byte_that_changed_behind_the_indexs_back_saves_the_session(store: FileStore, workspace: Path) -> None:
    path = add_old(store, workspace, 1, 100)
    store.list()
    about = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Answer", b"Answfr"))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert store.delete_expired(age_days=30).session_ids == ()
    assert path.exists()


def test_blobs_go_with_the_last_session_that_names_them(store: FileStore, workspace: Path) -> None:
    blobs = FileBlobs(Path(store.directory_of(workspace)) / "blobs")
    shared, own = blobs.put("text/plain", b"shared"), blobs.put("text/plain", b"own")
    for number, named in ((1, (shared, own)), (2, (shared, own)), (3, (shared,))):
        append(add_old(store, workspace, number, 100 - number), Said(5, 5, Message("user", named), by="person"))
    assert store.delete_expired(count=1).blobs == 1
    assert os.listdir(blobs.directory) == [shared.sha256]


@pytest.mark.parametrize("rule", [{"age_days": 0}, {"age_days": -1}, {"count": -1}])
def test_a_rule_that_makes_no_sense_deletes_nothing(store: FileStore, workspace: Path, rule: dict[str, int]) -> None:
    add_old(store, workspace, 1, 100)
    with pytest.raises(InputError):
        store.delete_expired(**rule)
    assert left(store) == {session_id(1)}


# --- the clock


def test_one_start_with_the_clock_years_ahead_deletes_nothing(store: FileStore, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of that start is written by the same clock, and so is its file."""
    for number, days in enumerate((1, 5, 20, 29)):
        add_old(store, workspace, number, days)
    ahead_ms = int(time.time() * 1000) + 3_000 * DAY_MS
    monkeypatch.setattr(store_module, "now_ms", lambda: ahead_ms)
    for number in (7, 8, 9):  # an afternoon of it
        add(store, workspace, number, started_ms=ahead_ms - number * 1_000_000 - 10_000)
    removed = store.delete_expired(age_days=30)
    assert removed.session_ids == ()
    assert "the clock" in removed.notice
    monkeypatch.undo()
    add_old(store, workspace, 10, 0)
    right_again = store.delete_expired(age_days=30)
    assert (right_again.session_ids, right_again.notice) == ((), ""), "what is dated in the future says nothing"


def test_what_was_old_before_the_clock_jumped_goes_all_the_same(store: FileStore, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, days in enumerate((1, 20, 60)):
        add_old(store, workspace, number, days)
    ahead_ms = int(time.time() * 1000) + 3_000 * DAY_MS
    monkeypatch.setattr(store_module, "now_ms", lambda: ahead_ms)
    assert store.delete_expired(age_days=30).session_ids == (session_id(2),)


def test_a_long_pause_is_believed_after_a_week_of_use(store: FileStore, workspace: Path) -> None:
    for number, days in enumerate((200, 180, 0)):
        add_old(store, workspace, number, days)
    assert store.delete_expired(age_days=30).session_ids == ()
    add_old(store, workspace, 5, 7.1)
    removed = store.delete_expired(age_days=30)
    assert set(removed.session_ids) == {session_id(0), session_id(1)}
    assert removed.notice == ""


def test_a_folder_that_was_not_used_for_long_says_nothing_about_the_clock(store: FileStore, workspace: Path, tmp_path: Path) -> None:
    add_old(store, workspace, 1, 200)
    for number, days in enumerate((190, 170, 145, 120, 95, 70, 45, 20, 0), 2):
        add_old(store, tmp_path, number, days)
    assert session_id(1) in store.delete_expired(workspace, age_days=30).session_ids


@given(st.lists(st.integers(0, 10_000)), st.integers(0, 10_000), st.sampled_from([0.5, 1, 7, 30, 365]))
def test_whatever_the_clock_says_no_age_is_counted_from_a_time_nobody_used(days: list[int], now: int, age_days: float) -> None:
    believed = believe_clock([day * DAY_MS for day in days], now * DAY_MS, age_days)
    assert believed.now_ms == now * DAY_MS or believed.now_ms // DAY_MS in days
    assert believed.now_ms <= now * DAY_MS
