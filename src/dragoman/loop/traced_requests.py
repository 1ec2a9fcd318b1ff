"""A span, and two metrics, for each answer that a model is asked for.

By the conventions one span covers the whole operation with its retries; each retry is an event on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from dragoman.loop.trace_content import FINISH_REASONS, Clean, Cleaner, answer_content, request_content, sender_of
from dragoman.values.calls import prompt_at_work
from dragoman.values.contracts import Provider
from dragoman.values.errors import Cancelled
from dragoman.values.events import FieldOmitted, ResponseFinished, Retrying, StreamEvent, TextDelta, ThoughtDelta, UsageUpdated
from dragoman.values.messages import FinishReason, Request, Response
from dragoman.values.usage import Usage
from dragoman.values.wrapping import WrappingProvider

Attributes = dict[str, AttributeValue]

PROVIDER_NAMES = {
    "gemini": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "vertex_region": "gcp.vertex_ai",
    "responses": "openai",
    "azure": "azure.ai.openai",
    "xai": "x_ai",
    "kimi": "moonshot_ai",
    "mistral": "mistral_ai",
}
"""The conventions' names of services that we call otherwise. Any other deployment goes by its own name."""
TOKEN_BOUNDS = tuple(4.0**power for power in range(14))
SECONDS_BOUNDS = tuple(0.01 * 2**power for power in range(14))
"""Both as the conventions advise."""


