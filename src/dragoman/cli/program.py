"""Which command was asked for, and what becomes of errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from msgspec.structs import replace

from dragoman.app.options import Options
from dragoman.base.words import choose_language, say
from dragoman.cli.arguments import BadArguments, parse
from dragoman.cli.help_texts import help_for
from dragoman.values.errors import DragomanError, InputError


def run(argv: Sequence[str]) -> int:
    """Do what the arguments say and return the exit code. Only KeyboardInterrupt gets out."""
    try:
        options = parse(argv)
    except BadArguments as error:
        return _failed(error.options, error)
    choose_language(options.lang)
    if options.help:
        return _print(help_for(options.command))
    if options.version:
        from dragoman import __version__

        return _print(f"dragoman {__version__}\n")
    try:
        return _command(options)
    except BrokenPipeError:
        return _quiet()
    except Exception as error:
        return _failed(options, error)


def _command(options: Options) -> int:
    match options.command:
        case "models":
            from dragoman.cli.models import show_models

            return _print(show_models(options))
        case "config":
            from dragoman.cli.show_config import show_config

            return _print(show_config(options))
        case "doctor":
            from dragoman.cli.doctor import examine

            text, code = examine(options)
            _print(text)
            return code
        case "sessions" if options.words[:1] == ("resume",) and len(options.words) < 3:
            return _run(replace(options, command="run", words=(), resume=(*options.words, "latest")[1]))
        case "sessions":
            from dragoman.cli.sessions import do

            return _print(do(options))
        case "context":
            from dragoman.cli.context import do as do_with_context

            text, code = do_with_context(options)
            _print(text)
            return code
        case "serve-local":
            from dragoman.cli.serve_local import serve

            return serve(options)
        case _:
            return _run(options)


def _run(options: Options) -> int:
    from dragoman.cli.prompt import stdin_is_terminal

    if options.prompt is None and stdin_is_terminal():
        if options.output_format != "text":
            raise InputError(say("format_needs_prompt", format=options.output_format))
        from dragoman.cli.terminal import converse

        return converse(options)
    from dragoman.cli.headless import answer

    return answer(options)


def _print(text: str) -> int:
    if sys.stdout is not None:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # a conversation may be in any script, and the terminal's encoding know one
            sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
        sys.stdout.flush()
    return 0


def _failed(options: Options, error: Exception) -> int:
    """Tell it in the format that was asked for. What nobody expected is told like the rest; --debug shows where it came from."""
    from dragoman.cli.outcome import failed

    if options.debug and not isinstance(error, DragomanError):
        from dragoman.app.debug_log import print_traceback

        print_traceback(error)
    outcome = failed(error)
    if options.command == "run":
        from dragoman.cli.reports import tell_failure

        return tell_failure(options, outcome)
    told = outcome.told()["error"]
    if options.output_format == "json":
        from dragoman.base import jsontext

        _print(jsontext.dumps({"error": told}) + "\n")
    else:
        from dragoman.app.console import Messages

        Messages().line(say("failed", message=told["message"]))
    return outcome.exit_code


def _quiet() -> int:
    """Nobody reads: what is still in the buffer must not complain when the process ends."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return 0
