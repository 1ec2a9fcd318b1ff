"""What a person chooses about one result: let go, kept, taken back. Each choice is on the record, and holds after a resume."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from destinations import MAIN, connection, violation_in
from dragoman.context.settings import ContextSettings
from dragoman.context.view import PLACEHOLDER
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.testing.script_steps import answer
from dragoman.values.errors import InputError
from dragoman.values.messages import FinishReason, Response, Text, ToolCall, ToolResult, ToolSpec, assistant, user
from dragoman.values.record import Kept, Pruned, encode_entry
from dragoman.values.record_reading import decode_entry
from loop.test_upkeep import HOUR_MS, SNAPSHOT, agent_of, model
from loop.test_upkeep_pruning import READ_A, WRITE_A, Clock, commands, files_agent, last_result, text_of
from scenarios.workshop import play

SHELL = ToolSpec("run_shell", "Runs a command.", '{"type": "object", "properties": {"command": {"type": "string"}}}')


def texts(history: History) -> list[str]:
    return [result.text for message in history.view.messages for result in message.results]


def results(agent: Agent) -> dict[str, int]:
    """Call id → the number of its entry."""
    return {item.call_id: item.seq for item in agent.plan().items if item.kind == "result"}


def test_one_result_goes_and_comes_back() -> None:
    agent = agent_of(model(answer("ok"), window=100_000), commands(Clock()))
    before, tokens = texts(agent.history), agent.plan().tokens
    seq = results(agent)["c3"]
    saved = agent.drop(seq)
    assert texts(agent.history) == [*before[:3], PLACEHOLDER, *before[4:]]
    assert saved == tokens - agent.plan().tokens > 50
    assert agent.drop(seq) == 0, "it is gone already"
    assert agent.undo_choice(seq) > 0
    assert texts(agent.history) == before
    assert agent.plan().tokens == tokens
    with pytest.raises(InputError, match="nothing to undo"):
        agent.undo_choice(seq)


def test_what_is_kept_is_pruned_by_no_rule_until_that_is_taken_back() -> None:
    clock = Clock()
    agent = agent_of(model(answer("ok"), window=100_000), commands(clock))
    seq = results(agent)["c1"]
    agent.keep(seq)
    clock.ms += HOUR_MS
    assert agent.prune() == 3, "four are outdated"
    assert "c1" not in agent.history.view.pruned
    assert [item.held for item in agent.plan().items if item.kind == "result"] == [False, True, *[False] * 7]
    agent.undo_choice(seq)
    assert agent.prune() == 1
    assert "c1" in agent.history.view.pruned


def test_a_pruned_result_that_is_kept_comes_back_and_goes_again_with_the_choice() -> None:
    clock = Clock()
    agent = agent_of(model(answer("ok"), window=100_000), commands(clock))
    before = texts(agent.history)
    seq = results(agent)["c0"]
    clock.ms += HOUR_MS
    agent.prune()
    assert agent.keep(seq) > 0
    assert texts(agent.history)[0] == before[0]
    assert agent.prune() == 0
    assert agent.undo_choice(seq) < 0
    assert texts(agent.history)[0] == PLACEHOLDER


def test_a_resumed_session_sends_the_same() -> None:
    clock = Clock()
    agent = agent_of(model(answer("ok"), window=100_000), commands(clock))
    numbers = results(agent)
    agent.drop(numbers["c2"])
    agent.keep(numbers["c4"])
    agent.drop(numbers["c5"])
    agent.undo_choice(numbers["c5"])
    again = History(entries=agent.history.entries)
    assert again.view.request == agent.history.view.request
    assert again.view.held == agent.history.view.held == {"c4"}
    assert sum(isinstance(entry, Pruned | Kept) for entry in again.entries) == 4
    again.rewind(numbers["c8"])
    assert again.view.held == again.view.pruned == set(), "before the choices were made"


@pytest.mark.parametrize("protocol", MAIN)
def test_what_is_kept_stays_in_what_is_sent_after_a_summary_on_every_protocol(protocol: str) -> None:
    async def go() -> None:
        agent = agent_of(model(answer(SNAPSHOT), window=100_000), commands(Clock(), 30))
        seq = results(agent)["c4"]
        agent.keep(seq)
        whole = next(message for message in agent.history.view.messages if "c4" in {result.call_id for result in message.results})
        assert (await agent.compress()).status == "compressed"
        states = {item.call_id: item.state for item in agent.plan().items if item.kind == "result"}
        assert (states["c3"], states["c4"], states["c5"]) == ("summarised", "kept", "summarised")
        at = agent.history.view.messages.index(whole)
        assert agent.history.view.messages[at] is whole
        assert agent.history.view.messages[at - 1].calls[0].id == "c4"
        again = History(entries=[decode_entry(encode_entry(entry)) for entry in agent.history.entries])
        assert again.view.request == agent.history.view.request
        where = connection(protocol)
        request = msgspec.structs.replace(again.view.request, messages=(*again.view.messages, user("Go on.")), tools=(SHELL,))
        found = violation_in(where, where.prepare(msgspec.structs.replace(request, model=where.model)).body)
        assert found is None, found

    play(go)


def test_only_results_of_tools_are_chosen_about() -> None:
    agent = agent_of(model(answer("ok"), window=100_000), commands(Clock()))
    prompt = next(item for item in agent.plan().items if item.kind == "prompt")
    with pytest.raises(InputError, match="not the result of a tool"):
        agent.drop(prompt.seq)
    with pytest.raises(InputError, match="not in the next request"):
        agent.keep(999)


def test_a_file_that_was_dropped_must_be_read_again_before_it_is_replaced(tmp_path: Path) -> None:
    async def go() -> None:
        agent = files_agent(tmp_path, f"{READ_A}\n---\ntext: read\n---\n{WRITE_A}\n---\ntext: x", ContextSettings())
        await agent.run("Read a.txt.")
        agent.drop(next(item.seq for item in agent.plan().items if item.kind == "result"))
        await agent.run("Edit a.txt.")
        assert "read it with read_file before" in text_of(last_result(agent))
        assert (tmp_path / "a.txt").read_text().startswith("start")

    play(go)


def test_what_shows_a_file_as_it_was_is_marked() -> None:
    history = History(now_ms=Clock())
    history.configure("scripted", "", deployment="scripted")
    history.say(user("Read."))
    for number, (saw, wrote) in enumerate([(("/a", "/b"), ()), (("/c",), ()), (("/a",), ()), ((), ("/c",)), (("/d",), ())]):
        call = ToolCall(f"c{number}", "read_file", "{}")
        history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
        history.finish_tool(ToolResult(call.id, call.name, (Text("content"),)), saw=saw, wrote=wrote)
    agent = agent_of(model(answer("ok"), window=100_000), history)
    assert [item.since for item in agent.plan().items if item.kind == "result"] == ["read", "edited", "", "", ""]


def test_results_that_are_kept_go_last_when_the_window_is_too_small() -> None:
    from dragoman.context.compress import shrink

    agent = agent_of(model(answer("ok"), window=100_000), commands(Clock()))
    agent.keep(results(agent)["c0"])
    assert shrink(agent.history.view, 100).call_ids[0] == "c1"
    assert shrink(agent.history.view, 1e9).call_ids == (*(f"c{number}" for number in range(1, 8)), "c0")
