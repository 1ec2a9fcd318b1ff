"""Questions before the conversation, in the first frame: the composer under them keeps all that is typed and answers nothing."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence

from dragoman.app.answers import QUIET_S, Answers, Heard
from dragoman.app.asking import FirstQuestion
from dragoman.tui import first
from dragoman.tui.asking import KEY_GAP, answer_row, key_of
from dragoman.tui.first import FirstFrame
from dragoman.tui.keys import Key, Paste
from dragoman.tui.layout import lay_out
from dragoman.tui.line import EMPTY, Line, Span, line, visible
from dragoman.tui.wrap import wrap, wrap_parts

EXIT_INTERRUPTED, EXIT_HUNG_UP = 130, 129
_LEAVES = "ctrl-d"


def ask_in_frame(frame: FirstFrame, question: FirstQuestion) -> str:
    """Implements asking.Ask."""
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
        self._answers: Answers[Key | Paste] = Answers(question.keys, question.marked)
        self._due_s = time.monotonic() + QUIET_S
        """When it counts as a pause, if nothing is typed till then."""
        self._is_kept = False

    def ask(self) -> str:
        """Empty: the user leaves."""
        reader = self._frame.reader
        while True:
            self._draw()
            ready, _, _ = select.select([0], (), (), self._wait_s())
            try:
                data = os.read(0, 1 << 16) if ready else b""
            except OSError:
                data = b""
            if ready and not data:
                self._frame.terminal.gone = True
                self._frame.leave(EXIT_HUNG_UP)
            if not ready and not reader.waits_s:
                answer = self._take(self._answers.rest()) if time.monotonic() >= self._due_s else ""
                self._due_s = float("inf") if self._answers.is_ready else self._due_s
            elif (answer := self._press_all(reader.feed(data) if ready else reader.rest())) == _LEAVES:
                return ""
            if answer:
                self._pending += [(Span("  └ ", "dim"), Span(self._question.said[answer], "dim"))]
                self._draw(answered=True)
                return answer

    @property
    def _has_draft(self) -> bool:
        return bool(self._frame.waiting) or not self._frame.composer.is_empty

    def _wait_s(self) -> float | None:
        """Until a key is clear, or there is a pause."""
        pause_s = max(self._due_s - time.monotonic(), 0)
        return self._frame.reader.waits_s or (None if pause_s == float("inf") else pause_s)

    def _press_all(self, events: Sequence[Key | Paste]) -> str:
        """All that was read: what stands behind an answer goes to the prompt."""
        answer = ""
        for event in events:
            if answer:
                self._frame.keep(event)
            elif isinstance(event, Key) and event.name == "ctrl-d":
                return _LEAVES
            elif isinstance(event, Key) and event.name == "ctrl-c":
                self._frame.leave(EXIT_INTERRUPTED)
            else:
                answer = self._take(self._answers.press(event, key_of(event), has_draft=self._has_draft))
                self._due_s = time.monotonic() + QUIET_S
        return answer

    def _take(self, heard: Heard[Key | Paste]) -> str:
        """The answer, if there is one. `?` explains, and is none."""
        for event in heard.typed:
            self._frame.keep(event)
        self._is_kept = bool(heard.typed)
        if heard.answer != "?":
            return heard.answer
        self._pending += [row for each in self._question.why.split("\n") for row in self._wrapped(each)]
        return ""

    def _wrapped(self, text: str) -> list[Line]:
        hang = len(text) - len(text.lstrip()) + 2
        return wrap(line(visible(text)), self._size[0] - 1, (), (Span(" " * hang),))

    def _draw(self, *, answered: bool = False) -> None:
        frame, size = self._frame, self._frame.terminal.size
        if size != self._size:
            frame.live.mark_moved()
            self._size = size
        above: Sequence[Line] = [EMPTY]
        if not answered:
            row = answer_row(self._answers, is_kept=self._is_kept, has_draft=self._has_draft)
            above = [*wrap_parts(self._question.text, size[0] - 1, KEY_GAP, "question"), *wrap(row, size[0] - 1)]
        committed = [frame.theme.paint(row) for row in self._pending]
        self._pending = []
        shown = lay_out(None if frame.composer.is_empty or answered else frame.composer, frame.theme, size, above=above)
        frame.terminal.write_frame(frame.live.frame(shown, committed, size))
