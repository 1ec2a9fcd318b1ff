"""A subcommand of the program inside a conversation: `/sessions …`, `/context …`, `/models …`, `/config …` take the same words and options.

What it prints is returned, and nothing reaches the terminal: a live region stands there. It runs in a thread of its own, because some
subcommands have an event loop of their own.
"""

from __future__ import annotations

import contextvars
import io
import shlex
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from dragoman.app.arguments import OPTIONS, parse
from dragoman.app.options import Options
from dragoman.app.setup import Setup
from dragoman.base.words import chosen_language, say
from dragoman.values.errors import InputError


class Printed(NamedTuple):
    """What a subcommand printed."""

    text: str
    notices: tuple[str, ...]
    """What it wrote to standard error, a line each."""


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


def run_subcommand(options: Options, columns: int) -> Printed:
    """Raises what the subcommand raises. A question to the user counts as not answered: --yes answers it."""
    if options.help:
        from dragoman.base.wrapping import lay_out
        from dragoman.conversation.help_texts import help_for

        return Printed(lay_out(help_for(options.command, chosen_language()), columns), ())
    if options.words[:1] == ("delete",) and not options.yes:
        raise InputError(say("conversation.agree_with_yes", line=" ".join((f"/{options.command}", *options.words))))
    with _capture(columns) as (out, err):
        returned = _in_thread(lambda: _call(options, columns))
    text = returned if isinstance(returned, str) else returned[0]
    if options.output_format != "json" and options.words[:1] != ("export",):
        from dragoman.base.wrapping import lay_out

        text = lay_out(text, columns)
    notices = tuple(line for line in err.getvalue().splitlines() if line.strip())
    return Printed(out.written() + text, notices)


def _call(options: Options, columns: int) -> str | tuple[str, int]:
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

            return show_config(options, columns)


# --- where it prints


class _Captured(io.TextIOWrapper):
    """Stands for standard output: as wide as the conversation, and no terminal."""

    def __init__(self, columns: int) -> None:
        super().__init__(io.BytesIO(), getattr(sys.stdout, "encoding", None) or "utf-8", "replace", write_through=True)
        self.columns = columns

    def written(self) -> str:
        self.flush()
        self.seek(0)
        return self.read()


@contextmanager
def _capture(columns: int) -> Generator[tuple[_Captured, io.StringIO]]:
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = _Captured(columns), io.StringIO()
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), out, err
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _in_thread(work: Callable[[], str | tuple[str, int]]) -> str | tuple[str, int]:
    """Waits for it: subcommands answer at once, but for servers on this machine, which have a moment to answer."""
    done: list[str | tuple[str, int]] = []
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
