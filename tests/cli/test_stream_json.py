"""stream-json and json as they are documented."""

from __future__ import annotations

import json
import re
import typing
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from dragoman.cli import stream_json
from dragoman.cli.outcome import Failure, Outcome
from dragoman.cli.reports import AnswerText
from dragoman.values import errors
from dragoman.values.events import (
    CitationAdded,
    CompressionStarted,
    ContextCompressed,
    ContextOverflowed,
    ContextPruned,
    ErrorRaised,
    FieldOmitted,
    HandedOver,
    LoopSuspected,
    ModelSwitched,
    NoticeGiven,
    OutputUpdated,
    PromptAccepted,
    PromptRead,
    RequestDelayed,
    ResponseStarted,
    Retrying,
    SavingChanged,
    StreamInvalid,
    SubagentEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallConfirmation,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    ToolModeChanged,
    TurnEvent,
    TurnFinished,
    TurnStarted,
    UserCancelled,
)
from dragoman.values.messages import Blob, Citation, FinishReason, Source, Text, ToolCall, tool_result
from dragoman.values.record import CommandOutput
from dragoman.values.usage import Usage

OPERATE = Path(__file__).resolve().parents[2] / "docs" / "operate"
DOCS = (OPERATE / "stream-json.md").read_text(encoding="utf-8")
CALL = ToolCall("c1", "read_file", '{"file_path": "a"}')
EXAMPLES: list[tuple[Any, dict[str, Any] | None]] = [
    (ResponseStarted("r"), None),
    (PromptAccepted("20261115-120000-0123abcd"), None),
    (TurnStarted(2, "mock/small"), {"type": "context", "event": "turn_started", "turn": 2, "model": "mock/small"}),
    (
        SavingChanged(False, "disk full"),
        {"type": "error", "severity": "warning", "error_type": "saving", "message": "disk full", "saved": False},
    ),
    (TextDelta("hi"), {"type": "message", "role": "assistant", "delta": True, "text": "hi"}),
    (ThoughtDelta("hm"), {"type": "thought", "text": "hm"}),
    (ThoughtDelta("hm", "S", "d"), {"type": "thought", "text": "hm", "subject": "S", "description": "d"}),
    (ToolCallRequested(CALL), {"type": "tool_use", "id": "c1", "name": "read_file", "args": {"file_path": "a"}}),
    (ToolCallRequested(ToolCall("c1", "x", "[1")), {"type": "tool_use", "id": "c1", "name": "x", "args": "[1"}),
    (ToolCallConfirmation(CALL), None),
    (
        ToolCallUpdated("c1", "executing", progress="page 3", done=3, total=10),
        {"type": "tool_progress", "id": "c1", "text": "page 3"} | {"done": 3, "total": 10},
    ),
    (ToolCallUpdated("c1", "executing", progress="looking"), {"type": "tool_progress", "id": "c1", "text": "looking"}),
    (
        ToolCallFinished("c1", (tool_result(CALL, "text", Blob("image/png", "0", 9)),), "shown"),
        {
            "type": "tool_result",
            "id": "c1",
            "outcome": "finished",
            "is_error": False,
            "text": "text\n[image/png, 9 bytes]",
            "display": "shown",
            "files": [],
        },
    ),
    (
        ToolCallFinished(
            "c1", (tool_result(CALL, "no", is_error=True),), error="no", error_type="not_found", output_file="/tmp/x", outcome="failed"
        ),
        {"type": "tool_result", "id": "c1", "outcome": "failed", "is_error": True, "text": "no", "display": "", "files": []}
        | {"error_type": "not_found", "output_file": "/tmp/x"},
    ),
    (
        ToolCallFinished("c1", (tool_result(CALL, "no", is_error=True),), error="no", error_type="denied", outcome="refused"),
        {"type": "tool_result", "id": "c1", "outcome": "refused", "is_error": True, "text": "no", "display": "", "files": []}
        | {"error_type": "denied"},
    ),
    (
        ToolCallFinished("c1", (tool_result(CALL, "text"),), repairs=("dir → path",)),
        {"type": "tool_result", "id": "c1", "outcome": "finished", "is_error": False, "text": "text", "display": "", "files": []}
        | {"repairs": ["dir → path"]},
    ),
    (
        ToolCallFinished("c1", (tool_result(CALL, "text"),), arguments='{"file_path": "b.txt"}'),
        {"type": "tool_result", "id": "c1", "outcome": "finished", "is_error": False, "text": "text", "display": "", "files": []}
        | {"args": {"file_path": "b.txt"}},
    ),
    (
        ToolCallFinished("c1", (tool_result(CALL, "text"),), sources=(Source("Rain", "https://example.org/rain"),)),
        {"type": "tool_result", "id": "c1", "outcome": "finished", "is_error": False, "text": "text", "display": "", "files": []}
        | {"sources": [{"number": 1, "uri": "https://example.org/rain", "title": "Rain", "cited_text": []}]},
    ),
    (
        ToolCallFinished("c1", (tool_result(CALL, "[exit code 3]"),), command=CommandOutput("x" * 30_000, "", 3)),
        {"type": "tool_result", "id": "c1", "outcome": "finished", "is_error": False, "text": "[exit code 3]", "display": "", "files": []}
        | {"command": {"stdout": "x" * 20_000, "stderr": "", "exitCode": 3}},
    ),
    (
        CitationAdded(Citation("http://x", "X", "said")),
        {"type": "message", "role": "assistant", "delta": True, "text": ""}
        | {"citation": {"uri": "http://x", "title": "X", "cited_text": "said"}},
    ),
    (
        TurnFinished(FinishReason.STOP, Usage(1, 2, 3, 4)),
        {"type": "context", "event": "turn_finished", "reason": "stop", "tokens": {"input": 6, "cache_read": 2, "output": 4}},
    ),
    (PromptRead(32, 450), {"type": "context", "event": "prompt_progress", "done_tokens": 32, "total_tokens": 450}),
    (ContextPruned(("c1",), 9), {"type": "context", "event": "pruned", "call_ids": ["c1"], "saved_tokens": 9}),
    (
        ContextPruned(("c1",), 9, 8192),
        {"type": "context", "event": "pruned", "call_ids": ["c1"], "saved_tokens": 9, "window": 8192},
    ),
    (CompressionStarted(9, 8), {"type": "context", "event": "compressing", "tokens": 9, "window": 8}),
    (ContextCompressed("done", 9, 3), {"type": "context", "event": "compressed", "status": "done", "tokens": {"original": 9, "new": 3}}),
    (ContextOverflowed(9, 3), {"type": "context", "event": "overflow", "estimated_tokens": 9, "limit_tokens": 3}),
    (
        Retrying(1, 5.25, "busy"),
        {"type": "error", "severity": "warning", "error_type": "retry", "message": "busy", "attempt": 1, "wait_s": 5.25, "discard": True},
    ),
    (
        RequestDelayed(5.25, "waiting"),
        {"type": "error", "severity": "warning", "error_type": "request_delayed", "message": "waiting", "wait_s": 5.25},
    ),
    (StreamInvalid("empty"), {"type": "error", "severity": "warning", "error_type": "invalid_stream", "message": "empty", "discard": True}),
    (
        FieldOmitted("responses", "gpt-x", "reasoning.summary", "not verified"),
        {
            "type": "error",
            "severity": "warning",
            "error_type": "field_omitted",
            "message": "not verified",
            "model": "responses/gpt-x",
            "field": "reasoning.summary",
        },
    ),
    (OutputUpdated({"name": "Muscat"}), None),
    (ToolModeChanged("text", "hermes"), {"type": "context", "event": "tool_mode", "mode": "text", "dialect": "hermes"}),
    (
        ModelSwitched("b/two", "a/one", "busy"),
        {"type": "error", "severity": "warning", "error_type": "model_switched", "message": "busy", "model": "b/two", "previous": "a/one"}
        | {"discard": True},
    ),
    (
        NoticeGiven("settings", "top_k is not sent"),
        {"type": "error", "severity": "warning", "error_type": "notice", "message": "top_k is not sent", "about": "settings"},
    ),
    (
        SubagentEvent("1", "research", SubagentEvent("2", "look_up", TextDelta("7"))),
        {
            "type": "subagent",
            "id": "1",
            "name": "research",
            "event": {
                "type": "subagent",
                "id": "2",
                "name": "look_up",
                "event": {"type": "message", "role": "assistant", "delta": True, "text": "7"},
            },
        },
    ),
    (
        HandedOver("1", "billing", "a/one"),
        {"type": "context", "event": "handed_over", "id": "1", "agent": "billing", "model": "a/one"},
    ),
    (LoopSuspected("again", 2), {"type": "error", "severity": "warning", "error_type": "loop_detected", "message": "again", "count": 2}),
    (
        ErrorRaised("broken", "ServerError", True, 57),
        {"type": "error", "severity": "error", "error_type": "ServerError", "message": "broken", "exit_code": 57},
    ),
    (UserCancelled(), {"type": "error", "severity": "error", "error_type": "Cancelled", "message": "cancelled", "exit_code": 130}),
]


