"""What is shown of a session is the same whether somebody watched it live, resumes it, or asks for it later: one renderer makes both."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dragoman as dm
from dragoman.conversation.blocks import join_events
from dragoman.conversation.events import Renderer, follow, read_events
from dragoman.conversation.pages.session_show import as_text
from dragoman.conversation.types import ViewEvent
from dragoman.loop.agent import Agent
from dragoman.loop.run import Run
from dragoman.providers.retry import Retry, RetryPolicy
from dragoman.sessions.log import read_log
from dragoman.sessions.transcript import read_transcript
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.todo import TodoList
from dragoman.values.calls import Allow, Deny, Intent, Later
from dragoman.values.events import Retrying, TextDelta, ThoughtDelta, TurnEvent, TurnFinished
from dragoman.values.messages import FinishReason, Text, Thought, ToolCall, user
from dragoman.values.record import Entry, Said, ToolFinished, Unknown, encode_entry
from dragoman.values.record_reading import decode_entry
from property.test_fold import lived
from scenarios.workshop import PlainTool, agent_for, failing, no_wait, play, writer

HERE = Path(__file__).parent.parent
LOGS = sorted([*HERE.glob("written_before/sessions/*/*.jsonl"), *HERE.glob("sessions/fixtures/format-1*.jsonl")])


def shown(events: Iterable[ViewEvent]) -> list[dict[str, Any]]:
    """The blocks that are left, as JSON has them."""
    return json.loads(json.dumps([msgspec.to_builtins(msgspec.structs.replace(block, seq=0)) for block in join_events(events)]))


def opened(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """What who opens the session later is shown."""
    return shown(read_events(decode_entry(encode_entry(entry)) for entry in entries))


def in_pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def streamed(entry: Said, size: int) -> Iterator[TurnEvent]:
    """An answer as it comes before it is on the record."""
    for part in entry.message.parts:
        if isinstance(part, Text):
            yield from map(TextDelta, in_pieces(part.text, size))
        elif isinstance(part, Thought):
            yield from map(ThoughtDelta, in_pieces(part.text, size))


def watched(entries: Sequence[Entry], *, size: int = 3, junk: Sequence[int] = ()) -> list[ViewEvent]:
    """A record as it grows, each answer streaming before it stands. `junk`: before which answers an attempt was lost."""
    renderer, told = Renderer(), list[ViewEvent]()
    answers = itertools.count()
    for entry in entries:
        if isinstance(entry, Said) and entry.message.role == "assistant":
            if next(answers) in junk:
                lost = [ThoughtDelta("Hm."), TextDelta("It is"), ThoughtDelta("No."), TextDelta("lost")]
                told += [each for event in (*lost, Retrying(1, 0.0, "529")) for each in renderer.take(event)]
            told += [each for event in streamed(entry, size) for each in renderer.take(event)]
        told += renderer.read([entry])
        if isinstance(entry, Said) and entry.message.role == "assistant":
            told += renderer.take(TurnFinished(FinishReason.STOP))
    return [*told, *renderer.end()]


# --- sessions that were recorded, and generated ones


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem[-24:])
def test_a_recorded_session_is_shown_alike_as_it_grows_and_afterwards(log: Path) -> None:
    entries = read_log(log).entries
    wanted = opened(entries)
    assert wanted == shown(watched(entries, junk=[0, 2]))
    assert wanted == shown(Renderer().read(entries))
    assert sum(block["kind"] == "call" for block in wanted) == sum(len(entry.message.calls) for entry in entries if isinstance(entry, Said))


@settings(max_examples=60)
@given(data=st.data(), size=st.integers(1, 7), junk=st.sets(st.integers(0, 4)))
def test_a_generated_session_is_shown_alike_as_it_grows_and_afterwards(data: st.DataObject, size: int, junk: set[int]) -> None:
    entries = lived(data).history.entries
    told = watched(entries, size=size, junk=sorted(junk))
    assert shown(told) == opened(entries)
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert as_text(entries).count("\n") >= len(read_transcript(entries).steps)


EXAMPLES = {kind: [each for log in LOGS for each in read_log(log).entries if isinstance(each, kind)] for kind in get_args(Entry)}
"""Entries of every kind, as recorded sessions have them."""


def renumbered(entry: Entry, seq: int) -> Entry:
    if isinstance(entry, Unknown):
        return msgspec.structs.replace(entry, seq=seq, json=json.dumps(json.loads(entry.json) | {"seq": seq}))
    return msgspec.structs.replace(entry, seq=seq)


@settings(max_examples=60)
@given(data=st.data(), size=st.integers(1, 7))
def test_a_session_with_entries_of_every_kind_anywhere_is_shown_alike(data: st.DataObject, size: int) -> None:
    """Also where what they are about is not there: a log may be damaged, or of a later version."""
    entries = [*lived(data).history.entries]
    for kind in data.draw(st.lists(st.sampled_from(list(EXAMPLES)), max_size=8)):
        entries.insert(data.draw(st.integers(0, len(entries))), data.draw(st.sampled_from(EXAMPLES[kind])))
    entries = [renumbered(entry, number) for number, entry in enumerate(entries, 1)]
    assert shown(watched(entries, size=size)) == opened(entries)
    assert as_text(entries)


@settings(max_examples=40)
@given(data=st.data())
def test_a_session_is_read_entry_by_entry_as_it_is_read_at_once(data: st.DataObject) -> None:
    """Also one that is opened in its middle and followed from there."""
    entries = lived(data).history.entries
    at = data.draw(st.integers(0, len(entries)))
    renderer = Renderer()
    first = [msgspec.structs.replace(block, seq=0) for block in join_events(renderer.read(entries[:at]))]
    rest = [event for entry in entries[at:] for event in renderer.read([entry])]
    assert shown([*first, *rest]) == opened(entries)


# --- agents at work

ANSWERS = (
    "text: Done.",
    "thought: I should look.\ntext piece=2: Hello there, and more.",
    'call: look {"what": "a"}',
    'text: Both.\ncall: look {"what": "a"}\ncall: change {"what": "b"}\ncall: broken {}',
    'thought: Hm.\ncall: change {"what": "a"}\ncall: change {"what": "b"}',
    "call: nowhere {}",
    'call: look {"what": 3',
    'call: scout {"prompt": "Look around."}',
    "call: to_purser {}",
    'call: todo {"items": [{"content": "sail", "status": "pending"}]}',
    "text: Half of it\nerror: 529",
    "error: 529",
    "thought: Only thinking.",
    "nothing",
    'text: Hm.\nfinish: MALFORMED_FUNCTION_CALL "why"',
    "text: Much too long\nfinish: length",
    'text: No.\nfinish: SAFETY "no"',
    "text: Cut\ncut",
)
scripts = st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=6).map("\n---\n".join)


def crew(script: str, decisions: Sequence[str]) -> Agent:
    """An agent with every kind of tool, whose model plays the script; and what the person says when asked."""
    decided = itertools.cycle(decisions)

    async def ask(call: ToolCall, intent: Intent) -> Allow | Deny | Later:
        match next(decided):
            case "allow":
                return Allow()
            case "edit":
                return Allow(arguments='{"what": "edited"}')
            case "later":
                return Later()
            case _:
                return Deny("not today")

    scout_script = 'script: end=repeat\nthought: Where?\ntext: I look.\ncall: look {"what": "sea"}\n---\ntext: Land.'
    scout = dm.Agent(ScriptedProvider(scout_script), name="scout", system="You are a scout.", tools=[PlainTool()])
    purser_script = 'script: end=repeat\ncall: look {"what": "coins"}\n---\ntext: Twelve.'
    purser = dm.Agent(ScriptedProvider(purser_script), name="purser", tools=[PlainTool()])

    @dm.tool
    def to_purser() -> dm.Agent[Any, Any]:
        """Hand over."""
        return purser

    tools: list[Any] = [PlainTool(), writer(), PlainTool("broken", failing()), TodoList(), to_purser]
    tools.append(scout.as_tool("scout", "Looks around."))
    return agent_for(scripted(script), *tools, ask=ask)


def scripted(script: str) -> Retry:
    return Retry(ScriptedProvider(f'script: end=say text="The end."\n{script}'), RetryPolicy(attempts=2, sleep=no_wait))


async def live(agent: Agent, run: Run, renderer: Renderer, *, cancel_at: int = -1, slow: bool = False) -> list[ViewEvent]:
    """All that one who watches is told. `slow`: who begins to read when all is over."""
    if slow:
        await asyncio.wait([asyncio.create_task(run)])
    told = list[ViewEvent]()
    async for event in follow(run, agent.history.entries, renderer):
        told.append(event)
        if len(told) == cancel_at:
            run.cancel()
    return told


@settings(max_examples=80, deadline=None)
@given(
    script=scripts,
    decisions=st.lists(st.sampled_from(["allow", "deny", "edit", "later"]), min_size=1, max_size=3),
    cancel_at=st.one_of(st.just(-1), st.integers(1, 60)),
    slow=st.booleans(),
    between=st.sampled_from(["", "rewind", "prune", "compress", "title"]),
)
@example("\n---\n".join(ANSWERS[2:10]), ["allow", "deny"], -1, False, "rewind")
def test_an_agent_at_work_is_shown_as_its_record_is(script: str, decisions: list[str], cancel_at: int, slow: bool, between: str) -> None:
    async def go() -> None:
        async with crew(script, decisions) as agent:
            renderer, told = Renderer(), list[ViewEvent]()
            told += await live(agent, agent.run("first"), renderer, cancel_at=cancel_at, slow=slow)
            assert shown(told) == opened(agent.history.entries)
            for prompt in ("second", "third"):
                while agent.pending:
                    told += await live(agent, agent.resume({call.id: Deny("no") for call in agent.pending}), renderer)
                change(agent, between)
                told += renderer.read(agent.history.entries[renderer.entries_read :])
                told += await live(agent, agent.run(prompt), renderer)
                assert shown(told) == opened(agent.history.entries)
            assert told[-1].kind == "ended"
            assert [event.seq for event in told] == list(range(1, len(told) + 1))

    play(go)


def change(agent: Agent, how: str) -> None:
    history = agent.history
    match how:
        case "rewind":
            history.rewind(next(entry for entry in history.entries if isinstance(entry, Said)))
        case "prune":
            history.prune([entry.result.call_id for entry in history.entries if isinstance(entry, ToolFinished)])
        case "compress":
            history.compress(history.entries[-1], user("All before."))
        case "title":
            history.title("A voyage")
        case _:
            pass
