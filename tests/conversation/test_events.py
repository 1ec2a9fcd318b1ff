"""ViewEvents one by one: what is told while an agent works, in which words and with which data. That live and later views agree is shown in
tests/property/test_view_events.py."""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

import dragoman as dm
from agents import make_agent
from dragoman.conversation import call_lines
from dragoman.conversation.blocks import join_events
from dragoman.conversation.events import Renderer, follow, read_events
from dragoman.conversation.types import ViewEvent
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.providers.connect import connect
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.events import Retrying, TextDelta, ThoughtDelta, ToolCallUpdated
from dragoman.values.messages import FinishReason, Response, Settings, Text, Thought, ToolCall, assistant, tool_result, user
from dragoman.values.record import FileChange
from scenarios.workshop import PlainTool, agent_for, no_wait, play, writer


def told_of(agent: Agent, prompt: str = "go", renderer: Renderer | None = None) -> list[ViewEvent]:
    async def go() -> list[ViewEvent]:
        async with agent:
            return [event async for event in follow(agent.run(prompt), agent.history.entries, renderer or Renderer())]

    return play(go)


def of(events: Iterable[ViewEvent], kind: str) -> list[ViewEvent]:
    return [event for event in events if event.kind == kind]


def block(events: Iterable[ViewEvent], id: str) -> ViewEvent:
    (found,) = [each for each in join_events(events) if each.id == id]
    return found


# --- answers


def test_an_answer_streams_and_is_told_once() -> None:
    told = told_of(agent_for("thought piece=3: I should look.\ntext piece=2: Hello there."))
    pieces = [event for event in told if event.kind in ("text", "thought") and event.text]
    assert len(pieces) > 6
    assert all(event.append for event in pieces)
    assert "".join(event.text for event in pieces) == "I should look.Hello there."
    assert [(each.kind, each.id) for each in join_events(told) if each.id.startswith("a")] == [
        ("status", "a1"),
        ("thought", "a1.1"),
        ("text", "a1.2"),
    ]


def test_what_was_shown_of_a_lost_attempt_is_taken_away_at_once() -> None:
    provider = Retry(ScriptedProvider("text: Half of it\nerror: 529\n---\ntext: All."), RetryPolicy(sleep=no_wait))
    told = told_of(agent_for(provider))
    at = next(number for number, event in enumerate(told) if event.id == "retry")
    answers = [each for each in join_events(told[:at]) if each.id == "a1"]
    assert [each.state for each in answers] == ["rejected"], "the record has it: it stays, marked"
    assert block(told, "a1").data["rejected"]
    assert (block(told, "a1.1").text, block(told, "a2.1").text, block(told, "a2").state) == ("Half of it", "All.", "done")


def test_what_left_nothing_on_the_record_is_gone() -> None:
    renderer = Renderer()
    told = [each for text in ("It ", "is") for each in renderer.take(TextDelta(text))]
    assert block(told, "a1.1").text == "It is"
    told += renderer.take(Retrying(1, 0.5, "too busy"))
    assert join_events(told) == ()
    assert told[-1] == ViewEvent(told[-1].seq, "status", "retry", "too busy", data={"attempt": 1, "wait_s": 0.5, "model": ""}, passing=True)


def test_the_record_says_how_an_answer_is_divided() -> None:
    """Two thoughts came as one stream, and what came last is not kept: it is put right in place."""
    history, renderer = History(), Renderer()
    stream = [ThoughtDelta("One."), ThoughtDelta("Two."), TextDelta("So."), ThoughtDelta("Three"), TextDelta("!"), ThoughtDelta("?")]
    told = [each for event in stream for each in renderer.take(event)]
    history.answer(Response(assistant(Thought("One."), Thought("Two."), Text("So.")), FinishReason.STOP))
    told += renderer.read(history.entries)
    left = [(each.id, each.kind, each.text) for each in join_events(told) if each.kind in ("text", "thought")]
    assert left == [("a1.1", "thought", "One."), ("a1.2", "thought", "Two."), ("a1.3", "text", "So.")]
    assert [event.id for event in told if event.state == "gone"] == ["a1.4", "a1.5"]


