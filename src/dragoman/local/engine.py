"""A model that runs in this process: llama.cpp in its own thread, loaded once per weights file.

The engine comes with the extra `local` and is not imported before the first request. Requests and answers are Chat
Completions, as bytes. It handles one request at a time; others wait.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

import msgspec

from dragoman.base.private import make_directory
from dragoman.base.turnstile import Turnstile
from dragoman.values.errors import InputError, ProviderError, ServerError, Unsupported
from dragoman.words import say

log = logging.getLogger("dragoman.local")

ENGINE = "xllamacpp"
THREADS_VARIABLE = "DRAGOMAN_LOCAL_THREADS"
BATCH_TOKENS = 32
"""Prompt tokens processed between two checks for cancellation. Larger batches are hardly faster, and delay a cancel by seconds."""
TEMPERATURE = 0.2
"""Default if the request sets none. At the usual 0.8 a small model loses its thread."""
NO_ORIGIN = "http://127.0.0.1"
"""The only CORS origin that may read the engine's answers. By default the engine allows any page."""
MAX_CACHE_MIB = 512
GGUF = b"GGUF"
PROGRESS = b'"prompt_progress"'


class EngineSettings(msgspec.Struct, frozen=True):
    """How a model is loaded."""

    path: str
    context_window: int
    max_output_tokens: int
    threads: int = 1
    cache_folder: str = ""
    """Folder of the prompt cache (prompt_cache.py); empty: no cache."""

    @classmethod
    def of(cls, path: str, context_window: int, max_output_tokens: int, env: Mapping[str, str], cache_folder: str = "") -> EngineSettings:
        """Settings with the number of threads from the environment, or else one per free core."""
        return cls(os.path.realpath(path), context_window, max_output_tokens, _threads(env) or free_cores(), cache_folder)


class Engine:
    """One model. All work happens in its own thread; methods return futures."""

    def __init__(self, settings: EngineSettings, make: Callable[[EngineSettings, str], Any] | None = None) -> None:
        self.settings = settings
        self._make = make or _make_server
        self._thread = ThreadPoolExecutor(1, "dragoman-local-model")
        self._key = os.urandom(16).hex()
        self._server: Any = None
        self._is_prompt_prepared = False
        self.places = Turnstile(1)
        """One request at a time, across all event loops and threads."""

    def load(self) -> Future[None]:
        return self._thread.submit(self._load)

    def ask(self, body: bytes, on_chunk: Callable[[bytes], None], stop: threading.Event, example_count: int = 0) -> Future[None]:
        """Answer a streaming request: `on_chunk` is called with each chunk, in the engine's thread. Set `stop` to end it.

        `example_count`: how many messages after the instructions are the same in every conversation.
        """
        return self._thread.submit(self._ask, body, on_chunk, stop, example_count)

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Requests that the engine only answers on its loopback port, such as counting tokens. Blocks; the model must be loaded."""
        from http.client import HTTPConnection, HTTPException

        host = self._server.listening_address.removeprefix("http://")
        connection = HTTPConnection(host, timeout=30)
        try:
            connection.request("POST", path, body, {"content-type": "application/json", "authorization": f"Bearer {self._key}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise ServerError(say("local.engine_silent", reason=error)) from error
        finally:
            connection.close()

    def _load(self) -> None:
        if self._server is None:
            check_weights(self.settings.path)
            self._server = self._make(self.settings, self._key)

    def _ask(self, body: bytes, on_chunk: Callable[[bytes], None], stop: threading.Event, example_count: int) -> None:
        raised: list[BaseException] = []

        def forward(chunk: bytes) -> bool:
            if not stop.is_set():
                try:
                    on_chunk(chunk)
                except BaseException as error:  # the engine would swallow it
                    raised.append(error)
                    return True
            return stop.is_set()  # True ends the answer

        if stop.is_set():
            return
        self._load()
        if not self._is_prompt_prepared:
            self._is_prompt_prepared = True
            self._prepare_prompt(body, example_count, on_chunk, stop)
        if not stop.is_set():
            try:
                self._server.handle_chat_completions(body, forward)
            except Exception as error:
                raise ProviderError(say("local.engine_failed", reason=str(error) or type(error).__name__)) from error
        if raised:
            raise raised[0]

    def _prepare_prompt(self, body: bytes, example_count: int, on_chunk: Callable[[bytes], None], stop: threading.Event) -> None:
        """Restore the prompt prefix from the cache before the first request of this process."""
        if not self.settings.cache_folder:
            return
        from dragoman.local.prompt_cache import PromptCache

        def forward(chunk: bytes) -> bool:
            if PROGRESS in chunk and not stop.is_set():
                on_chunk(chunk)
            return stop.is_set()

        def read(prompt: bytes) -> bool:
            self._server.handle_chat_completions(prompt, forward)
            return not stop.is_set()

        try:
            made = os.stat(self.settings.path)
            make_directory(self.settings.cache_folder)
            identity = (self.settings.path, made.st_size, made.st_mtime_ns, self.settings.context_window, _engine_version())
            PromptCache(self.settings.cache_folder, identity, self.post, read).prepare(body, example_count)
        except Exception as error:  # the request will report what is wrong
            log.debug("the beginning of the prompt was not kept: %s", error)


_engines: dict[str, Engine] = {}
_lock = threading.Lock()


def engine_for(settings: EngineSettings) -> Engine:
    """The engine of this process for these weights, created once; later settings are ignored."""
    with _lock:
        if settings.path not in _engines:
            _engines[settings.path] = Engine(settings)
        return _engines[settings.path]


def check_weights(path: str) -> None:
    """Raises InputError if this is not a weights file: the engine would only report that loading failed."""
    try:
        with open(path, "rb") as file:
            magic = file.read(len(GGUF))
    except OSError as error:
        raise InputError(say("local.weights_unreadable", path=path, reason=error.strerror or error)) from error
    if magic != GGUF:
        raise InputError(say("local.not_gguf", path=path))


def free_cores() -> int:
    """Idle cores this process may use. More threads than that wait for each other: ten times slower, not faster."""
    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        busy = round(os.getloadavg()[0])
    except (AttributeError, OSError):
        busy = 0
    return max(1, min(may_use - busy, 8))


def serve_on(settings: EngineSettings, host: str, port: int, name: str) -> Any:
    """Serve the model on the engine's own HTTP server under that name; it ends with the process."""
    engine = import_engine()
    params = _params(engine, settings)
    params.hostnames, params.port = [host], port
    params.model_alias = {name}
    return _start_server(engine, params)


