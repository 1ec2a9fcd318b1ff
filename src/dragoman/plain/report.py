"""Shows a run's TurnEvents in the terminal: text as it streams, and one line for each thought, call, retry and error."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.app.output import Output
from dragoman.base.graphemes import fit
from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.conversation import call_lines
from dragoman.conversation.command_result import CommandResult, clean_output, read_command_result
from dragoman.conversation.spent_words import spent_words
from dragoman.conversation.style import Style
from dragoman.plain.screen import Screen
from dragoman.values.events import (
    CitationAdded,
    ErrorRaised,
    ModelSwitched,
    PromptRead,
    Retrying,
    StreamInvalid,
    SubagentEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnEvent,
    TurnFinished,
    UserCancelled,
)
from dragoman.values.messages import ToolResult
from dragoman.words import say

if TYPE_CHECKING:
    import asyncio

    from dragoman.conversation.inner_work import InnerWork
    from dragoman.loop.result import Result
    from dragoman.values.messages import Citation, Source, ToolCall

ODD_ENDINGS = ("(exit code ", "(ended ")
"""How the last line of a command's output begins if the command failed."""
_STYLES: dict[str, Style] = {"quiet": "dim", "warning": "yellow", "bad": "red"}
THOUGHT_CHARS = 2_000
"""How much of a thought is kept to show one line of it."""


