"""Spans of runs, tool calls and compressions. Loaded by `dragoman.traces.enable`, and by nothing else.

Which span is the parent follows from the context of the task: a run has one task, each of its calls another, and a function in a thread
runs in a copy of the call's context. So a span that a tool opens, and a run that it starts, are children of the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider

from dragoman.loop.compression import Compression
from dragoman.loop.run import Run
from dragoman.loop.trace_content import agent_names, answer_content, as_text, prompt_content, result_content
from dragoman.loop.traced_requests import (
    Attributes,
    Instruments,
    TracedProvider,
    conversation_attributes,
    describe_failure,
    error_type,
    finish_reasons,
    provider_name,
    usage_attributes,
)
from dragoman.tools.job import CallReport, Job
from dragoman.tools.scheduler import Scheduler
from dragoman.values.calls import Later, Show, Tool, ToolOutput, WrappingTool
from dragoman.values.contracts import Provider
from dragoman.values.messages import Message, Text, ToolCall, ToolSpec
from dragoman.values.parts import text_of


class Traces:
    """What `tracing.active` is while traces are on."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None, capture_content: bool) -> None:
        self._instruments = Instruments(tracer_provider, meter_provider, capture_content)

    def watch(self, provider: Provider) -> Provider:
        return provider if isinstance(provider, TracedProvider) else TracedProvider(provider, self._instruments)

    async def drive(self, run: Run) -> None:
        span = self._start_run(run)
        token = otel_context.attach(trace.set_span_in_context(span))
        try:
            await run._drive()
        except BaseException as error:
            describe_failure(span, error, self._instruments.clean)
            raise
        else:
            self._describe_end(span, run)
        finally:
            otel_context.detach(token)
            span.end()

    def scheduler(self, *args: Any, **kwargs: Any) -> Scheduler:
        return TracedScheduler(self._instruments, *args, **kwargs)

    async def compress(self, work: Awaitable[Compression]) -> Compression:
        attributes = {"gen_ai.operation.name": "compress", **conversation_attributes()}
        with self._instruments.tracer.start_as_current_span(
            "compress", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                done = await work
            except BaseException as error:
                describe_failure(span, error, self._instruments.clean)
                raise
            span.set_attribute("dragoman.compression.status", done.status)
            span.set_attribute("dragoman.compression.tokens_before", done.original_tokens)
            span.set_attribute("dragoman.compression.tokens_after", done.new_tokens)
            if done.status not in ("compressed", "noop"):
                span.set_attribute("error.type", done.status)
                span.set_status(Status(StatusCode.ERROR, self._instruments.clean(done.reason)))
            return done

    # --- a run

    def _start_run(self, run: Run) -> Span:
        model, name = run._session.model, agent_names.get(run._harness, "") or run._harness.name
        self._instruments.clean.know(model.provider)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": provider_name(model.provider),
            "gen_ai.request.model": model.name,
            "gen_ai.conversation.id": run._session.id,
        }
        if name:
            attributes["gen_ai.agent.name"] = name
        span = self._instruments.tracer.start_span(f"invoke_agent {name}".strip(), attributes=attributes)
        if self._instruments.capture_content and run._prompt is not None and span.is_recording():
            span.set_attributes(prompt_content(run._prompt, self._instruments.clean))
        return span

    def _describe_end(self, span: Span, run: Run) -> None:
        if not span.is_recording():
            return
        result = run.result
        span.set_attributes(usage_attributes(result.usage))
        span.set_attributes({"dragoman.turns": result.turns, "dragoman.requests": result.requests})
        if run.ended is not None:
            span.set_attribute("dragoman.outcome", run.ended.outcome)
        if result.cost_usd is not None:
            span.set_attribute("dragoman.cost_usd", result.cost_usd)
        if result.finish is not None:
            span.set_attribute("gen_ai.response.finish_reasons", finish_reasons(result.finish))
            if self._instruments.capture_content:
                answer = Message("assistant", (Text(result.text),))
                span.set_attributes(answer_content(answer, result.finish, self._instruments.clean))
        if run._error is not None:
            describe_failure(span, run._error, self._instruments.clean)


# --- tool calls


class TracedScheduler(Scheduler):
    """A span for each call: while it runs, or, where it did not run, of no length, with the reason."""

    def __init__(self, instruments: Instruments, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._instruments = instruments

    def _start(self, job: Job) -> None:
        assert job.tool is not None
        job.tool = _TracedTool(job.tool, job, self._instruments)
        super()._start(job)

    def _record(self, job: Job, output: ToolOutput) -> CallReport:
        report = super()._record(job, output)
        if not isinstance(job.tool, _TracedTool):
            span = _start_call(self._instruments, job.call, job.tool.spec if job.tool is not None else None)
            _describe_output(self._instruments, span, report.output)
            span.end()
        return report


class _TracedTool(WrappingTool):
    """One call's tool, with the span around its run."""

    def __init__(self, tool: Tool, job: Job, instruments: Instruments) -> None:
        super().__init__(tool)
        self._job = job
        self._instruments = instruments

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        span = _start_call(self._instruments, self._job.call, self.spec, args)
        token = otel_context.attach(trace.set_span_in_context(span))
        try:
            output = await self.tool.run(args, show)
            _describe_output(self._instruments, span, output)
            return output
        except Later:
            span.set_attribute("dragoman.pending", True)
            raise
        except BaseException as error:
            _fail_call(self._instruments, span, "timeout" if self._job.is_timed_out else error_type(error), str(error))
            raise
        finally:
            otel_context.detach(token)
            span.end()


def _start_call(instruments: Instruments, call: ToolCall, spec: ToolSpec | None, args: Mapping[str, Any] | None = None) -> Span:
    name = spec.name if spec is not None else call.name
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        **conversation_attributes(),
    }
    if spec is not None and spec.description:
        attributes["gen_ai.tool.description"] = spec.description
    span = instruments.tracer.start_span(f"execute_tool {name}", attributes=attributes)
    if instruments.capture_content and span.is_recording():
        span.set_attribute("gen_ai.tool.call.arguments", as_text(call.arguments if args is None else args, instruments.clean))
    return span


def _describe_output(instruments: Instruments, span: Span, output: object) -> None:
    """`output` is what the tool returned: one that is not ours may return anything, and the scheduler refuses it after us."""
    if not isinstance(output, ToolOutput):
        return
    if instruments.capture_content:
        span.set_attribute("gen_ai.tool.call.result", as_text(result_content(output.content), instruments.clean))
    if output.is_error:
        _fail_call(instruments, span, _error_type(output), text_of(output.content))


def _fail_call(instruments: Instruments, span: Span, kind: str, words: str) -> None:
    """What a tool says of its failure is content: it may quote arguments and files."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, instruments.clean(words)[:1_000] if instruments.capture_content else kind))


def _error_type(output: ToolOutput) -> str:
    if output.error_type == "cancelled":
        return "Cancelled"
    if output.error_type == "exception":
        try:
            return str(msgspec.json.decode(output.extras).get("exception") or "exception")
        except (msgspec.DecodeError, AttributeError):
            return "exception"
    return output.error_type or "_OTHER"
