"""The question whether a folder is trusted, in the first frame: one key answers it, and what was typed before it stays in the composer."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence

from dragoman.app.config_tables import FolderTrust
from dragoman.app.trust import Answer, trust_names
from dragoman.base.visible import escape_hidden
from dragoman.base.words import say
from dragoman.tui import first
from dragoman.tui.asking import QUIET_S
from dragoman.tui.first import FirstFrame
from dragoman.tui.keys import Key, Paste
from dragoman.tui.layout import lay_out
from dragoman.tui.line import EMPTY, Line, Span, line, visible
from dragoman.tui.wrap import wrap

EXIT_INTERRUPTED, EXIT_HUNG_UP = 130, 129
_ANSWERS: dict[str, Answer] = {"y": "yes", "n": "no"}


def ask_in_frame(frame: FirstFrame, trust: FolderTrust) -> Answer:
    """Implements trust.AskTrust. Ctrl-C ends the program; Ctrl-D raises EOFError. Neither is an answer, so nothing is remembered."""
    frame.stop()
    question = _TrustQuestion(frame, trust)
    answer = question.ask()
    if not answer:
        first.take_back()
        raise EOFError
    frame.listen()
    frame.draw()
    return answer


class _TrustQuestion:
    def __init__(self, frame: FirstFrame, trust: FolderTrust) -> None:
        self._frame = frame
        self._size = frame.terminal.size
        self._pending = self._wrapped(say("trust_intro", folder=escape_hidden(trust.folder, one_line=True), names=trust_names(trust)))
        self._armed_s = self._quiet_until() if not frame.composer.is_empty else 0.0

    def ask(self) -> Answer | None:
        """None: the user leaves."""
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
                    return None
                if (answer := self._press(event)) is not None:
                    self._pending += [(Span("  └ ", "dim"), Span(say(f"trust_said_{answer}"), "dim"))]
                    self._draw(answered=True)
                    return answer

    def _press(self, event: Key | Paste) -> Answer | None:
        if isinstance(event, Paste):
            self._frame.composer.paste(event.text)
        elif event.name == "ctrl-c":
            self._frame.leave(EXIT_INTERRUPTED)
        elif time.monotonic() < self._armed_s:  # a word that was begun before the question stood there
            self._frame.composer.press(event.name, event.text)
            self._armed_s = self._quiet_until()
        elif event.name == "?":
            self._pending += [row for each in say("trust_why").split("\n") for row in self._wrapped(each)]
        else:
            return _ANSWERS.get(event.name)
        return None

    def _quiet_until(self) -> float:
        return time.monotonic() + QUIET_S

    def _wrapped(self, text: str) -> list[Line]:
        return wrap(line(visible(text)), self._size[0] - 1, (), (Span("  "),))

    def _draw(self, *, answered: bool = False) -> None:
        frame, size = self._frame, self._frame.terminal.size
        if size != self._size:
            frame.live.mark_moved()
            self._size = size
        above: Sequence[Line] = [EMPTY] if answered else wrap(line(say("trust_question_frame"), "question"), size[0] - 1)
        committed = [frame.theme.paint(row) for row in self._pending]
        self._pending = []
        shown = lay_out(None if frame.composer.is_empty or answered else frame.composer, frame.theme, size, above=above)
        frame.terminal.write_frame(frame.live.frame(shown, committed, size))
