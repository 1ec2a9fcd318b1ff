"""One run: turns until the model has nothing left to call. The loop is here, and the one place where a cancel becomes entries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Coroutine, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from weakref import ref

from dragoman.loop.conditions import tell_news
from dragoman.loop.configuring import configure
from dragoman.loop.guard import is_polling
from dragoman.loop.handle import RunHandle
from dragoman.loop.harness import Harness
from dragoman.loop.history import sum_usage
from dragoman.loop.options import RunOptions
from dragoman.loop.prepare import is_short, take_prompt
from dragoman.loop.result import Result, T, event_of, with_answer, with_error
from dragoman.loop.small_model import note_doubt, reminder_to_answer
from dragoman.loop.turn import Turn
from dragoman.tools.scheduler import CallReport, Scheduler
from dragoman.values.calls import PendingCall, prompt_at_work, run_at_work
from dragoman.values.errors import (
    Cancelled,
    ContextOverflow,
    InputError,
    LoopDetected,
    OutputLimit,
    ProviderError,
    TurnLimit,
)
from dragoman.values.events import (
    LoopSuspected,
    PromptAccepted,
    Retrying,
    StreamInvalid,
    TextDelta,
    ToolCallRequested,
    ToolModeChanged,
    TurnEvent,
    TurnStarted,
    UserCancelled,
)
from dragoman.values.messages import FinishReason, Message, Response, ToolCall, user
from dragoman.values.notes import LOOP_NOTE
from dragoman.values.record import Entry, RunEnded, RunOutcome, RunStarted
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.typed_answer import TypedAnswer


class Run(RunHandle[T]):
    """What `agent.run()` returns: see RunHandle for how to watch it."""

    def __init__(self, harness: Harness, prompt: Message | None, options: RunOptions, typed: TypedAnswer[T] | None = None) -> None:
        super().__init__(harness.holder, options.deps)
        self._root = harness
        self._history = harness.session.history
        self._prompt = prompt
        self._options = options
        self._typed = typed
        self._asked = prompt.said if prompt is not None else ""
        self.prompt_id = ""
        self._turn: Turn | None = None
        self._scheduler: Scheduler | None = None
        self._loop_hits, self._begun = 0, False
        self._is_on_record = False
        self._from_entry = len(self._history.entries)
        self._began_s = time.monotonic()
        self._before: Entry | None = None
        """What stood before the prompt."""
        self._requested: set[str] = set()
        """Ids of the calls that were announced; those of an answer that was stopped were not."""
        self.turn = 0
        self._requests = 0
        self._hand_overs = 0
        self._side_requests_before = self._harness.side_requests
        self._reports: list[CallReport] = []
        self._last: Response | None = None
        self._unchecked = ""
        self._pending: tuple[PendingCall, ...] = ()
        self.ended: RunEnded | None = None

    async def _spend(self) -> None:
        """The loop, within its budgets if there are any."""
        budget = self._options.budget or self._harness.limits.budget
        if budget is None and self._session.purse is None:
            return await self._loop()
        from dragoman.loop.charging import run_within

        await run_within(self._session, budget, self._loop)

    # --- the loop

    async def _begin(self) -> None:
        if not is_short(self._harness, self._prompt):
            from dragoman.loop.trial import require_room

            await require_room(self._harness, self._prompt, self._options, self._emit)
        self._before = await take_prompt(self._harness, self._prompt, self._options)
        await self._accept()
        self._harness.tell_left_out(self._emit, self._options.search)

    async def _accept(self) -> None:
        """What was asked for is on disk: from here on this run answers open calls."""
        if not self._is_on_record:
            self._is_on_record = True
            if self._before is None:  # nothing else says that a run began
                self._history.append(RunStarted(*self._history.stamp()))
        await self._history.sync()
        if not self._begun:
            self._begun = True
            self._emit(PromptAccepted(self._session.id))

    async def _loop(self) -> None:
        await self._begin()
        max_turns = self._harness.limits.max_turns
        for _ in range(max_turns):
            if self._pending:
                return
            self._use_found_dialect()
            answer = await self._ask()
            if answer is None:
                continue  # it was broken off for repeating itself
            words = await hooks.after_response(answer) if (hooks := self._harness.hooks) is not None else ""
            if not answer.message.calls:
                self._unchecked = note_doubt(self._session.model, self._asked, answer.message.text, self._history, self._emit)
                if answer.finish is FinishReason.LENGTH:
                    raise OutputLimit(say("loop.cut"))
                if words:
                    self._history.say(user(words), "hook")
                elif await self._tell_unsaid():
                    continue
                elif self._typed is None or await self._typed.take_text(answer.message.text):
                    return
                continue
            reports = await self._carry_out(answer.message.calls)
            if answer.fault == "unreadable_call" and not self._pending:
                self._tell_unread(answer)
            if words and not self._pending:
                self._history.say(user(words), "hook")
            elif self._typed is not None and not self._pending and self._typed.take_reports(reports):
                return
            self._check_for_loops(reports)
            if any(report.output.hand_over is not None for report in reports):
                self._follow_hand_over(reports)
            if not self._pending:
                await self._tell_unsaid()
        raise TurnLimit(say("loop.turn_limit", turns=max_turns))

    def _use_found_dialect(self) -> None:
        """Where a call was found written as text though tools are known: go on with tools as text."""
        if dialect := self._harness.models.found_dialect:
            self._session.change_model(self._harness.models.in_text(self._session.model, dialect))
            self._emit(ToolModeChanged("text", dialect))

    async def _fit_context(self) -> None:
        """Prune and compress before the next request. Before a first answer there is nothing to leave out, and nothing is loaded for it."""
        if not is_short(self._harness) or any(item.message.role == "assistant" for item in self._history.view.items):
            await self._harness.upkeep.before_request(self._emit)

    async def _ask(self) -> Response | None:
        """The next answer. Where the service keeps refusing, another model goes on, if there is a fallback."""
        chain, turns = None, self.turn
        while True:
            try:
                await self._fit_context()
                return await self._ask_model()
            except (ProviderError, InputError) as error:
                if not self._harness.fallback.is_set:
                    raise
                from dragoman.loop.closing import record_attempt
                from dragoman.loop.fallback import Chain

                record_attempt(self._history, self._requests, str(error))
                chain = chain or Chain(self._harness, self._emit, self._options)
                await chain.go_on(error)
                self.turn = turns

    async def _ask_model(self) -> Response | None:
        """One turn. Where the service finds the request too long after all, it is made shorter and asked once more."""
        try:
            return await self._take_turn()
        except ContextOverflow as error:
            if not await self._harness.upkeep.after_overflow(error, self._emit):
                raise
        self.turn -= 1
        return await self._take_turn()

    async def _take_turn(self) -> Response | None:
        self.turn += 1
        self._requests += 1
        self._emit(TurnStarted(self.turn, self._session.model.full_name))
        self._guard.start_answer()
        tell_news(self._harness, self._emit)
        reminder = reminder_to_answer(self._session.model, self._guard, self._asked) if self._typed is None else None
        watch = None
        if self._typed is not None:
            if self._typed.is_outdated:
                configure(self._harness, self._options)
            watch = self._typed.watcher(self._emit)
        if (hooks := self._harness.hooks) is not None:
            await hooks.before_request(self._harness, self._options, self.turn, self._from_entry)
        model, policy = self._session.charged(self._session.model), self._harness.limits.answers
        turn = self._turn = Turn(model, self._history, policy, prompt_id=self.prompt_id, reminder=reminder, watch=watch)
        circling = ""
        async with aclosing(turn.run()) as events:
            async for event in events:
                self._emit(event)
                if isinstance(event, TextDelta):
                    if circling := self._guard.check_text(event.text):
                        break
                elif isinstance(event, Retrying):
                    self._requests += 1
                    self._guard.start_answer()
                    if event.model:
                        self._emit(self._session.follow_retry(event))
                elif isinstance(event, ToolCallRequested):
                    self._requested.add(event.call.id)
        if circling:
            self._emit(StreamInvalid(circling))
            self._warn_or_stop(circling)
            return None
        self._requests += len(turn.pieces)
        self._last = turn.response
        return turn.response

    async def _carry_out(self, calls: Sequence[ToolCall], waiting: Collection[str] | None = None) -> Sequence[CallReport]:
        scheduler = self._scheduler = self._scheduler or self._harness.scheduler(self._emit)
        reports = await scheduler.run(calls, waiting)
        self._reports.extend(reports)
        self._pending = self._harness.leave_pending()
        if self._session.purse is not None:
            self._session.purse.require_rest()
        return reports

    def _tell_unread(self, answer: Response) -> None:
        """Beside the calls that ran there were others that could not be read."""
        from dragoman.text_tools.call_note import feedback_message

        self._history.say(feedback_message(answer.detail), "feedback")

    def _follow_hand_over(self, reports: Sequence[CallReport]) -> None:
        """A tool has returned an agent: from here on that one has the conversation."""
        from dragoman.loop.handing_over import follow_reports

        self._hand_overs += 1
        self._requests += self._harness.side_requests - self._side_requests_before
        self._harness = follow_reports(self._root, reports, self._hand_overs, self._emit, self._typed, self._options)
        self._scheduler, self._side_requests_before = None, self._harness.side_requests

    def _check_for_loops(self, reports: Sequence[CallReport]) -> None:
        for report in () if self._pending else reports:  # a note would stand behind calls that wait
            polled = is_polling(report.call, self._harness.registry, self._guard.limits, report.output)
            if found := self._guard.check_call(report.call, failed=report.result.is_error, polled=polled):
                return self._warn_or_stop(found)

    def _warn_or_stop(self, what: str) -> None:
        """The first time the model is told; the second time the run ends with LoopDetected."""
        self._loop_hits += 1
        self._emit(LoopSuspected(what, self._loop_hits))
        if self._loop_hits > 1:
            raise LoopDetected(say("loop.going_in_circles", what=what))
        self._history.say(user(LOOP_NOTE.format(what=what)), "loop")

    # --- starting and ending

    def _prepare_start(self) -> None:
        self._began_s = time.monotonic()
        self._from_entry = len(self._history.entries)
        self._side_requests_before = self._harness.side_requests
        self.prompt_id = f"{self._session.id}#{self._from_entry}"

    def _watched(self, drive: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        return drive if self._harness.hooks is None else self._harness.hooks.watch(self, drive)

    async def _drive(self) -> None:
        last: list[TurnEvent] = []
        outcome: RunOutcome = "broken_off"
        prompt_at_work.set(self.prompt_id)  # of this task alone
        run_at_work.set(ref(self))
        self._underway = True
        try:
            await self._session.work.begin_after(self)
            if self._unwanted:
                raise Cancelled(say("loop.cancelled"))
            await self._spend()
            outcome = "pending" if self._pending else "answered"
        except (asyncio.CancelledError, Cancelled):
            last = [*await self._record_end(Cancelled(say("loop.cancelled"))), UserCancelled()]
            outcome = "cancelled"
        except Exception as error:
            outcome = "failed"
            last = [*await self._record_end(error), event_of(error)]
        finally:
            self._underway = False
            self._session.work.end(self)
            if self._typed is not None:
                self._typed.close()
            try:
                if self._is_on_record:
                    from dragoman.loop.closing import record_outcome

                    self.ended = record_outcome(self._history, outcome, self.result, self._error)
                for harness in {self._root, self._harness}:
                    await harness.settle()
                await self._history.sync()
            finally:
                for event in (*last, None):
                    self._emit(event)

    async def _record_end(self, error: Exception) -> list[TurnEvent]:
        """However it ended, the record is whole: calls that had ended have their result, what came of an answer that a person stopped
        stands, and every open call gets its one result. Returns what to tell once it is on disk."""
        self._error = error
        if self._scheduler is not None:
            await self._scheduler.close_ended()
            known = {id(report) for report in self._reports}
            self._reports.extend(report for report in self._scheduler.reports if id(report) not in known)
        from dragoman.loop.closing import record_end

        arrived, before = self._turn.arrived if self._turn is not None else None, self._before if self.turn == 1 else None
        requested = self._requested if self._begun else None  # open calls are another run's
        return record_end(self._harness, error, arrived, before, self._scheduler, requested)

    # --- for whoever holds it

    def cancel_call(self, call_id: str) -> bool:
        """End one call and leave the others. False where no such call is under way."""
        return self._scheduler is not None and self._scheduler.cancel(call_id)

    @property
    def usage(self) -> Usage:
        """What it has used so far. From any thread: a tool may ask."""
        return sum_usage([*self._history.entries[self._from_entry :], *self._under_way()])

    @property
    def result(self) -> Result[T]:
        """How things stand; complete once the run has ended."""
        made = self._harness.bill.result_of(
            self._harness.name,
            [*self._history.entries[self._from_entry :], *self._under_way()],
            turns=self.turn,
            requests=self._requests + self._harness.side_requests - self._side_requests_before,
            outputs=[report.output for report in self._reports],
            duration_ms=int((time.monotonic() - self._began_s) * 1000),
            pending=self._pending,
            unchecked=self._unchecked,
        )
        made = with_error(with_answer(made, self._last), self._error)
        return made if self._typed is None else self._typed.put_into(made)

    def _under_way(self) -> Sequence[Entry]:
        model = self._session.model
        return () if self._turn is None else self._turn.arrived.as_spent(model.name, model.provider.name)
