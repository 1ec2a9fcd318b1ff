"""Makes the recordings that stand in the repository: `PYTHONPATH=tests python -m recorded.own` writes recorded/own/*.jsonl anew.

They are of our own making, so that every clone has some: the official SDKs ask the loopback service, and what went over the wire is kept;
and for each protocol a few answers are written by hand, in the shapes that the service documents. Real services said none of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dragoman.testing.mock.server import MockServer
from dragoman.values.profile import ProtocolName
from recorded.exchanges import PROTOCOLS, Exchange

FOLDER = Path(__file__).parent / "own"
KEY = "a-key"
HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai_chat": "api.openai.com",
    "openai_responses": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
}
MODELS = {"anthropic": "claude-opus-5", "openai_chat": "gpt-5", "openai_responses": "gpt-5", "gemini": "gemini-2.5-pro"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": False}
SCENES = {
    "text": "text piece=3: The ship reached Muscat on Tuesday: naïve 文字.\nusage: fresh=12 output=9",
    "calls": 'text: I look.\ncall id=call_a: read_file {"path": "a.txt"}\ncall id=call_b: read_file {"path": "b.txt"}\n'
    "usage: fresh=30 cache_read=10 output=20",
    "length": "text: This is cut\nfinish: length\nusage: fresh=5 output=3",
    "empty": "finish: stop\nusage: fresh=5 output=0",
    "refused": 'error: 400 "the field is not known"',
    "overload": "error: 529",
    "limit": "error: 429 retry_after=7",
}


def _events(*each: object) -> str:
    return "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in each)


def _chat(message: dict[str, Any], finish: str) -> str:
    usage = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21, "prompt_tokens_details": {"cached_tokens": 4}}
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish}
    return json.dumps(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice], "usage": usage}
    )


def _responses(*output: dict[str, Any]) -> str:
    usage = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 12, "total_tokens": 21}
    return json.dumps({"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": output, "usage": usage})


_CALL = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
WRITTEN: dict[ProtocolName, dict[str, str]] = {
    "anthropic": {
        "thinking before a call": _events(
            {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "The log says."}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "ping"},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"path": "lo'}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": 'g.txt"}'}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
            {"type": "message_stop"},
        ),
        "overloaded in the middle": _events(
            {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}},
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
    },
    "openai_chat": {
        "a call": _chat({"content": None, "tool_calls": [_CALL]}, "tool_calls"),
        "reasoning in a field of its own": _chat({"content": "Tuesday.", "reasoning_content": "The log says."}, "stop"),
        "usage in a last chunk without choices": _events(
            {"id": "c-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Tues"}, "finish_reason": None}]},
            {"id": "c-1", "choices": [{"index": 0, "delta": {"content": "day."}, "finish_reason": "stop"}]},
            {"id": "c-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}},
            "[DONE]",
        ),
    },
    "openai_responses": {
        "reasoning, text and a call": _responses(
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "The log says."}]},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "read_file",
                "arguments": '{"path": "a.txt"}',
                "status": "completed",
            },
        ),
    },
    "gemini": {
        "a signed call": _events(
            {
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [
                                {"text": "The log says.", "thought": True},
                                {"functionCall": {"name": "read_file", "args": {"path": "a.txt"}}, "thoughtSignature": "c2ln"},
                            ],
                        },
                        "finishReason": "STOP",
                    }
                ],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 19},
                "responseId": "g-1",
            },
        ),
        "a blocked prompt": json.dumps({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}),
    },
}


async def ask_anthropic(url: str, stream: bool) -> None:
    import anthropic

    tools: Any = [{"name": "read_file", "description": "Read a file", "input_schema": SCHEMA}]
    asked: Any = {"model": MODELS["anthropic"], "max_tokens": 200, "messages": [{"role": "user", "content": "When?"}], "tools": tools}
    async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        if not stream:
            await client.messages.create(**asked)
            return
        async with client.messages.stream(**asked) as answer:
            await answer.get_final_message()


async def ask_chat(url: str, stream: bool) -> None:
    import openai

    tools: Any = [{"type": "function", "function": {"name": "read_file", "description": "Read a file", "parameters": SCHEMA}}]
    asked: Any = {"model": MODELS["openai_chat"], "messages": [{"role": "user", "content": "When?"}], "tools": tools}
    more: Any = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        answer = await client.chat.completions.create(**asked, **more)
        if stream:
            async for _ in answer:
                pass


async def ask_responses(url: str, stream: bool) -> None:
    import openai

    tools: Any = [{"type": "function", "name": "read_file", "description": "Read a file", "parameters": SCHEMA, "strict": True}]
    asked: Any = {"model": MODELS["openai_responses"], "input": "When?", "tools": tools, "store": False}
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        answer = await client.responses.create(**asked, stream=stream)
        if stream:
            async for _ in answer:
                pass


async def ask_gemini(url: str, stream: bool) -> None:
    from google import genai
    from google.genai import types

    shape: Any = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}, "required": ["path"]}
    declared = types.FunctionDeclaration(name="read_file", description="Read a file", parameters=shape)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    asked: Any = {"model": MODELS["gemini"], "contents": "When?", "config": config}
    async with genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url)).aio as client:
        if not stream:
            await client.models.generate_content(**asked)
            return
        async for _ in await client.models.generate_content_stream(**asked):
            pass


ASK: dict[ProtocolName, Callable[[str, bool], Awaitable[None]]] = {
    "anthropic": ask_anthropic,
    "openai_chat": ask_chat,
    "openai_responses": ask_responses,
    "gemini": ask_gemini,
}


async def record(protocol: ProtocolName, name: str, script: str, *, stream: bool) -> Exchange:
    """What an SDK sent, and what the loopback service answered to the same bytes."""
    async with MockServer(script + "\n---\n" + script, key=KEY) as server:
        with suppress(Exception):  # an error is what some scenes are about; what was sent is there all the same
            await ASK[protocol](server.url, stream)
        asked = server.requests[0]
        status, headers, body = await _repeat(server.url, asked)
    path, _, query = asked.path.partition("?")
    kept = {key: value for key, value in headers.items() if key in ("content-type", "retry-after")}
    source = f"own/{protocol}: {name}{', streamed' if stream else ''}"
    return Exchange(
        hashlib.sha256(source.encode()).hexdigest()[:16],
        source,
        "recorded",
        protocol,
        HOSTS[protocol],
        status,
        stream and status == 200,
        body,
        path,
        query.replace(KEY, "").removesuffix("&key="),
        MODELS[protocol],
        asked.body,
        kept,
    )


async def _repeat(url: str, asked: Any) -> tuple[int, dict[str, str], str]:
    import httpx2

    headers = {key: value for key, value in asked.headers.items() if key not in ("host", "content-length", "accept-encoding", "connection")}
    async with httpx2.AsyncClient() as client:
        answer = await client.request(asked.method, url + asked.path, headers=headers, content=asked.data)
        return answer.status_code, dict(answer.headers), answer.text


def written(protocol: ProtocolName) -> Iterator[Exchange]:
    for name, body in WRITTEN[protocol].items():
        source = f"written/{protocol}: {name}"
        identity = hashlib.sha256(source.encode()).hexdigest()[:16]
        stream = body.startswith("data: ")
        yield Exchange(identity, source, "fixture", protocol, HOSTS[protocol], 200, stream, body, model=MODELS[protocol])


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for protocol in PROTOCOLS:
        made = [await record(protocol, name, script, stream=stream) for name, script in SCENES.items() for stream in (False, True)]
        lines = [msgspec.json.encode(each) for each in (*made, *written(protocol))]
        (FOLDER / f"{protocol}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        print(f"{protocol}: {len(lines)} exchanges")


if __name__ == "__main__":
    asyncio.run(main())
