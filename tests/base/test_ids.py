"""Session ids and the clock."""

from __future__ import annotations

import time

import pytest

from dragoman.base.clock import now_ms
from dragoman.base.ids import is_session_id, new_session_id


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
    assert abs(now_ms() - time.time() * 1000) < 1000
