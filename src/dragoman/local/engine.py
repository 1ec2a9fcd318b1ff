"""A model that runs in this process: llama.cpp, in a thread of its own, loaded once for each file of weights.

The engine comes with `pip install 'dragoman[local]'` and is not touched before the first request. Requests and answers are those of Chat
Completions, as bytes. It takes one at a time, and the next waits.
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

log = logging.getLogger("dragoman")

ENGINE = "xllamacpp"
INSTALL = "pip install 'dragoman[local]'"
NOT_INSTALLED = f"the engine for local models is not installed: {INSTALL} (there is none for musl, as in Alpine Linux)"
THREADS_VARIABLE = "DRAGOMAN_LOCAL_THREADS"
BATCH_TOKENS = 32
"""Tokens of a prompt worked on between two moments at which a cancel is seen. More are hardly faster, and take seconds."""
TEMPERATURE = 0.2
"""Where the request names none. A small model sampled at the usual 0.8 loses its thread."""
NO_ORIGIN = "http://127.0.0.1"
"""Whose pages a browser lets read the engine's answers. Else any page could: the engine allows them all."""
MAX_CACHE_MIB = 512
GGUF = b"GGUF"
PROGRESS = b'"prompt_progress"'


class EngineSettings(msgspec.Struct, frozen=True):
    """How a model is loaded."""

    path: str
    context_window: int
    max_output_tokens: int
    threads: int = 1
    kept: str = ""
    """The folder for the beginnings of prompts (beginnings.py); nothing: none are kept."""

    @classmethod
    def of(cls, path: str, context_window: int, max_output_tokens: int, env: Mapping[str, str], kept: str = "") -> EngineSettings:
        """With as many threads as the environment says, or as there are cores to spare."""
        return cls(os.path.realpath(path), context_window, max_output_tokens, _threads(env) or free_cores(), kept)


