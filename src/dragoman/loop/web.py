"""Web access for an agent: search and fetch. The code that does the work is loaded on the first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from dragoman.http.clients import HttpClient, open_transport
from dragoman.loop.model import Model, Models
from dragoman.loop.options import SearchMode, WebAccess
from dragoman.loop.session import Session
from dragoman.tools.output import Outputs
from dragoman.tools.web.fetch import PageReader, WebFetch
from dragoman.tools.web.search import WebSearch, can_search
from dragoman.values.calls import Tool
from dragoman.values.contracts import Provider, Transport
from dragoman.values.errors import InputError, ProviderError, Unsupported
from dragoman.values.messages import Request, Response, Settings, ToolSpec, user
from dragoman.values.tracing import traced
from dragoman.values.usage import Usage, usage_told
from dragoman.values.wrapping import WrappingProvider
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.tools.web.search import SearchResult

SEARCH_TOOL = "google_web_search"
NOBODY = "none"
"""As `search_model`: no other model than the one of the conversation."""


def web_tools(web: WebAccess, searcher: Searcher, outputs: Outputs, forbids_host: Callable[[ToolSpec, str], str]) -> list[Tool]:
    """The web tools. Search is included only if something can search; whether it is offered to the model depends on the mode.
    `forbids_host` says why a tool may not be led to another host; empty: it may."""
    tools: list[Tool] = []
    session = searcher.session
    if searcher.can_search():
        searcher.is_offered = True
        tools.append(WebSearch(searcher.search, searcher.is_by_own_service))
    if web.fetch:

        async def consult(prompt: str, text: str) -> str:
            model = session.model  # the current one: it may have been changed

            return await PageReader(searcher.metered(model, "web_fetch"), model.name)(prompt, text)

        fetch = WebFetch(
            partial(_pin, web.client),
            outputs=outputs,
            consult=consult,
            rules=web.rules,
            may_follow=lambda host: forbids_host(fetch.spec, host),
        )
        tools.append(fetch)
    return tools


def can_ground(model: Model, tools: tuple[ToolSpec, ...]) -> bool:
    """Whether the service can search on its own beside these tools (grounding). Nothing is sent."""
    return not _why_not_grounding(model, tools)


def _why_not_grounding(model: Model, tools: tuple[ToolSpec, ...]) -> str:
    try:
        model.provider.prepare(Request(model.name, (user("?"),), tools=tools, settings=Settings(search=True)))
    except Unsupported as error:
        return str(error)
    return ""


def offer_search(
    mode: SearchMode, searcher: Searcher, specs: tuple[ToolSpec, ...], settings: Settings
) -> tuple[tuple[ToolSpec, ...], Settings]:
    """The tools and settings of a run that searches in this mode. If the service cannot search on its own, the tool does."""
    without = tuple(spec for spec in specs if spec.name != SEARCH_TOOL)
    if mode == "off":
        return without, settings
    if mode == "grounding" and can_ground(searcher.session.model, without):
        return without, _searching(searcher.session.model, settings)
    nobody_any_more = searcher.is_offered and not searcher.can_search()  # the model was changed to one that cannot
    return (without if nobody_any_more else specs), settings


def ground_without_access(mode: SearchMode | None, model: Model, specs: tuple[ToolSpec, ...], settings: Settings) -> Settings:
    """The settings of a run of an agent that has no web access, and was told for this run how to search."""
    return _searching(model, settings) if mode == "grounding" and can_ground(model, specs) else settings


def require_search(mode: SearchMode | None, model: Model, specs: tuple[ToolSpec, ...]) -> None:
    """Raises InputError where an agent without web access cannot search as a run is told to."""
    if mode == "tool":
        raise InputError(say("loop.search_needs_access"))
    if mode == "grounding" and (why := _why_not_grounding(model, specs)):
        raise InputError(say("loop.grounding_needs_access", why=why))


def unmet_search(mode: SearchMode | None, session: Session, searcher: Searcher | None) -> str:
    """Says that a run does not search as it should, and what it does instead; empty where it does. `mode` is what was said for this run."""
    wanted = mode or (searcher.mode if searcher is not None else None)
    model, view = session.model, session.history.view
    if wanted == "grounding" and not view.settings.search:
        key = "loop.grounding_by_tool" if any(spec.name == SEARCH_TOOL for spec in view.tools) else "loop.grounding_by_nobody"
        return say(key, model=model.full_name, why=_why_not_grounding(model, view.tools))
    if mode == "tool" and (searcher is None or not searcher.can_search()):
        return say("loop.search_by_nobody", model=model.full_name)
    return ""


def _searching(model: Model, settings: Settings) -> Settings:
    """Answers that rest on a search are sampled as those of the tool are, unless the user chose otherwise or the model takes neither."""
    if settings.temperature is None and settings.top_p is None and model.profile.temperature:
        settings = msgspec.structs.replace(settings, temperature=0.0, top_p=1.0)
    return msgspec.structs.replace(settings, search=True)


def _can_search(model: Model) -> bool:
    return can_search(model.provider, model.name)


def _pin(client: HttpClient, address: str) -> Transport:
    return open_transport(client, address=address)


class Metered(WrappingProvider):
    """Tells what is asked and what it took, also where no answer comes: then it is not known."""

    def __init__(self, provider: Provider, on_request: Callable[[], object], on_usage: Callable[[Usage], object]) -> None:
        super().__init__(provider)
        self._on_request = on_request
        self._on_usage = on_usage

    async def generate(self, request: Request) -> Response:
        self._on_request()
        try:
            response = await traced(self.provider).generate(request)
        except BaseException as error:
            if not isinstance(error, Exception) or (isinstance(error, ProviderError) and error.may_have_cost):
                self._on_usage(Usage(incomplete=1))
            raise
        self._on_usage(usage_told(response.usage))
        return response


class Searcher:
    """Searches with the SearXNG server, the search model, the chat model, or a model of another service: the first one there is."""

    def __init__(self, web: WebAccess, session: Session, models: Models) -> None:
        self._web = web
        self.session = session
        self._models = models
        self.is_offered = False
        """Whether it is behind a tool of ours."""
        self.requests = 0
        """How often a model was asked by the web tools."""
        self._named = "" if web.search_model == NOBODY else web.search_model
        self._other: str | None = None
        """The model of another service, once it was looked for; empty: there is none."""

    @property
    def mode(self) -> SearchMode:
        """How the agent searches, unless a run is told otherwise."""
        return self._web.search

    @property
    def server(self) -> str:
        """The SearXNG server that searches; empty: a model does."""
        return self._web.searxng

    def can_search(self) -> bool:
        """Whether anything here can search the web: a server, this model, or another. Nothing is sent."""
        return bool(self._web.searxng or self._named or _can_search(self.session.model) or self._find_other())

    def is_by_own_service(self) -> bool:
        """Whether the service of the conversation searches, and nobody else learns what is searched for."""
        if self._web.searxng:
            return False
        if self._named:
            return self._named.partition("/")[0] == self.session.model.provider.name
        return _can_search(self.session.model)

    async def search(self, query: str, before_spending: Callable[[], object] = lambda: None) -> SearchResult:
        """`before_spending` is called before what it took is recorded."""
        if self._web.searxng:
            return await self._ask_searxng(query)
        from dragoman.tools.web.backends import ModelSearch

        model = self._model()
        found = await ModelSearch(self.metered(model, SEARCH_TOOL, before_spending), model.name)(query)
        return found if model is self.session.model else msgspec.structs.replace(found, by=model.full_name)

    def metered(self, model: Model, what: str, before_spending: Callable[[], object] = lambda: None) -> Provider:
        """The model's provider, for a tool: what it is asked counts, and what that took is recorded."""
        deployment = "" if model is self.session.model else model.provider.name

        def spend(usage: Usage) -> None:
            before_spending()
            self.session.history.spend(model.name, usage, what, deployment)

        return Metered(self.session.charged(model).provider, self._count_request, spend)

    def _count_request(self) -> None:
        self.requests += 1

    async def _ask_searxng(self, query: str) -> SearchResult:
        from dragoman.tools.web.backends import SearxngSearch

        transport = open_transport(self._web.client)
        try:
            return await SearxngSearch(transport, self._web.searxng)(query)
        finally:
            await transport.aclose()

    def _model(self) -> Model:
        name = self._named or ("" if _can_search(self.session.model) else self._find_other())
        return self._models.connect_once(name) if name else self.session.model

    def _find_other(self) -> str:
        """A model of another service that the user has a key for. Not for a model of this machine: what is asked of it stays here."""
        deployment = self.session.model.provider.deployment
        if self._web.search_model == NOBODY or self._models.env is None or deployment is None or deployment.local or deployment.in_process:
            return ""
        if self._other is None:
            from dragoman.loop.search_model import find_search_model

            found = find_search_model(self._models.catalog, self._models.env)
            self._other = found.name if found is not None else ""
        return self._other
