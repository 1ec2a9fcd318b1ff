"""Hooks of an agent: what they see, what they change, and that what they change is on the record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.errors import TurnLimit
from dragoman.events import PromptAccepted
from dragoman.hooks import Hooks, RunEnd, Step
from dragoman.record import Configured, Said, ToolStarted
from dragoman.testing import Loopback, ScriptedProvider

CALL = 'call: tides {"harbour": "Muscat"}\n---\ntext: At four.'
PROTOCOLS = ("gemini", "openai", "responses", "anthropic")


def make_tides(asked: list[str], **options: Any) -> Any:
    @dm.tool(**options)
    def tides(harbour: str) -> str:
        """When the tide is high."""
        asked.append(harbour)
        return "04:05" if len(asked) > 1 else "04:05, as the harbour master of Muscat has it, who looked it up in the tables of last year"

    return tides


def texts(message: dm.Message) -> str:
    return message.text + "".join(result.text for result in message.results)


# --- before a request


def test_a_hook_changes_what_is_sent_step_by_step() -> None:
    def currents(strait: str) -> str:
        """How strong the current is."""
        return "2 knots"

    def steer(step: Step) -> None:
        step.system += f" This is step {step.turn} for {step.deps}."
        step.settings = dm.Settings(temperature=0.5)
        step.tools = ["tides"] if step.turn == 1 else [currents]

    provider = ScriptedProvider(CALL)
    with dm.Agent(provider, system="Be brief.", tools=[make_tides([])], deps="Sindbad", hooks=Hooks(before_request=steer)) as agent:
        assert agent.run_sync("When is high water?").text == "At four."
    first, second = provider.requests
    assert [first.system, second.system] == [f"Be brief. This is step {turn} for Sindbad." for turn in (1, 2)]
    assert first.settings.temperature == 0.5
    assert [[tool.name for tool in request.tools] for request in (first, second)] == [["tides"], ["currents"]]


def test_a_tool_that_a_hook_brings_can_be_called_and_is_gone_with_the_next_step() -> None:
    def currents() -> str:
        """How strong the current is."""
        return "2 knots"

    def bring(step: Step) -> None:
        if step.turn == 1:
            step.tools.append(currents)

    provider = ScriptedProvider("call: currents {}\n---\ntext: Two knots.")
    with dm.Agent(provider, hooks=Hooks(before_request=bring)) as agent:
        agent.run_sync("How strong?")
        assert [texts(message) for message in provider.requests[1].messages][-1] == "2 knots"
        assert [len(request.tools) for request in provider.requests] == [1, 0]
        assert agent.tools.names == ()


def test_what_a_hook_says_and_prunes_is_on_the_record_and_resumes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async def trim(step: Step) -> None:
            await asyncio.sleep(0)
            if step.turn == 3:
                step.prune(*[result.call_id for message in step.messages for result in message.results][:1])
                step.say("Only the last reading counts.")

        script = 'call: tides {"harbour": "Muscat"}\n---\ncall: tides {"harbour": "Sur"}\n---\ntext: At four.'
        provider = ScriptedProvider(script)
        options: dict[str, Any] = {"tools": [make_tides([])], "session": dm.SessionOptions(tmp_path, key="voyage")}
        async with dm.Agent(provider, hooks=Hooks(before_request=trim), **options) as agent:
            await agent.run("When is high water?")
            sent, told = (
                agent.history.request,
                [entry for entry in agent.history.entries if isinstance(entry, Said) and entry.about == "hook"],
            )
        assert [entry.message.text for entry in told] == ["Only the last reading counts."]
        results = [texts(message) for message in provider.requests[2].messages if message.results]
        assert "04:05" not in results[0]
        assert "04:05" in results[1]
        async with dm.Agent(ScriptedProvider("text: no"), **options) as again:
            assert again.history.request.messages == sent.messages

    asyncio.run(scenario())


def test_a_hook_that_changes_nothing_new_leaves_no_entry_and_the_prefix_holds() -> None:
    async def scenario() -> None:
        def steer(step: Step) -> None:
            step.system = "Talk like a sailor."

        provider = ScriptedProvider(f"{CALL}\n---\ntext: Aye.\n---\ntext: Aye again.")
        async with dm.Agent(provider, tools=[make_tides([])], hooks=Hooks(before_request=steer)) as agent:
            for prompt in ("When?", "Sure?", "Really?"):
                await agent.run(prompt)
            configured = [entry for entry in agent.history.entries if isinstance(entry, Configured)]
        assert [entry.system for entry in configured] == ["", "Talk like a sailor."], "the first is written before anything is asked"
        for before, after in zip(provider.requests, provider.requests[1:], strict=False):
            assert after.messages[: len(before.messages)] == before.messages
            assert (after.system, after.tools) == (before.system, before.tools)

    asyncio.run(scenario())


def test_a_context_policy_of_ones_own() -> None:
    async def scenario() -> None:
        def keep_the_last(step: Step) -> None:
            step.messages = step.messages[-1:]

        provider = ScriptedProvider("text: One.\n---\ntext: Two.\n---\ntext: Three.")
        async with dm.Agent(provider, hooks=Hooks(before_request=keep_the_last)) as agent:
            for prompt in ("First?", "Second?", "Third?"):
                await agent.run(prompt)
            assert [message.text for message in provider.requests[-1].messages] == ["Third?"]
            assert "First?" in [message.text for message in agent.history.transcript()], "the record keeps it"

    asyncio.run(scenario())


@pytest.mark.parametrize("change", ["tool", "call"])
def test_what_is_not_there_ends_the_run_with_words(change: str) -> None:
    async def scenario() -> None:
        def err(step: Step) -> None:
            if change == "tool":
                step.tools.append("no_such_tool")
            else:
                step.prune("no-such-call")

        async with dm.Agent(ScriptedProvider("text: Aye."), hooks=Hooks(before_request=err)) as agent:
            with pytest.raises(dm.InputError, match=r"no_such_tool|no-such-call"):
                await agent.run("Ready?")
            assert agent.history.request.messages[-1].text == "Ready?", "the prompt is kept"

    asyncio.run(scenario())


@pytest.mark.parametrize("model", PROTOCOLS)
def test_hooks_work_with_every_protocol(model: str) -> None:
    async def scenario() -> None:
        def steer(step: Step) -> None:
            step.system = f"Step {step.turn}."
            if step.turn == 2:
                step.say("Say it in one word.")

        asked: list[str] = []
        hooks = [Hooks(before_request=steer), Hooks(before_call=lambda call: dm.Allow('{"harbour": "Sur"}'))]
        with Loopback(CALL) as service:
            async with dm.Agent(service.connect(model), tools=[make_tides(asked)], hooks=hooks) as agent:
                assert (await agent.run("When is high water?")).text == "At four."
            bodies = [str(request.body) for request in service.requests]
        assert asked == ["Sur"]
        assert "Step 1." in bodies[0]
        assert "Step 2." in bodies[1]
        assert "Say it in one word." in bodies[1]
        assert "were changed before it ran" in bodies[1]

    asyncio.run(scenario())


# --- after an answer


def test_words_after_an_answer_have_the_model_go_on() -> None:
    async def scenario() -> None:
        seen: list[str] = []

        async def insist(response: dm.Response) -> str | None:
            seen.append(response.message.text)
            return "Name the hour as well." if len(seen) == 1 else None

        provider = ScriptedProvider("text: In the morning.\n---\ntext: At four.")
        async with dm.Agent(provider, hooks=Hooks(after_response=insist)) as agent:
            result = await agent.run("When?")
        assert (result.text, seen) == ("At four.", ["In the morning.", "At four."])
        assert provider.requests[1].messages[-1].text == "Name the hour as well."

    asyncio.run(scenario())


def test_a_hook_that_never_has_enough_ends_with_the_limit_of_turns() -> None:
    async def scenario() -> None:
        provider, hooks = ScriptedProvider("\n---\n".join(["text: Aye."] * 4)), Hooks(after_response=lambda _: "More.")
        async with dm.Agent(provider, hooks=hooks, limits=dm.Limits(max_turns=3)) as agent:
            with pytest.raises(TurnLimit):
                await agent.run("Ready?")

    asyncio.run(scenario())


# --- calls


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_is_refused_changed_or_left_alone(is_async: bool) -> None:
    async def scenario() -> None:
        answers: dict[str, dm.Allow | dm.Deny | None] = {
            "Muscat": dm.Deny("the harbour is closed"),
            "Sur": dm.Allow('{"harbour": "Aden"}'),
            "Suez": None,
        }

        def judge(call: dm.ToolCall) -> dm.Allow | dm.Deny | None:
            return next(answer for name, answer in answers.items() if name in call.arguments)

        async def judge_later(call: dm.ToolCall) -> dm.Allow | dm.Deny | None:
            await asyncio.sleep(0)
            return judge(call)

        asked: list[str] = []
        calls = "\n".join(f'call: tides {{"harbour": "{name}"}}' for name in answers)
        provider = ScriptedProvider(f"{calls}\n---\ntext: Done.")
        hooks = Hooks(before_call=judge_later if is_async else judge)
        async with dm.Agent(provider, tools=[make_tides(asked)], hooks=hooks) as agent:
            await agent.run("When?")
            started = [entry.arguments for entry in agent.history.entries if isinstance(entry, ToolStarted)]
        told = [texts(message) for message in provider.requests[1].messages if message.results]
        assert asked == ["Aden", "Suez"]
        assert "the harbour is closed" in "".join(told)
        assert started == ['{"harbour": "Aden"}', ""], "what was run instead is on the record"

    asyncio.run(scenario())


@pytest.mark.parametrize(("mode", "runs"), [("default", True), ("plan", False)])
def test_what_a_hook_allows_is_not_asked_about_but_rules_still_forbid(mode: Any, runs: bool) -> None:
    async def scenario() -> None:
        def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow | dm.Deny:
            raise AssertionError("nobody is asked")

        asked: list[str] = []
        tools, approval = [make_tides(asked, kind="execute")], dm.ApprovalOptions(mode, ask)
        async with dm.Agent(ScriptedProvider(CALL), tools=tools, approval=approval, hooks=Hooks(before_call=lambda _: dm.Allow())) as agent:
            await agent.run("When?")
        assert bool(asked) is runs

    asyncio.run(scenario())


def test_a_hook_that_fails_refuses_the_call() -> None:
    async def scenario() -> None:
        def fail(call: dm.ToolCall) -> dm.Allow:
            raise LookupError("no chart")

        asked: list[str] = []
        provider = ScriptedProvider(CALL)
        async with dm.Agent(provider, tools=[make_tides(asked)], hooks=Hooks(before_call=fail)) as agent:
            await agent.run("When?")
        assert asked == []
        assert provider.requests[1].messages[-1].results[0].is_error

    asyncio.run(scenario())


def test_hooks_stand_around_a_call_the_first_outermost() -> None:
    async def scenario() -> None:
        order: list[str] = []

        def around(name: str) -> Callable[[dm.ToolCall, Callable[[], Awaitable[dm.ToolOutput]]], Awaitable[dm.ToolOutput]]:
            async def hook(call: dm.ToolCall, go: Callable[[], Awaitable[dm.ToolOutput]]) -> dm.ToolOutput:
                order.append(f"{name} before {call.name}")
                output = await go()
                order.append(f"{name} after")
                return dm.ToolOutput((*output.content, dm.Text(f" ({name})")))

            return hook

        provider = ScriptedProvider(CALL)
        hooks = [Hooks(around_call=around("outer")), Hooks(around_call=around("inner"))]
        async with dm.Agent(provider, tools=[make_tides([])], hooks=hooks) as agent:
            await agent.run("When?")
        assert order == ["outer before tides", "inner before tides", "inner after", "outer after"]
        assert texts(provider.requests[1].messages[-1]).endswith("last year (inner) (outer)")

    asyncio.run(scenario())


def test_a_call_may_be_answered_without_being_run() -> None:
    async def scenario() -> None:
        async def stored(call: dm.ToolCall, go: Any) -> dm.ToolOutput:
            return dm.ToolOutput((dm.Text("from the log book"),))

        asked: list[str] = []
        provider = ScriptedProvider(CALL)
        async with dm.Agent(provider, tools=[make_tides(asked)], hooks=Hooks(around_call=stored)) as agent:
            await agent.run("When?")
        assert asked == []
        assert texts(provider.requests[1].messages[-1]) == "from the log book"

    asyncio.run(scenario())


# --- events and the end


def test_events_are_told_in_order_and_the_end_comes_last() -> None:
    async def scenario() -> None:
        seen: list[Any] = []

        async def note(event: Any) -> None:
            await asyncio.sleep(0)
            seen.append(event)

        async with dm.Agent(ScriptedProvider(CALL), tools=[make_tides([])], hooks=Hooks(on_event=note, on_run_end=seen.append)) as agent:
            run = agent.run("When?")
            told = [event async for event in run]
            result = await run
        assert seen[:-1] == told
        assert isinstance(told[0], PromptAccepted)
        end = seen[-1]
        assert isinstance(end, RunEnd)
        assert (end.result.text, end.error) == (result.text, None)

    asyncio.run(scenario())


def test_a_failed_run_has_an_end_too() -> None:
    async def scenario() -> None:
        ends: list[RunEnd] = []
        async with dm.Agent(ScriptedProvider('error: 400 "No"'), hooks=Hooks(on_run_end=ends.append)) as agent:
            with pytest.raises(dm.ProviderError):
                await agent.run("When?")
        assert isinstance(ends[0].error, dm.ProviderError)
        assert ends[0].result.error_type

    asyncio.run(scenario())


def test_a_listener_that_fails_is_reported_and_the_run_goes_on() -> None:
    async def scenario() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))

        def fail(event: Any) -> None:
            raise LookupError("no pen")

        async with dm.Agent(ScriptedProvider("text: Aye."), hooks=Hooks(on_event=fail, on_run_end=fail)) as agent:
            assert (await agent.run("Ready?")).text == "Aye."
        assert reported
        assert all(isinstance(each["exception"], LookupError) for each in reported)

    asyncio.run(scenario())


def test_a_cancelled_run_ends_though_a_listener_hangs() -> None:
    async def scenario() -> None:
        async def hang(event: Any) -> None:
            await asyncio.sleep(300)

        async with dm.Agent(ScriptedProvider("text: Aye."), hooks=Hooks(on_event=hang)) as agent:
            run = agent.run("Ready?")
            waiting = asyncio.ensure_future(run)
            await asyncio.sleep(0.05)
            run.cancel()
            done, _ = await asyncio.wait([waiting], timeout=60)
            assert done, "it hangs"

    asyncio.run(scenario())


def test_something_else_than_hooks_is_refused() -> None:
    with pytest.raises(dm.InputError, match="hooks"):
        dm.Agent(ScriptedProvider("text: Aye."), hooks=[print])  # type: ignore[list-item]
