"""A provider that an embedder gives: the agent sends what the session holds, over whatever is wrapped around it."""

from __future__ import annotations

import asyncio
import base64
import gc
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from agents import make_agent
from destinations import MAIN, connection
from dragoman.base import jsontext
from dragoman.loop.agent import Agent
from dragoman.providers.connect import connect
from dragoman.providers.logged import Logged
from dragoman.providers.retry import Retry
from dragoman.testing.mock.server import MockServer
from dragoman.text_tools.detector import Detector
from dragoman.text_tools.wrapper import TextTools
from dragoman.tools.function import tool
from dragoman.values.blobs import JoinedBlobs, MemoryBlobs
from dragoman.values.contracts import Provider
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Blob, Request, Text, user
from dragoman.values.wrapping import WrappingProvider

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
SENT = base64.b64encode(PNG).decode()
GONE = "no longer there"
READS = 'call: read_file {"file_path": "dot.png"}\n---\ntext: A dot.\n---\ntext: Still a dot.'


def last_body(script: str, use: Callable[[Provider], Agent], *prompts: object, protocol: str = "anthropic") -> str:
    """What the service was sent last by an agent over this protocol."""

    async def go() -> str:
        async with MockServer(script) as server:
            provider = connection(protocol, server.url)
            async with use(provider) as agent:
                for prompt in prompts:
                    await agent.run(prompt)  # type: ignore[arg-type]
            await provider.aclose()
            return jsontext.dumps(server.requests[-1].body)

    return asyncio.run(go())


# --- images


@pytest.mark.parametrize("protocol", MAIN)
def test_an_image_that_a_tool_read_is_sent_where_the_session_is_saved(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)

    def use(provider: Provider) -> Agent:
        return make_agent(provider, workspace=tmp_path, sessions=tmp_path / "sessions", describe=False)

    sent = last_body(READS, use, "Look at dot.png.", protocol=protocol)
    assert SENT in sent
    assert GONE not in sent


@pytest.mark.parametrize("wrap", [Logged, Retry, lambda provider: Logged(Retry(Logged(provider)))])
def test_it_is_sent_through_any_wrapper(wrap: Callable[[Provider], Provider], tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)

    def use(provider: Provider) -> Agent:
        return make_agent(wrap(provider), workspace=tmp_path, sessions=tmp_path / "sessions", describe=False)

    assert SENT in last_body(READS, use, "Look at dot.png.")


def test_it_is_sent_when_the_session_is_resumed_with_another_given_provider(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)

    def use(provider: Provider, resume: str = "") -> Agent:
        return make_agent(provider, workspace=tmp_path, sessions=tmp_path / "sessions", resume=resume, describe=False)

    last_body(READS, use, "Look at dot.png.")
    assert SENT in last_body("text: Yes.", lambda provider: use(provider, "latest"), "And now?", protocol="gemini")


def test_it_is_sent_to_a_given_provider_that_the_session_changes_to(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)

    async def go() -> str:
        async with MockServer(READS) as server:
            first, second = connection("anthropic", server.url), connection("gemini", server.url)
            async with make_agent(first, workspace=tmp_path, describe=False) as agent:
                await agent.run("Look at dot.png.")
                agent.change_model(second)
                await agent.run("And now?")
            await first.aclose()
            await second.aclose()
            return jsontext.dumps(server.requests[-1].body)

    assert SENT in asyncio.run(go())


def test_an_image_of_the_providers_own_store_is_kept_with_the_session(tmp_path: Path) -> None:
    def use(provider: Provider, resume: str = "") -> Agent:
        return make_agent(provider, workspace=tmp_path, sessions=tmp_path / "sessions", resume=resume, describe=False)

    async def first() -> None:
        async with MockServer("text: A dot.") as server:
            provider = connection("anthropic", server.url)
            assert provider.blobs is not None
            image = provider.blobs.put("image/png", PNG)
            async with use(provider) as agent:
                await agent.run([image, Text("What is this?")])  # type: ignore[list-item]
                assert agent.blobs.get(image.sha256) == PNG
            await provider.aclose()

    asyncio.run(first())
    assert SENT in last_body("text: Yes.", lambda provider: use(provider, "latest"), "Still there?")


def test_an_image_that_an_embedders_tool_put_there_is_kept_with_the_session(tmp_path: Path) -> None:

    def use(provider: Provider) -> Agent:
        @tool(read_only=True)
        def picture() -> Blob:
            "A picture."
            assert provider.blobs is not None
            return provider.blobs.put("image/png", PNG)

        return make_agent(provider, tools=[picture], workspace=tmp_path, sessions=tmp_path / "sessions", describe=False)

    assert SENT in last_body("call: picture {}\n---\ntext: Seen.", use, "Show it.")
    kept = [path.read_bytes() for path in (tmp_path / "sessions").rglob("*") if path.is_file()]
    assert PNG in kept


def test_a_provider_does_not_keep_the_bytes_of_agents_that_are_gone() -> None:
    joined, own, lent = JoinedBlobs(MemoryBlobs()), MemoryBlobs(), MemoryBlobs()
    image = lent.put("image/png", PNG)
    joined.add(own)
    joined.add(lent)
    joined.add(lent)
    assert joined.get(image.sha256) == PNG
    del lent
    gc.collect()
    assert joined.get(image.sha256) is None


# --- wrappers


class Counting(WrappingProvider):
    """As an embedder writes one."""

    requests = 0

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.requests += 1
        return super().stream(request)


def test_the_agent_uses_the_very_object_it_was_given(tmp_path: Path) -> None:
    given: list[Counting] = []

    def use(provider: Provider) -> Agent:
        given.append(Counting(provider))
        return make_agent(given[0], workspace=tmp_path, sessions=tmp_path / "sessions", builtin=False, describe=False)

    last_body("text: Hello.", use, "Hello?")
    assert given[0].requests == 1


@pytest.mark.parametrize("wrap", [Logged, Retry, TextTools, Counting, lambda inner: Detector(inner, lambda dialect: None)])
def test_a_wrapper_is_for_the_model_that_it_wraps(wrap: Callable[[Provider], Provider]) -> None:
    inner = connect("anthropic", key="key-for-tests", env={})
    wrapped = wrap(inner)
    agent = make_agent(wrapped, describe=False)
    assert (wrapped.model, wrapped.deployment, wrapped.blobs) == (inner.model, inner.deployment, inner.blobs)
    assert inner.model.startswith("claude-")
    assert agent.model == inner.model, "and not the name of the deployment"
    wrapped.look_in(store := MemoryBlobs())
    image = store.put("image/png", PNG)
    assert SENT.encode() in wrapped.prepare(Request(inner.model, (user(image),))).body
