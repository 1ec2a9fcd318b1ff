"""How a run ends: at a limit, in circles, cut short, failed; what one may do then; and the figures it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent, Show, ToolOutput
from dragoman.values.errors import InputError, LoopDetected, OutputLimit, ServerError, ToolBroken, TurnLimit
from dragoman.values.events import ErrorRaised, LoopSuspected, Retrying, StreamInvalid, ToolCallFinished
from dragoman.values.messages import FinishReason, Text, ToolCall
from dragoman.values.profile import Profile
from dragoman.values.usage import Prices, Usage
from scenarios.workshop import (
    QUICK,
    PlainTool,
    agent_for,
    check_record,
    check_told,
    events_of,
    failing,
    forever,
    play,
    said,
    writer,
)


async def allow(call: ToolCall, view: Intent) -> Allow | Deny:
    return Allow()


# --- how it ends -------------------------------------------------------------------------------------------------------------------


def test_the_turn_limit_stops_it_and_one_may_go_on() -> None:
    async def go() -> None:
        script = "".join(f'call: look {{"what": "{number}"}}\n---\n' for number in range(4)) + "text: Done."
        agent = agent_for(script, PlainTool(), limits=msgspec.structs.replace(QUICK, max_turns=3))
        run = agent.run("hi")
        events = await events_of(run)
        assert isinstance(events[-1], ErrorRaised)
        assert (events[-1].exit_code, run.result.turns, run.result.tool_calls) == (53, 3, 3)
        with pytest.raises(TurnLimit, match="3 turns"):
            await run
        check_record(agent.history)
        assert (await agent.run()).text == "Done."
        assert said(agent.history, "hi") == 1

    play(go)


def test_the_first_circle_is_told_to_the_model_and_the_second_stops_the_run() -> None:
    script = "script: end=repeat\n" + 'call: look {"what": "a"}'

    async def go() -> None:
        agent = agent_for(script, PlainTool())
        run = agent.run("hi")
        events = await events_of(run)
        assert [event.count for event in events if isinstance(event, LoopSuspected)] == [1, 2]
        assert run.result.exit_code == 56
        assert run.result.turns == 10
        with pytest.raises(LoopDetected, match="5 times in a row"):
            await run
        told = agent.provider.requests[5].messages[-1].text  # type: ignore[attr-defined]
        assert "going in circles" in told
        check_record(agent.history)

    play(go)


def test_a_model_that_takes_the_hint_goes_on() -> None:
    script = "answer: times=3\n" + 'call: look {"what": "a"}\n---\ntext: I see, it is not there.'

    async def go() -> None:
        agent = agent_for(script, PlainTool(act=failing()))
        events = await events_of(run := agent.run("hi"))
        assert [event.count for event in events if isinstance(event, LoopSuspected)] == [1]
        assert (run.result.text, run.result.exit_code, run.result.tool_failures) == ("I see, it is not there.", 0, 3)
        check_record(agent.history)

    play(go)


def test_an_answer_that_repeats_itself_is_broken_off_and_void() -> None:
    circling = "I will look at the file again and then I will tell you. " * 40
    script = f"text piece=20: {circling}\nstall\n---\ntext: Enough."

    async def go() -> None:
        agent = agent_for(script)
        events = await events_of(run := agent.run("hi"))
        suspected = next(number for number, event in enumerate(events) if isinstance(event, LoopSuspected))
        assert any(isinstance(event, StreamInvalid | Retrying) for event in events[:suspected]), "what was shown is void"
        assert run.result.text == "Enough."
        assert [message.text[:5] for message in agent.history.view.messages] == ["hi", "You s", "Enoug"]
        check_record(agent.history)

    play(go)


def test_an_answer_cut_by_the_output_limit_stands_and_says_so() -> None:
    async def go() -> None:
        agent = agent_for("text: A long story\nfinish: length\n---\ntext: , and its end.")
        run = agent.run("tell me")
        with pytest.raises(OutputLimit):
            await run
        assert (run.result.text, run.result.exit_code, run.result.finish) == ("A long story", 59, FinishReason.LENGTH)
        assert (await agent.run("go on")).exit_code == 0
        check_record(agent.history)

    play(go)


@pytest.mark.parametrize("script", ["error: 500", "cut", "text: half\ncut", "finish: stop\n---\nfinish: stop", "block: SAFETY", "garbage"])
def test_the_same_prompt_after_a_failure_is_not_said_twice(script: str) -> None:
    """PV05: the same prompt can be tried again without duplicate history."""

    async def go() -> None:
        agent = agent_for(f"{script}\n---\ntext: At last.")
        with pytest.raises(Exception):  # noqa: B017  each fails in its own way
            await agent.run("hi")
        check_record(agent.history)
        result = await agent.run("hi")
        assert result.text == "At last."
        assert [message.text for message in agent.history.view.messages] == ["hi", "At last."]
        check_record(agent.history)

    play(go)


@pytest.mark.parametrize("bad", ['finish: MALFORMED_FUNCTION_CALL "x"', 'call: look {"what": "a"}\nfinish: length'])
def test_the_same_prompt_is_not_said_twice_though_notes_came_behind_it(bad: str) -> None:
    async def go() -> None:
        agent = agent_for(f"{bad}\n---\n{bad}\n---\ntext: At last.", PlainTool())
        with pytest.raises(Exception):  # noqa: B017
            await agent.run("hi")
        assert (await agent.run("hi")).text == "At last."
        assert [message.text for message in agent.history.view.messages].count("hi") == 1
        check_record(agent.history)

    play(go)


def test_the_same_prompt_after_an_answer_is_another_prompt() -> None:
    async def go() -> None:
        agent = agent_for("text: One.\n---\ntext: Two.")
        await agent.run("again")
        await agent.run("again")
        assert [message.text for message in agent.history.view.messages] == ["again", "One.", "again", "Two."]

    play(go)


def test_going_on_without_a_prompt() -> None:
    async def go() -> None:
        agent = agent_for("error: 500\n---\ntext: At last.")
        with pytest.raises(ServerError):
            await agent.run("hi")
        assert (await agent.run()).text == "At last."
        assert [message.text for message in agent.history.view.messages] == ["hi", "At last."]

    play(go)


def test_there_must_be_something_to_go_on_from() -> None:
    async def go() -> None:
        with pytest.raises(InputError, match="give a prompt"):
            await agent_for("text: Hello.").run()

    play(go)


def test_a_tool_that_cannot_work_at_all_ends_the_run() -> None:
    """Exit code 54; every call is closed, and what was finished stays."""

    async def full(args: Mapping[str, Any], show: Show) -> str:
        raise ToolBroken("the disk is full")

    async def go() -> None:
        script = 'call id=a: look {"what": "1"}\ncall id=b: change {"what": "2"}\ncall id=c: look {"what": "3"}\n---\ntext: Good.'
        agent = agent_for(script, PlainTool(), writer(act=full), ask=allow)
        run = agent.run("hi")
        events = await events_of(run)
        with pytest.raises(ToolBroken, match="disk is full"):
            await run
        assert run.result.exit_code == 54
        check_told(events, 54)
        check_record(agent.history)
        assert [each.is_error for each in agent.history.view.messages[-1].results] == [False, True, True]
        assert (await agent.run("hi again")).text == "Good."

    play(go)


# --- figures -----------------------------------------------------------------------------------------------------------------------


def test_the_figures_of_a_run() -> None:
    script = (
        "usage: fresh=100 cache_read=50 output=20\n"
        'call: change {"what": "a"}\ncall: look {"what": "b"}\ncall: nosuch {}\n---\n'
        "usage: fresh=10 output=5\ntext: It did not work.\n---\n"
        "usage: fresh=7 output=2\ntext: Done."
    )

    async def change(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text("ok"),), changed=("/w/b.txt", "/w/a.txt", "/w/b.txt"))

    async def go() -> None:
        prices = Profile(prices=Prices(input=1_000_000, output=2_000_000, cache_read=100_000))
        agent = agent_for(ScriptedProvider(script, profile=prices), writer(act=change), PlainTool(act=failing()), ask=allow)
        result = await agent.run("first")
        assert result.usage == Usage(110, 50, output_tokens=25)
        assert result.cost_usd == pytest.approx(110 + 5 + 50)
        assert (result.turns, result.requests, result.tool_calls, result.tool_failures) == (2, 2, 3, 2)
        assert result.changed == ("/w/b.txt", "/w/a.txt")
        assert result.duration_ms >= 0
        result = await agent.run("second")
        assert (result.text, result.usage) == ("Done.", Usage(7, output_tokens=2))
        assert result.cost_usd == pytest.approx(7 + 2 * 2)
        assert (result.turns, result.requests, result.tool_calls, result.changed) == (1, 1, 0, ())

    play(go)


def test_rejected_answers_are_paid_for_too() -> None:
    async def go() -> None:
        agent = agent_for("usage: fresh=10\nfinish: stop\n---\nusage: fresh=3\ntext: Done.")
        result = await agent.run("hi")
        assert (result.usage, result.requests, result.turns) == (Usage(13), 2, 1)

    play(go)


def test_unknown_prices_are_no_price() -> None:
    async def go() -> None:
        assert (await agent_for("text: Done.").run("hi")).cost_usd is None

    play(go)


def test_a_cancelled_batch_counts_what_was_done() -> None:
    script = 'call id=x: look {"what": "a"}\ncall id=y: slow {"what": "b"}\n---\ntext: Done.'

    async def changing(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput((Text("ok"),), changed=("/w/a.txt",))

    async def go() -> None:
        slow, quick = PlainTool("slow", forever), PlainTool(act=changing)
        agent = agent_for(script, slow, quick)
        run = agent.run("hi")
        async for event in run:
            if isinstance(event, ToolCallFinished) and event.call_id == "x":
                await slow.running.wait()
                run.cancel()
        assert (run.result.tool_calls, run.result.changed) == (2, ("/w/a.txt",))

    play(go)
