"""A client that leaves: scopes of anyio cancel whatever is under way, again at every await, and the session is free all the same."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import os
import random
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop.agent import Agent
from dragoman.loop.chat import Chat
from dragoman.loop.options import ApprovalOptions, SessionOptions
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.sessions.store import FileStore
from dragoman.testing.script_steps import Say, ScriptedAnswer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import InUse
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Request
from dragoman.values.record import Said
from scenarios.workshop import play

anyio = pytest.importorskip("anyio")

PIECES = 20
SERVICE = Path(__file__).resolve().parent.parent.parent / "examples" / "apps" / "service.py"
STORES: dict[str, Callable[[Path], Any]] = {
    "files": lambda folder: FileStore(folder / "sessions"),
    "sqlite": lambda folder: SqliteStore(folder / "sessions.db"),
}


class SlowProvider(ScriptedProvider):
    """Lets others work between two events of its stream."""

    def __init__(self) -> None:
        super().__init__(lambda request: ScriptedAnswer((Say("word " * PIECES, piece_chars=5),)))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        async for event in super().stream(request):
            await asyncio.sleep(0)
            yield event


def options(store: Any, key: str) -> dict[str, Any]:
    return {"session": SessionOptions(store, key=key), "approval": ApprovalOptions()}


async def passes(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@asynccontextmanager
async def nothing_unretrieved() -> AsyncIterator[None]:
    """No task ends in an exception that nobody looks at."""
    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    yield
    await passes(10)
    gc.collect()
    await passes(10)
    assert told == []


async def leave_agent(store: Any, key: str, begin: Callable[[], None]) -> None:
    async with Agent(SlowProvider(), **options(store, key)) as agent:
        begin()
        await agent.run("Speak.")


async def leave_plain_agent(store: Any, key: str, begin: Callable[[], None]) -> None:
    with Agent(SlowProvider(), **options(store, key)) as agent:
        begin()
        await agent.run("Speak.")


async def leave_chat(store: Any, key: str, begin: Callable[[], None]) -> None:
    async with Chat(SlowProvider(), session=SessionOptions(store, key=key)) as chat:
        begin()
        await chat.send_message("Speak.")


async def cancel_after(turns: int, scope: Any) -> None:
    await passes(turns)
    scope.cancel()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("client", [leave_agent, leave_plain_agent, leave_chat])
def test_whoever_is_cancelled_in_a_scope_leaves_the_session_free(client: Any, store: str, tmp_path: Path) -> None:
    async def go() -> None:
        made = STORES[store](tmp_path)
        async with nothing_unretrieved():
            for turns in range(0, 60, 3):
                gc.disable()  # whatever is collected by chance would be free as well
                try:
                    with anyio.CancelScope() as scope:
                        leaving: list[asyncio.Task[None]] = []
                        await client(made, f"user-{turns}", lambda: leaving.append(asyncio.create_task(cancel_after(turns, scope))))  # noqa: B023
                    async with Agent(SlowProvider(), **options(made, f"user-{turns}")) as agent:
                        assert (await agent.run("Again.")).text.startswith("word")
                        said = [entry.message.text for entry in agent.history.entries if isinstance(entry, Said)]
                        assert said.count("Again.") == 1
                finally:
                    gc.enable()

    play(go)


def test_a_session_that_this_process_holds_is_not_said_to_be_another_process(tmp_path: Path) -> None:
    async def go() -> None:
        store = FileStore(tmp_path / "sessions")
        async with Agent(SlowProvider(), **options(store, "user")) as agent:
            await agent.run("Speak.")
            with pytest.raises(InUse) as caught:
                Agent(SlowProvider(), **options(store, "user"))
            assert caught.value.pid == os.getpid()
            assert f"this process itself (pid {os.getpid()})" in str(caught.value)
            assert "another process" not in str(caught.value)

    play(go)


# --- real clients of a real server -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_sixty_clients_leave_at_random_moments_and_every_next_prompt_is_answered(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example that is to be copied, on Starlette and uvicorn."""
    uvicorn = pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    monkeypatch.setenv("SESSIONS", str(tmp_path / "sessions"))
    spec = importlib.util.spec_from_file_location(f"service_of_{seed}", SERVICE)
    assert spec is not None
    assert spec.loader is not None
    service = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, service)
    spec.loader.exec_module(service)
    monkeypatch.setattr(service, "open_agent", lambda user: Agent(SlowProvider(), **options(service.STORE, user)))

    async def go() -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            port = listening.getsockname()[1]
            server = uvicorn.Server(uvicorn.Config(service.app, log_level="critical", lifespan="off"))
            serving = asyncio.create_task(server.serve([listening]))
            while not server.started:  # noqa: ASYNC110  it has no event for that
                await asyncio.sleep(0.01)
            draw = random.Random(seed)
            moments = [draw.choice((0, draw.randrange(400), draw.randrange(3_000))) for _ in range(60)]
            answers = await asyncio.gather(*(leaves_and_comes_back(port, f"user{number}", at) for number, at in enumerate(moments)))
            server.should_exit = True
            await serving
        assert [head.split(b"\r\n", 1)[0] for head in answers if not head.startswith(b"HTTP/1.1 200")] == []
        assert all(b"event: done" in answer for answer in answers)
        assert service.running == {}

    gc.disable()
    try:
        play(go, within_s=120)
    finally:
        gc.enable()


async def leaves_and_comes_back(port: int, user: str, at_byte: int) -> bytes:
    """The answer to the next prompt. While the run that was left is ending, the service says 409, as it should."""
    reader, writer = await post(port, user, "Speak.")
    if at_byte:
        await reader.read(at_byte)
    writer.transport.abort()
    for _ in range(500):
        reader, writer = await post(port, user, "Again.")
        answer = await reader.read()
        writer.close()
        if not answer.startswith(b"HTTP/1.1 409"):
            return answer
        await asyncio.sleep(0.02)
    return answer


async def post(port: int, user: str, prompt: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"prompt": prompt}).encode()
    head = f"POST /users/{user}/messages HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer
