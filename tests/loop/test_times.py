"""What a viewer needs to know of times: when a request was sent, when its answer began, and when a call that only reads did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import dragoman as dm
from dragoman.record import Said, ToolFinished, ToolStarted, decode_entry
from dragoman.testing import ScriptedProvider
from dragoman.values.events import StreamEvent
from dragoman.values.messages import Request
from dragoman.values.wrapping import WrappingProvider


class Clock:
    """A minute passes each time it is moved."""

    def __init__(self) -> None:
        self.ms = 0

    def move(self) -> None:
        self.ms += 60_000

    def __call__(self) -> int:
        return self.ms


class Slow(WrappingProvider):
    """A minute passes before each event."""

    def __init__(self, provider: dm.Provider, clock: Clock) -> None:
        super().__init__(provider)
        self._clock = clock

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        async for event in self.provider.stream(request):
            self._clock.move()
            yield event


@dm.tool(read_only=True)
def tides(harbour: str) -> str:
    """When the tide is high."""
    return f"noon, at {harbour}"


def run(script: str, clock: Clock) -> dm.History:
    async def go() -> dm.History:
        history = dm.History(now_ms=clock)
        async with dm.Agent(Slow(ScriptedProvider(script), clock), tools=[tides], session=history) as agent:
            await agent.run("when?")
        return history

    return asyncio.run(go())


def test_an_answer_says_when_it_was_asked_for_when_it_began_and_when_it_was_whole() -> None:
    history = run('thought: Hm.\ncall: tides {"harbour": "Muscat"}\n---\ntext: At noon.', Clock())
    answers = [entry for entry in history.entries if isinstance(entry, Said) and entry.message.role == "assistant"]
    assert len(answers) == 2
    for answer in answers:
        assert answer.sent_ms < answer.first_ms < answer.timestamp_ms
    assert answers[0].timestamp_ms <= answers[1].sent_ms


def test_a_call_that_only_reads_says_when_it_began_and_is_not_taken_for_one_that_may_have_changed_something() -> None:
    history = run('call: tides {"harbour": "Muscat"}\n---\ntext: At noon.', Clock())
    [started] = [entry for entry in history.entries if isinstance(entry, ToolStarted)]
    assert started.read_only
    until_begun = dm.History(entries=[entry for entry in history.entries if entry.seq <= started.seq])
    assert not until_begun.view.started
    until_begun.close_interrupted()
    [closed] = [entry for entry in until_begun.entries if isinstance(entry, ToolFinished)]
    assert closed.outcome == "not_run"


def test_entries_of_an_earlier_version_say_nothing_of_it() -> None:
    said = decode_entry(b'{"kind":"said","seq":1,"timestamp_ms":5,"message":{"role":"assistant","parts":[]},"by":"model"}')
    assert isinstance(said, Said)
    assert (said.sent_ms, said.first_ms) == (0, 0)
