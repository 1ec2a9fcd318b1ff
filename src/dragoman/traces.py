"""OpenTelemetry: spans and metrics of runs, requests and tool calls, by the conventions for generative AI. Needs `dragoman[otel]`."""

from dragoman.loop.trace_switch import disable, enable, name_agent, trace_provider

__all__ = ["disable", "enable", "name_agent", "trace_provider"]
