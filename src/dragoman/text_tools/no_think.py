"""Turns thinking off in words, for models such as Qwen's whose server has no setting for it. With tools as text and with native tools."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import msgspec

from dragoman.values.contracts import HttpRequest, Provider
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Message, Part, PerMessage, Request, Response, Settings, Text
from dragoman.values.profile import Profile
from dragoman.values.wrapping import WrappingProvider

log = logging.getLogger("dragoman.text_tools")

NO_THINK = "/no_think"
"""Qwen's prompt switch that turns thinking off."""


def words_for(wanted: str | None, settings: Settings, profile: Profile) -> str:
    """The words to add to prompts; empty for none. `wanted` is `TextOptions.no_think`."""
    if settings.thinking is None or settings.thinking.effort != "off" or has_own_setting(profile):
        return ""
    if wanted is not None:
        return wanted
    return NO_THINK if needs_words(profile) else ""


def has_own_setting(profile: Profile) -> bool:
    """Say whether the service itself sets how much the model thinks, in a field of its own: no model of this kind knows such words."""
    return profile.thinking in ("budget", "level", "adaptive", "effort")


def needs_words(profile: Profile) -> bool:
    """Say whether the model can be told not to think, but its server cannot."""
    return profile.thinking == "switch" and not profile.thinking_switch


def add_words(parts: list[Part], words: str) -> list[Part]:
    """Add the words to the prompt among the parts: `<no_think>` goes before it, Qwen's `/no_think` behind it."""
    texts = [place for place, part in enumerate(parts) if isinstance(part, Text)]
    if not texts:
        return parts
    is_before = words.startswith("<")
    place = texts[0] if is_before else texts[-1]
    part = parts[place]
    assert isinstance(part, Text)
    text = f"{words}\n\n{part.text}" if is_before else f"{part.text}\n{words}"
    log.debug("added %s to a prompt of %d characters, because thinking is off", words, len(part.text))
    return [*parts[:place], Text(text, part.opaque), *parts[place + 1 :]]


class NoThink(WrappingProvider):
    """A Provider with native tools, whose prompts have the words where thinking is off."""

    def __init__(self, provider: Provider, words: str | None = None) -> None:
        super().__init__(provider)
        self.words = words
        self._memos: dict[str, PerMessage[Message]] = {}

    def prepare(self, request: Request) -> HttpRequest:
        return self.provider.prepare(self.rewrite_request(request))

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self.provider.stream(self.rewrite_request(request))

    async def generate(self, request: Request) -> Response:
        return await self.provider.generate(self.rewrite_request(request))

    async def count_tokens(self, request: Request) -> int:
        return await self.provider.count_tokens(self.rewrite_request(request))

    def rewrite_request(self, request: Request) -> Request:
        """The request as it is sent. A message is always rewritten to the same object, so that its rendered form can be reused."""
        words = words_for(self.words, request.settings, self.profile(request.model))
        if not words:
            return request
        memo = self._memos.setdefault(words, PerMessage[Message](lambda message: _with_words(message, words)))
        return msgspec.structs.replace(request, messages=tuple(memo.over(request.messages)))


def _with_words(message: Message, words: str) -> Message:
    if message.role != "user":
        return message
    parts = add_words(list(message.parts), words)
    return message if all(one is other for one, other in zip(parts, message.parts, strict=True)) else Message("user", tuple(parts))