class Instruments:
    """What spans and metrics are made with."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None, capture_content: bool) -> None:
        self.tracer = trace.get_tracer("dragoman", tracer_provider=tracer_provider)
        meter = metrics.get_meter("dragoman", meter_provider=meter_provider)
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BOUNDS,
        )
        self.seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS_BOUNDS,
        )
        self.capture_content = capture_content
        self.clean = Cleaner()


class TracedProvider(WrappingProvider):
    """Every event and exception passes through unchanged."""

    def __init__(self, provider: Provider, instruments: Instruments) -> None:
        super().__init__(provider)
        self._instruments = instruments

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        asked = _Asked(self.provider, request, self._instruments, is_streamed=True)
        events = self.provider.stream(request)
        try:
            while True:
                # Current while the provider works, and not while our consumer does: what it opens is not a part of this request.
                token = otel_context.attach(asked.context)
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
                finally:
                    otel_context.detach(token)
                asked.see(event)
                yield event
        except BaseException as error:
            asked.fail(error)
            raise
        finally:
            try:
                await events.aclose()
            finally:
                asked.end()

    async def generate(self, request: Request) -> Response:
        asked = _Asked(self.provider, request, self._instruments)
        token = otel_context.attach(asked.context)
        try:
            asked.response = await self.provider.generate(request)
            return asked.response
        except BaseException as error:
            asked.fail(error)
            raise
        finally:
            otel_context.detach(token)
            asked.end()


class _Asked:
    """One operation under way."""

    def __init__(self, provider: Provider, request: Request, instruments: Instruments, *, is_streamed: bool = False) -> None:
        instruments.clean.know(provider)
        self._instruments = instruments
        self._began_s = time.perf_counter()
        self._first_s = 0.0
        self._usage: Usage | None = None
        self._error = ""
        self.response: Response | None = None
        self._common = {
            "gen_ai.operation.name": "chat",
            **service_attributes(provider),
            "gen_ai.request.model": request.model or provider.model,
        }
        kind = SpanKind.INTERNAL if provider.deployment is not None and provider.deployment.in_process else SpanKind.CLIENT
        attributes = self._common | _settings_attributes(request, is_streamed)
        name = f"chat {self._common['gen_ai.request.model']}"
        self.span = instruments.tracer.start_span(name, kind=kind, attributes=attributes)
        self.context = trace.set_span_in_context(self.span)
        if instruments.capture_content and self.span.is_recording():
            self.span.set_attributes(request_content(request, instruments.clean))

    def see(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta | ThoughtDelta):
            self._first_s = self._first_s or time.perf_counter()
        elif isinstance(event, Retrying):
            self._first_s = 0.0
            self._add_retry(event)
        elif isinstance(event, ResponseFinished):
            self.response = event.response
            self._first_s = self._first_s or time.perf_counter()
        elif isinstance(event, UsageUpdated):
            self._usage = event.usage
        elif not isinstance(event, FieldOmitted):
            self._first_s = self._first_s or time.perf_counter()

    def fail(self, error: BaseException) -> None:
        """A consumer that stops reading once the answer is complete has not cancelled anything."""
        if self.response is None:
            self._error = error_type(error)
            describe_failure(self.span, error, self._instruments.clean)

    def end(self) -> None:
        seconds, response = time.perf_counter() - self._began_s, self.response
        measured: Attributes = dict(self._common)
        if response is not None:
            self._usage = response.usage
            if response.model_version:
                measured["gen_ai.response.model"] = response.model_version
        if self.span.is_recording():
            self.span.set_attributes(self._ending(response))
        if self._usage is not None and not self._usage.is_unknown:
            for kind, count in (("input", self._usage.input_tokens), ("output", self._usage.output_tokens)):
                self._instruments.tokens.record(count, measured | {"gen_ai.token.type": kind}, self.context)
        if self._error:
            measured["error.type"] = self._error
        self._instruments.seconds.record(seconds, measured, self.context)
        self.span.end()

    def _ending(self, response: Response | None) -> Attributes:
        attributes = usage_attributes(self._usage)
        if self._first_s:
            attributes["gen_ai.response.time_to_first_chunk"] = self._first_s - self._began_s
        if response is None:
            return attributes
        attributes["gen_ai.response.finish_reasons"] = finish_reasons(response.finish)
        if response.response_id:
            attributes["gen_ai.response.id"] = response.response_id
        if response.model_version:
            attributes["gen_ai.response.model"] = response.model_version
        if self._instruments.capture_content:
            attributes.update(answer_content(response.message, response.finish, self._instruments.clean))
        return attributes

    def _add_retry(self, event: Retrying) -> None:
        told: Attributes = {
            "dragoman.retry.attempt": event.attempt,
            "dragoman.retry.wait_s": event.wait_s,
            "dragoman.retry.reason": self._instruments.clean(str(event.reason)),
        }
        if event.model:
            told["gen_ai.request.model"] = event.model
        self.span.add_event("dragoman.retry", told)


def service_attributes(provider: Provider) -> Attributes:
    attributes: Attributes = {"gen_ai.provider.name": provider_name(provider)}
    sender = sender_of(provider)
    try:
        parts = urlsplit(sender.base_url if sender is not None else "")
        host, port = parts.hostname, parts.port
    except ValueError:  # an address nobody can connect to: the request itself will say so
        return attributes
    if host:
        attributes |= {"server.address": host, "server.port": port or (80 if parts.scheme == "http" else 443)}
    return attributes


def provider_name(provider: Provider) -> str:
    return PROVIDER_NAMES.get(provider.name, provider.name)


def conversation_attributes() -> Attributes:
    """The session that the current task works for."""
    session = prompt_at_work.get().rpartition("#")[0]
    return {"gen_ai.conversation.id": session} if session else {}


def usage_attributes(usage: Usage | None) -> Attributes:
    """What the service reported: unknown counts are left out, and so are kinds of tokens that were not used."""
    if usage is None or usage.is_unknown:
        return {}
    attributes: Attributes = {"gen_ai.usage.input_tokens": usage.input_tokens, "gen_ai.usage.output_tokens": usage.output_tokens}
    if usage.cache_read_tokens:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens:
        attributes["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_write_tokens
    if usage.thought_tokens:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.thought_tokens
    return attributes


def finish_reasons(finish: FinishReason) -> tuple[str, ...]:
    return (FINISH_REASONS[finish],)


def error_type(error: BaseException) -> str:
    """The name of the exception; `Cancelled` for all the ways in which work is called off."""
    return "Cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit | Cancelled) else type(error).__name__


def describe_failure(span: Span, error: BaseException, clean: Clean) -> None:
    span.set_attribute("error.type", error_type(error))
    words = clean(" ".join(str(error).split()))[:1_000]
    span.set_status(Status(StatusCode.ERROR, words or error_type(error)))


def _settings_attributes(request: Request, is_streamed: bool) -> Attributes:
    settings = request.settings
    attributes = conversation_attributes()
    if is_streamed:
        attributes["gen_ai.request.stream"] = True
    if settings.response_schema or settings.response_mime == "application/json":
        attributes["gen_ai.output.type"] = "json"
    if settings.stop:
        attributes["gen_ai.request.stop_sequences"] = settings.stop
    if settings.top_k is not None:
        attributes["gen_ai.request.top_k"] = float(settings.top_k)
    for name, value in (
        ("temperature", settings.temperature),
        ("top_p", settings.top_p),
        ("max_tokens", settings.max_output_tokens),
    ):
        if value is not None:
            attributes[f"gen_ai.request.{name}"] = value
    return attributes
