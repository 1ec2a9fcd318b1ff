"""M2: calls that cannot be read, at any place among good ones, over real HTTP on all four protocols and in text.

Such a call is an error of its own. The good ones run once and in order, and the service takes the next request.
"""

from __future__ import annotations

import asyncio
import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dragoman
from agents import make_agent
from destinations import MAIN, connection, rules_of
from dragoman.loop.agent import Agent
from dragoman.loop.options import AnswerPolicy, Limits, LoopLimits
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer, answer
from dragoman.text_tools.options import TextOptions, place_for
from dragoman.text_tools.wrapper import TextTools
from dragoman.values.calls import Allow, Intent
from dragoman.values.contracts import Provider
from dragoman.values.messages import Message, ToolCall
from dragoman.values.record import AnswerRejected, ToolFinished, ToolStarted

PROTOCOLS = ("gemini", "openai_chat", "openai_responses", "anthropic")
BASE = {"gemini": "", "anthropic": "", "openai_chat": "/v1", "openai_responses": "/v1"}
LIMITS = Limits(answers=AnswerPolicy(delay_s=0), loop=LoopLimits(same_call=0, cycle_repeats=0, failing_call=0))
NATIVE = {
    "good": '{{"text": "{n}"}}',
    "mended": '{{"text": "{n}",}}',
    "no bracket": '{{"text": "{n}"',
    "half": '{{"text": "{n}',
    "two values": '{{"text": "{n}" "more": 1}}',
    "words": "text={n}",
    "a list": '["{n}"]',
}
"""What a model writes as arguments."""
RUNS = {"good", "mended", "no bracket"}
TEXT = {
    "good": '<tool_call>\n{{"name": "note", "arguments": {{"text": "{n}"}}}}\n</tool_call>',
    "mended": '<tool_call>\n{{"name": "note", "arguments": {{"text": "{n}",}}}}\n</tool_call>',
    "no value": '<tool_call>\n{{"name": "note", "arguments": {{"text": "{n}" "more"}}}}\n</tool_call>',
    "unknown": '<tool_call>\n{{"name": "nota", "arguments": {{"text": "{n}"}}}}\n</tool_call>',
    "half": '<tool_call>\n{{"name": "note", "arguments": {{"text": "{n}\n</tool_call>',
}


class Ended:
    """A run that has ended well."""

    def __init__(self, agent: Agent, ran: list[str], last_request: str) -> None:
        self.ran = ran
        self.last_request = last_request
        self.entries = agent.history.entries
        self.messages = agent.history.view.messages
        check_pairs(self.messages)

    def results(self) -> list[ToolFinished]:
        return [entry for entry in self.entries if isinstance(entry, ToolFinished)]


def check_pairs(messages: tuple[Message, ...]) -> None:
    calls = [call.id for message in messages for call in message.calls]
    assert sorted(calls) == sorted(result.call_id for message in messages for result in message.results)
    assert len(set(calls)) == len(calls)


async def allow(call: ToolCall, intent: Intent) -> Allow:
    return Allow()


def converse(protocol: str, said: ScriptedAnswer, *, in_text: bool = False, rounds: int = 4) -> Ended:
    """An answer, then words, from a service that takes only what the real one would."""
    ran: list[str] = []

    @dragoman.tool
    def note(text: str) -> str:
        """Write a note."""
        ran.append(text)
        return f"noted {text}"

    deployment, model = builtin_catalog().find(MAIN[protocol])
    rules = rules_of(deployment, profile_for(deployment, model))

    async def go() -> Ended:
        async with MockServer([said, *[answer("Done.")] * rounds], rules=rules) as server:
            provider: Provider = connection(protocol, server.url + BASE[protocol])
            if in_text:
                provider = TextTools(provider, TextOptions("hermes", place_for("hermes", protocol)))
            agent = make_agent(provider, tools=(note,), builtin=False, describe=False, limits=LIMITS, ask=allow)
            async with agent:
                result = await asyncio.wait_for(agent.run("Take notes."), 60)
            assert (result.text, result.error) == ("Done.", "")
            assert [exchange.violation for exchange in server.requests if exchange.violation is not None] == []
            return Ended(agent, ran, json.dumps(server.requests[-1].body, ensure_ascii=False))

    return asyncio.run(go())


