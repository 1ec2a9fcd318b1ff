"""A native call in other names than its tool has is judged, shown, run and recorded as it was meant."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agents import make_agent
from dragoman.testing.scripted import ScriptedProvider
from dragoman.text_tools.call_note import read_note
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.events import ToolCallFinished
from dragoman.values.messages import ToolCall
from dragoman.values.record import ToolFinished, ToolStarted


@pytest.mark.parametrize("calling", ["native", "text"])
def test_a_command_runs_where_the_model_said(tmp_path: Path, calling: str) -> None:
    """`cwd` is another name for `directory`: the person who is asked sees where it runs, and there it runs."""
    (tmp_path / "sub").mkdir()
    asked: list[tuple[ToolCall, Intent]] = []

    async def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        asked.append((call, intent))
        return Allow()

    arguments = '{"command": "env pwd", "cwd": "sub"}'
    written = f"call: run_shell {arguments}"
    if calling == "text":
        written = "text: " + json.dumps(f'<tool_call>\n{{"name": "run_shell", "arguments": {arguments}}}\n</tool_call>')

    async def main() -> None:
        agent = make_agent(ScriptedProvider(f"{written}\n---\ntext: Done."), workspace=tmp_path, calling=calling, ask=ask)
        run = agent.run("hi")
        events = [event async for event in run]
        (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
        assert str(tmp_path / "sub") in str(finished.parts)
        assert finished.repairs == ("cwd → directory",)
        ((call, intent),) = asked
        assert call.args == {"command": "env pwd", "directory": "sub"}
        note = read_note(call)
        assert note is not None
        assert note.repairs == ("cwd → directory",), "the dialog shows it"
        assert "(in sub)" in intent.preview
        entries = agent.history.entries
        (ended,) = [entry for entry in entries if isinstance(entry, ToolFinished)]
        assert ended.repairs == ("cwd → directory",)
        (started,) = [entry for entry in entries if isinstance(entry, ToolStarted)]
        said = next(call for entry in agent.history.view.messages for call in entry.calls)
        if calling == "native":
            assert '"directory"' in started.arguments
            assert said.args == {"command": "env pwd", "cwd": "sub"}, "sent back as the model wrote it"

    asyncio.run(main())