def test_what_stood_before_a_pause_is_not_told_again_after_a_retry() -> None:
    script = "text: I look.\nfinish: pause_turn\n---\nerror: 529\n---\ntext: Sunny."

    async def go() -> list[ViewEvent]:
        async with MockServer(script) as server:
            retry = RetryPolicy(attempts=2, sleep=no_wait)
            where = connect("anthropic/claude-sonnet-5-5", key="k", base_url=server.url, env={}, retry=retry)
            agent = make_agent(where, builtin=False, describe=False, settings=Settings(search=True))
            async with agent:
                return [event async for event in follow(agent.run("Weather?"), agent.history.entries, Renderer())]

    told = play(go)
    assert "".join(event.text for event in of(told, "text")) == "I look.Sunny."


def test_times_are_there_for_whoever_shows_them() -> None:
    agent = agent_for('call: look {"what": "a"}\n---\ntext: Done.', PlainTool())
    told = told_of(agent)
    answer, call = block(told, "a1").data, block(told, "a1.1").data
    assert 0 < answer["sent_ms"] <= answer["first_ms"] <= answer["at_ms"] <= call["started_ms"] <= call["finished_ms"]


# --- calls


def test_a_call_is_followed_through_its_states() -> None:
    async def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        return Deny("not today") if "b" in call.arguments else Allow()

    script = 'call: change {"what": "a"}\ncall: change {"what": "b"}\n---\ntext: Done.'
    told = told_of(agent_for(script, writer(), ask=ask))
    assert [event.state for event in of(told, "call") if event.id == "a1.1" and not event.passing and event.state] == [
        "waiting",
        "running",
        "done",
    ]
    assert (block(told, "a1.2").state, block(told, "a1.2").data["outcome"]) == ("refused", "refused")
    asked = [event for event in told if event.id.endswith(".question")]
    assert [(event.kind, event.id, event.state, event.passing) for event in asked] == [
        ("question", "a1.1.question", "waiting", True),
        ("answered", "a1.1.question", "allowed", True),
        ("question", "a1.2.question", "waiting", True),
        ("answered", "a1.2.question", "refused", True),
    ]


def test_progress_and_output_are_passing() -> None:
    renderer, history = Renderer(), History()
    history.answer(Response(assistant(ToolCall("c1", "run_shell", '{"command": "make"}')), FinishReason.TOOL_CALLS))
    renderer.read(history.entries)
    (told,) = renderer.take(ToolCallUpdated("c1", "executing", "compiling\n", "page 3", 3, 10))
    assert told == ViewEvent(
        told.seq,
        "call",
        "a1.1",
        append=True,
        state="running",
        data={"now": "executing", "output": "compiling\n", "progress": "3/10 page 3"},
        passing=True,
    )


def test_a_failed_command_says_what_tells_most() -> None:
    history = History()
    call = ToolCall("c1", "run_shell", '{"command": "make test"}')
    history.say(user("go"))
    history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
    history.start_tool(call)
    command = dm.record.CommandOutput("collected 2 items\n" + "." * 30 + "\nFAILED test_a.py::test_x\n1 failed in 0.1s\n", "", 1)
    history.finish_tool(tool_result(call, "1 failed"), "finished", "1 failed", command=command)
    data = next(each for each in read_events(history.entries) if each.kind == "call").data
    assert data["exit_code"] == 1
    assert "FAILED test_a.py::test_x" in data["telling"]


def test_a_call_names_the_files_it_wrote() -> None:
    """Not those that it only might write, as an entry ahead of the call has them."""
    history, call = History(), ToolCall("c1", "change", "{}")
    history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
    history.change_files("c1", [FileChange("/a", "1", "unknown"), FileChange("/b", "2", "unknown")])
    history.start_tool(call)
    history.finish_tool(tool_result(call, "done"))
    history.change_files("c1", [FileChange("/a", "1", "3"), FileChange("/b", "2", "2")])
    assert block(read_events(history.entries), "a1.1").data["changed"] == ["/a"]


def test_the_task_list_is_the_last_one() -> None:
    call = 'call: todo {"items": [{"content": "sail", "status": "STATUS"}]}'
    lists = [call.replace("STATUS", status) for status in ("pending", "completed")]
    agent = make_agent(ScriptedProvider("\n---\n".join([*lists, "text: Done."])), describe=False)
    told = told_of(agent)
    assert [event.data["items"][0]["status"] for event in of(told, "plan")] == ["pending", "completed"]
    assert block(told, "plan").data["items"] == [{"content": "sail", "status": "completed"}]


