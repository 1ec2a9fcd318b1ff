"""What tests are written with, and what is under an agent: providers, requests, answers, connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import assert_type

import dragoman as dm
from dragoman.testing.fixtures import MakeScripted, MakeValidated


def use_fixtures(scripted: MakeScripted, loopback: dm.testing.Loopback, valid_requests: MakeValidated) -> None:
    """A test as a user writes it; pytest gives the fixtures."""
    model = scripted("text: Hello")
    assert_type(model, dm.testing.ScriptedProvider)
    assert_type(model.requests, list[dm.Request])
    loopback.play("text: From afar")
    connection = loopback.connect("anthropic")
    assert_type(connection, dm.Connection)
    checked = valid_requests(connection)
    assert_type(checked, dm.testing.Validated)
    with dm.Agent(checked) as agent:
        assert agent.run_sync("Hello").text == "From afar"
    assert_type(loopback.url, str)
    dm.testing.assert_valid(dm.Request("", (dm.user("Hello"),)), "gemini")


def test_the_fixtures_have_types() -> None:
    with dm.testing.Loopback() as loopback:
        use_fixtures(dm.testing.ScriptedProvider, loopback, dm.testing.Validated)


def test_a_cassette_has_a_type(tmp_path: Path) -> None:
    service = dm.testing.RecordedService(tmp_path / "tape.jsonl", record=True)
    assert_type(service.tape, dm.testing.Cassette)
    with dm.testing.no_network():
        assert_type(dm.testing.Script.parse("text: Hello"), dm.testing.Script)
    blobs = dm.testing.MemoryBlobs()
    assert_type(blobs.put("image/png", b"x"), dm.Blob)


class Echo(dm.Provider):
    """A model of one's own: four things, the rest has defaults."""

    @property
    def name(self) -> str:
        return "echo"

    def profile(self, model: str) -> dm.Profile:
        return dm.Profile(context_window=1000)

    def prepare(self, request: dm.Request) -> dm.contracts.HttpRequest:
        return dm.contracts.HttpRequest("POST", "memory:echo", {}, request.messages[-1].text.encode())

    async def stream(self, request: dm.Request) -> AsyncGenerator[dm.StreamEvent, None]:
        said = request.messages[-1].text
        yield dm.ResponseStarted()
        yield dm.TextDelta(said)
        yield dm.ResponseFinished(dm.FinishReason.STOP, dm.Response(dm.assistant(said), dm.FinishReason.STOP))


def test_a_provider_streams_and_generates() -> None:
    async def main() -> str:
        provider: dm.Provider = dm.Retry(Echo(), dm.RetryPolicy(attempts=2))
        request = dm.Request("loud", (dm.user("Hello"),))
        response = await provider.generate(request)
        assert_type(response, dm.Response)
        assert_type(response.usage, dm.Usage)
        pieces: list[str] = []
        async for event in Echo().stream(request):
            assert_type(event, dm.StreamEvent)
            if isinstance(event, dm.TextDelta):
                pieces.append(event.text)
        return response.message.text + "".join(pieces)

    assert asyncio.run(main()) == "HelloHello"


def test_prices_and_the_catalog_have_types() -> None:
    connection = dm.connect("anthropic", key="none")
    assert_type(connection, dm.Connection)
    profile = connection.profile(connection.model)
    assert_type(profile, dm.Profile)
    assert_type(profile.prices, dm.Prices | None)
    assert_type(dm.context.estimate_tokens("Hello"), int)
    asyncio.run(connection.aclose())
