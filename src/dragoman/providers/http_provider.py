"""A provider over HTTP: one deployment, one protocol, one attempt. Retrying is retry.py's business."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, closing
from typing import Any

from dragoman import __version__
from dragoman.base import jsontext
from dragoman.base.turnstile import Turnstile
from dragoman.http.deadline import Deadline
from dragoman.http.pool import most_connections
from dragoman.http.sse import SSEDecoder
from dragoman.providers.auth import Auth, NoAuth
from dragoman.providers.catalog import profile_for
from dragoman.providers.faults import error_from_event, error_from_status
from dragoman.providers.wire import Destination, StreamDecoder, Wire
from dragoman.values.contracts import Answer, BlobStore, Prepared, Transport
from dragoman.values.errors import ConnectionFailed, ProviderError, StreamBroken, TimedOut, Unauthorized, Unsupported
from dragoman.values.events import (
    ResponseFinished,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdated,
)
from dragoman.values.messages import PerMessage, Request, Response, Text, Thought, ToolCall
from dragoman.values.profile import Deployment, Profile

TRAILING_S = 5.0
"""How long to wait for what may still trail behind an answer that has said why it ended."""
MAX_BODY_BYTES = 256 * 1024 * 1024
WAIT_FOR_OTHERS_S = 600.0

requests_under_way = Turnstile(most_connections, patience_s=WAIT_FOR_OTHERS_S)
"""Of all agents of this process: each holds a connection, and the system allows so many."""


def user_agent() -> str:
    if sys.platform == "win32":
        import platform  # slow to import, and elsewhere not needed

        return f"Dragoman/{__version__} ({sys.platform}; {platform.machine()})"
    return f"Dragoman/{__version__} ({sys.platform}; {os.uname().machine})"


class HttpProvider:
    """Implements contracts.Provider. Rendered messages are kept per model, so a request costs what is new."""

    def __init__(
        self,
        deployment: Deployment,
        wire: Wire,
        transport: Transport,
        auth: Auth | None = None,
        *,
        base_url: str = "",
        blobs: BlobStore | None = None,
    ) -> None:
        self.deployment = deployment
        self.transport = transport
        self._wire = wire
        self._auth = auth or NoAuth()
        self._base_url = (base_url or deployment.base_url).rstrip("/")
        self._blobs = blobs
        self._memos: dict[str, PerMessage[Any]] = {}

    @property
    def name(self) -> str:
        return self.deployment.name

    def profile(self, model: str) -> Profile:
        return profile_for(self.deployment, model)

    # --- making a request

    def prepare(self, request: Request) -> Prepared:
        return self._prepared(request, stream=True)

    def messages_rendered(self, model: str) -> int:
        """How many messages have been rendered for a model so far: what requests really cost."""
        memo = self._memos.get(model)
        return memo.computed if memo else 0

    def _prepared(self, request: Request, *, stream: bool) -> Prepared:
        to = self._to(request.model)
        if request.tools and to.profile.tools == "text":
            raise Unsupported(f"{self.name}/{to.model} takes no tools over this protocol; choose another model, or the same one elsewhere")
        body = self._wire.body(request, self._rendered(request, to), to, stream=stream)
        return self._post(self._wire.path(to, stream=stream), body, to)

    def _post(self, path: str, body: bytes, to: Destination) -> Prepared:
        headers = {
            "content-type": "application/json",
            "user-agent": user_agent(),
            **self._wire.headers(to),
            **self.deployment.headers,
        }
        return Prepared("POST", self._base_url + path, headers, body)

    def _to(self, model: str) -> Destination:
        return Destination(self.deployment, self.profile(model), model, self._blobs)

    def _rendered(self, request: Request, to: Destination) -> list[Any]:
        memo = self._memos.get(request.model)
        if memo is None:
            memo = self._memos.setdefault(request.model, PerMessage(lambda message: self._wire.render(message, to)))
        return memo.over(request.messages)

    # --- the calls of the contract

    async def generate(self, request: Request) -> Response:
        to = self._to(request.model)
        data = await self._json(self._prepared(request, stream=False), to.profile.first_event_s + to.profile.between_events_s)
        return self._whole_answer(data, request, to)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        to = self._to(request.model)
        prepared = self._prepared(request, stream=True)
        decoder = self._wire.decoder(to, lambda: _used_ids(request))
        async with self._answered(prepared, to.profile.first_event_s) as (answer, deadline):
            if answer.headers.get("content-type", "").startswith("application/json"):
                async for event in self._unstreamed(answer, request, to):
                    yield event
                return
            try:
                async with aclosing(_decoded(answer, decoder, to.profile, deadline)) as events:
                    async for event in events:
                        yield event
            except ProviderError as error:
                error.provider = error.provider or self.name
                self._take_secrets_out(error)
                raise

    async def count_tokens(self, request: Request) -> int:
        to = self._to(request.model)
        path, body = self._wire.count_request(request, self._rendered(request, to), to)
        data = await self._json(self._post(path, body, to), to.profile.first_event_s)
        return self._read(self._wire.count_answer, data)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        model = model or self.deployment.embed_model
        if not model:
            raise Unsupported(f"{self.name} has no embedding model in the catalog; name one: embed(texts, model=...)")
        if not texts:
            return []
        to = self._to(model)
        path, body = self._wire.embed_request(texts, to)
        return self._read(self._wire.embed_answer, await self._json(self._post(path, body, to), to.profile.first_event_s))

    async def preconnect(self) -> None:
        await self.transport.preconnect(self._base_url)

    async def aclose(self) -> None:
        await self.transport.aclose()

    # --- sending

    @asynccontextmanager
    async def _answered(self, prepared: Prepared, timeout_s: float) -> AsyncGenerator[tuple[Answer, float], None]:
        """An answer with status 200 and until when it may take, or the error its status stands for.

        Where as many requests are under way in this process as there may be, it waits for its turn first: that time is not the service's.
        """
        places = self._places()
        try:
            place = await places.enter()
        except TimeoutError:
            raise self._too_many() from None
        try:
            deadline = asyncio.get_running_loop().time() + timeout_s
            context, answer = await self._open(prepared, deadline)
            try:
                yield answer, deadline
            except GeneratorExit:  # whoever reads has had enough, which is no fault
                await context.__aexit__(None, None, None)
                raise
            except BaseException as error:
                await context.__aexit__(type(error), error, error.__traceback__)
                raise
            await context.__aexit__(None, None, None)
        finally:
            places.leave(place)

    def _places(self) -> Turnstile:
        """Where a request waits for its turn."""
        return requests_under_way

    async def _open(self, prepared: Prepared, deadline: float) -> tuple[AbstractAsyncContextManager[Answer], Answer]:
        """A refused credential is renewed once, where it can be."""
        for attempt in (1, 2):
            credentials = await self._auth.headers()
            context = self.transport.send(prepared.method, prepared.url, {**prepared.headers, **credentials}, prepared.body)
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await context.__aenter__()
            except TimeoutError:
                raise self._timed_out("no answer") from None
            except ConnectionFailed as error:
                error.provider = error.provider or self.name
                raise
            if answer.status == 200:
                return context, answer
            try:
                body = await _read_body(answer, min(deadline, asyncio.get_running_loop().time() + TRAILING_S), limit=256 * 1024)
            except (TimeoutError, ProviderError):
                body = b""
            finally:
                await context.__aexit__(None, None, None)
            error = error_from_status(answer.status, answer.headers, body, self.deployment)
            if attempt == 1 and isinstance(error, Unauthorized) and await self._auth.refresh(credentials):
                continue
            self._take_secrets_out(error)
            raise error
        raise AssertionError("unreachable")

    async def _json(self, prepared: Prepared, timeout_s: float) -> Any:
        async with self._answered(prepared, timeout_s) as (answer, deadline):
            try:
                body = await _read_body(answer, deadline)
            except TimeoutError:
                raise self._timed_out("no whole answer") from None
            except ConnectionFailed as error:
                raise StreamBroken("the connection was cut before the answer was whole", provider=self.name) from error
        try:
            return jsontext.decode(body)
        except jsontext.NotJSON as error:
            raise StreamBroken(f"the answer is not JSON: {body[:80]!r}", provider=self.name) from error

    async def _unstreamed(self, answer: Answer, request: Request, to: Destination) -> AsyncGenerator[StreamEvent, None]:
        """A server that answers a streaming request with one JSON document: an error under status 200, or the whole answer."""
        deadline = asyncio.get_running_loop().time() + to.profile.first_event_s
        try:
            body = await _read_body(answer, deadline)
            data = jsontext.decode(body)
        except (TimeoutError, ConnectionFailed, jsontext.NotJSON) as error:
            raise StreamBroken("the service sent neither a stream nor a whole answer", provider=self.name) from error
        response = self._whole_answer(data, request, to)
        for event in _told(response):
            yield event

    def _whole_answer(self, data: Any, request: Request, to: Destination) -> Response:
        if isinstance(data, dict) and data.get("error"):
            raise error_from_event(data, to)
        return self._read(self._wire.from_wire, data, to, lambda: _used_ids(request))

    def _read(self, reader: Callable[..., Any], *data: Any) -> Any:
        try:
            return reader(*data)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise StreamBroken(f"the answer has an unexpected shape ({type(error).__name__}: {error})", provider=self.name) from error

    def _take_secrets_out(self, error: ProviderError) -> None:
        """Some services repeat the key in their complaint about it."""
        from dragoman.providers.redact import redact

        error.message = redact(error.message, self._auth.secrets)
        error.args = (error.message,)

    def _too_many(self) -> TimedOut:
        waited = f"{WAIT_FOR_OTHERS_S / 60:.0f} minutes"
        return TimedOut(
            f"{requests_under_way.inside} requests of this process are under way, and none ended within {waited}; run fewer agents at once",
            provider=self.name,
        )

    def _timed_out(self, what: str) -> TimedOut:
        return TimedOut(f"{what} from {self._base_url} in time; is the service up?", provider=self.name)


async def _decoded(answer: Answer, decoder: StreamDecoder, profile: Profile, deadline: float) -> AsyncGenerator[StreamEvent, None]:
    """Bytes → events. Time is counted between events that mean something: pings and comments do not reset it."""
    with closing(Deadline(deadline)) as limit:
        async with aclosing(answer.chunks()) as chunks:
            async with aclosing(_events(chunks, decoder, profile, limit)) as events:
                async for event in events:
                    yield event
            for event in decoder.close():
                yield event
            await _drain(chunks)


async def _events(
    chunks: AsyncIterator[bytes], decoder: StreamDecoder, profile: Profile, limit: Deadline
) -> AsyncGenerator[StreamEvent, None]:
    """The events of a body, up to its end or the answer's."""
    clock = asyncio.get_running_loop().time
    sse = SSEDecoder()
    chunk: bytes | None = b""
    while chunk is not None:
        try:
            chunk = await limit.next(chunks)
        except TimeoutError:
            if decoder.complete:
                return
            raise TimedOut("no event came in time: the service stalled") from None
        except ConnectionFailed as error:
            raise StreamBroken("the connection was cut in the middle of the answer") from error
        for name, data in sse.feed(chunk) if chunk is not None else sse.close():
            events = _fed(decoder, name, data)
            if events is None:
                continue
            for event in events:
                yield event
            # Counted from here: the time a reader takes over an event is not the service's.
            limit.at = clock() + (TRAILING_S if decoder.complete else profile.between_events_s)
            if decoder.ended:
                return  # nothing behind the end counts, whether it came in the same chunk or in another


