"""Provider for a model in this process: Chat Completions with the engine as transport instead of the network.

A name is looked up among the pulled weights; a path to a GGUF file is used directly (`local//path/to/model.gguf`), and
DRAGOMAN_LOCAL_MODEL names a file that overrides both.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from dragoman.base import jsontext
from dragoman.base.places import find_places
from dragoman.base.turnstile import Turnstile
from dragoman.local.engine import Engine, EngineSettings, engine_for
from dragoman.providers import openai_chat
from dragoman.providers.catalog import profile_for
from dragoman.providers.http_provider import HttpProvider
from dragoman.values.contracts import BlobStore, HttpRequest, HttpResponse, Provider
from dragoman.values.errors import InputError, ServerError, StreamBroken, Unsupported
from dragoman.values.messages import Request, Response
from dragoman.values.profile import Deployment
from dragoman.words import say

FILE_VARIABLE = "DRAGOMAN_LOCAL_MODEL"
EXAMPLES_HEADER = "x-alike-messages"
"""A header for the engine's transport only: it never leaves this process."""
CHAT, COUNT = "/chat/completions", "/chat/completions/input_tokens"

Find = Callable[[str], str | os.PathLike[str] | None]
"""From a model's name to its weights on this machine, or None."""


class LocalProvider(HttpProvider):
    """Implements contracts.Provider. Nothing is loaded before the first request or `preconnect`."""

    def __init__(
        self,
        deployment: Deployment,
        model: str,
        env: Mapping[str, str],
        *,
        find: Find | None = None,
        blobs: BlobStore | None = None,
        kept: Callable[[], str] | None = None,
    ) -> None:
        """`find` and `kept` (the folder of the prompt cache) are by default those of the user's own files."""
        profile = profile_for(deployment, model)

        def engine() -> Engine:
            path = weights_of(model, env, find)
            return engine_for(
                EngineSettings.of(path, profile.context_window, profile.max_output_tokens, env, kept() if kept else find_places().prompts)
            )

        super().__init__(deployment, openai_chat, EngineTransport(engine), blobs=blobs)
        self._engine = engine

    def _places(self) -> Turnstile:
        """The engine handles one request at a time: waiting for another request does not count towards a timeout."""
        return self._engine().places

    def _prepared(self, request: Request, *, stream: bool) -> HttpRequest:
        """Adds a header with the number of few-shot messages, which the engine caches."""
        prepared = super()._prepared(request, stream=stream)
        if not request.example_count:
            return prepared
        return msgspec.structs.replace(prepared, headers={**prepared.headers, EXAMPLES_HEADER: str(request.example_count)})

    async def generate(self, request: Request) -> Response:
        """Uses the stream: an answer that is not streamed cannot be cancelled."""
        return await Provider.generate(self, request)

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        raise Unsupported(say("values.no_embeddings", name=self.name))

    async def count_tokens(self, request: Request) -> int:
        """Counted by the model's own tokenizer, including the chat template."""
        prepared = self.prepare(request)
        count_request = HttpRequest(prepared.method, prepared.url.removesuffix(CHAT) + COUNT, prepared.headers, prepared.body)
        match await self._json(count_request, self.profile(request.model).first_event_s):
            case {"input_tokens": int(tokens)}:
                return tokens
            case other:
                raise StreamBroken(say("local.engine_no_count", answer=jsontext.dumps(other)[:200]), provider=self.name)


def weights_of(model: str, env: Mapping[str, str], find: Find | None = None) -> str:
    """The path of a model's weights. Raises InputError, with how to get them, if there are none."""
    if named := env.get(FILE_VARIABLE, "").strip():
        return os.path.expanduser(named)
    if os.sep in model or model.endswith(".gguf"):
        return os.path.expanduser(model)
    if find is None:
        from dragoman.local.weights import find
    found = find(model)
    if found is None:
        raise InputError(say("local.no_weights", model=model))
    return os.fspath(found)


class EngineTransport:
    """Implements contracts.Transport for one engine. Leaving a response early stops the engine within a few dozen prompt tokens or one
    answer token; the caller does not wait for that."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AbstractAsyncContextManager[HttpResponse]:
        if url.endswith(COUNT):
            return self._post("/v1" + COUNT, body)
        if url.endswith(CHAT):
            return self._stream_chat(body, int(headers.get(EXAMPLES_HEADER, 0)))
        raise Unsupported(say("local.engine_only_chat"))

    async def preconnect(self, url: str) -> None:
        """Start loading the model. The request reports any failure."""
        try:
            self._engine().load().add_done_callback(_ignore_failure)
        except Exception:
            pass

    async def aclose(self) -> None:
        """The model stays loaded for the next request: loading takes seconds."""

    @asynccontextmanager
    async def _stream_chat(self, body: bytes, example_count: int) -> AsyncIterator[HttpResponse]:
        loop, chunks_queue, stop = asyncio.get_running_loop(), asyncio.Queue[bytes | None](), threading.Event()

        def enqueue(chunk: bytes | None) -> None:
            try:
                loop.call_soon_threadsafe(chunks_queue.put_nowait, chunk)
            except RuntimeError:  # the loop is closed: no one is reading
                stop.set()

        done = self._engine().ask(body, enqueue, stop, example_count)
        done.add_done_callback(lambda _: enqueue(None))
        try:
            first = await chunks_queue.get()
            if first is None:
                done.result()
                raise ServerError(say("local.engine_no_answer"))
            fault = _error_status(first)
            yield _CompleteResponse(fault, first) if fault else _StreamedResponse(first, chunks_queue, done)
        finally:
            stop.set()
            done.cancel()
            done.add_done_callback(_ignore_failure)

    @asynccontextmanager
    async def _post(self, path: str, body: bytes) -> AsyncIterator[HttpResponse]:
        engine = self._engine()
        await asyncio.wrap_future(engine.load())
        yield _CompleteResponse(*await asyncio.to_thread(engine.post, path, body))


class _CompleteResponse:
    """A complete HTTP response."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": "application/json"}
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body


class _StreamedResponse:
    """A response streamed as server-sent events."""

    status = 200

    def __init__(self, first: bytes, chunks_queue: asyncio.Queue[bytes | None], done: Future[None]) -> None:
        self.headers: Mapping[str, str] = {"content-type": "text/event-stream"}
        self._first = first
        self._queue = chunks_queue
        self._done = done

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        chunk: bytes | None = self._first
        while chunk is not None:
            yield b"data: " + chunk + b"\n\n"
            chunk = await self._queue.get()
        self._done.result()


def _error_status(chunk: bytes) -> int:
    """The HTTP status of a chunk that is an error, or 0."""
    match jsontext.decode_object(chunk.decode(errors="replace")):
        case {"error": {"code": int(code)}}:
            return code
        case {"error": _}:
            return 500
        case _:
            return 0


def _ignore_failure(done: Future[None]) -> None:
    """Retrieve the exception of a future that no one awaits, so that it is not logged."""
    if not done.cancelled():
        done.exception()
