"""One answer: send what the record says, stream what comes back, reject what is no answer and try again.

Every answer is recorded, good or not. One that is rejected, cut or broken off leaves the view, so none of it is run or sent again. What a
person stopped stays in view as far as it came: they have read it, and what they say next may be about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from dragoman.loop.history import History
from dragoman.values.contracts import Provider
from dragoman.values.errors import OutputLimit, Refused, StreamBroken
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent, TextDelta, ThoughtDelta, ToolCallReady
from dragoman.values.messages import FinishReason, Message, Part, Request, Response, Text, Thought, ToolResult, user
from dragoman.values.notes import ANSWER_NOTE, ASKED_AGAIN, CUT_NOTE, MALFORMED_NOTE
from dragoman.values.parts import merge_text

_ANSWER = user(ANSWER_NOTE)

MAX_QUESTION_CHARS = 1_000
"""A longer one costs more to read again than it helps."""

UNREADABLE = "the model wrote a tool call that could not be read"
UNREADABLE_TRIES = 2
"""How often a model that writes calls as text is told in one turn what is wrong with one."""

MAX_ARGUMENT_CHARS = 2_000_000
"""Several times the longest answer any model gives."""
_REFUSALS = (FinishReason.SAFETY, FinishReason.RECITATION, FinishReason.REFUSAL)


class AnswerPolicy(msgspec.Struct, frozen=True):
    """How often an invalid answer is asked for again. The defaults are the seed's."""

    attempts: int = 2
    delay_s: float = 0.5
    temperature: float = 1.0
    """What a retry is sampled at, to encourage another answer."""
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep


class InvalidAnswer(StreamBroken):
    """Every attempt gave something that is no answer."""


class Chat:
    """The conversation with one provider. What is said goes through the record, and nowhere else."""

    def __init__(self, provider: Provider, history: History, policy: AnswerPolicy | None = None) -> None:
        self.provider = provider
        self.history = history
        self.policy = policy or AnswerPolicy()
        self.must_answer = False
        """Whether the next answer has to be in words: the model has called enough."""
        self.question = ""
        """What was asked, where it can be asked again."""

    async def answer(self) -> AsyncGenerator[StreamEvent, None]:
        """The next answer. Ends with the ResponseFinished of a valid one, already recorded, or raises a DragomanError.

        A Retrying event says that what was shown of this answer is void. Consume it under `contextlib.aclosing`.
        """
        attempt, unreadable = 1, 0
        if self.must_answer and self.history.view.messages[-1:] != (reminder := self._reminder(),):
            self.history.say(reminder)
        while True:
            await self.history.sync()
            finished: ResponseFinished | None = None
            async with aclosing(self._attempt(is_bound=unreadable > UNREADABLE_TRIES)) as events:
                async for event in events:
                    if isinstance(event, ResponseFinished):
                        finished = event
                    else:
                        yield event
            if finished is None:
                raise StreamBroken("the provider's stream ended without an answer", provider=self.provider.name)
            if _is_unreadable(finished.response):
                unreadable += 1
                fault = self._keep_unreadable(finished.response, unreadable)
            else:
                fault = self._keep(finished.response, last=attempt >= self.policy.attempts)
                attempt += 1
            await self.history.sync()
            if not fault:
                yield finished
                return
            yield Retrying(attempt + unreadable - 1, self.policy.delay_s, fault)
            await self.policy.sleep(self.policy.delay_s)

    async def _attempt(self, *, is_bound: bool = False) -> AsyncGenerator[StreamEvent, None]:
        """The provider's stream. What came of an answer that did not get to its end is recorded."""
        request = self.history.request
        if self.must_answer:
            request = _in_words(request)
        elif is_bound:
            from dragoman.text_tools.constrained import constrained

            request = constrained(request)
        came: list[StreamEvent] = []
        broken = "broken off"
        try:
            async with aclosing(self.provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Retrying):
                        self._keep_partial(came, event.reason)
                    elif isinstance(event, ResponseFinished):
                        came = []
                    else:
                        came.append(event)
                    yield event
        except asyncio.CancelledError:
            self._keep_cancelled(came)
            raise
        except Exception as error:
            broken = str(error)
            raise
        finally:
            self._keep_partial(came, broken)

    def _keep(self, response: Response, *, last: bool) -> str:
        """Record an answer. Returns why it must be tried again, or nothing; raises where trying again is no use."""
        after_results = self._after_results()
        said = self.history.answer(response)
        if response.finish in _REFUSALS:
            self.history.reject(said, _refusal(response))
            raise Refused(_refusal(response), provider=self.provider.name)
        if response.finish is FinishReason.LENGTH:
            return self._cut(response, said, last=last)
        fault = fault_of(response, after_results=after_results)
        if not fault:
            if not _says_something(response.message):
                self.history.reject(said, "nothing was said: the end of the run")
            return ""
        self.history.reject(said, fault, self.policy.temperature)
        if response.finish is FinishReason.MALFORMED_TOOL_CALL:
            self.history.say(user(MALFORMED_NOTE.format(detail=response.detail or response.raw_finish or "malformed")))
        elif monstrous := _monstrous(response):
            self.history.say(user(MALFORMED_NOTE.format(detail=monstrous)))
        if last:
            tries = "" if self.policy.attempts == 1 else f" {self.policy.attempts} times"
            raise InvalidAnswer(f"{fault}{tries}; try again, or choose another model with -m", provider=self.provider.name)
        return fault

    def _keep_unreadable(self, response: Response, count: int) -> str:
        """A call written as text that could not be read. The answer stays, as text, and the model is told. In the end the server must see
        to it that the call can be read, or a person is asked."""
        from dragoman.text_tools.call_note import feedback_message

        said = self.history.answer(response)
        if count <= UNREADABLE_TRIES:
            self.history.say(feedback_message(response.detail))
            return UNREADABLE
        self.history.reject(said, UNREADABLE)
        if count > UNREADABLE_TRIES + 1 or not self.provider.profile(self.history.view.model).json_schema:
            raise InvalidAnswer(
                f"{UNREADABLE} {count} times; say what it should do, or choose another model with -m", provider=self.provider.name
            )
        return UNREADABLE

    def _cut(self, response: Response, said: Any, *, last: bool) -> str:
        """An answer cut by the output limit: its words stand, its calls never run."""
        cut = "the answer was cut at the output limit"
        was_calling = bool(response.message.calls) or _is_cut_in_call(response)
        if not was_calling and _says_something(response.message):
            return ""  # the run ends on it, and says so
        self.history.reject(said, cut)
        if was_calling:
            self.history.say(user(CUT_NOTE))
            if not last:
                return cut
        raise OutputLimit(f"{cut} before it said anything that could be used; ask for less at once, or raise settings.max_output_tokens")

    def _keep_cancelled(self, came: list[StreamEvent]) -> None:
        message = _put_together(came)
        if _says_something(message):
            came.clear()
            self.history.answer(Response(message, FinishReason.OTHER, "cancelled"))

    def _keep_partial(self, came: list[StreamEvent], reason: str) -> None:
        message = _put_together(came)
        came.clear()
        if message.parts:
            self.history.reject(self.history.answer(Response(message, FinishReason.OTHER, "broken off")), reason)

    def _reminder(self) -> Message:
        """What a model is told that has to answer now. Where a grammar sees to it that no call is written, it is asked once more: what a
        small model has read last is what it answers, and what it is told of tools it repeats."""
        is_bound = hasattr(self.provider, "dialect") and self.provider.profile(self.history.view.model).bound_calls
        return user(ASKED_AGAIN + self.question) if is_bound and 0 < len(self.question) <= MAX_QUESTION_CHARS else _ANSWER

    def _after_results(self) -> bool:
        messages = self.history.view.messages
        return bool(messages) and any(isinstance(part, ToolResult) for part in messages[-1].parts)


