"""One message of a chat and its answer, as a stream of events. The calls in the answer are not carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import late_types
from dragoman.loop.citing import citations_of
from dragoman.loop.closing import record_outcome, record_stopped, take_back
from dragoman.loop.conditions import tell_surroundings
from dragoman.loop.configuring import configure
from dragoman.loop.given_results import assign_results
from dragoman.loop.harness import Harness
from dragoman.loop.history import History
from dragoman.loop.options import RunOptions
from dragoman.loop.result import Result, event_of, with_error
from dragoman.loop.turn import Turn
from dragoman.loop.watching import call_in
from dragoman.values.calls import prompt_at_work
from dragoman.values.errors import Cancelled, ContextOverflow, InputError, Refused
from dragoman.values.events import Retrying, ToolModeChanged, TurnEvent, UserCancelled
from dragoman.values.messages import Blob, FinishReason, Message, Response, ToolCall, ToolResult
from dragoman.values.record import Entry, RunOutcome, RunStarted
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.values.messages import Source
else:
    (Source,) = late_types("dragoman.values.messages", "Source")


class ChatAnswer(msgspec.Struct, frozen=True):
    """What the model said to one message."""

    response: Response
    """The whole of it, as it is on the record."""
    cited: str = ""
    """The text with its numbered markers, where the service named its sources."""
    sources: tuple[Source, ...] = ()
    """What the numbers stand for, from 1: title, address and the passages cited."""

    @property
    def text(self) -> str:
        """The text alone, without thinking and calls: the documents' getResponseText."""
        return self.response.message.text

    @property
    def message(self) -> Message:
        return self.response.message

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that you carry out: the documents' functionCalls."""
        return self.response.message.calls

    @property
    def finish(self) -> FinishReason:
        return self.response.finish

    @property
    def usage(self) -> Usage:
        return self.response.usage


