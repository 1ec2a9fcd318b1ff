"""The live region: the last rows of the terminal, under the lines that were committed to its own history.

No input or output here: `frame` returns what to write. Committed lines are written once, where the region begins, and the region moves
down; what scrolls out of the window is the terminal's own. Of the region only rows that changed are written again.

After a change of size a terminal has moved everything by rules of its own. What is known then is the cursor, which stays in the row it
was in, and how wide each row of the region is: where the terminal wraps rows that have become too wide (`reflows`), that gives the number
of rows above the cursor. Where it is not known whether it does, fewer are assumed: that may leave a row of the region standing, but no
committed line is ever written over.

A frame may also be under way when the size changes: it was made for rows as they stood before. So a frame goes down by line feeds only:
tmux takes rows away under the cursor when the window becomes lower, and a cursor that is moved down then stays where it is, while a line
feed makes the row again, so that the way back up ends where it began. Where rows were wrapped the way up is too short: that leaves a row
of the region standing. And with lines that are committed then, the region is written again down to the caret: so it is wrapped as a whole,
and the number of rows between those lines and the cursor is what it would have been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

HOLD_S = 0.35
"""How long nothing is drawn after a change of size: a terminal that is being dragged has not settled before."""
_ERASE_BELOW = "\x1b[K\x1b[C\x1b[J\r"
"""tmux pushes what it erases into its history if the erasing starts in the first column of the first row: so the row is cleared first."""


class ScreenRow(NamedTuple):
    """One row of the terminal, painted, and its columns."""

    text: str
    columns: int


class Frame(NamedTuple):
    """What the region shows, and the caret's place in it: row and column."""

    rows: Sequence[ScreenRow]
    caret: tuple[int, int] = (0, 0)
    is_caret_shown: bool = True


