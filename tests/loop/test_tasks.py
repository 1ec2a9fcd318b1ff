"""The tool `task` of a coding agent: over the loopback service, in every protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.errors import ConfigError
from dragoman.events import NoticeGiven, SubagentEvent, TurnEvent, TurnStarted, UserCancelled
from dragoman.loop.tasks import TASK, TaskAgent, TaskTool, all_agents, give_tasks
from dragoman.options import ApprovalOptions, Budget, Connector, Limits, ToolOptions
from dragoman.record import Spent, Started, ToolFinished
from dragoman.sessions.store import FileStore
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Intent
from dragoman.values.contracts import BlobStore, Provider
from loop.together_service import in_loop, playing
from processes import gone_within, marked_sleep
from program import PROTOCOLS, calls, script

ASKED = "Where can we land?"


def task(prompt: str, agent: str = "general") -> tuple[str, dict[str, str]]:
    return (TASK, {"agent": agent, "description": prompt, "prompt": prompt})


def finished_of(agent: dm.Agent[Any, Any]) -> list[ToolFinished]:
    return [entry for entry in agent.history.entries if isinstance(entry, ToolFinished)]


def said(finished: ToolFinished) -> str:
    return "".join(part.text for part in finished.result.content if isinstance(part, dm.Text))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@in_loop
async def test_three_at_once_one_answers_one_fails_one_is_cancelled(protocol: str, tmp_path: Path) -> None:
    scripts = {
        ASKED: script(
            calls(task("Go east."), task("Go north."), task("Go west.")) + "\nusage: fresh=100 output=10",
            "text: In the east.\nusage: fresh=200 output=20",
        ),
        "Go east.": "text: A bay.\nusage: fresh=30 output=3",
        "Go north.": 'error: 400 "The pass is closed"',
        "Go west.": "wait: 30\ntext: never",
    }
    kept = tmp_path / "kept"
    async with playing(scripts, protocol) as (provider, _), dm.coding_agent(provider, session=kept, workspace=tmp_path) as agent:
        run, ids, events = agent.run(ASKED), list[str](), list[TurnEvent]()
        async for event in run:
            events.append(event)
            if isinstance(event, dm.ToolCallRequested):
                ids.append(event.call.id)
            if len(finished_of(agent)) == 2 and len(ids) == 3:
                run.cancel_call(ids[2])
        result = run.result

    ended = {entry.result.call_id: entry for entry in finished_of(agent)}
    assert [ended[call].outcome for call in ids] == ["finished", "failed", "cancelled"]
    assert [ended[call].result.is_error for call in ids] == [False, True, True]
    assert said(ended[ids[0]]) == "A bay."
    assert result.text == "In the east."
    assert result.usage.output_tokens == 10 + 20 + 3
    spent = [entry for entry in agent.history.entries if isinstance(entry, Spent)]
    assert {entry.call_id for entry in spent if entry.usage.output_tokens} == {ids[0]}
    inner = [event for event in events if isinstance(event, SubagentEvent)]
    assert {event.call_id for event in inner} == set(ids)
    assert [event.event for event in inner if event.call_id == ids[2]][-1] == UserCancelled()
    store = FileStore(str(tmp_path / "kept"))
    heads = [entry for each in store.list() for entry in store.read(each.path).entries if isinstance(entry, Started) and entry.parent]
    assert {(head.parent, head.parent_call) for head in heads} == {(agent.session_id, call) for call in ids}


@in_loop
async def test_cancelling_the_run_cancels_all_of_them(tmp_path: Path) -> None:
    scripts = {ASKED: calls(task("Go east."), task("Go west.")), "Go east.": "wait: 30\ntext: never", "Go west.": "wait: 30\ntext: never"}
    async with playing(scripts) as (provider, _), dm.coding_agent(provider, workspace=tmp_path) as agent:
        run, at_work = agent.run(ASKED), set[str]()
        async for event in run:
            if isinstance(event, SubagentEvent) and isinstance(event.event, TurnStarted):
                at_work.add(event.call_id)
            if len(at_work) == 2:
                run.cancel()
        assert [entry.outcome for entry in finished_of(agent)] == ["cancelled", "cancelled"]
        assert run.result.error_type == "Cancelled"


@in_loop
async def test_who_asks_is_told_and_the_answer_holds_for_the_caller_too(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(call: dm.ToolCall, intent: Intent) -> dm.Allow:
        asked.append(intent.asker)
        return dm.Allow(remember="session")

    write = calls(("write_file", {"file_path": "a.txt", "content": "a"}))
    scripts = {
        ASKED: script(calls(task("First.")), calls(("write_file", {"file_path": "b.txt", "content": "b"})), "text: Done."),
        "First.": script(calls(task("Second.")), "text: One."),
        "Second.": script(write, "text: Two."),
    }
    approval = ApprovalOptions(ask=ask)
    async with playing(scripts) as (provider, _), dm.coding_agent(provider, workspace=tmp_path, approval=approval) as agent:
        assert (await agent.run(ASKED)).text == "Done."
    assert asked == ["general › general"]
    assert (tmp_path / "a.txt").read_text() + (tmp_path / "b.txt").read_text() == "ab"


@in_loop
async def test_undoing_the_caller_s_run_undoes_what_subagents_wrote(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("old")

    def write(name: str) -> str:
        return script(calls(("write_file", {"file_path": name, "content": "new"})), "text: Written.")

    scripts = {
        ASKED: script(calls(task("First."), task("Second.")), "text: Done."),
        "First.": script(calls(("read_file", {"file_path": "a.txt"})), write("a.txt")),
        "Second.": write("b.txt"),
    }
    options: Any = {"workspace": work, "session": tmp_path / "kept", "approval": ApprovalOptions("auto-edit")}
    async with playing(scripts) as (provider, _), dm.coding_agent(provider, **options) as agent:
        result = await agent.run(ASKED)
        assert {Path(path).name for path in result.changed} == {"a.txt", "b.txt"}
        assert (work / "a.txt").read_text() == "new"
        assert {Path(path).name for path in agent.undo()} == {"a.txt", "b.txt"}
        assert (work / "a.txt").read_text() == "old"
        assert not (work / "b.txt").exists()


@in_loop
async def test_in_plan_mode_subagents_only_plan(tmp_path: Path) -> None:
    scripts = {
        ASKED: script(calls(task("Write it.")), "text: Done."),
        "Write it.": script(calls(("write_file", {"file_path": "a.txt", "content": "a"})), "text: I only plan."),
    }
    async with playing(scripts) as (provider, _), dm.coding_agent(provider, workspace=tmp_path, approval="plan") as agent:
        await agent.run(ASKED)
        assert said(finished_of(agent)[0]) == "I only plan."
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(("requests", "error"), [(3, ""), (2, "BudgetExceeded")])
@in_loop
async def test_what_they_use_is_charged_to_the_caller_s_budget_once(requests: int, error: str, tmp_path: Path) -> None:
    scripts = {ASKED: script(calls(task("Go east.")), "text: Done."), "Go east.": "text: A bay."}
    budget = Budget(requests=requests)
    async with playing(scripts) as (provider, _), dm.coding_agent(provider, workspace=tmp_path, budget=budget) as agent:
        run = agent.run(ASKED)
        async for _ in run:
            pass
        assert run.result.error_type == error


@in_loop
async def test_explore_has_the_tools_that_read_and_is_told_so(tmp_path: Path) -> None:
    scripts = {ASKED: script(calls(task("Look.", "explore")), "text: Done."), "Look.": "text: Nothing."}
    async with playing(scripts) as (provider, server), dm.coding_agent(provider, workspace=tmp_path) as agent:
        await agent.run(ASKED)
        inner = server.requests[1].body
    assert {tool["name"] for tool in inner["tools"]} == {"read_file", "read_many_files", "list_directory", "glob", "grep"}
    assert "You only read" in str(inner["system"])


def test_an_agent_s_own_tool_called_task_stays_and_no_depth_means_no_tool() -> None:
    @dm.tool
    def task(name: str) -> str:
        """Do it."""
        return name

    provider = ScriptedProvider("text: hi")
    with dm.coding_agent(provider, tools=[task]) as agent:
        assert not isinstance(agent.tools.get(TASK), TaskTool)
    with dm.coding_agent(provider, limits=Limits(max_depth=0)) as agent:
        assert TASK not in agent.tools.names
    with dm.coding_agent(provider, tools=ToolOptions(builtin=["read_file"])) as agent:
        assert agent.tools.names == ("read_file",)


def test_a_defined_agent_may_take_a_built_in_one_s_place() -> None:
    own = TaskAgent("explore", "Mine.")
    assert {agent.name: agent.description for agent in all_agents([own])}["explore"] == "Mine."


@pytest.mark.parametrize("may_inherit", [True, False])
@in_loop
async def test_a_model_that_is_not_available_is_said(may_inherit: bool, tmp_path: Path) -> None:
    given = ScriptedProvider(script(calls(task("Look.", "other")), "text: Mine.", "text: Done."))

    def connect(model: str, blobs: BlobStore) -> Provider:
        if model == "moon/large":
            raise ConfigError("no such model")
        return given

    async with dm.Agent(Connector(connect, "given"), tools=ToolOptions(builtin=True), workspace=tmp_path) as agent:
        give_tasks(agent._harness, [TaskAgent("other", "Other.", model="moon/large", may_inherit=may_inherit)])
        run = agent.run(ASKED)
        events = [event async for event in run]
        (finished,) = finished_of(agent)
        assert finished.result.is_error is not may_inherit
        notices = [event.message for event in events if isinstance(event, NoticeGiven) and event.about == "subagent"]
        assert bool(notices) is may_inherit
        assert "no such model" in (notices[0] if may_inherit else said(finished))


@in_loop
async def test_a_subagent_s_background_command_ends_with_it(tmp_path: Path) -> None:
    command = marked_sleep()
    scripts = {
        ASKED: script(calls(task("Start it.")), "text: Done."),
        "Start it.": script(calls(("run_shell", {"command": command, "background": True})), "text: Started."),
    }
    ask = ApprovalOptions(ask=lambda call, intent: dm.Allow())
    async with playing(scripts) as (provider, _), dm.coding_agent(provider, workspace=tmp_path, approval=ask) as agent:
        await agent.run(ASKED)
        assert said(finished_of(agent)[0]) == "Started."
        assert await asyncio.to_thread(gone_within, 60, command)
