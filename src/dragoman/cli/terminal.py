"""`dragoman` in a terminal: opens a conversation on standard output or standard error, whichever is a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from dragoman.app.connecting import choose_first_model
from dragoman.app.options import Options
from dragoman.app.setup import Setup, has_server_files, may_have_hooks, set_up
from dragoman.base.words import say
from dragoman.cli.output import Output
from dragoman.cli.screen import Screen
from dragoman.values.errors import InputError

if TYPE_CHECKING:
    from dragoman.app.config_tables import FolderTrust
    from dragoman.cli.conversation import Conversation
    from dragoman.cli.trust_question import Answer


def converse(options: Options) -> int:
    """Talk until the user leaves, and return the exit code. Raises DragomanError if it cannot start."""
    try:
        setup = set_up(options, ask_trust=_ask_trust)
        if setup.trust.is_trusted and has_server_files(setup):
            from dragoman.cli.mcp_question import ask_about_servers

            ask_about_servers(setup)
        _ask_hooks(setup)
    except EOFError:  # the user left at the question
        return 0
    if setup.config.ui.mode == "plain" or not _can_be_live(options):
        return open_conversation(choose_first_model(setup, may_ask=True)).run()
    from dragoman.tui.opening import open_live

    return open_live(setup).run()


def _ask_trust(trust: FolderTrust) -> Answer:
    """Under the first frame of a conversation where there is one; else line by line, on a terminal in its usual mode."""
    if (first := sys.modules.get("dragoman.tui.first")) is not None and first.shown is not None:
        from dragoman.tui.trust_frame import ask_in_frame

        return ask_in_frame(first.shown, trust)
    from dragoman.cli.trust_question import ask_trust

    return ask_trust(trust)


def _ask_hooks(setup: Setup) -> None:
    """Ask once about hooks that the project brings. Raises EOFError if the user leaves."""
    if not setup.trust.is_trusted or not may_have_hooks(setup):
        return
    from dragoman.cli.hooks_question import ask_hooks

    ask_hooks(setup, _make_room)


def _make_room() -> None:
    if (first := sys.modules.get("dragoman.tui.first")) is not None:
        first.take_back()


def _can_be_live(options: Options) -> bool:
    """Whether this terminal can show a live region, and this system has what that takes. A log on the same terminal would run through
    it."""
    if options.debug and sys.stderr is not None and sys.stderr.isatty():
        return False
    try:
        from dragoman.tui.first import can_draw
    except ImportError:
        return False
    return can_draw(dict(os.environ))


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
