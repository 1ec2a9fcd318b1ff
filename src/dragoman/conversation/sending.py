"""What a person has sent to a conversation, and what became of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from dragoman.conversation.types import CommandPage
from dragoman.values.messages import Blob, FileRef, Text

if TYPE_CHECKING:
    from dragoman.loop.result import Result

How = Literal["done", "failed", "cancelled", "answered", "steered", "taken_back"]
"""`answered`: a command, by a page. `steered`: the model reads it within the run that was under way. `taken_back`: it was never begun."""


class SentEnd:
    """How it ended."""

    def __init__(self, how: How, result: Result[Any] | None = None, *, page: CommandPage | None = None, error: str = "") -> None:
        self.how = how
        self.result = result
        """Of its run."""
        self.page = page
        self.error = error
        """Why it could not be begun."""


class SentText:
    """Something that was sent. `ended` has its result once it is over."""

    def __init__(self, id: str, text: str, media: tuple[Text | Blob | FileRef, ...] = ()) -> None:
        self.id = id
        self.text = text
        self.media = media
        self.ended: asyncio.Future[SentEnd] = asyncio.get_running_loop().create_future()


class TextAtWork:
    """The conversation's side of it."""

    def __init__(self, sent: SentText) -> None:
        self.sent = sent

    def end(self, done: SentEnd) -> None:
        """The first end counts."""
        if not self.sent.ended.done():
            self.sent.ended.set_result(done)
