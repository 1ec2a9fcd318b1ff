"""How long the next request is, in the model's own tokens: estimated from the last count, and counted by the service when it gets close."""

from __future__ import annotations

import asyncio

from dragoman.context.tokens import LEAST_ERROR, MIN_SCALE
from dragoman.loop.model import Model
from dragoman.loop.session import Session
from dragoman.values.errors import DragomanError
from dragoman.values.messages import Request
from dragoman.values.profile import Profile
from dragoman.values.record import Compressed, FieldRefused, Kept, NotCompressed, Pruned, ToolFinished

UNANCHORED = 0.6
"""While a model has not counted a request itself, an estimate above this share of its window is checked."""
COUNTING_S = 15.0


class RequestSize:
    """How long the next request is."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._history = session.history
        self._counted: tuple[int, int, int] | None = None
        """The last exact count: the entries there were, the raw estimate, the count."""

    @property
    def profile(self) -> Profile:
        view, model = self._history.view, self._session.model
        return Model(model.provider, view.model or model.name).profile_within(view.windows)

    @property
    def window(self) -> int:
        return self.profile.prompt_window

    @property
    def scale(self) -> float:
        """The model's tokens to one of the raw estimate."""
        return self._history.view.meter.scale(self.profile.token_scale)

    @property
    def tokens(self) -> int:
        return self.tokens_of(self._history.view.raw_tokens)

    def tokens_of(self, raw_tokens: int) -> int:
        """The request's tokens, estimated from the last count that the service gave."""
        if self._counted is not None and not self._answered_since(self._counted[0]):
            return max(round(self._counted[2] + self.scale * (raw_tokens - self._counted[1])), 0)
        return self._history.view.meter.tokens(raw_tokens, self.profile.token_scale)

    async def measure(self, request: Request | None = None, raw_tokens: int = 0) -> int:
        """The size of the next request, or of another with this raw estimate; counted by the service where it comes near the window."""
        view = self._history.view
        raw_tokens = raw_tokens if request is not None else view.raw_tokens
        tokens = self.tokens_of(raw_tokens)
        if not self.may_exceed(tokens) or raw_tokens * MIN_SCALE > self.window:  # no tokenizer makes so much fit
            return tokens
        if self._counted is not None and self._counted[:2] == (len(self._history.entries), raw_tokens):
            return tokens
        try:
            async with asyncio.timeout(COUNTING_S):
                counted = await self._session.model.provider.count_tokens(request or view.request)
        except (DragomanError, TimeoutError):
            return tokens  # the estimate is all there is
        if request is None:
            self._counted = len(self._history.entries), raw_tokens, counted
        return counted

    def may_exceed(self, tokens: int) -> bool:
        """Whether a request of about this size may be too long for the window, as far as estimates can be trusted."""
        meter = self._history.view.meter
        if not meter.reported:
            return tokens > self.window * UNANCHORED
        return tokens * (1 + max([LEAST_ERROR, *map(abs, meter.errors[-20:])])) > self.window

    def _answered_since(self, entries: int) -> bool:
        """Whether something came that an earlier count knows nothing of: an answer with a count of its own, or another model."""
        return any(
            not isinstance(entry, Pruned | Kept | Compressed | NotCompressed | ToolFinished | FieldRefused)
            for entry in self._history.entries[entries:]
        )
