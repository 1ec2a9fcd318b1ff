"""The real program with MCP servers that are programs of their own."""

from __future__ import annotations

import pytest

from program import Place
from quay import Quay


@pytest.fixture
def quay(place: Place) -> Quay:
    return Quay(place)
