"""A subcommand of the program inside a conversation: `/sessions …`, `/context …`, `/models …`, `/config …` take the same words and options.

What it prints is returned with its notices, and nothing reaches the streams of the process: they belong to a front end, or to several
at once. It runs in a thread of its own, because some subcommands have an event loop of their own. A slash command returns it as a value
(`Subcommand`): a conversation that has the event loop for itself waits for the thread, one that shares it lets the others go on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextvars
import shlex
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from dragoman.app.arguments import OPTIONS, parse
from dragoman.app.options import Options
from dragoman.app.setup import Setup
from dragoman.app.surface import Notices, Surface, shown_on
from dragoman.base.wrapping import LEAST_COLUMNS, lay_out
from dragoman.conversation.actions import Output
from dragoman.values.errors import InputError
from dragoman.words import chosen_language, say


class Printed(NamedTuple):
    """What a subcommand has to show."""

    text: str
    notices: tuple[str, ...]
    """What it told beside its text, a line each."""
    code: int = 0
    """What the program would exit with."""


class Subcommand(NamedTuple):
    """What a slash command has the program do."""

    options: Options
    columns: int
    """0: any width."""


def parse_words(setup: Setup, command: str, rest: str) -> Options:
    """What `dragoman COMMAND REST` would be called with here. Raises InputError."""
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise InputError(say("conversation.unreadable_words", reason=error)) from error
    options, own = parse([command, *words]), setup.options
    return msgspec.structs.replace(
        _as_started(options, own) if command == "config" else options,
        directory=options.directory or setup.workspace,
        config=options.config or own.config,
        lang=options.lang or chosen_language(),
        no_color=True,
    )


def _as_started(options: Options, own: Options) -> Options:
    """With what the conversation was started with: its settings are asked about."""
    default = Options()
    keys = [each.key for each in OPTIONS if "config" in each.commands and each.key != "output_format"]
    return msgspec.structs.replace(options, **{key: getattr(own, key) for key in keys if getattr(options, key) == getattr(default, key)})


async def run_beside_others(subcommand: Subcommand) -> Printed:
    """The event loop goes on meanwhile: other conversations may stand in it. Raises as `run_subcommand` does."""
    return await asyncio.to_thread(run_subcommand, *subcommand)


def run_subcommand(options: Options, columns: int) -> Printed:
    """Raises what the subcommand raises. A question to the user counts as not answered: --yes answers it."""
    if options.help:
        from dragoman.conversation.help_texts import help_for

        return Printed(lay_out(help_for(options.command, chosen_language()), columns), ())
    if options.words[:1] == ("delete",) and not options.yes:
        raise InputError(say("conversation.agree_with_yes", line=" ".join((f"/{options.command}", *options.words))))
    notices = Notices()
    with shown_on(Surface(max(columns, LEAST_COLUMNS) if columns else 0, False, _encoding(), notices, can_ask=False)):
        returned = _in_thread(lambda: _call(options))
    if isinstance(returned, bytes):
        return Printed(returned.decode("utf-8", "replace"), tuple(notices.lines))
    text, code = (returned, 0) if isinstance(returned, str) else returned
    if options.output_format != "json" and options.words[:1] != ("export",):
        text = lay_out(text, columns)
    return Printed(text, tuple(notices.lines), code)


def _call(options: Options) -> Output:
    match options.command:
        case "sessions":
            from dragoman.conversation.pages.sessions import run_sessions

            return run_sessions(options)
        case "context":
            from dragoman.conversation.pages.context import run_context

            return run_context(options)
        case "models":
            from dragoman.conversation.pages.models import run_models

            return run_models(options)
        case "approvals":
            from dragoman.conversation.pages.approvals_command import run_approvals

            return run_approvals(options)
        case _:
            from dragoman.conversation.pages.show_config import show_config

            return show_config(options)


def _encoding() -> str:
    """Which symbols can be shown: the conversation stands on the same terminal."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _in_thread(work: Callable[[], Output]) -> Output:
    """Waits for it: subcommands answer at once, but for servers on this machine, which have a moment to answer."""
    done: list[Output] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
