"""Search by another key's service: which model is chosen, for whom, and what a change of models makes of it."""

from __future__ import annotations

import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.loop.options import ToolOptions, WebAccess
from dragoman.loop.search_model import find_search_model
from dragoman.providers.catalog import builtin_catalog
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.messages import Request
from dragoman.values.profile import Deployment, Profile
from scenarios.workshop import play

CATALOG = builtin_catalog()


class Chat(ScriptedProvider):
    """A scripted model of a service that cannot search."""

    def __init__(self, script: str, name: str = "mistral") -> None:
        super().__init__(script, name=name)

    @property
    def deployment(self) -> Deployment:
        return Deployment(self.name, "openai_chat", "")

    def prepare(self, request: Request):  # type: ignore[no-untyped-def]
        from dragoman.values.errors import Unsupported

        if request.settings.search:
            raise Unsupported("no search")
        return super().prepare(request)


def found(**env: str) -> tuple[str, str] | None:
    return find_search_model(CATALOG, env)


def test_no_key_means_no_model() -> None:
    assert found() is None
    assert found(MISTRAL_API_KEY="k", GROQ_API_KEY="k") is None, "they cannot search either"
    assert found(GEMINI_API_KEY="  ") is None


def test_the_cheapest_of_several_is_taken() -> None:
    gemini = (f"gemini/{CATALOG['gemini'].default_model}", "GEMINI_API_KEY")
    assert found(ANTHROPIC_API_KEY="k", GEMINI_API_KEY="k", OPENAI_API_KEY="k") == gemini
    dear = CATALOG.with_rows({"gemini": {"models": {CATALOG["gemini"].default_model: {"prices": {"input": 99, "output": 99}}}}})
    other = find_search_model(dear, {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"})
    assert other is not None
    assert other.name == f"anthropic/{CATALOG['anthropic'].default_model}"


def test_openais_key_serves_its_responses() -> None:
    assert found(OPENAI_API_KEY="k") == (f"responses/{CATALOG['responses'].default_model}", "OPENAI_API_KEY")


def test_a_service_behind_another_address_is_not_taken() -> None:
    assert found(OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:1234/v1") is None


def test_what_needs_more_than_a_key_and_services_of_ones_own_are_not_taken() -> None:
    assert found(AZURE_OPENAI_API_KEY="k", GOOGLE_ACCESS_TOKEN="k", GOOGLE_CLOUD_PROJECT="p") is None
    own = {"protocol": "anthropic", "base_url": "https://llm.example", "key_env": ["CORP_KEY"], "default_model": "big"}
    assert find_search_model(CATALOG.with_rows({"corp": own}), {"CORP_KEY": "k"}) is None


def test_a_key_that_a_command_prints_counts() -> None:
    rows = CATALOG.with_rows({"gemini": {"key_command": ["pass", "show", "gemini"]}})
    assert find_search_model(rows, {}) == (f"gemini/{CATALOG['gemini'].default_model}", "key_command")


def offered(agent: Agent) -> bool:
    return "google_web_search" in agent.tools.names


def test_an_agent_by_name_is_offered_it_and_one_with_a_provider_of_its_own_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives a provider says who is talked to; keys that lie about in the environment are not used behind their back."""
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    web = ToolOptions(web=WebAccess())
    assert offered(Agent("mistral/mistral-medium-latest", tools=web))
    assert not offered(Agent("mistral/mistral-medium-latest", tools=ToolOptions(web=WebAccess(search_model="none"))))
    assert not offered(Agent("ollama/anything", tools=web))
    assert not offered(Agent(Chat("text: no"), tools=web))


def test_where_nobody_can_search_any_more_it_is_not_offered() -> None:
    async def go() -> None:
        first, second = ScriptedProvider("text: One.", name="first"), Chat("text: Two.")
        agent = make_agent(first, builtin=False, describe=False, web=WebAccess(fetch=False))
        await agent.run("a")
        agent.change_model(second)
        await agent.run("b")
        assert [[tool.name for tool in each.requests[0].tools] for each in (first, second)] == [["google_web_search"], []]

    play(go)


def test_a_profile_without_prices_comes_last() -> None:
    unpriced = CATALOG.with_rows({"gemini": {"default_model": "new-one", "models": {"new-one": {"context_window": 1_000}}}})
    assert Profile().prices is None
    other = find_search_model(unpriced, {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"})
    assert other is not None
    assert other.name.startswith("anthropic/")
