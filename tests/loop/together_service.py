"""A service for several agents: which answer it plays depends on who asks, told apart by words of the request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

import dragoman as dm
from dragoman.base import jsontext
from dragoman.providers.connect import Connection
from dragoman.testing.script import Script
from dragoman.testing.script_steps import ScriptedAnswer
from program import KEY, PROTOCOLS

P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is async, in an event loop of its own; what waits for ever fails."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    return run


class Parts:
    """`Parts({"You are the captain": "text: Aye."})`: the first words found in a request choose the script, which is played in order."""

    def __init__(self, scripts: dict[str, str]) -> None:
        self._answers: dict[str, Iterator[ScriptedAnswer]] = {words: iter(Script.parse(text).answers) for words, text in scripts.items()}
        self.asked: list[str] = []

    def __call__(self, request: Any) -> ScriptedAnswer:
        body = jsontext.dumps(request.body)
        words = next(words for words in self._answers if words in body)
        self.asked.append(words)
        return next(self._answers[words])


@asynccontextmanager
async def playing(scripts: dict[str, str], protocol: str = "anthropic") -> AsyncIterator[tuple[Connection, Any]]:
    """A connection that several agents may share, and the service behind it."""
    async with dm.testing.MockServer(Parts(scripts)) as server:
        base_url = f"{server.url}/v1" if protocol.startswith("openai") else server.url
        retry = dm.RetryPolicy(first_delay_s=0.01, jitter=0)
        async with aclosing(dm.connect(PROTOCOLS[protocol], base_url=base_url, key=KEY, retry=retry)) as provider:
            yield provider, server
