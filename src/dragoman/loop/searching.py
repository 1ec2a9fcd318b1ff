"""A web search that a person or a program asks for, without a model that calls the tool: in a conversation, or without one."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from dragoman.base.text import clip
from dragoman.http.clients import open_transport
from dragoman.loop.conditions import tell_surroundings
from dragoman.loop.configuring import configure
from dragoman.loop.harness import Harness
from dragoman.loop.model import Model
from dragoman.loop.quiet_work import quiet_work
from dragoman.loop.search_model import find_search_model
from dragoman.loop.web import Metered
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import connect
from dragoman.tools.web.backends import ModelSearch, SearxngSearch
from dragoman.tools.web.citations import Support
from dragoman.tools.web.search import MAX_QUERY_CHARS, SearchResult, output_of, read_query
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Citation, Message, Opaque, Source, Text
from dragoman.values.notes import SEARCH_NOTE
from dragoman.values.record import sum_usage
from dragoman.values.usage import Usage
from dragoman.words import say


class WebSearchResult(msgspec.Struct, frozen=True):
    """What a web search found. Gemini CLI calls it `WebSearchToolResult`: `text` is its `llmContent`, `display` its `returnDisplay`."""

    query: str
    text: str
    """What a model is told: `Web search results for "…":`, the answer with its markers `[1]`, and the list of sources."""
    display: str
    """The same for a terminal: links and invisible characters are written out."""
    sources: tuple[Source, ...] = ()
    """What the markers stand for, from 1."""
    supports: tuple[Support, ...] = ()
    """Which passages of `answer` rest on which sources, and how sure the service is."""
    answer: str = ""
    """The answer as the service gave it, without markers."""
    metadata: tuple[Any, ...] = ()
    """The service's own data (Gemini's groundingMetadata, annotations), whole."""
    is_cut: bool = False
    """Whether the answer was cut short by a limit."""
    searched_by: str = ""
    """`deployment/model` of the model that searched, or the address of the SearXNG server."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None where prices or the usage are not known; a SearXNG server costs nothing."""
    requests: int = 0
    """How often a model was asked."""


async def google_web_search(query: str, *, model: str | Provider = "", searxng: str = "") -> WebSearchResult:
    """Search the web once, without an agent: what the tool `google_web_search` does when a model calls it (Gemini CLI's `WebSearchTool`).

    `model` searches: a name (`gemini/gemini-3.8-flash`) or a provider. Empty: the cheapest default model among the services that can
    search and whose key is set. `searxng` is the URL of a SearXNG server, which is asked instead. Cancel the task to end it.

    Raises InputError where the query is empty or nobody can search, Unsupported where the model cannot, and ProviderError as the service
    refuses: BadRequest (400), Unauthorized (401), RateLimited (429) and their like.
    """
    query = _checked(query)
    if searxng:
        transport = open_transport("own")
        try:
            found = await SearxngSearch(transport, searxng)(query)
        finally:
            await transport.aclose()
        return _result(query, found, searxng)
    if isinstance(model, type) or not isinstance(model, str | Provider):
        raise InputError(say("loop.not_a_provider", kind=shown(model)))
    provider = model if isinstance(model, Provider) else connect(model or _searching_model())
    try:
        return await _ask(query, Model.of(provider))
    finally:
        if provider is not model:
            await provider.aclose()


def google_web_search_sync(query: str, *, model: str | Provider = "", searxng: str = "") -> WebSearchResult:
    """`google_web_search` for code that is not async. It works in a thread of its own, so it may be called from anywhere."""
    from dragoman.loop.background import Background

    return Background().value_of(lambda: google_web_search(query, model=model, searxng=searxng))


async def search_now(harness: Harness, query: str) -> WebSearchResult:
    """Search for the person who has the conversation. The model reads with the next request what was found; what it took is recorded."""
    query = _checked(query)
    session, history, searcher = harness.session, harness.session.history, harness.searcher
    if searcher is None:
        raise InputError(say("loop.no_web_access"))
    if not searcher.can_search():
        raise InputError(say("loop.search_by_nobody", model=session.model.full_name))
    harness.require_none_pending()  # what was found would stand between a call and its result

    def begin() -> None:
        """Put on the record what the search rests on. A search that failed and cost nothing leaves no entry, and no session."""
        if session.log is not None:
            session.log.begin(session, harness.directories)
        history.close_interrupted()
        if (history.view.deployment, history.view.model) != (session.model.provider.name, session.model.name):
            configure(harness)  # what is spent is charged to the model that stands there

    async with quiet_work(session):
        first, asked = len(history.entries), searcher.requests
        try:
            found = await searcher.search(query, before_spending=begin)
            begin()
            await tell_surroundings(harness)
            history.say(_note_of(query, found, harness.outputs.max_chars), "search")
        finally:
            await history.sync()
        spent = history.entries[first:]
        result = _result(query, found, found.by or searcher.server or session.model.full_name)
        usage, cost_usd = sum_usage(spent), harness.bill.cost_usd(spent)
        return msgspec.structs.replace(result, usage=usage, cost_usd=cost_usd, requests=searcher.requests - asked)


def _checked(query: str) -> str:
    """The query in one line. Raises InputError."""
    try:
        return read_query({"query": query})
    except ToolRefusal:
        size = len(" ".join(str(query or "").split()))
        key = "loop.query_too_long" if size else "loop.empty_query"
        raise InputError(say(key, count=f"{size:,}", most=f"{MAX_QUERY_CHARS:,}")) from None


def _searching_model() -> str:
    found = find_search_model(builtin_catalog(), os.environ)
    if found is None:
        raise InputError(say("loop.nobody_searches"))
    return found.name


async def _ask(query: str, model: Model) -> WebSearchResult:
    requests: list[None] = []
    usages: list[Usage] = []
    metered = Metered(model.provider, lambda: requests.append(None), usages.append)
    found = await ModelSearch(metered, model.name)(query)
    usage = sum(usages, Usage())
    prices = model.profile.prices
    cost_usd = None if prices is None or usage.is_unknown else prices.cost_usd(usage)
    result = _result(query, found, model.full_name)
    return msgspec.structs.replace(result, usage=usage, cost_usd=cost_usd, requests=len(requests))


def _result(query: str, found: SearchResult, searched_by: str) -> WebSearchResult:
    output = output_of(query, found)
    text = "".join(part.text for part in output.content if isinstance(part, Text))
    return WebSearchResult(
        query, text, output.display, output.sources, found.supports, found.answer, found.record, found.is_cut, searched_by, cost_usd=0.0
    )


def _note_of(query: str, found: SearchResult, max_chars: int) -> Message:
    """What the model is told of a search that it did not make. The sources and the service's own data stay in the record beside it."""
    output = output_of(query, found)
    text = "".join(part.text for part in output.content if isinstance(part, Text))
    data = Opaque("", output.extras)
    cited = [Citation(source.uri, source.title, "\n".join(source.cited_text)) for source in found.cited.sources] or [Citation()]
    kept = msgspec.structs.replace(cited[0], opaque=data)
    return Message("user", (Text(SEARCH_NOTE.format(query=query, text=clip(text, max_chars))), kept, *cited[1:]))
