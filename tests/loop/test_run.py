"""A run: iterated, awaited, cancelled, refused; and what its events and its result say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dragoman.loop.options import AnswerPolicy
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent, Show
from dragoman.values.errors import Cancelled, InputError, Refused, ServerError
from dragoman.values.events import (
    ErrorRaised,
    PromptAccepted,
    ResponseStarted,
    Retrying,
    TextDelta,
    ToolCallConfirmation,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnFinished,
    TurnStarted,
    UserCancelled,
)
from dragoman.values.messages import FinishReason, Request, ToolCall
from dragoman.values.profile import Profile
from dragoman.values.record import ToolFinished, ToolStarted
from dragoman.values.usage import Usage
from scenarios.workshop import (
    QUICK,
    PlainTool,
    agent_for,
    check_record,
    events_of,
    finished_calls,
    forever,
    no_wait,
    play,
    said,
    writer,
)

ONE_CALL = 'call: look {"what": "a"}\n---\ntext: Done.'


async def allow(call: ToolCall, view: Intent) -> Allow | Deny:
    return Allow()


# --- iterating and awaiting -------------------------------------------------------------------------------------------------------


def test_awaiting_gives_the_result() -> None:
    async def go() -> None:
        result = await agent_for("text: Hello.").run("hi")
        assert (result.text, result.finish, result.turns, result.exit_code, result.error) == ("Hello.", FinishReason.STOP, 1, 0, "")

    play(go)


def test_iterating_gives_the_events_and_then_the_result_stands() -> None:
    async def go() -> None:
        run = agent_for("text piece=3: Hello.").run("hi")
        events = await events_of(run)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello."
        assert isinstance(events[-1], TurnFinished)
        assert run.result.text == "Hello."

    play(go)


@pytest.mark.parametrize("await_first", [True, False])
def test_one_may_do_both(await_first: bool) -> None:
    async def go() -> None:
        agent = agent_for("text: Hello.")
        run = agent.run("hi")
        result = await run if await_first else None
        events = await events_of(run)
        result = result or await run
        assert [type(event) for event in events] == [PromptAccepted, TurnStarted, ResponseStarted, TextDelta, TurnFinished]
        assert result.text == (await run).text == "Hello."
        assert await events_of(run) == events, "whoever comes later hears the same"
        assert len(agent.provider.requests) == 1, "it runs once"  # type: ignore[attr-defined]

    play(go)


def test_awaiting_raises_what_went_wrong_and_iterating_tells_it() -> None:
    async def go() -> None:
        run = agent_for("error: 500").run("hi")
        events = await events_of(run)
        assert isinstance(events[-1], ErrorRaised)
        assert (events[-1].error_type, events[-1].retryable, events[-1].exit_code) == ("ServerError", True, 57)
        assert (run.result.error, run.result.error_type, run.result.exit_code) == (events[-1].message, "ServerError", 57)
        with pytest.raises(ServerError):
            await run
        with pytest.raises(ServerError):
            await run

    play(go)


def test_a_fault_of_our_own_is_told_as_such_and_does_not_hang() -> None:
    class Broken(ScriptedProvider):
        def profile(self, model: str) -> Profile:
            return super().profile(model)

        def stream(self, request: Request) -> Any:
            raise ZeroDivisionError("of all things")

    async def go() -> None:
        agent = agent_for(Broken("text: a"))
        run = agent.run("hi")
        events = await events_of(run)
        assert isinstance(events[-1], ErrorRaised)
        assert "ZeroDivisionError: of all things" in events[-1].message
        assert run.result.exit_code == 1
        with pytest.raises(ZeroDivisionError):
            await run
        check_record(agent.history)

    play(go)


def test_it_starts_when_it_is_first_asked() -> None:
    async def go() -> None:
        agent = agent_for("text: Hello.")
        with pytest.warns(RuntimeWarning, match="never begun"):
            agent.run("never asked")
        assert agent.history.entries == []
        await agent.run("hi")
        assert [message.text for message in agent.history.view.messages] == ["hi", "Hello."]

    play(go)


def test_a_run_counts_what_happened_in_it_and_not_before() -> None:
    async def go() -> None:
        agent = agent_for("usage: fresh=10\ntext: One.\n---\nusage: fresh=3\ntext: Two.")
        first, second = agent.run("a"), agent.run("b")
        assert (await first).usage == Usage(10)
        assert (await second).usage == Usage(3)
        assert second.result.requests == 1

    play(go)


def test_whoever_waits_and_is_cancelled_takes_the_run_along() -> None:
    async def go() -> None:
        agent = agent_for("text: Half\nstall\n---\ntext: Whole.")
        run = agent.run("hi")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run, 0.05)  # type: ignore[arg-type]
        assert (await agent.run("again")).text == "Whole."
        check_record(agent.history)

    play(go)


def test_leaving_the_block_ends_the_run() -> None:
    async def go() -> None:
        agent = agent_for("text: Half\nstall\n---\ntext: Whole.")
        async with agent.run("hi") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    break
        assert run.result.error_type == "Cancelled"
        assert (await agent.run("again")).text == "Whole."

    play(go)


# --- one at a time ------------------------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_and_leaves_the_first_alone() -> None:
    async def go() -> None:
        gate = asyncio.Event()

        async def wait(args: Mapping[str, Any], show: Show) -> str:
            await gate.wait()
            return "found"

        tool = PlainTool(act=wait)
        agent = agent_for(ONE_CALL, tool)
        async with agent.run("hi") as first:
            events = asyncio.create_task(events_of(first))
            await tool.running.wait()
            with pytest.raises(InputError, match="already running"):
                await agent.run("me too")
            assert agent.history.view.open_calls, "the call of the first run is still its own"
            assert said(agent.history, "me too") == 0
            gate.set()
            assert isinstance((await events)[-1], TurnFinished)
            assert (await first).text == "Done."
        check_record(agent.history)

    play(go)


def test_after_a_run_another_may_begin_at_once() -> None:
    async def go() -> None:
        agent = agent_for("text: One.\n---\nerror: 500\n---\ntext: Three.")
        assert (await agent.run("a")).text == "One."
        with pytest.raises(ServerError):
            await agent.run("b")
        assert (await agent.run("c")).text == "Three."
        check_record(agent.history)

    play(go)


# --- what is told, in which order -----------------------------------------------------------------------------------------------


def test_a_round_is_told_in_order() -> None:
    async def go() -> None:
        agent = agent_for(f"text: Let me look.\n{ONE_CALL}", PlainTool())
        events = await events_of(agent.run("hi"))
        kinds = [type(event) for event in events]
        updates = [event.state for event in events if isinstance(event, ToolCallUpdated)]
        assert kinds[:6] == [PromptAccepted, TurnStarted, ResponseStarted, TextDelta, TurnFinished, ToolCallRequested]
        assert updates == ["validating", "scheduled", "executing", "success"]
        assert kinds[-5:] == [ToolCallFinished, TurnStarted, ResponseStarted, TextDelta, TurnFinished]
        assert kinds.count(TurnFinished) == 2

    play(go)


def test_calls_of_an_answer_that_is_no_good_are_never_told() -> None:
    """PV08, PV09: neither told nor run."""
    script = (
        'call: look {"what": "a"}\nfinish: UNEXPECTED_TOOL_CALL "x"\n---\n'
        'call: look {"what": "b"}\nfinish: length\n---\n'
        'call: look {"what": "c"}\n---\ntext: Done.'
    )

    async def go() -> None:
        tool = PlainTool()
        agent = agent_for(script, tool, limits=msgspec.structs.replace(QUICK, answers=AnswerPolicy(attempts=3, sleep=no_wait)))
        events = await events_of(agent.run("hi"))
        requested = [event.call.args for event in events if isinstance(event, ToolCallRequested)]
        assert requested == tool.asked == [{"what": "c"}]
        assert [event.attempt for event in events if isinstance(event, Retrying)] == [1, 2]
        check_record(agent.history)

    play(go)


def test_output_is_told_while_a_tool_runs() -> None:
    async def chatty(args: Mapping[str, Any], show: Show) -> str:
        show("one\n")
        show("two\n")
        return "both"

    async def go() -> None:
        events = await events_of(agent_for(ONE_CALL, PlainTool(act=chatty)).run("hi"))
        shown = "".join(event.output_delta for event in events if isinstance(event, ToolCallUpdated))
        assert shown == "one\ntwo\n"

    play(go)


def test_a_person_is_asked_and_the_question_is_told() -> None:
    async def go() -> None:
        asked: list[Intent] = []

        async def ask(call: ToolCall, view: Intent) -> Allow | Deny:
            asked.append(view)
            return Allow()

        tool = writer()
        events = await events_of(agent_for('call: change {"what": "a"}\n---\ntext: Done.', tool, ask=ask).run("hi"))
        assert [view.title for view in asked] == ["change a"]
        assert len([event for event in events if isinstance(event, ToolCallConfirmation)]) == 1
        states = [event.state for event in events if isinstance(event, ToolCallUpdated)]
        assert states == ["validating", "awaiting_approval", "scheduled", "executing", "success"]

    play(go)


@pytest.mark.parametrize("ask", [None, "refuses"])
def test_a_refusal_is_told_to_the_model_and_the_run_goes_on(ask: str | None) -> None:
    async def refuse(call: ToolCall, view: Intent) -> Allow | Deny:
        return Deny("not on a Sunday")

    async def go() -> None:
        tool = writer()
        agent = agent_for('call: change {"what": "a"}\n---\ntext: Then not.', tool, ask=refuse if ask else None)
        result = await agent.run("hi")
        assert (tool.asked, result.text, result.exit_code) == ([], "Then not.", 0)
        told = agent.provider.requests[1].messages[-1].results[0]  # type: ignore[attr-defined]
        assert told.is_error
        assert ("not on a Sunday" if ask else "nobody can be asked") in told.content[0].text

    play(go)


def test_edited_arguments_are_run_recorded_and_told_to_the_model() -> None:
    async def edit(call: ToolCall, view: Intent) -> Allow | Deny:
        return Allow('{"what": "b"}')

    async def go() -> None:
        tool = writer()
        agent = agent_for('call: change {"what": "a"}\n---\ntext: Done.', tool, ask=edit)
        await agent.run("hi")
        assert tool.asked == [{"what": "b"}]
        started = [entry for entry in agent.history.entries if isinstance(entry, ToolStarted)]
        assert [entry.arguments for entry in started] == ['{"what": "b"}']
        request = agent.provider.requests[1]  # type: ignore[attr-defined]
        assert request.messages[-2].calls[0].args == {"what": "a"}, "the model's call is never altered"
        assert '{"what": "b"}' in request.messages[-1].results[0].content[0].text
        check_record(agent.history)

    play(go)


def test_edited_arguments_that_do_not_fit_are_not_run() -> None:
    async def edit(call: ToolCall, view: Intent) -> Allow | Deny:
        return Allow('{"what": 5}')

    async def go() -> None:
        tool = writer()
        agent = agent_for('call: change {"what": "a"}\n---\ntext: Done.', tool, ask=edit)
        result = await agent.run("hi")
        assert (tool.asked, result.tool_failures) == ([], 1)

    play(go)


def test_one_call_is_cancelled_and_the_others_go_on() -> None:
    script = 'call id=x: slow {"what": "a"}\ncall id=y: look {"what": "b"}\n---\ntext: Done.'

    async def go() -> None:
        slow, look = PlainTool("slow", forever), PlainTool()
        agent = agent_for(script, slow, look)
        async with agent.run("hi") as run:
            events = asyncio.create_task(events_of(run))
            await asyncio.gather(slow.running.wait(), look.running.wait())
            assert not run.cancel_call("no such call")
            assert run.cancel_call("x")
            told = await events
            assert (await run).text == "Done."
        assert sorted(finished_calls(told)) == ["x", "y"]
        results = agent.provider.requests[1].messages[-1].results  # type: ignore[attr-defined]
        assert [(result.call_id, result.is_error) for result in results] == [("x", True), ("y", False)]
        assert "cancelled" in results[0].content[0].text
        assert not run.cancel_call("x"), "it is over"
        check_record(agent.history)

    play(go)


# --- cancelling: when nothing has happened yet, twice, too late -------------------------------------------------------------------


def test_a_run_cancelled_before_it_began_ends_cancelled() -> None:
    async def go() -> None:
        agent = agent_for("text: Hello.")
        run = agent.run("hi")
        run.cancel()
        assert await events_of(run) == [UserCancelled()]
        with pytest.raises(Cancelled):
            await run
        assert agent.provider.requests == []  # type: ignore[attr-defined]
        assert (await agent.run("hi")).text == "Hello."

    play(go)


def test_a_run_cancelled_in_its_first_moment_ends_cancelled() -> None:
    """Its task exists and has not taken a step."""

    async def go() -> None:
        agent = agent_for("text: Hello.")
        async with agent.run("hi") as run:
            run.cancel()
            assert await events_of(run) == [UserCancelled()]
            with pytest.raises(Cancelled):
                await run
        assert (await agent.run("hi")).text == "Hello."

    play(go)


def test_cancelling_twice_is_cancelling_once() -> None:
    async def go() -> None:
        tool = PlainTool(act=forever)
        agent = agent_for(ONE_CALL, tool)
        async with agent.run("hi") as run:
            events = asyncio.create_task(events_of(run))
            await tool.running.wait()
            run.cancel()
            await asyncio.sleep(0)
            run.cancel()
            told = await events
            assert told[-1] == UserCancelled()
            assert len(finished_calls(told)) == 1
            with pytest.raises(Cancelled):
                await run
        check_record(agent.history)
        assert (await agent.run("hi")).text == "Done."

    play(go)


def test_cancelling_what_has_ended_does_nothing() -> None:
    async def go() -> None:
        agent = agent_for("text: Hello.")
        run = agent.run("hi")
        await run
        run.cancel()
        assert (await run).text == "Hello."

    play(go)


def test_a_call_that_was_cancelled_is_recorded_as_cancelled() -> None:
    script = 'call id=x: slow {"what": "a"}\ncall id=y: change {"what": "b"}\n---\ntext: Done.'

    async def go() -> None:
        slow = PlainTool("slow", forever)
        agent = agent_for(script, slow, writer(), ask=allow)
        async with agent.run("hi") as run:
            events = asyncio.create_task(events_of(run))
            await slow.running.wait()
            run.cancel()
            await events
        outcomes = {entry.result.call_id: entry.outcome for entry in agent.history.entries if isinstance(entry, ToolFinished)}
        assert outcomes == {"x": "cancelled", "y": "cancelled"}
        texts = {entry.result.call_id: entry.result.content[0].text for entry in agent.history.entries if isinstance(entry, ToolFinished)}  # type: ignore[union-attr]
        assert "while it ran" in texts["x"]
        assert "before it was run" in texts["y"]

    play(go)


# --- refusals --------------------------------------------------------------------------------------------------------------------


def test_a_prompt_that_is_refused_leaves_the_view_so_that_the_next_one_is_not_refused_with_it() -> None:
    async def go() -> None:
        agent = agent_for("text: Hello.\n---\nblock: SAFETY\n---\ntext: Better.")
        await agent.run("hi")
        with pytest.raises(Refused):
            await agent.run("something terrible")
        assert said(agent.history, "something terrible") == 1, "the record keeps it"
        assert (await agent.run("something else")).text == "Better."
        asked = agent.provider.requests[-1]  # type: ignore[attr-defined]
        assert [message.text for message in asked.messages][-3:] == ["hi", "Hello.", "something else"]
        check_record(agent.history)

    play(go)


def test_a_refusal_after_work_was_done_keeps_the_work() -> None:
    async def go() -> None:
        agent = agent_for('call: look {"what": "a"}\n---\nfinish: safety\n---\ntext: Better.')
        with pytest.raises(Refused):
            await agent.run("look at it")
        await agent.run("something else")
        asked = agent.provider.requests[-1]  # type: ignore[attr-defined]
        assert sum(len(message.results) for message in asked.messages) == 1
        check_record(agent.history)

    play(go)


def test_requests_count_the_attempts_that_failed() -> None:
    async def go() -> None:
        provider = Retry(ScriptedProvider("error: 500\n---\nerror: 500\n---\ntext: Hello."), RetryPolicy(sleep=no_wait))
        assert (await agent_for(provider).run("hi")).requests == 3

    play(go)