@pytest.mark.parametrize(("event", "told"), EXAMPLES, ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "")
def test_each_event_is_told(event: TurnEvent, told: dict[str, Any] | None) -> None:
    assert stream_json.event_data(event) == told


@pytest.mark.parametrize("event", [ToolCallUpdated("c1", "executing", "…"), ToolCallUpdated("c1", "success")])
def test_states_and_output_as_it_comes_are_not_told(event: TurnEvent) -> None:
    assert stream_json.event_data(event) is None


def test_the_documented_table_is_what_happens() -> None:
    rows = dict(re.findall(r"^\| `([A-Z]\w+)` \| (.*) \|$", DOCS, re.MULTILINE))
    assert set(rows) == {kind.__name__ for kind in typing.get_args(TurnEvent)} == {type(event).__name__ for event, _ in EXAMPLES}
    for event, told in EXAMPLES:
        row = rows[type(event).__name__]
        assert row.startswith("none" if told is None else f"`{told['type']}`"), event
        if told and (told["type"] == "context" or told.get("severity") == "warning"):
            assert (told.get("event") or told["error_type"]) in row
        if told and told["type"] == "error":
            assert ("warning" in row) == (told["severity"] == "warning")
            assert ("discard" in row) == bool(told.get("discard"))


WHOLE = Outcome(
    failure=Failure("m", "t", 1),
    sources=(Source("Rain", "https://example.org/rain", ("It rains.",)),),
    not_saved="disk full",
)
"""With everything that may be left out."""


