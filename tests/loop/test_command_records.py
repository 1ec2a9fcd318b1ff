"""What the record, events and later readers know of a command, beside the text that the model reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents import make_agent
from dragoman.context.settings import ContextSettings, PruneRule, PruneSettings
from dragoman.conversation.command_result import read_command_result
from dragoman.sessions.transcript import ToolCallStep, read_transcript
from dragoman.testing import ScriptedProvider
from dragoman.tui.call_cells import CallCell, finish, recall
from dragoman.values.calls import Allow, Intent
from dragoman.values.events import ToolCallFinished
from dragoman.values.messages import Text, ToolCall, ToolResult
from dragoman.values.record import CommandOutput, ToolFinished, encode_entry
from dragoman.values.record_reading import decode_entry

AT_ONCE = ContextSettings(prune=PruneSettings(schedule="off", rule=PruneRule(age_ms=-1, keep=0)))
FAILING = "echo out; echo err >&2; exit 3"


def script(*commands: str) -> ScriptedProvider:
    calls = [f"call: run_shell {json.dumps({'command': each})}" for each in commands]
    return ScriptedProvider("\n---\n".join([*calls, "text: Good."]))


def as_told(call: ToolCall, intent: Intent) -> Allow:
    return Allow()


def other(call: ToolCall, intent: Intent) -> Allow:
    """A person who edits every call, so that a note stands before its result."""
    return Allow(json.dumps({"command": f"{(call.args or {})['command']} "}))


@pytest.mark.parametrize("ask", [as_told, other])
def test_a_failed_command_is_not_pruned_though_a_note_stands_before_its_result(tmp_path: Path, ask: Any) -> None:
    long = "; seq 100"
    options = {"workspace": tmp_path, "builtin": ["run_shell"], "describe": False, "context": AT_ONCE}
    with make_agent(script(f"touch a{long}", f"touch b{long}; exit 3", f"touch c; echo Error: no{long}"), ask=ask, **options) as agent:
        agent.run_sync("go")
        results = [entry for entry in agent.history.entries if isinstance(entry, ToolFinished)]
        assert all(entry.result.text.startswith("The arguments of this call were changed") == (ask is other) for entry in results)
        assert agent.prune() == 2
        assert agent.history.view.pruned == {results[0].result.call_id, results[2].result.call_id}


def test_record_event_and_transcript_have_the_streams(tmp_path: Path) -> None:
    with make_agent(script(FAILING), ask=other, workspace=tmp_path, builtin=["run_shell"], describe=False) as agent:
        run = agent.run_sync("go")
        entries = agent.history.entries
    [entry] = [each for each in entries if isinstance(each, ToolFinished)]
    assert entry.command == CommandOutput("out\n", "err\n", 3)
    assert entry.result.text.endswith("out\n[stderr]\nerr\n[exit code 3]")
    assert decode_entry(encode_entry(entry)) == entry
    [step] = [each for each in read_transcript(entries).steps if isinstance(each, ToolCallStep)]
    assert step.command == entry.command
    assert run.text == "Good."


OLD = '{"stdout":"out\\n","stderr":"err\\n","exitCode":3,"timedOut":true,"network":{"reached":[],"refused":["x.test"]}}'
NOTE = "[this call was read with cmd → command: use the names and types that the tool declares]\n"


@pytest.mark.parametrize("text", [OLD, NOTE + OLD])
def test_what_an_earlier_version_recorded_is_read_as_before(text: str) -> None:
    read = read_command_result(None, text)
    assert (read.output, read.exit_code) == ("out\nerr\n", 3)
    assert read.notes == ("ended: its time was up", "not allowed to reach x.test")
    cell = recall(ToolCall("c", "run_shell", "{}"), "done", "shown", text)
    assert (cell.output, cell.exit_code) == ("out\nerr\n", 3)


def test_a_live_event_and_a_resumed_session_show_the_same() -> None:
    call = ToolCall("c", "run_shell", "{}")
    command = CommandOutput("out\n", "err\n", 3, sandbox="The sandbox has no network.")
    result = ToolResult("c", "run_shell", (Text("out\n[stderr]\nerr\n[exit code 3]"),))
    live = finish(CallCell(call), ToolCallFinished("c", (result,), display="shown", name="run_shell", command=command), 1.0)
    resumed = recall(call, "done", "shown", result.text, command=command)
    assert msgspec.structs.replace(live, seconds=0.0) == resumed
    assert (live.output, live.exit_code) == ("out\nerr\n", 3)


def test_a_pruned_read_is_not_called_the_output_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words\n" * 100)
    provider = ScriptedProvider(
        'call: read_file {"file_path": "a.txt"}\n---\ncall: run_shell {"command": "seq 100"}\n---\ntext: Good.\n---\ntext: Well.'
    )
    context = ContextSettings(prune=PruneSettings(schedule="off", rule=PruneRule(tools=("*",), age_ms=-1, keep=0)))
    with make_agent(provider, ask=as_told, workspace=tmp_path, describe=False, context=context) as agent:
        agent.run_sync("go")
        assert agent.prune() == 2
        agent.run_sync("on")
    told = [part.text for message in provider.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]
    assert told == [
        "(the result of read_file was removed to save room: call it again if you need it)",
        "(outdated output, removed to save room)",
    ]
