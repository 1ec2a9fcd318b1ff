"""Calls that wait for a decision or for a result from outside: the run ends, and `resume` goes on, in this process or another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.contracts import Later, PendingCall, Show
from dragoman.errors import InputError
from dragoman.loop.closing import CANCELLED
from dragoman.sessions.export import to_markdown
from dragoman.testing import MemoryJournal, ScriptedProvider
from dragoman.values.parts import INTERRUPTED, text_of

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    ran.clear()
    return


@dm.tool(kind="execute")
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    ran.append(f"pay {to} {amount}")
    return f"paid {amount} to {to}"


@dm.tool
def notify(whom: str) -> str:
    """Tell somebody."""
    ran.append(f"notify {whom}")
    return "told"


@dm.tool(read_only=True)
def balance() -> str:
    """What is left."""
    ran.append("balance")
    return "120"


@dm.tool(external=True)
def survey(ship: str) -> str:
    """Have a ship surveyed."""
    raise AssertionError("it is never called")


async def later(call: dm.ToolCall, intent: dm.Intent) -> Later:
    return Later()


PAY = 'call: pay {"to": "harbour", "amount": 40}'
PAY_PILOT = 'call: pay {"to": "pilot", "amount": 5}'
TOOLS = (pay, notify, balance, survey)


def agent_of(script: str, ask: Any = later, **options: Any) -> dm.Agent:
    return dm.Agent(ScriptedProvider(script), tools=TOOLS, approval=dm.ApprovalOptions(ask=ask), **options)


def play(script: str, work: Callable[[dm.Agent], Any], **options: Any) -> Any:
    async def go() -> Any:
        async with agent_of(script, **options) as agent:
            return await work(agent)

    return asyncio.run(go())


def results_of(agent: dm.Agent) -> list[tuple[str, str, bool]]:
    messages = agent.history.request.messages
    return [(result.name, text_of(result.content), result.is_error) for message in messages for result in message.results]


def ids(calls: Iterable[PendingCall]) -> list[str]:
    return [call.id for call in calls]


def test_a_run_ends_with_the_call_pending_and_goes_on_once_it_is_decided() -> None:
    async def work(agent: dm.Agent) -> None:
        run = agent.run("Pay the harbour dues.")
        events = [event async for event in run]
        result = run.result
        assert result.is_pending
        assert not result.error
        [waiting] = result.pending
        assert (waiting.name, waiting.arguments, waiting.waits_for) == ("pay", '{"to": "harbour", "amount": 40}', "decision")
        assert waiting.intent.title == 'pay(to="harbour", amount=40)'
        assert agent.pending == result.pending
        states = [event.state for event in events if isinstance(event, dm.events.ToolCallUpdated)]
        assert states == ["validating", "awaiting_approval", "pending"]
        assert not ran

        result = await agent.resume({waiting.id: dm.Allow()})
        assert (result.text, result.is_pending, result.tool_calls, ran) == ("Done.", False, 1, ["pay harbour 40"])
        assert agent.pending == ()
        assert results_of(agent) == [("pay", "paid 40 to harbour", False)]

    play(f"{PAY}\n---\ntext: Done.", work)


def test_a_refusal_is_told_to_the_model() -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Pay.")).pending
        assert (await agent.resume({waiting.id: dm.Deny("too dear")})).text == "Then not."
        assert results_of(agent) == [("pay", "not run: too dear", True)]
        assert not ran

    play(f"{PAY}\n---\ntext: Then not.", work)


def test_edited_arguments_are_judged_again_and_told() -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Pay.")).pending
        await agent.resume({waiting.id: dm.Allow('{"to": "harbour", "amount": 4}')})
        [(_, text, _)] = results_of(agent)
        assert text == 'The arguments of this call were changed before it ran, to {"to": "harbour", "amount": 4}\n\npaid 4 to harbour'
        assert ran == ["pay harbour 4"]

    play(f"{PAY}\n---\ntext: Done.", work)


@pytest.mark.parametrize("arguments", ['{"to": 1}', "no JSON"])
def test_edited_arguments_that_do_not_fit_run_nothing(arguments: str) -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Pay.")).pending
        await agent.resume({waiting.id: dm.Allow(arguments)})
        assert [failed for _, _, failed in results_of(agent)] == [True]
        assert not ran

    play(f"{PAY}\n---\ntext: Done.", work)


def test_what_is_remembered_covers_the_next_call() -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Pay.")).pending
        result = await agent.resume({waiting.id: dm.Allow(remember="session")})
        assert result.text == "Both paid."
        assert ran == ["pay harbour 40", "pay harbour 40"]

    play(f"{PAY}\n---\n{PAY}\n---\ntext: Both paid.", work)


def test_a_mode_that_forbids_it_by_now_has_the_last_word() -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Pay.")).pending
        agent.approvals.mode = "plan"
        await agent.resume({waiting.id: dm.Allow()})
        assert [failed for _, _, failed in results_of(agent)] == [True]
        assert not ran

    play(f"{PAY}\n---\ntext: Done.", work)


def test_what_comes_before_runs_and_what_comes_after_waits() -> None:
    """A barrier is never overtaken, however long somebody thinks about it."""

    async def work(agent: dm.Agent) -> None:
        result = await agent.run("Go.")
        assert ran == ["balance", "notify agent"]
        [waiting] = result.pending
        assert (await agent.resume({waiting.id: dm.Allow()})).text == "Done."
        assert ran == ["balance", "notify agent", "pay harbour 40", "balance", "notify owner"]
        assert [name for name, _, _ in results_of(agent)] == ["balance", "notify", "pay", "balance", "notify"]

    calls = ["call: balance {}", 'call: notify {"whom": "agent"}', PAY, "call: balance {}", 'call: notify {"whom": "owner"}']
    play("\n".join(calls) + "\n---\ntext: Done.", work)


def test_calls_in_a_row_are_put_off_together_and_decided_one_by_one() -> None:
    async def work(agent: dm.Agent) -> None:
        first, second = (await agent.run("Pay both.")).pending
        result = await agent.resume({second.id: dm.Allow()})
        assert ids(result.pending) == [first.id, second.id]
        assert not ran, "the second may not overtake the first"
        assert [call.is_decided for call in result.pending] == [False, True]
        result = await agent.resume()
        assert ids(result.pending) == [first.id, second.id]
        assert not ran
        assert (await agent.resume({first.id: dm.Deny("no")})).text == "Done."
        assert ran == ["pay pilot 5"]
        assert [failed for _, _, failed in results_of(agent)] == [True, False]

    play(f"{PAY}\n{PAY_PILOT}\n---\ntext: Done.", work)


def test_deciding_the_first_leaves_the_second_pending() -> None:
    async def work(agent: dm.Agent) -> None:
        first, second = (await agent.run("Pay both.")).pending
        result = await agent.resume({first.id: dm.Allow()})
        assert ids(result.pending) == [second.id]
        assert ran == ["pay harbour 40"]
        assert result.requests == 0
        await agent.resume({second.id: dm.Allow()})
        assert ran == ["pay harbour 40", "pay pilot 5"]

    play(f"{PAY}\n{PAY_PILOT}\n---\ntext: Done.", work)


# --- results from outside


@pytest.mark.parametrize(
    ("value", "text", "failed"),
    [
        ("sound", "sound", False),
        ({"hull": "sound"}, '{"hull":"sound"}', False),
        (None, "(no output)", False),
        (dm.ToolOutput((dm.Text("sunk"),), is_error=True), "sunk", True),
    ],
)
def test_a_result_comes_from_outside(value: object, text: str, failed: bool) -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Survey her.")).pending
        assert (waiting.name, waiting.waits_for) == ("survey", "result")
        run = agent.resume(results={waiting.id: value})
        events = [event async for event in run]
        assert run.result.text == "Done."
        assert run.result.tool_calls == 1
        assert [event.outcome for event in events if isinstance(event, dm.events.ToolCallFinished)] == ["failed" if failed else "finished"]
        assert results_of(agent) == [("survey", text, failed)]

    play('call: survey {"ship": "Sohar"}\n---\ntext: Done.', work)


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
def test_a_function_may_say_that_its_result_comes_later(raises: bool, is_async: bool) -> None:
    def begin(ship: str) -> Later:
        ran.append(ship)
        if raises:
            raise Later
        return Later()

    async def begin_async(ship: str) -> Later:
        return begin(ship)

    tool = dm.tool(begin_async if is_async else begin, name="begin")

    async def go() -> None:
        async with dm.Agent(ScriptedProvider('call: begin {"ship": "Sohar"}\n---\ntext: Done.'), tools=[tool]) as agent:
            [waiting] = (await agent.run("Begin.")).pending
            assert (ran, waiting.waits_for) == (["Sohar"], "result")
            assert (await agent.resume(results={waiting.id: "sound"})).text == "Done."
            assert (ran, results_of(agent)) == (["Sohar"], [("begin", "sound", False)])

    asyncio.run(go())


def test_a_call_may_wait_for_a_decision_and_then_for_its_result() -> None:
    commission = dm.tool(survey.__wrapped__, name="commission", kind="execute", external=True)

    async def go() -> None:
        provider = ScriptedProvider('call: commission {"ship": "Sohar"}\n---\ntext: Done.')
        async with dm.Agent(provider, tools=[commission], approval=dm.ApprovalOptions(ask=later)) as agent:
            [waiting] = (await agent.run("Survey her.")).pending
            result = await agent.resume({waiting.id: dm.Allow('{"ship": "Muscat"}')})
            [waiting] = result.pending
            assert (waiting.waits_for, waiting.arguments) == ("result", '{"ship": "Muscat"}')
            await agent.resume(results={waiting.id: "sound"})
            assert results_of(agent)[0][1] == 'The arguments of this call were changed before it ran, to {"ship": "Muscat"}\n\nsound'

    asyncio.run(go())


def test_more_calls_wait_outside_than_run_side_by_side() -> None:
    look = dm.tool(survey.__wrapped__, name="look", read_only=True, external=True)

    async def go() -> None:
        script = "\n".join(f'call: look {{"ship": "{number}"}}' for number in range(12)) + "\n---\ntext: Done."
        async with dm.Agent(ScriptedProvider(script), tools=[look]) as agent:
            waiting = (await agent.run("Look.")).pending
            assert len(waiting) == 12
            assert (await agent.resume(results={call.id: call.arguments for call in waiting})).text == "Done."

    asyncio.run(go())


# --- what is refused


def test_what_does_not_belong_to_a_call_that_waits_is_refused_and_nothing_happens() -> None:
    async def work(agent: dm.Agent) -> None:
        surveying, paying = (await agent.run("Go.")).pending
        before = len(agent.history.entries)
        wrong: list[tuple[dict[str, Any], dict[str, Any], str]] = [
            ({"nobody": dm.Allow()}, {}, "there is no call 'nobody' that waits"),
            ({paying.id: dm.Allow(), "nobody": dm.Deny("no")}, {}, "there is no call 'nobody' that waits"),
            ({paying.id: True}, {}, "must be an Allow or a Deny"),
            ({surveying.id: dm.Allow()}, {}, "waits for its result"),
            ({}, {paying.id: "paid"}, "waits for a decision"),
            ({paying.id: dm.Allow()}, {paying.id: "paid"}, "both a decision and a result"),
            ({}, {surveying.id: Later()}, "leave it out"),
        ]
        for decisions, results, words in wrong:
            with pytest.raises(InputError, match=words):
                await agent.resume(decisions, results)
        assert len(agent.history.entries) == before
        assert not ran
        await agent.resume({}, {surveying.id: "sound"})
        with pytest.raises(InputError, match="is over"):
            await agent.resume(results={surveying.id: "sound"})
        await agent.resume({paying.id: dm.Allow()})
        with pytest.raises(InputError, match="is over"):
            await agent.resume({paying.id: dm.Allow()})
        assert ran == ["pay harbour 40"]

    play(f'call: survey {{"ship": "Sohar"}}\n{PAY}\n---\ntext: Done.', work)


def test_deciding_twice_is_refused() -> None:
    async def work(agent: dm.Agent) -> None:
        _first, second = (await agent.run("Pay both.")).pending
        await agent.resume({second.id: dm.Allow()})
        with pytest.raises(InputError, match="was decided before"):
            await agent.resume({second.id: dm.Deny("no")})

    play(f"{PAY}\n{PAY_PILOT}\n---\ntext: Done.", work)


def test_a_prompt_or_a_compression_does_not_answer_calls_that_wait() -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Pay.")).pending
        for work in (agent.run("Never mind."), agent.run(), agent.compress()):
            with pytest.raises(InputError, match=r"pay \(.*\) must be decided first"):
                await work
        assert agent.pending == (waiting,)
        assert agent.plan().items
        assert agent.prune() == 0
        assert (await agent.resume({waiting.id: dm.Allow()})).text == "Done."

    play(f"{PAY}\n---\ntext: Done.", work)


def test_resume_goes_on_like_run_where_nothing_waits() -> None:
    async def work(agent: dm.Agent) -> None:
        with pytest.raises(InputError, match="nothing to continue"):
            await agent.resume()

    play("text: Done.", work)


# --- going back, and ending


def test_going_back_takes_the_calls_with_it() -> None:
    async def work(agent: dm.Agent) -> None:
        await agent.run("Hello.")
        seq = agent.history.entries[-1].seq
        [waiting] = (await agent.run("Pay.")).pending
        at_question = agent.history.entries[-1].seq
        agent.rewind(seq)
        assert agent.pending == ()
        with pytest.raises(InputError, match="is over"):
            await agent.resume({waiting.id: dm.Allow()})
        agent.rewind(at_question)
        assert ids(agent.pending) == [waiting.id]
        agent.clear()
        assert agent.pending == ()
        assert (await agent.run("Hello again.")).text == "Done."

    play(f"text: Hello.\n---\n{PAY}\n---\ntext: Done.", work)


def test_a_cancelled_run_answers_what_waits() -> None:
    async def work(agent: dm.Agent) -> None:
        run = agent.run("Go.")
        async for event in run:
            if isinstance(event, dm.events.ToolCallUpdated) and event.state == "awaiting_approval":
                run.cancel()
        assert agent.pending == ()
        assert results_of(agent) == [("pay", CANCELLED, True)]

    async def never(call: dm.ToolCall, intent: dm.Intent) -> Later:
        await asyncio.Event().wait()
        return Later()

    play(f"{PAY}\n---\ntext: Done.", work, ask=never)


def test_calls_that_were_put_off_are_charged_once() -> None:
    async def work(agent: dm.Agent) -> None:
        first, second = (await agent.run("Pay both.")).pending
        assert agent.account is not None
        assert agent.account.spent.tool_calls == 0
        await agent.resume({first.id: dm.Allow(), second.id: dm.Allow()})
        assert agent.account.spent.tool_calls == 2

    play(f"{PAY}\n{PAY_PILOT}\n---\ntext: Done.", work, budget=dm.options.Budget(tool_calls=2))


def test_what_a_call_wrote_before_it_was_put_off_can_be_undone(tmp_path: Path) -> None:
    class Draft:
        spec = dm.ToolSpec.of("draft", "Write a draft.", {"type": "object", "properties": {"changes": {"type": "boolean"}}})

        def intend(self, args: Mapping[str, Any]) -> dm.Intent:
            return dm.Intent("draft", writes=(str(tmp_path / "draft.txt"),))

        async def run(self, args: Mapping[str, Any], show: Show) -> dm.ToolOutput:
            if args["changes"]:
                (tmp_path / "draft.txt").write_text("new")
            raise Later

    async def go(changes: bool) -> None:
        (tmp_path / "draft.txt").write_text("old")
        provider = ScriptedProvider(f'call: draft {{"changes": {str(changes).lower()}}}\n---\ntext: Done.')
        ask = dm.ApprovalOptions(ask=lambda call, intent: dm.Allow())
        options: Any = {"workspace": tmp_path, "approval": ask, "session": tmp_path / f"sessions-{changes}"}
        async with dm.Agent(provider, tools=[Draft()], **options) as agent:
            assert (await agent.run("Go.")).is_pending
            assert [Path(path).name for path in agent.undo()] == (["draft.txt"] if changes else [])
            assert (tmp_path / "draft.txt").read_text() == "old"

    asyncio.run(go(True))
    asyncio.run(go(False))


# --- another process


def test_another_agent_finds_them_on_the_record(tmp_path: Path) -> None:
    session = dm.SessionOptions(tmp_path, key="user-42")

    async def begin(agent: dm.Agent) -> list[str]:
        return ids((await agent.run("Pay.")).pending)

    [waiting] = play(f"{PAY}\n---\ntext: Done.", begin, session=session)

    async def go_on(agent: dm.Agent) -> None:
        [call] = agent.pending
        assert (call.id, call.name, call.intent.title) == (waiting, "pay", 'pay(to="harbour", amount=40)')
        assert (await agent.resume({call.id: dm.Allow()})).text == "Done."

    play("text: Done.", go_on, session=session)
    assert ran == ["pay harbour 40"]


def test_a_call_that_had_begun_is_never_run_again() -> None:
    """Killed between start and end: what was decided and had not begun still runs."""
    journal = MemoryJournal()

    async def begin(agent: dm.Agent) -> None:
        first, second = (await agent.run("Pay both.")).pending
        agent.history.decide_tool(first.id, dm.Allow())
        agent.history.decide_tool(second.id, dm.Allow())
        agent.history.start_tool(first.call)

    play(f"{PAY}\n{PAY_PILOT}\n---\ntext: Done.", begin, session=dm.History(journal))
    entries = list(journal.entries)

    async def go_on(agent: dm.Agent) -> None:
        [second] = agent.pending
        assert second.is_decided
        assert (await agent.resume()).text == "Done."
        assert [text for _, text, _ in results_of(agent)] == [INTERRUPTED, "paid 5 to pilot"]

    play("text: Done.", go_on, session=dm.History(entries=entries))
    assert ran == ["pay pilot 5"]


def test_resume_without_a_loop_of_its_own() -> None:
    with agent_of(f"{PAY}\n---\ntext: Done.") as agent:
        [waiting] = agent.run_sync("Pay.").pending
        assert agent.resume_sync({waiting.id: dm.Allow()}).text == "Done."


def test_a_typed_answer_after_a_decision() -> None:
    async def work(agent: dm.Agent) -> None:
        run = agent.run("Pay.", output=list[int])
        result = await run
        assert result.is_pending
        assert result.output is None
        resumed = await agent.resume({result.pending[0].id: dm.Allow()}, output=list[int])
        assert resumed.output == [1, 2]

    play(f"{PAY}\n---\ntext: " + '{"result": [1, 2]}', work)


@pytest.mark.parametrize(("script", "words"), [(PAY, "waits for a decision"), ('call: survey {"ship": "Sohar"}', "waits for its result")])
def test_a_transcript_says_what_waits(script: str, words: str) -> None:
    async def work(agent: dm.Agent) -> None:
        [waiting] = (await agent.run("Go.")).pending
        assert words in to_markdown(agent.history.entries)
        if waiting.waits_for == "decision":
            await agent.resume({waiting.id: dm.Allow()})
        else:
            await agent.resume(results={waiting.id: "sound"})
        assert words not in to_markdown(agent.history.entries)

    play(f"{script}\n---\ntext: Done.", work)
