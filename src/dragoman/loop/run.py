"""One run: turns until the model has nothing left to call. The loop is here, and the one place where a cancel becomes entries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.loop.chat import Chat
from dragoman.loop.history import paid
from dragoman.loop.loop_guard import LoopGuard
from dragoman.loop.turn import Turn
from dragoman.values.errors import Cancelled, ContextOverflow, DragomanError, LoopDetected, OutputLimit, ProviderError, Refused, TurnLimit
from dragoman.values.events import (
    ContentAdded,
    ErrorRaised,
    LoopSuspected,
    PromptAccepted,
    StreamInvalid,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnEvent,
    TurnRetried,
    UserCancelled,
)
from dragoman.values.messages import Citation, FinishReason, Message, Response, ToolCall, ToolResult, result, user
from dragoman.values.notes import LOOP_NOTE
from dragoman.values.record import Entry, ToolFinished
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.loop.web import SearchMode
    from dragoman.tools.scheduler import CallReport, Scheduler

CANCELLED = "Cancelled by the user before it was run."
CANCELLED_RUNNING = "Cancelled by the user while it ran: it may have taken effect in part. Check before you rely on it."
ENDED = "The run failed before this was run."
ENDED_RUNNING = "The run failed while this ran: it may have taken effect in part. Check before you rely on it."
STILL_RUNNING = "It did not stop when told to, and may still be running."


class Result(msgspec.Struct, frozen=True):
    """How a run ended, and what it took."""

    text: str = ""
    """The answer: what the model said last."""
    cited: str = ""
    """The answer with its numbered markers, where the service told what it rests on."""
    sources: tuple[str, ...] = ()
    """What the numbers stand for: `Title (address)`, from 1."""
    finish: FinishReason | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None where the model's prices are not known."""
    turns: int = 0
    requests: int = 0
    """How often a model was asked, attempts that failed included."""
    tool_calls: int = 0
    tool_failures: int = 0
    changed: tuple[str, ...] = ()
    """Files that were written: absolute paths, in the order of the first write."""
    error: str = ""
    error_type: str = ""
    exit_code: int = 0
    duration_ms: int = 0


