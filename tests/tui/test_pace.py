"""A slow line: no more is sent than it soon shows, so that a key is seen to be answered. Counted in bytes and in virtual time."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import termios
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tui.keys import ANSWER, Key, KeyReader, Paste
from dragoman.tui.pace import LOST_S, MUTE_S, Pace
from program import Place, service


class Line:
    """A terminal behind a line of so many bytes a second, and `way_s` there and back."""

    def __init__(self, bytes_per_s: float, way_s: float = 0.0, *, answers: bool = True) -> None:
        self.pace = Pace()
        self.now_s = 0.0
        self.delay_s = 0.0
        """How long what was written last took to be shown."""
        self._rate, self._way_s, self._answers = bytes_per_s, way_s, answers
        self._free_s = 0.0
        self._answer_s: float | None = None

    def run(self, seconds: float, frame_bytes: int) -> int:
        """Frames of that size, as often as there is room. Returns how many bytes were shown."""
        until_s, shown = self.now_s + seconds, 0
        while self.now_s < until_s:
            self.now_s += 0.02
            if self._answer_s is not None and self.now_s >= self._answer_s:
                self._answer_s = None
                self._ask(self.pace.answer(self.now_s))
            room = self.pace.room(self.now_s)
            if room is None or room > 0:
                self._free_s = max(self._free_s, self.now_s) + frame_bytes / self._rate
                self.delay_s = self._free_s - self.now_s
                shown += frame_bytes
                self._ask(self.pace.write(frame_bytes, self.now_s))
        return shown

    def _ask(self, asks: bool) -> None:
        if asks and self._answers:
            self._answer_s = max(self._free_s, self.now_s) + self._way_s


def test_on_a_slow_line_nothing_waits_for_long_and_the_line_is_used() -> None:
    line = Line(1_200)
    line.run(3, 100)
    shown = 0
    for _ in range(50):
        shown += line.run(0.2, 100)
        assert line.delay_s < 0.8
    assert shown > 0.5 * 10 * 1_200
    assert line.pace.is_slow


@pytest.mark.parametrize("way_s", [0.0, 0.05, 0.3, 0.6])
def test_on_a_usual_line_there_is_no_bound_however_long_the_way(way_s: float) -> None:
    line = Line(1_000_000, way_s)
    line.run(12, 400)
    assert line.pace.room(line.now_s) is None
    assert not line.pace.is_slow


def test_a_terminal_that_answers_nothing_is_not_waited_for() -> None:
    line = Line(1_000_000, answers=False)
    line.run(MUTE_S + 0.1, 400)
    assert line.pace.room(line.now_s) is None
    assert line.run(1, 400) >= 19_000


@given(st.lists(st.tuples(st.integers(1, 5_000), st.floats(0, 3)), max_size=60))
def test_whatever_comes_when_there_is_room_again_before_long(steps: list[tuple[int, float]]) -> None:
    pace, now_s = Pace(), 0.0
    for size, wait_s in steps:
        pace.write(size, now_s)
        now_s += wait_s
        if wait_s > 1:
            pace.answer(now_s)
    pace.room(now_s + LOST_S + 1)
    pace.room(now_s + 2 * LOST_S + 2)
    assert pace.room(now_s + 3 * LOST_S + 3) != 0 or pace.is_asked


def test_the_terminal_s_answer_is_no_key() -> None:
    signs: list[int] = []
    reader = KeyReader()
    reader.on_sign = lambda: signs.append(1)
    assert reader.feed(b"a" + ANSWER + b"b") == [Key("a", "a"), Key("b", "b")]
    assert reader.feed(b"\x1b" + ANSWER) == [Key("esc")]
    assert reader.feed(b"\x1b[200~one " + ANSWER + b"two\x1b[201~") == [Paste("one two")]
    assert len(signs) == 2


def test_esc_is_seen_before_a_second_s_worth_of_bytes_has_come(place: Place) -> None:
    """The real program on a pty that is read at 1,200 bytes a second and answers as a terminal does. On a busy machine the program may
    come late to a key, whatever it holds back: one of three tries has to do."""
    tries = list[int]()
    while not tries or (tries[-1] > 1_200 and len(tries) < 3):
        tries.append(_bytes_until_stopped(place))
    assert tries[-1] <= 1_200, tries


def _bytes_until_stopped(place: Place) -> int:
    words = " ".join(f"word{number}" for number in range(4_000))
    with service(f"answer: piece_bytes=800 piece_wait=0.1\ntext piece=4: {json.dumps(words[:20_000])}") as place.service:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = place.start("-m", "anthropic/claude-opus-5", own_terminal=True, stdin=slave, stdout=slave, stderr=slave)
        try:
            reading = _SlowReader(master)
            reading.until(rb"Ask, / for")
            os.write(master, b"go\r")
            reading.until(rb"word90")
            os.write(master, b"\x1b")
            return reading.until(rb"stopped|ancelled")
        finally:
            process.kill()
            process.wait()
            os.close(master)
            os.close(slave)


class _SlowReader:
    def __init__(self, master: int) -> None:
        self._master = master
        self._got = b""

    def until(self, pattern: bytes) -> int:
        """How many bytes come until this has."""
        begin, until_s = len(self._got), time.monotonic() + 60
        while not re.search(pattern, self._got[max(begin - 20, 0) :]):
            assert time.monotonic() < until_s, self._got[-2_000:]
            if not select.select([self._master], [], [], 0.05)[0]:
                continue
            data = os.read(self._master, 60)
            self._got += data
            for _ in range(self._got[-len(data) - 3 :].count(b"\x1b[5n")):
                os.write(self._master, ANSWER)
            time.sleep(len(data) / 1_200)
        return len(self._got) - begin
