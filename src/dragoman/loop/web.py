"""Web access for an agent: search and fetch. The code that does the work is loaded on the first call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from dragoman.http.clients import HttpClient, open_transport
from dragoman.loop.model import Model, Models
from dragoman.loop.options import SearchMode, WebAccess
from dragoman.loop.session import Session
from dragoman.tools.output import Outputs
from dragoman.tools.web_fetch import PageReader, WebFetch
from dragoman.tools.web_search import WebSearch, can_search
from dragoman.values.contracts import Tool, Transport
from dragoman.values.errors import Unsupported
from dragoman.values.messages import Request, Settings, ToolSpec, user
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.tools.web_search import SearchResult

SEARCH_TOOL = "google_web_search"


def web_tools(web: WebAccess, session: Session, models: Models, outputs: Outputs) -> list[Tool]:
    """The web tools. Search is included only if something can search; whether it is offered to the model depends on the mode."""
    tools: list[Tool] = []
    if web.searxng or web.search_model or _can_search(session.model):
        searcher = _Searcher(web, session, models)
        tools.append(WebSearch(searcher.search))
    if web.fetch:

        async def consult(prompt: str, text: str) -> str:
            model = session.model  # the current one: it may have been changed
            spend = partial(_spend, session, model.name, "web_fetch")
            return await PageReader(model.provider, model.name, spend)(prompt, text)

        tools.append(WebFetch(partial(_pin, web.client), outputs=outputs, consult=consult, rules=web.rules))
    return tools


def can_ground(model: Model, tools: tuple[ToolSpec, ...]) -> bool:
    """Whether the service can search on its own beside these tools (grounding). Nothing is sent."""
    try:
        model.provider.prepare(Request(model.name, (user("?"),), tools=tools, settings=Settings(search=True)))
    except Unsupported:
        return False
    return True


def offer_search(mode: SearchMode, model: Model, specs: tuple[ToolSpec, ...], settings: Settings) -> tuple[tuple[ToolSpec, ...], Settings]:
    """The tools and settings of a run that searches in this mode. If the service cannot search on its own, the tool does."""
    if mode == "tool":
        return specs, settings
    without = tuple(spec for spec in specs if spec.name != SEARCH_TOOL)
    if mode == "off":
        return without, settings
    return (without, msgspec.structs.replace(settings, search=True)) if can_ground(model, without) else (specs, settings)


def _can_search(model: Model) -> bool:
    return can_search(model.provider, model.name)


def _spend(session: Session, model: str, what: str, usage: Usage) -> None:
    session.history.spend(model, usage, what)


def _pin(client: HttpClient, address: str) -> Transport:
    return open_transport(client, address=address)


class _Searcher:
    """Searches with the SearXNG server, the search model or the chat model: the first one configured."""

    def __init__(self, web: WebAccess, session: Session, models: Models) -> None:
        self._web = web
        self._session = session
        self._models = models
        self._search_model: Model | None = None

    async def search(self, query: str) -> SearchResult:
        if self._web.searxng:
            return await self._ask_searxng(query)
        from dragoman.tools.search_backends import ModelSearch

        model = self._model()
        return await ModelSearch(model.provider, model.name, partial(_spend, self._session, model.name, SEARCH_TOOL))(query)

    async def _ask_searxng(self, query: str) -> SearchResult:
        from dragoman.tools.search_backends import SearxngSearch

        transport = open_transport(self._web.client)
        try:
            return await SearxngSearch(transport, self._web.searxng)(query)
        finally:
            await transport.aclose()

    def _model(self) -> Model:
        if not self._web.search_model:
            return self._session.model
        if self._search_model is None:
            self._search_model = self._models.connect(self._web.search_model)
        return self._search_model