class Engine:
    """One model. Everything it does happens in its own thread; what is returned are futures."""

    def __init__(self, settings: EngineSettings, make: Callable[[EngineSettings, str], Any] | None = None) -> None:
        self.settings = settings
        self._make = make or _make_server
        self._thread = ThreadPoolExecutor(1, "dragoman-local-model")
        self._key = os.urandom(16).hex()
        self._server: Any = None
        self._has_begun = False
        self.places = Turnstile(1)
        """Whose turn it is, over all event loops and threads."""

    def load(self) -> Future[None]:
        return self._thread.submit(self._load)

    def ask(self, body: bytes, tell: Callable[[bytes], None], stop: threading.Event, alike: int = 0) -> Future[None]:
        """Answer a streaming request: `tell` is called with each chunk, in the engine's thread. Set `stop` to end it.

        `alike`: how many messages after the instructions are the same in every conversation.
        """
        return self._thread.submit(self._ask, body, tell, stop, alike)

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Something the engine answers over its own loopback port alone, as counting tokens. Blocks; the model must be loaded."""
        from http.client import HTTPConnection, HTTPException

        host = self._server.listening_address.removeprefix("http://")
        connection = HTTPConnection(host, timeout=30)
        try:
            connection.request("POST", path, body, {"content-type": "application/json", "authorization": f"Bearer {self._key}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise ServerError(f"the engine does not answer: {error}") from error
        finally:
            connection.close()

    def _load(self) -> None:
        if self._server is None:
            check_weights(self.settings.path)
            self._server = self._make(self.settings, self._key)

    def _ask(self, body: bytes, tell: Callable[[bytes], None], stop: threading.Event, alike: int) -> None:
        raised: list[BaseException] = []

        def told(chunk: bytes) -> bool:
            if not stop.is_set():
                try:
                    tell(chunk)
                except BaseException as error:  # the engine would swallow it
                    raised.append(error)
                    return True
            return stop.is_set()  # True ends the answer

        if stop.is_set():
            return
        self._load()
        if not self._has_begun:
            self._has_begun = True
            self._begin(body, alike, tell, stop)
        if not stop.is_set():
            try:
                self._server.handle_chat_completions(body, told)
            except Exception as error:
                raise ProviderError(f"the engine failed: {error or type(error).__name__}") from error
        if raised:
            raise raised[0]

    def _begin(self, body: bytes, alike: int, tell: Callable[[bytes], None], stop: threading.Event) -> None:
        """The first request of this process finds its beginning read, where an earlier process has."""
        if not self.settings.kept:
            return
        from dragoman.local.beginnings import Beginnings

        def told(chunk: bytes) -> bool:
            if PROGRESS in chunk and not stop.is_set():
                tell(chunk)
            return stop.is_set()

        def read(prompt: bytes) -> bool:
            self._server.handle_chat_completions(prompt, told)
            return not stop.is_set()

        try:
            made = os.stat(self.settings.path)
            make_directory(self.settings.kept)
            identity = (self.settings.path, made.st_size, made.st_mtime_ns, self.settings.context_window, _engine_version())
            Beginnings(self.settings.kept, identity, self.post, read).recall(body, alike)
        except Exception as error:  # the request will tell what is wrong
            log.debug("the beginning of the prompt was not kept: %s", error)


_engines: dict[str, Engine] = {}
_lock = threading.Lock()


def engine_for(settings: EngineSettings) -> Engine:
    """The one engine of this process for these weights, set as whoever came first wanted it."""
    with _lock:
        if settings.path not in _engines:
            _engines[settings.path] = Engine(settings)
        return _engines[settings.path]


def check_weights(path: str) -> None:
    """Raises InputError where this is no file of weights: the engine would only say that it could not load."""
    try:
        with open(path, "rb") as file:
            magic = file.read(len(GGUF))
    except OSError as error:
        raise InputError(f"the weights at {path} cannot be read: {error.strerror or error}") from error
    if magic != GGUF:
        raise InputError(f"{path} is not a GGUF file: name one that is, as local//path/to/model.gguf")


def free_cores() -> int:
    """Cores this process may use and nobody is using. Threads beyond those wait for each other: ten times slower, not faster."""
    may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        busy = round(os.getloadavg()[0])
    except (AttributeError, OSError):
        busy = 0
    return max(1, min(may_use - busy, 8))


def serve_on(settings: EngineSettings, host: str, port: int, name: str) -> Any:
    """The model behind the engine's own HTTP server, listed by that name, for whoever asks; it ends with the process."""
    engine = import_engine()
    params = _params(engine, settings)
    params.hostnames, params.port = [host], port
    params.model_alias = {name}
    return _loaded(engine, params)


def _make_server(settings: EngineSettings, key: str) -> Any:
    engine = import_engine()
    params = _params(engine, settings)
    params.api_keys = [key]  # its port on loopback is open to everyone on this machine
    if settings.kept:
        params.slot_save_path = os.path.join(settings.kept, "")
    return _loaded(engine, params)


def _loaded(engine: Any, params: Any) -> Any:
    try:
        return engine.Server(params)
    except Exception as error:
        raise ProviderError(f"the model at {params.model.path} could not be loaded: {error or type(error).__name__}") from error


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


def unusable() -> str:
    """Why the engine cannot run here, and what to do, as far as can be told without loading it; or nothing."""
    if missing := missing_instructions():
        return (
            f"the local engine needs a processor with {missing}, and this one has none; "
            "use a server that runs elsewhere (ollama/, llamacpp/), or a hosted model"
        )
    from importlib.util import find_spec

    return "" if ENGINE in sys.modules or find_spec(ENGINE) is not None else NOT_INSTALLED


def import_engine() -> Any:
    """The engine's module. Raises Unsupported, saying what to do, where it is not there or cannot run."""
    if reason := unusable():
        raise Unsupported(reason)
    # Threads that spin while they wait take the cores from those that work. Read once, when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return import_module(ENGINE)
    except ImportError as error:
        raise Unsupported(f"the engine for local models cannot be loaded ({error}): try {INSTALL} --force-reinstall") from error


def _engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(ENGINE)
    except PackageNotFoundError:
        return ""


def missing_instructions(cpuinfo: str = "/proc/cpuinfo") -> str:
    """What the engine needs and the processor lacks, where that can be told: without it the process would be killed, not told."""
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
    raise InputError(f"{THREADS_VARIABLE} must be a whole number from 1, and is {text!r}")
