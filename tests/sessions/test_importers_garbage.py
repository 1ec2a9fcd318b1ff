"""Whatever a file holds, importing it gives a record that folds and can be sent, or an InputError; nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from destinations import MAIN, connection, violation_in
from dragoman.foreign.sessions import detect, import_session
from dragoman.loop.history import History
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.errors import InputError
from dragoman.values.messages import user
from dragoman.values.record import Said, ToolFinished, encode_entry
from dragoman.values.record_reading import decode_entry

FIXTURES = Path(__file__).parent / "fixtures"
CLAUDE = [
    {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "hi"}},
    {
        "type": "assistant",
        "uuid": "2",
        "parentUuid": "1",
        "message": {"id": "m", "model": "c", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}], "usage": {}},
    },
    {
        "type": "user",
        "uuid": "3",
        "parentUuid": "2",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}]},
    },
    {"type": "system", "subtype": "compact_boundary", "uuid": "4", "parentUuid": None, "compactMetadata": {"preTokens": 5}},
    {"type": "user", "uuid": "5", "parentUuid": "4", "isCompactSummary": True, "message": {"content": "summary"}},
    {"type": "user", "uuid": "6", "parentUuid": "2", "message": {"content": "back"}},
]
CLINE: list[dict[str, Any]] = [
    {
        "agent": "lead",
        "sessionId": "s",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "file", "path": "a", "content": "b"}], "ts": 1},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "editor", "input": {}}],
                "modelInfo": {"id": "anthropic/c"},
                "metrics": {"inputTokens": 5},
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"query": "q", "result": "r"}]}]},
        ],
    }
]
SEEDS: dict[str, list[dict[str, Any]]] = {
    "claude-code": CLAUDE,
    "cline": CLINE,
    **{
        name: [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines()] for name in ("codex", "gemini-cli", "pi")
    },
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("garbage") / "session.jsonl"


def check(path: Path) -> None:
    blobs = MemoryBlobs()
    try:
        imported = import_session(path, blobs)
    except InputError:
        return
    assert tuple(decode_entry(encode_entry(entry)) for entry in imported.entries) == imported.entries
    calls = [call.id for entry in imported.entries if isinstance(entry, Said) for call in entry.message.calls]
    assert sorted(calls) == sorted(entry.result.call_id for entry in imported.entries if isinstance(entry, ToolFinished))
    assert len(set(calls)) == len(calls)
    for where in MAIN:
        destination = connection(where, blobs=blobs)
        history = History(entries=imported.entries)
        assert not history.view.open_calls
        history.say(user("next"))
        body = destination.prepare(msgspec.structs.replace(history.request, model=destination.model)).body
        assert violation_in(destination, body) is None


@given(data=st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_are_refused(scratch: Path, data: bytes) -> None:
    scratch.write_bytes(data)
    with pytest.raises(InputError):
        detect(scratch)
    check(scratch)


@given(data=st.data(), name=st.sampled_from(sorted(SEEDS)))
def test_garbage_between_the_lines_is_counted_and_harms_nothing(scratch: Path, data: st.DataObject, name: str) -> None:
    junk = st.binary(max_size=30).map(lambda line: b"\x00" + line.replace(b"\n", b""))
    lines = [json.dumps(line).encode() for line in SEEDS[name]]
    added = 0
    for _ in range(data.draw(st.integers(1, 4))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(junk))
        added += 1
    scratch.write_bytes(b"\n".join(lines))
    imported = import_session(scratch)
    assert f"{added} × a line that is not JSON" in imported.not_carried
    scratch.write_bytes(b"\n".join(json.dumps(line).encode() for line in SEEDS[name]))
    assert imported.entries == import_session(scratch).entries


@given(data=st.data(), name=st.sampled_from(sorted(SEEDS)))
def test_any_field_may_hold_anything(scratch: Path, data: st.DataObject, name: str) -> None:
    """Real lines in which values were swapped for others, lines left out, doubled and moved about."""
    lines = [json.loads(json.dumps(line)) for line in data.draw(st.lists(st.sampled_from(SEEDS[name]), min_size=1, max_size=12))]
    lines.insert(0, json.loads(json.dumps(SEEDS[name][0])))
    for _ in range(data.draw(st.integers(0, 5))):
        spoil(data, data.draw(st.sampled_from(lines)))
    scratch.write_text("\n".join(json.dumps(line) for line in lines))
    check(scratch)


def spoil(data: st.DataObject, value: Any) -> None:
    """Somewhere in a value, put something else, take something away, or put a value of the same line in another's place."""
    places: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        if isinstance(inner, dict | list):
            for key, item in inner.items() if isinstance(inner, dict) else enumerate(inner):
                places.append((inner, key))
                walk(item)

    walk(value)
    if not places:
        return
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(anything | st.sampled_from([json.loads(json.dumps(each[0][each[1]])) for each in places]))