def _fed(decoder: StreamDecoder, name: str, data: bytes) -> list[StreamEvent] | None:
    try:
        return decoder.feed(name, data)
    except jsontext.NotJSON as error:
        raise StreamBroken(f"the service sent an event that is not JSON: {data[:80]!r}") from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StreamBroken(f"the service sent an event of unexpected shape: {data[:80]!r}") from error


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can serve the next request; a server that leaves it open is not waited for."""
    try:
        async with asyncio.timeout(0.25):
            async for _ in chunks:
                pass
    except (TimeoutError, ConnectionFailed):
        pass


async def _read_body(answer: Answer, deadline: float, limit: int = MAX_BODY_BYTES) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async with asyncio.timeout_at(deadline), aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            pieces.append(chunk)
            size += len(chunk)
            if size > limit:
                break
    return b"".join(pieces)


def _used_ids(request: Request) -> set[str]:
    return {part.id for message in request.messages for part in message.parts if isinstance(part, ToolCall)}


def _told(response: Response) -> list[StreamEvent]:
    """A whole answer as the events a stream of it would have had."""
    events: list[StreamEvent] = [ResponseStarted(response.response_id, response.model_version)]
    for part in response.message.parts:
        match part:
            case Text(text=text) if text:
                events.append(TextDelta(text))
            case Thought(text=text) if text:
                events.append(ThoughtDelta(text))
            case ToolCall(id=call_id, name=name):
                events += [ToolCallStarted(call_id, name), ToolCallReady(part)]
            case _:
                pass
    return [*events, UsageUpdated(response.usage), ResponseFinished(response.finish, response)]
