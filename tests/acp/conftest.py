"""The tests of editors share a client with each other alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from program import Place, Service

sys.path.append(str(Path(__file__).resolve().parent))

import acp_schema
from editor import Editor


@pytest.fixture
def edit(place: Place, serve: Callable[..., Service]) -> Iterator[Callable[..., Editor]]:
    """The program, spoken to by an editor, with a service that plays a script: `edit("text: Hello")`. Every message is held against the
    schema."""
    acp_schema.found.clear()
    with ExitStack() as stack:

        def start(
            script: str,
            *arguments: str,
            answers: Any = "y",
            capabilities: dict[str, Any] | None = None,
            greets: bool = True,
            **env: str,
        ) -> Editor:
            serve(script)
            editor = Editor(place, arguments, answers, env)
            stack.callback(editor.end)
            if greets:
                editor.greet(**(capabilities or {}))
            return editor

        yield start
    assert acp_schema.found == []