class ChatTurn:
    """One message and its answer: the Turn of the founding documents. Iterate it once for its events.

    Nothing that goes wrong is raised while it is iterated: the last event tells it (`ErrorRaised`, or `UserCancelled` after `cancel`), and
    `error` holds it. `answer` is there when the events have ended well. Leaving the loop early cancels it.
    """

    def __init__(self, harness: Harness, message: Message | None, options: RunOptions) -> None:
        self.answer: ChatAnswer | None = None
        self.error: Exception | None = None
        self._harness = harness
        self._message = message
        self._options = options
        self._turn: Turn | None = None
        self._task: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        self._before: Entry | None = None
        self._is_on_record = False
        self.is_unwanted = False

    async def __aiter__(self) -> AsyncGenerator[TurnEvent, None]:
        if self._task is not None:
            raise InputError(say("loop.turn_is_over"))
        self._task = asyncio.get_running_loop().create_task(self._drive())
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            if not self._task.done():
                self.is_unwanted = True
                self._task.cancel()
                await asyncio.wait({self._task})

    def cancel(self) -> None:
        """End it: what has come of the answer stays in the conversation. May be called from any thread."""
        if not self.is_unwanted:
            self.is_unwanted = True
            if self._task is not None:
                call_in(self._task.get_loop(), self._task.cancel)

    async def finished(self) -> None:
        """Returns when it is over, however it went."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def tell(self, event: TurnEvent) -> None:
        """Something happened to the session meanwhile."""
        if self._task is not None:
            call_in(self._task.get_loop(), lambda: self._events.put_nowait(event))

    # --- the turn

    async def _drive(self) -> None:
        session, last = self._harness.session, list[TurnEvent]()
        outcome: RunOutcome = "broken_off"
        try:
            await session.work.begin_after(self)
            if self.is_unwanted:
                raise Cancelled(say("loop.cancelled"))
            await self._take_message()
            self.answer = await self._ask()
            outcome = "pending" if self.answer.calls else "answered"
        except (asyncio.CancelledError, Cancelled):
            self.error = Cancelled(say("loop.cancelled"))
            outcome = "cancelled"
            if self._turn is not None:
                record_stopped(session.history, self._turn.arrived)
            last.append(UserCancelled())
        except Exception as error:
            self.error = error
            outcome = "failed"
            if isinstance(error, Refused):
                last += take_back(session.history, self._before)
            last.append(event_of(error))
        finally:
            session.work.end(self)
            try:
                if self._is_on_record:
                    record_outcome(session.history, outcome, with_error(Result(turns=1), self.error), self.error)
                await session.history.sync()
            finally:
                for event in (*last, None):
                    self._events.put_nowait(event)

    async def _take_message(self) -> None:
        """Put on the record what the request rests on: configuration, surroundings, results, and what is said."""
        harness, session, history = self._harness, self._harness.session, self._harness.session.history
        prompt_at_work.set(f"{session.id}#{len(history.entries)}")
        results, said = part_results(self._message)
        answered: dict[str, ToolResult] = {} if are_on_record(history, results) else require_results(history, results)
        await harness.connect_early()
        if session.log is not None:
            session.log.begin(session, harness.directories)
        if dialect := harness.models.found_dialect:
            session.change_model(harness.models.in_text(session.model, dialect))
            self._emit(ToolModeChanged("text", dialect))
        configure(harness, self._options)
        harness.tell_left_out(self._emit, self._options.search)
        if media := [part for result in answered.values() for part in result.content if isinstance(part, Blob)]:
            await asyncio.to_thread(session.keep_bytes, media)  # or a session that is gone on with would miss them
        for result in answered.values():
            harness.ledger.finish_tool(result, "failed" if result.is_error else "finished")
        if said is not None and history.view.messages[-1:] != (said,):  # the same once more, as after a failure, is not said twice
            if not results:
                await tell_surroundings(harness)
            self._before = history.entries[-1] if history.entries else None
            history.say(said)
        if not history.view.messages:
            raise InputError(say("loop.nothing_to_continue"))
        if self._before is None:  # nothing else says that a run began
            history.append(RunStarted(*history.stamp()))
        self._is_on_record = True
        await history.sync()

    async def _ask(self) -> ChatAnswer:
        """One model round. Where the caller has asked for it, the context is kept within bounds as in a run."""
        harness = self._harness
        if harness.context is None:
            return await self._take_turn()
        await harness.upkeep.before_request(self._emit)
        try:
            return await self._take_turn()
        except ContextOverflow as error:
            if not await harness.upkeep.after_overflow(error, self._emit):
                raise
        return await self._take_turn()

    async def _take_turn(self) -> ChatAnswer:
        session = self._harness.session
        turn = self._turn = Turn(session.model, session.history, self._harness.limits.answers, prompt_id=prompt_at_work.get())
        async with aclosing(turn.run()) as events:
            async for event in events:
                self._emit(event)
                if isinstance(event, Retrying) and event.model:
                    self._emit(session.follow_retry(event))
        if turn.response is None:
            raise InputError(say("loop.nothing_to_continue"))
        return ChatAnswer(turn.response, *citations_of(turn.response))

    def _emit(self, event: TurnEvent) -> None:
        self._events.put_nowait(event)


def part_results(message: Message | None) -> tuple[tuple[ToolResult, ...], Message | None]:
    """The results in a message, and the rest of it."""
    if message is None:
        return (), None
    said = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    return message.results, Message("user", said) if said else None


def are_on_record(history: History, given: Iterable[ToolResult]) -> bool:
    """Whether these are the results that were given last and are not answered yet: sent once more, as after a failure."""
    results, messages = tuple(given), history.view.messages
    last = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].role == "assistant"), -1)
    if not results or last < 0 or history.view.open_calls:
        return False
    known = [result for message in messages[last + 1 :] for result in message.results]
    assigned, strange = assign_results(messages[last].calls, results)
    return not strange and all(result in known for result in assigned.values())


def require_results(history: History, given: Iterable[ToolResult]) -> dict[str, ToolResult]:
    """The results of the open calls, by the ids of these. Raises InputError where one is missing or belongs to no call."""
    open_calls = history.view.open_calls
    results, strange = assign_results(open_calls, given)
    if missing := [call for call in open_calls if call.id not in results]:
        raise InputError(say("loop.calls_without_results", calls=_named(missing)))
    if strange:
        names = ", ".join(f"{result.name} ({result.call_id})" for result in strange)
        raise InputError(say("loop.results_without_calls", results=names))
    return results


def _named(calls: Iterable[ToolCall]) -> str:
    return ", ".join(f"{call.name} ({call.id})" for call in calls)
