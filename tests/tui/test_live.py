"""The live region against a small terminal: what it shows is the committed lines, each once, and under them the region."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.tui.composer import Composer
from dragoman.tui.layout import lay_out, most_rows
from dragoman.tui.line import line
from dragoman.tui.live import Frame, LiveRegion, ScreenRow
from dragoman.tui.theme import Theme

_STEP = re.compile(r"\x1b\[(\d*)([A-DJKL])|\x1b\[\?25[hl]|(\r)|(\n)|([^\x1b\r\n])")


class Screen:
    """Rows that scroll into a history: as much of a terminal as the region uses. It fails on anything else."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.height = columns, rows
        self.history: list[str] = []
        self.rows = [""] * rows
        self.row = self.column = 0

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            step = _STEP.match(text, at)
            assert step is not None, repr(text[at : at + 10])
            at = step.end()
            count, kind, is_return, is_feed, char = step.groups()
            if kind:
                self._move(int(count or 1), kind)
            elif is_return:
                self.column = 0
            elif is_feed:
                self._feed()
            elif char:
                assert self.column < self.columns - 1, "no row is as wide as the window"
                row = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = row[: self.column] + char + row[self.column + 1 :]
                self.column += 1

    def _move(self, count: int, kind: str) -> None:
        match kind:
            case "A":
                assert count <= self.row, "it never goes above the window"
                self.row -= count
            case "B":
                self.row = min(self.row + count, self.height - 1)
            case "C":
                self.column += count
            case "D":
                self.column -= count
            case "L":
                self.rows[self.row : self.row] = [""] * count
                del self.rows[self.height :]
                self.column = 0
            case "K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            case "J":
                assert (self.row, self.column) != (0, 0), "tmux would push what it erases into its history"
                self.rows[self.row] = self.rows[self.row][: self.column]
                self.rows[self.row + 1 :] = [""] * (self.height - self.row - 1)

    def _feed(self) -> None:
        if self.row < self.height - 1:
            self.row += 1
        else:
            self.history.append(self.rows.pop(0))
            self.rows.append("")

    @property
    def everything(self) -> list[str]:
        lines = [each.rstrip() for each in (*self.history, *self.rows)]
        while lines and not lines[-1]:
            lines.pop()
        return lines


rows = st.lists(st.text("abc", max_size=15), min_size=1, max_size=5)


@settings(max_examples=200)
@given(st.lists(st.tuples(rows, st.lists(st.integers(0, 9), max_size=12), st.integers(0, 99)), min_size=1, max_size=12))
def test_lines_are_committed_once_and_the_region_stands_under_them(steps: list[tuple[list[str], list[int], int]]) -> None:
    screen, live = Screen(20, 15), LiveRegion()
    committed: list[str] = []
    for texts, lines, caret in steps:
        new = [f"line {len(committed) + number} {each}" for number, each in enumerate(lines)]
        committed += new
        at = (caret % len(texts), min(caret // 10, len(texts[caret % len(texts)])))
        screen.write(live.frame(Frame([ScreenRow(text, len(text)) for text in texts], at), new, (20, 15)))
        wanted = [*committed, *texts]
        while wanted and not wanted[-1]:
            wanted.pop()
        assert screen.everything == wanted
        assert screen.column == at[1]
    screen.write(live.erase())
    assert screen.everything == committed


def test_an_unchanged_frame_writes_nothing_and_a_changed_row_writes_itself() -> None:
    live = LiveRegion()
    frame = Frame([ScreenRow("one", 3), ScreenRow("two", 3), ScreenRow("three", 5)], (1, 2))
    live.frame(frame)
    assert live.frame(frame) == ""
    changed = live.frame(Frame([ScreenRow("one", 3), ScreenRow("two", 3), ScreenRow("thrEE", 5)], (1, 2)))
    assert "thrEE" in changed
    assert "one" not in changed
    assert "two" not in changed


@given(
    st.integers(20, 200),
    st.integers(6, 60),
    st.text(st.characters(codec="utf-8"), max_size=300),
    st.integers(0, 30),
    st.integers(0, 10),
    st.integers(0, 400),
)
def test_the_region_takes_a_third_of_the_window_at_most(columns: int, height: int, text: str, above: int, menu: int, caret: int) -> None:
    composer = Composer()
    composer.insert(text)
    composer.caret = 0
    for _ in range(min(caret, 40)):
        composer.right()
    frame = lay_out(
        composer,
        Theme("mono"),
        (columns, height),
        above=[line(f"above {number} " * 20) for number in range(above)],
        menu=[line(f"menu {number}") for number in range(menu)],
        status=line("status " * 40),
    )
    assert len(frame.rows) <= most_rows(height) <= max(height // 3, 3)
    assert all(row.columns < columns for row in frame.rows)
    assert 0 <= frame.caret[0] < len(frame.rows)
    assert 0 <= frame.caret[1] < columns
