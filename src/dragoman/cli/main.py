"""Where the program starts.

This module imports `sys` alone, so that `dragoman --version` answers before anything else is loaded. What a command needs is
imported by that command.
"""

import sys

EXIT_INTERRUPTED = 130
"""What dragoman.values.errors says for a run that was cancelled, written out because this module imports nothing of ours at the top."""


def main(argv: list[str] | None = None) -> int:
    """Run the program on `argv` and return its exit code. Without `argv`: on the command line's arguments, and leave the process with it.

    No traceback gets out: Ctrl-C is quiet, and whatever nobody expected is told in one line.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from dragoman import __version__

        print(f"dragoman {__version__}")
        return 0
    if argv is None:
        from dragoman.cli.startup import end_quietly_on_signals

        end_quietly_on_signals(arguments)
    try:
        from dragoman.cli.program import run

        code = run(arguments)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    if argv is None:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End the process now. Threads are not waited for: one may hang for a minute in looking up a name."""
    import atexit
    import os

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # closed, or nobody reads any more
    os._exit(code)
