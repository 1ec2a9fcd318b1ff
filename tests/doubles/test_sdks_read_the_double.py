"""The official SDKs are oracles: what they read from the loopback server is what the script says, streamed or not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.testing.mock.server import MockServer
from dragoman.testing.script import Source
from lazily import Lazily

if TYPE_CHECKING:
    import anthropic
    import httpx2
    import openai
    from google import genai
    from google.genai import errors as genai_errors
    from google.genai import types as genai_types
else:
    anthropic, httpx2, openai, genai = map(Lazily, ("anthropic", "httpx2", "openai", "google.genai"))
    genai_errors, genai_types = map(Lazily, ("google.genai.errors", "google.genai.types"))

SCRIPT = """\
thought signature=c2lnbmF0dXJl piece=4: I should look at both files.
text piece=5: Let me read them: naïve 文字 \U0001f642.
call id=call_a piece=6: read_file {"path": "a.txt"}
call id=call_b: read_file {"path": "b.txt", "lines": [1, 2]}
usage: fresh=100 cache_read=50 output=20 thought=7
"""
THOUGHT = "I should look at both files."
TEXT = "Let me read them: naïve 文字 \U0001f642."
ARGUMENTS = ['{"path": "a.txt"}', '{"path": "b.txt", "lines": [1, 2]}']
DECODED: list[dict[str, Any]] = [{"path": "a.txt"}, {"path": "b.txt", "lines": [1, 2]}]
KEY = "a-key"

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def against(source: Source, client: Callable[[str], Awaitable[None]]) -> MockServer:
    """Run a client against a server that plays the source, and hand back the server for questions."""

    async def run() -> MockServer:
        async with MockServer(source, key=KEY) as server:
            await client(server.url)
        return server

    return asyncio.run(run())


# --- OpenAI Chat ----------------------------------------------------------------------------------------------------------

CHAT: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [{"role": "user", "content": "Read both files."}],
    "tools": [{"type": "function", "function": {"name": "read_file", "description": "Read", "parameters": SCHEMA}}],
}


def openai_client(url: str, key: str = KEY) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


def test_openai_reads_a_chat_completion() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk:
            completion = await sdk.chat.completions.create(**CHAT)
        message = completion.choices[0].message
        assert (message.content, message.role) == (TEXT, "assistant")
        assert (message.model_extra or {})["reasoning_content"] == THOUGHT
        calls = message.tool_calls or []
        assert [(call.id, call.type) for call in calls] == [("call_a", "function"), ("call_b", "function")]
        assert [call.function.arguments for call in calls if call.type == "function"] == ARGUMENTS
        assert completion.choices[0].finish_reason == "tool_calls"
        check_chat_usage(completion.usage)

    exchange = against(SCRIPT, client).requests[0]
    assert (exchange.protocol, exchange.model, exchange.status, exchange.outcome) == ("openai_chat", "gpt-5", 200, "answered")


def test_openai_reads_a_streamed_chat_completion() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk, sdk.chat.completions.stream(**CHAT, stream_options={"include_usage": True}) as stream:
            thought = ""
            async for event in stream:
                if event.type == "chunk" and event.chunk.choices:
                    thought += (event.chunk.choices[0].delta.model_extra or {}).get("reasoning_content") or ""
            completion = await stream.get_final_completion()
        message = completion.choices[0].message
        assert (thought, message.content) == (THOUGHT, TEXT)
        calls = message.tool_calls or []
        assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
            ("call_a", "read_file", ARGUMENTS[0]),
            ("call_b", "read_file", ARGUMENTS[1]),
        ]
        assert completion.choices[0].finish_reason == "tool_calls"
        check_chat_usage(completion.usage)

    against(SCRIPT, client)


def check_chat_usage(usage: Any) -> None:
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (150, 20, 170)
    assert usage.prompt_tokens_details.cached_tokens == 50
    assert usage.completion_tokens_details.reasoning_tokens == 7


def test_openai_gets_no_usage_chunk_it_did_not_ask_for() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk:
            chunks = [chunk async for chunk in await sdk.chat.completions.create(**CHAT, stream=True)]
        assert all(chunk.usage is None and len(chunk.choices) == 1 for chunk in chunks)
        assert chunks[-1].choices[0].finish_reason == "stop"

    against("text: Hello.", client)


def test_openai_reads_citations_and_a_refusal() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk:
            cited = await sdk.chat.completions.create(**CHAT)
            refused = await sdk.chat.completions.create(**CHAT)
        annotation = (cited.choices[0].message.annotations or [])[0].url_citation
        assert (annotation.url, annotation.title, annotation.start_index, annotation.end_index) == ("https://example.org", "A page", 0, 5)
        assert refused.choices[0].message.refusal == "No."

    against('text: Hello there.\ncite title="A page" text=Hello: https://example.org\n---\nfinish: refusal "No."', client)


# --- OpenAI Responses -----------------------------------------------------------------------------------------------------

RESPONSES: dict[str, Any] = {
    "model": "gpt-5",
    "input": [{"role": "user", "content": "Read both files."}],
    "tools": [{"type": "function", "name": "read_file", "description": "Read", "parameters": SCHEMA, "strict": False}],
    "store": False,
    "include": ["reasoning.encrypted_content"],
}


def test_openai_reads_a_response() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk:
            check_response(await sdk.responses.create(**RESPONSES))

    against(SCRIPT, client)


def test_openai_reads_a_streamed_response() -> None:
    async def client(url: str) -> None:
        kinds: list[str] = []
        numbers: list[int] = []
        text = summary = ""
        async with openai_client(url) as sdk, sdk.responses.stream(**RESPONSES) as stream:
            async for event in stream:
                kinds.append(event.type)
                numbers.append(event.sequence_number)
                if event.type == "response.output_text.delta":
                    text += event.delta
                if event.type == "response.reasoning_summary_text.delta":
                    summary += event.delta
            check_response(await stream.get_final_response())
        assert (text, summary) == (TEXT, THOUGHT)
        assert numbers == list(range(len(numbers)))
        assert list(dict.fromkeys(kinds)) == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.completed",
        ]

    against(SCRIPT, client)


def check_response(response: Any) -> None:
    reasoning, message, first, second = response.output
    assert (reasoning.summary[0].text, reasoning.encrypted_content) == (THOUGHT, "c2lnbmF0dXJl")
    assert (response.output_text, message.content[0].text) == (TEXT, TEXT)
    assert [(call.call_id, call.name, call.arguments, call.status) for call in (first, second)] == [
        ("call_a", "read_file", ARGUMENTS[0], "completed"),
        ("call_b", "read_file", ARGUMENTS[1], "completed"),
    ]
    assert response.status == "completed"
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (150, 20, 170)
    assert (usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens) == (50, 7)


def test_openai_reads_how_a_response_ends() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk:
            cut = await sdk.responses.create(**RESPONSES)
            assert (cut.status, cut.incomplete_details and cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
            refused = await sdk.responses.create(**RESPONSES)
            assert [part.type for item in refused.output if item.type == "message" for part in item.content] == ["refusal"]
            failed = await sdk.responses.create(**RESPONSES)
            assert (failed.status, failed.error and failed.error.message) == ("failed", "Broken.")
            cited = await sdk.responses.create(**RESPONSES)
            assert cited.model_dump()["output"][0]["content"][0]["annotations"][0]["url"] == "https://example.org"

    source = 'text: half\nfinish: length\n---\nfinish: refusal\n---\nfinish: failed "Broken."\n---\ntext: Hello\ncite: https://example.org'
    against(source, client)


def test_openai_counts_embeds_and_lists() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as sdk:
            assert (await sdk.responses.input_tokens.count(model="gpt-5", input="Hello there")).input_tokens > 0
            vectors = await sdk.embeddings.create(model="text-embedding-3-small", input=["a", "b", "a"])
            assert [each.index for each in vectors.data] == [0, 1, 2]
            assert vectors.data[0].embedding == vectors.data[2].embedding != vectors.data[1].embedding
            assert [model.id async for model in sdk.models.list()] == ["mock-model"]

    against("", client)


# --- Anthropic ------------------------------------------------------------------------------------------------------------

MESSAGES: dict[str, Any] = {
    "model": "claude-mock",
    "max_tokens": 4096,
    "messages": [{"role": "user", "content": "Read both files."}],
    "tools": [{"name": "read_file", "description": "Read", "input_schema": SCHEMA}],
}


def anthropic_client(url: str, key: str = KEY) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)


def test_anthropic_reads_a_message() -> None:
    async def client(url: str) -> None:
        async with anthropic_client(url) as sdk:
            check_message(await sdk.messages.create(**MESSAGES))

    against(SCRIPT, client)


def test_anthropic_reads_a_streamed_message() -> None:
    async def client(url: str) -> None:
        async with anthropic_client(url) as sdk, sdk.messages.stream(**MESSAGES) as stream:
            kinds = [event.type async for event in stream]
            check_message(await stream.get_final_message())
        assert kinds[0] == "message_start"
        assert kinds[-1] == "message_stop"
        assert {"thinking", "signature", "text", "input_json", "content_block_stop", "message_delta"} <= set(kinds)

    against(SCRIPT.replace("text piece", "ping: 2\ntext piece"), client)


def check_message(message: Any) -> None:
    thinking, text, first, second = message.content
    assert (thinking.type, thinking.thinking, thinking.signature) == ("thinking", THOUGHT, "c2lnbmF0dXJl")
    assert (text.type, text.text) == ("text", TEXT)
    assert [(call.id, call.name, call.input) for call in (first, second)] == [
        ("call_a", "read_file", DECODED[0]),
        ("call_b", "read_file", DECODED[1]),
    ]
    assert message.stop_reason == "tool_use"
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens) == (100, 50, 0, 20)
    assert usage.output_tokens_details.thinking_tokens == 7


def test_anthropic_reads_redacted_thinking_citations_and_a_refusal() -> None:
    async def client(url: str) -> None:
        async with anthropic_client(url) as sdk, sdk.messages.stream(**MESSAGES) as stream:
            redacted, text = (await stream.get_final_message()).content
        assert (redacted.type, redacted.type == "redacted_thinking" and redacted.data) == ("redacted_thinking", "c2VjcmV0")
        assert text.type == "text"
        assert [each.url for each in text.citations or [] if each.type == "web_search_result_location"] == ["https://example.org"]
        async with anthropic_client(url) as sdk:
            refused = await sdk.messages.create(**MESSAGES)
        assert (refused.stop_reason, refused.stop_details and refused.stop_details.explanation) == ("refusal", "No.")
        assert refused.content == []

    source = 'thought redacted signature=c2VjcmV0: ""\ntext: Hello\ncite text=Hello: https://example.org\n---\nfinish: refusal "No."'
    against(source, client)


def test_anthropic_counts_and_lists() -> None:
    async def client(url: str) -> None:
        async with anthropic_client(url) as sdk:
            assert (await sdk.messages.count_tokens(model=MESSAGES["model"], messages=MESSAGES["messages"])).input_tokens > 0
            assert [model.id async for model in sdk.models.list()] == ["mock-model"]

    against("", client)


# --- Gemini ---------------------------------------------------------------------------------------------------------------


def gemini_client(url: str, key: str = KEY) -> genai.Client:
    return genai.Client(api_key=key, http_options=genai_types.HttpOptions(base_url=url, api_version="v1beta"))


def gemini_request(model: str = "gemini-mock") -> dict[str, Any]:
    declaration = genai_types.FunctionDeclaration(name="read_file", description="Read", parameters_json_schema=SCHEMA)
    config = genai_types.GenerateContentConfig(
        tools=[genai_types.Tool(function_declarations=[declaration])],
        automatic_function_calling=genai_types.AutomaticFunctionCallingConfig(disable=True),
    )
    return {"model": model, "contents": "Read both files.", "config": config}


def check_gemini_calls(parts: list[Any]) -> None:
    calls = [part for part in parts if part.function_call]
    assert [(part.function_call.id, part.function_call.name) for part in calls] == [("call_a", "read_file"), ("call_b", "read_file")]
    assert [part.function_call.args for part in calls] == DECODED
    assert [part.thought_signature for part in calls] == [b"signature", None]


def check_gemini_usage(usage: Any) -> None:
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (150, 50)
    assert (usage.candidates_token_count, usage.thoughts_token_count, usage.total_token_count) == (13, 7, 170)


def test_gemini_reads_an_answer() -> None:
    async def client(url: str) -> None:
        async with gemini_client(url).aio as sdk:
            response = await sdk.models.generate_content(**gemini_request())
        thought, text, *calls = response.parts or []
        assert (thought.thought, thought.text, text.text) == (True, THOUGHT, TEXT)
        check_gemini_calls(calls)
        check_gemini_usage(response.usage_metadata)
        assert (response.candidates or [])[0].finish_reason == genai_types.FinishReason.STOP
        assert (response.model_version, bool(response.response_id)) == ("gemini-mock", True)

    assert against(SCRIPT, client).requests[0].path == "/v1beta/models/gemini-mock:generateContent"


def test_gemini_reads_a_streamed_answer() -> None:
    async def client(url: str) -> None:
        async with gemini_client(url).aio as sdk:
            chunks = [chunk async for chunk in await sdk.models.generate_content_stream(**gemini_request())]
        parts = [part for chunk in chunks for part in chunk.parts or []]
        assert "".join(part.text for part in parts if part.text and part.thought) == THOUGHT
        assert "".join(part.text for part in parts if part.text and not part.thought) == TEXT
        check_gemini_calls(parts)
        check_gemini_usage(chunks[-1].usage_metadata)
        assert [(chunk.candidates or [])[0].finish_reason for chunk in chunks[-2:]] == [None, genai_types.FinishReason.STOP]

    against(SCRIPT, client)


def test_gemini_reads_grounding_bad_ends_and_a_blocked_prompt() -> None:
    async def client(url: str) -> None:
        async with gemini_client(url).aio as sdk:
            cited = (await sdk.models.generate_content(**gemini_request())).candidates or []
            chunk = cited[0].model_dump()["grounding_metadata"]["grounding_chunks"][0]
            assert (chunk["web"]["uri"], chunk["web"]["title"]) == ("https://example.org", "Page")
            malformed = (await sdk.models.generate_content(**gemini_request())).candidates or []
            assert malformed[0].finish_reason == genai_types.FinishReason.MALFORMED_FUNCTION_CALL
            blocked = await sdk.models.generate_content(**gemini_request())
            assert blocked.prompt_feedback is not None
            assert blocked.prompt_feedback.block_reason == genai_types.BlockedReason.PROHIBITED_CONTENT
            assert not blocked.candidates

    against('text: Hello\ncite title=Page text=Hello: https://example.org\n---\ncall: read_file {"path\n---\nblock', client)


def test_gemini_counts_and_embeds() -> None:
    async def client(url: str) -> None:
        async with gemini_client(url).aio as sdk:
            assert ((await sdk.models.count_tokens(model="gemini-mock", contents="Hello")).total_tokens or 0) > 0
            embedded = await sdk.models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
            assert [len(each.values or []) for each in embedded.embeddings or []] == [8, 8]

    against("", client)


# --- what goes wrong ------------------------------------------------------------------------------------------------------


def test_the_sdks_name_every_status() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as chat, anthropic_client(url) as messages, gemini_client(url).aio as gemini:
            with pytest.raises(openai.RateLimitError, match="Slow down") as limited:
                await chat.chat.completions.create(**CHAT)
            assert limited.value.response.headers["retry-after"] == "7"
            assert limited.value.request_id
            with pytest.raises(openai.RateLimitError) as quota:
                await chat.responses.create(**RESPONSES)
            assert (quota.value.code, quota.value.type) == ("insufficient_quota", "insufficient_quota")
            with pytest.raises(anthropic.APIStatusError, match="Overloaded") as overloaded:
                await messages.messages.create(**MESSAGES)
            assert overloaded.value.status_code == 529
            assert overloaded.value.request_id
            with pytest.raises(genai_errors.ClientError) as exhausted:
                await gemini.models.generate_content(**gemini_request())
            assert (exhausted.value.code, exhausted.value.status) == (429, "RESOURCE_EXHAUSTED")
            assert "PerDay" in str(exhausted.value.details)
            assert "45.837906927s" in str(exhausted.value.details)

    source = (
        'error: 429 retry_after=7 "Slow down"\n---\nerror: 429 code=insufficient_quota\n---\nerror: 529\n---\n'
        "error: 429 retry_info=45.837906927 quota_id=GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    )
    against(source, client)


def test_the_sdks_see_an_error_inside_a_stream() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as chat, anthropic_client(url) as messages, gemini_client(url).aio as gemini:
            with pytest.raises(openai.APIError, match="Broken"):
                _ = [chunk async for chunk in await chat.chat.completions.create(**CHAT, stream=True)]
            events = [event async for event in await chat.responses.create(**RESPONSES, stream=True)]
            assert [event.type for event in events[-2:]] == ["error", "response.failed"]
            with pytest.raises(anthropic.APIStatusError, match="Broken"):
                _ = [event async for event in await messages.messages.create(**MESSAGES, stream=True)]
            with pytest.raises(genai_errors.APIError, match="Broken"):
                _ = [chunk async for chunk in await gemini.models.generate_content_stream(**gemini_request())]

    against('answer: times=4\ntext: half\nerror: 503 "Broken"', client)


def test_a_wrong_key_is_refused_in_the_services_shape() -> None:
    async def client(url: str) -> None:
        async with (
            openai_client(url, "wrong") as chat,
            anthropic_client(url, "wrong") as messages,
            gemini_client(url, "wrong").aio as gemini,
        ):
            with pytest.raises(openai.AuthenticationError):
                await chat.chat.completions.create(**CHAT)
            with pytest.raises(openai.AuthenticationError):
                await chat.responses.create(**RESPONSES)
            with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
                await messages.messages.create(**MESSAGES)
            with pytest.raises(genai_errors.ClientError, match="UNAUTHENTICATED"):
                await gemini.models.generate_content(**gemini_request())

    assert [each.status for each in against("text: never said", client).requests] == [401, 401, 401, 401]


def test_a_cut_stream_is_an_error_to_the_sdks() -> None:
    async def client(url: str) -> None:
        async with openai_client(url) as chat, anthropic_client(url) as messages:
            with pytest.raises((httpx2.RemoteProtocolError, openai.APIConnectionError)):
                _ = [chunk async for chunk in await chat.chat.completions.create(**CHAT, stream=True)]
            with pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)):
                _ = [event async for event in await messages.messages.create(**MESSAGES, stream=True)]

    assert {each.outcome for each in against("answer: times=2\ntext: half of\ncut", client).requests} == {"cut by the script"}