class TerminalReport:
    """`take` never blocks. Events that arrive while a question is open are shown after it.

    `copy` gets each complete answer and nothing else, if standard output is not the terminal.
    """

    def __init__(self, screen: Screen, copy: Output | None = None) -> None:
        self._screen = screen
        self._copy = copy
        self.folder = ""
        """The workspace: paths inside it are written as from there."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held: list[TurnEvent] | None = None
        self._calls: dict[str, ToolCall] = {}
        self._inner: dict[str, InnerWork] = {}
        """Of the calls that are subagents."""
        self._answer: list[str] = []
        self._thought = ""
        self._sources: list[Citation] = []
        self._countdown: asyncio.TimerHandle | None = None
        self._retried: Retrying | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls.clear()

    def take(self, event: TurnEvent) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        if isinstance(event, TextDelta):
            self._finish_transient()
            self._answer.append(event.text)
            self._screen.text(event.text)
        elif isinstance(event, ThoughtDelta):
            self._show_thought(event)
        elif isinstance(event, PromptRead):
            self._screen.transient_line(call_lines.prompt_progress(event))
        elif isinstance(event, SubagentEvent):
            self._show_inner(event)
        else:
            self._finish_transient()
            self._show_event(event)

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold back events while a question is open, so that nothing is written between it and its answer."""
        self._finish_transient()
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
        """One line with tokens, cost and time."""
        self._finish_transient()
        self._screen.to_line_start()
        if result.requests:
            spent = spent_words(result.usage, result.cost_usd, estimated=False)
            self._screen.message(say("run_status", spent=spent, seconds=f"{result.duration_ms / 1000:.1f}"), "dim")

    def _show_event(self, event: TurnEvent) -> None:
        match event:
            case ToolCallRequested(call=call):
                self._calls[call.id] = call
            case ToolCallUpdated():
                self._show_progress(event)
            case ToolCallFinished():
                self._show_result(event)
            case TurnFinished():
                self._finish_turn()
            case Retrying():
                self._show_retry(event)
            case StreamInvalid():
                self._discard(say("answer_void"))
            case CitationAdded(citation=citation):
                self._sources.append(citation)
            case ErrorRaised():
                self._screen.message(say("run_failed", message=event.message) + call_lines.retry_words(event), "red")
            case UserCancelled():
                self._screen.message(say("run_cancelled"), "yellow")
            case _:
                self._show_notice(event)

    def _show_notice(self, event: TurnEvent) -> None:
        if isinstance(event, ModelSwitched):
            self._discard(say("answer_void"))
        if (notice := call_lines.notice_of(event)) is not None:
            self._screen.message(notice.text, _STYLES[notice.weight])

    def _finish_transient(self) -> None:
        """Write a pending thought or retry as a permanent line, and clear the transient one."""
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

    def _show_thought(self, event: ThoughtDelta) -> None:
        if self._retried is not None or (event.subject and self._thought):
            self._finish_transient()  # another thought begins
        before = _first_line(self._thought)
        self._thought = (self._thought + (f"{event.subject}\n" if event.subject else event.text))[:THOUGHT_CHARS]
        if _first_line(self._thought) != before:
            self._screen.transient_line(say("thought", text=_first_line(self._thought)))

    # --- calls

    def _show_progress(self, event: ToolCallUpdated) -> None:
        call = self._calls.get(event.call_id)
        if call is None or event.state != "executing":
            return
        output = event.progress_line or event.output_delta.strip().rpartition("\n")[2]
        self._screen.transient_line(say("call_running", title=call_lines.title(call, folder=self.folder), output=output))

    def _show_result(self, event: ToolCallFinished) -> None:
        call = self._calls.pop(event.call_id, None)
        if call is None:
            return
        failed = bool(event.error) or any(isinstance(part, ToolResult) and part.is_error for part in event.parts)
        lines = (call_lines.shown_of(event) if failed else event.display).strip().splitlines() or [""]
        result = read_command_result(event.command, call_lines.result_text(event)) if call.name == "run_shell" else CommandResult()
        ending = next((line for line in reversed(lines) if line.startswith(ODD_ENDINGS)), "") if result.has_failed else ""
        words = one_line(call_lines.in_words(ending or lines[0]), 300)
        if (work := self._inner.pop(event.call_id, None)) is not None:
            words = " · ".join(filter(None, (words, work.counts)))
        if failed:
            outcome, style = say("call_failed", why=words), "red"
        elif ending:
            outcome, style = say("call_ended_oddly", what=words), "yellow"
        else:
            outcome, style = say("call_done", what=words), ""
        text = say("call_ended", title=call_lines.title(event.as_run(call), outside=event.outside, folder=self.folder), outcome=outcome)
        self._screen.line(text if style else fit(text, self._screen.columns - 1), style)
        self._show_told(result, event.output_file)

    def _show_told(self, result: CommandResult, output_file: str) -> None:
        """Of a command that failed: the lines that tell most, and where all are. Of any: what stopped it."""
        told, count = list[str](), 0
        if result.has_failed:
            from dragoman.conversation.telling_lines import choose_telling

            output = clean_output(result.output).strip("\n")
            told = choose_telling(output)
            count = output.count("\n") + bool(output)
        for each in told:
            self._screen.line(fit(f"    {escape_hidden(each, one_line=True)}", self._screen.columns - 1), "dim")
        for note in result.notes:
            self._screen.message(f"    {note}", "yellow")
        if told and count > len(told):
            key = "all_lines_in_file" if output_file else "all_lines_exported"
            self._screen.message(f"    {say(key, count=count, path=output_file)}", "dim")

    def _show_inner(self, event: SubagentEvent) -> None:
        """What a subagent does: on a line that the next one replaces."""
        call = self._calls.get(event.call_id)
        if call is None:
            return
        from dragoman.conversation.inner_work import InnerWork

        work = self._inner.setdefault(event.call_id, InnerWork())
        if work.take(event.event):
            self._finish_transient()
            words = " · ".join(filter(None, (work.now, work.counts)))
            self._screen.transient_line(say("call_running", title=call_lines.title(call, folder=self.folder), output=words))

    # --- answers

    def _finish_turn(self) -> None:
        if self._copy is not None and (text := "".join(self._answer)).strip():
            self._copy.write(text if text.endswith("\n") else f"{text}\n")
        self._answer.clear()
        self._screen.to_line_start()
        if self._sources:
            from dragoman.tools.web.grounding import sources_of

            for number, source in enumerate(sources_of(self._sources), 1):
                self._screen.message(say("numbered_source", number=number, text=_source_words(source)), "dim")
        self._sources.clear()

    def _discard(self, note: str) -> None:
        self._sources.clear()
        if any(self._answer):
            self._screen.message(note, "yellow")
        self._answer.clear()

    # --- retries

    def _show_retry(self, event: Retrying) -> None:
        self._discard(say("answer_discarded"))
        self._retried = event
        if self._loop is None or not self._screen.can_rewrite:
            self._finish_transient()
        else:
            self._count_down(event, self._loop.time() + event.wait_s, self._loop)

    def _count_down(self, event: Retrying, until_s: float, loop: asyncio.AbstractEventLoop) -> None:
        left_s = max(until_s - loop.time(), 0)
        wait = f"{left_s:.1f}" if event.wait_s < 2 else f"{left_s:.0f}"
        self._screen.transient_line(say("retry_countdown", reason=event.reason, wait=wait, attempt=event.attempt + 1), "yellow")
        if left_s > 0:
            self._countdown = loop.call_later(min(left_s, 0.2 if event.wait_s < 2 else 1.0), self._count_down, event, until_s, loop)


def _source_words(source: Source) -> str:
    """Title and real target: the title may lie about it, and the host may be spelled with lookalikes."""
    from dragoman.tools.web.links import display_url

    return one_line(f"{source.title} {display_url(source.uri)}".strip(), 300)


def _first_line(text: str) -> str:
    return one_line(next((line for line in text.splitlines() if line.strip(" *_#")), "").strip(" *_#"), 300)
