"""A run on the screen: its events become lines that are committed, and lines that are live as long as what they show is under way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.base.text import one_line
from dragoman.conversation import call_lines
from dragoman.tui import cells
from dragoman.tui.call_cells import READS
from dragoman.tui.calls import RunningCalls
from dragoman.tui.cells import Ended
from dragoman.tui.line import EMPTY, Line
from dragoman.tui.markdown import MarkdownStream
from dragoman.tui.status import SIGNS, Activity, keys_at_work, sign_of_life
from dragoman.values.events import (
    CitationAdded,
    CompressionStarted,
    ContextOverflowed,
    ErrorRaised,
    ModelSwitched,
    OutputUpdated,
    PromptAccepted,
    PromptRead,
    RequestDelayed,
    ResponseStarted,
    Retrying,
    StreamInvalid,
    SubagentEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallConfirmation,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnEvent,
    TurnFinished,
    TurnStarted,
    UserCancelled,
)
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.result import Result
    from dragoman.values.messages import Citation

TICK_S = 0.25
"""How often the sign of life moves."""
_THOUGHT_CHARS = 20_000
_STYLES = {"quiet": "dim", "warning": "warn", "bad": "bad"}


class RunView:
    """`take` shows one event. Events that come while a question is open are shown after it."""

    def __init__(self, commit: Callable[[Iterable[Line]], None], columns: Callable[[], int]) -> None:
        self._commit = commit
        self._columns = columns
        self._held: list[TurnEvent] | None = None
        self._answer: MarkdownStream | None = None
        self._answer_text: list[str] = []
        self._unread: list[str] = []
        """Text of the answer that no frame has shown yet."""
        self._thought = ""
        self._thought_s = 0.0
        self._sources: list[Citation] = []
        self._retry: tuple[Retrying, float] | None = None
        self._retried: Retrying | None = None
        """The last failed attempt that left nothing on the screen: shown in one line when the run continues."""
        self.goes_on_elsewhere = False
        """The run is stopped so that another model continues it: the stop is not shown."""
        self._read: PromptRead | None = None
        self._is_compressing = False
        self._began_s = self._asked_s = self._first_word_s = 0.0
        self._written_chars = 0
        self.is_running = False
        self.calls = RunningCalls()
        self.on_steered: Callable[[str], None] | None = None
        """Called when something that was said during the run is on the record."""
        self.last_answer = ""
        self._moment: tuple[int, str, int, int, int] = (0, "", 0, 0, 0)
        self._life: Line = EMPTY
        self.attempts = 1
        """How often a request is tried."""
        self.service = ""
        """Which model is asked."""

    # --- a run

    def begin(self) -> None:
        self.is_running, self.goes_on_elsewhere = True, False
        self._began_s = self._asked_s = time.monotonic()
        self._written_chars = 0
        self.calls.clear()

    def end(self, result: Result) -> None:
        """Everything that is under way is over; then one line with time, tokens and cost."""
        self._finish_parts()
        self.is_running = False
        self._commit(self.calls.finish_open(self._columns()))
        if result.requests:
            changed = tuple(os.path.basename(path) for path in result.changed)
            took = Ended(result.duration_ms / 1000, result.usage, result.cost_usd, result.requests, changed, bool(changed))
            self._commit([cells.ended(took, self._columns())])
        self._commit([EMPTY])

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold back events while a question is open, so that nothing comes between it and its answer."""
        self._finish_parts()
        self._held = []
        try:
            yield
        finally:
            events, self._held = self._held, None
            for event in events:
                self.take(event)

    def notice(self, text: str, style: str = "") -> None:
        self._commit(cells.notice(one_line(text), self._columns(), style))

    # --- what is live

    def live_lines(self, most: int) -> list[Line]:
        """What is being thought or written, and the calls at work, in about so many rows."""
        columns = self._columns()
        if self._answer is not None:
            return self._answer.tail()
        if self._thought:
            return cells.thinking(self._thought, columns)
        looks = self.calls.looks(columns)
        return [*looks, *self.calls.lines(columns, SIGNS[self._beat() % len(SIGNS)], most - len(looks))]

    def activity(self, columns: int) -> Line:
        """The sign of life: what is going on, for how long, and how to stop it. It changes with its beat alone."""
        if not self.is_running:
            return EMPTY
        beat, doing = self._beat(), self._activity()
        moment = (beat, doing.doing, columns, doing.number, doing.count)
        if moment != self._moment:
            self._moment, self._life = moment, sign_of_life(doing, columns, beat, keys_at_work(doing, columns, bool(self.calls.command_id)))
        return self._life

    @property
    def is_retrying(self) -> bool:
        """Whether it waits before it asks again."""
        return self.is_running and self._retry is not None and time.monotonic() < self._retry[1]

    def _beat(self) -> int:
        return int(time.monotonic() / TICK_S)

    def _activity(self) -> Activity:
        now = time.monotonic()
        seconds = now - self._began_s
        if self._retry is not None and now < self._retry[1]:
            event, until_s = self._retry
            return Activity(
                "retrying", seconds, about=event.reason, number=event.attempt + 1, count=self.attempts, wait_s=max(until_s - now, 0)
            )
        if self.calls.running:
            return Activity("running", seconds, about=self.calls.next_title, number=self.calls.running, count=self.calls.count)
        if self._answer is not None:
            return Activity("writing", seconds, tokens=self._written_chars // 4, first_word_s=self._first_word_s)
        if self._thought:
            return Activity("thinking", seconds, about=cells.subject_of(self._thought))
        if self._read is not None:
            done = 100 * self._read.done_tokens // max(self._read.total_tokens, 1)
            return Activity("reading", now - self._asked_s, percent=min(done, 100))
        if self._is_compressing:
            return Activity("compressing", seconds)
        return Activity("waiting", now - self._asked_s, service=self.service)  # a question may have been open for long before

    # --- events

    def take(self, event: TurnEvent) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        match event:
            case TextDelta(text=text):
                self._take_text(text)
            case ThoughtDelta():
                self._take_thought(event)
            case ToolCallUpdated():
                self.calls.update(event)
            case SubagentEvent():
                self.calls.take_inner(event)
            case PromptRead():
                self._read = event
            case _:
                self._take_other(event)

    def _take_other(self, event: TurnEvent) -> None:
        match event:
            case PromptAccepted(text=text):
                if text and self.on_steered is not None:
                    self._finish_parts()
                    self.on_steered(text)
            case TurnStarted():
                self._finish_parts(looks=False)
                self._read, self._is_compressing, self._asked_s = None, False, time.monotonic()
                self.service = event.model
            case ToolCallRequested(call=call):
                self._finish_parts(looks=call.name not in READS)
                self.calls.add(call)
            case ToolCallFinished():
                self._finish_parts(looks=False)
                self._commit(self.calls.finish(event, self._columns()))
            case TurnFinished():
                self._finish_parts(looks=False)
                self._show_sources()
            case Retrying():
                self._take_retry(event)
            case StreamInvalid():
                self._discard(say("answer_void"))
            case CitationAdded(citation=citation):
                self._sources.append(citation)
            case ToolCallConfirmation() | ContextOverflowed() | ResponseStarted() | OutputUpdated():
                pass
            case RequestDelayed():
                if self._retry is None:  # the line that counts down says it
                    self._tell(event)
            case ErrorRaised() | UserCancelled():
                self._retried = None  # how it ends says it
                self._finish_parts()
                self._tell(event)
            case _:
                self._finish_parts()
                self._tell(event)

    def _tell(self, event: TurnEvent) -> None:
        """What is one line."""
        match event:
            case ErrorRaised():
                self._commit(cells.error(one_line(event.message + call_lines.retry_words(event)), self._columns()))
            case UserCancelled():
                if not self.goes_on_elsewhere:
                    self.notice(say("run_cancelled"), "warn")
            case ModelSwitched():
                self._discard(say("answer_void"))
            case CompressionStarted():
                self._is_compressing = True
            case _:
                pass
        if (notice := call_lines.notice_of(event)) is not None:
            self.notice(notice.text, _STYLES[notice.weight])

    # --- answers and thoughts

    def _take_text(self, text: str) -> None:
        if self._answer is None:
            if not text.strip():
                return
            self._finish_parts()
            self._first_word_s = time.monotonic() - self._asked_s
            self._answer = MarkdownStream(self._columns())
        self._written_chars += len(text)
        self._answer_text.append(text)
        self._unread.append(text)

    def catch_up(self) -> None:
        """Read the text that came since the last frame: several pieces of it at once cost as little as one."""
        if self._unread and self._answer is not None:
            text = "".join(self._unread)
            self._unread.clear()
            if lines := self._answer.feed(text):
                self._commit(lines)

    def _take_thought(self, event: ThoughtDelta) -> None:
        if not self._thought:
            self._finish_parts()
            self._thought_s = time.monotonic()
        self._thought = (self._thought + (f"{event.subject}\n" if event.subject else event.text))[-_THOUGHT_CHARS:]

    def _finish_parts(self, *, looks: bool = True) -> None:
        """A thought, an answer or a wait that was under way is over: what is left of it is committed. `looks`: also what was looked at."""
        if looks and (lines := self.calls.take_looks(self._columns())):
            self._commit(lines)
        self._retry = None
        if self._retried is not None:
            event, self._retried = self._retried, None
            self.notice(say("tui.tried_again", reason=event.reason, count=event.attempt), "warn")
        if self._thought:
            thought, self._thought = self._thought, ""
            self.calls.keep(say("conversation.thought_title"), thought)
            self._commit(cells.thought(thought, time.monotonic() - self._thought_s, self._columns()))
        if self._answer is not None:
            self.catch_up()
            self._commit(self._answer.finish())
            self._answer = None
            self.last_answer = "".join(self._answer_text)
            self._answer_text.clear()

    def _take_retry(self, event: Retrying) -> None:
        """However many attempts there are, one line stays on the screen. If part of an answer is already shown, the line comes at once."""
        had_text, self._retried = self._answer is not None, None
        self._finish_parts()
        self._sources.clear()
        if had_text:
            self.notice(say("tui.discarded", reason=event.reason), "warn")
        else:
            self._retried = event
        self._retry = (event, time.monotonic() + event.wait_s)

    def _discard(self, note: str) -> None:
        had_text = self._answer is not None
        self._finish_parts()
        self._sources.clear()
        if had_text:
            self.notice(note, "warn")

    def _show_sources(self) -> None:
        if self._sources:
            from dragoman.tools.web.grounding import sources_of
            from dragoman.tools.web.links import display_url

            shown = [(source.title, display_url(source.uri)) for source in sources_of(self._sources)]
            self._commit(cells.sources(shown, self._columns()))
        self._sources.clear()
