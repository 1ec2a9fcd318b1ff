"""A model on loopback that streams one long answer, in the four protocols that terminal programs speak to it.

It checks nothing, so that any program can use it: `dragoman.testing` has services that do.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 1_000, "output_tokens": 2_000, "total_tokens": 3_000}


Reply = str | tuple[str, dict[str, Any]]
"""A text, or the name of a tool and its arguments."""


class Answers:
    """What is answered next: pieces of text, with a pause before each."""

    def __init__(self) -> None:
        self.plan: Callable[[dict[str, Any]], Reply] | None = None
        """Instead of the pieces: what is replied to a request with tools. For Anthropic's protocol and OpenAI's Chat."""
        self.pieces: list[str] = ["Hello."]
        self.pause_s = 0.0
        self.marked = 0
        """How many answers were asked for that end with a mark; requests for titles and the like get none."""
        self.first: tuple[float, int, int] | None = None
        """When the first request with tools came, how many tools it had, and how many bytes they are."""


@contextmanager
def serve() -> Iterator[tuple[str, Answers]]:
    """Yields its base URL, and what it answers."""
    answers = Answers()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"answers": answers}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", answers
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: Answers

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal is being measured."""

    def do_GET(self) -> None:
        self._send_json({"data": [{"id": "fake-model", "object": "model"}], "models": []})

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._send_json({"input_tokens": 1_000})
            return
        if self.answers.plan is not None and body.get("tools"):
            reply = self.answers.plan(body)
            self._stream(_anthropic_reply(reply) if path.endswith("/messages") else _chat_reply(reply))
            return
        pieces = self._pieces(body)
        if path.endswith("/messages"):
            self._stream(_anthropic(pieces)) if body.get("stream") else self._send_json(_anthropic_whole("".join(pieces)))
        elif path.endswith("/responses"):
            self._stream(_responses(pieces))
        elif path.endswith("/chat/completions"):
            self._stream(_chat(pieces))
        elif path.endswith(":streamGenerateContent"):
            self._stream(_gemini(pieces))
        elif path.endswith(":generateContent"):
            self._send_json(_gemini_chunk("".join(pieces), ends=True))
        else:
            self._send_json({})

    def _pieces(self, body: dict[str, Any]) -> list[str]:
        tools = body.get("tools")
        if not tools:  # a title, a topic, a classifier
            return ["ok"]
        self.answers.marked += 1
        if self.answers.first is None:
            names = [each for group in tools for each in (group.get("functionDeclarations") or group.get("tools") or [group])]
            self.answers.first = (time.monotonic(), len(names), len(json.dumps(tools)))
        return [*self.answers.pieces, f"\n\nend{self.answers.marked}mark"]

    def _send_json(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: Iterator[tuple[str, dict[str, Any]]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for name, data in events:
                if self.answers.pause_s and "delta" in json.dumps(data):
                    time.sleep(self.answers.pause_s)
                head = f"event: {name}\n" if name else ""
                self.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())
            if self.path.endswith("/chat/completions"):
                self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass  # the program went away


def _chat(pieces: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
    for piece in pieces:
        yield "", {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}]}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 2_000, "total_tokens": 3_000}
    yield "", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}


def _chat_reply(reply: Reply) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(reply, str):
        yield from _chat([reply])
        return
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
    function = {"name": reply[0], "arguments": json.dumps(reply[1])}
    call = {"index": 0, "id": f"call_{time.monotonic_ns()}", "type": "function", "function": function}
    yield "", {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": None}]}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050}
    yield "", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": usage}


def _anthropic_reply(reply: Reply) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(reply, str):
        yield from _anthropic([reply])
        return
    whole = _anthropic_whole("")
    yield "message_start", {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    block = {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", "name": reply[0], "input": {}}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(reply[1])}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 50}}
    yield "message_stop", {"type": "message_stop"}


def _responses(pieces: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    text = "".join(pieces)
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    response = {"id": "r1", "object": "response", "status": "in_progress", "model": "fake-model", "output": []}
    told: list[dict[str, Any]] = [{"type": "response.created", "response": response}]
    told.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}})
    told.append(
        {"type": "response.content_part.added", "item_id": "m1", "output_index": 0, "content_index": 0, "part": {**part, "text": ""}}
    )
    where = {"item_id": "m1", "output_index": 0, "content_index": 0}
    told += [{"type": "response.output_text.delta", **where, "delta": piece} for piece in pieces]
    told.append({"type": "response.output_text.done", **where, "text": text})
    told.append({"type": "response.content_part.done", **where, "part": part})
    told.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    told.append({"type": "response.completed", "response": {**response, "status": "completed", "output": [item], "usage": USAGE}})
    for number, event in enumerate(told):
        yield str(event["type"]), {**event, "sequence_number": number}


def _anthropic_whole(text: str) -> dict[str, Any]:
    usage = {"input_tokens": 1_000, "output_tokens": 2_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": f"msg_{time.monotonic_ns()}",  # Claude Code takes answers of one id for one message
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def _anthropic(pieces: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    whole = _anthropic_whole("")
    yield "message_start", {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in pieces:
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 2_000}}
    yield "message_stop", {"type": "message_stop"}


def _gemini(pieces: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, piece in enumerate(pieces, 1):
        yield "", _gemini_chunk(piece, ends=number == len(pieces))


def _gemini_chunk(text: str, *, ends: bool) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **({"finishReason": "STOP"} if ends else {})}
    usage = {"promptTokenCount": 1_000, "candidatesTokenCount": 2_000, "totalTokenCount": 3_000}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3.8-flash"}
