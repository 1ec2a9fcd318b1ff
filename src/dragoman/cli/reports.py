"""Telling a headless run to whoever reads it: as text, as one JSON object, or as a line of JSON per event.

Each report is begun at most once and ended exactly once, on every way out of the program.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dragoman.app.console import Messages
from dragoman.app.options import Options
from dragoman.base import jsontext
from dragoman.base.text import harmless
from dragoman.base.words import say
from dragoman.cli import call_lines, stream_json
from dragoman.cli.output import Output
from dragoman.cli.startup import all_is_told
from dragoman.values.events import (
    ContentAdded,
    ContextCompressed,
    ContextPruned,
    LoopSuspected,
    PromptProgress,
    SavingChanged,
    StreamInvalid,
    ToolCallFinished,
    ToolCallRequested,
    ToolModeChanged,
    TurnEvent,
    TurnFinished,
    TurnRetried,
    UserCancelled,
)

if TYPE_CHECKING:
    import asyncio

    from dragoman.cli.outcome import Outcome
    from dragoman.loop.agent import Agent
    from dragoman.values.messages import ToolCall


class Report(Protocol):
    def begin(self, agent: Agent, prompt: str) -> None: ...

    def take(self, event: TurnEvent) -> None:
        """Called for every chunk: it must be cheap, and must not block."""
        ...

    def end(self, outcome: Outcome) -> None:
        """Say how it ended. Only the first call counts."""
        ...

    @property
    def response(self) -> str:
        """The answer so far: what the model said last."""
        ...


def report_for(options: Options, out: Output, messages: Messages) -> Report:
    match options.output_format:
        case "json":
            return JsonReport(out)
        case "stream-json":
            return StreamJsonReport(out)
        case "text":
            return TextReport(out, messages, show_calls=messages.is_terminal or options.debug)


def output_for(options: Options) -> Output:
    return Output("" if options.output_format == "text" else "utf-8")


def messages_for(options: Options) -> Messages:
    plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Messages(color=not plain)


def tell_failure(options: Options, outcome: Outcome) -> int:
    """Say in the format that was asked for why nothing was done, and return the exit code."""
    all_is_told()
    out = output_for(options)
    report_for(options, out, messages_for(options)).end(outcome)
    out.finish()
    return outcome.exit_code


class Answer:
    """The text of the turn under way, and that of the last turn that said anything and was valid."""

    def __init__(self) -> None:
        self.last = ""
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def discard(self) -> bool:
        """Whether there was anything to discard."""
        had = any(self._pieces)
        self._pieces.clear()
        return had

    def keep(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.strip():
            self.last = text


def source_lines(sources: Sequence[str]) -> list[str]:
    """What the numbers in an answer stand for, below it."""
    numbered = [f"[{number}] {source}" for number, source in enumerate(sources, 1)]
    return ["", say("sources"), *numbered] if numbered else []


class TextReport:
    """The answer on standard output, everything else on standard error.

    In a terminal everything the model says is shown as it comes. On a pipe what was written cannot be taken back, so there the answer is
    written once it is known to be one: the last turn's text, and nothing of the turns before it.
    """

    def __init__(self, out: Output, messages: Messages, *, show_calls: bool) -> None:
        self._out = out
        self._messages = messages
        self._live = out.is_terminal
        self._show_calls = show_calls
        self._answer = Answer()
        self._calls: dict[str, ToolCall] = {}
        self._at_line_start = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self._countdown: asyncio.TimerHandle | None = None
        self._is_passing = False
        """Whether a line stands there that the next thing takes the place of."""
        self._ended = False

    @property
    def response(self) -> str:
        return self._answer.last

    def begin(self, agent: Agent, prompt: str) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()

    def take(self, event: TurnEvent) -> None:
        if isinstance(event, ContentAdded):
            text = event.text
            self._answer.add(text)
            if self._live:
                if self._is_passing:
                    self._stop_passing()
                self._show(text)
            return
        if isinstance(event, PromptProgress):
            self._pass(call_lines.reading(event))
            return
        self._stop_passing()
        match event:
            case TurnRetried():
                self._retried(event)
            case TurnFinished():
                self._answer.keep()
                self._to_line_start()
            case ToolCallRequested(call=call):
                self._calls[call.id] = call
            case ToolCallFinished():
                self._finished(event)
            case StreamInvalid():
                self._answer.discard()
            case SavingChanged(reason=reason):
                self._tell(reason)
            case LoopSuspected(reason=reason, count=1):
                self._tell(say("loop_suspected", reason=reason))
            case ToolModeChanged(dialect=dialect):
                self._tell(say("tools_in_text", dialect=dialect))
            case ContextPruned() | ContextCompressed() if self._show_calls:
                self._tell(call_lines.context_changed(event), dim=True)
            case _:
                pass

    def end(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        self._stop_passing()
        if self._live:
            self._to_line_start()
        elif outcome.response:
            self._out.write(outcome.response if outcome.response.endswith("\n") else f"{outcome.response}\n")
        for line in source_lines(outcome.sources):
            self._out.write(f"{line}\n")
        self._out.flush()
        if outcome.failure is not None:
            self._messages.line(say("failed", message=outcome.failure.message))

    # --- a terminal

    def _show(self, text: str) -> None:
        text = harmless(text)
        if text:
            self._out.write(text)
            self._at_line_start = text[-1] == "\n"

    def _to_line_start(self) -> None:
        if self._live and not self._at_line_start:
            self._out.write("\n")
            self._at_line_start = True

    def _tell(self, text: str, *, dim: bool = False) -> None:
        """A message of our own, on a line of its own even where both streams are one terminal."""
        self._to_line_start()
        if self._live:
            self._out.flush()
        self._messages.line(text, dim=dim)

    # --- events

    def _retried(self, event: TurnRetried) -> None:
        if self._answer.discard() and self._live:
            self._to_line_start()
            self._show(say("answer_discarded") + "\n")
        self._tell(say("trying_again", reason=event.reason, wait=_seconds(event.wait_s), attempt=event.attempt + 1))
        if self._messages.is_terminal and event.wait_s >= 2 and self._loop is not None:
            self._count_down(self._loop.time() + event.wait_s)

    def _count_down(self, until_s: float) -> None:
        if self._loop is None:
            return
        left_s = until_s - self._loop.time()
        if left_s <= 0.5:
            self._stop_passing()
            return
        self._pass(say("countdown", wait=_seconds(left_s)))
        self._countdown = self._loop.call_later(min(1.0, left_s), self._count_down, until_s)

    def _pass(self, text: str) -> None:
        self._to_line_start()
        if self._live:
            self._out.flush()
        self._messages.passing(text)
        self._is_passing = True

    def _stop_passing(self) -> None:
        if self._countdown is not None:
            self._countdown.cancel()
            self._countdown = None
        if self._is_passing:
            self._is_passing = False
            self._messages.clear()

    def _finished(self, event: ToolCallFinished) -> None:
        call = self._calls.pop(event.call_id, None)
        if call is not None and self._show_calls:
            self._tell(say("call_line", title=call_lines.title(call), outcome=call_lines.outcome(event)), dim=True)


class JsonReport:
    """One object when all is over."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._answer = Answer()
        self._ended = False

    @property
    def response(self) -> str:
        return self._answer.last

    def begin(self, agent: Agent, prompt: str) -> None:
        pass

    def take(self, event: TurnEvent) -> None:
        match event:
            case ContentAdded(text=text):
                self._answer.add(text)
            case TurnFinished():
                self._answer.keep()
            case TurnRetried() | StreamInvalid():
                self._answer.discard()
            case _:
                pass

    def end(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        self._out.write(jsontext.dumps(outcome.told()) + "\n")
        self._out.flush()


class StreamJsonReport:
    """A line per event; the last is the result."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._answer = Answer()
        self._failed = False
        self._ended = False

    @property
    def response(self) -> str:
        return self._answer.last

    def begin(self, agent: Agent, prompt: str) -> None:
        model = f"{agent.provider.name}/{agent.model}"
        tools = [spec.name for spec in agent.registry.specs]
        self._write(stream_json.init(session_id=agent.session_id, model=model, tools=tools, workspace=agent.workspace.root))
        self._write(stream_json.prompted(prompt))

    def take(self, event: TurnEvent) -> None:
        if isinstance(event, ContentAdded):
            self._answer.add(event.text)
        elif isinstance(event, TurnFinished):
            self._answer.keep()
        elif isinstance(event, TurnRetried | StreamInvalid):
            self._answer.discard()
        elif isinstance(event, UserCancelled):
            return  # `end` says it, with the exit code of the signal
        told = stream_json.told(event)
        if told is not None:
            self._failed = self._failed or (told["type"] == "error" and told["severity"] == "error")
            self._write(told)

    def end(self, outcome: Outcome) -> None:
        if self._ended:
            return
        self._ended = True
        failure = outcome.failure
        if failure is not None and not self._failed:
            self._write(stream_json.failure(failure.message, failure.type, failure.exit_code))
        self._write(stream_json.result(outcome))
        self._out.flush()

    def _write(self, told: dict[str, object]) -> None:
        self._out.write(stream_json.line(told))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 2 else f"{seconds:.0f}"
