"""`dragoman` in a terminal: opens a conversation on standard output or standard error, whichever is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.app.asking import Ask, FirstQuestion, LineQuestions
from dragoman.app.connecting import choose_first_model
from dragoman.app.console import Messages
from dragoman.app.options import Options
from dragoman.app.setup import Setup, has_server_files, may_have_hooks, set_up
from dragoman.values.errors import Unauthorized

if TYPE_CHECKING:
    from dragoman.app.config_tables import FolderTrust
    from dragoman.app.trust import Answer


def converse(options: Options) -> int:
    """Talk until the user leaves, and return the exit code. Raises DragomanError if it cannot start."""
    by_line = LineQuestions()

    def ask(question: FirstQuestion) -> str:
        return _ask(question, by_line)

    try:
        setup = set_up(options, ask_trust=lambda trust: _ask_trust(trust, ask))
        _ask_about_offers(setup, ask)
    except EOFError:  # the user left at the question
        return 0
    try:
        return _open(setup, options, by_line)
    except EOFError:  # the user left at a question
        return 0


def _open(setup: Setup, options: Options, by_line: LineQuestions) -> int:
    """Where the model that is named has no key, the ways in are shown. Raises EOFError if the user leaves."""
    open_it = _open_in_lines if setup.config.ui.mode == "plain" or not _can_be_live(options) else _open_live
    try:
        converse_in_it = open_it(setup, by_line)
    except Unauthorized as error:
        if (found := _ask_for_a_way(setup, by_line, error)) is None:
            raise
        converse_in_it = open_it(found, by_line)
    return converse_in_it()


def _ask_for_a_way(setup: Setup, by_line: LineQuestions, error: Unauthorized) -> Setup | None:
    """None where nobody can be asked."""
    if setup.choice is not None or sys.stdin is None or not sys.stdin.isatty():
        return None
    from dragoman.app.first_use import agree_on_another

    if (first := sys.modules.get("dragoman.tui.first")) is not None:
        first.take_back()
    Messages().line(str(error))
    return agree_on_another(setup, by_line)


def _open_live(setup: Setup, by_line: LineQuestions) -> Callable[[], int]:
    """Returns what holds the conversation."""
    from dragoman.tui.opening import open_live

    return open_live(setup, by_line).run


def _ask_trust(trust: FolderTrust, ask: Ask) -> Answer:
    from dragoman.conversation.first_questions import trust_question

    return "yes" if ask(trust_question(trust)) == "y" else "no"


def _ask_about_offers(setup: Setup, ask: Ask) -> None:
    """Ask once about servers and hooks that the project brings. Raises EOFError if the user leaves."""
    if not setup.trust.is_trusted or not (has_server_files(setup) or may_have_hooks(setup)):
        return
    from dragoman.conversation.offers import ask_about_offers

    if problem := ask_about_offers(setup, ask):
        if (first := sys.modules.get("dragoman.tui.first")) is not None:
            first.take_back()
        Messages().line(problem)


def _ask(question: FirstQuestion, by_line: LineQuestions) -> str:
    """Under the first frame of a conversation where there is one; else line by line, on a terminal in its usual mode."""
    if (first := sys.modules.get("dragoman.tui.first")) is not None and first.shown is not None:
        from dragoman.tui.question_frame import ask_in_frame

        return ask_in_frame(first.shown, question)
    return by_line(question)


def _can_be_live(options: Options) -> bool:
    """Whether this terminal can show a live region, and this system has what that takes. A log on the same terminal would run through
    it."""
    if options.debug and sys.stderr is not None and sys.stderr.isatty():
        return False
    from dragoman.tui.first import can_draw

    return can_draw(dict(os.environ))


def _open_in_lines(setup: Setup, by_line: LineQuestions) -> Callable[[], int]:
    from dragoman.plain.opening import open_plain

    return open_plain(choose_first_model(setup, by_line), by_line).run
