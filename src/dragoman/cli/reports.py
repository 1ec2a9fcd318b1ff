"""Reports of a headless run: as text, as one JSON object, or as one JSON line per event.

`begin` is called at most once and `end` exactly once, on every way out of the program.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dragoman.app.console import Messages
from dragoman.app.options import Options
from dragoman.app.output import Output
from dragoman.base import jsontext
from dragoman.base.clock import now_ms
from dragoman.base.text import strip_controls
from dragoman.cli.startup import mark_result_written
from dragoman.conversation import call_lines
from dragoman.values.events import (
    CompressionStarted,
    ContextCompressed,
    ContextPruned,
    ModelSwitched,
    NoticeGiven,
    PromptRead,
    Retrying,
    StreamInvalid,
    TextDelta,
    ToolCallFinished,
    ToolCallRequested,
    TurnEvent,
    TurnFinished,
    UserCancelled,
)
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.cli.outcome import Outcome
    from dragoman.loop.agent import Agent
    from dragoman.values.messages import ToolCall


class Report(Protocol):
    """Shows a run in one of the output formats."""

    def begin(self, agent: Agent, prompt: str) -> None: ...

    def take(self, event: TurnEvent) -> None:
        """Called for every chunk: it must be cheap, and must not block."""
        ...

    def tell(self, message: str) -> None:
        """Show a message of the program's own, on a line of its own."""
        ...

    def end(self, outcome: Outcome) -> None:
        """Report the outcome. Only the first call counts."""
        ...

    @property
    def response(self) -> str:
        """The answer so far: the text of the model's last turn."""
        ...


def report_for(options: Options, out: Output, messages: Messages) -> Report:
    match options.output_format:
        case "json":
            return JsonReport(out, messages)
        case "stream-json":
            return StreamJsonReport(out, messages)
        case "text":
            return TextReport(out, messages, show_calls=messages.is_terminal or options.debug)


def output_for(options: Options) -> Output:
    return Output("" if options.output_format == "text" else "utf-8")


def messages_for(options: Options) -> Messages:
    plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Messages(color=not plain)


def report_failure(options: Options, outcome: Outcome) -> int:
    """Report a failure before the run in the requested output format, and return the exit code."""
    mark_result_written()
    out = output_for(options)
    messages = messages_for(options)
    report_for(options, out, messages).end(outcome)
    out.finish()
    report_unwritten(out, messages)
    return outcome.exit_code


def report_unwritten(out: Output, messages: Messages) -> bool:
    """Say that standard output could not be written, as on a full disk. Returns whether it was so."""
    if out.problem is None:
        return False
    messages.line(say("cannot_write", reason=out.problem.strerror or out.problem))
    return True


