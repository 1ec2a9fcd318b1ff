"""Saying something while a run works: the model reads it at the next boundary, and the record has it as a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.values.calls import Show, ToolOutput
from dragoman.values.events import PromptAccepted
from dragoman.values.messages import ToolResult
from scenarios.workshop import PlainTool, agent_for, check_record, events_of, play

ONE_CALL = 'call: look {"what": "a"}\n---\ntext: Done.'


def test_it_is_read_with_the_results_of_the_calls_under_way() -> None:
    async def go() -> None:
        async def look(args: Mapping[str, Any], show: Show) -> ToolOutput:
            run.steer("look at b as well")
            run.steer("and c")
            return ToolOutput("a")

        agent = agent_for(ONE_CALL, PlainTool("look", look))
        run = agent.run("hi")
        events = await events_of(run)
        requests = agent.provider.requests  # type: ignore[attr-defined]
        assert len(requests) == 2
        *_, results, first, second = requests[1].messages
        assert any(isinstance(part, ToolResult) for part in results.parts)
        assert (first.text, second.text) == ("look at b as well", "and c")
        told = [event.text for event in events if isinstance(event, PromptAccepted)]
        assert told == ["", "look at b as well", "and c"]
        assert run.unsaid == ()
        check_record(agent.history)

    play(go)


def test_an_answer_without_calls_is_followed_by_another_one() -> None:
    async def go() -> None:
        agent = agent_for("text: Hello.\n---\ntext: And you.")
        run = agent.run("hi")
        run.steer("and me?")
        await run
        assert [message.text for message in agent.provider.requests[1].messages][-2:] == ["Hello.", "and me?"]  # type: ignore[attr-defined]
        assert run.result.text == "And you."

    play(go)


def test_what_comes_too_late_is_unsaid_and_can_be_taken_back() -> None:
    async def go() -> None:
        run = agent_for("text: Hello.").run("hi")
        await run
        run.steer("too late")
        assert run.unsaid == ("too late",)
        assert run.take_back() == ("too late",)
        assert run.unsaid == ()

    play(go)
