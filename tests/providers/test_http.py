"""The provider over real HTTP on loopback: what each call sends, what comes back, and how odd servers are borne."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager

import pytest

from destinations import MAIN, connection
from dragoman import RetryPolicy, Settings, Thinking, ToolSpec, build_request, connect
from dragoman.providers.connect import Connection
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules
from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import RateLimited, StreamBroken, Unauthorized, Unsupported
from dragoman.values.events import ResponseFinished, StreamEvent, TextDelta
from dragoman.values.messages import FinishReason

VERTEX_PATH = "/v1/projects/p/locations/global/publishers/google"
BASE = {"gemini": "", "anthropic": "", "openai_chat": "/v1", "openai_responses": "/v1", "vertex": VERTEX_PATH}
ONCE = RetryPolicy(attempts=1)
TOOL = ToolSpec.of("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def at(where: str, url: str, **options: object) -> Connection:
    return connection(where, url + BASE[where], retry=ONCE, **options)


async def events_of(provider: Connection, prompt: str = "hi") -> list[StreamEvent]:
    async with aclosing(provider.stream(build_request(provider.model, prompt))) as events:
        return [event async for event in events]


def served(script: str, use: Callable[[MockServer], Awaitable[object]], **options: object) -> object:
    async def main() -> object:
        async with MockServer(script, **options) as server:  # type: ignore[arg-type]
            return await use(server)

    return asyncio.run(main())


@pytest.mark.parametrize("where", MAIN)
def test_generate_and_stream_say_the_same(where: str) -> None:
    async def use(server: MockServer) -> None:
        provider = at(where, server.url)
        whole = await provider.generate(build_request(provider.model, "hi"))
        last = (await events_of(provider))[-1]
        assert isinstance(last, ResponseFinished)
        assert whole.message.text == last.response.message.text == "Hello 世界"
        assert whole.usage == last.response.usage
        assert whole.finish == last.reason == FinishReason.STOP
        await provider.aclose()

    served("answer: times=2\ntext: Hello 世界\nusage: fresh=7 cache_read=3 output=2", use)


@pytest.mark.parametrize("where", MAIN)
def test_the_connection_is_reused(where: str) -> None:
    """One HTTP client: three requests, one connection, also after streams."""

    async def use(server: MockServer) -> None:
        provider = at(where, server.url)
        for _ in range(3):
            await events_of(provider)
        assert len({exchange.headers.get("host") for exchange in server.requests}) == 1
        assert server.connections == 1
        await provider.aclose()

    served("answer: times=3\ntext: hi", use)


@pytest.mark.parametrize("where", ["gemini", "anthropic", "openai_responses"])
def test_tokens_are_counted_where_the_service_counts(where: str) -> None:
    async def use(server: MockServer) -> None:
        provider = at(where, server.url)
        assert await provider.count_tokens(build_request(provider.model, "How many?", system="Be brief.", tools=[TOOL])) > 0
        assert server.requests[0].violation is None
        await provider.aclose()

    served("", use)


def test_a_model_without_tools_says_so_before_anything_is_sent() -> None:
    provider = connect("openai/gpt-6.1-sol", key="k")
    with pytest.raises(Unsupported, match=r"openai/gpt-6\.1-sol takes no tools over this protocol"):
        provider.prepare(build_request(provider.model, "hi", tools=[TOOL]))


def test_chat_completions_do_not_count() -> None:
    with pytest.raises(Unsupported, match="cannot count tokens"):
        asyncio.run(connection("openai_chat").count_tokens(build_request("m", "hi")))


@pytest.mark.parametrize("where", ["gemini", "openai_chat", "openai_responses"])
def test_texts_are_embedded_where_the_service_embeds(where: str) -> None:
    async def use(server: MockServer) -> None:
        provider = at(where, server.url)
        vectors = await provider.embed(["one", "two"], "" if where != "openai_responses" else "text-embedding-3-small")
        assert len(vectors) == 2
        assert all(isinstance(number, float) for vector in vectors for number in vector)
        assert vectors[0] != vectors[1]
        await provider.aclose()

    served("", use)


@pytest.mark.parametrize(
    ("model", "method"), [("", "embedContent"), ("gemini-embedding-001", "predict"), ("text-embedding-005", "predict")]
)
def test_vertex_embeds_one_text_a_request(model: str, method: str) -> None:
    """It has no method for several: `embedContent` for gemini-embedding-2 and later, `predict` for the models before."""

    async def use(server: MockServer) -> None:
        provider = at("vertex", server.url)
        vectors = await provider.embed(["one", "two", "one"], model)
        assert vectors[0] == vectors[2] != vectors[1]
        name = model or "gemini-embedding-2"
        assert [exchange.path.rpartition("/")[2] for exchange in server.requests] == [f"{name}:{method}"] * 3
        text = "one" if method == "predict" else {"parts": [{"text": "one"}]}
        body = {"instances": [{"content": text}]} if method == "predict" else {"content": text}
        assert server.requests[0].body == body
        await provider.aclose()

    served("", use)


def test_the_gemini_api_embeds_a_hundred_texts_a_request() -> None:
    async def use(server: MockServer) -> None:
        provider = at("gemini", server.url)
        vectors = await provider.embed([f"text {number}" for number in range(101)])
        assert len(vectors) == 101
        assert [len(exchange.body["requests"]) for exchange in server.requests] == [100, 1]
        assert await provider.embed([]) == []
        await provider.aclose()

    served("", use)


@pytest.mark.parametrize(("limit", "streamed"), [(None, True), (65_536, True), (32_768, False), (1_000, False)])
def test_an_answer_too_long_for_one_piece_is_streamed(limit: int | None, streamed: bool) -> None:
    """Gemini 4 gives 32,768 tokens at most without streaming, and refuses a request for more."""

    async def use(server: MockServer) -> None:
        provider = connect("gemini/gemini-4-argon", key="k", base_url=server.url)
        settings = Settings(max_output_tokens=limit)
        response = await provider.generate(build_request(provider.model, "A story, please.", settings=settings))
        assert (response.message.text, response.finish) == ("Once upon a time.", FinishReason.STOP)
        assert server.requests[0].path.endswith(":streamGenerateContent?alt=sse" if streamed else ":generateContent")
        await provider.aclose()

    served("text: Once upon a time.", use)


def test_vertex_searches_beside_tools() -> None:
    """Without the flag that the Gemini API wants: Vertex refuses the field."""

    async def use(server: MockServer) -> None:
        provider = at("vertex", server.url)
        request = build_request(provider.model, "Weather?", tools=[TOOL], settings=Settings(search=True))
        response = await provider.generate(request)
        assert response.message.text == "Sunny."
        assert server.requests[0].violation is None
        assert "includeServerSideToolInvocations" not in str(server.requests[0].body)
        await provider.aclose()

    served("text: Sunny.", use, rules=Rules(thought_signatures=True))


def test_anthropic_does_not_embed() -> None:
    with pytest.raises(Unsupported, match="no embedding"):
        asyncio.run(connection("anthropic").embed(["x"]))
    with pytest.raises(Unsupported, match="Anthropic has no embeddings"):
        asyncio.run(connection("anthropic").embed(["x"], "some-model"))


@pytest.mark.parametrize("where", MAIN)
def test_structured_output_thinking_and_search_are_asked_for_in_each_services_words(where: str) -> None:
    schema = '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}'

    async def use(server: MockServer) -> None:
        provider = at(where, server.url)
        settings = Settings(response_schema=schema, thinking=Thinking("high"), max_output_tokens=2000)
        await provider.generate(build_request(provider.model, "hi", settings=settings))
        if where != "openai_chat":
            await provider.generate(build_request(provider.model, "hi", settings=Settings(search=True)))
        assert [exchange.violation for exchange in server.requests] == [None] * len(server.requests)
        await provider.aclose()

    served('answer: times=2\ntext: "{}"', use)


@pytest.mark.parametrize("where", MAIN)
def test_a_wrong_key_is_told_plainly_and_once(where: str) -> None:
    async def use(server: MockServer) -> None:
        provider = at(where, server.url)
        with pytest.raises(Unauthorized, match=r"check [A-Z_]+_KEY"):
            await events_of(provider)
        assert len(server.requests) == 1
        await provider.aclose()

    served("text: hi", use, key="another-key")


class Renewed:
    """A credential that is stale the first time."""

    def __init__(self) -> None:
        self.key = "stale"
        self.refreshed = 0

    async def headers(self, request: HttpRequest | None = None) -> dict[str, str]:
        assert request is not None, "so that it could be signed"
        assert request.body
        return {"x-api-key": self.key}

    async def refresh(self, refused: Mapping[str, str]) -> bool:
        assert refused == {"x-api-key": "stale"}
        self.refreshed += 1
        self.key = "fresh-key"
        return True

    def secrets(self) -> tuple[str, ...]:
        return (self.key,)


def test_a_refused_credential_is_renewed_once() -> None:
    async def use(server: MockServer) -> None:
        auth = Renewed()
        provider = at("anthropic", server.url, auth=auth)
        assert isinstance((await events_of(provider))[-1], ResponseFinished)
        assert auth.refreshed == 1
        await provider.aclose()

    served("text: hi", use, key="fresh-key")


# --- servers that do not stream, or not quite ------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(head: str, body: bytes) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def chat_answered_with(head: str, body: bytes) -> list[StreamEvent]:
    async def main() -> list[StreamEvent]:
        async with answering(head, body) as url:
            provider = at("openai_chat", url)
            try:
                return await events_of(provider)
            finally:
                await provider.aclose()

    return asyncio.run(main())


def test_a_server_that_ignores_stream_is_still_read() -> None:
    body = b'{"id":"x","choices":[{"message":{"content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}'
    events = chat_answered_with("200 OK\r\nContent-Type: application/json", body)
    assert TextDelta("whole") in events
    assert isinstance(events[-1], ResponseFinished)


def test_an_error_under_status_200_is_an_error() -> None:
    with pytest.raises(RateLimited, match="too fast"):
        chat_answered_with("200 OK\r\nContent-Type: application/json", b'{"error":{"message":"too fast","code":429}}')


@pytest.mark.parametrize("body", [b"", b"<html>login</html>", b"data: {}", b"null", b"[]", b'{"choices":[]}', b'{"choices":[null]}'])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
def test_anything_else_is_a_broken_stream(body: bytes, kind: str) -> None:
    with pytest.raises(StreamBroken):
        chat_answered_with(f"200 OK\r\nContent-Type: {kind}", body)


def test_a_web_page_is_named_and_not_asked_for_again() -> None:
    with pytest.raises(StreamBroken, match="a web page came") as raised:
        chat_answered_with("200 OK\r\nContent-Type: text/html; charset=utf-8", b"<html>Sign in to the network</html>")
    assert not raised.value.retryable
