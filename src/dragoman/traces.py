"""OpenTelemetry: spans and metrics of runs, requests and tool calls, by the conventions for generative AI. Needs `dragoman[otel]`."""

from dragoman.loop.trace_switch import disable as disable
from dragoman.loop.trace_switch import enable as enable
from dragoman.loop.trace_switch import name_agent as name_agent
from dragoman.loop.trace_switch import trace_provider as trace_provider
