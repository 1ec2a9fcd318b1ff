"""The rows of the live region from what they show: above, what is under way; then the composer, a menu, and the status line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from dragoman.tui.composer import Composer, visible_rows
from dragoman.tui.line import EMPTY, Line, Span, columns_of
from dragoman.tui.live import Frame, ScreenRow
from dragoman.tui.theme import Theme
from dragoman.tui.wrap import fit

MARK = "› "
LEAST_ROWS = 3


def most_rows(window_rows: int) -> int:
    """The region takes at most a third of the window."""
    return min(max(window_rows // 3, LEAST_ROWS), max(window_rows - 1, 1))


def question_rows(window_rows: int, rows: int) -> int:
    """A question and its keys are shown whole, where half of the window holds them."""
    return max(most_rows(window_rows), min(rows, window_rows // 2))


def lay_out(
    composer: Composer | None,
    theme: Theme,
    size: tuple[int, int],
    *,
    above: Sequence[Line] = (),
    menu: Sequence[Line] = (),
    status: Line = EMPTY,
    placeholder: str = "",
    mark: str = MARK,
    most: int = 0,
    menu_caret: int | None = None,
) -> Frame:
    """Every row is narrower than the window: a row as wide as that is wrapped by some terminals, and costs the most to write. Where there
    is not enough room, what is under way shows its end, the menu its beginning, and a long text the part around the caret. `menu_caret`:
    the column of the menu's first row where one writes, if it is there."""
    columns = size[0] - 1
    left = (most or most_rows(size[1])) - bool(status)
    menu = menu[: max(left - 1 - min(len(above), 1), 0)]
    left -= len(menu)
    typed: list[Line] = []
    caret = (0, 0)
    if composer is not None:
        rows, (row, column) = composer.layout(columns - len(mark) - 1)
        shown, row = visible_rows(rows, row, max(left - min(len(above), max(left // 2, 1)), 1))
        typed = [(Span(mark if not number else " " * len(mark), "prompt"), Span(text)) for number, text in enumerate(shown)]
        if composer.is_empty and placeholder:
            typed = [(Span(mark, "prompt"), Span(placeholder, "dim"))]
        caret = (row, column + len(mark))
        left -= len(typed)
    above = above[-left:] if left > 0 else []
    if menu_caret is not None and menu:
        caret = (len(typed), min(menu_caret, columns - 1))
    lines = [*above, *typed, *menu, *([status] if status else [])]
    return Frame([to_row(line, theme, columns) for line in lines], (caret[0] + len(above), caret[1]), composer is not None)


@lru_cache(256)
def to_row(line: Line, theme: Theme, columns: int) -> ScreenRow:
    line = fit(line, columns)
    return ScreenRow(theme.paint(line), columns_of(line))
