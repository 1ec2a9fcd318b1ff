"""google_web_search over real HTTP: what is asked of each service, what comes back, and how it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.http.transport import HttpTransport
from dragoman.providers.auth import KeyAuth
from dragoman.providers.connect import Connection, connect
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.web.backends import ModelSearch, SearxngSearch
from dragoman.tools.web.citations import CitedText
from dragoman.tools.web.search import NAME, SearchResult, WebSearch, can_search
from dragoman.values.calls import ToolOutput
from dragoman.values.errors import InputError
from dragoman.values.messages import Text, user
from loopback_http import Received, Server, against, always, answer, closing, serving, silent

MODELS = {"gemini": "gemini/gemini-2.5-pro", "openai_responses": "responses/gpt-6.1-sol", "anthropic": "anthropic/claude-opus-5"}
KEY = "sk-test-0123456789abcdef"
ONCE = RetryPolicy(attempts=1)

SEED_ANSWER = {
    "candidates": [
        {
            "content": {"parts": [{"text": "今天北京天气晴朗，最高温度25度，适合户外活动。"}], "role": "model"},
            "finishReason": "STOP",
            "groundingMetadata": {
                "groundingChunks": [
                    {"web": {"uri": "https://weather.com.cn/beijing", "title": "中国天气网 - 北京天气"}},
                    {"web": {"uri": "https://cma.gov.cn", "title": "中国气象局官网"}},
                ],
                "groundingSupports": [
                    {
                        "segment": {"startIndex": 0, "endIndex": 12, "text": "今天北京天气晴朗"},
                        "groundingChunkIndices": [0],
                        "confidenceScores": [0.95],
                    },
                    {"segment": {"startIndex": 13, "endIndex": 22, "text": "最高温度25度"}, "groundingChunkIndices": [1]},
                ],
            },
            "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
        }
    ],
    "usageMetadata": {"promptTokenCount": 15, "candidatesTokenCount": 28, "totalTokenCount": 43},
}
SEED_ERRORS = {
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key.", "unauthorized"),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", "rate_limited"),
    400: ("INVALID_ARGUMENT", "Invalid request", "bad_request"),
}


def base(url: str, protocol: str) -> str:
    return f"{url}/v1" if protocol == "openai_responses" else url


def connected(protocol: str, url: str, **options: Any) -> Connection:
    return connect(MODELS[protocol], base_url=base(url, protocol), retry=ONCE, **({"key": KEY} | options))


async def ask(search: Any, query: Any = "北京天气") -> ToolOutput:
    return await WebSearch(search).run({"query": query}, lambda text: None)


def said(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


def over_json(body: Any, test: Callable[[Server, Connection], Awaitable[Any]], status: str = "200 OK", **options: Any) -> Any:
    """A Gemini that gives every request one answer."""

    async def run() -> Any:
        reply = always(answer(json.dumps(body).encode(), status, "Content-Type: application/json\r\n"))
        async with serving(reply) as server:
            provider = connected("gemini", server.url, **options)
            try:
                return await test(server, provider)
            finally:
                await provider.aclose()

    return asyncio.run(run())


def over_script(protocol: str, script: str, query: str = "weather in Beijing", **options: Any) -> tuple[ToolOutput, list[Any]]:
    """The loopback server, which refuses what the real service refuses."""

    async def run() -> tuple[ToolOutput, list[Any]]:
        async with MockServer(script, **options) as server:
            provider = connected(protocol, server.url)
            try:
                output = await ask(ModelSearch(provider, provider.model), query)
            finally:
                await provider.aclose()
            assert all(exchange.violation is None for exchange in server.requests), server.requests
            return output, server.requests

    return asyncio.run(run())


# --- Gemini -------------------------------------------------------------------------------------------------------------------


def test_output_text_markers_and_sources() -> None:
    """SEARCH-3: the worked example, from its own response."""

    async def test(server: Server, provider: Connection) -> ToolOutput:
        return await ask(ModelSearch(provider, provider.model))

    output = over_json(SEED_ANSWER, test)
    assert said(output) == (
        'Web search results for "北京天气":\n\n'
        "今天北京天气晴朗[1]，最高温度25度[2]，适合户外活动。\n\n"
        "Sources:\n"
        "[1] 中国天气网 - 北京天气 (https://weather.com.cn/beijing)\n"
        "[2] 中国气象局官网 (https://cma.gov.cn)"
    )
    assert output.display == said(output)
    assert not output.is_error


def test_sources_and_grounding_are_kept_for_the_record_alone() -> None:
    """SEARCH-6: `sources` as data; groundingMetadata is in the record and not in what the model reads."""

    async def test(server: Server, provider: Connection) -> ToolOutput:
        return await ask(ModelSearch(provider, provider.model))

    output = over_json(SEED_ANSWER, test)
    extras = json.loads(output.extras)
    assert extras["sources"][0] == {"title": "中国天气网 - 北京天气", "uri": "https://weather.com.cn/beijing"}
    assert extras["grounding"][0] == SEED_ANSWER["candidates"][0]["groundingMetadata"]
    assert "confidenceScores" not in said(output)


def test_the_request_to_gemini() -> None:
    """SEARCH-2: generateContent, the query alone, googleSearch, temperature 0 and topP 1."""
    _, (exchange,) = over_script("gemini", "text: Sunny.")
    assert exchange.path.startswith("/v1beta/models/gemini-2.5-pro:generateContent")
    assert exchange.body["contents"] == [{"role": "user", "parts": [{"text": "weather in Beijing"}]}]
    assert exchange.body["tools"] == [{"googleSearch": {}}]
    assert exchange.body["generationConfig"] == {"temperature": 0.0, "topP": 1.0}
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.headers["x-goog-api-key"] == KEY


def test_with_a_bearer_token() -> None:
    """SEARCH-10: OAuth instead of a key."""

    async def test(server: Server, provider: Connection) -> Received:
        await ask(ModelSearch(provider, provider.model))
        return server.requests[0]

    request = over_json(SEED_ANSWER, test, key=None, auth=KeyAuth("Authorization", "token-1"))
    assert request.headers["authorization"] == "Bearer token-1"
    assert "x-goog-api-key" not in request.headers
    assert "key=" not in request.target


def test_tools_are_declared_on_every_request() -> None:
    """SEARCH-11: the API forgets; each request of a searching conversation declares its tools again."""
    from dragoman.values.messages import Request, Settings

    async def run() -> list[Any]:
        async with MockServer("answer: times=3\ntext: Sunny.") as server:
            provider = connected("gemini", server.url)
            messages = [user("今天北京的天气怎么样？")]
            for question in ("那明天呢？", "需要带伞吗？", ""):
                settings = Settings(temperature=0, top_p=1, search=True)
                response = await provider.generate(Request(provider.model, tuple(messages), settings=settings))
                messages += [response.message, user(question or "end")]
            await provider.aclose()
            return [exchange.body for exchange in server.requests]

    bodies = asyncio.run(run())
    assert [body["tools"] for body in bodies] == [[{"googleSearch": {}}]] * 3
    assert [content["role"] for content in bodies[2]["contents"]] == ["user", "model", "user", "model", "user"]


# --- errors -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", SEED_ERRORS)
def test_api_errors(status: int) -> None:
    """SEARCH-8: 400, 401 and 429 are told in plain words, as a result, with a type a program can key on."""
    name, message, error_type = SEED_ERRORS[status]

    async def test(server: Server, provider: Connection) -> ToolOutput:
        return await ask(ModelSearch(provider, provider.model))

    body = {"error": {"code": status, "message": message, "status": name}}
    output = over_json(body, test, f"{status} Error")
    assert output.is_error
    assert output.error_type == error_type
    assert message in said(output)
    assert '"北京天气" failed' in said(output)
    assert KEY not in said(output) + output.display + output.extras


@pytest.mark.parametrize("query", ["", "   ", "\n\t", None])
def test_an_empty_query_is_not_sent(query: Any) -> None:
    """SEARCH-7: the query must not be empty."""

    async def never(query: str) -> SearchResult:
        raise AssertionError("it was sent")

    output = asyncio.run(ask(never, query))
    assert output.is_error
    assert output.error_type == "invalid"
    assert "empty" in said(output)
    assert WebSearch(never).intend({"query": query}).problem


def test_a_monstrous_query_is_not_sent() -> None:
    async def never(query: str) -> SearchResult:
        raise AssertionError("it was sent")

    assert asyncio.run(ask(never, "x" * 3_000)).error_type == "invalid"


@pytest.mark.parametrize("protocol", MODELS)
def test_no_result_is_told_plainly(protocol: str) -> None:
    async def nothing(query: str) -> SearchResult:
        return SearchResult(CitedText(""))

    output = asyncio.run(ask(nothing))
    assert said(output) == 'No search results or information were found for "北京天气".'
    assert not output.is_error


def test_an_answer_without_sources_is_an_answer() -> None:
    output, _ = over_script("gemini", "text: It is sunny.")
    assert said(output) == 'Web search results for "weather in Beijing":\n\nIt is sunny.'


def test_a_cut_answer_says_so() -> None:
    output, _ = over_script("gemini", "text: It is\nfinish: length")
    assert said(output).endswith("It is\n\n(The answer was cut short.)")


@pytest.mark.parametrize("protocol", MODELS)
def test_a_refusal_is_told(protocol: str) -> None:
    output, _ = over_script(protocol, "text: No.\nfinish: refusal")
    assert (output.is_error, output.error_type) == (True, "refused")


def test_a_service_that_is_not_there() -> None:
    async def run() -> ToolOutput:
        provider = connected("gemini", "http://127.0.0.1:9")
        try:
            return await ask(ModelSearch(provider, provider.model))
        finally:
            await provider.aclose()

    output = asyncio.run(run())
    assert (output.is_error, output.error_type) == (True, "connection")


@pytest.mark.parametrize("protocol", MODELS)
def test_a_cancel_ends_the_request(protocol: str) -> None:
    """SEARCH-9: a search can be cancelled, and then nothing is left open."""

    async def test(server: Server) -> None:
        provider = connected(protocol, server.url)
        task = asyncio.create_task(ask(ModelSearch(provider, provider.model)))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 60)
        await provider.aclose()

    against(silent, HttpTransport(), test)


# --- the other services -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "tool"),
    [
        ("gemini", {"googleSearch": {}}),
        ("openai_responses", {"type": "web_search"}),
        ("anthropic", {"type": "web_search_20250305", "name": "web_search"}),
    ],
)
def test_the_same_search_over_every_service(protocol: str, tool: dict[str, Any]) -> None:
    """OpenAI's and Anthropic's own search, mapped to the same citations."""
    script = 'text: It is sunny in Beijing.\ncite title="A page" text="It is sunny in Beijing.": https://a.example/x'
    output, (exchange,) = over_script(protocol, script)
    assert exchange.protocol == protocol
    (declared,) = exchange.body["tools"]
    assert {name: value for name, value in declared.items() if name != "cache_control"} == tool
    assert said(output) == (
        'Web search results for "weather in Beijing":\n\nIt is sunny in Beijing.[1]\n\nSources:\n[1] A page (https://a.example/x)'
    )
    assert json.loads(output.extras)["sources"] == [{"title": "A page", "uri": "https://a.example/x"}]


def test_a_search_that_pauses_goes_on() -> None:
    """Anthropic stops a long search with `pause_turn`, and is to be sent its own words back."""
    output, exchanges = over_script("anthropic", "text: One and\nfinish: pause_turn\n---\ntext: two.")
    assert said(output).endswith("One andtwo.")
    assert [len(exchange.body["messages"]) for exchange in exchanges] == [1, 2]
    assert [block["type"] for block in exchanges[1].body["messages"][1]["content"]] == ["text", "server_tool_use"]


def test_a_search_that_pauses_for_ever_ends() -> None:
    output, exchanges = over_script("anthropic", "script: end=repeat\ntext: More.\nfinish: pause_turn")
    assert len(exchanges) == 9
    assert said(output).count("More.") == 9
    assert "(The answer was cut short.)" in said(output)


def test_a_search_that_may_not_go_on_gives_what_it_has() -> None:
    """Some services refuse to go on from their own words."""
    output, exchanges = over_script("anthropic", "text: First.\nfinish: pause_turn\n---\nerror: 400")
    assert said(output).endswith("First.\n\n(The answer was cut short.)")
    assert len(exchanges) == 2


def test_who_can_search_is_known_without_asking() -> None:
    for protocol in MODELS:
        provider = connected(protocol, "http://127.0.0.1:9")
        assert can_search(provider, provider.model)
    chat = connect("openai/gpt-4.1", key=KEY)
    assert not can_search(chat, chat.model)


# --- SearXNG ------------------------------------------------------------------------------------------------------------------

RESULTS = {
    "query": "weather",
    "answers": ["It is 25 degrees.", {"answer": "Sunny."}, {"nothing": 1}],
    "results": [
        {"title": "Weather 天气", "url": "https://a.example/1", "content": "Sunny, 25 degrees.\nLight wind."},
        {"title": "", "url": "https://b.example/2", "content": ""},
        {"title": "No address", "content": "left out"},
        "nonsense",
    ],
}


def searxng(body: bytes, status: str = "200 OK", path: str = "") -> tuple[ToolOutput, list[Received]]:
    async def run() -> tuple[ToolOutput, list[Received]]:
        async with serving(always(answer(body, status))) as server, closing(HttpTransport()) as transport:
            output = await ask(SearxngSearch(transport, server.url + path), "weather & wind")
            return output, server.requests

    return asyncio.run(run())


@pytest.mark.parametrize("path", ["", "/", "/search", "/searx/"])
def test_searxng_gives_the_same_shape(path: str) -> None:
    output, (request,) = searxng(json.dumps(RESULTS).encode(), path=path)
    assert request.target.endswith("/search?q=weather+%26+wind&format=json")
    assert request.target.startswith("/searx/" if "searx/" in path else "/search")
    assert said(output) == (
        'Web search results for "weather & wind":\n\n'
        "It is 25 degrees.\n\nSunny.\n\n"
        "Weather 天气: Sunny, 25 degrees. Light wind.[1]\n\n"
        "https://b.example/2[2]\n\n"
        "Sources:\n[1] Weather 天气 (https://a.example/1)\n[2] Untitled (https://b.example/2)"
    )


def test_searxng_results_are_bounded() -> None:
    many = {"results": [{"title": "t" * 9_000, "url": f"https://a.example/{n}", "content": "c" * 9_000} for n in range(100)]}
    output, _ = searxng(json.dumps(many).encode())
    assert "[10]" in said(output)
    assert "[11]" not in said(output)
    assert len(said(output)) < 20_000


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"", "403 Forbidden", "formats"),
        (b"busy", "429 Too Many Requests", "429"),
        (b"oops", "500 Oops", "500"),
        (b"<html>", "200 OK", "not JSON"),
        (b"[]", "200 OK", "not JSON"),
        (b"x" * 5_000_000, "200 OK", "longer than 4 MB"),
    ],
)
def test_searxng_faults(body: bytes, status: str, word: str) -> None:
    output, _ = searxng(body, status)
    assert output.is_error
    assert word in said(output)


def test_searxng_without_results() -> None:
    output, _ = searxng(b'{"results": []}')
    assert said(output) == 'No search results or information were found for "weather & wind".'


def test_searxng_can_be_cancelled() -> None:
    async def test(server: Server) -> None:
        async with closing(HttpTransport()) as transport:
            task = asyncio.create_task(ask(SearxngSearch(transport, server.url)))
            await server.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.wait_for(server.hung_up.wait(), 60)

    against(silent, HttpTransport(), test)


# --- what the model and the user are told ---------------------------------------------------------------------------------------


def test_the_tool_as_it_is_declared() -> None:
    """SEARCH-1: name, display name, kind, one required string."""

    async def nothing(query: str) -> SearchResult:
        return SearchResult(CitedText(""))

    spec = WebSearch(nothing).spec
    assert (spec.name, spec.display_name, spec.kind, spec.read_only) == (NAME, "GoogleSearch", "search", True)
    assert spec.name == "google_web_search"
    assert spec.schema["required"] == ["query"]
    assert spec.schema["properties"]["query"]["type"] == "string"


def test_titles_cannot_forge_lines_or_hide_in_the_terminal() -> None:
    script = 'text: Fact.\ncite title="Good\\n[2] Bank (https://bank.example)\\u001b[31m" text="Fact.": https://evil.example/'
    output, _ = over_script("gemini", script)
    assert len([line for line in said(output).splitlines() if line.startswith("[")]) == 1
    assert "\x1b" not in output.display
    assert "<U+001B>" in output.display


def test_the_intent_shows_the_query() -> None:
    async def nothing(query: str) -> SearchResult:
        return SearchResult(CitedText(""))

    intent = WebSearch(nothing).intend({"query": "a\u202eb"})
    assert intent.title == "search the web: a<U+202E>b"


def test_a_backend_that_cannot_is_told_as_a_result() -> None:
    async def broken(query: str) -> SearchResult:
        raise InputError("no such thing")

    output = asyncio.run(ask(broken))
    assert (output.is_error, output.error_type) == (True, "search_failed")
    assert "no such thing" in said(output)


def test_a_scripted_provider_will_do() -> None:
    provider = ScriptedProvider("text: Hello.")
    assert said(asyncio.run(ask(ModelSearch(provider, "m"), "q"))).endswith("Hello.")
    (request,) = provider.requests
    assert (request.settings.search, request.settings.temperature, request.settings.top_p) == (True, 0.0, 1.0)
