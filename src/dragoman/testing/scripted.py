"""A provider that plays a script: no network, no key, the same events every time.

    provider = ScriptedProvider('''
        call: read_file {"path": "a.txt"}
        ---
        text: Done.
    ''')

Every scripted fault happens here too, as a protocol reader would report it: a cut is StreamBroken, an error has its own class, a stall
waits until it is cancelled.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import assert_never

from dragoman.base import jsontext
from dragoman.providers.answer import AnswerBuilder
from dragoman.providers.faults import error_from_status
from dragoman.testing.portable import portable_bytes
from dragoman.testing.script import Playback, Source, pieces
from dragoman.testing.script_steps import (
    BlockStep,
    CallStep,
    Cite,
    CutStep,
    Fail,
    Finish,
    Garbage,
    Ping,
    RawStep,
    ReportStep,
    Say,
    ScriptedAnswer,
    Stall,
    Think,
    Wait,
)
from dragoman.values.contracts import HttpRequest, Provider
from dragoman.values.errors import ConnectionFailed, ProviderError, StreamBroken
from dragoman.values.events import ResponseFinished, StreamEvent, TextDelta, ThoughtDelta, ToolCallDelta
from dragoman.values.messages import Citation, FinishReason, Opaque, Request
from dragoman.values.parts import used_call_ids
from dragoman.values.profile import Deployment, Profile
from dragoman.words import say

EMBEDDING_SIZE = 8


class ScriptedProvider(Provider):
    """Implements `contracts.Provider`. Counts a quarter of the request's bytes as tokens, those of the environment message aside: it is
    another in every folder."""

    def __init__(
        self,
        source: Source,
        *,
        name: str = "scripted",
        model: str = "",
        profile: Profile | None = None,
        profiles: Mapping[str, Profile] | None = None,
    ) -> None:
        self._name = name
        self._model = model
        self._profile = profile or Profile()
        self._profiles = dict(profiles or {})
        self.playback = Playback(source)
        self.requests: list[Request] = []
        """The requests received, in order."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return self._model

    def profile(self, model: str) -> Profile:
        return self._profiles.get(model, self._profile)

    def prepare(self, request: Request) -> HttpRequest:
        """The request itself, as JSON."""
        return HttpRequest("POST", "scripted:", {"content-type": "application/json"}, jsontext.encode(request))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        answer = self.playback.next(request)
        performance = _Performance(self, request, answer, f"scripted-{self.playback.played}")
        async with aclosing(_interrupt(performance.events(), answer, self._name)) as events:
            async for event in events:
                yield event

    async def count_tokens(self, request: Request) -> int:
        return self.tokens(request)

    def tokens(self, request: Request) -> int:
        return portable_bytes(self.prepare(request).body) // 4

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return [embedding(text) for text in texts]


class _Performance:
    """One answer being played: steps in, events out."""

    def __init__(self, provider: ScriptedProvider, request: Request, answer: ScriptedAnswer, response_id: str) -> None:
        self._provider = provider
        self._request = request
        self._answer = answer
        self._response_id = response_id
        self._built = AnswerBuilder(lambda: used_call_ids(request.messages))

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        started = False
        for step in self._answer.steps:
            match step:
                case Wait(seconds):
                    await asyncio.sleep(seconds)
                    continue
                case Ping(count, every):
                    await _ping(count, every)
                    continue
                case Stall(None):
                    await asyncio.Event().wait()
                    continue
                case Fail():
                    raise error_of(step, self._provider.name)
                case CutStep(None) if not started:
                    raise ConnectionFailed(say("testing.closed_before"), provider=self._provider.name)
                case CutStep(None):
                    raise self._stream_broken(say("testing.cut_here"))
                case Garbage(text):
                    raise self._stream_broken(say("testing.garbage", text=text[:80]))
                case CutStep() | Stall() | RawStep():
                    continue  # handled by count in `_interrupt`; or bytes for a wire, which this provider does not have
                case Say() | Think() | CallStep() | Cite() | ReportStep() | Finish() | BlockStep():
                    pass
                case _:
                    assert_never(step)
            if not started:
                started = True
                for event in self._built.start(self._response_id, self._request.model):
                    yield event
            if isinstance(step, BlockStep):
                for event in self._built.close(FinishReason.SAFETY, step.reason, f"The prompt was blocked: {step.reason}"):
                    yield event
                return
            for event in self._play_step(step):
                yield event
        finish = self._answer.finish
        if not started or not finish.reason:
            raise self._stream_broken(say("testing.no_end"))
        for event in self._built.set_usage(self._answer.usage_or(self._provider.tokens(self._request))):
            yield event
        for event in self._built.close(reason_of(finish.reason), str(finish.reason), finish.detail):
            yield event

    def _play_step(self, step: Say | Think | CallStep | Cite | ReportStep | Finish) -> list[StreamEvent]:
        built = self._built
        match step:
            case Say(text, piece_chars):
                return [event for piece in pieces(text, piece_chars) if piece for event in built.add_text(piece)]
            case Think(text, signature, piece_chars):
                built.seal()
                events = [event for piece in pieces(text, piece_chars) if piece for event in built.add_thought(piece)]
                built.seal(self._opaque(signature))
                return events
            case CallStep(name, arguments, call_id, piece_chars, signature):
                made, started = built.begin_call(call_id or "", name)
                deltas = [ToolCallDelta(made, piece) for piece in pieces(arguments, piece_chars)]
                return [*started, *deltas, *built.end_call(made, name, arguments, self._opaque(signature))]
            case Cite(uri, title, text):
                return built.add_citation(Citation(uri, title, text))
            case ReportStep(usage):
                return built.set_usage(usage)
            case Finish():
                return []
            case _:
                assert_never(step)

    def _opaque(self, signature: str) -> Opaque | None:
        return Opaque(self._provider.name, jsontext.dumps(signature), self._request.model) if signature else None

    def _stream_broken(self, message: str) -> StreamBroken:
        return StreamBroken(message, provider=self._provider.name)


