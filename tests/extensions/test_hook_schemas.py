"""What hooks are told and may answer, beside the JSON Schemas that Codex publishes for the same contract. They are read in place."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from dragoman.extensions.hooks.answers import HookEnd, read_answer
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.inputs import Occasion, encode_input, input_of, merge_arguments
from dragoman.extensions.hooks.names import EVENTS, TOOL_EVENTS
from dragoman.values.origin import Origin
from dragoman.values.record import CommandOutput
from dragoman.values.schema import problems

DETAILS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "hello"},
    "PostToolUse": {"text": "hello"},
    "PreCompact": {"trigger": "auto"},
    "PostCompact": {"trigger": "manual"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": None},
    "SubagentStop": {"stop_hook_active": True, "last_assistant_message": "hello", "agent_transcript_path": None},
    "SessionEnd": {"reason": "other"},
}
COMMON = {"continue": True, "suppressOutput": True, "systemMessage": "hello"}
BLOCK = {"decision": "block", "reason": "because"}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "SessionStart": [COMMON, {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "more"}}],
    "UserPromptSubmit": [COMMON, BLOCK, {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "more"}}],
    "PreToolUse": [
        COMMON,
        BLOCK,
        {"decision": "approve"},
        *(
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": each, "permissionDecisionReason": "because"}}
            for each in ("allow", "deny", "ask")
        ),
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "ls"}, "additionalContext": "more"}},
    ],
    "PermissionRequest": [
        COMMON,
        {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}},
        {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "because"}}},
    ],
    "PostToolUse": [COMMON, BLOCK, {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "more"}}],
    "PreCompact": [COMMON, {"continue": False, "stopReason": "because"}],
    "PostCompact": [COMMON],
    "SubagentStart": [COMMON, {"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "more"}}],
    "SubagentStop": [COMMON, BLOCK],
    "Stop": [COMMON, BLOCK, {"continue": False, "stopReason": "because"}],
}


@pytest.fixture(scope="module")
def schemas(corpora: Path) -> dict[str, Any]:
    """By event and side: `PreToolUse.input`."""
    archive = corpora / "public" / "codex_hooks_schema.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no {archive}: the published schemas of Codex's hooks, packed; nothing is wrong without them")
    found: dict[str, Any] = {}
    with tarfile.open(archive) as files:
        for member in files:
            if named := re.search(r"([a-z-]+)\.command\.(input|output)\.schema\.json$", member.name):
                file = files.extractfile(member)
                assert file is not None
                event = "".join(word.capitalize() for word in named[1].split("-"))
                found[f"{event}.{named[2]}"] = json.load(file)
    assert len(found) > 15
    return found


@pytest.mark.parametrize("agent", ["", "inner"])
@pytest.mark.parametrize("transcript", ["", "/log.jsonl"])
@pytest.mark.parametrize("mode", ["plan", "default", "auto-edit", "auto"])
def test_every_input_is_valid(schemas: dict[str, Any], mode: str, transcript: str, agent: str) -> None:
    tried = 0
    for event in EVENTS:
        schema = schemas.get(f"{event}.input")
        if schema is None:
            continue
        agent_id = agent or ("inner" if event in ("SubagentStart", "SubagentStop") else "")
        subject = "run_shell" if event in TOOL_EVENTS else ""
        occasion = Occasion(
            event, "s", transcript, "/w", "m/m", mode, "t", agent_id, agent_id, subject, "c", {"command": "ls"}, DETAILS.get(event, {})
        )
        told = json.loads(encode_input(Hook(event, event, "true", Origin("codex", "user", "/hooks.json")), occasion))
        assert problems(schema, told) == [], event
        assert set(schema["required"]) <= set(told), event
        assert set(told) <= set(schema["properties"]), event
        tried += 1
    assert tried == 11


def test_a_hook_reads_what_a_command_wrote_and_which_agent_is_called() -> None:
    hook = Hook("PostToolUse", "PostToolUse", "true", Origin("claude", "user", "/settings.json"))
    told = [
        (CommandOutput("a\n", "b", 3), {"stdout": "a\n", "stderr": "b", "exitCode": 3}),
        (CommandOutput("up\n", "", None, background="bg1", status="running"), {"stdout": "what the model reads", "stderr": ""}),
        (None, {"stdout": "what the model reads", "stderr": ""}),
    ]
    for command, streams in told:
        details = {"text": "what the model reads", "command": command}
        given = input_of(hook, Occasion("PostToolUse", subject="run_shell", details=details))["tool_response"]
        assert given == {**streams, "interrupted": False, "isImage": False}
    call = {"agent": "explore", "prompt": "Look"}
    given = input_of(hook, Occasion("PreToolUse", subject="task", tool_input=call))["tool_input"]
    assert given == {**call, "subagent_type": "explore"}
    assert merge_arguments(given, {**given, "prompt": "Look again"}, call) == {"agent": "explore", "prompt": "Look again"}


def test_every_valid_answer_is_read_whole(schemas: dict[str, Any]) -> None:
    for event in EVENTS:
        schema = schemas.get(f"{event}.output")
        for answer in ANSWERS.get(event, ()):
            assert schema is not None
            assert problems(schema, answer) == [], (event, answer)
            read = read_answer(event, "codex", HookEnd(0, json.dumps(answer).encode()))
            assert read.warnings == (), (event, answer)
            assert read.blocks == (answer.get("decision") == "block" or "deny" in json.dumps(answer)), (event, answer)
            assert read.stops == (answer.get("continue") is False)
            assert read.context == answer.get("hookSpecificOutput", {}).get("additionalContext", "")
            assert read.messages == ((answer["systemMessage"],) if "systemMessage" in answer else ())
