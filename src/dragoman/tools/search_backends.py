"""Who searches: a model that can do so by itself, or a SearXNG server. Both come back with the same citations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.visible import without_hidden
from dragoman.tools.citations import Cited, cite
from dragoman.tools.grounding import cited_message
from dragoman.tools.web_search import Found, search_request
from dragoman.values.contracts import Provider, Transport
from dragoman.values.errors import BadRequest, ConnectionFailed, ProviderError, Refused, ServerError, TimedOut
from dragoman.values.messages import Citation, FinishReason, Message, Request, Response
from dragoman.values.usage import Usage

MAX_PAUSES = 4
"""How often a service may stop in the middle of its searching and be asked to go on."""
_REFUSALS = (FinishReason.SAFETY, FinishReason.RECITATION, FinishReason.REFUSAL)


# --- a model that can search -----------------------------------------------------------------------------------------------


class ModelSearch:
    """Search by a model of a service that searches by itself: Gemini, OpenAI Responses, Anthropic."""

    def __init__(self, provider: Provider, model: str, spent: Callable[[Usage], object] = lambda usage: None) -> None:
        """`spent` is told what each request used."""
        self._provider = provider
        self._model = model
        self._spent = spent

    async def __call__(self, query: str) -> Found:
        request = search_request(self._model, query)
        response = await self._asked(request)
        said = [response.message]
        while response.raw_finish == "pause_turn" and len(said) <= MAX_PAUSES:
            request = msgspec.structs.replace(request, messages=(*request.messages, response.message))
            try:
                response = await self._asked(request)
            except BadRequest:
                break  # not every model goes on from its own words: what there is must do
            said.append(response.message)
        if response.finish in _REFUSALS:
            raise Refused(f"the service would not answer: {response.detail or response.raw_finish}", provider=self._provider.name)
        message = Message("assistant", tuple(part for each in said for part in each.parts))
        told = [jsontext.decode(part.opaque.json) for part in message.parts if isinstance(part, Citation) and part.opaque is not None]
        return Found(cited_message(message), tuple(told), response.finish is not FinishReason.STOP)

    async def _asked(self, request: Request) -> Response:
        response = await self._provider.generate(request)
        self._spent(response.usage)
        return response


# --- SearXNG ---------------------------------------------------------------------------------------------------------------

MAX_RESULTS = 10
MAX_SNIPPET_CHARS = 500
MAX_BODY_BYTES = 4_000_000
TIMEOUT_S = 20.0


class SearxngSearch:
    """Search by a SearXNG server, through its JSON interface. The address is the user's own: it may well be on this machine."""

    def __init__(self, transport: Transport, url: str) -> None:
        self._transport = transport
        self._url = url.rstrip("/").removesuffix("/search")

    async def __call__(self, query: str) -> Found:
        from urllib.parse import urlencode

        url = f"{self._url}/search?{urlencode({'q': query, 'format': 'json'})}"
        try:
            async with asyncio.timeout(TIMEOUT_S), self._transport.send("GET", url, {"accept": "application/json"}, b"") as answer:
                status = answer.status
                body = await _body(answer.chunks())
        except TimeoutError:
            raise TimedOut(f"no answer within {TIMEOUT_S:.0f} s", provider="searxng") from None
        if status == 403:
            raise ProviderError(
                "the server does not serve JSON: add `json` to `search.formats` in its settings", provider="searxng", status=403
            )
        if status != 200:
            raise ServerError("the server did not search", provider="searxng", status=status, retryable=status == 429 or status >= 500)
        found = jsontext.decode_object(body.decode("utf-8", "replace"))
        if found is None:
            raise ServerError("the server's answer is not JSON", provider="searxng")
        return Found(_cited(found))


async def _body(chunks: Any) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ConnectionFailed(f"the answer is longer than {MAX_BODY_BYTES // 1_000_000} MB", provider="searxng", retryable=False)
    return bytes(body)


def _cited(found: dict[str, Any]) -> Cited:
    """A paragraph for each result, with its marker; what the server answers outright stands first."""
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
    return cite("\n\n".join(paragraphs), supports, chunks)


def _line(value: object) -> str:
    text = " ".join(without_hidden(value).split()) if isinstance(value, str) else ""
    return clip(text, MAX_SNIPPET_CHARS)


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()
