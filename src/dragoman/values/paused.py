"""An answer in pieces. A service pauses an answer that takes it long (a search of its own), and goes on when it is sent the piece back."""

from __future__ import annotations

import msgspec

from dragoman.values.messages import Message, Response
from dragoman.values.usage import Usage

MAX_PAUSES = 8
"""How often a service may pause one answer."""


class Pieces:
    """The pieces of one answer that have come so far."""

    def __init__(self) -> None:
        self._pieces: list[Response] = []

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def text(self) -> str:
        """What a person has read of it. It still stands where a retry makes void what came after it."""
        return "".join(piece.message.text for piece in self._pieces)

    def take(self, response: Response) -> bool:
        """Keep it if the service will go on from there. False if the answer is over, or has been paused too often."""
        if response.fault != "paused" or response.message.calls or len(self) >= MAX_PAUSES:
            return False
        self._pieces.append(response)
        return True

    def join(self, last: Response | None = None) -> Response:
        """The whole answer: what the pieces say, and how the last one ended."""
        pieces = [*self._pieces, *([last] if last is not None else [])]
        parts = tuple(part for piece in pieces for part in piece.message.parts)
        usage = sum((piece.usage for piece in pieces), Usage())
        return msgspec.structs.replace(pieces[-1], message=Message("assistant", parts), usage=usage) if len(pieces) > 1 else pieces[-1]
