"""A compression that a person asks for: however short the conversation is (documents 000, 7.1: `tryCompressChat(force)`)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.context.compress import SUMMARY_BEGINS
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.testing.script_steps import answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.messages import FinishReason, Request, Response, ToolCall, assistant, tool_result, user
from dragoman.values.profile import Profile
from dragoman.values.record import Compressed, NotCompressed
from scenarios.workshop import agent_for, check_record, play

SNAPSHOT = "<snapshot>\n<goal>say hello</goal>\n</snapshot>"


def chatted(exchanges: int, *, calls: int = 0, words: str = "Hello.") -> History:
    history = History()
    history.configure("scripted", "Be brief.", deployment="scripted")
    for exchange in range(exchanges):
        history.say(user(f"{words} {exchange}"))
        for number in range(calls):
            call = ToolCall(f"c{exchange}-{number}", "look", "{}")
            history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
            history.finish_tool(tool_result(call, "seen"))
        history.answer(Response(assistant("Good day."), FinishReason.STOP))
    return history


def asked(history: History, summary: str = SNAPSHOT, window: int = 100_000) -> tuple[ScriptedProvider, Agent]:
    def choose(request: Request) -> Any:
        return answer(summary) if "<snapshot>" in request.system or "<snapshot>" in request.messages[-1].text else answer("Yes.")

    provider = ScriptedProvider(choose, profile=Profile(context_window=window, max_output_tokens=1_000))
    return provider, agent_for(provider, history=history, system="Be brief.")


def test_a_single_exchange_is_summed_up_as_a_whole_and_the_conversation_goes_on() -> None:
    async def go() -> None:
        provider, agent = asked(chatted(1))
        done = await agent.compress()
        assert done.status == "compressed"
        assert done.new_tokens > done.original_tokens, "the summary of so little is longer, and is used all the same"
        [summary] = agent.history.request.messages
        assert summary.text.startswith(SUMMARY_BEGINS)
        assert "<said>\nHello. 0\n</said>" in summary.text
        assert (await agent.run("And now?")).text == "Yes."
        assert [message.role for message in provider.requests[-1].messages] == ["user", "user"]
        check_record(agent.history)

    play(go)


def test_what_is_a_summary_already_and_what_was_never_answered_is_left_alone_and_it_is_said() -> None:
    async def go() -> None:
        provider, agent = asked(chatted(1))
        await agent.compress()
        again = await agent.compress()
        assert (again.status, again.reason) == ("noop", "everything so far is a summary already")
        history = History()
        history.configure("scripted", "Be brief.", deployment="scripted")
        history.say(user("Hello."))
        _, waiting = asked(history)
        done = await waiting.compress()
        assert (done.status, done.reason) == ("noop", "there is nothing to summarise yet")
        assert len(provider.requests) == 1

    play(go)


def test_a_summary_that_would_call_for_the_next_one_is_not_used() -> None:
    async def go() -> None:
        history = chatted(2)
        _, agent = asked(history, f"<snapshot>{'w ' * 20_000}</snapshot>", window=8_000)
        before = history.request.messages
        done = await agent.compress()
        assert done.status == "inflated"
        assert "after" in done.reason
        assert history.request.messages == before
        assert [entry.status for entry in history.entries if isinstance(entry, NotCompressed)] == ["inflated"]

    play(go)


def test_not_forced_a_short_conversation_is_left_alone() -> None:
    provider, agent = asked(chatted(3))
    assert agent.compress_sync(force=False).status == "noop"
    assert provider.requests == []
    assert agent.compress_sync().status == "compressed"
    agent.close()


@settings(max_examples=25, deadline=None)
@given(exchanges=st.integers(1, 4), calls=st.integers(0, 2), words=st.text("ab \n", max_size=40), times=st.integers(1, 3))
def test_whatever_was_answered_can_be_compressed_and_goes_on(exchanges: int, calls: int, words: str, times: int) -> None:
    async def go() -> None:
        _, agent = asked(chatted(exchanges, calls=calls, words=words))
        for _ in range(times):
            assert (await agent.compress()).status == "compressed"
            assert (await agent.run("Go on.")).text == "Yes."
        check_record(agent.history)
        assert len([entry for entry in agent.history.entries if isinstance(entry, Compressed)]) == times
        assert sum(message.text.startswith(SUMMARY_BEGINS) for message in agent.history.request.messages) == 1

    play(go)
