"""Logging and telemetry around any provider: a log line when a request starts and when it ends, and its figures."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from dragoman.base import jsontext
from dragoman.providers.redact import Secrets, known_secrets, redact
from dragoman.values.calls import prompt_at_work
from dragoman.values.contracts import Provider
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent, UsageUpdated
from dragoman.values.messages import Request, Response
from dragoman.values.usage import Usage
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

BODY_LIMIT = 4_000
"""How many characters of a body are logged."""

logging.getLogger("dragoman").addHandler(logging.NullHandler())  # silent unless the program sets logging up


class Figures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Time, tokens and outcome of one request."""

    provider: str
    model: str
    kind: Literal["stream", "generate", "count_tokens", "embed"]
    outcome: Literal["finished", "failed", "cancelled"]
    finish: str = ""
    """The finish reason, if there was an answer."""
    usage: Usage | None = None
    cost_usd: float | None = None
    """None if the profile has no prices."""
    first_event_s: float | None = None
    """From the start to the first event of any attempt; None if there was no event, or nothing was streamed."""
    total_s: float = 0.0
    retries: int = 0
    messages: int = 0
    tools: int = 0
    error: str = ""
    """The error's type."""
    prompt_id: str = ""
    """The prompt it was made for, as in `ToolCallRequested.prompt_id`; empty outside a run."""


T = TypeVar("T")


class Logged(WrappingProvider):
    """Wraps a Provider. Every event and exception passes through unchanged.

    INFO logs when a request starts and ends, WARNING when it fails, DEBUG adds bodies, truncated and with secrets redacted.
    With logging off and no `on_finished`, the wrapped provider's own stream is returned, so it costs nothing. What `on_finished` raises
    goes to the event loop's exception handler, which prints it unless the program has set another.
    """

    def __init__(
        self,
        provider: Provider,
        logger: logging.Logger | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        on_finished: Callable[[Figures], object] | None = None,
        secrets: Secrets = (),
        body_limit: int = BODY_LIMIT,
    ) -> None:
        super().__init__(provider)
        self._log = logger or logging.getLogger("dragoman.providers")
        self._clock = clock
        self._on_finished = on_finished
        self._secrets = secrets
        self._body_limit = body_limit
        self._numbers = itertools.count(1)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        if not self._is_enabled:
            return self.provider.stream(request)
        return self._stream(request)

    async def generate(self, request: Request) -> Response:
        if not self._is_enabled:
            return await self.provider.generate(request)
        watch = self._watch("generate", request.model, request)
        response = await self._await_logged(watch, self.provider.generate(request))
        watch.usage, watch.finish = response.usage, response.finish.value
        self._log_finish(watch, response)
        return response

    async def count_tokens(self, request: Request) -> int:
        if not self._is_enabled:
            return await self.provider.count_tokens(request)
        watch = self._watch("count_tokens", request.model, request)
        tokens = await self._await_logged(watch, self.provider.count_tokens(request))
        watch.finish = f"{tokens} tokens"
        self._log_finish(watch)
        return tokens

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        if not self._is_enabled:
            return await self.provider.embed(texts, model)
        watch = self._watch("embed", model, None)
        watch.messages = len(texts)
        vectors = await self._await_logged(watch, self.provider.embed(texts, model))
        watch.finish = f"{len(vectors)} vectors"
        self._log_finish(watch)
        return vectors

    async def _stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        watch = self._watch("stream", request.model, request)
        events = self.provider.stream(request)
        response: Response | None = None
        try:
            async for event in events:
                if isinstance(event, Retrying):
                    watch.retries += 1
                elif watch.first_event_s is None:
                    watch.first_event_s = self._clock() - watch.started
                if isinstance(event, UsageUpdated):
                    watch.usage = event.usage
                elif isinstance(event, ResponseFinished):
                    response = event.response
                    watch.usage, watch.finish = response.usage, event.reason.value
                yield event
        except BaseException as error:
            # A consumer that stops reading once the answer is complete has not cancelled anything.
            if response is not None and not isinstance(error, Exception):
                self._log_finish(watch, response)
            else:
                self._log_failure(watch, error)
            raise
        else:
            self._log_finish(watch, response)
        finally:
            await events.aclose()

    async def _await_logged(self, watch: _RunningRequest, work: Awaitable[T]) -> T:
        try:
            return await work
        except BaseException as error:
            self._log_failure(watch, error)
            raise

    # --- logging

    @property
    def _is_enabled(self) -> bool:
        return self._on_finished is not None or self._log.isEnabledFor(logging.WARNING)

    def _watch(self, kind: Literal["stream", "generate", "count_tokens", "embed"], model: str, request: Request | None) -> _RunningRequest:
        prompt_id = prompt_at_work.get()
        label = f"{self.name} {model} #{next(self._numbers)}{f' [{prompt_id}]' if prompt_id else ''}"
        watch = _RunningRequest(kind, label, model, self._clock(), prompt_id)
        if request is not None:
            watch.messages, watch.tools = len(request.messages), len(request.tools)
        if self._log.isEnabledFor(logging.INFO):
            self._log_start(watch, request)
            watch.started = self._clock()  # do not count the time logging took
        return watch

    def _log_start(self, watch: _RunningRequest, request: Request | None) -> None:
        body = self._body(request)
        size = "unknown" if body is None else f"{len(body):,}"
        self._log.info("%s: %s, %d messages, %s bytes, %d tools", watch.label, watch.kind, watch.messages, size, watch.tools)
        if body and self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("%s: sends %s", watch.label, self._excerpt(body))

    def _log_finish(self, watch: _RunningRequest, response: Response | None = None) -> None:
        figures = self._figures(watch, "finished")
        self._log.info("%s: %s", watch.label, _LazyText(_describe, figures))
        if response is not None and self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("%s: answered %s", watch.label, self._excerpt(jsontext.encode(response)))
        self._report(figures)

    def _log_failure(self, watch: _RunningRequest, error: BaseException) -> None:
        cancelled = not isinstance(error, Exception)
        if watch.usage is not None:
            watch.usage = msgspec.structs.replace(watch.usage, incomplete=1)
        figures = self._figures(watch, "cancelled" if cancelled else "failed", "" if cancelled else type(error).__name__)
        if cancelled:
            self._log.info("%s: cancelled, %s", watch.label, _LazyText(_describe, figures))
        else:
            self._log.warning("%s: %s: %s; %s", watch.label, figures.error, _LazyText(self._message, error), _LazyText(_describe, figures))
        self._report(figures)

    def _figures(self, watch: _RunningRequest, outcome: Literal["finished", "failed", "cancelled"], error: str = "") -> Figures:
        return Figures(
            provider=self.name,
            model=watch.model,
            kind=watch.kind,
            outcome=outcome,
            finish=watch.finish,
            usage=watch.usage,
            cost_usd=self._cost(watch),
            first_event_s=watch.first_event_s,
            total_s=self._clock() - watch.started,
            retries=watch.retries,
            messages=watch.messages,
            tools=watch.tools,
            error=error,
            prompt_id=watch.prompt_id,
        )

    def _cost(self, watch: _RunningRequest) -> float | None:
        if watch.usage is None:
            return None
        try:
            prices = self.provider.profile(watch.model).prices
        except Exception:  # a missing price must not fail the request
            return None
        return prices.cost_usd(watch.usage) if prices else None

    def _report(self, figures: Figures) -> None:
        if self._on_finished is None:
            return
        try:
            self._on_finished(figures)
        except Exception as error:  # the request has been answered, and must not fail for it
            failed = {"message": str(say("providers.hook_failed")), "exception": error}
            asyncio.get_running_loop().call_exception_handler(failed)

    def _body(self, request: Request | None) -> bytes | None:
        if request is None:
            return None
        try:
            return self.provider.prepare(request).body
        except Exception:  # the request itself will raise it
            return None

    def _message(self, error: BaseException) -> str:
        return redact(" ".join(str(error).split()), self._secrets)[:1_000]

    def _excerpt(self, body: bytes) -> str:
        # Truncated after redacting, so that no half of a secret is left at the end; and before, so that a long body costs little.
        secrets = known_secrets(self._secrets)
        start = body[: 4 * self._body_limit + 6 * max([1_000, *map(len, secrets)])]
        text = redact(start.decode("utf-8", "replace"), secrets)
        if len(start) == len(body) and len(text) <= self._body_limit:
            return text
        return f"{text[: self._body_limit]}… ({len(body):,} bytes)"


