"""A summary in the place of the older messages: asked of the model, checked, and recorded if it is shorter or a person asked for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import aclosing
from typing import Literal

import msgspec

from dragoman.context.compress import MAX_PROMPT_TOKENS, PROMPT_SHARE, Cut, may_be_used, raw_tokens_with, summary_message, verbatim_through
from dragoman.context.decide import MOST_USELESS
from dragoman.context.settings import CompressSettings
from dragoman.context.summarise import read_snapshot, summary_request, words_of
from dragoman.loop.request_size import RequestSize
from dragoman.loop.session import Session
from dragoman.providers.retry import keeps_refusing
from dragoman.values import tracing
from dragoman.values.errors import BudgetExceeded, DragomanError, StreamBroken
from dragoman.values.events import FieldOmitted, PromptRead, RequestDelayed, ResponseFinished, Retrying, TurnEvent
from dragoman.values.messages import FinishReason, Request, Response
from dragoman.values.partial import Arrived
from dragoman.values.record import Compressed
from dragoman.values.usage import Usage
from dragoman.words import say

Status = Literal["noop", "compressed", "extracted", "inflated", "empty", "truncated", "failed"]
_QUOTED_CHARS = 120
_PROMPT = os.path.join(os.path.dirname(__file__), "prompts", "summary.md")


class Compression(msgspec.Struct, frozen=True):
    """What became of an attempt to make the conversation shorter."""

    status: Status
    original_tokens: int = 0
    """The size of the next request before, estimated."""
    new_tokens: int = 0
    """Its size now, estimated in the same way."""
    reason: str = ""
    """Why there is no summary."""
    pruned: int = 0
    """How many results were removed because there is no summary."""


class _NotRepeated(DragomanError):
    """The service failed on a request for a summary, and it is not repeated."""

    def __init__(self, event: Retrying) -> None:
        super().__init__(event.reason)
        self.may_have_cost = event.may_have_cost


class Summariser:
    """Has one stretch of the conversation summed up. `requests` counts how often a model was asked, failed attempts included."""

    def __init__(self, session: Session, size: RequestSize, settings: CompressSettings) -> None:
        self._session = session
        self._history = session.history
        self._size = size
        self._settings = settings
        self.requests = 0

    async def sum_up(
        self,
        cut: Cut,
        focus: str,
        emit: Callable[[TurnEvent], None],
        window: int,
        *,
        may_switch: bool = False,
        limit: int = 0,
        force: bool = False,
    ) -> Compression:
        """Record the summary, or why there is no summary. With `may_switch`, a service that keeps refusing raises: another model may do it.

        `limit`: the window that forces it, if one does. `force`: a person asked for it, so it need not save anything.
        """
        work = self._sum_up(cut, focus, emit, window, may_switch, limit, force)
        return await (work if tracing.active is None else tracing.active.compress(work))

    async def _sum_up(
        self, cut: Cut, focus: str, emit: Callable[[TurnEvent], None], window: int, may_switch: bool, limit: int, force: bool
    ) -> Compression:
        view, original = self._history.view, self._size.tokens
        model = view.model or self._session.model.name
        try:
            response = await self._ask(self._request(model, cut, focus, window), emit, is_asked_for=force)
        except DragomanError as error:
            if isinstance(error, BudgetExceeded) or (may_switch and keeps_refusing(error)):
                raise
            return self._give_up("failed", str(error), model, None)
        model = view.model or model  # a retry policy may have changed it
        status, reason = _fault_of(response)
        if status is not None:
            return self._give_up(status, reason, model, response)
        snapshot = read_snapshot(response.message.text)
        if not snapshot:
            return self._give_up("empty", _why_empty(response.message.text), model, response)
        room = min(MAX_PROMPT_TOKENS, window * PROMPT_SHARE) / self._size.scale
        verbatim = verbatim_through(self._history.entries, cut.through_seq)
        summary = summary_message(snapshot, verbatim, room, keeps_results=bool(cut.kept_seqs))
        new = self._size.tokens_of(raw_tokens_with(view, cut, summary))
        if not may_be_used(original, new, self._settings, window, force=force):
            return self._give_up("inflated", say("loop.summary_too_long", new=new, original=original), model, response, new)
        through, after, kept = cut.through_seq, cut.after_seq, cut.kept_seqs
        self._history.compress(
            through, summary, original, new, after=after, model=model, usage=response.usage, window=limit, kept_seqs=kept
        )
        return Compression("compressed", original, new)

    def _request(self, model: str, cut: Cut, focus: str, window: int) -> Request:
        summaries = {id(entry.summary) for entry in self._history.entries if isinstance(entry, Compressed)}
        request = summary_request(
            model,
            _read_prompt(),
            self._history.view.items[cut.start : cut.end],
            self._size.profile,
            window=window,
            scale=self._size.scale,
            focus=focus,
            is_summary=lambda message: id(message) in summaries,
        )
        return msgspec.structs.replace(request, omit=self._history.view.omit)

    def _give_up(
        self, status: Literal["inflated", "empty", "truncated", "failed"], reason: str, model: str, response: Response | None, new: int = 0
    ) -> Compression:
        tokens = self._size.tokens
        reason = str(reason)
        self._history.not_compressed(status, tokens, reason, model=model, usage=response.usage if response is not None else None)
        if self._history.cache.useless_summaries >= MOST_USELESS:
            reason = str(say("loop.no_more_summaries", reason=reason, count=self._history.cache.useless_summaries))
        return Compression(status, tokens, new or tokens, reason)

    async def _ask(self, request: Request, emit: Callable[[TurnEvent], None], *, is_asked_for: bool) -> Response:
        self.requests += 1
        response: Response | None = None
        model, arrived = self._session.charged(self._session.model), Arrived(self._history.now_ms)
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:  # to its end: so the connection can serve the turn that follows
                    if isinstance(event, Retrying):
                        if self._history.cache.useless_summaries and not (is_asked_for or event.model):
                            raise _NotRepeated(event)  # the summary before this one came to nothing too
                        self._record_spent(arrived.usage(may_have_cost=event.may_have_cost))
                        arrived.begin(event.wait_s)
                        self._follow_retry(event, emit)
                    elif isinstance(event, PromptRead):
                        emit(event)  # a model in this process may take minutes to read
                    elif isinstance(event, RequestDelayed):
                        arrived.add(event)
                        emit(event)
                    elif isinstance(event, FieldOmitted):
                        if self._history.refuse_field(event) is not None:
                            emit(event)
                    elif isinstance(event, ResponseFinished):
                        response = event.response
                        arrived.finish()
                    else:
                        arrived.add(event)
        except BaseException as error:
            is_refused = isinstance(error, Exception) and not getattr(error, "may_have_cost", False)
            self._record_spent(arrived.usage(may_have_cost=not is_refused))
            raise
        if response is None:
            raise StreamBroken(say("loop.no_answer"), provider=model.provider.name)
        return response

    def _follow_retry(self, event: Retrying, emit: Callable[[TurnEvent], None]) -> None:
        self.requests += 1
        emit(event)
        if event.model:
            emit(self._session.follow_retry(event))

    def _record_spent(self, usage: Usage | None) -> None:
        if usage is not None:
            self._history.spend(self._history.view.model, usage, "summary")


def _fault_of(response: Response) -> tuple[Literal["truncated", "failed"] | None, str]:
    match response.finish:
        case FinishReason.LENGTH:
            return "truncated", say("loop.summary_cut")
        case FinishReason.SAFETY | FinishReason.RECITATION | FinishReason.REFUSAL:
            return "failed", say("loop.summary_refused", reason=response.raw_finish or response.finish.value)
        case _:
            return None, ""


def _why_empty(text: str) -> str:
    words = " ".join(words_of(text).split())
    if not words:
        return say("loop.no_snapshot")
    return say("loop.no_summary_in_answer", answer=words if len(words) <= _QUOTED_CHARS else f"{words[: _QUOTED_CHARS - 1]}…")


def _read_prompt() -> str:
    with open(_PROMPT, encoding="utf-8") as file:
        return file.read().strip()
