"""A fresh workspace with the real program in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from program import Place, Service, service


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


@pytest.fixture
def serve(place: Place) -> Iterator[Callable[..., Service]]:
    """Play a script to the program: `serve("text: Hello")`."""
    with ExitStack() as stack:

        def start(script: str, **options: Any) -> Service:
            place.service = stack.enter_context(service(script, **options))
            return place.service

        yield start
