"""Session ids and the clock."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import ids
from dragoman.base.clock import now_ms
from dragoman.base.ids import is_beginning, is_session_id, named_by, new_session_id, short_ids

SESSION_IDS = st.lists(
    st.builds(
        lambda second, part: f"20261115-1201{second:02}-{part}",
        st.integers(0, 59),
        st.text("012f", min_size=8, max_size=8) | st.just("2026abcd"),
    ),
    max_size=30,
)
"""Few digits, so that many of them begin alike."""


def test_ids_are_new_sort_by_time_and_are_known_again() -> None:
    ids = [new_session_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(map(is_session_id, ids))
    assert sorted(each[:15] for each in ids) == [each[:15] for each in ids]


@pytest.mark.parametrize(
    "text", ["", "20261115-120102", "20261115-120102-1a2b3c4D", "../20261115-120102-1a2b3c4d", "٢0261115-120102-1a2b3c4d"]
)
def test_what_is_not_an_id_is_not_taken_for_one(text: str) -> None:
    assert not is_session_id(text)


def test_the_clock_counts_milliseconds() -> None:
    before, now, after = int(time.time() * 1000), now_ms(), int(time.time() * 1000)
    assert before <= now <= after


# Short ids


@given(SESSION_IDS)
def test_a_short_id_names_its_session_alone_and_so_does_every_longer_beginning(session_ids: list[str]) -> None:
    for session_id, short in short_ids(session_ids).items():
        part = session_id[-8:]
        longer = [part[:chars] for chars in range(len(short), 9)] if len(short) <= 8 else [session_id]
        assert all(is_beginning(each) and named_by(each, set(session_ids)) == [session_id] for each in longer)
        assert len(short) >= 4


@given(SESSION_IDS)
def test_a_short_id_is_as_short_as_can_be(session_ids: list[str]) -> None:
    for session_id, short in short_ids(session_ids).items():
        part = session_id[-8:]
        shorter = part[: len(short) - 1] if len(short) <= 8 else part
        assert len(short) == 4 or len(named_by(shorter, set(session_ids))) > 1


def test_a_new_id_leaves_the_short_ids_of_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([b"\x1a\x2b\xff\xff", b"\x1a\x2b\x00\x00", b"\x1a\x2c\x00\x00"])
    monkeypatch.setattr(ids.os, "urandom", lambda count: next(drawn))
    assert new_session_id(["20261115-120102-1a2b3c4d"]).endswith("-1a2c0000")


def test_a_new_id_is_found_even_where_every_short_id_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids.os, "urandom", lambda count: b"\x1a\x2b\xff\xff")
    assert is_session_id(new_session_id(["20261115-120102-1a2b3c4d"]))
