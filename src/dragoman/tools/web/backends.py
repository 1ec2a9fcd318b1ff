"""Search backends: a model with built-in web search, or a SearXNG server. Both return the same kind of citations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.visible import strip_hidden
from dragoman.tools.web.citations import cite, read_supports
from dragoman.tools.web.grounding import cite_message, supports_of
from dragoman.tools.web.search import SearchResult, search_request
from dragoman.values.contracts import Provider, Transport
from dragoman.values.errors import BadRequest, ConfigError, ConnectionFailed, ProviderError, Refused, ServerError, TimedOut
from dragoman.values.messages import Citation, FinishReason, Request, Response
from dragoman.values.partial import Pieces
from dragoman.values.usage import Usage
from dragoman.words import say

_REFUSALS = (FinishReason.SAFETY, FinishReason.RECITATION, FinishReason.REFUSAL)


# --- built-in model search -------------------------------------------------------------------------------------------------


class ModelSearch:
    """Search by a model with built-in web search: Gemini, OpenAI Responses, Anthropic."""

    def __init__(self, provider: Provider, model: str, on_usage: Callable[[Usage], object] = lambda usage: None) -> None:
        """`on_usage` is called with the usage of each request."""
        self._provider = provider
        self._model = model
        self._on_usage = on_usage

    async def __call__(self, query: str) -> SearchResult:
        response = await self._whole_answer(search_request(self._model, query))
        if response.finish in _REFUSALS:
            reason = response.detail or response.raw_finish
            raise Refused(say("tools.search_refused", reason=reason), provider=self._provider.name)
        message = response.message
        raw_citations = [
            jsontext.decode(part.opaque.json) for part in message.parts if isinstance(part, Citation) and part.opaque is not None
        ]
        cut = response.finish is not FinishReason.STOP
        return SearchResult(cite_message(message), tuple(raw_citations), cut, answer=message.text, supports=supports_of(message))

    async def _whole_answer(self, request: Request) -> Response:
        """The service may pause a long search, and goes on when it is sent back what it has found."""
        pieces = Pieces()
        response = await self._generate(request)
        while pieces.take(response):
            request = msgspec.structs.replace(request, messages=(*request.messages, response.message))
            try:
                response = await self._generate(request)
            except BadRequest:
                return pieces.join()  # not every service that speaks the protocol goes on: use what there is
        return pieces.join(response)

    async def _generate(self, request: Request) -> Response:
        response = await self._provider.generate(request)
        self._on_usage(response.usage)
        return response


# --- SearXNG ---------------------------------------------------------------------------------------------------------------

MAX_RESULTS = 10
MAX_SNIPPET_CHARS = 500
MAX_BODY_BYTES = 4_000_000
TIMEOUT_S = 20.0


class SearxngSearch:
    """Search by a SearXNG server, through its JSON API. The user sets the address, so it may be on this machine."""

    def __init__(self, transport: Transport, url: str) -> None:
        self._transport = transport
        self._url = url.rstrip("/").removesuffix("/search")

    async def __call__(self, query: str) -> SearchResult:
        if not self._url.startswith(("http://", "https://")):
            raise ConfigError(say("http.not_an_address", address=self._url))
        url = f"{self._url}/search?{urlencode({'q': query, 'format': 'json'})}"
        try:
            async with asyncio.timeout(TIMEOUT_S), self._transport.send("GET", url, {"accept": "application/json"}, b"") as answer:
                status = answer.status
                body = await _read_body(answer.chunks())
        except TimeoutError:
            raise TimedOut(say("tools.searxng_timeout", seconds=TIMEOUT_S), provider="searxng") from None
        if status == 403:
            raise ProviderError(say("tools.searxng_no_json"), provider="searxng", status=403)
        if status != 200:
            raise ServerError(say("tools.searxng_failed"), provider="searxng", status=status, retryable=status == 429 or status >= 500)
        found = jsontext.decode_object(body.decode("utf-8", "replace"))
        if found is None:
            raise ServerError(say("tools.searxng_not_json"), provider="searxng")
        return _cite_results(found)


async def _read_body(chunks: Any) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ConnectionFailed(say("tools.searxng_too_long", most=MAX_BODY_BYTES // 1_000_000), provider="searxng", retryable=False)
    return bytes(body)


def _cite_results(found: dict[str, Any]) -> SearchResult:
    """A paragraph for each result, with its marker; the server's direct answers come first."""
    results = [each for each in _list(found.get("results")) if isinstance(each, dict) and _line(each.get("url"))][:MAX_RESULTS]
    paragraphs = [text for each in _list(found.get("answers")) if (text := _line(each.get("answer") if isinstance(each, dict) else each))]
    supports: list[Any] = []
    chunks: list[Any] = []
    for each in results:
        title, uri = _line(each.get("title")), _line(each.get("url"))
        text = ": ".join(filter(None, (title, _line(each.get("content"))))) or uri
        paragraphs.append(text)
        end = len("\n\n".join(paragraphs).encode("utf-8", "surrogatepass"))
        supports.append({"segment": {"startIndex": end - len(text.encode("utf-8", "surrogatepass")), "endIndex": end},
                         "groundingChunkIndices": [len(chunks)]})  # fmt: skip
        chunks.append({"web": {"uri": uri, "title": title}})
    text = "\n\n".join(paragraphs)
    return SearchResult(cite(text, supports, chunks), answer=text, supports=read_supports(text, supports, chunks))


def _line(value: object) -> str:
    text = " ".join(strip_hidden(value).split()) if isinstance(value, str) else ""
    return clip(text, MAX_SNIPPET_CHARS)


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
