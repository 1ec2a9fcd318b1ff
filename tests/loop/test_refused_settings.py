"""A setting that a service refuses: recorded, told once, and not sent again, in this session and when it is resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.providers.connect import connect
from dragoman.providers.retry import RetryPolicy
from dragoman.sessions.transcript import Note, read_transcript
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules
from dragoman.testing.script import Script
from dragoman.testing.script_steps import answer
from dragoman.values.contracts import Provider
from dragoman.values.errors import BadRequest
from dragoman.values.events import FieldOmitted, TurnEvent
from dragoman.values.messages import user
from dragoman.values.record import FieldRefused

MODEL = "responses/gpt-6.1-sol"
UNVERIFIED = "Your organization must be verified to generate reasoning summaries."
REFUSED = Rules(refused_settings={"reasoning.summary": UNVERIFIED})


def provider_for(server: MockServer) -> Provider:
    return connect(MODEL, key="a-key", base_url=server.url, env={}, retry=RetryPolicy(attempts=1))


def agent_with(provider: Provider, folder: Path, resume: str = "") -> Agent:
    return make_agent(provider, builtin=False, describe=False, workspace=folder, sessions=folder / "sessions", resume=resume)


async def told(agent: Agent, prompt: str) -> list[TurnEvent]:
    async with agent.run(prompt) as run:
        return [event async for event in run]


def omitted(events: list[TurnEvent]) -> list[str]:
    return [event.field for event in events if isinstance(event, FieldOmitted)]


def refusals(agent: Agent) -> list[tuple[str, str, str, str]]:
    found = [entry for entry in agent.history.entries if isinstance(entry, FieldRefused)]
    return [(entry.deployment, entry.model, entry.field, entry.reason) for entry in found]


def with_summary(server: MockServer) -> list[bool]:
    bodies: list[Any] = [exchange.body for exchange in server.requests]
    return ["summary" in body.get("reasoning", {}) for body in bodies]


def test_it_is_recorded_once_told_once_and_not_sent_by_a_resumed_session(tmp_path: Path) -> None:
    async def go() -> None:
        async with MockServer(Script((answer("one"), answer("two"), answer("three"))), rules=REFUSED) as server:
            async with agent_with(provider_for(server), tmp_path) as agent:
                assert omitted(await told(agent, "a")) == ["reasoning.summary"]
                assert refusals(agent) == [("responses", "gpt-6.1-sol", "reasoning.summary", UNVERIFIED)]
                assert not omitted(await told(agent, "b"))
                assert len(refusals(agent)) == 1
                live = agent.history.request
            async with agent_with(provider_for(server), tmp_path, "latest") as again:  # a new provider: it knows nothing
                assert again.history.request == live
                assert again.history.request.omit == ("reasoning.summary",)
                assert not omitted(await told(again, "c"))
            assert with_summary(server) == [True, False, False, False]

    asyncio.run(go())


def test_two_agents_with_one_provider_each_record_it(tmp_path: Path) -> None:
    """The second is never refused, but what it sends depends on its own record alone: resumed elsewhere it must send the same."""

    async def go() -> None:
        async with MockServer(Script(tuple(answer("ok") for _ in range(4))), rules=REFUSED) as server:
            provider = provider_for(server)
            (tmp_path / "a").mkdir()
            (tmp_path / "b").mkdir()
            async with agent_with(provider, tmp_path / "a") as one, agent_with(provider, tmp_path / "b") as two:
                both = await asyncio.gather(told(one, "a"), told(two, "b"))
                assert [omitted(events) for events in both] == [["reasoning.summary"]] * 2
                assert len(refusals(one)) == len(refusals(two)) == 1
            before = len(server.requests)
            async with agent_with(provider_for(server), tmp_path / "b", "latest") as again:
                await told(again, "c")
            assert len(server.requests) == before + 1
            await provider.aclose()

    asyncio.run(go())


def test_a_refusal_of_what_was_asked_ends_the_run(tmp_path: Path) -> None:
    async def go() -> None:
        rules = Rules(refused_settings={"input": "Unsupported parameter: 'input' with reasoning."})
        async with MockServer(Script((answer("one"),)), rules=rules) as server:
            async with agent_with(provider_for(server), tmp_path) as agent:
                with pytest.raises(BadRequest):
                    await agent.run("a")
                assert not refusals(agent)
            assert len(server.requests) == 1

    asyncio.run(go())


def history() -> History:
    made = History()
    made.configure("m", deployment="here")
    made.say(user("hello"))
    return made


def test_it_counts_for_the_model_that_refused_it_alone() -> None:
    made = history()
    assert made.refuse_field(FieldOmitted("here", "m", "temperature", "no")) is not None
    assert made.refuse_field(FieldOmitted("here", "m", "temperature", "no")) is None
    assert made.refuse_field(FieldOmitted("here", "m", "top_p", "no")) is not None
    assert made.request.omit == ("temperature", "top_p")
    made.change_model("other")
    assert made.request.omit == ()
    made.change_model("m", "elsewhere")
    assert made.request.omit == ()
    made.change_model("m", "here")
    assert made.request.omit == ("temperature", "top_p")


def test_a_rewind_does_not_make_the_service_take_it() -> None:
    made = history()
    [first] = [entry for entry in made.entries if entry.seq == 2]
    made.refuse_field(FieldOmitted("here", "m", "temperature", "no"))
    made.rewind(first)
    assert made.request.omit == ("temperature",)
    assert History(entries=made.entries).request == made.request


def test_it_stands_in_what_is_exported() -> None:
    made = history()
    made.refuse_field(FieldOmitted("here", "m", "temperature", "no"))
    notes = [step for step in read_transcript(made.entries).steps if isinstance(step, Note)]
    assert ("field_refused", "here/m: temperature") in [(note.kind, note.about) for note in notes]