def _in_words(request: Request) -> Request:
    """The same request without leave to call."""
    settings = msgspec.structs.replace(request.settings, tool_choice="none")
    return msgspec.structs.replace(request, settings=settings)


def fault_of(response: Response, *, after_results: bool) -> str:
    """Why this is no answer, or nothing. Keyed on the reason it ended, not on emptiness alone."""
    if response.finish is FinishReason.MALFORMED_TOOL_CALL:
        detail = f" ({response.detail})" if response.detail else ""
        return f"the model wrote a tool call that could not be read{detail}"
    if monstrous := _monstrous(response):
        return f"the model wrote a tool call that cannot be sent back to it ({monstrous})"
    if _says_something(response.message) or (after_results and response.finish is FinishReason.STOP):
        return ""
    return "the model gave an empty answer"


def _is_unreadable(response: Response) -> bool:
    """Whether a call in the text could not be read. What a service says of its own calls is another matter."""
    if response.finish is not FinishReason.MALFORMED_TOOL_CALL:
        return False
    from dragoman.text_tools.call_note import is_feedback

    return is_feedback(response.detail)


def _is_cut_in_call(response: Response) -> bool:
    if not response.detail:
        return False
    from dragoman.text_tools.call_note import CUT

    return response.detail == CUT


def _monstrous(response: Response) -> str:
    """Arguments no model can have meant: with them in view, no request would fit any more."""
    for call in response.message.calls:
        if len(call.arguments) > MAX_ARGUMENT_CHARS:
            return f"the arguments of {call.name} have {len(call.arguments):,} characters, and {MAX_ARGUMENT_CHARS:,} are the most"
    return ""


def _says_something(message: Message) -> bool:
    """Whether anything is there that is not thinking and not white space."""
    return any(part.text.strip() if isinstance(part, Text) else not isinstance(part, Thought) for part in message.parts)


def _refusal(response: Response) -> str:
    word = response.raw_finish or response.finish.value
    why = f": {response.detail}" if response.detail else ""
    return f"the answer was refused or filtered ({word}){why}; rephrase the prompt, or choose another model"


def _put_together(events: list[StreamEvent]) -> Message:
    """As much of an answer as arrived."""
    parts: list[Part] = []
    for event in events:
        match event:
            case TextDelta(text=text):
                parts.append(Text(text))
            case ThoughtDelta(text=text) if text:
                parts.append(Thought(text))
            case ToolCallReady(call=call):
                parts.append(call)
            case _:
                pass
    return Message("assistant", merge_text(parts))
