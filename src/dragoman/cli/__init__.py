"""FRONT END. The command-line program: arguments, runs with `-p`, and commands that only the shell has. It opens the other front ends."""

import sys

if sys.argv[:1] == ["-m"] or sys.argv[0].endswith(("/dragoman", "\\dragoman.exe")):
    # This process is the program, and its handlers come with cli/startup.py. Until then Ctrl-C would show a traceback of an import.
    import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without loading more

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
