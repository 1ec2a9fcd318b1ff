"""What slash commands need of a conversation, plain or live."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.app.opening import CLOSING_S
from dragoman.app.setup import Setup
from dragoman.conversation.style import Style
from dragoman.loop.agent import Agent
from dragoman.sessions.store import FileStore
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation


async def close_in_time(closing: Coroutine[Any, Any, None]) -> None:
    """Close what a conversation does not use any more, such as the model before; what takes longer is left alone."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSING_S):
            await closing


class Printing(Protocol):
    """Where commands write: messages of ours, whole texts, and lines of others."""

    @property
    def columns(self) -> int: ...

    def message(self, text: str, style: Style = "") -> None: ...

    def page(self, text: str) -> None: ...

    def line(self, text: str, style: Style = "") -> None: ...


class Talk(Protocol):
    """What commands need of the conversation."""

    @property
    def screen(self) -> Printing: ...

    may_retry: bool

    @property
    def agent(self) -> Agent: ...

    @property
    def setup(self) -> Setup: ...

    @property
    def store(self) -> FileStore: ...

    @property
    def runs(self) -> int: ...

    @property
    def model(self) -> str: ...

    @property
    def usage(self) -> Usage: ...

    @property
    def cost_usd(self) -> float | None: ...

    @property
    def cost_is_whole(self) -> bool: ...

    def ask(self, prompt: str | None, invocation: Invocation | None = None) -> None: ...

    def change_model(self, name: str) -> None: ...

    def leave(self, code: int) -> None: ...

    async def open_session(self, setup: Setup) -> None:
        """Go on with another session, or a new one. Raises DragomanError, and then this one goes on."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Work other than a run that takes a while; errors are shown."""
        ...

    def show_progress(self, text: str) -> None:
        """What was started does this now."""
        ...
