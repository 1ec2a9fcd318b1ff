"""How far it is: bytes, rate and time left, by a clock that the test moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.local.weights.progress import Progress, SpeedMeter


class Watch:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.told: list[Progress] = []
        self.meter = SpeedMeter("tiny", 1_000, self.told.append, lambda: self.now_s)

    def after(self, seconds: float) -> Progress:
        self.now_s += seconds
        self.meter.show()
        return self.told[-1]


def test_rate_and_time_left() -> None:
    watch = Watch()
    watch.meter.enter("fetching", "index", verified_bytes=200)
    watch.meter.update(1, 100)
    assert watch.after(2) == Progress("fetching", "tiny", 300, 1_000, "index", 50.0, 14.0)


def test_while_nothing_comes_nothing_is_promised() -> None:
    watch = Watch()
    watch.meter.enter("fetching")
    assert watch.after(3).left_s is None


def test_the_rate_is_that_of_the_last_seconds() -> None:
    watch = Watch()
    watch.meter.enter("fetching")
    watch.meter.update(1, 500)
    watch.after(1)
    for _ in range(20):
        last = watch.after(1)
    assert last.bytes_per_s == 0


def test_unpacking_what_came_takes_nothing_back_but_a_failure_does() -> None:
    watch = Watch()
    watch.meter.enter("fetching")
    watch.meter.update(1, 400)
    watch.meter.update(1, 10)
    assert watch.after(1).done_bytes == 400
    watch.after(6)
    watch.after(6)
    watch.meter.drop(1)
    last = watch.after(1)
    assert (last.done_bytes, last.bytes_per_s) == (0, 0)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 900), st.floats(0, 10)), max_size=30))
def test_no_more_than_there_is_and_no_negative_rate(steps: list[tuple[int, int, float]]) -> None:
    watch = Watch()
    watch.meter.enter("fetching")
    for number, size, seconds in steps:
        watch.meter.update(number, size)
        told = watch.after(seconds)
        assert 0 <= told.done_bytes <= 1_000
        assert told.bytes_per_s >= 0
        assert told.left_s is None or told.left_s >= 0
