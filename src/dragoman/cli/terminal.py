"""`dragoman` in a terminal: opens a conversation on standard output or standard error, whichever is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.connecting import choose_first_model
from dragoman.app.options import Options
from dragoman.app.setup import Setup, set_up
from dragoman.base.words import say
from dragoman.cli.output import Output
from dragoman.cli.screen import Screen
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.cli.conversation import Conversation


def converse(options: Options) -> int:
    """Talk until the user leaves, and return the exit code. Raises DragomanError if it cannot start."""
    from dragoman.cli.trust_question import ask_trust

    try:
        setup = set_up(options, ask_trust=ask_trust)
    except EOFError:  # the user left at the question
        return 0
    return open_conversation(choose_first_model(setup, may_ask=True)).run()


def open_conversation(setup: Setup) -> Conversation:
    """Raises InputError on Windows, which lacks termios."""
    try:
        from dragoman.cli.conversation import Conversation
    except ModuleNotFoundError as error:
        if error.name == "termios":
            raise InputError(say("no_termios")) from error
        raise
    return Conversation(setup, *_open_outputs(setup))


def _open_outputs(setup: Setup) -> tuple[Screen, Output | None]:
    """The screen; and standard output for a copy of the answers if that is a file or a pipe."""
    screen = Screen(color=setup.config.color)
    if screen.is_terminal:
        return screen, None
    beside = Screen(color=setup.config.color, on_stderr=True)
    if not beside.is_terminal:
        raise InputError(say("no_terminal"))
    return beside, Output()