class _RunningRequest:
    """A request while it runs."""

    def __init__(
        self, kind: Literal["stream", "generate", "count_tokens", "embed"], label: str, model: str, started: float, prompt_id: str
    ) -> None:
        self.kind: Literal["stream", "generate", "count_tokens", "embed"] = kind
        self.label = label
        self.model = model
        self.started = started
        self.prompt_id = prompt_id
        self.messages = self.tools = self.retries = 0
        self.first_event_s: float | None = None
        self.usage: Usage | None = None
        self.finish = ""


class _LazyText:
    """Text that is computed only if the line is logged."""

    def __init__(self, make: Callable[..., str], *args: Any) -> None:
        self._make, self._args = make, args

    def __str__(self) -> str:
        return self._make(*self._args)


def _describe(figures: Figures) -> str:
    usage = figures.usage
    words = [figures.finish]
    if usage is not None:
        cache = f" ({usage.cache_read_tokens} read from cache, {usage.cache_write_tokens} written)"
        least = "at least " if usage.incomplete else ""
        words.append(f"{least}{usage.input_tokens} tokens in{cache if usage.cache_read_tokens or usage.cache_write_tokens else ''}")
        words.append(f"{least}{usage.output_tokens} out")
        if figures.cost_usd is not None:
            words.append(f"{least}${figures.cost_usd:.6f}")
    if figures.first_event_s is not None:
        words.append(f"first event {figures.first_event_s:.3f} s")
    words.append(f"total {figures.total_s:.3f} s")
    if figures.retries:
        words.append(f"{figures.retries} {'retry' if figures.retries == 1 else 'retries'}")
    return ", ".join(filter(None, words))
