"""The model in this process, with an engine that is played: what is sent to it, what becomes of its answers, and how it is stopped."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import aclosing
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.local import engine as local_engine
from dragoman.local.engine import Engine, EngineSettings, check_weights, free_cores, import_engine, missing_instructions
from dragoman.local.provider import FILE_VARIABLE, LocalProvider, weights_of
from dragoman.local.weights import MODELS, weights_folder
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import connect
from dragoman.values import errors
from dragoman.values.events import PromptRead, ResponseFinished, TextDelta
from dragoman.values.messages import FinishReason, Request, Settings, user

Tell = Callable[[bytes], bool]
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}


def chunk(text: str | None = None, finish: str | None = None) -> bytes:
    return json.dumps({"id": "one", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}).encode()


def says(*texts: str) -> Callable[[bytes, Tell], None]:
    """An engine that answers so."""

    def play(body: bytes, tell: Tell) -> None:
        pieces = [*map(chunk, texts), chunk(finish="stop"), json.dumps({"id": "one", "choices": [], "usage": USAGE}).encode()]
        any(tell(piece) for piece in pieces)

    return play


class Played:
    """Stands where the engine's own server would."""

    def __init__(self, play: Callable[[bytes, Tell], None]) -> None:
        self._play = play
        self.bodies: list[dict[str, Any]] = []
        self.threads: set[str] = set()

    def handle_chat_completions(self, body: bytes, tell: Tell) -> None:
        self.bodies.append(json.loads(body))
        self.threads.add(threading.current_thread().name)
        self._play(body, tell)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF and so on")
    return path


@pytest.fixture
def play(weights: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[LocalProvider, Played, list[EngineSettings]]]:
    """A provider whose engine is played, and how often it was loaded."""

    def start(play: Callable[[bytes, Tell], None]) -> tuple[LocalProvider, Played, list[EngineSettings]]:
        monkeypatch.setattr(local_engine, "_engines", {})
        played, loaded = Played(play), list[EngineSettings]()

        def make(settings: EngineSettings, key: str) -> Played:
            loaded.append(settings)
            return played

        monkeypatch.setattr(local_engine, "_make_server", make)
        return LocalProvider(builtin_catalog()["local"], str(weights), {}), played, loaded

    return start


def request(**settings: Any) -> Request:
    return Request("a-model", (user("hello"),), settings=Settings(**settings))


async def texts_of(provider: LocalProvider) -> list[str]:
    async with aclosing(provider.stream(request())) as events:
        return [event.text async for event in events if isinstance(event, TextDelta)]


def test_an_answer_streams_as_it_comes_and_says_what_it_took(play: Any) -> None:
    provider, _, _ = play(says("Hel", "lo"))
    assert asyncio.run(texts_of(provider)) == ["Hel", "lo"]
    answer = asyncio.run(provider.generate(request()))
    assert (answer.message.text, answer.finish) == ("Hello", FinishReason.STOP)
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens, answer.usage.output_tokens) == (7, 3, 2)


def test_how_far_it_is_with_the_prompt_is_told(play: Any) -> None:
    def reads(body: bytes, tell: Tell) -> None:
        for done in (0, 32, 40):
            told = {"id": "one", "choices": [], "prompt_progress": {"total": 40, "cache": 0, "processed": done, "time_ms": 1}}
            tell(json.dumps(told).encode())
        says("Hello")(body, tell)

    provider, _, _ = play(reads)

    async def progress() -> list[tuple[int, int]]:
        async with aclosing(provider.stream(request())) as events:
            return [(event.done_tokens, event.total_tokens) async for event in events if isinstance(event, PromptRead)]

    assert asyncio.run(progress()) == [(0, 40), (32, 40), (40, 40)]


