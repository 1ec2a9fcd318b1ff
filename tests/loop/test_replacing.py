"""Another conversation in the place of the one so far, and settings for a single run: all of it on the record, so that resume holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from agents import make_agent
from dragoman.context.repair import repair
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import InputError
from dragoman.values.messages import Message, Settings, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.notes import GREETING
from dragoman.values.parts import curated
from dragoman.values.record import Configured, Rewound
from property.conversations import damaged
from scenarios.workshop import QUICK, check_record, play


def agent_in(folder: Path, script: str = "answer: times=9\ntext: Yes.", **options: Any) -> Agent:
    return make_agent(ScriptedProvider(script), workspace=folder, builtin=False, system="Be brief.", limits=QUICK, **options)


def texts(agent: Agent) -> list[str]:
    return [message.text for message in agent.history.view.messages if not message.text.startswith(GREETING)]


def test_a_cleared_conversation_starts_afresh_and_is_resumed_so(tmp_path: Path) -> None:
    async def go() -> None:
        agent = agent_in(tmp_path)
        await agent.run("one")
        last = agent.history.entries[-1].seq
        agent.clear()
        assert agent.history.view.messages == ()
        assert (agent.history.view.model, agent.history.view.system) == ("scripted", "Be brief.")
        await agent.run("two")
        assert texts(agent) == ["two", "Yes."]
        sent = agent.provider.requests[-1].messages
        assert sent[0].text.startswith(GREETING), "it is told its surroundings again"
        assert [message.text for message in agent.history.transcript()].count("one") == 1, "the record keeps it"
        plan = agent.plan()
        assert sum(item.tokens for item in plan.items) == plan.tokens

        resumed = agent_in(tmp_path, history=History(entries=agent.history.entries))
        await resumed.run("three")
        assert texts(resumed) == ["two", "Yes.", "three", "Yes."]
        resumed.rewind(last)
        assert texts(resumed) == ["one", "Yes."], "and it can be had back"
        check_record(resumed.history)

    play(go)


def test_a_session_that_was_cleared_last_can_be_resumed(tmp_path: Path) -> None:
    async def go() -> None:
        async with agent_in(tmp_path, sessions=tmp_path / "kept") as agent:
            await agent.run("one")
            agent.clear()
        async with agent_in(tmp_path, sessions=tmp_path / "kept", resume="latest") as resumed:
            assert resumed.session_id == agent.session_id
            await resumed.run("two")
            assert texts(resumed) == ["two", "Yes."]

    play(go)


def test_where_nothing_was_said_nothing_is_cleared(tmp_path: Path) -> None:
    agent = agent_in(tmp_path)
    agent.clear()
    assert agent.history.entries == []


def test_other_messages_take_the_place_of_the_conversation(tmp_path: Path) -> None:
    async def go() -> None:
        agent = agent_in(tmp_path)
        await agent.run("one")
        call = ToolCall("c1", "look", "{}")
        answered = Message("user", (ToolResult("c1", "look", (Text("a file"),)),))
        given = [user("Hello"), assistant("Looking.", call), answered, assistant("There is a file.")]
        agent.set_history(given)
        assert list(agent.history.view.messages) == given
        await agent.run("two")
        sent = agent.provider.requests[-1].messages
        assert sent[0].text.startswith(GREETING)
        assert list(sent[1:]) == [*given, user("two")]
        resumed = History(entries=agent.history.entries)
        assert resumed.request == agent.history.request
        check_record(agent.history)

    play(go)


def test_a_role_that_no_service_knows_changes_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        agent = agent_in(tmp_path)
        await agent.run("one")
        before = [*agent.history.entries]
        with pytest.raises(InputError, match="system"):
            agent.set_history([user("Hello"), Message("system", (Text("x"),))])  # type: ignore[arg-type]
        assert agent.history.entries == before

    play(go)


@given(damaged)
def test_whatever_is_given_every_call_has_one_result(messages: tuple[Message, ...]) -> None:
    agent = make_agent(ScriptedProvider("text: Yes."), builtin=False, describe=False)
    agent.set_history(messages)
    expected = repair((*curated(messages), user("next"))).messages[:-1]
    found = agent.history.view.messages
    assert [part for message in found for part in message.parts] == [part for message in expected for part in message.parts]
    assert agent.history.view.open_calls == ()


def test_settings_for_one_run_hold_for_that_run_alone(tmp_path: Path) -> None:
    async def go() -> None:
        agent = agent_in(tmp_path, settings=Settings(temperature=0.5))
        await agent.run("one", settings=Settings(temperature=0.0, max_output_tokens=100))
        await agent.run("two")
        found = [(request.settings.temperature, request.settings.max_output_tokens) for request in agent.provider.requests]
        assert found == [(0.0, 100), (0.5, Settings().max_output_tokens)]
        assert agent.settings == Settings(temperature=0.5)
        assert [entry.settings.temperature for entry in agent.history.entries if isinstance(entry, Configured)] == [0.0, 0.5]
        assert not [entry for entry in agent.history.entries if isinstance(entry, Rewound)]

    play(go)


def test_code_that_is_not_async_can_give_settings_for_one_run_too(tmp_path: Path) -> None:
    with agent_in(tmp_path) as agent:
        agent.run_sync("one", settings=Settings(temperature=0.1))
        list(agent.stream_sync("two", settings=Settings(temperature=0.2)))
        assert [request.settings.temperature for request in agent.provider.requests] == [0.1, 0.2]
