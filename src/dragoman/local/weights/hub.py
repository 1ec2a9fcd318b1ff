"""Download from the publisher's hub over HTTP, each part as a range request. Short timeouts: a blocked network is noticed in seconds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from dragoman.http.transport import HttpTransport
from dragoman.local.weights.faults import NotPulled
from dragoman.local.weights.models import LocalModel, Part
from dragoman.local.weights.sources import Sink
from dragoman.values.errors import ConfigError, ProviderError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.values.contracts import HttpResponse, Transport

HUB = "https://huggingface.co"
CONNECT_S = 4.0
ANSWER_S = 8.0
"""Until the response head, including redirects."""
SILENCE_S = 15.0
MOST_REDIRECTS = 5


class Hub:
    """HF_ENDPOINT names another host, as elsewhere in the ecosystem; proxies come from the environment."""

    parallel = 4
    copies = 0

    def __init__(self, env: Mapping[str, str] | None = None, transport: Transport | None = None) -> None:
        env = os.environ if env is None else env
        self._base = (env.get("HF_ENDPOINT", "").strip() or HUB).rstrip("/")
        self._transport = transport

    @property
    def title(self) -> str:
        return urlsplit(self._base).hostname or self._base

    async def fetch(self, model: LocalModel, part: Part, sink: Sink) -> None:
        if not model.hub:
            raise NotPulled(say("local.hub_no_file"))
        try:
            async with self._open_range(f"{self._base}/{model.hub}", part) as answer:
                await _copy_body(answer, model, part, sink)
        except TimeoutError as error:
            raise NotPulled(say("local.hub_silent"), can_retry=False) from error
        except ProviderError as error:
            raise NotPulled(error.sentence, can_retry=bool(sink.size)) from error
        except ConfigError as error:  # a proxy or an HF_ENDPOINT that is not a URL
            raise NotPulled(error.sentence) from error

    @asynccontextmanager
    async def _open_range(self, url: str, part: Part) -> AsyncGenerator[HttpResponse, None]:
        transport = self._get_transport()
        headers = {"range": f"bytes={part.offset}-{part.offset + part.bytes - 1}"}
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(ANSWER_S):
                for _ in range(MOST_REDIRECTS + 1):
                    answer = await stack.enter_async_context(transport.send("GET", url, headers, b""))
                    if answer.status not in (301, 302, 303, 307, 308):
                        break
                    url = _resolve_redirect(url, answer.headers.get("location", ""))
                else:
                    raise NotPulled(say("local.hub_redirects"))
            yield answer

    def _get_transport(self) -> Transport:
        if self._transport is None:
            self._transport = HttpTransport(connect_timeout_s=CONNECT_S)
        return self._transport


async def _copy_body(answer: HttpResponse, model: LocalModel, part: Part, sink: Sink) -> None:
    whole = part.bytes == model.bytes
    if answer.status != 206 and not (answer.status == 200 and whole):
        raise NotPulled(say("local.hub_status", status=answer.status) if answer.status != 200 else say("local.hub_no_ranges"))
    # Hashing and writing a piece takes less than a millisecond: it does not block the loop.
    async with aclosing(answer.chunks()) as chunks:
        while True:
            async with asyncio.timeout(SILENCE_S):
                piece = await anext(chunks, b"")
            if not piece:
                return
            sink.write(piece)


def _resolve_redirect(url: str, location: str) -> str:
    target = urljoin(url, location)
    if urlsplit(target).scheme not in ("https", urlsplit(url).scheme) or not location:
        raise NotPulled(say("local.hub_redirect_unsafe"))
    return target
