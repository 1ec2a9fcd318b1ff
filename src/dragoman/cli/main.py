"""Entry point of the program.

This module imports only `sys`, so that `dragoman --version` answers before anything else is loaded. Each command imports what it needs.
"""

import sys

EXIT_INTERRUPTED = 130
"""The exit code of a cancelled run in dragoman.values.errors; repeated here because this module imports nothing of ours at the top."""


def main(argv: list[str] | None = None) -> int:
    """Run the program on `argv` and return its exit code. Without `argv`: run it on sys.argv, and exit the process with that code.

    Never shows a traceback: Ctrl-C is silent, and an unexpected error is reported in one line.
    """
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if arguments in (["--version"], ["-V"]) and _print_version():
            return 0
        code = _run_on(arguments, is_process=argv is None)
    except KeyboardInterrupt:  # in the middle of an import, before signals are handled, or by an import hook of somebody else's
        code = EXIT_INTERRUPTED
    if argv is None:
        _exit_process(code)
    return code


def _print_version() -> bool:
    """False where it cannot be written: then the program says so, which needs more than sys."""
    from dragoman import __version__

    try:
        print(f"dragoman {__version__}", flush=True)
    except OSError:
        return False
    return True


def _run_on(arguments: list[str], *, is_process: bool) -> int:
    if is_process:
        from dragoman.cli.startup import end_quietly_on_signals, hold_standard_descriptors

        if None in (sys.stdin, sys.stdout, sys.stderr):
            hold_standard_descriptors()
        end_quietly_on_signals(arguments)
        if arguments[:1] == ["acp"] and not {"-h", "--help", "-V", "--version", "--sign-in"}.intersection(arguments):
            from dragoman.acp.door import greet_early

            greet_early()
        _show_first_frame(arguments)
    from dragoman.cli.program import run

    return run(arguments)


def _show_first_frame(arguments: list[str]) -> None:
    """If a conversation begins, show its composer before anything else is loaded. Other commands load nothing for it."""
    if any(word.startswith(("-p", "--prompt", "-h", "--help", "--output", "--worktree", "--search")) for word in arguments) or (
        arguments and not arguments[0].startswith("-") and " " not in arguments[0]
    ):
        return
    import os

    try:
        if not os.isatty(0) or not os.isatty(1):
            return
        from dragoman.tui import first
    except OSError:
        return
    first.show(arguments)


def _exit_process(code: int) -> None:
    """End the process now, without waiting for threads: one may hang for a minute in a DNS lookup."""
    import os

    try:
        import atexit

        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass  # closed, or the reader is gone
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    os._exit(code)