def test_the_documented_fields_are_those_that_are_sent() -> None:
    rows = {kind: set(fields.split(", ")) for kind, fields in re.findall(r"^\| `([a-z_]+)` \| ([\w, …]+?) \|", DOCS, re.MULTILINE)}
    sent: dict[str, set[str]] = {}
    lines = [told for _, told in EXAMPLES if told]
    lines.append(stream_json.init_data(session_id="s", model="m", tools=[], workspace="/", sandbox=None))
    lines.append(stream_json.prompt_data("hi"))
    lines.append(stream_json.result_data(WHOLE) | {"unchecked": stream_json.result_data(Outcome(unchecked="why"))["unchecked"]})
    for told in lines:
        sent.setdefault(told["type"], set()).update(set(told) - {"type"})
    assert set(rows) == set(sent)
    for kind in ("init", "thought", "tool_use", "tool_progress", "tool_result", "result"):
        assert rows[kind] == sent[kind], kind
    assert rows["message"] == sent["message"] - {"citation"}


def test_the_documented_object_is_what_json_gives() -> None:
    [example] = re.findall(r"```json\n(.*?)```", (OPERATE / "json.md").read_text(encoding="utf-8"), re.DOTALL)

    def shape(value: Any) -> Any:
        if isinstance(value, list):
            return [shape(item) for item in value if isinstance(item, dict)]
        return {key: shape(item) for key, item in value.items()} if isinstance(value, dict) else None

    assert shape(json.loads(example)) == shape(WHOLE.to_json())


def test_the_documented_exit_codes_are_those_of_the_errors() -> None:
    page = (OPERATE.parent / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| .* \| (.*?) ?\|$", page, re.MULTILINE)
    documented = {int(code): names for code, names in rows}
    tree = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.DragomanError)]
    for error in tree:
        assert error.__name__ in documented[error.exit_code], error


def test_long_text_is_cut_and_marked() -> None:
    told = stream_json.event_data(ToolCallFinished("c1", (Text("x" * 100_000),)))
    assert told is not None
    assert len(told["text"]) == stream_json.MAX_TEXT_CHARS
    assert told["truncated"]


@hypothesis.given(st.text(st.characters(codec=None)))
def test_any_text_makes_one_line_of_valid_json(text: str) -> None:
    """Line ends, NEL, U+2028, lone surrogates: one event is one line for every reader."""
    told = stream_json.event_data(TextDelta(text))
    assert told is not None
    line = stream_json.line(told, 7)
    assert line.endswith("\n")
    assert "\n" not in line[:-1]
    assert (json.loads(line.encode())["type"], json.loads(line.encode())["at_ms"]) == ("message", 7)


@hypothesis.given(st.lists(st.one_of(st.text(max_size=3), st.sampled_from([None, False]))))
def test_the_answer_is_the_last_valid_turn_that_said_something(steps: list[str | bool | None]) -> None:
    """None: the turn ends. False: what was said of it is void."""
    answer = AnswerText()
    current, last = "", ""
    for step in steps:
        match step:
            case None:
                answer.keep()
                last, current = (current if current.strip() else last), ""
            case False:
                assert answer.discard() == bool(current)
                current = ""
            case _:
                answer.add(str(step))
                current += str(step)
    assert answer.last == last