class LiveRegion:
    """What stands on the terminal, and what has to be written to have something else there."""

    def __init__(self, *, reflows: bool = False) -> None:
        self._reflows = reflows
        self._shown: list[ScreenRow] = []
        self._at = (0, 0)
        """Where the cursor is, in the region."""
        self._is_cursor_shown = True
        self._is_moved = False

    @property
    def rows(self) -> int:
        return len(self._shown)

    def frame(self, frame: Frame, committed: Sequence[str] = (), size: tuple[int, int] = (0, 0)) -> str:
        """`committed` lines are painted and fit the width. `size`: columns and rows of the window, 0 if they are not known."""
        out: list[str] = []
        if self._is_moved:
            self._begin_again(out, size[0])
        if committed:
            self._commit(out, committed, len(frame.rows), size[1])
            if self._reflows:
                end = frame.caret[0] + 1
                self._shown[:end] = [ScreenRow("", each.columns) for each in self._shown[:end]]
        self._draw(out, frame.rows)
        self._move(out, frame.caret)
        if frame.is_caret_shown != self._is_cursor_shown:
            self._is_cursor_shown = frame.is_caret_shown
            out.append("\x1b[?25h" if frame.is_caret_shown else "\x1b[?25l")
        return "".join(out)

    def mark_moved(self) -> None:
        """The size changed: the next frame looks for the region first."""
        self._is_moved = True

    def mark_cursor_shown(self) -> None:
        """Somebody else has made it visible."""
        self._is_cursor_shown = True

    def erase(self, columns: int = 0) -> str:
        """Take the region away; the cursor stands where it began, and is seen."""
        out: list[str] = []
        if self._is_moved:
            self._begin_again(out, columns)
        elif self._shown:
            self._move(out, (0, 0))
            out.append(_ERASE_BELOW)
        if not self._is_cursor_shown:
            out.append("\x1b[?25h")
        self.forget()
        return "".join(out)

    def forget(self) -> None:
        """Forget the drawn region: the next frame begins at the cursor."""
        self._shown.clear()
        self._at, self._is_cursor_shown, self._is_moved = (0, 0), True, False

    # --- one frame

    def _begin_again(self, out: list[str], columns: int) -> None:
        above = self._rows_above(columns)
        out.append((f"\x1b[{above}A" if above else "") + "\r" + _ERASE_BELOW)
        self._shown.clear()
        self._at, self._is_moved = (0, 0), False

    def _rows_above(self, columns: int) -> int:
        row, column = self._at
        if not self._reflows or columns < 1:
            return row
        return sum(max(-(-each.columns // columns), 1) for each in self._shown[:row]) + column // columns

    def _commit(self, out: list[str], lines: Sequence[str], rows: int, height: int) -> None:
        """Where the region becomes shorter, lines take the place of its first rows. The others are put in above it, so that its rows need
        not be written again; but where there are too many for the window, they are written over it."""
        over = min(max(len(self._shown) - rows, 0), len(lines))
        if not self._shown or len(lines) - over + len(self._shown) >= height:
            over = len(lines)
        self._write_over(out, lines[:over])
        if over < len(lines):
            self._put_in(out, lines[over:])

    def _write_over(self, out: list[str], lines: Sequence[str]) -> None:
        if not lines:
            return
        self._move(out, (0, 0))
        for number, line in enumerate(lines):
            if number >= len(self._shown):
                out.append(f"{line}\r\n")
            elif self._reflows:
                out.append(f"\x1b[K{line}\r\n")  # cleared before: a row that was wrapped is not wrapped any more
            elif self._shown[number].text == line:
                out.append("\r\n")
            else:
                out.append(f"{line}\x1b[K\r\n")
        self._shown = self._shown[len(lines) :]

    def _put_in(self, out: list[str], lines: Sequence[str]) -> None:
        """Make room under the region, which scrolls the window if it has to, then insert rows above it."""
        count, last = len(lines), len(self._shown) - 1
        self._move(out, (last, 0))
        out.append("\n" * count + f"\x1b[{last + count}A\x1b[{count}L" + "\r\n".join(lines) + "\r\n")
        self._at = (0, 0)

    def _draw(self, out: list[str], rows: Sequence[ScreenRow]) -> None:
        before = self._shown
        for number, row in enumerate(rows):
            is_new = number >= len(before)
            if not is_new and before[number].text == row.text:
                continue
            if is_new and number:
                self._move(out, (number - 1, 0))
                out.append("\r\n")
                self._at = (number, 0)
            else:
                self._move(out, (number, 0))
            wipe = "" if is_new or (before[number].columns <= row.columns and row.columns) else "\x1b[K"
            out.append(f"\x1b[K{row.text}" if self._reflows and not is_new else row.text + wipe)
            self._at = (number, row.columns)
        for number in range(len(rows), len(before)):
            if before[number].columns:
                self._move(out, (number, 0))
                out.append("\x1b[K")
        self._shown = list(rows)

    def _move(self, out: list[str], to: tuple[int, int]) -> None:
        (row, column), (to_row, to_column) = self._at, to
        if to_row < row:
            out.append(f"\x1b[{row - to_row}A" if row - to_row > 1 else "\x1b[A")
        elif to_row > row:
            out.append(("\r" if column else "") + "\n" * (to_row - row))
            column = 0
        if to_column != column:
            if to_column == 0:
                out.append("\r")
            elif to_column > column:
                out.append(f"\x1b[{to_column - column}C" if to_column - column > 1 else "\x1b[C")
            else:
                out.append(f"\r\x1b[{to_column}C" if to_column > 1 else "\r\x1b[C")
        self._at = to


def does_reflow(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is known to wrap rows again that have become too wide. GNU screen and xterm do not."""
    term = environment.get("TERM", "")
    if environment.get("TMUX"):
        return True
    if environment.get("STY") or term.startswith(("screen", "linux")):
        return False
    known = ("iTerm.app", "WezTerm", "ghostty", "vscode", "Apple_Terminal", "kitty", "tmux")
    return (
        environment.get("TERM_PROGRAM", "") in known
        or term.startswith(("xterm-kitty", "alacritty", "foot", "wezterm", "xterm-ghostty", "tmux"))
        or bool(environment.get("VTE_VERSION") or environment.get("WT_SESSION") or environment.get("KONSOLE_VERSION"))
    )


def has_second_screen(environment: Mapping[str, str]) -> bool:
    """Whether what was on the screen comes back when a list is closed. In GNU screen it does not, as it comes; nor on the Linux console."""
    return not environment.get("STY") and environment.get("TERM", "") != "linux"


def has_synchronised_updates(environment: Mapping[str, str]) -> bool:
    """Whether a frame may be marked as one: a terminal that does not know it ignores it, but each frame would be longer for nothing."""
    if environment.get("TMUX") or environment.get("STY"):
        return False
    term = environment.get("TERM", "")
    return environment.get("TERM_PROGRAM", "") in ("iTerm.app", "WezTerm", "ghostty", "vscode") or term.startswith(
        ("xterm-kitty", "alacritty", "foot", "wezterm", "xterm-ghostty", "contour")
    )
