"""How messages get to a server and back: what every transport does for the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dragoman.mcp_client.messages import Id, Incoming

Hear = Callable[[Incoming], None]
"""Takes each message of the server. Never raises."""
Lose = Callable[[Exception], None]
"""Takes why no more messages will come: every request that waits has failed."""


class Channel(Protocol):
    """Carries messages. What the server says goes to `hear`, in its order, from when the channel is opened."""

    @property
    def is_open(self) -> bool: ...

    @property
    def cancels_by_message(self) -> bool:
        """Whether a request is cancelled by a notification; else by giving `request` up."""
        ...

    @property
    def stderr(self) -> str:
        """The end of what the server's program wrote to standard error; empty for HTTP."""
        ...

    async def open(self, hear: Hear, lose: Lose) -> None:
        """Raises McpError."""
        ...

    async def request(self, identity: Id, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Send a request. Raises McpError if it is known that no answer will come. Returns when there is no more to do for it: before the
        answer, where all answers come by one stream."""
        ...

    async def tell(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Send a notification or an answer."""
        ...

    def settle(self, version: str, is_modern: bool) -> None:
        """The revision that is spoken from now on."""
        ...

    async def listen(self) -> None:
        """Begin to hear what belongs to no request, where that needs something of its own."""
        ...

    async def aclose(self) -> None: ...
