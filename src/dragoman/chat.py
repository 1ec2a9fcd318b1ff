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

from dragoman.contracts import Provider
from dragoman.errors import OutputLimit, Refused, StreamBroken
from dragoman.events import ResponseFinished, Retrying, StreamEvent, TextDelta, ThoughtDelta, ToolCallReady
from dragoman.history import History
from dragoman.messages import FinishReason, Message, Part, Response, Text, Thought, ToolResult, user
from dragoman.parts import merge_text

CUT_NOTE = (
    "Your last answer was cut off at the output limit. None of its tool calls was run. "
    "Do it in smaller parts: write long files piece by piece, and make fewer calls at once."
)
MALFORMED_NOTE = "Your last answer held a tool call that could not be read ({detail}). It was not run. Write the call again, correctly."

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

    async def answer(self) -> AsyncGenerator[StreamEvent, None]:
        """The next answer. Ends with the ResponseFinished of a valid one, already recorded, or raises a DragomanError.

        A Retrying event says that what was shown of this answer is void. Consume it under `contextlib.aclosing`.
        """
        attempt = 1
        while True:
            await self.history.sync()
            finished: ResponseFinished | None = None
            async with aclosing(self._attempt()) as events:
                async for event in events:
                    if isinstance(event, ResponseFinished):
                        finished = event
                    else:
                        yield event
            if finished is None:
                raise StreamBroken("the provider's stream ended without an answer", provider=self.provider.name)
            fault = self._keep(finished.response, last=attempt >= self.policy.attempts)
            await self.history.sync()
            if not fault:
                yield finished
                return
            yield Retrying(attempt, self.policy.delay_s, fault)
            await self.policy.sleep(self.policy.delay_s)
            attempt += 1

    async def _attempt(self) -> AsyncGenerator[StreamEvent, None]:
        """The provider's stream. What came of an answer that did not get to its end is recorded."""
        came: list[StreamEvent] = []
        broken = "broken off"
        try:
            async with aclosing(self.provider.stream(self.history.request)) as events:
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
        if last:
            tries = "" if self.policy.attempts == 1 else f" {self.policy.attempts} times"
            raise InvalidAnswer(f"{fault}{tries}; try again, or choose another model with -m", provider=self.provider.name)
        return fault

    def _cut(self, response: Response, said: Any, *, last: bool) -> str:
        """An answer cut by the output limit: its words stand, its calls never run."""
        cut = "the answer was cut at the output limit"
        if not response.message.calls and _says_something(response.message):
            return ""  # the run ends on it, and says so
        self.history.reject(said, cut)
        if response.message.calls:
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

    def _after_results(self) -> bool:
        messages = self.history.view.messages
        return bool(messages) and any(isinstance(part, ToolResult) for part in messages[-1].parts)


def fault_of(response: Response, *, after_results: bool) -> str:
    """Why this is no answer, or nothing. Keyed on the reason it ended, not on emptiness alone."""
    if response.finish is FinishReason.MALFORMED_TOOL_CALL:
        detail = f" ({response.detail})" if response.detail else ""
        return f"the model wrote a tool call that could not be read{detail}"
    if _says_something(response.message) or (after_results and response.finish is FinishReason.STOP):
        return ""
    return "the model gave an empty answer"


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
