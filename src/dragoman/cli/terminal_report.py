"""A run as the terminal shows it: TurnEvents in, lines out. Text as it comes, and one line for each thought, call, retry and fault."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.base.graphemes import fit
from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.cli import call_lines
from dragoman.cli.output import Output
from dragoman.cli.screen import Screen
from dragoman.values.events import (
    CitationShown,
    ContentAdded,
    ContextCompressed,
    ContextOverflowed,
    ContextPruned,
    ErrorRaised,
    LoopSuspected,
    PromptAccepted,
    PromptProgress,
    SavingChanged,
    StreamInvalid,
    ThoughtAdded,
    ToolCallConfirmation,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    ToolModeChanged,
    TurnEvent,
    TurnFinished,
    TurnRetried,
    UserCancelled,
)
from dragoman.values.messages import ToolResult

if TYPE_CHECKING:
    import asyncio

    from dragoman.loop.run import Result
    from dragoman.tools.citations import Source
    from dragoman.values.messages import Citation, ToolCall
    from dragoman.values.usage import Usage

ODD_ENDINGS = ("(exit code ", "(ended ")
"""How the last line of a command's output begins where it did not end well."""
THOUGHT_CHARS = 2_000
"""As much of a thought as is gathered to show one line of it."""


class TerminalReport:
    """`take` never blocks and never waits. While a question stands, what happens beside it is held back.

    `copy` gets the answers alone, each once it is whole, where standard output is not the terminal.
    """

    def __init__(self, screen: Screen, copy: Output | None = None) -> None:
        self._screen = screen
        self._copy = copy
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held: list[TurnEvent] | None = None
        self._calls: dict[str, ToolCall] = {}
        self._answer: list[str] = []
        self._thought = ""
        self._sources: list[Citation] = []
        self._countdown: asyncio.TimerHandle | None = None
        self._retried: TurnRetried | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls.clear()

    def take(self, event: TurnEvent) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        if isinstance(event, ContentAdded):
            self._settle()
            self._answer.append(event.text)
            self._screen.text(event.text)
        elif isinstance(event, ThoughtAdded):
            self._think(event)
        elif isinstance(event, PromptProgress):
            self._screen.passing(call_lines.reading(event))
        else:
            self._settle()
            self._tell(event)

    @contextmanager
    def held(self) -> Generator[None]:
        """For a question: nothing is written between it and its answer."""
        self._settle()
        self._screen.to_line_start()
        self._held = []
        try:
            yield
        finally:
            events, self._held = self._held, None
            self._screen.to_line_start()
            for event in events:
                self.take(event)

    def end(self, result: Result) -> None:
        """What it took, in one line."""
        self._settle()
        self._screen.to_line_start()
        if result.requests:
            spent = spent_words(result.usage, result.cost_usd, estimated=False)
            self._screen.message(say("run_status", spent=spent, seconds=f"{result.duration_ms / 1000:.1f}"), "dim")

    def _tell(self, event: TurnEvent) -> None:
        match event:
            case ToolCallRequested(call=call):
                self._calls[call.id] = call
            case ToolCallUpdated():
                self._call_goes_on(event)
            case ToolCallFinished():
                self._call_ended(event)
            case TurnFinished():
                self._turn_ended()
            case TurnRetried():
                self._retry(event)
            case StreamInvalid():
                self._discard(say("answer_void"))
            case CitationShown(citation=citation):
                self._sources.append(citation)
            case LoopSuspected(reason=reason, count=1):
                self._screen.message(say("circles", reason=reason), "yellow")
            case ToolModeChanged(dialect=dialect):
                self._screen.message(say("now_in_text", dialect=dialect), "yellow")
            case ContextPruned() | ContextCompressed():
                self._screen.message(call_lines.context_changed(event), "dim")
            case ErrorRaised():
                self._screen.message(say("run_failed", message=event.message) + (say("retry_hint") if event.retryable else ""), "red")
            case UserCancelled():
                self._screen.message(say("run_cancelled"), "yellow")
            case SavingChanged(saved=saved, reason=reason):
                self._screen.message(reason, "yellow" if saved else "red")
            case PromptAccepted() | PromptProgress() | ToolCallConfirmation() | LoopSuspected() | ContentAdded() | ThoughtAdded():
                pass
            case ContextOverflowed():
                pass  # the error that ends the run says it

    def _settle(self) -> None:
        """Whatever was only passing is written down for good, or gone."""
        if self._countdown is not None:
            self._countdown.cancel()
            self._countdown = None
        if self._retried is not None:
            retried, self._retried = self._retried, None
            self._screen.message(say("tried_again", reason=retried.reason, attempt=retried.attempt + 1), "yellow")
        if self._thought:
            thought, self._thought = self._thought, ""
            self._screen.line(fit(say("thought", text=_first_line(thought)), self._screen.columns - 1), "dim")
        self._screen.clear()

    # --- thoughts

    def _think(self, event: ThoughtAdded) -> None:
        if self._retried is not None or (event.subject and self._thought):
            self._settle()  # another thought begins
        before = _first_line(self._thought)
        self._thought = (self._thought + (f"{event.subject}\n" if event.subject else event.text))[:THOUGHT_CHARS]
        if _first_line(self._thought) != before:
            self._screen.passing(say("thought", text=_first_line(self._thought)))

    # --- calls

    def _call_goes_on(self, event: ToolCallUpdated) -> None:
        call = self._calls.get(event.call_id)
        if call is None or event.state != "executing":
            return
        output = event.output_delta.strip().rpartition("\n")[2]
        self._screen.passing(say("call_running", title=call_lines.title(call), output=output))

    def _call_ended(self, event: ToolCallFinished) -> None:
        call = self._calls.pop(event.call_id, None)
        if call is None:
            return
        failed = bool(event.error) or any(isinstance(part, ToolResult) and part.is_error for part in event.parts)
        lines = ((event.error or event.display) if failed else event.display).strip().splitlines() or [""]
        ending = lines[-1] if lines[-1].startswith(ODD_ENDINGS) else ""
        words = one_line(lines[0] if lines[0] == ending else f"{lines[0]} {ending}", 300)
        if failed:
            outcome, style = say("call_failed", why=words), "red"
        elif ending:
            outcome, style = say("call_ended_oddly", what=words), "yellow"
        else:
            outcome, style = say("call_done", what=words), ""
        text = say("call_ended", title=call_lines.title(call), outcome=outcome)
        self._screen.line(text if style else fit(text, self._screen.columns - 1), style)

    # --- answers

    def _turn_ended(self) -> None:
        if self._copy is not None and (text := "".join(self._answer)).strip():
            self._copy.write(text if text.endswith("\n") else f"{text}\n")
        self._answer.clear()
        self._screen.to_line_start()
        if self._sources:
            from dragoman.tools.grounding import sources_of

            for number, source in enumerate(sources_of(self._sources), 1):
                self._screen.message(say("numbered_source", number=number, text=_readable(source)), "dim")
        self._sources.clear()

    def _discard(self, note: str) -> None:
        self._sources.clear()
        if any(self._answer):
            self._screen.message(note, "yellow")
        self._answer.clear()

    # --- retries

    def _retry(self, event: TurnRetried) -> None:
        self._discard(say("answer_discarded"))
        self._retried = event
        if self._loop is None or not self._screen.rewrites:
            self._settle()
        else:
            self._count_down(event, self._loop.time() + event.wait_s, self._loop)

    def _count_down(self, event: TurnRetried, until_s: float, loop: asyncio.AbstractEventLoop) -> None:
        left_s = max(until_s - loop.time(), 0)
        wait = f"{left_s:.1f}" if event.wait_s < 2 else f"{left_s:.0f}"
        self._screen.passing(say("retry_countdown", reason=event.reason, wait=wait, attempt=event.attempt + 1), "yellow")
        if left_s > 0:
            self._countdown = loop.call_later(min(left_s, 0.2 if event.wait_s < 2 else 1.0), self._count_down, event, until_s, loop)


def _readable(source: Source) -> str:
    """With the real target, whatever the title says and however the host is spelled."""
    from dragoman.tools.links import shown_url

    return one_line(f"{source.title} {shown_url(source.uri)}".strip(), 300)


def spent_words(usage: Usage, cost_usd: float | None, *, estimated: bool) -> str:
    """`1,234 tokens in (80% cached) · 56 out · $0.0012`."""
    cached = say("cached_part", percent=round(100 * usage.cache_read_tokens / usage.input_tokens)) if usage.cache_read_tokens else ""
    words = say("tokens_spent", input=f"{usage.input_tokens:,}", cached=cached, output=f"{usage.output_tokens:,}")
    if cost_usd is None:
        return words
    return words + say("cost_at_least" if estimated else "cost", usd=f"{cost_usd:.2f}" if cost_usd >= 10 else f"{cost_usd:.4f}")


def _first_line(text: str) -> str:
    return one_line(next((line for line in text.splitlines() if line.strip(" *_#")), "").strip(" *_#"), 300)
