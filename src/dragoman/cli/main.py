"""Where the program starts.

This module imports `sys` alone, so that `dragoman --version` answers before anything else is loaded. What a command needs is
imported by that command.
"""

import sys

USAGE = """\
usage: dragoman [--version] [--help]

  -V, --version   print the version and exit
  -h, --help      print this text and exit

The agent itself is not here yet. What there is:

  import dragoman                      the Python API
  python -m dragoman.providers.mock    a loopback server that speaks the providers' protocols
"""

EXIT_INPUT = 42
"""The exit code of dragoman.errors for bad input, written out because this module imports nothing of ours at the top."""


def main(argv: list[str] | None = None) -> int:
    """Run the program on `argv` (by default the command line's arguments) and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    match arguments:
        case ["--version" | "-V"]:
            from dragoman import __version__

            print(f"dragoman {__version__}")
            return 0
        case ["--help" | "-h"]:
            print(USAGE, end="")
            return 0
        case []:
            complaint = "nothing to do"
        case _:
            complaint = f"unknown arguments: {' '.join(arguments)}"
    print(f"dragoman: {complaint}\n\n{USAGE}", end="", file=sys.stderr)
    return EXIT_INPUT
