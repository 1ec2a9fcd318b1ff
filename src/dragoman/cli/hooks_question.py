"""The question whether a project's hooks run, shown with their commands, before the agent is opened."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.app.console import Messages
from dragoman.app.finding_hooks import find_hooks
from dragoman.app.setup import Setup
from dragoman.base.words import say
from dragoman.cli.hooks_command import hook_line
from dragoman.cli.trust_question import ask_yes_or_no
from dragoman.extensions.hooks.agreement import agree


def ask_hooks(setup: Setup, make_room: Callable[[], None]) -> None:
    """Ask about those that nothing was said about, and remember the answer. Raises EOFError if the user leaves."""
    found = find_hooks(setup)
    if not found.unasked:
        return
    make_room()
    lines = [say("hooks_question_intro"), *(f"  {hook_line(hook)}" for hook in found.unasked)]
    is_yes = ask_yes_or_no(lines, say("hooks_question"))
    if is_yes is None:
        return
    try:
        agree(setup.places.hooks_file, found.unasked, is_yes=is_yes)
    except OSError as error:
        Messages().line(say("hooks_not_saved", reason=error.strerror or error))
