"""The model in this process as a provider: Chat Completions, with an engine where others have a network.

A name is looked up among the weights that were pulled; a path to a GGUF file is used as it is (`local//path/to/model.gguf`), and
DRAGOMAN_LOCAL_MODEL names a file that goes before all others.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from dragoman.base import jsontext
from dragoman.base.turnstile import Turnstile
from dragoman.local.engine import Engine, EngineSettings, engine_for
from dragoman.providers import openai_chat
from dragoman.providers.answer import last_response
from dragoman.providers.catalog import profile_for
from dragoman.providers.http_provider import HttpProvider
from dragoman.values.contracts import Answer, BlobStore, Prepared
from dragoman.values.errors import InputError, ServerError, StreamBroken, Unsupported
from dragoman.values.messages import Request, Response
from dragoman.values.profile import Deployment

FILE_VARIABLE = "DRAGOMAN_LOCAL_MODEL"
ALIKE = "x-alike-messages"
"""For the engine's transport alone: nothing leaves this process."""
CHAT, COUNT = "/chat/completions", "/chat/completions/input_tokens"

Find = Callable[[str], str | os.PathLike[str] | None]
"""From a model's name to its weights on this machine, or None."""


class LocalProvider(HttpProvider):
    """Implements contracts.Provider. Nothing is loaded before the first request, or the hint that one will follow."""

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
        """`kept` names the folder where the beginnings of prompts are kept for the next process."""
        profile = profile_for(deployment, model)

        def engine() -> Engine:
            path = weights_of(model, env, find)
            return engine_for(EngineSettings.of(path, profile.context_window, profile.max_output_tokens, env, kept() if kept else ""))

        super().__init__(deployment, openai_chat, EngineTransport(engine), blobs=blobs)
        self._engine = engine

    def _places(self) -> Turnstile:
        """The engine answers one at a time: the time a request waits for another's answer is not counted as its own."""
        return self._engine().places

    def _prepared(self, request: Request, *, stream: bool) -> Prepared:
        """Also says how much of it is the same in every conversation, which the engine keeps."""
        asked = super()._prepared(request, stream=stream)
        return msgspec.structs.replace(asked, headers={**asked.headers, ALIKE: str(request.shown)}) if request.shown else asked

    async def generate(self, request: Request) -> Response:
        """By way of the stream: an answer that is not streamed cannot be stopped."""
        return await last_response(self.stream(request))

    async def count_tokens(self, request: Request) -> int:
        """As the model itself counts, chat template and all."""
        asked = self.prepare(request)
        counted = Prepared(asked.method, asked.url.removesuffix(CHAT) + COUNT, asked.headers, asked.body)
        match await self._json(counted, self.profile(request.model).first_event_s):
            case {"input_tokens": int(tokens)}:
                return tokens
            case other:
                raise StreamBroken(f"the engine counted no tokens: {jsontext.dumps(other)[:200]}", provider=self.name)


def weights_of(model: str, env: Mapping[str, str], find: Find | None = None) -> str:
    """Where a model's weights lie. Raises InputError, saying how to get them, where there are none."""
    if named := env.get(FILE_VARIABLE, "").strip():
        return os.path.expanduser(named)
    if os.sep in model or model.endswith(".gguf"):
        return os.path.expanduser(model)
    found = find(model) if find is not None else None
    if found is None:
        raise InputError(
            f"the weights of {model} are not on this machine: dragoman models pull {model}, or name a file, as local//path/to/model.gguf"
        )
    return os.fspath(found)


class EngineTransport:
    """Implements contracts.Transport for one engine. Leaving an answer early stops the engine, within a few dozen tokens of its prompt or
    one of its answer; whoever leaves does not wait for it."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AbstractAsyncContextManager[Answer]:
        if url.endswith(COUNT):
            return self._posted("/v1" + COUNT, body)
        if url.endswith(CHAT):
            return self._asked(body, int(headers.get(ALIKE, 0)))
        raise Unsupported("the local engine answers and counts, and does nothing else")

    async def preconnect(self, url: str) -> None:
        """Begin to load the model. What is wrong with it is told to the request."""
        try:
            self._engine().load().add_done_callback(_seen)
        except Exception:
            pass

    async def aclose(self) -> None:
        """The model stays for whoever asks next: loading it takes seconds."""

    @asynccontextmanager
    async def _asked(self, body: bytes, alike: int) -> AsyncIterator[Answer]:
        loop, told, stop = asyncio.get_running_loop(), asyncio.Queue[bytes | None](), threading.Event()

        def tell(chunk: bytes | None) -> None:
            try:
                loop.call_soon_threadsafe(told.put_nowait, chunk)
            except RuntimeError:  # the loop is closed: nobody is there to be told any more
                stop.set()

        done = self._engine().ask(body, tell, stop, alike)
        done.add_done_callback(lambda _: tell(None))
        try:
            first = await told.get()
            if first is None:
                done.result()
                raise ServerError("the engine gave no answer")
            fault = _fault(first)
            yield _Whole(fault, first) if fault else _Streamed(first, told, done)
        finally:
            stop.set()
            done.cancel()
            done.add_done_callback(_seen)

    @asynccontextmanager
    async def _posted(self, path: str, body: bytes) -> AsyncIterator[Answer]:
        engine = self._engine()
        await asyncio.wrap_future(engine.load())
        yield _Whole(*await asyncio.to_thread(engine.post, path, body))


class _Whole:
    """An answer that is there."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": "application/json"}
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body


class _Streamed:
    """An answer that is coming, as server-sent events."""

    status = 200

    def __init__(self, first: bytes, told: asyncio.Queue[bytes | None], done: Future[None]) -> None:
        self.headers: Mapping[str, str] = {"content-type": "text/event-stream"}
        self._first = first
        self._told = told
        self._done = done

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        chunk: bytes | None = self._first
        while chunk is not None:
            yield b"data: " + chunk + b"\n\n"
            chunk = await self._told.get()
        self._done.result()
        yield b"data: [DONE]\n\n"


def _fault(chunk: bytes) -> int:
    """The status of an answer that is an error, or 0."""
    match jsontext.decode_object(chunk.decode(errors="replace")):
        case {"error": {"code": int(code)}}:
            return code
        case {"error": _}:
            return 500
        case _:
            return 0


def _seen(done: Future[None]) -> None:
    """Look at a failure that nobody waits for."""
    if not done.cancelled():
        done.exception()
