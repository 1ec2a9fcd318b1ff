"""`dragoman` in a terminal: where a conversation is shown, and whether it can be had at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up, settled
from dragoman.base.words import say
from dragoman.cli.output import Output
from dragoman.cli.screen import Screen
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.cli.conversation import Conversation


def converse(options: Options) -> int:
    """Talk until the user leaves, and return the exit code. Raises a DragomanError where it cannot begin."""
    return begin(settled(set_up(options), may_ask=True)).go()


def begin(setup: Setup) -> Conversation:
    """Keys are read through termios, which Unix has and Windows has not."""
    try:
        from dragoman.cli.conversation import Conversation
    except ModuleNotFoundError as error:
        if error.name == "termios":
            raise InputError(say("no_termios")) from error
        raise
    return Conversation(setup, *_pages(setup))


def _pages(setup: Setup) -> tuple[Screen, Output | None]:
    """The screen, and where the answers go as well when standard output is a file or a pipe."""
    screen = Screen(color=setup.config.color)
    if screen.is_terminal:
        return screen, None
    beside = Screen(color=setup.config.color, on_stderr=True)
    if not beside.is_terminal:
        raise InputError(say("no_terminal"))
    return beside, Output()