def natively(kinds: tuple[str, ...] | list[str]) -> ScriptedAnswer:
    return answer("Notes.", *(CallStep("note", NATIVE[kind].format(n=f"n{number}")) for number, kind in enumerate(kinds)))


def as_text(kinds: tuple[str, ...] | list[str]) -> ScriptedAnswer:
    return answer(Say("\n".join(["Notes.", *(TEXT[kind].format(n=f"n{number}") for number, kind in enumerate(kinds))])))


def expected(kinds: tuple[str, ...] | list[str], runs: set[str]) -> list[str]:
    return [f"n{number}" for number, kind in enumerate(kinds) if kind in runs]


def check_native(protocol: str, kinds: tuple[str, ...] | list[str]) -> None:
    ended = converse(protocol, natively(kinds))
    if protocol == "gemini":  # it leaves out what it cannot read itself, and says that there was something
        runs, told = {"good"}, sum(kind in ("good", "a list") for kind in kinds)
    else:
        runs, told = RUNS, len(kinds)
    if protocol == "gemini" and not told:
        assert ended.ran == []
        return
    assert ended.ran == expected(kinds, runs)
    assert len(ended.results()) == told
    assert not [entry for entry in ended.entries if isinstance(entry, AnswerRejected)], "the answer stays"
    failed = [entry.result.text for entry in ended.results() if entry.result.is_error]
    assert all(text.startswith("note was not run: its arguments ") and "note are: text (required)" in text for text in failed), failed
    if told < len(kinds):
        assert "Another tool call of your last answer could not be read" in ended.last_request


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broken_call_at_any_place_is_an_error_and_the_others_run(protocol: str) -> None:
    for kinds in product(("good", "half"), repeat=3):
        check_native(protocol, kinds)


@settings(max_examples=max(20, settings().max_examples // 5), deadline=None)
@given(st.sampled_from(PROTOCOLS), st.lists(st.sampled_from(list(NATIVE)), min_size=1, max_size=6))
def test_any_mixture_of_good_and_broken_calls(protocol: str, kinds: list[str]) -> None:
    check_native(protocol, kinds)


def check_text(protocol: str, kinds: tuple[str, ...] | list[str]) -> None:
    ended = converse(protocol, as_text(kinds), in_text=True)
    good = expected(kinds, {"good", "mended"})
    if "half" not in kinds:  # an unclosed string may take what follows it with it
        assert ended.ran == good
        assert len(ended.results()) == len(good)
    else:
        assert ended.ran == [each for each in good if each in ended.ran], "once, and in order"
    assert not [entry for entry in ended.entries if isinstance(entry, AnswerRejected)], "the answer stays"
    if len(ended.ran) < len(kinds):
        assert "A tool call in your last answer could not be read, so it was not run" in ended.last_request
    assert all(f"noted {each}" in ended.last_request for each in ended.ran)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broken_call_in_text_is_told_and_the_others_run(protocol: str) -> None:
    for kinds in product(("good", "no value"), repeat=3):
        check_text(protocol, kinds)


@settings(max_examples=max(20, settings().max_examples // 5), deadline=None)
@given(st.sampled_from(PROTOCOLS), st.lists(st.sampled_from(list(TEXT)), min_size=1, max_size=5))
def test_any_mixture_of_good_and_broken_calls_in_text(protocol: str, kinds: list[str]) -> None:
    check_text(protocol, kinds)


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic"])
def test_the_record_keeps_what_came_and_the_model_learns_what_was_wrong_with_it(protocol: str) -> None:
    broken = '{"text": "n0" "more": 1}'
    ended = converse(protocol, answer(CallStep("note", broken), CallStep("note", '{"text": "n1",}')))
    (first, second) = next(message.calls for message in ended.messages if message.calls)
    assert (first.arguments, second.arguments) == (broken, '{"text": "n1",}'), "byte for byte"
    failed, mended = (entry.result for entry in ended.results())
    assert "Expecting ',' delimiter, line 1 column 15" in failed.text
    assert '{"text": "n0"  <HERE> "more": 1}' in failed.text
    assert mended.text == "[this call was read with a comma too many left out: send valid JSON]\nnoted n1"
    assert [entry.arguments for entry in ended.entries if isinstance(entry, ToolStarted)] == ['{"text": "n1"}'], "what it ran with"
    assert "_arguments" in ended.last_request, "services take an object, so the text is wrapped in one"
