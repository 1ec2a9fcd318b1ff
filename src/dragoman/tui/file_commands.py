"""Commands in files and skills, for the menu behind a `/`."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from dragoman.app.setup import Setup

AGE_S = 10.0
"""After this time they are looked for again when somebody asks."""


class FileCommandIndex:
    """Nothing is loaded or read before a slash is typed."""

    def __init__(self) -> None:
        self._rows: Mapping[str, str] = {}
        self._read_s = 0.0

    def rows(self, setup: Setup, built_in: Collection[str]) -> Mapping[str, str]:
        """Name with its slash → what it does and where it comes from."""
        if not self._read_s or time.monotonic() - self._read_s > AGE_S:
            from dragoman.app.slash_commands import completions

            self._rows = completions(setup, built_in)
            self._read_s = time.monotonic()
        return self._rows
