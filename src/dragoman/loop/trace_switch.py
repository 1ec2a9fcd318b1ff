"""Turning traces on and off for the process. Until `enable` is called, nothing of OpenTelemetry is loaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dragoman.base import late_types
from dragoman.loop.trace_content import agent_names
from dragoman.values import tracing
from dragoman.values.contracts import Provider
from dragoman.values.errors import ConfigError
from dragoman.words import say

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from dragoman.loop.agent import Agent
    from dragoman.loop.tracing import Traces
else:
    (MeterProvider,) = late_types("opentelemetry.metrics", "MeterProvider")
    (TracerProvider,) = late_types("opentelemetry.trace", "TracerProvider")
    (Agent,) = late_types("dragoman.loop.agent", "Agent")

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT = {"true", "1", "span_only", "span_and_event"}


def enable(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    capture_content: bool | None = None,
) -> None:
    """Trace every run that starts from now on, in the whole process. Called again, the new settings hold.

    Without providers, those that the program has set for OpenTelemetry are used.
    Prompts, answers, arguments and results are in spans only with `capture_content=True`, or where it is None and
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it; keys are redacted.
    Raises ConfigError where the extra is not installed.
    """
    if capture_content is None:
        capture_content = os.environ.get(CONTENT_VARIABLE, "").strip().lower() in _WITH_CONTENT
    tracing.active = _load(tracer_provider, meter_provider, capture_content)


def disable() -> None:
    """No more spans for runs that start from now on. Those under way end theirs."""
    tracing.active = None


def name_agent(agent: Agent, name: str) -> None:
    """Give an agent the name it has in traces: `gen_ai.agent.name`, and in the name of the span."""
    agent_names[agent._harness] = name


def trace_provider(provider: Provider) -> Provider:
    """A provider whose requests have spans also where it is used without an agent. An agent's own have them anyway."""
    return tracing.traced(provider) if tracing.active is not None else _load(None, None, False).watch(provider)


def _load(tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None, capture_content: bool) -> Traces:
    try:
        from dragoman.loop.tracing import Traces
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise ConfigError(say("loop.otel_missing")) from error
    return Traces(tracer_provider, meter_provider, capture_content)
