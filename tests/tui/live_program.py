"""The conversation with a live region, for tests that drive it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from program import Place


@contextmanager
def live_place(folder: Path) -> Iterator[Place]:
    place = Place(folder)
    place.ui = ""
    try:
        yield place
    finally:
        place.close()
