"""What stands beside a conversation in an editor: MCP servers that the editor names, subagents at work, notices and summaries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from editor import Editor, Message

from program import Place

Start = Callable[..., Editor]
HARBOUR = Path(__file__).resolve().parent.parent / "mcp_servers" / "harbour_server.py"


def harbour(**env: str) -> Message:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return {"name": "harbour", "command": sys.executable, "args": [str(HARBOUR)], "env": variables}


CALL = 'call: mcp__harbour__tide {"day": "Monday"}\n---\ntext: Done.'


def asked(editor: Editor) -> list[str]:
    return [each["params"]["toolCall"]["toolCallId"] for each in editor.requests]


def test_a_server_that_the_editor_names_is_asked_about_once(edit: Start, place: Place) -> None:
    editor = edit(f"{CALL}\n---\n{CALL}", API_TOKEN="x")
    session = editor.open(mcpServers=[harbour(HARBOUR_TOKEN="first-secret-value")])
    assert editor.prompt(session) == "end_turn"
    question = editor.requests[0]["params"]["toolCall"]
    shown = str(question["content"])
    assert "harbour_server.py" in shown
    assert "tests" in shown, "who named it"
    assert "HARBOUR_TOKEN" in shown
    assert "first-secret-value" not in shown
    assert any(each["name"] == "mcp__harbour__tide" for each in editor.of("tool_call"))
    before = len(editor.requests)
    session = editor.open(mcpServers=[harbour(HARBOUR_TOKEN="second-secret-value")])
    assert editor.prompt(session) == "end_turn"
    assert not any(each.startswith("question-") for each in asked(editor)[before:]), "a key may change"


def test_another_command_under_the_same_name_is_asked_about_again(edit: Start) -> None:
    editor = edit("script: end=repeat\ntext: Done.")
    editor.prompt(editor.open(mcpServers=[harbour()]))
    before = len(editor.requests)
    editor.prompt(editor.open(mcpServers=[harbour(LD_PRELOAD="/tmp/evil.so")]))
    assert any(each.startswith("question-") for each in asked(editor)[before:])


def test_a_server_that_nobody_has_agreed_to_is_not_started(edit: Start, place: Place) -> None:
    mark = place.home / "started"
    server = {"name": "mark", "command": "/bin/sh", "args": ["-c", f"touch {mark}; cat"], "env": []}
    editor = edit("script: end=repeat\ntext: Done.", answers="n")
    assert editor.prompt(editor.open(mcpServers=[server])) == "end_turn"
    assert not mark.exists()


@pytest.mark.parametrize(
    "server",
    [
        {"type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse", "headers": []},
        {"name": "none", "command": "", "args": [], "env": []},
        {"name": "with\nlines", "command": "true", "args": [], "env": []},
        {"type": "http", "name": "odd", "url": "not an address", "headers": []},
    ],
)
def test_a_server_that_cannot_be_is_refused(edit: Start, place: Place, server: Message) -> None:
    editor = edit("text: Done.")
    assert editor.fault("session/new", cwd=str(place.work), mcpServers=[server])["code"] == -32602


def test_what_a_subagent_does_is_shown_in_its_call(edit: Start, place: Place) -> None:
    (place.work / "a.txt").write_text("one\n")
    task = 'call: task {"agent": "explore", "description": "look around", "prompt": "Look."}'
    editor = edit(f'{task}\n---\ncall: read_file {{"file_path": "a.txt"}}\n---\nwait: 0.5\ntext: There is one.\n---\ntext: Done.')
    session = editor.open()
    assert editor.prompt(session) == "end_turn"
    [call] = [each for each in editor.of("tool_call") if each["name"] == "task"]
    updates = [each for each in editor.of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
    assert any("read_file a.txt" in str(each.get("content")) for each in updates)
    assert updates[-1]["status"] == "completed"
    assert len(editor.of("tool_call")) == 1, "the calls of a subagent are not the conversation's"


NOTICED = {"session": {"notices": {}, "compaction": {}}}


@pytest.mark.parametrize("capabilities", [NOTICED, {}])
def test_a_summary_is_told_to_clients_that_show_one(edit: Start, capabilities: Message) -> None:
    editor = edit("text: One.\n---\ntext: <snapshot><goal>count</goal></snapshot>\n---\ntext: Two.", capabilities=capabilities)
    session = editor.open()
    editor.prompt(session, "Count to one, " + "slowly " * 4_000)
    editor.prompt(session, "/compress")
    kinds = [each["sessionUpdate"] for each in editor.updates()]
    assert ("compaction_update" in kinds) is bool(capabilities)
    assert ("notice" in kinds) is False or bool(capabilities)
    if capabilities:
        told = editor.of("compaction_update")
        assert [each["status"] for each in told] == ["in_progress", "completed"]
        assert "count" in editor.of("compaction_summary_chunk")[0]["content"]["text"]
