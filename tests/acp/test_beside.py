"""What stands beside a conversation in an editor: MCP servers that the editor names, subagents at work, notices and summaries."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from editor import Editor, Message

from program import Place

Start = Callable[..., Editor]
TESTS = Path(__file__).resolve().parent.parent
HARBOUR = TESTS / "mcp_servers" / "harbour_server.py"
SDK_SERVER = TESTS / "mcp" / "sdk_server.py"


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


@pytest.fixture
def address() -> Iterator[str]:
    """Of a server that speaks HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(SDK_SERVER), "http", str(port)], stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            assert any(b"running on" in line for line in process.stderr), "it did not start"
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def test_a_server_by_http_is_reached_with_its_headers(edit: Start, address: str) -> None:
    editor = edit('call: mcp__port__add {"a": 2, "b": 3}\n---\ntext: Done.')
    headers = [{"name": "Authorization", "value": "Bearer first-secret-value"}]
    session = editor.open(mcpServers=[{"type": "http", "name": "port", "url": address, "headers": headers}])
    assert editor.prompt(session) == "end_turn"
    question = str(editor.requests[0]["params"]["toolCall"]["content"])
    assert address in question
    assert "Authorization" in question
    assert "first-secret-value" not in question
    [call] = [each for each in editor.of("tool_call") if each["name"] == "mcp__port__add"]
    last = [each for each in editor.of("tool_call_update") if each["toolCallId"] == call["toolCallId"] and "content" in each][-1]
    assert last["content"] == [{"type": "content", "content": {"type": "text", "text": "5"}}]


def test_a_server_that_cannot_be_started_leaves_the_conversation(edit: Start) -> None:
    editor = edit("text: Done.")
    server = {"name": "odd", "command": "true", "args": [], "env": [{"name": "A", "value": "a\0b"}]}
    assert editor.prompt(editor.open(mcpServers=[server])) == "end_turn"
    assert "could not be started" in str(editor.of("agent_thought_chunk"))


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


WORKER = """\
---
name: worker
description: works
tools: Edit, Bash
---
Work.
"""


def test_a_question_of_a_subagent_says_what_it_is_about(edit: Start, place: Place) -> None:
    (place.work / "a.txt").write_text("one\n")
    (place.home / ".claude" / "agents").mkdir(parents=True)
    (place.home / ".claude" / "agents" / "worker.md").write_text(WORKER)
    task = 'call: task {"agent": "worker", "description": "edit it", "prompt": "Edit."}'
    change = 'call: edit {"file_path": "a.txt", "old_string": "one", "new_string": "1"}'
    command = 'call: run_shell {"command": "touch b.txt", "writes": true}'
    editor = edit(f"{task}\n---\n{change}\n---\n{command}\n---\ntext: Edited.\n---\ntext: Done.")
    assert editor.prompt(editor.open()) == "end_turn"
    asked_edit, asked_command = [each["params"]["toolCall"] for each in editor.requests]
    assert (asked_edit["title"], asked_edit["kind"]) == ("edit a.txt", "edit")
    assert asked_edit["locations"] == [{"path": str(place.work / "a.txt")}]
    assert asked_edit["content"][0]["type"] == "diff"
    assert asked_command["title"] == "$ touch b.txt"


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