def test_a_subagent_is_shown_inside_its_call_while_it_works() -> None:
    scout = dm.Agent(ScriptedProvider('text: I look.\ncall: look {"what": "sea"}\n---\ntext: Land.'), tools=[PlainTool()])
    script = 'call: scout {"prompt": "Look."}\n---\ntext: Done.'
    told = told_of(agent_for(script, scout.as_tool("scout", "Looks.")))  # type: ignore[arg-type]
    inside = [event for event in told if event.inside]
    assert {event.inside for event in inside} == {"a1.1"}
    assert all(event.passing for event in inside)
    shown = join_events(msgspec.structs.replace(event, passing=False) for event in inside if event.kind in ("text", "call"))
    assert [(each.id, each.text) for each in shown] == [("a1.1/a1.1", "I look."), ("a1.1/a1.2", "look"), ("a1.1/a2.1", "Land.")]
    assert shown[1].state == "done"
    counts = [event.data["inner"]["calls"] for event in told if "inner" in event.data]
    assert counts[-1] == 1


# --- how it ends, and who else is there


def test_the_last_event_says_how_it_ended() -> None:
    done, failed = told_of(agent_for("text: Done.")), told_of(agent_for('error: 400 "No such field"'))
    assert [(event.state, event.passing) for event in of(done, "ended")] == [("done", True)]
    (end,) = of(failed, "ended")
    assert end.state == "failed"
    assert "No such field" in end.text
    assert end.data["error_type"] == "BadRequest"


def test_a_rewind_marks_what_the_model_no_longer_sees() -> None:
    history, renderer = History(), Renderer()
    first = history.say(user("one"))
    history.answer(Response(assistant("Aye."), FinishReason.STOP))
    renderer.read(history.entries)
    history.rewind(first)
    told = renderer.read(history.entries[-1:])
    assert {event.id: event.data for event in told if event.append and event.id != "session"} == {
        "a1": {"taken_back": True},
        "a1.1": {"taken_back": True},
    }


def test_two_conversations_at_once_each_with_its_own_view() -> None:
    async def one(name: str) -> tuple[list[ViewEvent], Agent]:
        script = f'text piece=1: I am {name}.\ncall: look {{"what": "{name}"}}\n---\ntext piece=1: {name} is done.'
        agent, renderer, told = agent_for(script, PlainTool()), Renderer(), list[ViewEvent]()
        async for event in follow(agent.run(f"go {name}"), agent.history.entries, renderer):
            told.append(event)
            await asyncio.sleep(0)  # the others go on meanwhile
        return told, agent

    async def go() -> None:
        names = ["Zarif", "Yusuf", "Layla"]
        for name, (told, agent) in zip(names, await asyncio.gather(*map(one, names)), strict=True):
            assert [event.seq for event in told] == list(range(1, len(told) + 1))
            assert "".join(event.text for event in of(told, "text")) == f"I am {name}.{name} is done."
            assert without_seq(join_events(told)) == without_seq(read_events(agent.history.entries))
            await agent.aclose()

    play(go)


def test_every_event_is_ready_for_json() -> None:
    script = 'thought: Hm.\ntext: Both.\ncall: look {"what": "a"}\ncall: change {"what": "b"}\n---\ntext: Done.'
    for event in told_of(agent_for(script, PlainTool(), writer())):
        assert msgspec.json.decode(msgspec.json.encode(event), type=ViewEvent) == event


def without_seq(events: Iterable[ViewEvent]) -> list[Any]:
    return [msgspec.structs.replace(event, seq=0) for event in events]


SHOWN_OTHERWISE = {
    *("PromptAccepted", "TurnStarted", "ResponseStarted", "PromptRead", "TextDelta", "ThoughtDelta", "CitationAdded", "TurnFinished"),
    *("ToolCallRequested", "ToolCallConfirmation", "ToolCallUpdated", "ToolCallFinished", "Retrying", "StreamInvalid", "UserCancelled"),
    *("ErrorRaised", "ContextOverflowed", "OutputUpdated", "SubagentEvent", "HandedOver"),
}
"""Events that a report has a form of its own for, or nothing to say of."""


def test_every_event_has_a_line_or_is_shown_otherwise() -> None:
    source = textwrap.dedent(inspect.getsource(call_lines.notice_of))
    lines = {node.cls.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name)}
    events = {kind.__name__ for kind in get_args(dm.TurnEvent)}
    assert events - lines == SHOWN_OTHERWISE, "conversation/call_lines.py says in a line what happened, unless it is listed here"
