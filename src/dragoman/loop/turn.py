"""One model round: send what the record says, stream what comes back, reject what cannot be used and ask again.

Every answer is recorded, good or not. One that is rejected or broken off leaves the view, so none of it is run or sent again. What a cancel
interrupts is left to the run (`Turn.arrived`), which records it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.options import AnswerPolicy
from dragoman.values.errors import AnswerTooLong, InvalidAnswer, OutputLimit, Refused, StreamBroken
from dragoman.values.events import (
    CitationAdded,
    FieldOmitted,
    PromptRead,
    RequestDelayed,
    ResponseFinished,
    ResponseStarted,
    Retrying,
    StreamEvent,
    StreamInvalid,
    TextDelta,
    ThoughtDelta,
    ToolCallRequested,
    TurnEvent,
    TurnFinished,
)
from dragoman.values.messages import FinishReason, Message, Response, user
from dragoman.values.notes import CUT_NOTE, EMPTY_NOTE, MALFORMED_NOTE, UNREADABLE
from dragoman.values.partial import Arrived, Pieces
from dragoman.values.parts import says_something
from dragoman.values.record import Said
from dragoman.values.usage import Usage, usage_told
from dragoman.words import say

UNREADABLE_TRIES = 2
"""How often a model that writes calls as text is told in one turn what is wrong with one."""
_SHOWN = (TextDelta, ThoughtDelta, PromptRead, ResponseStarted, CitationAdded, Retrying, RequestDelayed)
_REFUSALS = (FinishReason.SAFETY, FinishReason.RECITATION, FinishReason.REFUSAL)


class Turn:
    """Run it once. `response` is the answer when the events have ended."""

    def __init__(
        self,
        model: Model,
        history: History,
        policy: AnswerPolicy | None = None,
        *,
        prompt_id: str = "",
        reminder: Message | None = None,
        watch: Callable[[StreamEvent], None] | None = None,
    ) -> None:
        self._model = model
        self._history = history
        self._policy = policy or AnswerPolicy()
        self._prompt_id = prompt_id
        self._reminder = reminder
        """Where the answer has to be in words, what the model is told: it has called enough."""
        self._watch = watch
        """Told all that comes, what a run does not tell included."""
        self._follows_results = False
        self.response: Response | None = None
        self.pieces = Pieces()
        """What came before the service paused its answer, recorded as it came."""
        self.arrived = Arrived(history.now_ms, self._policy.max_chars, self._policy.max_events)
        """What has come of an answer that is not recorded yet. Where the turn is cancelled, the run records it."""
        self.arrived.finish()

    async def run(self) -> AsyncGenerator[TurnEvent, None]:
        """Ends when the answer is valid and recorded, or raises a DragomanError. Consume it under `contextlib.aclosing`.

        Calls are told when the answer is complete and valid, so nobody shows one that will not run. A Retrying event says that what was
        shown of this answer is void.
        """
        try:
            async with aclosing(self._answer()) as events:
                async for event in events:
                    yield event
        except InvalidAnswer as error:
            yield StreamInvalid(str(error.message))
            raise
        except AnswerTooLong:
            yield TurnFinished(FinishReason.LENGTH, Usage(incomplete=1))
            raise
        if self.response is None:
            return
        yield TurnFinished(self.response.finish, usage_told(self.response.usage))
        for call in self.response.message.calls:
            yield ToolCallRequested(call, self._prompt_id)

    async def _answer(self) -> AsyncGenerator[TurnEvent, None]:
        attempt, unreadable, history, pieces = 1, 0, self._history, self.pieces
        self._follows_results = self._after_results()
        if self._reminder is not None and history.view.messages[-1:] != (self._reminder,):
            history.say(self._reminder, "answer_now")
        while True:
            await history.sync()
            finished: Response | None = None
            async with aclosing(self._attempt()) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        yield event
                    elif isinstance(event, ResponseFinished):
                        finished = event.response
                    elif isinstance(event, FieldOmitted):
                        if history.refuse_field(event) is not None:
                            yield event
                    elif isinstance(event, _SHOWN) and not (isinstance(event, ResponseStarted) and pieces):
                        yield event
                        if isinstance(event, Retrying) and pieces:
                            yield TextDelta(pieces.text)
            if finished is None:
                raise StreamBroken(say("loop.no_answer"), provider=self._model.provider.name)
            if pieces.take(finished):
                self._record_answer(finished)
                continue
            if finished.fault == "unreadable_call" and not finished.message.calls:
                unreadable += 1
                fault = self._record_unreadable(finished, unreadable)
            else:
                fault = self._record(finished, last=attempt >= self._policy.attempts)
                attempt += 1
            await history.sync()
            if not fault:
                self.response = pieces.join(finished)
                return
            yield Retrying(attempt + unreadable - 1, self._policy.delay_s, str(fault))
            if pieces:
                yield TextDelta(pieces.text)
            await self._policy.sleep(self._policy.delay_s)

    async def _attempt(self) -> AsyncGenerator[StreamEvent, None]:
        """The provider's stream. What came of an answer that broke off is recorded, and rejected."""
        arrived, broken, may_have_cost = self.arrived, "broken off", True
        arrived.begin()
        try:
            async with aclosing(self._model.stream(self._history.request)) as events:
                async for event in events:
                    if isinstance(event, Retrying):
                        from dragoman.loop.closing import record_attempt

                        self._record_broken(event.reason, event.may_have_cost)
                        record_attempt(self._history, event.attempt, event.reason, event.wait_s, event.model)
                        arrived.begin(event.wait_s)
                    elif isinstance(event, ResponseFinished):
                        arrived.finish()
                    else:
                        arrived.add(event)
                    if self._watch is not None:
                        self._watch(event)
                    yield event
        except asyncio.CancelledError:
            raise  # the run records it
        except BaseException as error:
            if isinstance(error, Exception):
                broken, may_have_cost = str(error), getattr(error, "may_have_cost", False)
            self._record_broken(broken, may_have_cost)
            arrived.finish()
            raise

    # --- recording an answer

    def _record_answer(self, response: Response) -> Said:
        return self._history.answer(response, sent_ms=self.arrived.sent_ms, first_ms=self.arrived.first_ms)

    def _record(self, response: Response, *, last: bool) -> str:
        """Returns why the answer must be requested again, or nothing; raises where that is of no use."""
        from dragoman.loop.answer_faults import fault_of, oversized_call, refusal_of, with_true_finish

        response = with_true_finish(response, self._max_output_tokens())
        after_results = self._after_results()
        said = self._record_answer(response)
        if response.finish in _REFUSALS:
            self._history.reject(said, str(refusal_of(response)))
            raise Refused(refusal_of(response), provider=self._model.provider.name)
        if response.finish is FinishReason.LENGTH:
            return self._record_cut(response, said, last=last)
        if self._is_end(response, after_results=after_results):
            self._history.reject(said, "nothing was said: the end of the run")
            return ""
        fault = fault_of(response, after_results=self._follows_results)
        if not fault:
            return ""
        self._history.reject(said, str(fault), self._policy.temperature)
        if response.finish is FinishReason.MALFORMED_TOOL_CALL:
            detail = response.detail or response.raw_finish or "malformed"
            self._history.say(user(MALFORMED_NOTE.format(detail=detail)), "malformed")
        elif too_long := oversized_call(response):
            self._history.say(user(MALFORMED_NOTE.format(detail=too_long)), "malformed")
        elif after_results:
            self._history.say(user(EMPTY_NOTE), "empty")  # the same request would give the same answer
        if last:
            key = "loop.invalid_answer" if self._policy.attempts == 1 else "loop.invalid_answers"
            raise InvalidAnswer(say(key, fault=fault, times=self._policy.attempts), provider=self._model.provider.name)
        return fault

    def _is_end(self, response: Response, *, after_results: bool) -> bool:
        """Whether an answer that says nothing is where the run ends: it has said it in the pieces before, or nobody wants words."""
        if says_something(response.message) or response.finish is not FinishReason.STOP:
            return False
        return bool(self.pieces) or (after_results and self._policy.allow_empty_end)

    def _record_unreadable(self, response: Response, count: int) -> str:
        """A call written as text that could not be read. The answer stays, as text, and the model is told what is wrong. If it fails again
        and again, it is asked once more under a JSON schema, where the service can do that; then the run ends with InvalidAnswer."""
        from dragoman.text_tools.call_note import feedback_message

        said = self._record_answer(response)
        if count <= UNREADABLE_TRIES:
            self._history.say(feedback_message(response.detail), "feedback")
            return UNREADABLE
        self._history.reject(said, UNREADABLE)
        if count > UNREADABLE_TRIES + 1 or not self._model.provider.profile(self._history.view.model).json_schema:
            raise InvalidAnswer(say("loop.unreadable_calls", times=count), provider=self._model.provider.name)
        return UNREADABLE

    def _record_cut(self, response: Response, said: Said, *, last: bool) -> str:
        """An answer cut by the output limit: its words stand, its calls never run."""
        cut = "the answer was cut at the output limit"
        was_calling = bool(response.message.calls) or response.fault == "cut_in_call"
        if not was_calling and says_something(response.message):
            return ""  # the run ends on it, and says so
        self._history.reject(said, cut)
        if was_calling:
            self._history.say(user(CUT_NOTE), "cut")
            if not last:
                return cut
        raise OutputLimit(say("loop.cut_before_use"))

    def _record_broken(self, reason: str, may_have_cost: bool) -> None:
        from dragoman.loop.closing import record_broken

        record_broken(self._history, self.arrived, reason, may_have_cost=may_have_cost)

    def _after_results(self) -> bool:
        messages = self._history.view.messages
        return bool(messages) and bool(messages[-1].results or self.pieces)

    def _max_output_tokens(self) -> int:
        profile = self._model.provider.profile(self._history.view.model)
        return self._history.view.settings.max_output_tokens or (profile.max_output_tokens if profile.known else 0)
