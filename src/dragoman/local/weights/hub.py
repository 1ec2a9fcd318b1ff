"""The publisher's own file, over HTTP: each part as a range. Where the network does not allow it, that is known in seconds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from dragoman.local.weights.faults import NotPulled
from dragoman.local.weights.models import Model, Part
from dragoman.local.weights.sources import Sink
from dragoman.values.errors import ConfigError, ProviderError

if TYPE_CHECKING:
    from dragoman.values.contracts import Answer, Transport

HUB = "https://huggingface.co"
CONNECT_S = 4.0
ANSWER_S = 8.0
"""To the head of an answer, redirects and all."""
SILENCE_S = 15.0
MOST_REDIRECTS = 5


class Hub:
    """HF_ENDPOINT names another host, as the ecosystem has it; proxies are those of the environment."""

    parallel = 4
    copies = 0

    def __init__(self, env: Mapping[str, str] | None = None, transport: Transport | None = None) -> None:
        env = os.environ if env is None else env
        self._base = (env.get("HF_ENDPOINT", "").strip() or HUB).rstrip("/")
        self._transport = transport

    @property
    def title(self) -> str:
        return urlsplit(self._base).hostname or self._base

    async def fetch(self, model: Model, part: Part, sink: Sink) -> None:
        if not model.hub:
            raise NotPulled("it has no such file")
        try:
            async with self._answer(f"{self._base}/{model.hub}", part) as answer:
                await _take(answer, model, part, sink)
        except TimeoutError as error:
            raise NotPulled("it does not answer, or stopped sending", again=False) from error
        except ProviderError as error:
            raise NotPulled(str(error), again=bool(sink.size)) from error
        except ConfigError as error:  # a proxy or an HF_ENDPOINT that is no URL
            raise NotPulled(str(error)) from error

    @asynccontextmanager
    async def _answer(self, url: str, part: Part) -> AsyncGenerator[Answer, None]:
        from contextlib import AsyncExitStack

        transport = self._made_transport()
        headers = {"range": f"bytes={part.offset}-{part.offset + part.bytes - 1}"}
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(ANSWER_S):
                for _ in range(MOST_REDIRECTS + 1):
                    answer = await stack.enter_async_context(transport.send("GET", url, headers, b""))
                    if answer.status not in (301, 302, 303, 307, 308):
                        break
                    url = _redirected(url, answer.headers.get("location", ""))
                else:
                    raise NotPulled("it redirects without end")
            yield answer

    def _made_transport(self) -> Transport:
        if self._transport is None:
            from dragoman.http.transport import HttpTransport

            self._transport = HttpTransport(connect_timeout_s=CONNECT_S)
        return self._transport


async def _take(answer: Answer, model: Model, part: Part, sink: Sink) -> None:
    whole = part.bytes == model.bytes
    if answer.status != 206 and not (answer.status == 200 and whole):
        raise NotPulled(f"it answers with HTTP {answer.status}" if answer.status != 200 else "it does not send parts of a file")
    # Hashing and writing a piece takes less than a millisecond: it does not keep the loop.
    async with aclosing(answer.chunks()) as chunks:
        while True:
            async with asyncio.timeout(SILENCE_S):
                piece = await anext(chunks, b"")
            if not piece:
                return
            sink.write(piece)


def _redirected(url: str, location: str) -> str:
    target = urljoin(url, location)
    if urlsplit(target).scheme not in ("https", urlsplit(url).scheme) or not location:
        raise NotPulled("it redirects to where nobody should go")
    return target
