"""Questions before the conversation, in the first frame: one key answers, and what was typed before the question stays in the composer."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence

from dragoman.cli.first_questions import FirstQuestion
from dragoman.tui import first
from dragoman.tui.asking import QUIET_S
from dragoman.tui.first import FirstFrame
from dragoman.tui.keys import Key, Paste
from dragoman.tui.layout import lay_out
from dragoman.tui.line import EMPTY, Line, Span, line, visible
from dragoman.tui.wrap import wrap

EXIT_INTERRUPTED, EXIT_HUNG_UP = 130, 129


def ask_in_frame(frame: FirstFrame, question: FirstQuestion) -> str:
    """Implements first_questions.Ask."""
    frame.stop()
    answer = _Asked(frame, question).ask()
    if not answer:
        first.take_back()
        raise EOFError
    frame.listen()
    frame.draw()
    return answer


class _Asked:
    def __init__(self, frame: FirstFrame, question: FirstQuestion) -> None:
        self._frame = frame
        self._question = question
        self._size = frame.terminal.size
        self._pending = [row for each in question.intro for row in self._wrapped(each)]
        self._armed_s = self._quiet_until() if not frame.composer.is_empty else 0.0

    def ask(self) -> str:
        """Empty: the user leaves."""
        reader = self._frame.reader
        while True:
            self._draw()
            ready, _, _ = select.select([0], (), (), reader.waits_s or None)
            try:
                data = os.read(0, 1 << 16) if ready else b""
            except OSError:
                data = b""
            if ready and not data:
                self._frame.terminal.gone = True
                self._frame.leave(EXIT_HUNG_UP)
            for event in reader.feed(data) if ready else reader.rest():
                if isinstance(event, Key) and event.name == "ctrl-d":
                    return ""
                if answer := self._press(event):
                    self._pending += [(Span("  └ ", "dim"), Span(self._question.said[answer], "dim"))]
                    self._draw(answered=True)
                    return answer

    def _press(self, event: Key | Paste) -> str:
        if isinstance(event, Paste):
            self._frame.composer.paste(event.text)
        elif event.name == "ctrl-c":
            self._frame.leave(EXIT_INTERRUPTED)
        elif time.monotonic() < self._armed_s:  # a word that was begun before the question stood there
            self._frame.composer.press(event.name, event.text)
            self._armed_s = self._quiet_until()
        elif event.name == "?":
            self._pending += [row for each in self._question.why.split("\n") for row in self._wrapped(each)]
        elif event.name in self._question.said:
            return event.name
        return ""

    def _quiet_until(self) -> float:
        return time.monotonic() + QUIET_S

    def _wrapped(self, text: str) -> list[Line]:
        hang = len(text) - len(text.lstrip()) + 2
        return wrap(line(visible(text)), self._size[0] - 1, (), (Span(" " * hang),))

    def _draw(self, *, answered: bool = False) -> None:
        frame, size = self._frame, self._frame.terminal.size
        if size != self._size:
            frame.live.mark_moved()
            self._size = size
        above: Sequence[Line] = [EMPTY] if answered else wrap(line(self._question.text, "question"), size[0] - 1)
        committed = [frame.theme.paint(row) for row in self._pending]
        self._pending = []
        shown = lay_out(None if frame.composer.is_empty or answered else frame.composer, frame.theme, size, above=above)
        frame.terminal.write_frame(frame.live.frame(shown, committed, size))
