"""A service that goes wrong over real HTTP, and one provider connected to it that must outlive every fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from dragoman.providers.catalog import Catalog, builtin_catalog
from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules, validate
from dragoman.testing.script import Script, Source
from dragoman.testing.script_steps import ScriptedAnswer, Step, answer
from dragoman.values.errors import ProviderError
from dragoman.values.events import ResponseFinished, Retrying, StreamEvent
from dragoman.values.messages import Message, Request, Response, ToolSpec, assistant, user
from streaming import MODELS, checked, collect

QUICK_S = 0.25
"""How long a model of the `quick` row may be silent."""
PACES_S = (QUICK_S, 4 * QUICK_S, 32 * QUICK_S)
"""The same for the models that `run_at_some_pace` asks."""
TOOLS = (
    ToolSpec.of("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    ToolSpec.of(
        "write_file", "Write a file.", {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
    ),
)
GOOD = "text: All is well."


def quick_catalog() -> Catalog:
    """The catalog with a model on every service that is not waited for."""
    models = {f"quick-{pace_s}": {"first_event_s": pace_s, "between_events_s": pace_s, "pings_only_s": 2 * pace_s} for pace_s in PACES_S}
    row = {"models": {"quick": models[f"quick-{QUICK_S}"], **models}}
    return builtin_catalog().with_rows({name.partition("/")[0]: row for name in MODELS.values()})


_QUICK = quick_catalog()


class Waits(list[float]):
    """A sleep that takes no time and remembers what was asked of it."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


class Bench:
    """A server, and the one connection to it."""

    def __init__(self, protocol: str, server: MockServer, connection: Connection, waits: Waits) -> None:
        self.protocol = protocol
        self.server = server
        self.connection = connection
        self.waits = waits

    def request(self, *messages: Message) -> Request:
        return Request(self.connection.model, messages or (user("hello"),), "Be brief.", TOOLS)

    async def ask(self, source: Source | None, *messages: Message) -> tuple[list[StreamEvent], ProviderError | None]:
        """What is told of an answer, and how it failed if it did."""
        if source is not None:
            self.server.play(source)
        events: list[StreamEvent] = []
        try:
            await collect(self.connection, self.request(*messages), events)
        except ProviderError as error:
            return events, error
        return events, None

    async def answer(self, source: Source, *messages: Message) -> Response:
        """An answer that must come whole and at the first attempt."""
        before = len(self.server.requests)
        events, error = await self.ask(source, *messages)
        assert error is None, error
        assert len(self.server.requests) == before + 1
        return checked(events)

    async def fails(self, source: Source, *messages: Message) -> tuple[list[StreamEvent], ProviderError]:
        """The error that asking ends with, after every attempt. Nothing may look like a finished answer."""
        events, error = await self.ask(source, *messages)
        assert error is not None
        assert error.provider == self.connection.name
        assert not [event for event in events if isinstance(event, ResponseFinished)]
        return events, error

    async def is_well(self) -> None:
        """The same provider serves a good request."""
        response = await self.answer(GOOD)
        assert response.message == assistant("All is well.")

    def body(self, number: int = -1) -> Any:
        """The decoded body of a request that was made."""
        return self.server.requests[number].body


@asynccontextmanager
async def bench(protocol: str, *, quick: bool = False, pace_s: float = QUICK_S, **policy: Any) -> AsyncIterator[Bench]:
    """A bench whose waits take no time. When the block ends, its provider must still be able to serve."""
    waits = Waits()
    async with MockServer() as server:
        model = f"{MODELS[protocol].partition('/')[0]}/quick-{pace_s}" if quick else MODELS[protocol]
        retry = RetryPolicy(**{"sleep": waits, **policy})
        connection = connect(model, key="a-key", base_url=server.url, env={}, catalog=_QUICK, retry=retry)
        try:
            made = Bench(protocol, server, connection, waits)
            yield made
            await made.is_well()
        finally:
            await connection.aclose()


def run(protocol: str, test: Callable[[Bench], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Run a test on a bench, in an event loop of its own."""

    async def within() -> Any:
        async with bench(protocol, **options) as made:
            return await asyncio.wait_for(test(made), 60)

    return asyncio.run(within())


def run_at_some_pace(protocol: str, test: Callable[[Bench, float], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """The same, with how long the service may be silent. A busy machine makes silences of its own, so it is tried at slower paces too: what
    is wrong is wrong at each of them."""
    for pace_s in PACES_S:
        try:
            return run(protocol, lambda made, pace_s=pace_s: test(made, pace_s), quick=True, pace_s=pace_s, **options)
        except (AssertionError, ProviderError):
            if pace_s == PACES_S[-1]:
                raise


def retries(events: list[StreamEvent]) -> list[Retrying]:
    return [event for event in events if isinstance(event, Retrying)]


def violation(protocol: str, body: Any) -> object:
    """What the service would say against a request."""
    rules = Rules(thought_signatures=protocol == "gemini", empty_text_refused=protocol == "openai_chat")
    return validate(protocol, json.loads(json.dumps(body)), rules)  # type: ignore[arg-type]


def always(*steps: Step | str | ScriptedAnswer) -> Script:
    """The same answer to every request."""
    said = steps[0] if steps and isinstance(steps[0], ScriptedAnswer) else answer(*steps)  # type: ignore[arg-type]
    return Script((said,), at_end="repeat")
