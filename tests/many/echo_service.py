"""Services in a process of their own that answer each question with the question, so that a crossed answer is seen.

    python echo_service.py hypercorn [--certificate FILE] [--version h2] [--proxy]
    python echo_service.py ours

A question says itself how it is to be treated: `q17 {"wait_s": 0.01, "pieces": 4, "fault": "cut"}`. A fault strikes the first attempt of
a question alone. The address is printed on the first line, the proxy's on the second; the process ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

STALL_S = 30.0
"""Longer than any client of these tests waits."""


class Question:
    def __init__(self, text: str) -> None:
        self.name, _, rest = text.partition(" ")
        how = json.loads(rest) if rest.startswith("{") else {}
        self.wait_s: float = how.get("wait_s", 0.0)
        self.pieces: int = how.get("pieces", 1)
        self.fault: str = how.get("fault", "")
        self.calls: bool = how.get("calls", False)
        """Whether a tool is called before it is answered (by our own service alone)."""

    @property
    def answer(self) -> str:
        return f"answer to {self.name}"

    def parts(self) -> list[str]:
        size = -(-len(self.answer) // self.pieces)
        return [self.answer[start : start + size] for start in range(0, len(self.answer), size)]


class Attempts:
    """Which questions have been asked before."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def question(self, body: Any) -> Question:
        asked = Question(last_words(body))
        asked.calls = asked.calls and body["messages"][-1]["role"] != "tool"
        if asked.fault:
            asked.fault = "" if asked.name in self._seen else asked.fault
            self._seen.add(asked.name)
        return asked


def last_words(body: Any) -> str:
    """The last thing a person said, in a request of Chat Completions."""
    content = next(message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
    return content if isinstance(content, str) else content[-1]["text"]


# --- a server that is not ours ------------------------------------------------------------------------------------------------


def event(text: str = "", finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}).encode() + b"\n\n"


class Cut(Exception):
    """Ends a connection in the middle of an answer: the server closes what the application abandons."""


def application(attempts: Attempts) -> Callable[..., Awaitable[None]]:
    async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] == "lifespan":
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
        asked = attempts.question(json.loads(body))
        await asyncio.sleep(asked.wait_s)
        if asked.fault in {"500", "429"}:
            headers = [(b"content-type", b"application/json"), (b"retry-after", b"0")]
            await send({"type": "http.response.start", "status": int(asked.fault), "headers": headers})
            await send({"type": "http.response.body", "body": b'{"error":{"message":"not now"}}'})
            return
        if asked.fault == "stall":
            await asyncio.sleep(STALL_S)
        if asked.fault == "cut before":
            raise Cut
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for part in asked.parts():
            await send({"type": "http.response.body", "body": event(part), "more_body": True})
            await asyncio.sleep(asked.wait_s / 4)
            if asked.fault == "cut":
                raise Cut
        await send({"type": "http.response.body", "body": event(finish="stop") + b"data: [DONE]\n\n", "more_body": False})

    return app


async def serve_hypercorn(certificate: str, version: str) -> AsyncIterator[str]:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.backlog = 4096
    config.errorlog = config.accesslog = None
    config.keep_alive_timeout = 600
    config.keep_alive_max_requests = 10**9
    config.graceful_timeout = 0
    if certificate:
        config.certfile = config.keyfile = certificate
        config.alpn_protocols = [version]
    ended = asyncio.Event()
    serving = asyncio.create_task(serve(application(Attempts()), config, shutdown_trigger=ended.wait))
    port = listener.getsockname()[1]
    await listening(port)
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
    finally:
        ended.set()
        await asyncio.wait({serving}, timeout=60)


async def listening(port: int) -> None:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    raise TimeoutError("the server does not listen")


# --- our own ------------------------------------------------------------------------------------------------------------------


async def serve_ours() -> AsyncIterator[str]:
    from dragoman.testing.mock.server import MockServer
    from dragoman.testing.mock.wire import ModelRequest
    from dragoman.testing.script_steps import CallStep, CutStep, Fail, Say, ScriptedAnswer, Stall, Wait

    attempts = Attempts()

    def choose(request: ModelRequest) -> ScriptedAnswer:
        asked = attempts.question(request.body)
        wait = Wait(asked.wait_s)
        if asked.calls:
            return ScriptedAnswer((wait, CallStep("look_up", json.dumps({"name": asked.name}))))
        match asked.fault:
            case "500" | "429":
                return ScriptedAnswer((wait, Fail(int(asked.fault), retry_after_s=0)))
            case "stall":
                return ScriptedAnswer((wait, Stall()))
            case "cut before":
                return ScriptedAnswer((wait, CutStep()))
            case "cut":
                return ScriptedAnswer((wait, Say(asked.parts()[0]), CutStep()))
            case _:
                said = [step for part in asked.parts() for step in (Say(part), Wait(asked.wait_s / 4))]
                return ScriptedAnswer((wait, *said))

    async with MockServer(choose, keep=0) as server:
        yield server.url


# --- a proxy ------------------------------------------------------------------------------------------------------------------


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A CONNECT proxy. Whatever ends one side ends the other."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        asked = re.match(rb"CONNECT ([0-9.]+):([0-9]+) HTTP/1.1\r\n", head)
        assert asked is not None, head
        there, back = await asyncio.open_connection(asked[1].decode(), int(asked[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(relay(reader, back), relay(there, writer))
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["hypercorn", "ours"])
    parser.add_argument("--certificate", default="")
    parser.add_argument("--version", default="http/1.1")
    parser.add_argument("--proxy", action="store_true")
    options = parser.parse_args()
    services = serve_ours() if options.kind == "ours" else serve_hypercorn(options.certificate, options.version)
    async for url in services:
        print(url, flush=True)
        if options.proxy:
            proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0, backlog=4096)
            print(f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
