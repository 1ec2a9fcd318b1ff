"""Runs the command that the arguments name, and reports errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.app.arguments import BadArguments, parse
from dragoman.app.options import Command, Options
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import choose_language, chosen_language, language_of, say, speak_for_program

if TYPE_CHECKING:
    from dragoman.conversation.actions import Output

PRINTING_COMMANDS: dict[Command, tuple[str, str]] = {
    "models": ("conversation.pages.models", "run_models"),
    "config": ("conversation.pages.show_config", "show_config"),
    "doctor": ("cli.doctor", "examine"),
    "sessions": ("conversation.pages.sessions", "run_sessions"),
    "context": ("conversation.pages.context", "run_context"),
    "approvals": ("conversation.pages.approvals_command", "run_approvals"),
    "trust": ("conversation.pages.trust_command", "run_trust"),
    "hooks": ("conversation.pages.hooks_command", "run_hooks"),
    "auth": ("cli.auth_command", "run_auth"),
    "skills": ("conversation.pages.skills_command", "run_skills"),
    "plugins": ("conversation.pages.skills_command", "run_plugins"),
    "mcp": ("conversation.pages.mcp_command", "run_mcp"),
    "agents": ("conversation.pages.agents_command", "run_agents"),
    "completions": ("cli.completions", "run_completions"),
}
"""The subcommands that print something and end: the module, and its function."""


def run(argv: Sequence[str]) -> int:
    """Run the program on these arguments and return the exit code. Raises nothing but KeyboardInterrupt."""
    speak_for_program()
    choose_language(language_of(os.environ))
    try:
        options = parse(argv)
    except BadArguments as error:
        choose_language(error.options.lang)
        return _report_failure(error.options, _in_chosen_language(argv, error))
    choose_language(options.lang)
    if options.help:
        from dragoman.base.wrapping import USUAL_COLUMNS, columns_of, lay_out
        from dragoman.conversation.help_texts import help_for

        language = chosen_language()  # the configuration is not read for it
        return _print(lay_out(help_for(options.command, language), columns_of(sys.stdout) or USUAL_COLUMNS))
    if options.version:
        from dragoman import __version__

        return _print(f"dragoman {__version__}\n")
    try:
        return _run_command(options)
    except Exception as error:
        return _report_failure(options, error)


def _in_chosen_language(argv: Sequence[str], error: BadArguments) -> BadArguments:
    """The same mistake, once `--lang` is known: it may stand behind it."""
    try:
        parse(argv)
    except BadArguments as again:
        return again
    return error


def _run_command(options: Options) -> int:
    match options.command:
        case "run":
            return _run_agent(options)
        case "sessions" if options.words[:1] == ("resume",) and len(options.words) < 3:
            return _run_agent(_resume_options(options))
        case "acp" if options.sign_in:
            from dragoman.cli.auth_command import sign_in

            return _report(options, sign_in(options))
        case "acp":
            from dragoman.acp.door import serve as serve_editor

            return serve_editor(options)
        case "serve-local":
            from dragoman.cli.serve_local import serve

            return serve(options)
        case "fleet" if options.words[:1] == ("work",):  # there may be many of it: it loads nothing of the supervisor
            from dragoman.fleet.worker import work

            return work(options)
        case "fleet":
            from dragoman.fleet.command import run_fleet

            return run_fleet(options)
        case "view":
            from dragoman.viewer.opening import run_view

            return run_view(options)
        case "doctor" if options.live:
            from dragoman.cli.live_command import run_live

            return _report(options, run_live(options))
        case command:
            return _report(options, load_command(command)(options))


def load_command(name: Command) -> Callable[[Options], Output]:
    """The function of a subcommand that prints something and ends. One command is run, so one module is loaded."""
    module, function = PRINTING_COMMANDS[name]
    return getattr(import_module(f"dragoman.{module}"), function)


def _resume_options(options: Options) -> Options:
    """`dragoman sessions resume [ID]` is `dragoman --resume [ID]`."""
    session_id = options.words[1] if len(options.words) > 1 else "latest"
    return replace(options, command="run", words=(), resume=session_id)


def _run_agent(options: Options) -> int:
    """A conversation if there is a terminal and no prompt, otherwise one answer."""
    if options.worktree is not None:
        from dragoman.cli.worktree import run_in_worktree

        return run_in_worktree(options, _run_agent)
    from dragoman.cli.prompt import stdin_is_terminal

    if options.question and not stdin_is_terminal():
        options = replace(options, prompt=options.question, question="")
    if options.prompt is None and stdin_is_terminal():
        if options.output_format != "text":
            raise InputError(say("format_needs_prompt", format=options.output_format))
        from dragoman.cli.terminal import converse

        return converse(options)
    gc.disable()  # what is loaded and made before the first request stays: looking for garbage in it takes a twentieth of the time
    try:
        from dragoman.cli.headless import run_headless

        return run_headless(options)  # which enables it again when the run begins
    finally:
        gc.enable()


def _report(options: Options, output: Output) -> int:
    """Print a command's output and return its exit code, which is 0 where none comes with it. A terminal's width is kept to, but by what
    is written for a program or a file."""
    if isinstance(output, bytes):
        return _print(output)
    text, code = (output, 0) if isinstance(output, str) else output
    if options.output_format == "json" or options.command == "completions" or options.words[:1] == ("export",):
        return _print(text, code)
    from dragoman.base.wrapping import columns_of, lay_out

    return _print(lay_out(text, columns_of(sys.stdout)), code)


def _print(text: str | bytes, code: int = 0) -> int:
    from dragoman.app.printing import print_out  # a run prints nothing this way

    return print_out(text, code)


def _report_failure(options: Options, error: Exception) -> int:
    """Print the error in the requested output format. With --debug an unexpected one gets a traceback as well."""
    from dragoman.cli.outcome import failed_outcome

    _leave_first_frame()
    if options.debug and not isinstance(error, DragomanError):
        from dragoman.app.debug_log import print_traceback

        print_traceback(error)
    outcome = failed_outcome(error)
    if options.command == "run":
        from dragoman.cli.reports import report_failure

        return report_failure(options, outcome)
    problem = outcome.to_json()["error"]
    if options.output_format == "json":
        from dragoman.base import jsontext

        return _print(jsontext.dumps({"error": problem}) + "\n", outcome.exit_code)
    from dragoman.app.console import Messages

    Messages().line(say("failed", message=problem["message"]))
    return outcome.exit_code


def _leave_first_frame() -> None:
    """Remove the first frame from the terminal if the conversation could not be opened."""
    if (first := sys.modules.get("dragoman.tui.first")) is not None:
        first.take_back()
