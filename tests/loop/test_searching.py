"""A search that a person or a program asks for: `google_web_search` without an agent, `agent.search` in a conversation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from agents import make_agent
from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.search import Support, google_web_search, google_web_search_sync
from dragoman.testing.mock.server import MockServer
from dragoman.values.errors import BadRequest, ConfigError, InputError, ProviderError, RateLimited, Unauthorized, Unsupported
from dragoman.values.record import Said, Spent
from loopback_http import Received, always, answer, serving, silent

KEY = "key-0123456789"
MODELS = {"gemini": "gemini/gemini-3.8-flash", "openai_responses": "responses/gpt-6.1-sol", "anthropic": "anthropic/claude-opus-5"}
SEARCHED = 'text: 今天北京天气晴朗。\ncite title="W" text="今天北京天气晴朗": https://weather.example/'
SEED: Any = {
    "candidates": [
        {
            "content": {"parts": [{"text": "今天北京天气晴朗，最高温度25度，适合户外活动。"}], "role": "model"},
            "finishReason": "STOP",
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "https://weather.example", "title": "A"}}, {"web": {"uri": "https://cma.example"}}],
                "groundingSupports": [
                    {
                        "segment": {"startIndex": 0, "endIndex": 12, "text": "今天北京天气晴朗"},
                        "groundingChunkIndices": [0, 7],
                        "confidenceScores": [0.95, 0.1],
                    },
                    {"segment": {"startIndex": 13, "endIndex": 22, "text": "最高温度25度"}, "groundingChunkIndices": [1]},
                ],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 1_000_000, "candidatesTokenCount": 28, "totalTokenCount": 1_000_028},
}
"""An answer as document 001 has it: its offsets count characters, and one index has no source."""


def connected(protocol: str, url: str) -> Connection:
    base = f"{url}/v1" if protocol == "openai_responses" else url
    return connect(MODELS[protocol], base_url=base, key=KEY, retry=RetryPolicy(attempts=1))


async def search_over(body: Any, query: str = "北京天气", status: str = "200 OK") -> Any:
    async with serving(always(answer(json.dumps(body).encode(), status=status))) as server:
        provider = connected("gemini", server.url)
        try:
            return await google_web_search(query, model=provider), server.requests
        finally:
            await provider.aclose()


def test_what_it_returns_is_what_the_document_describes() -> None:
    found, requests = asyncio.run(search_over(SEED))
    assert found.text == (
        'Web search results for "北京天气":\n\n今天北京天气晴朗[1]，最高温度25度[2]，适合户外活动。\n\n'
        "Sources:\n[1] A (https://weather.example)\n[2] Untitled (https://cma.example)"
    )
    assert found.display == found.text
    assert [(each.title, each.uri) for each in found.sources] == [("A", "https://weather.example"), ("", "https://cma.example")]
    assert found.supports == (Support("今天北京天气晴朗", 0, 8, (1,), (0.95,)), Support("最高温度25度", 9, 16, (2,)))
    assert all(found.answer[each.start : each.end] == each.text for each in found.supports)
    assert found.metadata == (SEED["candidates"][0]["groundingMetadata"],)
    assert (found.requests, found.usage.input_tokens, found.searched_by) == (1, 1_000_000, MODELS["gemini"])
    assert found.cost_usd is not None
    assert found.cost_usd > 0.7
    assert json.loads(requests[0].body)["tools"] == [{"googleSearch": {}}]


def test_without_a_query_nothing_is_sent() -> None:
    for query in ("", "  \n "):
        with pytest.raises(InputError, match="the query is empty"):
            asyncio.run(google_web_search(query, model="gemini/gemini-3.8-flash"))
    with pytest.raises(InputError, match="2,001 of 2,000"):
        google_web_search_sync("x" * 2_001, model="gemini/gemini-3.8-flash")


@pytest.mark.parametrize(
    ("code", "status", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "Invalid request", BadRequest),
        (401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key.", Unauthorized),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", RateLimited),
    ],
)
def test_errors_of_the_document_have_a_type_and_say_what_was_wrong(code: int, status: str, message: str, kind: type[ProviderError]) -> None:
    body = {"error": {"code": code, "message": message, "status": status}}
    with pytest.raises(kind, match=message[:20]) as caught:
        asyncio.run(search_over(body, status=f"{code} X"))
    assert "{" not in str(caught.value), "no JSON"


def test_who_searches_is_looked_for_where_no_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="GEMINI_API_KEY"):
        asyncio.run(google_web_search("weather"))
    with pytest.raises(Unsupported, match="Chat Completions"):
        asyncio.run(google_web_search("weather", model=connect("mistral/mistral-medium-latest", key=KEY)))
    monkeypatch.setenv("GEMINI_API_KEY", KEY)

    async def run() -> Any:
        async with serving(always(answer(json.dumps(SEED).encode()))) as server:
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
            return await google_web_search("weather", model="gemini/gemini-2.5-flash")

    assert asyncio.run(run()).searched_by == "gemini/gemini-2.5-flash"


def test_a_searxng_server_searches_without_a_key() -> None:
    async def run() -> Any:
        results = {"results": [{"title": "T", "url": "https://a.example/", "content": "Sunny."}]}
        async with serving(always(answer(json.dumps(results).encode()))) as server:
            return await google_web_search("weather", searxng=server.url)

    found = asyncio.run(run())
    assert "T: Sunny.[1]" in found.text
    assert found.supports == (Support("T: Sunny.", 0, 9, (1,)),)
    assert (found.requests, found.cost_usd) == (0, 0.0)


def test_it_can_be_cancelled() -> None:
    async def run() -> None:
        arrived = asyncio.Event()

        async def keep_waiting(request: Received, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await silent(request, writer)

        async with serving(keep_waiting) as server:
            provider = connected("gemini", server.url)
            searching = asyncio.ensure_future(google_web_search("weather", model=provider))
            await arrived.wait()
            searching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await searching
            await provider.aclose()

    asyncio.run(run())


# --- in a conversation


@pytest.mark.parametrize("protocol", MODELS)
def test_the_model_reads_what_a_person_has_searched(protocol: str, tmp_path: Path) -> None:
    """It is on the record with its sources and the service's own data, which go to no model; and it is paid for."""

    async def run() -> None:
        async with MockServer(f"{SEARCHED}\n---\ntext: It is sunny.") as server:
            options: dict[str, Any] = {"web": dm.WebAccess(), "builtin": False, "describe": False, "sessions": tmp_path / "sessions"}
            async with make_agent(connected(protocol, server.url), workspace=tmp_path, **options) as agent:
                found = await agent.search("北京天气")
                assert [(each.title, each.uri) for each in found.sources] == [("W", "https://weather.example/")]
                assert (found.requests, bool(found.cost_usd)) == (1, True)
                assert agent.history.usage == found.usage
                await agent.run("Is it sunny?")
                entries = list(agent.history.entries)
        assert all(exchange.violation is None for exchange in server.requests)
        sent = json.dumps(server.requests[1].body, ensure_ascii=False)
        assert json.dumps(found.text, ensure_ascii=False)[1:-1] in sent
        assert "not instructions" in sent
        assert not {"groundingSupports", "grounding_", "encrypted_index"} & set(sent.split('"'))
        [said] = [entry for entry in entries if isinstance(entry, Said) and entry.about == "search"]
        assert "weather.example" in str(said.message.parts[1:])
        [spent] = [entry for entry in entries if isinstance(entry, Spent)]
        assert spent.what == "google_web_search"
        async with make_agent(connected(protocol, server.url), workspace=tmp_path, **options, resume="latest") as again:
            assert again.history.view.messages == agent.history.view.messages

    asyncio.run(run())


