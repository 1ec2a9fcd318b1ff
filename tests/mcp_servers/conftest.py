"""The real program with MCP servers that are programs of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from program import Place, Service, service
from quay import Quay


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


@pytest.fixture
def quay(place: Place) -> Quay:
    return Quay(place)


@pytest.fixture
def serve(place: Place) -> Iterator[Callable[..., Service]]:
    with ExitStack() as stack:

        def start(script: str, **options: Any) -> Service:
            place.service = stack.enter_context(service(script, **options))
            return place.service

        yield start