def _make_server(settings: EngineSettings, key: str) -> Any:
    engine = import_engine()
    params = _params(engine, settings)
    params.api_keys = [key]  # its port on loopback is open to everyone on this machine
    if settings.cache_folder:
        params.slot_save_path = os.path.join(settings.cache_folder, "")
    return _start_server(engine, params)


def _start_server(engine: Any, params: Any) -> Any:
    try:
        return engine.Server(params)
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ProviderError(say("local.model_not_loaded", path=params.model.path, reason=reason)) from error


def _params(engine: Any, settings: EngineSettings) -> Any:
    params = engine.CommonParams()
    params.model.path = settings.path
    params.n_ctx = settings.context_window
    params.n_predict = settings.max_output_tokens
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.cache_ram_mib = MAX_CACHE_MIB
    params.warmup = False
    params.verbosity = -1
    params.ui = False
    params.cors_origins = NO_ORIGIN
    params.sampling.temp = TEMPERATURE
    return params


def unusable_reason() -> str:
    """Why the engine cannot run here and what to do about it, as far as known without loading it; empty if nothing is wrong."""
    if missing := missing_instructions():
        return say("local.processor", missing=missing)
    from importlib.util import find_spec

    if ENGINE in sys.modules or find_spec(ENGINE) is not None:
        return ""
    from dragoman.base.installed import command_to_add

    return say("local.engine_not_installed", command=command_to_add("local"))


def import_engine() -> Any:
    """The engine's module. Raises Unsupported, with advice, if it is not installed or cannot run."""
    if reason := unusable_reason():
        raise Unsupported(reason)
    # Spinning threads take cores from working ones. The variable is read once, when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return import_module(ENGINE)
    except ImportError as error:
        raise Unsupported(say("local.engine_not_loaded", reason=error)) from error


def _engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(ENGINE)
    except PackageNotFoundError:
        return ""


def missing_instructions(cpuinfo: str = "/proc/cpuinfo") -> str:
    """CPU instructions the engine needs and the processor lacks, if known: the process would be killed without a message."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return ""
    try:
        with open(cpuinfo, encoding="utf-8", errors="replace") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return ""
    return "AVX2" if flags and "avx2" not in flags.split() else ""


def _threads(env: Mapping[str, str]) -> int:
    text = env.get(THREADS_VARIABLE, "").strip()
    if not text or (text.isdecimal() and int(text) > 0):
        return int(text or 0)
    raise InputError(say("local.threads", variable=THREADS_VARIABLE, value=text))
