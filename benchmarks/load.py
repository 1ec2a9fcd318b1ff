"""Many agents in one process, beside an HTTP library and a bare client: requests per second, CPU and memory for each.

`python -m benchmarks.load ask CLIENT URL AGENTS REQUESTS` is one of the clients; `python -m benchmarks.load serve` is the service.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import sample
from benchmarks.sample import interleaved, median, module, peak_rss_mib
from benchmarks.table import Table

CLIENTS = {
    "agents": "Dragoman's agents on one connection",
    "provider": "our provider and transport, without the agent",
    "provider, httpx2": "the same provider over httpx2",
    "httpx2": "httpx2 alone: the bytes are read and not understood",
    "bare asyncio": "asyncio streams, one connection each: the bytes are read and not understood",
}
AGENTS = (1, 10, 100, 1_000)
WORDS = "All is well, and the answer goes on for a little while, word by word. "


def run(quick: bool) -> list[Table]:
    columns = ["agents", "client", "requests/s", "CPU ms/request", "memory KiB/agent", "CPU × bare", "CPU × httpx2"]
    table = Table("Many agents in one process", columns)
    with serving() as url:
        for agents in AGENTS[:2] if quick else AGENTS:
            requests = max(50, agents) if quick else max(500, 3 * agents)
            cases = {client: lambda client=client: ask(client, url, agents, requests) for client in CLIENTS}  # noqa: B023  run at once
            taken = interleaved(cases, 1 if quick else 3)
            cpu = {client: median([each["cpu_ms"] for each in taken[client]]) for client in CLIENTS}
            for client in CLIENTS:
                rate = median([each["rate"] for each in taken[client]])
                memory = median([each["memory_kib"] for each in taken[client]]) if agents > 1 else None
                table.rows.append(
                    [agents, client, rate, cpu[client], memory, cpu[client] / cpu["bare asyncio"], cpu[client] / cpu["httpx2"]]
                )
    table.notes = [
        *(f"{client}: {about}." for client, about in CLIENTS.items()),
        "One core serves, the other asks: where the service is the slower of the two, its rate is what is seen. CPU is the client's alone.",
        "Memory: the peak less what the same client holds before it asks, for each agent, whose conversation grows with each question.",
        "Every answer is checked to be that of its question.",
    ]
    return [table]


def ask(client: str, url: str, agents: int, requests: int) -> dict[str, float]:
    return json.loads(sample.run(module("load", "ask", client, url, str(agents), str(requests))).said)


# --- the service --------------------------------------------------------------------------------------------------------------


@contextmanager
def serving() -> Iterator[str]:
    process = subprocess.Popen(module("load", "serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=sample.ROOT, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=10)


async def serve() -> None:
    from dragoman.testing.mock.server import MockServer
    from dragoman.testing.script_steps import Say, ScriptedAnswer

    def echo(asked: Any) -> ScriptedAnswer:
        return ScriptedAnswer((Say(f"{asked.body['messages'][-1]['content']}: {WORDS}", piece_chars=16),))

    async with MockServer(echo, keep=0) as server:
        print(server.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


# --- the clients --------------------------------------------------------------------------------------------------------------

Ask = Callable[[str], Awaitable[str]]
"""Asks a question, and gives what was answered, or all that came over the wire."""


async def measure(client: str, url: str, agents: int, requests: int) -> dict[str, float]:
    make, close = await OPENED[client](url)
    await make()("warm")
    held, cpu, began = peak_rss_mib(), time.process_time(), time.monotonic()
    left = iter(range(requests))

    async def be_one(ask: Ask, number: int) -> None:
        for question in left:
            name = f"q{number}-{question}"
            answered = await ask(name)
            if name not in answered:
                raise AssertionError(f"{name} was answered with {answered[:80]!r}")

    await asyncio.gather(*(be_one(make(), number) for number in range(agents)))
    took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu
    memory = (peak_rss_mib() - held) * 1024 / agents
    await close()
    return {"rate": requests / took_s, "cpu_ms": cpu_s * 1000 / requests, "memory_kib": memory}


Opened = Callable[[str], Awaitable[tuple[Callable[[], Ask], Callable[[], Awaitable[None]]]]]
"""From a URL to a function that makes askers, and one that closes all of them."""


def _connection(url: str, transport: Any = None) -> Any:
    from dragoman.providers.connect import connect

    return connect("openai/gpt-4.1", key="a-key", base_url=f"{url}/v1", env={}, transport=transport)


async def _agents(url: str) -> Any:
    import dragoman

    connection = _connection(url)

    def make() -> Ask:
        agent = dragoman.Agent(connection)

        async def ask(question: str) -> str:
            return (await agent.run(question)).text

        return ask

    return make, connection.aclose


async def _provider(url: str, transport: Any = None) -> Any:
    import dragoman

    connection = _connection(url, transport)

    async def ask(question: str) -> str:
        request = dragoman.Request(connection.model, (dragoman.user(question),))
        pieces = [event.text async for event in connection.stream(request) if isinstance(event, dragoman.TextDelta)]
        return "".join(pieces)

    return lambda: ask, connection.aclose


async def _provider_over_httpx(url: str) -> Any:
    from dragoman.http.httpx_transport import HttpxTransport

    return await _provider(url, HttpxTransport())


def _body(question: str) -> bytes:
    return json.dumps({"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": question}]}).encode()


async def _httpx(url: str) -> Any:
    import httpx2

    client = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None), timeout=60)

    async def ask(question: str) -> str:
        headers = {"content-type": "application/json"}
        async with client.stream("POST", f"{url}/v1/chat/completions", content=_body(question), headers=headers) as answer:
            return b"".join([piece async for piece in answer.aiter_raw()]).decode()

    return lambda: ask, client.aclose


async def _bare(url: str) -> Any:
    host, _, port = url.rpartition("//")[2].partition(":")
    writers: list[asyncio.StreamWriter] = []

    def make() -> Ask:
        streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

        async def ask(question: str) -> str:
            if not streams:
                streams.append(await asyncio.open_connection(host, int(port)))
                writers.append(streams[0][1])
            [(reader, writer)] = streams
            body = _body(question)
            fields = f"host: {host}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            writer.write(f"POST /v1/chat/completions HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
            return (await reader.readuntil(b"\r\n0\r\n\r\n")).decode()

        return ask

    async def close() -> None:
        for writer in writers:
            writer.close()
        await asyncio.sleep(0)

    return make, close


OPENED: dict[str, Opened] = {
    "agents": _agents,
    "provider": _provider,
    "provider, httpx2": _provider_over_httpx,
    "httpx2": _httpx,
    "bare asyncio": _bare,
}


def main() -> None:
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve())
        case ["ask", client, url, agents, requests]:
            print(json.dumps(asyncio.run(measure(client, url, int(agents), int(requests)))))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
