"""Streams to read, as the loopback server would send them: one server-sent event per chunk."""

from __future__ import annotations

import itertools
from typing import Literal

from dragoman.testing.mock import encode_anthropic, encode_chat, encode_gemini, encode_responses
from dragoman.testing.mock.wire import ModelRequest, frame_events, play
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer
from dragoman.values.profile import ProtocolName

Shape = Literal["text", "arguments"]
PROTOCOLS: tuple[ProtocolName, ...] = ("openai_chat", "openai_responses", "anthropic", "gemini")
PIECE_CHARS = 6
PROSE = "A dragoman was an interpreter and guide — one conversation, every dialect, and an honest account of what was said. "
_ENCODERS = {
    "openai_chat": (encode_chat.ChatEncoder, encode_chat.CALL_PREFIX),
    "openai_responses": (encode_responses.ResponsesEncoder, encode_responses.CALL_PREFIX),
    "anthropic": (encode_anthropic.AnthropicEncoder, encode_anthropic.CALL_PREFIX),
    "gemini": (encode_gemini.GeminiEncoder, encode_gemini.CALL_PREFIX),
}


def recorded(protocol: ProtocolName, deltas: int, shape: Shape = "text") -> bytes:
    """An answer of so many deltas. `arguments`: the same text as the argument of one tool call."""
    step = Say(prose(deltas), PIECE_CHARS) if shape == "text" else CallStep("write_file", arguments(deltas), "call_1", PIECE_CHARS)
    answer = ScriptedAnswer((step,))
    asked = ModelRequest(protocol, "mock-model", {"stream": True, "stream_options": {"include_usage": True}}, 1, 100)
    encoder_class, prefix = _ENCODERS[protocol]
    return b"".join(
        piece for piece in frame_events(play(answer, encoder_class(answer, asked), asked, prefix), ()) if isinstance(piece, bytes)
    )


def chunks(recording: bytes) -> list[bytes]:
    """One event per chunk."""
    return [event + b"\n\n" for event in recording.split(b"\n\n")[:-1]]


def prose(deltas: int) -> str:
    return "".join(itertools.islice(itertools.cycle(PROSE), deltas * PIECE_CHARS))


def arguments(deltas: int) -> str:
    return '{"content":"' + prose(deltas)[: deltas * PIECE_CHARS - 14] + '"}'
