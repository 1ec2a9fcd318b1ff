"""What is done about the context before each request: pruned, summed up, shrunk, counted, or told that it does not fit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.context.settings import CompressSettings, ContextSettings
from dragoman.context.view import PLACEHOLDER
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.room import SHRINK_TO
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.script_steps import CutStep, Fail, Finish, ReportStep, ScriptedAnswer, Stall, answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import Cancelled, ContextOverflow, InputError, ServerError, Unsupported
from dragoman.values.events import CompressionStarted, ContextCompressed, ContextOverflowed, Retrying, TurnEvent, UserCancelled
from dragoman.values.messages import FinishReason, Message, Request, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.profile import Profile
from dragoman.values.record import Compressed, NotCompressed, Pruned, encode_entry
from dragoman.values.usage import Prices, Usage
from scenarios.workshop import PlainTool, agent_for, check_record, events_of, no_wait, play, said

SNAPSHOT = "<snapshot>\n<goal>fix the tests</goal>\n<open>step 7</open>\n</snapshot>"
RULE = "Never touch main.py, whatever happens."
WINDOW = 10_000
HOUR_MS = 3_600_000


def is_summary(request: Request) -> bool:
    return "===== transcript" in request.messages[0].text


def model(
    summary: ScriptedAnswer | Callable[[Request], ScriptedAnswer],
    reply: ScriptedAnswer | str = "Done.",
    *,
    window: int = WINDOW,
    **profile: Any,
) -> ScriptedProvider:
    """A model that gives one answer to a question for a summary, another to anything else."""

    def choose(request: Request) -> ScriptedAnswer:
        if is_summary(request):
            return summary(request) if callable(summary) else summary
        return answer(reply) if isinstance(reply, str) else reply

    return ScriptedProvider(choose, profile=Profile(context_window=window, **profile))


def session(rounds: int = 30, chars: int = 1_000, *, prompts: int = 5, tool: str = "look") -> History:
    """A history of some rounds. Its tokens: about 300 to a round."""
    history = History()
    history.configure("scripted", "Be brief.", deployment="scripted")
    for number in range(rounds):
        if number % max(rounds // prompts, 1) == 0:
            history.say(user(RULE if number == 0 else f"Now do part {number}."))
        call = ToolCall(f"c{number}", tool, f'{{"what": "{number}"}}')
        history.answer(Response(Message("assistant", (Text(f"Step {number}."), call)), FinishReason.TOOL_CALLS))
        history.finish_tool(ToolResult(call.id, tool, (Text(f"[{number}] " + "o" * chars),)))
    history.answer(Response(assistant("So far so good."), FinishReason.STOP))
    return history


def agent_of(provider: Any, history: History | None = None, context: ContextSettings | None = None, **options: Any) -> Agent:
    return agent_for(provider, PlainTool(), history=history or session(), context=context, **options)


def of(events: list[TurnEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def entries(agent: Agent, *kinds: type[Any]) -> list[Any]:
    return [entry for entry in agent.history.entries if isinstance(entry, kinds)]


def summaries_asked(provider: ScriptedProvider) -> int:
    return sum(map(is_summary, provider.requests))


# --- a summary is made -----------------------------------------------------------------------------------------------------------------


def test_old_messages_give_way_to_a_summary_and_the_conversation_goes_on() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT, ReportStep(Usage(500, output_tokens=40))))
        agent = agent_of(provider)
        run = agent.run("Go on.")
        events = await events_of(run)
        [told] = of(events, ContextCompressed)
        [entry] = entries(agent, Compressed)
        assert told == ContextCompressed("compressed", entry.original_tokens, entry.new_tokens, WINDOW)
        assert entry.window == WINDOW, "forced by this window, it holds for no larger one"
        assert entry.original_tokens > 0.7 * WINDOW
        assert entry.new_tokens < 0.5 * WINDOW
        assert (entry.model, entry.usage) == ("scripted", Usage(500, output_tokens=40))
        sent = provider.requests[-1]
        assert "<goal>fix the tests</goal>" in sent.messages[0].text
        assert RULE in sent.messages[0].text
        assert sent.messages[-1] == user("Go on.")
        assert [message.text for message in sent.messages].count("Go on.") == 1
        assert run.result.text == "Done."
        assert run.result.requests == 2 == len(provider.requests)
        assert run.result.usage.fresh_tokens > 500
        assert run.result.turns == 1
        check_record(agent.history)

    play(go)


def test_the_record_keeps_everything_and_what_was_before_is_untouched() -> None:
    async def go() -> None:
        history = session()
        before = [encode_entry(entry) for entry in history.entries]
        agent = agent_of(model(answer(SNAPSHOT)), history)
        transcript = history.transcript()
        await agent.run("Go on.")
        assert [encode_entry(entry) for entry in history.entries[: len(before)]] == before
        assert history.transcript()[: len(transcript)] == transcript

    play(go)


def test_it_is_not_summed_up_again_before_it_has_grown() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT))
        agent = agent_of(provider)
        for _ in range(5):
            await agent.run("Go on.")
        assert summaries_asked(provider) == 1

    play(go)


def test_between_tool_rounds_too() -> None:
    """A run whose own results fill the window: the prompt it works on stays, word for word."""

    async def go() -> None:
        async def much(args: Any, show: Any) -> str:
            return "o" * 6_000

        rounds = iter(range(20))

        def reply(request: Request) -> ScriptedAnswer:
            if is_summary(request):
                return answer(SNAPSHOT)
            number = next(rounds)
            text = f'call id=x{number}: look {{"what": "{number}"}}' if number < 12 else "text: All done."
            return ScriptedProvider(text).playback.next(request)

        provider = ScriptedProvider(reply, profile=Profile(context_window=WINDOW))
        agent = agent_for(provider, PlainTool(act=much))
        prompt = f"Look at twelve things. {RULE}"
        run = agent.run(prompt)
        result = await run
        assert result.text == "All done."
        assert result.tool_calls == 12
        assert summaries_asked(provider) >= 1
        for request in provider.requests:
            assert prompt in "\n".join(message.text for message in request.messages)
        assert result.requests == len(provider.requests) == 13 + summaries_asked(provider)
        check_record(agent.history)

    play(go)


def test_a_second_summary_merges_the_first_and_keeps_every_prompt() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT))
        agent = agent_of(provider)
        await agent.run("Also: use tabs.")
        for number in range(40):
            agent.history.say(user(f"Next {number}."))
            agent.history.answer(Response(assistant("w" * 800), FinishReason.STOP))
        await agent.run("And now?")
        asked = [request.messages[0].text for request in provider.requests if is_summary(request)]
        assert len(asked) == 2
        assert "EARLIER SNAPSHOT" not in asked[0]
        assert asked[1].count("EARLIER SNAPSHOT") == 1
        now = provider.requests[-1].messages[0].text
        for words in (RULE, "Now do part 6.", "Also: use tabs.", "Next 0."):
            assert f"<said>\n{words}\n</said>" in now
        assert now.count("<snapshot>") == 1, "no summary within a summary"
        check_record(agent.history)

    play(go)


# --- and when it is of no use ----------------------------------------------------------------------------------------------------------

USELESS: dict[str, tuple[ScriptedAnswer, str]] = {
    "longer than what it stands for": (answer("<snapshot>" + "w" * 60_000 + "</snapshot>"), "inflated"),
    "no snapshot": (answer("I would rather not."), "empty"),
    "nothing": (answer(Finish()), "empty"),
    "cut at the limit": (answer("<snapshot><goal>half", Finish("length")), "truncated"),
    "an error": (answer(Fail(500)), "failed"),
    "a cut": (answer("<snapshot>half", CutStep()), "failed"),
    "refused": (answer("<snapshot><goal>x</goal></snapshot>", Finish("refusal")), "failed"),
    "too long itself": (answer(Fail(400, "prompt is too long")), "failed"),
}


@pytest.mark.parametrize(("summary", "status"), USELESS.values(), ids=USELESS.keys())
def test_a_summary_that_is_of_no_use_is_not_used_and_results_go_instead(summary: ScriptedAnswer, status: str) -> None:
    async def go() -> None:
        provider = model(summary)
        agent = agent_of(provider)
        run = agent.run("Go on.")
        events = await events_of(run)
        [entry] = entries(agent, NotCompressed)
        assert entry.status == status
        assert entry.reason
        assert not entries(agent, Compressed)
        [told] = of(events, ContextCompressed)
        assert told.status == status
        assert (told.new_tokens > told.original_tokens) == (status == "inflated")
        [pruned] = entries(agent, Pruned)
        assert agent._harness.upkeep.size.tokens <= 0.7 * WINDOW, "below the threshold"
        assert agent._harness.upkeep.size.tokens > 0.7 * WINDOW * SHRINK_TO - 400, "and no more than needed"
        assert list(pruned.call_ids) == [f"c{number}" for number in range(len(pruned.call_ids))], "the oldest first"
        sent = provider.requests[-1]
        assert sent.messages[2].results[0].content == (Text(PLACEHOLDER),)
        assert run.result.text == "Done."
        assert summaries_asked(provider) == 1
        check_record(agent.history)
        await agent.run("And on.")
        assert summaries_asked(provider) == 1, "not tried again before it has grown"

    play(go)


def test_what_a_useless_summary_took_is_on_the_bill() -> None:
    async def go() -> None:
        provider = model(answer("No, thanks.", ReportStep(Usage(700, output_tokens=3))), prices=Prices(1.0, 2.0))
        agent = agent_of(provider)
        run = agent.run("Go on.")
        result = await run
        [entry] = entries(agent, NotCompressed)
        assert (entry.model, entry.usage) == ("scripted", Usage(700, output_tokens=3))
        assert result.usage.fresh_tokens > 700
        assert result.cost_usd is not None
        assert result.cost_usd > 700 / 1e6
        assert result.requests == 2

    play(go)


def test_a_summary_is_tried_again_where_the_service_stumbles_and_the_user_is_told() -> None:
    async def go() -> None:
        tries = iter([answer(Fail(500)), answer(Fail(503)), answer(SNAPSHOT)])
        provider = model(lambda request: next(tries))
        agent = agent_of(Retry(provider, RetryPolicy(sleep=no_wait)))
        run = agent.run("Go on.")
        events = await events_of(run)
        assert len(of(events, Retrying)) == 2
        assert [event.status for event in of(events, ContextCompressed)] == ["compressed"]
        assert run.result.requests == 4 == len(provider.requests)

    play(go)


def long_talk() -> History:
    """Nothing in it can be pruned."""
    history = History()
    history.configure("scripted", "", deployment="scripted", window=WINDOW)
    for number in range(20):
        history.say(user(f"part {number} " + "p" * 3_000))
        history.answer(Response(assistant(f"answer {number} " + "a" * 3_000), FinishReason.STOP))
    return history


def test_a_model_that_always_writes_too_much_is_asked_once_and_an_extract_stands_in_for_the_summary() -> None:
    async def go() -> None:
        provider = model(answer("<snapshot>" + "w" * 200_000 + "</snapshot>"))
        agent = agent_of(provider, long_talk())
        run = agent.run("Go on.")
        events = await events_of(run)
        assert run.result.text == "Done."
        assert summaries_asked(provider) == 1
        assert [event.status for event in of(events, ContextCompressed)] == ["inflated", "extracted"]
        assert "tokens" in of(events, ContextCompressed)[0].reason, "why, in words"
        [entry] = entries(agent, Compressed)
        assert (entry.model, entry.usage, entry.window) == ("", None, WINDOW)
        sent = provider.requests[-1].messages[0].text
        assert "No model wrote it" in sent
        assert "- The model said: answer 1" in sent
        assert "<said>\npart 0 " in sent, "the person's first words stay"
        assert entry.new_tokens <= 0.7 * WINDOW
        check_record(agent.history)

    play(go)


def test_where_not_even_an_extract_fits_it_ends_in_one_clear_message() -> None:
    """The last result alone is too long: nothing is asked for, nothing is sent."""

    async def go() -> None:
        history = long_talk()
        history.say(user("Look."))
        call = ToolCall("big", "look", '{"what": "all"}')
        history.answer(Response(Message("assistant", (call,)), FinishReason.TOOL_CALLS))
        history.finish_tool(ToolResult(call.id, "look", (Text("o" * 60_000),)))
        provider = model(answer("<snapshot>" + "w" * 200_000 + "</snapshot>"))
        agent = agent_of(provider, history)
        run = agent.run()
        events = await events_of(run)
        assert len(of(events, ContextOverflowed)) == 1
        assert provider.requests == []
        assert run.result.error_type == "ContextOverflow"
        assert run.result.exit_code == 57
        for words in ("10,000", "new session", "larger context window"):
            assert words in run.result.error
        with pytest.raises(ContextOverflow):
            await run
        check_record(agent.history)

    play(go)


# --- a window that is smaller ----------------------------------------------------------------------------------------------------------


def test_a_model_with_a_smaller_window_takes_the_conversation_over() -> None:
    async def go() -> None:
        large, small = model(answer(SNAPSHOT), window=100_000), model(answer(SNAPSHOT), window=4_000)
        agent = agent_of(large)
        await agent.run("Go on.")
        assert summaries_asked(large) == 0
        agent.change_model(small)
        result = await agent.run("And with you?")
        assert result.text == "Done."
        assert summaries_asked(small) == 1
        question, sent = small.requests
        assert small.tokens(question) < 4_000, "what it is asked for fits its own window"
        assert small.tokens(sent) < 4_000
        check_record(agent.history)

    play(go)


def test_an_imported_session_far_over_the_window_is_brought_within() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT))
        agent = agent_of(provider, session(70, 3_000))
        await agent.run("Go on.")
        assert all(provider.tokens(request) < WINDOW for request in provider.requests)
        assert f"<said>\n{RULE}\n</said>" in provider.requests[-1].messages[0].text

    play(go)


def test_where_no_summary_is_to_be_had_results_go_as_far_as_needed() -> None:
    async def go() -> None:
        provider = model(answer(Fail(500)))
        agent = agent_of(provider, session(100, 3_000))
        await agent.run("Go on.")
        assert provider.tokens(provider.requests[-1]) < WINDOW
        assert len(provider.requests) == 2

    play(go)


def test_the_last_results_stay_even_so() -> None:
    async def go() -> None:
        history = session(4, 15_000)
        provider = model(answer(Fail(500)))
        agent = agent_of(provider, history)
        await agent.run("Go on.")
        assert "c3" not in agent.history.view.pruned
        assert agent.history.view.pruned == {"c0", "c1", "c2"}

    play(go)


def test_a_window_that_is_only_guessed_is_not_taken_for_a_limit() -> None:
    """A model the catalog does not know may well take more: then the service says so, and not we."""

    async def go() -> None:
        history = History()
        history.say(user("p" * 100_000))
        provider = model(answer(SNAPSHOT), known=False)
        assert (await agent_of(provider, history).run("Go on.")).text == "Done."
        history = History()
        history.say(user("p" * 100_000))
        provider = model(answer(SNAPSHOT), known=True)
        with pytest.raises(ContextOverflow):
            await agent_of(provider, history).run("Go on.")
        assert provider.requests == []

    play(go)


# --- the service counts ----------------------------------------------------------------------------------------------------------------


class Counting(ScriptedProvider):
    """Counts as it is told to, or fails."""

    def __init__(self, count: Callable[[Request], int], window: int = WINDOW) -> None:
        super().__init__(lambda request: answer(SNAPSHOT if is_summary(request) else "Done."), profile=Profile(context_window=window))
        self._count = count
        self.counted = 0

    async def count_tokens(self, request: Request) -> int:
        self.counted += 1
        return self._count(request)


def test_far_from_the_window_nothing_is_counted() -> None:
    async def go() -> None:
        provider = Counting(lambda request: 1, window=1_000_000)
        await agent_of(provider).run("Go on.")
        assert provider.counted == 0

    play(go)


def test_near_the_window_the_service_is_asked_and_believed() -> None:
    """The estimate of what no model has counted yet may be far off, either way."""

    async def go() -> None:
        off = ContextSettings(compress=CompressSettings(enabled=False))
        provider = Counting(lambda request: 500)
        assert (await agent_of(provider, session(60), off).run("Go on.")).text == "Done."
        assert provider.counted == 1
        provider = Counting(lambda request: WINDOW + 1)
        with pytest.raises(ContextOverflow, match="10,001 tokens"):
            await agent_of(provider, session(25), off).run("Go on.")
        assert provider.requests == []

    play(go)


def test_a_count_over_the_window_makes_room_although_the_estimate_saw_no_need() -> None:
    async def go() -> None:
        provider = Counting(
            lambda request: (
                2 * sum(len(part.text) for m in request.messages for part in m.parts if isinstance(part, Text))
                + (WINDOW if len(request.messages) > 40 else 0)
            )
        )
        agent = agent_of(provider, session(22))
        assert agent._harness.upkeep.size.tokens < 0.7 * WINDOW
        await agent.run("Go on.")
        assert len(entries(agent, Compressed)) == 1

    play(go)


def test_what_an_answer_reports_goes_before_an_older_count() -> None:
    async def go() -> None:
        provider = Counting(lambda request: 9_900)
        provider.playback = ScriptedProvider("usage: fresh=2000\ntext: Done.").playback
        agent = agent_of(provider, session(22))
        await agent.run("Go on.")
        assert provider.counted == 1
        assert 2_000 <= agent._harness.upkeep.size.tokens < 2_100

    play(go)


@pytest.mark.parametrize("fault", [Unsupported("it does not count"), ServerError("broken")])
def test_where_it_cannot_count_the_estimate_holds(fault: Exception) -> None:
    async def go() -> None:
        def fail(request: Request) -> int:
            raise fault

        off = ContextSettings(compress=CompressSettings(enabled=False))
        assert (await agent_of(Counting(fail), session(28), off).run("Go on.")).text == "Done."
        with pytest.raises(ContextOverflow):
            await agent_of(Counting(fail), session(60), off).run("Go on.")

    play(go)


# --- the service finds it too long -----------------------------------------------------------------------------------------------------


class Narrow(ScriptedProvider):
    """Takes less than its profile says."""

    def __init__(self, most: int, summary: ScriptedAnswer = answer(SNAPSHOT)) -> None:  # noqa: B008  a frozen value
        def choose(request: Request) -> ScriptedAnswer:
            if self.tokens(request) > most:
                return answer(Fail(400, f"prompt is too long: more than {most} tokens"))
            return summary if is_summary(request) else answer("Done.")

        super().__init__(choose, profile=Profile(context_window=100_000))


def test_a_request_the_service_finds_too_long_is_made_shorter_and_sent_again() -> None:
    async def go() -> None:
        provider = Narrow(8_000)
        agent = agent_of(provider)
        run = agent.run("Go on.")
        result = await run
        assert result.text == "Done."
        assert len(entries(agent, Compressed)) == 1
        assert [is_summary(request) for request in provider.requests] == [False, True, False]
        assert result.requests == 3
        assert said(agent.history, "Go on.") == 1
        check_record(agent.history)

    play(go)


def test_without_a_summary_results_go_and_it_is_sent_again() -> None:
    async def go() -> None:
        provider = Narrow(8_000, answer(Fail(500)))
        agent = agent_of(provider)
        assert (await agent.run("Go on.")).text == "Done."
        assert len(entries(agent, Pruned)) == 1

    play(go)


def test_a_second_refusal_in_a_row_is_told() -> None:
    async def go() -> None:
        provider = Narrow(50)
        agent = agent_of(provider)
        run = agent.run("Go on.")
        with pytest.raises(ContextOverflow, match="prompt is too long"):
            await run
        turns = [request for request in provider.requests if not is_summary(request)]
        assert len(turns) == 2
        assert summaries_asked(provider) == 1
        check_record(agent.history)

    play(go)


def test_where_nothing_can_be_left_out_it_is_told_at_once() -> None:
    async def go() -> None:
        provider = Narrow(5)
        agent = agent_of(provider, History())
        with pytest.raises(ContextOverflow):
            await agent.run("hi")
        assert len(provider.requests) == 1

    play(go)


# --- switched off ----------------------------------------------------------------------------------------------------------------------


def test_switched_off_nothing_is_summed_up_and_nothing_shrunk() -> None:
    async def go() -> None:
        off = ContextSettings(compress=CompressSettings(enabled=False))
        provider = model(answer(SNAPSHOT))
        agent = agent_of(provider, session(27), off)
        await agent.run("Go on.")
        assert not entries(agent, Compressed, NotCompressed, Pruned)
        with pytest.raises(ContextOverflow):
            await agent_of(Narrow(100), session(), off).run("Go on.")

    play(go)


# --- by hand ---------------------------------------------------------------------------------------------------------------------------


def test_by_hand_however_short_it_is() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT), window=1_000_000)
        agent = agent_of(provider)
        done = await agent.compress("the database schema")
        assert done.status == "compressed"
        assert 0 < done.new_tokens < done.original_tokens
        assert done.new_tokens == agent._harness.upkeep.size.tokens
        assert "the database schema" in provider.requests[0].messages[0].text
        check_record(agent.history)

    play(go)


def test_by_hand_it_says_what_came_of_it() -> None:
    async def go() -> None:
        assert (await agent_of(model(answer(SNAPSHOT)), History()).compress()).status == "noop"
        assert (await agent_of(model(answer("no")), window_of(1_000_000)).compress()).status == "empty"
        done = await agent_of(model(answer(Fail(500)), window=1_000_000)).compress()
        assert (done.status, done.original_tokens) == ("failed", done.new_tokens)
        assert "500" in done.reason

    def window_of(_: int) -> History:
        return session(10)

    play(go)


def test_below_the_threshold_a_failure_by_hand_leaves_everything_as_it_was() -> None:
    async def go() -> None:
        agent = agent_of(model(answer("no")), session(22))
        assert 0.6 * WINDOW < agent._harness.upkeep.size.tokens < 0.7 * WINDOW
        before = agent.history.request
        assert (await agent.compress()).status == "empty"
        assert agent.history.request.messages == before.messages

    play(go)


def test_too_little_to_gain_costs_no_call_unless_a_person_asks() -> None:
    async def go() -> None:
        history = History()
        history.configure("scripted", "s" * 20_000, deployment="scripted")
        history.say(user("a"))
        history.answer(Response(assistant("b"), FinishReason.STOP))
        history.say(user("c"))
        history.answer(Response(assistant("d"), FinishReason.STOP))
        provider = model(answer(SNAPSHOT), window=5_100)
        agent = agent_for(provider, history=history, system="s" * 20_000)
        assert (await agent.compress(force=False)).status == "noop"
        assert provider.requests == []

    play(go)


def test_not_forced_it_waits_for_the_threshold() -> None:
    async def go() -> None:
        agent = agent_of(model(answer(SNAPSHOT), window=1_000_000))
        assert (await agent._harness.upkeep.compress(force=False)).status == "noop"
        agent = agent_of(model(answer(SNAPSHOT)))
        assert (await agent._harness.upkeep.compress(force=False)).status == "compressed"

    play(go)


def test_for_code_that_is_not_async() -> None:
    agent = agent_of(model(answer(SNAPSHOT)))
    try:
        assert agent.compress_sync().status == "compressed"
        assert agent.run_sync("Go on.").text == "Done."
    finally:
        agent.close()


def test_one_thing_at_a_time() -> None:
    async def go() -> None:
        agent = agent_of(model(answer(Stall())))
        compressing = asyncio.create_task(agent.compress())
        await asyncio.sleep(0)
        with pytest.raises(InputError, match="already running"):
            await agent.run("Go on.")
        with pytest.raises(InputError, match="already running"):
            agent.prune()
        compressing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await compressing
        assert agent.prune() == 0, "and afterwards it is free again"

    play(go)


def test_calls_left_open_are_closed_before_it_is_summed_up() -> None:
    async def go() -> None:
        history = session(20)
        history.say(user("One more."))
        history.answer(Response(assistant(ToolCall("open", "look")), FinishReason.TOOL_CALLS))
        agent = agent_of(model(answer(SNAPSHOT)), history)
        assert (await agent.compress()).status == "compressed"
        check_record(agent.history)

    play(go)


# --- cancelled -------------------------------------------------------------------------------------------------------------------------


def test_cancelled_while_it_is_summed_up_nothing_is_applied() -> None:
    async def go() -> None:
        provider = model(answer("<snapshot><goal>half", Stall()))
        agent = agent_of(provider)
        run = agent.run("Go on.")
        watching = asyncio.create_task(events_of(run))
        while not provider.requests:  # noqa: ASYNC110  it tells nobody when it is asked
            await asyncio.sleep(0)
        run.cancel()
        events = await watching
        assert isinstance(events[-1], UserCancelled)
        assert not of(events, ContextCompressed)
        assert not entries(agent, Compressed, NotCompressed, Pruned)
        with pytest.raises(Cancelled):
            await run
        check_record(agent.history)
        provider.playback = model(answer(SNAPSHOT)).playback
        assert (await agent.run("Go on.")).text == "Done."
        assert said(agent.history, "Go on.") == 1
        assert len(entries(agent, Compressed)) == 1

    play(go)


# --- small things ----------------------------------------------------------------------------------------------------------------------


def test_the_cache_of_a_service_is_found_through_whatever_is_around_it() -> None:
    from destinations import connection
    from dragoman.providers.logged import Logged

    assert Model.of(connection("anthropic")).cache_kind == "breakpoints"
    assert Model.of(Logged(connection("anthropic"))).cache_kind == "breakpoints"
    assert Model.of(ScriptedProvider("text: a")).cache_kind == "none"


def test_a_first_request_loads_nothing_for_it() -> None:
    async def go() -> None:
        agent = agent_for(ScriptedProvider("text: a\n---\ntext: b"))
        await agent.run("hi")
        assert agent._harness._upkeep is None
        await agent.run("again")
        assert agent._harness._upkeep is not None

    play(go)


# --- too long for a smaller model ------------------------------------------------------------------------------------------------------


def talk(history: History, prompts: int, chars: int = 4_000) -> History:
    for number in range(prompts):
        history.say(user(f"Remember {number}: " + "p" * chars))
        history.answer(Response(assistant("a" * chars), FinishReason.STOP))
    return history


@pytest.mark.parametrize("change", ["resumed", "changed"])
def test_what_cannot_fit_a_smaller_model_is_refused_before_anything_happens(change: str) -> None:
    """Nothing is asked, nothing pruned, and the prompt is not on the record either."""

    async def go() -> None:
        history = talk(session(60, 3_000), 20)
        small, large = model(answer(SNAPSHOT)), model(answer(SNAPSHOT), window=1_000_000)
        agent = agent_of(small if change == "resumed" else large, history)
        if change == "changed":
            agent.change_model(small)
        before = [*history.entries]
        run = agent.run("Go on.")
        events = await events_of(run)
        [told] = of(events, ContextOverflowed)
        assert told.limit_tokens == WINDOW
        assert run.result.error_type == "ContextOverflow"
        for words in (
            "10,000",
            "Nothing was sent or changed",
            "larger context window",
            f"messages of session {agent.session_id} summarised by one (agent.compress)",
        ):
            assert words in run.result.error
        assert history.entries == before
        assert small.requests == []
        agent.change_model(large)
        await agent.run("Go on.")
        assert large.tokens(large.requests[-1]) > 70_000
        assert "[0] ooo" in str(large.requests[-1].messages)

    play(go)


def test_a_prompt_that_is_too_long_by_itself_leaves_the_conversation_as_it_was() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT))
        agent = agent_of(provider)
        await agent.run("Go on.")
        before = [*agent.history.entries]
        with pytest.raises(ContextOverflow, match="Nothing was sent or changed"):
            await agent.run("p" * 60_000)
        assert agent.history.entries == before
        assert (await agent.run("And now?")).text == "Done."

    play(go)


def test_a_window_that_is_only_guessed_refuses_nothing() -> None:
    async def go() -> None:
        provider = model(answer(SNAPSHOT), known=False)
        agent = agent_of(provider, talk(session(60, 3_000), 20))
        assert (await agent.run("Go on.")).text == "Done."

    play(go)


@pytest.mark.parametrize("threshold_tokens", [0, 5_000])
def test_a_summary_holds_for_the_window_that_forced_it_and_for_all_where_the_user_set_the_threshold(threshold_tokens: int) -> None:
    async def go() -> None:
        settings = ContextSettings(compress=CompressSettings(threshold_tokens=threshold_tokens))
        agent = agent_of(model(answer(SNAPSHOT)), context=settings)
        await agent.run("Go on.")
        [entry] = entries(agent, Compressed)
        assert entry.window == (0 if threshold_tokens else WINDOW)
        large = model(answer(SNAPSHOT), window=1_000_000)
        agent.change_model(large)
        await agent.run("And now?")
        assert any("<goal>fix the tests</goal>" in message.text for message in large.requests[-1].messages) == bool(threshold_tokens)

    play(go)


def test_a_summary_that_the_user_asks_for_holds_for_all_models() -> None:
    async def go() -> None:
        agent = agent_of(model(answer(SNAPSHOT)))
        assert (await agent.compress()).status == "compressed"
        [entry] = entries(agent, Compressed)
        assert entry.window == 0

    play(go)


def test_a_summary_is_told_when_it_begins_and_can_be_cancelled() -> None:
    """A model in this process may take minutes for it."""

    async def go() -> None:
        agent = agent_of(model(answer(Stall())))
        run = agent.run("Go on.")
        async for event in run:
            if isinstance(event, CompressionStarted):
                assert event.window == WINDOW
                run.cancel()
        assert run.result.error_type == "Cancelled"
        assert entries(agent, Compressed) == []
        check_record(agent.history)

    play(go)


def test_closing_an_agent_ends_a_summary_that_was_asked_for() -> None:
    async def go() -> None:
        agent = agent_of(model(answer(Stall())))
        compressing = asyncio.ensure_future(agent.compress())
        await asyncio.sleep(0.01)
        await agent.aclose()
        with pytest.raises(asyncio.CancelledError):
            await compressing
        assert entries(agent, Compressed, NotCompressed) == []

    play(go)


def test_a_prompt_that_is_asked_again_counts_once() -> None:
    """It is on the record already: counted twice it would be refused."""

    async def go() -> None:
        provider = model(answer(SNAPSHOT), reply=answer(Fail(500)))
        agent = agent_of(provider, History())
        prompt = "p" * 24_000
        for _ in range(2):
            run = agent.run(prompt)
            await events_of(run)
            assert run.result.error_type == "ServerError"

    play(go)
