"""Background commands of an agent: they outlive a run, end with the agent, and the record tells of them, also after a resume."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.background_commands import lost_commands
from dragoman.testing import ScriptedProvider
from dragoman.tools.background import BackgroundCommand
from dragoman.values.calls import Allow, Intent
from dragoman.values.errors import LoopDetected
from dragoman.values.events import LoopSuspected, NoticeGiven, TurnEvent
from dragoman.values.messages import ToolCall
from dragoman.values.record import Said
from processes import alive, gone_within, marked_sleep
from told_commands import told_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
UNTIL_GO = "echo up; while [ ! -e go ]; do sleep 0.01; done; exit 7"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.tools.shell.GRACE_S", 0.3)


def allow(call: ToolCall, intent: Intent) -> Allow:
    return Allow()


def start(command: str, **more: Any) -> str:
    return f"call: run_shell {json.dumps({'command': command, 'background': True, **more})}"


def agent_for(provider: ScriptedProvider, folder: Path, **options: Any) -> Any:
    return make_agent(provider, workspace=folder, describe=False, ask=allow, **options)


def notes_of(provider: ScriptedProvider) -> list[str]:
    return [message.text for message in provider.requests[-1].messages if message.role == "user" and "Background command" in message.text]


async def events_of(agent: Any, prompt: str) -> list[TurnEvent]:
    return [event async for event in agent.run(prompt)]


def test_a_command_outlives_the_run_and_its_end_is_told_once(tmp_path: Path) -> None:
    provider = ScriptedProvider(f"{start(UNTIL_GO)}\n---\ntext: Started.\n---\ntext: It ended.\n---\ntext: Yes.")

    async def main() -> None:
        async with agent_for(provider, tmp_path) as agent:
            await agent.run("go")
            [result] = told_in(agent.history.entries)
            assert (result["id"], result["status"], result["output"]) == ("bg1", "running", "up\n")
            [state] = agent.background_commands
            assert (state.id, state.command, state.state) == ("bg1", UNTIL_GO, "running")
            (tmp_path / "go").touch()
            while agent.background_commands[0].state == "running":
                time.sleep(0.01)  # noqa: ASYNC251 - no loop has to run meanwhile
            told = [event.message for event in await events_of(agent, "and?") if isinstance(event, NoticeGiven)]
            assert told == [f"background command bg1 ({UNTIL_GO}) has ended: exit code 7"]
            [note] = notes_of(provider)
            assert note.startswith(f"Background command bg1 ({UNTIL_GO}) has ended: exit code 7.")
            [said] = [entry for entry in agent.history.entries if isinstance(entry, Said) and entry.about == "background"]
            assert (said.by, said.message.text) == ("program", note)
            await agent.run("sure?")
            assert notes_of(provider) == [note]

    asyncio.run(main())


def test_an_end_between_two_answers_is_told_with_the_results(tmp_path: Path) -> None:
    wait = 'call: run_shell {"command": "touch go; sleep 0.5"}'
    provider = ScriptedProvider(f"{start(UNTIL_GO)}\n---\n{wait}\n---\ntext: Good.")

    async def main() -> None:
        async with agent_for(provider, tmp_path) as agent:
            await agent.run("go")

    asyncio.run(main())
    assert len(notes_of(provider)) == 1


def test_one_that_was_read_to_its_end_is_not_told_again(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    read = 'call: shell_output {"id": "bg1", "wait_s": 5}'
    provider = ScriptedProvider(f"{start('sleep 0.5; echo x')}\n---\n{read}\n---\n{read}\n---\ntext: Good.")

    async def main() -> None:
        async with agent_for(provider, tmp_path) as agent:
            await agent.run("go")
            assert lost_commands(agent.history.entries) == {}
            assert told_in(agent.history.entries)[-1]["exitCode"] == 0

    asyncio.run(main())
    assert notes_of(provider) == []


def test_they_end_with_the_agent(tmp_path: Path) -> None:
    sleep = marked_sleep()
    with agent_for(ScriptedProvider(f"{start(sleep)}\n---\ntext: Good."), tmp_path) as agent:
        agent.run_sync("go")
        assert alive(sleep)
    assert gone_within(60, sleep)


def test_they_end_with_an_agent_that_is_dropped(tmp_path: Path) -> None:
    sleep = marked_sleep()
    agent = agent_for(ScriptedProvider(f"{start(sleep)}\n---\ntext: Good."), tmp_path)
    asyncio.run(events_of(agent, "go"))
    assert alive(sleep)
    del agent
    until = time.monotonic() + 60
    while alive(sleep) and time.monotonic() < until:
        gc.collect()  # what a thread still holds is let go a moment later
        time.sleep(0.1)
    assert not alive(sleep)


def test_the_user_may_stop_one_and_the_model_is_told(tmp_path: Path) -> None:
    sleep = marked_sleep()
    provider = ScriptedProvider(f"{start(sleep)}\n---\ntext: Good.\n---\ntext: Oh.")
    with agent_for(provider, tmp_path) as agent:
        agent.run_sync("go")
        assert not agent.stop_command("bg2")
        assert agent.stop_command("bg1")
        assert gone_within(60, sleep)
        assert not agent.stop_command("bg1")
        agent.run_sync("and?")
    assert [note.partition(": ")[2].partition(".")[0] for note in notes_of(provider)] == ["the user stopped it"]


def test_after_a_resume_they_are_gone_and_ids_go_on(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    store = {"sessions": tmp_path / "sessions"}
    first = ScriptedProvider(f"{start('sleep 1000')}\n---\n{start('exit 3')}\n---\ntext: Good.")
    with agent_for(first, tmp_path / "work", **store) as agent:
        agent.run_sync("go")
        session = agent.session_id
        assert lost_commands(agent.history.entries) == {"bg1": "sleep 1000"}
    second = ScriptedProvider(f"{start('true')}\n---\ntext: Good.\n---\ntext: Well.")
    with agent_for(second, tmp_path / "work", resume=session, **store) as agent:
        told = [event.message for event in asyncio.run(events_of(agent, "still there?")) if isinstance(event, NoticeGiven)]
        assert told == ["background command bg1 (sleep 1000) ended with the program when the session was closed"]
        assert len(notes_of(second)) == 1
        assert told_in(agent.history.entries)[-1]["id"] == "bg3"
        asyncio.run(events_of(agent, "and now?"))
    third = ScriptedProvider("text: Fine.")
    with agent_for(third, tmp_path / "work", resume=session, **store) as agent:
        agent.run_sync("hello")
    assert len(notes_of(third)) == 1, "the note is part of the record, and is not said twice"


def test_plan_mode_starts_none(tmp_path: Path) -> None:
    provider = ScriptedProvider(f"{start('touch hi')}\n---\ntext: Good.")
    with agent_for(provider, tmp_path, approval="plan") as agent:
        agent.run_sync("go")
        assert agent.background_commands == ()
        assert "plan mode only reads" in told_in(agent.history.entries)[0]["error"]


def test_the_question_says_that_it_goes_on(tmp_path: Path) -> None:
    asked: list[Intent] = []

    def ask(call: ToolCall, intent: Intent) -> Allow:
        asked.append(intent)
        return Allow()

    provider = ScriptedProvider(f"{start('touch x')}\n---\ntext: Good.")
    with make_agent(provider, workspace=tmp_path, describe=False, ask=ask) as agent:
        agent.run_sync("go")
    assert asked[0].preview == "touch x\n(in the background)"


def test_waiting_for_one_is_no_circle(tmp_path: Path) -> None:
    wait = 'call: shell_output {"id": "bg1", "wait_s": 0.01}'
    provider = ScriptedProvider("\n---\n".join([start("sleep 1000"), *[wait] * 12, "text: Good."]))

    async def main() -> list[TurnEvent]:
        async with agent_for(provider, tmp_path) as agent:
            return await events_of(agent, "go")

    assert not [event for event in asyncio.run(main()) if isinstance(event, LoopSuspected)]


def test_looking_at_one_that_still_runs_is_no_circle_and_looks_that_find_nothing_wait_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def wait_for_news(self: BackgroundCommand, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(BackgroundCommand, "wait_for_news", wait_for_news)
    look = 'call: shell_output {"id": "bg1"}'
    provider = ScriptedProvider("\n---\n".join([start("sleep 1000"), *[look] * 30, "text: Good."]))

    async def main() -> list[TurnEvent]:
        async with agent_for(provider, tmp_path) as agent:
            return await events_of(agent, "go")

    assert not [event for event in asyncio.run(main()) if isinstance(event, LoopSuspected)]
    assert waits == [1, 2, 4, 8, 16, *[30] * 23]
    told = [result.text for message in provider.requests[-1].messages for result in message.results]
    assert not any("set wait_s" in each for each in told[:3])
    assert "2 looks before this one found nothing new, so this one waited up to 1 s: set wait_s" in told[3]


def test_looking_again_and_again_at_one_that_has_ended_is_a_circle(tmp_path: Path) -> None:
    look = 'call: shell_output {"id": "bg1"}'
    wait = 'call: shell_output {"id": "bg1", "wait_s": 60}'
    provider = ScriptedProvider("\n---\n".join([start("true"), wait, *[look] * 30, "text: Good."]))

    async def main() -> None:
        async with agent_for(provider, tmp_path) as agent:
            with pytest.raises(LoopDetected):
                await agent.run("go")

    asyncio.run(main())


def test_without_the_tool_to_read_it_nothing_is_left_in_the_background(tmp_path: Path) -> None:
    agent = agent_for(ScriptedProvider(""), tmp_path, builtin=["run_shell"])
    shell = agent.tools.get("run_shell")
    assert "background" not in shell.spec.schema["properties"]
    assert "nothing can be left in the background" in shell.intend({"command": "true", "background": True}).problem
    agent.close()
