"""`python -m dragoman`: the program, as the `dragoman` command starts it."""

import sys

from dragoman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
