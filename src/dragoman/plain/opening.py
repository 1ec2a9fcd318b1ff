"""Opens the plain conversation, on standard output or standard error, whichever is a terminal."""

from __future__ import annotations

from dragoman.app.asking import LineQuestions
from dragoman.app.output import Output
from dragoman.app.setup import Setup
from dragoman.plain.conversation import PlainConversation
from dragoman.plain.screen import Screen
from dragoman.values.errors import InputError
from dragoman.words import say


def open_plain(setup: Setup, by_line: LineQuestions) -> PlainConversation:
    """Raises InputError where there is no terminal."""
    return PlainConversation(setup, by_line, *_open_outputs(setup))


def _open_outputs(setup: Setup) -> tuple[Screen, Output | None]:
    """The screen; and standard output for a copy of the answers if that is a file or a pipe."""
    screen = Screen(color=setup.config.color)
    if screen.is_terminal:
        return screen, None
    beside = Screen(color=setup.config.color, on_stderr=True)
    if not beside.is_terminal:
        raise InputError(say("no_terminal"))
    return beside, Output()
