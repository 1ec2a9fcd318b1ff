"""Random answers, random tools, random cancels: the record stays whole, and the conversation can always go on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent, Show
from dragoman.values.errors import ToolBroken
from dragoman.values.events import TurnEvent
from dragoman.values.messages import ToolCall
from scenarios.workshop import QUICK, PlainTool, agent_for, check_record, check_told, failing, no_wait, play, said, writer


def _answers() -> st.SearchStrategy[str]:
    calls = st.lists(st.sampled_from(["look", "slow", "change", "fails", "raises", "stubborn", "broken", "nosuch"]), min_size=1, max_size=4)
    said_calls = calls.map(lambda names: "\n".join(f'call: {name} {{"what": "{number}"}}' for number, name in enumerate(names)))
    ends = st.sampled_from(
        ["", "", "", "\ncut", "\nfinish: length", '\nfinish: MALFORMED_FUNCTION_CALL "x"', "\nfinish: safety", "\nerror: 529"]
    )
    speech = st.sampled_from(["text: Well.\n", "text: ...\n", "thought: Hm.\n", ""])
    with_calls = st.tuples(speech, said_calls, ends).map("".join)
    odd = st.sampled_from(
        [
            "text: Done.",
            "finish: stop",
            "nothing",
            'text: " "',
            "thought: Only thinking.",
            "error: 500",
            "error: 400",
            "error: 429 retry_after=1",
            "text: Half\ncut",
            "cut",
            "garbage",
            "text: So long\nfinish: length",
            "block: SAFETY",
            'call: look {"what": 5}',
            "call: look [1]",
            'call: look {"what',
            'call id=x: look {"what": "1"}\ncall id=x: look {"what": "2"}',
            'call id="": look {"what": "1"}',
        ]
    )
    return st.one_of(with_calls, odd)


@settings(max_examples=max(150, settings().max_examples))
@given(
    answers=st.lists(_answers(), min_size=1, max_size=8),
    cancels=st.lists(st.one_of(st.none(), st.integers(0, 25)), min_size=1, max_size=4),
    call_cancels=st.sets(st.integers(0, 25), max_size=2),
    person=st.sampled_from(["allows", "refuses", "edits", "edits badly", "raises"]),
)
def test_whatever_happens_every_call_has_one_result_and_the_next_request_is_valid(
    answers: list[str], cancels: list[int | None], call_cancels: set[int], person: str
) -> None:
    """Random answers × tools that fail, raise, wait and will not stop × cancels of the run or a call at any event × a person."""

    async def raising(args: Mapping[str, Any], show: Show) -> str:
        raise ValueError("a tool must not raise, and this one does")

    async def breaking(args: Mapping[str, Any], show: Show) -> str:
        raise ToolBroken("the disk is full")

    async def slowly(args: Mapping[str, Any], show: Show) -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        show("some")
        return "slow"

    async def stubborn(args: Mapping[str, Any], show: Show) -> str:
        try:
            await slowly(args, show)
        except asyncio.CancelledError:
            pass  # it will not be told
        await asyncio.sleep(0)
        return "stubborn"

    async def ask(call: ToolCall, view: Intent) -> Allow | Deny:
        await asyncio.sleep(0)
        match person:
            case "allows":
                return Allow()
            case "refuses":
                return Deny("no")
            case "edits":
                return Allow('{"what": "else"}')
            case "edits badly":
                return Allow('{"what": 5}')
            case _:
                raise RuntimeError("nobody there")

    async def go() -> None:
        tools = [
            PlainTool("look"),
            PlainTool("slow", slowly),
            writer("change"),
            PlainTool("fails", failing()),
            writer("raises", raising),
            PlainTool("stubborn", stubborn),
            PlainTool("broken", breaking),
        ]
        provider = Retry(ScriptedProvider("\n---\n".join(answers)), RetryPolicy(attempts=2, sleep=no_wait))
        agent = agent_for(provider, *tools, ask=ask, limits=msgspec.structs.replace(QUICK, max_turns=6))
        for number, cancel_at in enumerate(cancels):
            run = agent.run(f"prompt {number}")
            events: list[TurnEvent] = []
            async for event in run:
                if len(events) == cancel_at:
                    run.cancel()
                if len(events) in call_cancels and agent.history.view.open_calls:
                    run.cancel_call(agent.history.view.open_calls[-1].id)
                events.append(event)
            check_told(events, run.result.exit_code)
            check_record(agent.history)
        assert said(agent.history, "prompt 0") == 1

    play(go)
