"""What traces runs, if anything does: a switch for the whole process."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from dragoman.values.contracts import Provider


class Tracing(Protocol):
    """Watches runs from inside and makes spans of them: see `dragoman.traces`."""

    async def drive(self, run: Any) -> None:
        """Carry the run out, under a span of its own."""
        ...

    def watch(self, provider: Provider) -> Provider:
        """The same provider, with a span for each answer it is asked for."""
        ...

    @property
    def scheduler(self) -> Any:
        """A Scheduler that makes a span for each call."""
        ...

    async def compress(self, work: Awaitable[Any]) -> Any:
        """Carry a compression out, under a span of its own."""
        ...


active: Tracing | None = None
"""For the whole process; None, unless `dragoman.traces.enable` was called. Read it where it is used, as `tracing.active`."""


def traced(provider: Provider) -> Provider:
    return provider if active is None else active.watch(provider)