async def _ping(count: int | None, every_s: float) -> None:
    """Pings are not events: they only take time."""
    if count is None:
        await asyncio.Event().wait()
    else:
        await asyncio.sleep(count * every_s)


async def _interrupt(events: AsyncGenerator[StreamEvent, None], answer: ScriptedAnswer, provider: str) -> AsyncGenerator[StreamEvent, None]:
    """Apply cuts and stalls with a count. Without a wire, bytes are counted in the text, the thinking and the arguments."""
    cut = next((step.after_bytes for step in answer.steps if isinstance(step, CutStep) and step.after_bytes is not None), None)
    stall = next((step.after_events for step in answer.steps if isinstance(step, Stall) and step.after_events is not None), None)
    sent_events = sent_bytes = 0
    async with aclosing(events):
        async for event in events:
            if stall is not None and sent_events >= stall:
                await asyncio.Event().wait()
            if cut is not None:
                room = cut - sent_bytes
                sent_bytes += len(_bytes_of(event))
                if sent_bytes > cut or (sent_bytes == cut and isinstance(event, ResponseFinished)):
                    if shown := _bytes_of(event)[:room].decode(errors="ignore"):
                        yield _with_text(event, shown)
                    raise StreamBroken(say("testing.cut_after", bytes=cut), provider=provider)
            yield event
            sent_events += 1


def _bytes_of(event: StreamEvent) -> bytes:
    match event:
        case TextDelta(text) | ThoughtDelta(text):
            return text.encode(errors="replace")
        case ToolCallDelta(arguments=arguments):
            return arguments.encode(errors="replace")
        case _:
            return b""


def _with_text(event: StreamEvent, text: str) -> StreamEvent:
    match event:
        case ToolCallDelta(call_id):
            return ToolCallDelta(call_id, text)
        case ThoughtDelta():
            return ThoughtDelta(text)
        case _:
            return TextDelta(text)


def error_of(fail: Fail, provider: str) -> ProviderError:
    """The error that a protocol reader raises for a failing service."""
    details: list[object] = [{"violations": [{"quotaId": fail.quota_id}]}] if fail.quota_id else []
    hints = [hint for hint in (fail.retry_after_s, fail.retry_date_s, fail.retry_info_s) if hint is not None]
    headers = {"retry-after": str(max(hints))} if hints else {}
    fault = {"message": fail.message or f"The script fails with status {fail.status}.", "code": fail.code, "details": details}
    return error_from_status(fail.status, headers, jsontext.encode({"error": fault}), Deployment(provider, "openai_chat", ""))


_REASONS = {
    FinishReason.STOP: "end_turn stop_sequence completed",
    FinishReason.LENGTH: "max_tokens max_output_tokens model_context_window_exceeded",
    FinishReason.TOOL_CALLS: "tool_use function_call",
    FinishReason.SAFETY: "content_filter prohibited_content blocklist spii image_safety",
    FinishReason.MALFORMED_TOOL_CALL: "malformed_function_call unexpected_tool_call",
}
_REASON_OF = {word: reason for reason, words in _REASONS.items() for word in (reason.value, *words.split())}


def reason_of(word: str) -> FinishReason:
    """The finish reason of a service's word."""
    known = _REASON_OF.get(word.lower())
    if known is not None:
        return known
    return FinishReason(word.lower()) if word.lower() in tuple(FinishReason) else FinishReason.OTHER


def embedding(text: str, size: int = EMBEDDING_SIZE) -> list[float]:
    """A vector of length one that depends on the text alone."""
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(size)
    vector = [byte - 127.5 for byte in digest]
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]