def test_the_model_is_loaded_once_for_all_providers_of_a_process(play: Any, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cores = cycle((2, 1, 2))  # the machine is busy now and then
    monkeypatch.setattr(local_engine, "free_cores", lambda: next(cores))
    provider, played, loaded = play(says("x"))
    other = LocalProvider(builtin_catalog()["local"], str(weights), {})
    for each in (provider, other, provider):
        asyncio.run(each.generate(request()))
    assert len(loaded) == 1
    assert len(played.threads) == 1, "the engine has a thread of its own"
    assert threading.current_thread().name not in played.threads


def test_the_time_a_request_waits_for_anothers_answer_is_not_its_own(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def thinks(body: bytes, tell: Tell) -> None:
        time.sleep(0.2)
        says("x")(body, tell)

    async def ask_side_by_side() -> list[list[str]]:
        return await asyncio.gather(*(texts_of(provider) for _ in range(5)))

    provider, _, _ = play(thinks)
    patient = builtin_catalog()["local"].profile
    monkeypatch.setattr(provider, "profile", lambda model: msgspec.structs.replace(patient, first_event_s=0.5))
    assert asyncio.run(ask_side_by_side()) == [["x"]] * 5


def test_nothing_is_loaded_before_the_first_request_or_its_announcement(play: Any, weights: Path) -> None:
    provider, _, loaded = play(says("x"))
    provider.prepare(request())
    assert not loaded

    asyncio.run(provider.preconnect())
    local_engine.engine_for(EngineSettings(str(weights), 10, 10)).load().result(60)
    assert len(loaded) == 1


def test_a_schema_is_given_to_the_engine(play: Any) -> None:
    provider, played, _ = play(says("{}"))
    asyncio.run(provider.generate(request(response_mime="application/json", response_schema='{"type":"object","properties":{}}')))
    assert played.bodies[0]["response_format"]["json_schema"]["schema"]["type"] == "object"
    assert played.bodies[0]["return_progress"] is True, "a cancel is seen only between two pieces of news"


def test_leaving_an_answer_stops_the_engine(play: Any) -> None:
    ended = threading.Event()

    def endless(body: bytes, tell: Tell) -> None:
        while not tell(chunk("on and ")):
            time.sleep(0.001)
        ended.set()

    provider, _, _ = play(endless)

    async def leave() -> None:
        async with aclosing(provider.stream(request())) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        assert await asyncio.to_thread(ended.wait, 60)

    asyncio.run(leave())


def test_a_cancel_does_not_wait_for_an_engine_that_is_busy(play: Any) -> None:
    """The engine looks up only between two batches of a prompt; whoever cancels is free at once, and the next request is answered."""
    busy, go_on = threading.Event(), threading.Event()

    def reads_a_long_prompt(body: bytes, tell: Tell) -> None:
        if not busy.is_set():
            busy.set()
            go_on.wait(300)
            assert tell(chunk("late")), "it is told to stop as soon as it looks up"
            return
        says("next")(body, tell)

    provider, _, _ = play(reads_a_long_prompt)

    async def cancel() -> list[str]:
        task = asyncio.create_task(provider.generate(request()))
        await asyncio.to_thread(busy.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not go_on.is_set()
        waiting = asyncio.create_task(provider.generate(request()))
        await asyncio.sleep(0)
        waiting.cancel()  # while it waits for its turn
        go_on.set()
        return await texts_of(provider)

    assert asyncio.run(asyncio.wait_for(cancel(), 60)) == ["next"]


def test_a_prompt_that_is_too_long_is_told_with_the_real_numbers(play: Any) -> None:
    said = "request (2031 tokens) exceeds the available context size (1024 tokens), try increasing it"
    fault = {"error": {"code": 400, "message": said, "type": "exceed_context_size_error", "n_prompt_tokens": 2031, "n_ctx": 1024}}
    provider, _, _ = play(lambda body, tell: tell(json.dumps(fault).encode()))
    with pytest.raises(errors.ContextOverflow, match=r"2031 tokens.*1024 tokens"):
        asyncio.run(provider.generate(request()))


def test_an_engine_that_stops_without_an_end_is_no_answer(play: Any) -> None:
    provider, _, _ = play(lambda body, tell: tell(chunk("half an ans")))
    with pytest.raises(errors.StreamBroken):
        asyncio.run(provider.generate(request()))


def test_an_engine_that_says_nothing_or_fails_is_an_error(play: Any) -> None:
    provider, _, _ = play(lambda body, tell: None)
    with pytest.raises(errors.ServerError):
        asyncio.run(provider.generate(request()))

    def fails(body: bytes, tell: Tell) -> None:
        raise RuntimeError("out of memory")

    provider, _, _ = play(fails)
    with pytest.raises(errors.ProviderError, match="out of memory"):
        asyncio.run(provider.generate(request()))


def test_an_error_while_telling_is_not_swallowed(weights: Path) -> None:
    """The engine swallows what its callback raises."""

    class Swallows(Played):
        def handle_chat_completions(self, body: bytes, tell: Tell) -> None:
            assert tell(b"{}"), "and the answer ends there"

    def tell(piece: bytes) -> None:
        raise ValueError("nobody can read this")

    engine = Engine(EngineSettings(str(weights), 10, 10), lambda settings, key: Swallows(says()))
    with pytest.raises(ValueError, match="nobody can read this"):
        engine.ask(b"{}", tell, threading.Event()).result(60)


# --- what may be missing


def test_a_missing_engine_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(local_engine, "missing_instructions", lambda: "")
    with pytest.raises(errors.Unsupported, match=r"pip install --force-reinstall '.\[local\]'"):
        import_engine()


def test_a_processor_without_avx2_is_told_before_the_engine_kills_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_engine, "missing_instructions", lambda: "AVX2")
    with pytest.raises(errors.Unsupported, match="AVX2"):
        import_engine()


@pytest.mark.skipif(sys.platform != "linux", reason="told from /proc")
def test_instructions_are_read_from_the_processors_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_engine.os, "uname", lambda: type("Uname", (), {"machine": "x86_64"}))
    cpu = tmp_path / "cpuinfo"
    for flags, missing in (("fpu sse avx avx2", ""), ("fpu sse avx", "AVX2"), ("", "")):
        cpu.write_text(f"processor : 0\nflags\t\t: {flags}\n" if flags else "processor : 0\n")
        assert missing_instructions(str(cpu)) == missing


def test_weights_are_a_path_a_name_that_is_found_or_an_error_that_says_what_to_do(weights: Path) -> None:
    assert weights_of("/some/where.gguf", {}) == "/some/where.gguf"
    assert weights_of("smollm2", {}, lambda name: weights if name == "smollm2" else None) == str(weights)
    assert weights_of("smollm2", {"DRAGOMAN_LOCAL_MODEL": "/mine.gguf"}, lambda name: weights) == "/mine.gguf"
    with pytest.raises(errors.InputError, match=r"the weights of smollm2 .*dragoman\.local\.weights\.pull"):
        weights_of("smollm2", {}, lambda name: None)


def test_what_is_no_gguf_is_not_loaded(tmp_path: Path, play: Any, weights: Path) -> None:
    with pytest.raises(errors.InputError, match="cannot be read"):
        check_weights(str(tmp_path / "none.gguf"))
    provider, _, loaded = play(says("x"))
    weights.write_bytes(b"PK\x03\x04 a wheel")
    with pytest.raises(errors.InputError, match="not a GGUF"):
        asyncio.run(provider.generate(request()))
    assert not loaded


def test_a_name_leads_to_the_provider(weights: Path) -> None:
    """`local//path` is a file; nothing is loaded for it."""
    connection = connect(f"local/{weights}", env={})
    assert (connection.model, connection.name) == (str(weights), "local")
    assert isinstance(connection.provider, LocalProvider)
    profile = connect("local/qwen2.5-coder-0.5b", env={}).profile("qwen2.5-coder-0.5b")
    assert (profile.tools, profile.small is not None and profile.small.bound_calls) == ("text", True)


def test_the_number_of_threads_may_be_set(weights: Path) -> None:
    assert EngineSettings.of(str(weights), 10, 10, {"DRAGOMAN_LOCAL_THREADS": "3"}).threads == 3
    for wrong in ("seven", "0", "-1"):
        with pytest.raises(errors.InputError, match="DRAGOMAN_LOCAL_THREADS"):
            EngineSettings.of(str(weights), 10, 10, {"DRAGOMAN_LOCAL_THREADS": wrong})


def test_a_busy_machine_leaves_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine.os, "sched_getaffinity", lambda pid: set(range(4)), raising=False)
    for load, threads in ((0.0, 4), (1.2, 3), (40.0, 1)):
        monkeypatch.setattr(local_engine.os, "getloadavg", lambda load=load: (load, 0, 0), raising=False)
        assert free_cores() == threads


def test_an_answer_ends_with_its_end(play: Any) -> None:
    provider, _, _ = play(says("x"))

    async def last() -> object:
        async with aclosing(provider.stream(request())) as events:
            return [event async for event in events][-1]

    assert isinstance(asyncio.run(last()), ResponseFinished)


def test_connecting_by_name_finds_the_weights_that_an_agent_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that an embedder connects said that pulled weights were missing."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.setattr(local_engine, "_engines", {})
    model = next(iter(MODELS.values()))
    file = weights_folder() / model.file_name
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "wb") as weights:
        weights.write(b"GGUF")
        weights.truncate(model.bytes)  # a hole: it takes no room
    loaded: list[EngineSettings] = []

    def make(settings: EngineSettings, key: str) -> Played:
        loaded.append(settings)
        return Played(says("Hello"))

    monkeypatch.setattr(local_engine, "_make_server", make)
    provider = connect(f"local/{model.name}")
    assert asyncio.run(provider.generate(request())).message.text == "Hello"
    assert [settings.path for settings in loaded] == [str(file)]
