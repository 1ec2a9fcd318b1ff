"""Many calls at once from many tasks: no answer goes to another call, also where calls are cancelled in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import HttpServer, StdioServer
from loopback_http import LAST_CHUNK, Received, answer, chunk, chunked_head, serving

SHUFFLER = str(Path(__file__).with_name("shuffling_server.py"))
CALLS = int(os.environ.get("DRAGOMAN_MCP_CALLS", "600"))
"""More for a long run."""


async def call_from_many_tasks(client: McpClient, seed: int) -> tuple[int, int]:
    """How many calls were answered and how many cancelled. Each answer must be that of its own call."""
    chance = random.Random(seed)
    answered = cancelled = 0

    async def call(number: int) -> None:
        nonlocal answered, cancelled
        mark = f"{seed}-{number}"
        told: list[str] = []
        pending = asyncio.ensure_future(client.call_tool("say", {"text": mark}, progress=lambda done, total, words: told.append(words)))
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() * 0.02)
            pending.cancel()
        try:
            result = await pending
        except asyncio.CancelledError:
            cancelled += 1
        else:
            answered += 1
            assert result.content[0]["text"] == mark
        assert set(told) <= {mark}

    async def caller(numbers: range) -> None:
        for number in numbers:
            await call(number)

    workers = 30
    async with asyncio.timeout(60):
        await asyncio.gather(*(caller(range(start, CALLS, workers)) for start in range(workers)))
    return answered, cancelled


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_over_one_pipe(era: Any) -> None:
    async def run() -> tuple[int, int]:
        client = McpClient(StdioServer(sys.executable, ("-S", "-E", SHUFFLER)), era=era, timeout_s=30)
        try:
            await client.connect()
            counts = await call_from_many_tasks(client, 7)
            assert client._peer is not None
            assert client._peer._waiting == {}
            return counts
        finally:
            await client.aclose()

    answered, cancelled = asyncio.run(run())
    assert answered + cancelled == CALLS
    assert cancelled
    assert answered > CALLS / 3


async def shuffling(request: Received, writer: asyncio.StreamWriter) -> None:
    message = json.loads(request.body) if request.body else {}
    method = message.get("method")
    if method == "server/discover":
        writer.write(result(message, {"supportedVersions": ["2026-07-28"], "capabilities": {}}))
        return
    text = message["params"]["arguments"]["text"]
    value = {"content": [{"type": "text", "text": text}]}
    await asyncio.sleep(random.random() * 0.02)
    if random.random() < 0.5:
        writer.write(result(message, value))
        return
    progress = {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1, "message": text}
    for each in ({"method": "notifications/progress", "params": progress}, {"id": message["id"], "result": value}):
        writer.write((chunked_head() if "method" in each else b"") + chunk(f"data: {json.dumps({'jsonrpc': '2.0', **each})}\n\n".encode()))
        await asyncio.sleep(0.005)
    writer.write(LAST_CHUNK)


def result(message: dict[str, Any], value: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode()
    return answer(body, headers="Content-Type: application/json\r\n")


def test_over_http() -> None:
    async def run() -> tuple[int, int]:
        async with serving(shuffling) as server:
            client = McpClient(HttpServer(server.url), timeout_s=30)
            try:
                return await call_from_many_tasks(client, 11)
            finally:
                await client.aclose()

    answered, cancelled = asyncio.run(run())
    assert answered + cancelled == CALLS
    assert cancelled
    assert answered > CALLS / 3


def test_many_tasks_connect_once() -> None:
    async def run() -> int:
        async with serving(shuffling) as server:
            client = McpClient(HttpServer(server.url))
            await asyncio.gather(*(client.connect() for _ in range(20)))
            await client.aclose()
            return len(server.requests)

    assert asyncio.run(run()) == 1