class Run:
    """What `agent.run()` returns: iterate it for TurnEvents, await it for the Result, or both. It starts when first asked.

    Iterating does not raise for what goes wrong in the run: the last event tells it. Awaiting raises it.
    """

    def __init__(self, agent: Agent, prompt: Message | None, search: SearchMode | None = None) -> None:
        self._agent = agent
        self._prompt = prompt
        self._search = search
        self._prompt_id = ""
        self._events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._scheduler: Scheduler | None = None
        self._guard = LoopGuard(agent.limits.loop)
        self._loop_hits = 0
        self._error: BaseException | None = None
        self._ended = False
        self._unwanted = False
        """Cancelled, be it before its task took a step."""
        self._underway = False
        self._begun = False
        self._from_entry = len(agent.history.entries)
        self._began_s = time.monotonic()
        self._before: Entry | None = None
        """What stood before the prompt."""
        self._requested: set[str] = set()
        """Ids of the calls that were told; those of an answer that was stopped were not."""
        self._turns = 0
        self._requests = 0
        self._summaries_before = agent.summaries
        self._reports: list[CallReport] = []
        self._last: Response | None = None

    # --- for whoever holds it

    def cancel(self) -> None:
        """End it: within a second every open call is answered, and the next run can begin. Once is enough."""
        if not self._unwanted and self._underway and self._task is not None:
            self._task.cancel()
        self._unwanted = True

    def tell(self, event: TurnEvent) -> None:
        """Something happened that those who watch this run should hear of. May be called from any thread."""
        if self._task is None or self._task.done():
            return
        loop = self._task.get_loop()
        try:
            is_ours = asyncio.get_running_loop() is loop
        except RuntimeError:  # a thread without a loop
            is_ours = False
        if is_ours:
            self._emit(event)
        else:
            loop.call_soon_threadsafe(self._emit, event)

    def cancel_call(self, call_id: str) -> bool:
        """End one call and leave the others. False where no such call is under way."""
        return self._scheduler is not None and self._scheduler.cancel(call_id)

    @property
    def result(self) -> Result:
        """How things stand; complete once the run has ended."""
        entries = self._agent.history.entries[self._from_entry :]
        finished = [entry for entry in entries if isinstance(entry, ToolFinished)]
        error = self._error
        cited, sources = _citations(self._last)
        return Result(
            text=self._last.message.text if self._last else "",
            cited=cited,
            sources=sources,
            finish=self._last.finish if self._last else None,
            usage=sum((usage for _, usage in paid(entries)), Usage()),
            cost_usd=self._agent.cost_usd(entries),
            turns=self._turns,
            requests=self._requests + self._agent.summaries - self._summaries_before,
            tool_calls=len(finished),
            tool_failures=sum(entry.result.is_error for entry in finished),
            changed=tuple(dict.fromkeys(path for report in self._reports for path in report.output.changed)),
            error=str(error) if error else "",
            error_type=type(error).__name__ if error else "",
            exit_code=_exit_code(error) if error else 0,
            duration_ms=int((time.monotonic() - self._began_s) * 1000),
        )

    async def __aenter__(self) -> Run:
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()
        await self.finished()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._outcome().__await__()

    async def __aiter__(self) -> AsyncIterator[TurnEvent]:
        self._start()
        while not self._ended:
            event = await self._events.get()
            if event is None:
                self._ended = True
                return
            yield event

    async def _outcome(self) -> Result:
        self._start()
        await self.finished()
        if self._error is not None:
            raise self._error
        return self.result

    async def finished(self) -> None:
        """Returns when it is over, however it went."""
        if self._task is None:
            return
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            self.cancel()  # whoever waited for it was cancelled: so is the run
            await asyncio.wait([self._task], timeout=2)
            raise

    # --- the loop

    async def _loop(self) -> None:
        agent = self._agent
        self._before = await agent.begin(self._prompt, self._search)
        await agent.history.sync()
        self._emit(PromptAccepted(agent.session_id))
        self._begun = True
        for _ in range(agent.limits.max_turns):
            agent.settle_tools(self._emit)
            answer = await self._answer(self._chat())
            if answer is None:
                continue  # it was broken off for repeating itself
            if not answer.message.calls:
                return _check_end(answer)
            self._watch(await self._carry_out(answer.message.calls))
        raise TurnLimit(f"stopped after {agent.limits.max_turns} turns: say `go on` to continue, or raise --max-turns")

    def _chat(self) -> Chat:
        agent, guard = self._agent, self._guard
        chat = Chat(agent.provider, agent.history, agent.limits.answers)
        enough = agent.provider.profile(agent.model).answer_after_calls
        chat.must_answer = bool(enough) and (guard.has_repeated or guard.successes >= enough)
        chat.question = self._prompt.text if self._prompt is not None else ""
        return chat

    async def _answer(self, chat: Chat) -> Response | None:
        """One turn. Where the service finds the request too long after all, it is made shorter and asked once more."""
        await self._agent.keep_up(self._emit)
        try:
            return await self._turn(chat)
        except ContextOverflow as error:
            if not await self._agent.upkeep.after_overflow(error, self._emit):
                raise
        self._turns -= 1
        return await self._turn(chat)

    async def _carry_out(self, calls: Sequence[ToolCall]) -> Sequence[CallReport]:
        scheduler = self._scheduler = self._scheduler or self._agent.scheduler(self._emit)
        try:
            return await scheduler.run(calls)
        finally:
            self._reports.extend(scheduler.reports)

    async def _turn(self, chat: Chat) -> Response | None:
        self._turns += 1
        self._requests += 1
        self._guard.starts_answer()
        turn, circling = Turn(chat, self._prompt_id), ""
        async with aclosing(turn.run()) as events:
            async for event in events:
                self._emit(event)
                if isinstance(event, ContentAdded):
                    if circling := self._guard.saw_text(event.text):
                        break
                elif isinstance(event, TurnRetried):
                    self._requests += 1
                    self._guard.starts_answer()
                elif isinstance(event, ToolCallRequested):
                    self._requested.add(event.call.id)
        if circling:
            self._emit(StreamInvalid(circling))
            self._suspect(circling)
            return None
        self._last = turn.response
        return turn.response

    def _watch(self, reports: Sequence[CallReport]) -> None:
        for report in reports:
            if found := self._guard.saw_call(report.call, failed=report.result.is_error):
                return self._suspect(found)

    def _suspect(self, what: str) -> None:
        self._loop_hits += 1
        self._emit(LoopSuspected(what, self._loop_hits))
        if self._loop_hits > 1:
            raise LoopDetected(f"stopped: the model goes in circles ({what}); tell it what to do differently, or choose another model")
        self._agent.history.say(user(LOOP_NOTE.format(what=what)))

    # --- starting and ending

    def _start(self) -> None:
        if self._task is None:
            self._began_s = time.monotonic()
            self._from_entry = len(self._agent.history.entries)
            self._summaries_before = self._agent.summaries
            self._prompt_id = f"{self._agent.session_id}#{self._from_entry}"
            self._task = asyncio.get_running_loop().create_task(self._drive())

    async def _drive(self) -> None:
        agent = self._agent
        last: list[TurnEvent] = []
        self._underway = True
        try:
            agent.enter(self)
            if self._unwanted:
                raise Cancelled("cancelled")
            await self._loop()
        except (asyncio.CancelledError, Cancelled):
            last = self._fail(Cancelled("cancelled"), UserCancelled())
        except DragomanError as error:
            if isinstance(error, Refused):
                self._take_back()
            retryable = isinstance(error, ProviderError) and error.retryable
            last = self._fail(error, ErrorRaised(str(error), type(error).__name__, retryable, error.exit_code))
        except Exception as error:
            last = self._fail(error, ErrorRaised(f"internal error: {type(error).__name__}: {error}", type(error).__name__))
        finally:
            self._underway = False
            agent.leave(self)
            try:
                await agent.history.sync()
            finally:
                for event in (*last, None):
                    self._emit(event)

    def _take_back(self) -> None:
        """A prompt that was refused outright leaves the view: with it in there, whatever is asked next would be refused as well."""
        if self._turns == 1 and self._before is not None:
            self._agent.history.rewind(self._before)

    def _fail(self, error: Exception, event: TurnEvent) -> list[TurnEvent]:
        """Every call that is still open gets its one result; then the run says how it ended. Told once it is on disk."""
        self._error = error
        told: list[TurnEvent] = []
        if self._begun:  # else open calls are another run's
            for call in self._agent.history.view.open_calls:
                told += self._close(call)
        return [*told, event]

    def _close(self, call: ToolCall) -> list[TurnEvent]:
        scheduler = self._scheduler
        by_user, running = isinstance(self._error, Cancelled), scheduler is not None and call.id in scheduler.started
        text = (CANCELLED_RUNNING if running else CANCELLED) if by_user else (ENDED_RUNNING if running else ENDED)
        if scheduler is not None and call.id in scheduler.abandoned:
            text = f"{text} {STILL_RUNNING}"
        closed: ToolResult = result(call, text, is_error=True)
        self._agent.ledger.finish_tool(closed, "cancelled")
        if call.id not in self._requested:
            return []
        finished = ToolCallFinished(call.id, (closed,), error="cancelled", error_type="cancelled")
        return [ToolCallUpdated(call.id, "cancelled"), finished]

    def _emit(self, event: TurnEvent | None) -> None:
        self._events.put_nowait(event)


def _citations(answer: Response | None) -> tuple[str, tuple[str, ...]]:
    if answer is None or not any(isinstance(part, Citation) for part in answer.message.parts):
        return "", ()
    from dragoman.tools.grounding import cited_message

    cited = cited_message(answer.message)
    return (cited.text, tuple(map(str, cited.sources))) if cited.sources else ("", ())


def _check_end(answer: Response) -> None:
    if answer.finish is FinishReason.LENGTH:
        raise OutputLimit("the answer was cut at the output limit: say `go on` to continue, or raise settings.max_output_tokens")


def _exit_code(error: BaseException) -> int:
    return error.exit_code if isinstance(error, DragomanError) else 1
