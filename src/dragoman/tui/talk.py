"""What commands and lists need of a conversation with a live region."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from dragoman.conversation.talk import Talk
from dragoman.tui.asking import Printer
from dragoman.tui.canvas import Canvas


class LiveTalk(Talk, Protocol):
    """What a command may use of the live conversation."""

    canvas: Canvas

    @property
    def screen(self) -> Printer: ...

    @property
    def is_busy(self) -> bool: ...

    @property
    def last_answer(self) -> str: ...

    def show_title(self) -> None:
        """The session's title in the title of the terminal's window."""
        ...

    def note_context(self) -> None:
        """What the model sees was changed by hand: the status line is to tell."""
        ...

    def show_diffs(self) -> None:
        """What edits of this conversation changed."""
        ...

    @property
    def at_work(self) -> list[tuple[str, str, str]]:
        """The subagents under way: the id of the call, its title, and what it does."""
        ...

    def stop_call(self, call_id: str) -> bool:
        """End one call of the run that is under way."""
        ...

    def start_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Work of a moment that may go on beside a run."""
        ...

    def write_prompt(self, text: str) -> None:
        """Into the composer, to be edited and sent."""
        ...
