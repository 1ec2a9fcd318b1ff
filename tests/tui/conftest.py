"""A fresh workspace with the conversation in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from program import Place
from system_parts import require_program
from tui.live_program import live_place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with live_place(tmp_path) as place:
        yield place


@pytest.fixture
def with_tmux() -> None:
    require_program("tmux")
