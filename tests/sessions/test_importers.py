"""What other programs' files hold besides a plain conversation: branches, summaries, signatures, images, things we have no place for."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from destinations import MAIN, connection, violation_in
from dragoman.foreign.sessions import ImportedSession, detect, import_session
from dragoman.loop.history import History
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, FileRef, Opaque, Text, Thought, ToolCall, user
from dragoman.values.record import AnswerRejected, Compressed, Entry, ModelChanged, Rewound, Said, Started, Titled, ToolFinished
from dragoman.values.usage import Usage

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
PIXEL_TEXT = base64.b64encode(PIXEL).decode()

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*records: object, name: str = "session.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records))
        return path

    return write


def shown(imported: ImportedSession) -> list[str]:
    """What the model would be shown, one line a message."""
    return [f"{message.role}: {message.text or [type(part).__name__ for part in message.parts]}" for message in folded(imported)]


def folded(imported: ImportedSession) -> tuple[Any, ...]:
    return History(entries=imported.entries).request.messages


def of(kind: type[Any], imported: ImportedSession) -> list[Any]:
    return [entry for entry in imported.entries if isinstance(entry, kind)]


def assert_valid_everywhere(imported: ImportedSession, blobs: MemoryBlobs | None = None) -> None:
    for where in MAIN:
        destination = connection(where, blobs=blobs or MemoryBlobs())
        history = History(entries=imported.entries)
        history.say(user("next"))
        body = destination.prepare(msgspec.structs.replace(history.request, model=destination.model)).body
        assert violation_in(destination, body) is None, where


# --- Claude Code --------------------------------------------------------------------------------------------------------------


def claude(kind: str, uuid: str, parent: str | None, content: object = None, **more: object) -> dict[str, object]:
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("id", f"msg_{uuid}"), "model": more.pop("model", "claude-opus-4-5"), "usage": {"output_tokens": 1}}
    head = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "isSidechain": False, "timestamp": "2026-01-01T00:00:00Z"}
    return head | ({"message": message} if content is not None else {}) | more


def say(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def test_lines_of_one_answer_become_one_answer_with_its_parallel_results(write: Write) -> None:
    path = write(
        claude("user", "1", None, "go"),
        claude("assistant", "2", "1", [{"type": "thinking", "thinking": "hm", "signature": "sig"}], id="m"),
        claude("assistant", "3", "2", [{"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}}], id="m"),
        claude("user", "4", "3", [{"type": "tool_result", "tool_use_id": "a", "content": "A"}]),
        claude("assistant", "5", "3", [{"type": "tool_use", "id": "b", "name": "Read", "input": {}}], id="m"),
        claude("user", "6", "5", [{"type": "tool_result", "tool_use_id": "b", "content": say("B"), "is_error": True}]),
        claude("assistant", "7", "6", say("done")),
    )
    imported = import_session(path)
    answer = of(Said, imported)[1].message
    assert [type(part) for part in answer.parts] == [Thought, ToolCall, ToolCall]
    sealed = Opaque("anthropic", '{"type":"thinking","thinking":"hm","signature":"sig"}', "claude-opus-4-5")
    assert answer.parts[0] == Thought("hm", sealed)
    assert answer.calls[0].arguments == '{"p":1}'
    assert [(entry.result.call_id, entry.outcome) for entry in of(ToolFinished, imported)] == [("a", "finished"), ("b", "failed")]
    assert not of(Rewound, imported)
    assert not imported.not_carried
    assert_valid_everywhere(imported)


def test_a_signature_goes_back_to_the_service_that_made_it_and_to_no_other(write: Write) -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "SIGNED"}, {"type": "text", "text": "hello"}]
    imported = import_session(write(claude("user", "1", None, "hi"), claude("assistant", "2", "1", blocks, model="claude-opus-5")))
    for where in MAIN:
        destination = connection(where)
        body = destination.prepare(msgspec.structs.replace(History(entries=imported.entries).request, model=destination.model)).body
        assert (b"SIGNED" in body) == (where == "anthropic")


def test_going_back_in_claude_code_is_a_rewind_here(write: Write) -> None:
    path = write(
        claude("user", "1", None, "one"),
        claude("assistant", "2", "1", say("first")),
        claude("user", "3", "2", "left behind"),
        claude("assistant", "4", "3", say("left too")),
        claude("system", "5", "2", subtype="note"),
        claude("user", "6", "5", "instead"),
        claude("assistant", "7", "6", say("second")),
    )
    imported = import_session(path)
    assert shown(imported) == ["user: one", "assistant: first", "user: instead", "assistant: second"]
    assert len(of(Said, imported)) == 6
    assert len(of(Rewound, imported)) == 1
    assert imported.not_carried == ("1 × a line of the kind system (note)",)


def test_a_compaction_of_claude_code_is_one_here(write: Write) -> None:
    path = write(
        claude("user", "1", None, "long story"),
        claude("assistant", "2", "1", say("indeed")),
        claude("system", "3", None, subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 155_000}),
        claude("user", "4", "3", "Summary: a long story.", isCompactSummary=True),
        claude("user", "5", "4", "and then?"),
    )
    imported = import_session(path)
    assert [entry.original_tokens for entry in of(Compressed, imported)] == [155_000]
    assert shown(imported) == ["user: Summary: a long story.", "user: and then?"]
    assert_valid_everywhere(imported)


def test_sub_agents_attachments_and_own_lines_are_listed_with_their_counts(write: Write) -> None:
    path = write(
        {"type": "summary", "summary": "A  title\nin two lines", "leafUuid": "9"},
        claude("user", "1", None, "hi", mood="good"),
        claude("user", "s1", None, "sub", isSidechain=True),
        claude("assistant", "s2", "s1", say("sub says"), isSidechain=True),
        claude("attachment", "at", "1", attachment={"type": "file", "content": "x"}),
        claude("assistant", "2", "at", [*say("hello"), {"type": "novelty"}]),
        claude("user", "3", "2", [*say("look"), {"type": "novelty"}]),
        claude("user", "3", "2", "the same line again"),
        claude("user", "4", "3", [{"type": "tool_result", "tool_use_id": "nobody", "content": "x"}]),
        '{"type": "user", "torn',
    )
    imported = import_session(path)
    assert imported.title == "A title in two lines"
    assert [entry.title for entry in of(Titled, imported)] == [imported.title]
    assert shown(imported) == ["user: hi", "assistant: hello", "user: look"]
    assert set(imported.not_carried) == {
        "2 × a message of a sub-agent (sidechain)",
        "1 × a line of the kind attachment (file)",
        "1 × a block of an answer (novelty)",
        "1 × a block of a message (novelty)",
        "1 × a line that was there already",
        "1 × a result whose call is not in the file",
        "1 × a line that is not JSON",
        "1 × a field that Dragoman does not record: mood (1)",
    }


def test_words_of_the_file_are_shown_without_controls(write: Write) -> None:
    path = write(claude("user", "1", None, "hi"), {"type": "\x1b[2Jx", "uuid": "2"}, {"type": "summary", "summary": "a\x1b]0;b\x07"})
    imported = import_session(path)
    assert len(imported.not_carried) == 1
    assert imported.title.isprintable()
    assert imported.not_carried[0].isprintable()
    assert imported.not_carried[0].startswith("1 × a line of the kind")


def test_an_error_claude_code_wrote_itself_is_kept_and_not_shown_to_the_model(write: Write) -> None:
    path = write(
        claude("user", "1", None, "hi"),
        claude("assistant", "2", "1", say("API Error: 529"), model="<synthetic>", isApiErrorMessage=True),
        claude("assistant", "3", "2", say("hello")),
    )
    imported = import_session(path)
    assert shown(imported) == ["user: hi", "assistant: hello"]
    assert len(of(AnswerRejected, imported)) == 1
    assert not of(ModelChanged, imported)


def test_images_become_blobs(write: Write) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL_TEXT}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!!"}}
    path = write(
        claude("user", "1", None, [image, broken]),
        claude("assistant", "2", "1", [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]),
        claude("user", "3", "2", [{"type": "tool_result", "tool_use_id": "a", "content": [image]}]),
    )
    blobs = MemoryBlobs()
    imported = import_session(path, blobs)
    picture, stand_in = of(Said, imported)[0].message.parts
    assert isinstance(picture, Blob)
    assert blobs.get(picture.sha256) == PIXEL
    assert isinstance(stand_in, Text)
    assert of(ToolFinished, imported)[0].result.content == (picture,)
    assert imported.not_carried == ("1 × media that cannot be decoded",)
    assert_valid_everywhere(imported, blobs)
    assert "2 × media without a place to keep it" in import_session(path).not_carried


# --- pi -----------------------------------------------------------------------------------------------------------------------

PI_HEAD = {"type": "session", "version": 3, "id": "p", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/p"}


def pi(own_id: str, parent: str | None, role: str, content: object, **more: object) -> dict[str, object]:
    made_by = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5"} if role == "assistant" else {}
    stamp = {"id": own_id, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z"}
    return {"type": "message", **stamp, "message": {"role": role, "content": content, **made_by, **more}}


def test_branches_of_pi_are_rewinds_and_the_last_one_stands(write: Write) -> None:
    path = write(
        PI_HEAD,
        {"type": "session_info", "id": "n", "parentId": None, "name": "Names"},
        pi("1", "n", "user", "one"),
        pi("2", "1", "assistant", say("first")),
        pi("3", "2", "user", "left behind"),
        pi("4", "3", "assistant", say("gone"), provider="openai", api="openai-responses", model="gpt-5"),
        {"type": "branch_summary", "id": "5", "parentId": "2", "fromId": "4", "summary": "Tried it."},
        pi("6", "5", "user", "instead"),
        pi("7", "6", "assistant", say("second")),
    )
    imported = import_session(path)
    assert shown(imported) == ["user: one", "assistant: first", "user: Tried it.", "user: instead", "assistant: second"]
    view = History(entries=imported.entries).view
    assert (view.deployment, view.model) == ("anthropic", "claude-sonnet-4-5")
    assert imported.title == "Names"


def test_the_model_of_a_branch_that_was_left_is_left_with_it(write: Write) -> None:
    other: dict[str, Any] = {"provider": "openai", "api": "openai-responses", "model": "gpt-5"}
    lines = [
        PI_HEAD,
        pi("1", None, "user", "one"),
        pi("2", "1", "assistant", say("first")),
        pi("3", "2", "assistant", say("gone"), **other),
        pi("4", "2", "user", "instead"),
    ]
    assert History(entries=import_session(write(*lines)).entries).view.model == "claude-sonnet-4-5"
    again = import_session(write(*lines, pi("5", "4", "assistant", say("second"), **other)))
    assert History(entries=again.entries).view.model == "gpt-5"


def test_a_compaction_of_pi_keeps_what_pi_kept(write: Write) -> None:
    path = write(
        PI_HEAD,
        pi("1", None, "user", "one"),
        pi("2", "1", "assistant", say("first")),
        pi("3", "2", "user", "two"),
        pi("4", "3", "assistant", [{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]),
        pi("5", "4", "toolResult", say("x"), toolCallId="c", toolName="read", isError=False),
        {"type": "compaction", "id": "6", "parentId": "5", "summary": "One was said.", "firstKeptEntryId": "3", "tokensBefore": 9},
        pi("7", "6", "user", "three"),
    )
    imported = import_session(path)
    expected = ["user: One was said.", "user: two", "assistant: ['ToolCall']", "user: ['ToolResult']", "user: three"]
    assert shown(imported) == expected
    assert_valid_everywhere(imported)


def test_signatures_pi_kept_are_tagged_with_the_service_that_made_them(write: Write) -> None:
    reasoning = '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ENC"}'
    google = {"api": "google-generative-ai", "provider": "google", "model": "gemini-3.8-flash"}
    openai = {"api": "openai-responses", "provider": "openai", "model": "gpt-6.1-sol"}
    call = {"type": "toolCall", "id": "g", "name": "read", "arguments": {}, "thoughtSignature": "c2ln"}
    path = write(
        PI_HEAD,
        pi("1", None, "user", "one"),
        pi("2", "1", "assistant", [{"type": "thinking", "thinking": "hm", "thinkingSignature": "S"}, *say("a")]),
        pi("3", "2", "user", "two"),
        pi("4", "3", "assistant", [{"type": "thinking", "thinking": "", "thinkingSignature": reasoning}, *say("b")], **openai),
        pi("5", "4", "user", "three"),
        pi("6", "5", "assistant", [call], **google),
        pi("7", "6", "toolResult", [{"type": "image", "data": PIXEL_TEXT, "mimeType": "image/png"}], toolCallId="g"),
    )
    blobs = MemoryBlobs()
    imported = import_session(path, blobs)
    sealed = [part.opaque for entry in of(Said, imported) for part in entry.message.parts if getattr(part, "opaque", None)]
    assert [(opaque.provider, opaque.model) for opaque in sealed] == [
        ("anthropic", "claude-sonnet-4-5"),
        ("responses", "gpt-6.1-sol"),
        ("gemini", "gemini-3.8-flash"),
    ]
    assert sealed[1].json == reasoning
    assert sealed[2].json == '"c2ln"'
    assert [(entry.deployment, entry.model) for entry in of(ModelChanged, imported)] == [
        ("responses", "gpt-6.1-sol"),
        ("gemini", "gemini-3.8-flash"),
    ]
    assert not imported.not_carried
    assert_valid_everywhere(imported, blobs)


def test_calls_of_an_answer_that_was_broken_off_were_not_run(write: Write) -> None:
    path = write(
        PI_HEAD,
        pi("1", None, "user", "one"),
        pi("2", "1", "assistant", [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}], stopReason="aborted"),
        pi("3", "2", "user", "go on"),
        pi("4", "3", "assistant", [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}], stopReason="toolUse"),
        pi("5", "4", "toolResult", say("of the second"), toolCallId="c"),
        pi("6", "5", "assistant", [{"type": "toolCall", "id": "d", "name": "bash", "arguments": {}}], stopReason="toolUse"),
    )
    imported = import_session(path)
    ended = [(entry.result.call_id, entry.outcome) for entry in of(ToolFinished, imported)]
    assert ended == [("c", "not_run"), ("c-2", "finished"), ("d", "unknown")]
    assert imported.not_carried == ("2 × a result that the file does not have (its call is closed as interrupted)",)
    assert_valid_everywhere(imported)


# --- gemini-cli ---------------------------------------------------------------------------------------------------------------


def conversation_record() -> dict[str, Any]:
    call = {"id": "c1", "name": "read_file", "args": {"path": "a"}, "status": "success", "resultDisplay": "read it"}
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "A"}}}
    image = {"inlineData": {"mimeType": "image/png", "data": PIXEL_TEXT}}
    used = {"input": 100, "output": 7, "cached": 60, "thoughts": 3, "tool": 0, "total": 110}
    return {
        "sessionId": "11111111-2222-3333-4444-555555555555",
        "projectHash": "abc",
        "startTime": "2025-10-01T08:00:00.000Z",
        "lastUpdated": "2025-10-01T08:01:00.000Z",
        "summary": "读取文件 🙂",
        "messages": [
            {"id": "1", "timestamp": "2025-10-01T08:00:00.000Z", "type": "user", "content": "你好"},
            {"id": "2", "timestamp": "2025-10-01T08:00:01.000Z", "type": "info", "content": "a note on the screen"},
            {
                "id": "3",
                "timestamp": "2025-10-01T08:00:02.000Z",
                "type": "gemini",
                "content": "",
                "thoughts": [{"subject": "Reading", "description": "the file", "timestamp": "2025-10-01T08:00:02.000Z"}],
                "tokens": used,
                "model": "gemini-2.5-pro",
                "toolCalls": [call | {"result": [response, image]}, call | {"id": "c2", "status": "cancelled"}],
            },
            {
                "id": "4",
                "timestamp": "2025-10-01T08:00:03.000Z",
                "type": "gemini",
                "content": [{"text": "done"}],
                "model": "gemini-2.5-pro",
            },
            {
                "id": "5",
                "timestamp": "2025-10-01T08:00:04.000Z",
                "type": "user",
                "content": [{"fileData": {"mimeType": "video/mp4", "fileUri": "u"}}],
            },
        ],
    }


@pytest.mark.parametrize("indent", [None, 2])
def test_a_conversation_record_of_gemini_cli_is_imported(tmp_path: Path, indent: int | None) -> None:
    """SESSIONS-4: sessionId, projectHash, startTime, lastUpdated, messages[id, timestamp, type, content, thoughts, tokens, model]."""
    path = tmp_path / "session-2025-10-01.json"
    path.write_text(json.dumps(conversation_record(), indent=indent, ensure_ascii=False))
    blobs = MemoryBlobs()
    imported = import_session(path, blobs)
    head = imported.entries[0]
    assert isinstance(head, Started)
    assert (imported.source, imported.title) == ("gemini-cli", "读取文件 🙂")
    assert head.session_id.startswith("20251001-080000-")
    prompt, answer, done, file = of(Said, imported)
    assert prompt.message == user("你好")
    assert answer.message.parts[0] == Thought("**Reading**\nthe file")
    assert answer.usage == Usage(fresh_tokens=40, cache_read_tokens=60, output_tokens=10, thought_tokens=3)
    assert (done.model, done.timestamp_ms) == ("gemini-2.5-pro", 1_759_305_603_000)
    assert file.message.parts == (FileRef("video/mp4", "u"),)
    first, second = of(ToolFinished, imported)
    assert (first.outcome, first.display, first.result.content[0]) == ("finished", "read it", Text("A"))
    assert isinstance(first.result.content[1], Blob)
    assert second.outcome == "unknown"
    assert set(imported.not_carried) == {
        "1 × a message of the type info",
        "1 × a result that the file does not have (its call is closed as interrupted)",
    }
    assert_valid_everywhere(imported, blobs)


GEMINI_HEAD = {"sessionId": "g", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}


def gemini(own_id: str, kind: str, content: object, **more: object) -> dict[str, object]:
    return {"id": own_id, "timestamp": "2026-01-01T00:00:00Z", "type": kind, "content": content, **more}


def test_what_gemini_cli_took_back_is_rewound(write: Write) -> None:
    path = write(
        GEMINI_HEAD,
        gemini("1", "user", "one"),
        gemini("2", "gemini", "first", model="m"),
        gemini("3", "user", "left behind"),
        gemini("4", "gemini", "gone", model="m"),
        {"$rewindTo": "3"},
        gemini("5", "user", "instead"),
        gemini("6", "gemini", "", model="m"),
        gemini("6", "gemini", "second", model="m"),
        {"$set": {"lastUpdated": "2026-01-01T00:00:01Z"}},
    )
    imported = import_session(path)
    assert shown(imported) == ["user: one", "assistant: first", "user: instead", "assistant: second"]
    assert len(of(Said, imported)) == 6


def test_a_list_put_in_the_place_of_another_stands_as_it_is(write: Write) -> None:
    replaced = [gemini("1", "user", "one"), gemini("s", "user", "a summary")]
    path = write(GEMINI_HEAD, gemini("1", "user", "one"), gemini("2", "gemini", "first", model="m"), {"$set": {"messages": replaced}})
    imported = import_session(path)
    assert shown(imported) == ["user: one", "user: a summary"]
    assert len(of(Said, imported)) == 3


def test_thought_signatures_of_gemini_cli_stay_on_their_part(write: Write) -> None:
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": "dGhpbms="},
        {"text": "so:", "thoughtSignature": "dGV4dA=="},
        {"functionCall": {"id": "c", "name": "read_file", "args": {}}, "thoughtSignature": "Y2FsbA=="},
    ]
    response = {"functionResponse": {"id": "c", "name": "read_file", "response": {"error": "no such file"}}}
    path = write(
        GEMINI_HEAD, gemini("1", "user", "go"), gemini("2", "gemini", parts, model="gemini-3.8-flash"), gemini("3", "user", [response])
    )
    imported = import_session(path)
    sealed = [part.opaque.json for part in of(Said, imported)[1].message.parts]
    assert sealed == [json.dumps(parts[0], separators=(",", ":")), '"dGV4dA=="', '"Y2FsbA=="']
    assert len(of(Said, imported)) == 2, "a message of results alone is no prompt"
    assert not imported.not_carried
    assert of(ToolFinished, imported)[0].result.content == (Text("no such file"),)
    assert of(ToolFinished, imported)[0].outcome == "failed"
    assert_valid_everywhere(imported)


# --- Codex --------------------------------------------------------------------------------------------------------------------


def codex(kind: str, **payload: object) -> dict[str, object]:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: object) -> dict[str, object]:
    return codex("response_item", type=kind, **payload)


def prompt(text: str) -> dict[str, object]:
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def reply(text: str) -> dict[str, object]:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


CODEX_HEAD = codex("session_meta", id="x", timestamp="2026-01-01T00:00:00Z", cwd="/p", cli_version="1.0", model_provider="openai")
CODEX_TURN = codex("turn_context", model="gpt-6.1-sol", cwd="/p")


def test_items_of_one_answer_of_codex_stay_together(write: Write) -> None:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL_TEXT}"}
    last = {"last_token_usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 9, "reasoning_output_tokens": 4}}
    path = write(
        CODEX_HEAD,
        CODEX_TURN,
        item("message", role="user", content=[{"type": "input_text", "text": "look"}, picture]),
        item("reasoning", id="rs", summary=[{"type": "summary_text", "text": "hm"}], content=None, encrypted_content="ENC", own="x"),
        item("message", role="assistant", phase="commentary", content=[{"type": "output_text", "text": "I will look."}]),
        item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="a"),
        item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="b", status="completed"),
        codex("event_msg", type="token_count", info=last),
        item("function_call_output", call_id="a", output="ok"),
        item("custom_tool_call_output", call_id="b", output=[{"type": "input_text", "text": "patched"}, picture]),
        item("web_search_call", id="ws", status="completed", action={"type": "search", "query": "q"}),
        reply("done"),
        item("ghost_snapshot", ghost_commit={}),
        item("message", role="developer", content=[]),
        codex("event_msg", type="agent_message", message="done"),
    )
    blobs = MemoryBlobs()
    imported = import_session(path, blobs)
    asked, answer, done = of(Said, imported)
    assert isinstance(asked.message.parts[1], Blob)
    thought, text, first, second = answer.message.parts
    sealed = '{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ENC"}'
    assert thought == Thought("hm", Opaque("responses", sealed, "gpt-6.1-sol"))
    assert text.opaque == Opaque("responses", '{"phase":"commentary"}', "gpt-6.1-sol")
    assert (first.name, first.arguments) == ("shell", '{"command":["ls"]}')
    assert (second.name, second.args) == ("apply_patch", {"input": "*** Begin"})
    assert answer.usage == Usage(fresh_tokens=60, cache_read_tokens=40, output_tokens=9, thought_tokens=4)
    assert done.message.text == "done"
    assert [len(entry.result.content) for entry in of(ToolFinished, imported)] == [1, 2]
    assert set(imported.not_carried) == {
        "1 × an item of the conversation (ghost_snapshot)",
        "1 × a message of the role developer",
        "1 × an event for the screen (agent_message)",
        "1 × a field that Dragoman does not record: own (1)",
    }
    assert_valid_everywhere(imported, blobs)


def test_what_an_answer_used_ends_it_and_is_told_once(write: Write) -> None:
    def used(tokens: int) -> dict[str, object]:
        return codex("event_msg", type="token_count", info={"last_token_usage": {"input_tokens": tokens, "output_tokens": 1}})

    imported = import_session(write(CODEX_HEAD, CODEX_TURN, prompt("hi"), reply("a"), used(5), used(7), reply("b"), used(9)))
    answers = [entry for entry in of(Said, imported) if entry.message.role == "assistant"]
    assert [(entry.message.text, entry.usage.input_tokens) for entry in answers] == [("a", 5), ("b", 9)]


def test_what_codex_rolled_back_is_rewound(write: Write) -> None:
    def back(turns: int) -> dict[str, object]:
        return codex("event_msg", type="thread_rolled_back", num_turns=turns)

    path = write(
        CODEX_HEAD,
        CODEX_TURN,
        prompt("<environment_context>here</environment_context>"),
        prompt("one"),
        reply("first"),
        prompt("two"),
        reply("gone"),
        back(1),
        prompt("three"),
        reply("gone too"),
        back(1),
        prompt("four"),
    )
    kept = ["user: <environment_context>here</environment_context>", "user: one", "assistant: first", "user: four"]
    assert shown(import_session(path)) == kept


def test_a_compaction_of_codex_is_one_here(write: Write) -> None:
    imported = import_session(
        write(CODEX_HEAD, CODEX_TURN, prompt("one"), reply("first"), codex("compacted", message="In short: one."), prompt("two"))
    )
    assert shown(imported) == ["user: In short: one.", "user: two"]


def test_the_first_format_of_codex_is_read(write: Write) -> None:
    head = {"id": "x", "timestamp": "2025-05-01T00:00:00Z", "instructions": "be good"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    call = {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"type": "exec", "command": ["ls"]}}
    output = {"type": "function_call_output", "call_id": "c", "output": {"content": "failed", "success": False}}
    imported = import_session(write(head, {"record_type": "state"}, said, call, output))
    assert shown(imported) == ["user: hi", "assistant: ['ToolCall']", "user: ['ToolResult']"]
    assert of(ToolFinished, imported)[0].outcome == "failed"


# --- files that are none of these -----------------------------------------------------------------------------------------------


def test_a_file_that_is_no_session_is_refused_with_its_name_and_what_to_do(write: Write, tmp_path: Path) -> None:
    ours = {"kind": "started", "seq": 1, "timestamp_ms": 1, "session_id": "20260101-000000-00000000"}
    cases = {
        "claude-code, cline, codex, gemini-cli, pi": write({"a": 1}, name="other.jsonl"),
        "has no JSON": write("plain text\n", name="notes.txt"),
        "has no JSON object in it; ": write(name="empty.jsonl"),
        "resume session 20260101-000000-00000000": write(ours, name="ours.jsonl"),
        "without any messages": write(PI_HEAD, name="silent.jsonl"),
        "no such file": tmp_path / "nowhere.jsonl",
        "name one session file inside it": tmp_path,
    }
    for words, path in cases.items():
        with pytest.raises(InputError) as refused:
            import_session(path)
        assert words in str(refused.value)
        assert str(path) in str(refused.value)
        assert refused.value.exit_code == 42


def test_a_line_nested_too_deep_is_listed(write: Write) -> None:
    deep = ['{"type":"message","message":{"role":"user","content":"deep","x":' + "[" * by + "]" * by + "}}\n" for by in (80, 5_000)]
    imported = import_session(write(PI_HEAD, pi("1", None, "user", "one"), *deep))
    assert shown(imported) == ["user: one"]
    assert imported.not_carried == ("2 × a line that is not JSON",)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a file"):
        detect(tmp_path / "pipe")


def test_a_name_no_file_can_have_is_refused() -> None:
    with pytest.raises(InputError):
        detect("nul\0byte")


def test_the_id_can_be_given(write: Write) -> None:
    imported = import_session(write(PI_HEAD, pi("1", None, "user", "one")), session_id="20300101-000000-abcdef01")
    entries: tuple[Entry, ...] = imported.entries
    assert isinstance(entries[0], Started)
    assert entries[0].session_id == "20300101-000000-abcdef01"
    assert History(entries=entries).view.session_id == "20300101-000000-abcdef01"


def test_a_file_of_a_byte_order_mark_and_half_a_surrogate_pair_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bom.jsonl"
    odd = json.dumps(pi("1", None, "user", "half \ud83d and whole 🙂"))
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(PI_HEAD).encode() + b"\r\n" + odd.encode() + b"\r\n")
    assert shown(import_session(path)) == ["user: half � and whole 🙂"]


# Cline

CLINE = {
    "version": 1,
    "updated_at": "2026-07-15T05:42:04.818Z",
    "agent": "lead",
    "sessionId": "1784094124598_rruoq",
    "system_prompt": "You are Cline.",
    "messages": [
        {
            "id": "1",
            "role": "user",
            "ts": 1783376800000,
            "content": [{"type": "text", "text": "Move the icon"}, {"type": "file", "path": "a.tsx", "content": "icon"}],
        },
        {
            "id": "2",
            "role": "assistant",
            "ts": 1783376875985,
            "content": [
                {"type": "text", "text": "Moving."},
                {"type": "tool_use", "id": "t1", "name": "editor", "input": {"path": "a.tsx"}},
            ],
            "modelInfo": {"id": "anthropic/claude-opus-5", "provider": "cline", "family": "claude-opus"},
            "metrics": {"inputTokens": 35_912, "outputTokens": 164, "cacheReadTokens": 34_332, "cacheWriteTokens": 0, "cost": 0.4},
        },
        {
            "id": "3",
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "name": "editor", "content": [{"query": "q", "result": "r"}]}],
        },
        {"id": "4", "role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
}


def test_a_session_of_cline_is_read_as_clines(write: Write) -> None:
    """It was taken for one of gemini-cli, without a single message."""
    path = write(CLINE, name="session.messages.json")
    assert detect(path) == "cline"
    imported = import_session(path)
    assert imported.source == "cline"
    prompt, answer, last = of(Said, imported)
    assert prompt.message.text == "Move the icon\n\na.tsx:\nicon"
    assert (answer.model, answer.usage) == ("claude-opus-5", Usage(1_580, 34_332, 0, 164))
    assert [call.name for call in answer.message.calls] == ["editor"]
    assert [entry.result.content for entry in of(ToolFinished, imported)] == [(Text('[{"query":"q","result":"r"}]'),)]
    assert last.message.text == "Done."
    assert imported.not_carried == ("1 × Cline's own instructions to the model", "1 × a field that Dragoman does not record: cost (1)")


def test_a_record_of_gemini_cli_without_a_project_is_still_its_own(write: Write) -> None:
    record = {"sessionId": "x", "messages": [{"id": "1", "type": "user", "content": "Hi"}]}
    assert detect(write(record, name="session.json")) == "gemini-cli"
