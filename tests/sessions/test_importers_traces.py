"""Whole sessions of other programs: nothing of the conversation is lost on the way in, and any service takes what comes out.

The counts are made here from the raw lines, without the importers. The recordings were made against a scripted model on this machine;
the traces are read where they lie.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from destinations import MAIN, connection, violation_in
from dragoman.context.repair import repair
from dragoman.foreign.sessions import detect, import_session
from dragoman.loop.history import History
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.messages import Text, Thought, tool_result, user
from dragoman.values.parts import curated
from dragoman.values.record import Configured, Said, Started, ToolFinished, encode_entry
from dragoman.values.record_reading import decode_entry

FIXTURES = Path(__file__).parent / "fixtures"
TRACES = {
    "claude-code/2caf2337-66bf-41d1-ad27-9d2cab7bd2dc.jsonl": "claude-code",
    "claude-code/683ca24f-7e5e-4e77-a203-0ec9e9318625.jsonl": "claude-code",
    "claude-code/e5c0938a-a76d-4f71-abaf-29dafd4e7ee8.jsonl": "claude-code",
    "pi-mono/large-session.jsonl": "pi",
    "cline/session.messages.json": "cline",
}
RECORDINGS = {"gemini-cli.jsonl": "gemini-cli", "codex.jsonl": "codex", "pi.jsonl": "pi"}


class Counts(NamedTuple):
    prompts: int
    answers: int
    calls: int
    results: int
    text_chars: int
    """What was said by either side, without results."""
    result_chars: int
    thoughts: int


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def count_claude_code(path: Path) -> Counts:
    counts: Counter[str] = Counter()
    answers: set[str] = set()
    for line in lines_of(path):
        if line["type"] not in ("user", "assistant"):
            continue
        content = line["message"]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if line["type"] == "assistant":
            answers.add(line["message"]["id"])
        elif any(block["type"] != "tool_result" for block in blocks):
            counts["prompts"] += 1
        for block in blocks:
            counts[block["type"]] += 1
            if block["type"] == "text":
                counts["text_chars"] += len(block["text"])
            if block["type"] == "tool_result":
                told = block["content"]
                counts["result_chars"] += len(told) if isinstance(told, str) else sum(len(part["text"]) for part in told)
    said = (counts["prompts"], len(answers), counts["tool_use"], counts["tool_result"])
    return Counts(*said, counts["text_chars"], counts["result_chars"], counts["thinking"])


def count_pi(path: Path) -> Counts:
    counts: Counter[str] = Counter()
    for line in lines_of(path):
        if line["type"] != "message":
            continue
        role = line["message"]["role"]
        counts[role] += 1
        for block in line["message"]["content"]:
            counts[block["type"]] += 1
            if block["type"] == "text":
                counts["result_chars" if role == "toolResult" else "text_chars"] += len(block["text"])
    said = (counts["user"], counts["assistant"], counts["toolCall"], counts["toolResult"])
    return Counts(*said, counts["text_chars"], counts["result_chars"], counts["thinking"])


def count_gemini_cli(path: Path) -> Counts:
    messages: dict[str, dict[str, Any]] = {}
    for line in lines_of(path):
        for message in line.get("$set", {}).get("messages", [line] if "type" in line else []):
            messages[message["id"]] = message
    answers = [message for message in messages.values() if message["type"] == "gemini"]
    prompts = [message for message in messages.values() if message["type"] == "user" and "text" in message["content"][0]]
    calls = [call for message in answers for call in message.get("toolCalls", ())]
    told = [call["result"][0]["functionResponse"]["response"] for call in calls]
    text = sum(len(message["content"][0]["text"]) for message in prompts)
    text += sum(
        len(content if isinstance(content := message["content"], str) else "".join(part.get("text", "") for part in content))
        for message in answers
    )
    results = sum(len(next(iter(response.values()))) for response in told)
    return Counts(len(prompts), len(answers), len(calls), len(told), text, results, 0)


def count_codex(path: Path) -> Counts:
    """Each answer of the scripted model is one item, so items are answers here."""
    items = [line["payload"] for line in lines_of(path) if line["type"] == "response_item"]
    prompts = [item for item in items if item.get("role") == "user"]
    replies = [item for item in items if item.get("role") == "assistant"]
    calls = [item for item in items if item["type"] == "function_call"]
    outputs = [item["output"] for item in items if item["type"] == "function_call_output"]
    text = sum(len(block["text"]) for item in prompts + replies for block in item["content"])
    return Counts(len(prompts), len(replies) + len(calls), len(calls), len(outputs), text, sum(map(len, outputs)), 0)


def count_cline(path: Path) -> Counts:
    messages = json.loads(path.read_bytes())["messages"]
    blocks = [(message["role"], block) for message in messages for block in message["content"]]
    prompts = sum(message["role"] == "user" and any(block["type"] != "tool_result" for block in message["content"]) for message in messages)
    answers = sum(message["role"] == "assistant" for message in messages)
    calls = sum(block["type"] == "tool_use" for _, block in blocks)
    told = [block["content"] for _, block in blocks if block["type"] == "tool_result"]
    chars = sum(len(block["text"]) for _, block in blocks if block["type"] == "text")
    chars += sum(len(f"\n\n{block['path']}:\n{block['content']}") for _, block in blocks if block["type"] == "file")
    results = sum(len(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False, separators=(",", ":"))) for each in told)
    return Counts(prompts, answers, calls, len(told), chars, results, 0)


COUNTERS = {"cline": count_cline, "claude-code": count_claude_code, "pi": count_pi, "gemini-cli": count_gemini_cli, "codex": count_codex}


def count_ours(path: Path) -> Counts:
    entries = import_session(path, MemoryBlobs()).entries
    said = [entry.message for entry in entries if isinstance(entry, Said)]
    finished = [entry.result for entry in entries if isinstance(entry, ToolFinished) and entry.outcome not in ("not_run", "unknown")]
    return Counts(
        sum(message.role == "user" for message in said),
        sum(message.role == "assistant" for message in said),
        sum(len(message.calls) for message in said),
        len(finished),
        sum(len(message.text) for message in said),
        sum(len(part.text) for result in finished for part in result.content if isinstance(part, Text)),
        sum(isinstance(part, Thought) for message in said for part in message.parts),
    )


@pytest.fixture(params=[*TRACES, *RECORDINGS])
def session(request: pytest.FixtureRequest) -> tuple[Path, str]:
    """A file and whose it is. The traces lie outside the project and are skipped where they are not."""
    if request.param in RECORDINGS:
        return FIXTURES / request.param, RECORDINGS[request.param]
    corpora: Path = request.getfixturevalue("corpora")
    return corpora / "traces" / request.param, TRACES[request.param]


def test_messages_calls_and_results_are_as_many_as_in_the_source(session: tuple[Path, str]) -> None:
    path, source = session
    assert detect(path) == source
    counted = count_ours(path)
    assert counted == COUNTERS[source](path)
    assert counted.prompts >= 2
    assert counted.calls >= counted.results >= 2


def test_the_record_opens_with_where_it_came_from_and_counts_upward(session: tuple[Path, str]) -> None:
    path, source = session
    imported = import_session(path, MemoryBlobs())
    head, configured = imported.entries[:2]
    assert isinstance(head, Started)
    assert isinstance(configured, Configured)
    assert head.imported_from == f"{source} {path}"
    assert configured.model
    assert configured.deployment
    assert configured.session_id == head.session_id
    assert [entry.seq for entry in imported.entries] == list(range(1, len(imported.entries) + 1))
    assert all(entry.timestamp_ms >= 1_700_000_000_000 for entry in imported.entries)
    assert tuple(decode_entry(encode_entry(entry)) for entry in imported.entries) == imported.entries
    assert import_session(path, MemoryBlobs()) == imported


@pytest.mark.parametrize("where", MAIN)
def test_the_next_request_is_valid_on_every_protocol(session: tuple[Path, str], where: str) -> None:
    """At the end, and wherever the conversation could have been broken off; as the record folds, without repair."""
    blobs = MemoryBlobs()
    entries = import_session(session[0], blobs).entries
    destination = connection(where, blobs=blobs)
    for stop in sorted({len(entries), len(entries) // 2, len(entries) // 3, 12}):
        history = History(entries=entries[:stop])
        for call in history.view.open_calls:
            history.finish_tool(tool_result(call, "broken off", is_error=True), "unknown")
        history.say(user("next"))
        request = msgspec.structs.replace(history.request, model=destination.model)
        assert violation_in(destination, destination.prepare(request).body) is None
        mended = repair(curated(request.messages))
        assert mended.messages == request.messages, mended.notes


def test_usage_is_carried(session: tuple[Path, str]) -> None:
    used = History(entries=import_session(session[0]).entries).usage
    assert used.output_tokens > 0
    assert used.input_tokens > used.output_tokens


def test_results_stand_behind_their_call_with_its_name(session: tuple[Path, str]) -> None:
    open_calls: dict[str, str] = {}
    for entry in import_session(session[0]).entries:
        if isinstance(entry, Said):
            assert not open_calls, "every call has its result before anything else is said"
            open_calls = {call.id: call.name for call in entry.message.calls}
        elif isinstance(entry, ToolFinished):
            assert open_calls.pop(entry.result.call_id) == entry.result.name


def test_a_result_gemini_cli_told_twice_is_one_result() -> None:
    """With its call, and again in a message of results alone."""
    imported = import_session(FIXTURES / "gemini-cli.jsonl")
    assert not any("result" in line for line in imported.not_carried)


@pytest.mark.parametrize("name", [name for name, source in TRACES.items() if source != "cline"])  # which is one object, and no lines
def test_every_line_of_a_trace_is_carried_or_listed(corpora: Path, name: str) -> None:
    path = corpora / "traces" / name
    lines = Counter(line["type"] for line in lines_of(path))
    listed = "\n".join(import_session(path).not_carried)
    for kind in lines.keys() - {"user", "assistant", "message", "session", "summary", "model_change"}:
        assert f" of the kind {kind}" in listed
    counted = sum(int(line.split(" × ")[0]) for line in listed.splitlines() if " of the kind " in line)
    known = sum(lines[kind] for kind in ("user", "assistant", "message", "session", "summary", "model_change"))
    assert counted == sum(lines.values()) - known
