"""What is read of background commands, and what a terminal shows: any pieces, any bytes, and pyte as the oracle."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.tools.output import Outputs
from dragoman.tools.terminal_text import TerminalText
from dragoman.tools.unread import UnreadOutput

ROWS, COLUMNS = 6, 12
NUMBER = st.sampled_from(["", "0", "1", "2", "3", "5", "40"])
TWO = st.builds(lambda a, b: f"{a};{b}", NUMBER, NUMBER)
MOVES = st.builds(lambda n, final: f"\x1b[{n}{final}", NUMBER, st.sampled_from("@ABCDEFGLMPXae"))
ERASES = st.builds(lambda n, final: f"\x1b[{n}{final}", st.sampled_from(["", "0", "1", "2"]), st.sampled_from("JK"))
PLACES = st.builds(lambda two, final: f"\x1b[{two}{final}", TWO, st.sampled_from("Hf")) | NUMBER.map(lambda n: f"\x1b[{n}d")
ESCAPES = st.sampled_from(["\x1bD", "\x1bM", "\x1b[1;32m", "\x1b]0;title\x07", "\x1b(B", "\x1b[?25l", "\x1b[?7l", "\x1b[?7h"])
CONTROLS = st.sampled_from(["\r", "\n", "\r\n", "\b", "\t", "\x07"])
WORDS = st.text("abcXYZ 0", min_size=1, max_size=30)
HERE = (WORDS, WORDS, CONTROLS, CONTROLS, MOVES, ERASES, ESCAPES)
DRAWING = st.lists(st.one_of(*HERE, PLACES), max_size=25).map("".join)
IN_A_REGION = st.lists(st.one_of(*HERE), max_size=25).map(lambda parts: "\x1b[1;3r" + "".join(parts))
"""The cursor stays in it: outside, pyte pulls it back."""


class Oracle(pyte.Screen):
    """Where pyte is unlike xterm: it forgets to empty a line where one moves to that was never written to, and a cursor that waits behind
    the last column goes on waiting when it moves to another line."""

    def cursor_up(self, count: int | None = None) -> None:
        self.ensure_hbounds()
        super().cursor_up(count)

    def cursor_down(self, count: int | None = None) -> None:
        self.ensure_hbounds()
        super().cursor_down(count)

    def cursor_to_line(self, line: int | None = None) -> None:
        self.ensure_hbounds()
        super().cursor_to_line(line)

    def index(self) -> None:
        self.ensure_hbounds()
        super().index()

    def reverse_index(self) -> None:
        self.ensure_hbounds()
        super().reverse_index()

    def insert_lines(self, count: int | None = None) -> None:
        self._touch_lines()
        super().insert_lines(count)

    def delete_lines(self, count: int | None = None) -> None:
        self._touch_lines()
        super().delete_lines(count)

    def _touch_lines(self) -> None:
        for number in range(self.lines):
            _ = self.buffer[number]


def shown_by_pyte(text: str) -> list[str]:
    screen = Oracle(COLUMNS, ROWS)
    pyte.Stream(screen).feed(text)
    return [line.rstrip(" ") for line in screen.display]


@settings(max_examples=600)
@given(DRAWING | IN_A_REGION)
def test_it_shows_what_pyte_shows(text: str) -> None:
    terminal = TerminalText(ROWS, COLUMNS)
    terminal.feed(text.encode())
    assert terminal.lines() == shown_by_pyte(text)


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=60), max_size=40), st.data())
def test_plain_lines_come_out_as_they_went_in(lines: list[str], data: st.DataObject) -> None:
    """Wrapped or not, on the screen or above it, in any pieces; and read at any time between two lines, each comes once."""
    terminal = TerminalText(ROWS, COLUMNS)
    said = ""
    for line in lines:
        sent = f"{line}\r\n".encode()
        cut = data.draw(st.integers(0, len(sent)))
        said += terminal.feed(sent[:cut]) + terminal.feed(sent[cut:])
        if data.draw(st.booleans()):
            said += terminal.take()
    said += terminal.feed(b"", is_end=True) + terminal.take()
    assert _without_marks(said).rstrip("\n") == "\n".join(_without_marks(line) for line in lines).rstrip("\n")


def _without_marks(text: str) -> str:
    """Marks at the beginning of a line have nothing to stand on, and no letter keeps more than a few."""
    return "".join(char for char in text if not (unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf")))


@settings(max_examples=300)
@given(st.binary(max_size=300) | DRAWING.map(str.encode), st.integers(0, 300))
@example(b"\x1b[999999999999999999999999999999C\x1b[99999999L\x1b[9999999@\x1b]", 5)
def test_any_bytes_in_any_pieces_do_no_harm(data: bytes, cut: int) -> None:
    whole, parted = TerminalText(ROWS, COLUMNS), TerminalText(ROWS, COLUMNS)
    one = whole.feed(data, is_end=True) + whole.take()
    two = parted.feed(data[:cut]) + parted.feed(data[cut:], is_end=True) + parted.take()
    assert one == two
    assert len(whole.lines()) == ROWS
    assert not {char for char in one if ord(char) < 32 and char != "\n"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@given(st.lists(st.tuples(st.text("ab\n", max_size=30), st.booleans()), max_size=30), st.integers(12, 60))
def test_reads_lose_and_double_nothing_within_the_bound(folder: Path, pieces: list[tuple[str, bool]], max_chars: int) -> None:
    """Between two reads all that came is read, or its beginning and its end with the number of characters left out."""
    unread = UnreadOutput(Outputs(folder, max_chars))
    waiting = ""
    for text, is_read in [*pieces, ("", True)]:
        unread.feed(text.encode())
        waiting += text
        if not is_read:
            continue
        taken = unread.take(max_chars, max_chars // 2)
        if len(waiting) <= max_chars:
            assert taken.text == waiting
        else:
            head, _, rest = taken.text.partition("[")
            tail = rest.partition("]\n")[2]
            assert waiting.startswith(head.removesuffix("\n"))
            assert waiting.endswith(tail)
            assert len(head) + len(tail) <= max_chars // 2 + 1
            assert abs(len(head) + len(tail) + taken.dropped_chars - len(waiting)) <= 1
            assert Path(taken.output_file).read_text().endswith(waiting)
        waiting = ""
    unread.end()
    assert unread.take(max_chars, max_chars).text == ""
