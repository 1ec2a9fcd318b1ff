"""Random conversations: as they are lived, and as they come out of a crash, an import, or another program."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hypothesis import strategies as st

from dragoman.base.jsontext import dumps
from dragoman.context.repair import repair
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import Blob, Citation, FileRef, Message, Opaque, Part, Text, Thought, ToolCall, ToolResult, ToolSpec
from dragoman.values.parts import curated

BLOBS = MemoryBlobs()
PICTURE = BLOBS.put("image/png", b"\x89PNG\r\n\x1a\n" + bytes(40))
PAPER = BLOBS.put("application/pdf", b"%PDF-1.4 nothing")
LOST = Blob("image/png", "0" * 64, 12)
TOOLS = (
    ToolSpec.of("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    ToolSpec.of("run_shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}}),
)

words = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            "hello",
            "你好，世界",
            "عربي",
            "👩‍👩‍👧‍👦 é",
            "a\u2028b\u0085c",
            '"quoted" \\ {"x":1}',
            "lone \ud800 half",
            "Error: no",
        ]
    ),
    st.text(max_size=12),
)
spoken = words.filter(lambda text: bool(text.strip()))
ids = st.one_of(
    st.sampled_from(["", "a", "b", "functions.Bash:0", "call_" + "x" * 90, "dx-1", "id with space", "ünï", "123456789"]),
    st.text(max_size=8),
)
names = st.sampled_from(["read_file", "run_shell", "rm_all", "READ_FILE", "../bin/sh", "\x1b[31mred", "名前", "a" * 120, ""])
arguments = st.one_of(
    st.sampled_from(
        [
            "{}",
            "",
            '{"path":"a.txt"}',
            '{"path": "a", "path": "b"}',
            '"text"',
            "[1,2]",
            "null",
            '{"path":',
            '{"n":NaN}',
            '{"s":"\\ud83d"}',
            '{"s":"\\ud83d\\ude00"}',
            "[" * 200 + "]" * 200,
            '{"deep":' * 80 + "1" + "}" * 80,
        ]
    ),
    st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-9, 9), st.text(max_size=5)), max_size=2).map(dumps),
)
media = st.sampled_from([PICTURE, PAPER, LOST, FileRef("image/png", "https://example.com/a.png"), FileRef("text/csv", "gs://b/c.csv")])


def _opaque_thought(text: str, signature: str, maker: str) -> Thought:
    match maker:
        case "anthropic":
            return Thought(text, Opaque(maker, dumps({"type": "thinking", "thinking": text, "signature": signature}), "claude-opus-5"))
        case "redacted":
            return Thought("", Opaque("anthropic", dumps({"type": "redacted_thinking", "data": signature}), "claude-opus-5"))
        case "gemini":
            return Thought(text, Opaque(maker, dumps({"text": text, "thought": True, "thoughtSignature": signature}), "gemini-3.8-flash"))
        case "responses":
            summary = [{"type": "summary_text", "text": text}]
            item = {"id": f"rs_{signature.strip('=')}", "type": "reasoning", "summary": summary, "encrypted_content": f"gAAA{signature}"}
            return Thought(text, Opaque(maker, dumps(item), "gpt-6.1-sol"))
        case _:
            return Thought(text)


signatures = st.sampled_from(["c2lnbmVk", "YW5vdGhlcg==", "dGhpcmQ="])
thoughts = st.builds(_opaque_thought, spoken, signatures, st.sampled_from(["anthropic", "redacted", "gemini", "responses", "none"]))
signed = st.none() | signatures.map(lambda signature: Opaque("gemini", dumps(signature), "gemini-3.8-flash"))
calls = st.builds(ToolCall, ids, names, arguments, signed)
contents = st.lists(st.one_of(words.map(Text), media), max_size=3).map(tuple)
results = st.builds(ToolResult, ids, names, contents, st.booleans())
citations = st.builds(Citation, st.just("https://example.com"), words)
user_parts: st.SearchStrategy[Part] = st.one_of(words.map(Text), media, results)
assistant_parts: st.SearchStrategy[Part] = st.one_of(words.map(Text), thoughts, calls, citations)


def _messages(role: str, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Message]:
    return st.lists(parts, max_size=5).map(lambda chosen: Message(role, tuple(chosen)))  # type: ignore[arg-type]


def _told_apart(messages: Iterable[Message]) -> tuple[Message, ...]:
    """No service gives two reasoning items one id."""
    count = itertools.count(1)

    def part(each: Part) -> Part:
        if not isinstance(each, Thought) or each.opaque is None or each.opaque.provider != "responses":
            return each
        return Thought(each.text, Opaque("responses", each.opaque.json.replace('"rs_', f'"rs_{next(count)}_'), each.opaque.model))

    return tuple(Message(message.role, tuple(map(part, message.parts))) for message in messages)


damaged = (
    st.lists(st.one_of(_messages("user", user_parts), _messages("assistant", assistant_parts)), min_size=1, max_size=8)
    .map(_told_apart)
    .filter(lambda messages: bool(repair(curated(messages)).messages))
)
"""Anything at all that leaves something to send: orphans, duplicates, missing results, foreign and empty ids, cut arguments."""


@st.composite
def lived(draw: st.DrawFn, max_rounds: int = 6) -> tuple[Message, ...]:
    """A conversation as it happens: every call is answered, all results of an answer together, ids unique."""
    messages: list[Message] = []
    used = 0
    for _ in range(draw(st.integers(1, max_rounds))):
        messages.append(Message("user", (Text(draw(spoken)), *draw(st.lists(media, max_size=1)))))
        for _ in range(draw(st.integers(0, 3))):
            made: list[ToolCall] = []
            for name, text, opaque in draw(st.lists(st.tuples(names, arguments, signed), min_size=1, max_size=3)):
                used += 1
                made.append(ToolCall(f"{draw(st.sampled_from(['call', 'functions.Bash', 'tü']))}:{used}", name, text, opaque))
            before = draw(st.lists(st.one_of(spoken.map(Text), thoughts), max_size=2))
            messages.append(Message("assistant", (*before, *made)))
            answers = tuple(ToolResult(call.id, call.name, draw(contents), draw(st.booleans())) for call in made)
            messages.append(Message("user", answers))
        messages.append(Message("assistant", (*draw(st.lists(thoughts, max_size=1)), Text(draw(spoken)))))
    return _told_apart(messages[:-1])


def request_points(messages: tuple[Message, ...]) -> list[int]:
    """How much of a lived conversation stood in each request: up to every user message that an answer followed, and the last."""
    return [end for end in range(1, len(messages) + 1) if messages[end - 1].role == "user"]