class AnswerText:
    """The text of the current turn, and of the last valid turn that had any."""

    def __init__(self) -> None:
        self.last = ""
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def discard(self) -> bool:
        """Drop the current turn's text. Returns whether there was any."""
        had = any(self._pieces)
        self._pieces.clear()
        return had

    def keep(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.strip():
            self.last = text


def source_lines(sources: Sequence[object]) -> list[str]:
    """The numbered list of sources that follows an answer."""
    numbered = [f"[{number}] {source}" for number, source in enumerate(sources, 1)]
    return ["", say("sources"), *numbered] if numbered else []


class TextReport:
    """The answer on standard output, everything else on standard error.

    In a terminal the model's text is shown as it arrives. What was written to a pipe cannot be taken back, so there only the final answer
    is written, at the end: the last turn's text, and nothing of the turns before it.
    """

    def __init__(self, out: Output, messages: Messages, *, show_calls: bool) -> None:
        self._out = out
        self._messages = messages
        self._live = out.is_terminal
        self._show_calls = show_calls
        self._answer = AnswerText()
        self._calls: dict[str, ToolCall] = {}
        self._at_line_start = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self._countdown: asyncio.TimerHandle | None = None
        self._has_transient = False
        """Whether a transient line is shown, which the next output replaces."""
        self._ended = False

    @property
    def response(self) -> str:
        return self._answer.last

    def begin(self, agent: Agent, prompt: str) -> None:
        self._loop = asyncio.get_running_loop()

    def take(self, event: TurnEvent) -> None:
        if isinstance(event, TextDelta):
            text = event.text
            self._answer.add(text)
            if self._live:
                if self._has_transient:
                    self._clear_transient()
                self._show(text)
            return
        if isinstance(event, PromptRead):
            self._show_transient(call_lines.prompt_progress(event))
            return
        self._clear_transient()
        match event:
            case Retrying():
                self._show_retry(event)
            case TurnFinished():
                self._answer.keep()
                self._to_line_start()
            case ToolCallRequested(call=call):
                self._calls[call.id] = call
            case ToolCallFinished():
                self._show_result(event)
            case StreamInvalid():
                self._answer.discard()
            case CompressionStarted():
                self.tell(call_lines.compressing(event), dim=True)
            case ContextPruned() | ContextCompressed():
                if self._show_calls:
                    self.tell(call_lines.context_change(event), dim=True)
            case _:
                if isinstance(event, ModelSwitched):
                    self._discard_shown()
                if (notice := call_lines.notice_of(event)) is not None:
                    self.tell(say("notice", text=notice.text))

    def end(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        self._clear_transient()
        if self._live:
            self._to_line_start()
        elif outcome.response:
            self._out.write(outcome.response if outcome.response.endswith("\n") else f"{outcome.response}\n")
        for line in source_lines(outcome.sources if outcome.is_numbered else ()):
            self._out.write(f"{line}\n")
        self._out.flush()
        if outcome.failure is not None:
            self._messages.line(say("failed", message=outcome.failure.message))

    # --- writing to a terminal

    def _show(self, text: str) -> None:
        text = strip_controls(text)
        if text:
            self._out.write(text)
            self._at_line_start = text[-1] == "\n"

    def _to_line_start(self) -> None:
        if self._live and not self._at_line_start:
            self._out.write("\n")
            self._at_line_start = True

    def tell(self, message: str, *, dim: bool = False) -> None:
        """On its own line even if both streams are the same terminal."""
        self._to_line_start()
        if self._live:
            self._out.flush()
        self._messages.line(message, dim=dim)

    # --- events

    def _discard_shown(self) -> None:
        if self._answer.discard() and self._live:
            self._to_line_start()
            self._show(say("answer_discarded") + "\n")

    def _show_retry(self, event: Retrying) -> None:
        self._discard_shown()
        self.tell(say("trying_again", reason=event.reason, wait=_seconds(event.wait_s), attempt=event.attempt + 1))
        if self._messages.is_terminal and event.wait_s >= 2 and self._loop is not None:
            self._count_down(self._loop.time() + event.wait_s)

    def _count_down(self, until_s: float) -> None:
        if self._loop is None:
            return
        left_s = until_s - self._loop.time()
        if left_s <= 0.5:
            self._clear_transient()
            return
        self._show_transient(say("countdown", wait=_seconds(left_s)))
        self._countdown = self._loop.call_later(min(1.0, left_s), self._count_down, until_s)

    def _show_transient(self, text: str) -> None:
        self._to_line_start()
        if self._live:
            self._out.flush()
        self._messages.transient_line(text)
        self._has_transient = True

    def _clear_transient(self) -> None:
        if self._countdown is not None:
            self._countdown.cancel()
            self._countdown = None
        if self._has_transient:
            self._has_transient = False
            self._messages.clear()

    def _show_result(self, event: ToolCallFinished) -> None:
        call = self._calls.pop(event.call_id, None)
        if call is not None and self._show_calls:
            self.tell(
                say("call_line", title=call_lines.title(event.as_run(call), outside=event.outside), outcome=call_lines.outcome(event)),
                dim=True,
            )


class JsonReport:
    """One object at the end; what the user should know besides on standard error."""

    def __init__(self, out: Output, messages: Messages) -> None:
        self._out = out
        self._messages = messages
        self._answer = AnswerText()
        self._ended = False

    @property
    def response(self) -> str:
        return self._answer.last

    def begin(self, agent: Agent, prompt: str) -> None:
        pass

    def take(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._answer.add(text)
            case TurnFinished():
                self._answer.keep()
            case Retrying() | StreamInvalid():
                self._answer.discard()
            case ModelSwitched() | NoticeGiven():
                if isinstance(event, ModelSwitched):
                    self._answer.discard()
                if (notice := call_lines.notice_of(event)) is not None:
                    self.tell(say("notice", text=notice.text))
            case _:
                pass

    def tell(self, message: str) -> None:
        self._messages.line(message)

    def end(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        self._out.write(jsontext.dumps(outcome.to_json()) + "\n")
        self._out.flush()


class StreamJsonReport:
    """A line per event; the last is the result."""

    def __init__(self, out: Output, messages: Messages) -> None:
        from dragoman.cli import stream_json  # not loaded for the other formats

        self._objects = stream_json
        self._out = out
        self._messages = messages
        self._answer = AnswerText()
        self._failed = False
        self._ended = False

    @property
    def response(self) -> str:
        return self._answer.last

    def begin(self, agent: Agent, prompt: str) -> None:
        model = f"{agent.provider.name}/{agent.model}"
        tools = [spec.name for spec in agent.tools.specs]
        known = agent.approvals.known_sandbox
        sandbox = known.name if known is not None else None
        self._write(
            self._objects.init_data(session_id=agent.session_id, model=model, tools=tools, workspace=agent.workspace.root, sandbox=sandbox)
        )
        self._write(self._objects.prompt_data(prompt))

    def take(self, event: TurnEvent) -> None:
        if isinstance(event, TextDelta):
            self._answer.add(event.text)
        elif isinstance(event, TurnFinished):
            self._answer.keep()
        elif isinstance(event, Retrying | StreamInvalid | ModelSwitched):
            self._answer.discard()
        elif isinstance(event, UserCancelled):
            return  # `end` reports it, with the exit code of the signal
        data = self._objects.event_data(event)
        if data is not None:
            self._failed = self._failed or (data["type"] == "error" and data["severity"] == "error")
            self._write(data)

    def tell(self, message: str) -> None:
        self._messages.line(message)

    def end(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        failure = outcome.failure
        if failure is not None and not self._failed:
            self._write(self._objects.failure_data(failure.message, failure.type, failure.exit_code))
        self._write(self._objects.result_data(outcome))
        self._out.flush()

    def _write(self, data: dict[str, object]) -> None:
        self._out.write(self._objects.line(data, now_ms()))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 2 else f"{seconds:.0f}"
