"""A provider over HTTP: one deployment, one protocol, one attempt. Retries are in retry.py."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from dragoman import __version__
from dragoman.base import jsontext
from dragoman.base.turnstile import Turnstile
from dragoman.http.pool import most_connections
from dragoman.providers.answer import last_response, service_error
from dragoman.providers.auth import Auth, NoAuth
from dragoman.providers.catalog import profile_for
from dragoman.providers.reading import decode_answer, events_of, first_bytes, read_body, read_explanation
from dragoman.providers.wire import Destination, StreamDecoder, Wire
from dragoman.providers.wire_content import media_fault
from dragoman.values.blobs import JoinedBlobs
from dragoman.values.contracts import BlobStore, HttpRequest, HttpResponse, Provider, Transport
from dragoman.values.errors import BadRequest, ConnectionFailed, ProviderError, StreamBroken, TimedOut, Unauthorized, Unsupported
from dragoman.values.events import (
    FieldOmitted,
    StreamEvent,
)
from dragoman.values.messages import Blob, FileRef, PerMessage, Request, Response
from dragoman.values.parts import used_call_ids
from dragoman.values.profile import Deployment, Profile
from dragoman.words import change_values, say

if TYPE_CHECKING:
    from dragoman.providers.omitting import Omitting

WAIT_FOR_OTHERS_S = 600.0

requests_under_way = Turnstile(most_connections, patience_s=WAIT_FOR_OTHERS_S)
"""Limits the concurrent requests of all agents of this process: each holds a connection, and the system limits those."""


def user_agent() -> str:
    if sys.platform == "win32":
        return f"Dragoman/{__version__} ({sys.platform}; {platform.machine()})"
    return f"Dragoman/{__version__} ({sys.platform}; {os.uname().machine})"


class _AnswerInError(Exception):
    """An error status whose body is an answer after all."""

    def __init__(self, response: Response) -> None:
        self.response = response


class HttpProvider(Provider):
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
        self._deployment = deployment
        self.transport = transport
        self._wire = wire
        self._auth = auth or NoAuth()
        self._base_url = (base_url or deployment.base_url).rstrip("/")
        self._blobs = JoinedBlobs(blobs)
        self._memos: dict[str, PerMessage[Any]] = {}
        self._refused: dict[str, dict[str, str]] = {}
        """By model: the settings that the service has refused, with its words."""

    @property
    def name(self) -> str:
        return self._deployment.name

    @property
    def deployment(self) -> Deployment:
        return self._deployment

    @property
    def blobs(self) -> BlobStore | None:
        return self._blobs.own

    def look_in(self, blobs: BlobStore) -> None:
        self._blobs.add(blobs)

    def media_fault(self, part: Blob | FileRef, model: str) -> str:
        carried = getattr(self._wire, "CARRIED", None)  # a protocol of another package may not say it
        return "" if carried is None else media_fault(part, self._to(model), carried)

    def profile(self, model: str) -> Profile:
        return profile_for(self._deployment, model)

    @property
    def base_url(self) -> str:
        return self._base_url

    def secrets(self) -> tuple[str, ...]:
        """What is sent to authenticate: to be kept out of logs and traces."""
        return self._auth.secrets()

    # --- making a request

    def prepare(self, request: Request) -> HttpRequest:
        return self._prepared(self._omitting(request, stream=True).request if self._refused else request, stream=True)

    def messages_rendered(self, model: str) -> int:
        """How many messages have been rendered for a model so far, cached ones not counted."""
        memo = self._memos.get(model)
        return memo.computed if memo else 0

    def _prepared(self, request: Request, *, stream: bool) -> HttpRequest:
        to = self._to(request.model)
        if request.tools and to.profile.tools == "text":
            raise Unsupported(say("providers.no_tools", model=f"{self.name}/{to.model}"))
        body = self._wire.body(request, self._rendered(request, to), to, stream=stream)
        return self._post(self._wire.path(to, stream=stream), body, to)

    def _omitting(self, request: Request, *, stream: bool) -> Omitting:
        from dragoman.providers.omitting import Omitting  # most services take what they are sent

        return Omitting(request, self._refused, lambda request: self._prepared(request, stream=stream).body)

    def _leave_out(self, error: BadRequest, omitting: Omitting | None, request: Request, *, stream: bool) -> Omitting:
        """What to send next, without what the error names; raises the error if it names nothing that can be left out."""
        if omitting is None:
            omitting = self._omitting(request, stream=stream)
            if omitting.news:  # another request has learned it in the meantime
                return omitting
        if not omitting.leave_out(error):
            raise error
        return omitting

    def _post(self, path: str, body: bytes, to: Destination) -> HttpRequest:
        headers = {
            "content-type": "application/json",
            "user-agent": user_agent(),
            **self._wire.headers(to),
            **self._deployment.headers,
        }
        return HttpRequest("POST", self._base_url + path, headers, body)

    def _to(self, model: str) -> Destination:
        return Destination(self._deployment, self.profile(model), model, self._blobs)

    def _rendered(self, request: Request, to: Destination) -> list[Any]:
        memo = self._memos.get(request.model)
        if memo is None:
            memo = self._memos.setdefault(request.model, PerMessage(lambda message: self._wire.render(message, to)))
        return memo.over(request.messages)

    # --- the calls of the contract

    async def generate(self, request: Request) -> Response:
        if _must_stream(request, self.profile(request.model)):
            return await last_response(self.stream(request))
        omitting = self._omitting(request, stream=False) if self._refused else None
        while True:
            try:
                response = await self._generate_once(omitting.request if omitting else request)
            except BadRequest as error:
                omitting = self._leave_out(error, omitting, request, stream=False)
            else:
                if omitting is not None:
                    omitting.keep()
                return response

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """A setting that the service refuses is left out, and told of by FieldOmitted before the answer begins."""
        omitting = self._omitting(request, stream=True) if self._refused else None
        is_answering = False
        while True:
            try:
                async with self._streaming(omitting.request if omitting else request) as events:
                    async for event in events:
                        if not is_answering:
                            is_answering = True
                            for omitted in self._report_omission(omitting):
                                yield omitted
                        yield event
                return
            except BadRequest as error:
                if is_answering:
                    raise
                omitting = self._leave_out(error, omitting, request, stream=True)
            except _AnswerInError as found:
                for event in events_of(found.response):
                    yield event
                return

    def _report_omission(self, omitting: Omitting | None) -> list[StreamEvent]:
        """The service has answered: what it refused is kept, and told if it is news."""
        if omitting is None:
            return []
        omitting.keep()
        return [FieldOmitted(self.name, omitting.request.model, field, reason) for field, reason in omitting.news.items()]

    async def _generate_once(self, request: Request) -> Response:
        to = self._to(request.model)
        try:
            data = await self._json(self._prepared(request, stream=False), _whole_answer_s(to.profile))
            return self._whole_answer(data, request, to)
        except _AnswerInError as found:
            return found.response
        except ProviderError as error:
            self._take_secrets_out(error)
            raise

    def _hiding(self, decoder: StreamDecoder) -> StreamDecoder:
        """The decoder of an answer that does not repeat our key."""
        if not (secrets := self._auth.secrets()):
            return decoder
        from dragoman.providers.repeated_keys import hiding_decoder  # an answer has come: nobody waits for a request any more

        return hiding_decoder(decoder, secrets)

    def _hide_keys(self, response: Response) -> Response:
        if not (secrets := self._auth.secrets()):
            return response
        from dragoman.providers.repeated_keys import hide_keys

        return hide_keys(response, secrets)

    @asynccontextmanager
    async def _streaming(self, request: Request) -> AsyncGenerator[AsyncGenerator[StreamEvent, None], None]:
        """The events of an answer. A context and not one more generator: every layer of those costs on every piece of text."""
        to = self._to(request.model)
        prepared = self._prepared(request, stream=True)
        timeout_s = to.profile.first_event_s if "stream" not in request.omit else _whole_answer_s(to.profile)
        async with self._open_response(prepared, timeout_s) as (answer, deadline):
            if answer.headers.get("content-type", "").startswith("application/json"):
                events = self._read_document(answer, request, to)
            else:
                decoder = self._hiding(self._wire.decoder(to, lambda: used_call_ids(request.messages)))
                events = decode_answer(answer, decoder, self._wire.framing(), to.profile, deadline)
            async with aclosing(events):
                try:
                    yield events
                except ProviderError as error:
                    if error.key == "providers.broke_off" and answer.headers.get("content-type", "").startswith("text/html"):
                        raise StreamBroken(say("providers.web_page"), provider=self.name, retryable=False) from error
                    error.provider = error.provider or self.name
                    self._take_secrets_out(error)
                    raise

    async def count_tokens(self, request: Request) -> int:
        to = self._to(request.model)
        path, body = self._wire.count_request(request, self._rendered(request, to), to)
        data = await self._json(self._post(path, body, to), to.profile.first_event_s)
        return self._read(self._wire.count_answer, data)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        model = model or self._deployment.embed_model
        if not model:
            self._wire.embed_request((), self._to(""))  # a protocol without embeddings says so: naming a model would not help
            raise Unsupported(say("providers.no_embed_model", deployment=self.name))
        to = self._to(model)
        batch = self._deployment.embed_batch or len(texts)
        vectors: list[list[float]] = []
        for start in range(0, len(texts), batch or 1):
            vectors += await self._embed_batch(texts[start : start + batch], to)
        return vectors

    async def _embed_batch(self, texts: Sequence[str], to: Destination) -> list[list[float]]:
        path, body = self._wire.embed_request(texts, to)
        return self._read(self._wire.embed_answer, await self._json(self._post(path, body, to), to.profile.first_event_s))

    async def preconnect(self) -> None:
        await self.transport.preconnect(self._base_url)

    async def aclose(self) -> None:
        await self.transport.aclose()

    # --- sending

    @asynccontextmanager
    async def _open_response(self, prepared: HttpRequest, timeout_s: float) -> AsyncGenerator[tuple[HttpResponse, float], None]:
        """An answer with status 200 and its deadline, or the error for its status.

        If this process has reached its limit of concurrent requests, it waits for its turn first; that wait does not count.
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

    async def _open(self, prepared: HttpRequest, deadline: float) -> tuple[AbstractAsyncContextManager[HttpResponse], HttpResponse]:
        """Send the request. A rejected credential is renewed once, if possible."""
        for attempt in (1, 2):
            credentials = await self._auth.headers(prepared)
            context = self.transport.send(prepared.method, prepared.url, _with_headers(prepared.headers, credentials), prepared.body)
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await context.__aenter__()
            except TimeoutError:
                raise self._timed_out("providers.no_answer_in_time") from None
            except ConnectionFailed as error:
                error.provider = error.provider or self.name
                raise
            if answer.status == 200:
                return context, answer
            try:
                body = await read_explanation(answer, deadline)
            except (TimeoutError, ProviderError):
                body = b""
            finally:
                await context.__aexit__(None, None, None)
            if (answered := _answer_in(body, answer.status, self._wire)) is not None:
                raise _AnswerInError(self._hide_keys(answered))
            from dragoman.providers.faults import error_from_status

            error = error_from_status(answer.status, answer.headers, body, self._deployment)
            if attempt == 1 and isinstance(error, Unauthorized) and await self._auth.refresh(credentials):
                continue
            self._take_secrets_out(error)
            raise error
        raise AssertionError("unreachable")

    async def _json(self, prepared: HttpRequest, timeout_s: float) -> Any:
        async with self._open_response(prepared, timeout_s) as (answer, deadline):
            try:
                body = await read_body(answer, deadline)
            except TimeoutError:
                raise self._timed_out("providers.no_whole_answer_in_time") from None
            except ConnectionFailed as error:
                raise StreamBroken(say("providers.cut_before_end"), provider=self.name) from error
        try:
            return jsontext.decode(body)
        except jsontext.NotJSON as error:
            raise StreamBroken(say("providers.answer_not_json", data=first_bytes(body)), provider=self.name) from error

    async def _read_document(self, answer: HttpResponse, request: Request, to: Destination) -> AsyncGenerator[StreamEvent, None]:
        """The events of an answer that came as one JSON document instead of a stream: an error with status 200, or the whole answer."""
        deadline = asyncio.get_running_loop().time() + to.profile.first_event_s
        try:
            body = await read_body(answer, deadline)
            data = jsontext.decode(body)
        except (TimeoutError, ConnectionFailed, jsontext.NotJSON) as error:
            raise StreamBroken(say("providers.neither_stream_nor_answer"), provider=self.name) from error
        response = self._whole_answer(data, request, to)
        for event in events_of(response):
            yield event

    def _whole_answer(self, data: Any, request: Request, to: Destination) -> Response:
        if isinstance(data, dict) and data.get("error"):
            raise service_error(data, to)
        return self._hide_keys(self._read(self._wire.from_wire, data, to, lambda: used_call_ids(request.messages)))

    def _read(self, reader: Callable[..., Any], *data: Any) -> Any:
        try:
            return reader(*data)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise StreamBroken(say("providers.answer_shape", reason=reason), provider=self.name) from error

    def _take_secrets_out(self, error: ProviderError) -> None:
        """Redact what the service said: some repeat the key in their error."""
        from dragoman.providers.redact import redact

        message = change_values(error.message, lambda text: redact(text, self._auth.secrets))
        redacted = redact(message, self._auth.secrets)
        error.message = message if redacted == message else redacted
        error.args = (error.message,)
        error.request_id, error.code, error.field = (
            redact(text, self._auth.secrets) for text in (error.request_id, error.code, error.field)
        )

    def _too_many(self) -> TimedOut:
        message = say("providers.too_many_requests", count=requests_under_way.inside, minutes=WAIT_FOR_OTHERS_S / 60)
        error = TimedOut(message, provider=self.name)
        error.may_have_cost = False  # it was never sent
        return error

    def _timed_out(self, key: str) -> TimedOut:
        return TimedOut(say(key, url=self._base_url), provider=self.name)


def _must_stream(request: Request, profile: Profile) -> bool:
    """Whether the answer may be longer than the service gives without streaming."""
    limit = profile.unstreamed_output_tokens
    return bool(limit) and not 0 < (request.settings.max_output_tokens or 0) <= limit


def _with_headers(headers: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Names are case-insensitive. A list of betas is added to ours, everything else replaces it."""
    merged = dict(headers)
    names = {name.lower(): name for name in headers}
    for name, value in more.items():
        known = names.get(name.lower(), name)
        merged[known] = f"{merged[known]},{value}" if known in merged and known.lower().endswith("-beta") else value
    return merged


def _whole_answer_s(profile: Profile) -> float:
    """How long an answer may take that comes in one piece."""
    return profile.first_event_s + profile.between_events_s


def _answer_in(body: bytes, status: int, wire: Wire) -> Response | None:
    """The answer in the body of an error, for protocols that have such (`answer_from_error`)."""
    read = getattr(wire, "answer_from_error", None)
    return read(status, body) if read is not None else None