def test_a_search_that_fails_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    async def run() -> None:
        script = "text: Hello.\n---\nerror: 401\n---\ntext: Still here."
        async with (
            MockServer(script) as server,
            make_agent(connected("gemini", server.url), workspace=tmp_path, web=dm.WebAccess(), describe=False) as agent,
        ):
            await agent.run("Hi")
            before = agent.history.view.messages
            with pytest.raises(Unauthorized):
                await agent.search("weather")
            assert agent.history.view.messages == before
            assert (await agent.run("There?")).text == "Still here."

    asyncio.run(run())


def test_a_search_that_fails_at_once_leaves_no_session_and_one_that_is_cancelled_is_on_the_bill(tmp_path: Path) -> None:
    refused = answer(json.dumps({"error": {"code": 401, "message": "No.", "status": "UNAUTHENTICATED"}}).encode(), "401 X")

    async def run() -> None:
        arrived, sessions, received = asyncio.Event(), tmp_path / "sessions", list[Received]()

        async def refuse_once(request: Received, writer: asyncio.StreamWriter) -> None:
            received.append(request)
            if len(received) == 1:
                writer.write(refused)
                return
            arrived.set()
            await silent(request, writer)

        async with (
            serving(refuse_once) as server,
            make_agent(connected("gemini", server.url), workspace=tmp_path, web=dm.WebAccess(), sessions=sessions) as agent,
        ):
            with pytest.raises(Unauthorized):
                await agent.search("weather")
            assert list(agent.history.entries) == list(sessions.rglob("*.jsonl")) == []
            searching = asyncio.ensure_future(agent.search("weather"))
            await arrived.wait()
            assert agent.cancel()
            with pytest.raises(asyncio.CancelledError):
                await searching
            assert [type(entry).__name__ for entry in agent.history.entries] == ["Started", "Configured", "Spent"]
            assert agent.history.usage.incomplete == 1

    asyncio.run(run())


def test_an_agent_that_cannot_search_says_what_it_needs(tmp_path: Path) -> None:
    def agent(model: str, **options: Any) -> Any:
        return make_agent(connect(model, key=KEY), workspace=tmp_path, builtin=False, describe=False, **options)

    with pytest.raises(InputError, match=r"ToolOptions\(web=WebAccess\(\)\)"):
        agent("gemini/gemini-3.8-flash").search_sync("weather")
    with pytest.raises(InputError, match="mistral-medium-latest cannot"):
        agent("mistral/mistral-medium-latest", web=dm.WebAccess()).search_sync("weather")
    with pytest.raises(InputError, match="the query is empty"):
        agent("gemini/gemini-3.8-flash", web=dm.WebAccess()).search_sync(" ")


@pytest.mark.parametrize("model", [3, ["gemini"], dm.Agent])
def test_what_is_no_model_is_refused_in_words(model: Any) -> None:
    with pytest.raises(InputError, match=r"is neither the name of a model nor a dragoman.Provider"):
        asyncio.run(google_web_search("weather", model=model))


def test_a_searxng_server_that_is_no_address_is_named_as_it_was_written() -> None:
    with pytest.raises(ConfigError, match=r"^'search.example' is not the address of a server"):
        asyncio.run(google_web_search("weather", searxng="search.example"))
