"""The terminal of a conversation while its loop runs: lines are committed, the live region is drawn when something changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable

from dragoman.tui.first import FirstFrame
from dragoman.tui.line import EMPTY, Line
from dragoman.tui.live import HOLD_S, Frame, has_second_screen
from dragoman.tui.overlay import CLOSE, CLOSE_OVER, OPEN, OPEN_OVER, Overlay, OverlayPainter
from dragoman.tui.theme import Theme
from dragoman.tui.wrap import wrap_code

FRAME_S = 1 / 15
"""Frames are at least this far apart,"""
KEY_S = 1 / 60
"""and those that show what was typed as far as this."""


class Canvas:
    """`commit` and `request` return at once; what they ask for is drawn by the loop, as one write."""

    def __init__(self, first: FirstFrame, compose: Callable[[tuple[int, int]], Frame]) -> None:
        self.terminal = first.terminal
        self.theme: Theme = first.theme
        self._live = first.live
        self._has_second_screen = has_second_screen(os.environ)
        self._compose = compose
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: list[Line] = []
        self._ends_blank = False
        self._is_for_key = False
        self._timer: asyncio.TimerHandle | None = None
        self._drawn_s = 0.0
        self._held_until_s = 0.0
        self._size = self.terminal.size
        if self._size != first.size:
            self._live.mark_moved()
        self.is_lent = False
        self.overlay: Overlay | None = None
        self._is_preparing = False
        self.before_frame: Callable[[], None] | None = None
        """Called when a frame is about to be drawn, so that work for it is done once."""
        self._under: list[Overlay] = []
        """Those that come back when the one that is open is closed."""
        self._painter = OverlayPainter()
        self._size_before = self._size

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.terminal.attach(loop)
        self.terminal.on_written = self._go_on

    @property
    def size(self) -> tuple[int, int]:
        return self._size

    @property
    def columns(self) -> int:
        """The width of a row: one column less than the window has."""
        return self._size[0] - 1

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not taken the last frame yet."""
        return self.terminal.is_behind

    def commit(self, lines: Iterable[Line]) -> None:
        """Write lines to the terminal's own history. They are never changed afterwards."""
        rows = list(lines)
        if rows:
            self._ends_blank = not rows[-1]
        self._pending += rows
        self.request()

    def part(self) -> None:
        """A blank row under what was committed, unless there is one."""
        if not self._ends_blank:
            self.commit([EMPTY])

    def request(self, *, for_key: bool = False) -> None:
        """Draw soon: something has changed."""
        if self._loop is None or self.is_lent or self.terminal.gone or self._is_preparing:
            return
        self._is_for_key = self._is_for_key or for_key
        if self._timer is not None:
            if not for_key:
                return
            self._timer.cancel()
        due = max(self._drawn_s + (KEY_S if for_key else FRAME_S), self._held_until_s, self._loop.time())
        self._timer = self._loop.call_at(due, self._draw)

    def call_later(self, seconds: float, act: Callable[[], None]) -> bool:
        """False if there is no loop yet."""
        if self._loop is None:
            return False
        self._loop.call_later(seconds, act)
        return True

    def note_size(self) -> None:
        """The window's size has changed: nothing is drawn until it has stayed the same for a while. On the other screen nothing can be
        lost, and a list follows at once."""
        self._live.mark_moved()
        if self._loop is not None:
            self._held_until_s = self._loop.time() + (HOLD_S if self.overlay is None else FRAME_S)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.request()

    def redraw(self) -> None:
        """Everything again, where another program has written over it."""
        self._live.mark_moved()
        self.request()

    def settle(self) -> None:
        """Draw now, whatever the rate: for the last frame, and before a question."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.is_lent:
            self._draw_now(is_urgent=True)

    def _go_on(self) -> None:
        """A slow terminal has taken everything: what waited for it can be drawn."""
        if self._pending:
            self.request()

    def _draw(self) -> None:
        self._timer = None
        if self._loop is None or self.is_lent:
            return
        if self.terminal.size != self._size:
            self._size = self.terminal.size
            return self.note_size()
        if self.terminal.is_behind:
            self._timer = self._loop.call_later(FRAME_S * 2, self._draw)
            return
        self._drawn_s = self._loop.time()
        self._draw_now()

    def _draw_now(self, *, is_urgent: bool = False) -> None:
        size = self._size = self.terminal.size
        if self.before_frame is not None:
            self._is_preparing = True  # what it commits is part of this frame, and asks for no other
            self.before_frame()
            self._is_preparing = False
        if self.overlay is not None:
            return self.terminal.write_frame(self._painter.frame(self.overlay, self.theme, size))
        frame = self._compose(size)
        if not is_urgent and self.terminal.size != size:  # meanwhile: this frame would arrive on rows that have moved
            return self.note_size()
        self.terminal.write_frame(self._live.frame(frame, self._take_pending(size[0] - 1, is_urgent=is_urgent), size), is_last=is_urgent)
        if self._pending:
            self.request()

    def _take_pending(self, columns: int, *, is_urgent: bool) -> list[str]:
        """The lines that are written with this frame: all, but on a slow line only as many as it shows soon, and none before what a key
        has changed."""
        room = None if is_urgent or not self.terminal.is_slow else self.terminal.room
        is_for_key, self._is_for_key = self._is_for_key, False
        painted: list[str] = []
        count = 0
        for each in self._pending:
            if room is not None and (is_for_key or room <= 0):
                break
            rows = [self.theme.paint(row) for row in wrap_code(each, columns)]
            painted += rows
            count += 1
            room = None if room is None else room - sum(len(row.encode("utf-8", "replace")) + 2 for row in rows)
        del self._pending[:count]
        return painted

    @property
    def waiting_lines(self) -> int:
        """How many lines a slow terminal is still to be sent."""
        return len(self._pending) if self.terminal.is_slow else 0

    # --- the other screen

    def open(self, overlay: Overlay, *, over: bool = False) -> None:
        """Show it instead of the conversation, whose lines wait until it is closed. `over`: what is open now comes back after it."""
        if over and self.overlay is not None:
            self._under.append(self.overlay)
        if self.overlay is None:
            self.settle()
            self.terminal.write(OPEN if self._has_second_screen else self._push_up() + OPEN_OVER)
            self._size_before = self.terminal.size
        self.overlay, self._painter = overlay, OverlayPainter()
        self.request()

    def leave_overlay(self) -> None:
        """Close what is open; what it was opened over comes back."""
        if self._under:
            self.open(self._under.pop())
        else:
            self.close_overlay()

    def close_overlay(self) -> None:
        self._under.clear()
        if self.overlay is None:
            return
        self.overlay = None
        self.terminal.write(CLOSE if self._has_second_screen else CLOSE_OVER)
        self._live.mark_cursor_shown()
        if not self._has_second_screen:
            self._live.forget()
        elif self.terminal.size != self._size_before:
            self._live.mark_moved()
        self.request()

    def _push_up(self) -> str:
        """What stands above the region goes into the terminal's history, line by line, so that a list can be written over it."""
        return self._live.erase(self._size[0]) + "\n" * (self.terminal.size[1] - 1)

    # --- lending it

    def lend(self) -> None:
        """Lend the terminal to another program or the shell: remove the live region and restore the terminal's modes."""
        self.close_overlay()
        self.settle()
        self.is_lent = True
        self.terminal.write(self._live.erase(self._size[0]))
        self.terminal.finish()
        self.terminal.leave_raw_mode()

    def take(self) -> None:
        """Back again."""
        self._live.forget()
        self.terminal.enter_raw_mode()
        self.is_lent = False
        self._size = self.terminal.size
        self.request()

    def close(self) -> None:
        """Take the region away and restore the terminal; lines that wait are written first. Nothing is drawn afterwards, whoever asks."""
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.close_overlay()
        if not self.is_lent:
            size = self.terminal.size
            committed = [self.theme.paint(row) for line in self._pending for row in wrap_code(line, size[0] - 1)]
            self._pending.clear()
            self.terminal.write(self._live.frame(Frame([]), committed, size) + self._live.erase(size[0]))
        self.terminal.close()
