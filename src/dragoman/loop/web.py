"""The web for an agent: who searches, and who fetches. What does the work is loaded when it is first called."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.http.clients import HttpClient, open_transport
from dragoman.tools.web_settings import HostRules
from dragoman.values.contracts import Provider, Tool, Transport
from dragoman.values.errors import Unsupported
from dragoman.values.messages import Request, Settings, ToolSpec, user

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.tools.web_search import Found

SEARCH_TOOL = "google_web_search"
SearchMode = Literal["off", "tool", "grounding"]


class Web(msgspec.Struct, frozen=True):
    """What an agent may do on the web."""

    search: SearchMode = "tool"
    """tool: the model calls google_web_search. grounding: the service searches by itself while it answers, where it can."""
    search_model: str = ""
    """Who searches, where the chat model cannot: `gemini/gemini-3.8-flash`."""
    searxng: str = ""
    """The URL of a SearXNG server: it needs no key, and goes before any model."""
    fetch: bool = True
    rules: HostRules = HostRules()
    client: HttpClient = "own"
    """The HTTP client that fetches pages and asks SearXNG; models have their own connection."""


def web_tools(web: Web, agent: Agent) -> list[Tool]:
    """Searching is offered only where somebody can search; whether it is told to the model is up to the mode."""
    tools: list[Tool] = []
    if web.searxng or web.search_model or _can_search(agent):
        from dragoman.tools.web_search import WebSearch

        searcher = _Searcher(web, agent)
        tools.append(WebSearch(searcher.search))
    if web.fetch:
        from dragoman.tools.web_fetch import WebFetch

        async def consult(prompt: str, text: str) -> str:
            from dragoman.tools.web_fetch import PageReader

            model = agent.model  # of now: it may have been changed
            return await PageReader(agent.provider, model, lambda usage: agent.history.spend(model, usage, "web_fetch"))(prompt, text)

        tools.append(WebFetch(partial(_pin, web.client), outputs=agent.outputs, consult=consult, rules=web.rules))
    return tools


def can_ground(provider: Provider, model: str, tools: tuple[ToolSpec, ...]) -> bool:
    """Whether the service searches by itself beside these tools. Nothing is sent."""
    try:
        provider.prepare(Request(model, (user("?"),), tools=tools, settings=Settings(search=True)))
    except Unsupported:
        return False
    return True


def searching(
    mode: SearchMode, provider: Provider, model: str, specs: tuple[ToolSpec, ...], settings: Settings
) -> tuple[tuple[ToolSpec, ...], Settings]:
    """The tools and settings of a run that searches so. Where the service cannot do it by itself, the tool does."""
    if mode == "tool":
        return specs, settings
    without = tuple(spec for spec in specs if spec.name != SEARCH_TOOL)
    if mode == "off":
        return without, settings
    return (without, msgspec.structs.replace(settings, search=True)) if can_ground(provider, model, without) else (specs, settings)


def _can_search(agent: Agent) -> bool:
    from dragoman.tools.web_search import can_search

    return can_search(agent.provider, agent.model)


def _pin(client: HttpClient, address: str) -> Transport:
    return open_transport(client, address=address)


class _Searcher:
    """By the SearXNG server, by the search model, by the chat model: the first that is there."""

    def __init__(self, web: Web, agent: Agent) -> None:
        self._web = web
        self._agent = agent
        self._connected: tuple[Provider, str] | None = None

    async def search(self, query: str) -> Found:
        if self._web.searxng:
            return await self._ask_searxng(query)
        from dragoman.tools.search_backends import ModelSearch

        provider, model = self._searching()
        return await ModelSearch(provider, model, lambda usage: self._agent.history.spend(model, usage, "google_web_search"))(query)

    async def _ask_searxng(self, query: str) -> Found:
        from dragoman.tools.search_backends import SearxngSearch

        transport = open_transport(self._web.client)
        try:
            return await SearxngSearch(transport, self._web.searxng)(query)
        finally:
            await transport.aclose()

    def _searching(self) -> tuple[Provider, str]:
        agent = self._agent
        if not self._web.search_model:
            return agent.provider, agent.model
        if self._connected is None:
            self._connected = agent.connect_also(self._web.search_model)
        return self._connected
