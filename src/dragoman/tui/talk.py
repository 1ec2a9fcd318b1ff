"""What commands and lists need of a conversation with a live region."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from dragoman.app.setup import Setup
from dragoman.cli.commands import Talk
from dragoman.sessions.store import FileStore
from dragoman.tui.asking import Printer
from dragoman.tui.canvas import Canvas


class LiveTalk(Talk, Protocol):
    canvas: Canvas
    store: FileStore

    @property
    def screen(self) -> Printer: ...

    @property
    def is_busy(self) -> bool: ...

    @property
    def last_answer(self) -> str: ...

    def show_diffs(self) -> None:
        """What edits of this conversation changed."""
        ...

    def write_prompt(self, text: str) -> None:
        """Into the composer, to be edited and sent."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that takes a while and is no run: what goes wrong is told."""
        ...

    async def open_session(self, setup: Setup) -> None:
        """Go on with another session, or a new one. Raises DragomanError, and then this one goes on."""
        ...
