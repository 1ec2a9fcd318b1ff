"""What is outdated goes before a request is sent; and of what is no longer in view the tools know it, too."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from context.conversation import MINUTE, PRICED, Conversation
from dragoman.context.settings import ContextSettings, PruneRule, PruneSettings
from dragoman.context.view import PLACEHOLDER
from dragoman.loop.agent import Agent
from dragoman.loop.history import History
from dragoman.loop.model import Model
from dragoman.loop.session import Session
from dragoman.loop.upkeep import Upkeep
from dragoman.testing.script_steps import answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.events import ContextPruned, NoticeGiven, TurnEvent
from dragoman.values.messages import FinishReason, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.profile import Profile
from dragoman.values.record import Pruned
from dragoman.words import choose_language, speak_for_program
from loop.test_upkeep import HOUR_MS, SNAPSHOT, agent_of, entries, model, of
from scenarios.workshop import agent_for, events_of, play

# --- pruning ---------------------------------------------------------------------------------------------------------------------------


class Clock:
    """Time as a test tells it."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


def commands(clock: Clock, count: int = 9) -> History:
    history = History(now_ms=clock)
    history.configure("scripted", "", deployment="scripted")
    history.say(user("Run them."))
    for number in range(count):
        call = ToolCall(f"c{number}", "run_shell", '{"command": "make"}')
        history.answer(Response(assistant(call), FinishReason.TOOL_CALLS))
        history.finish_tool(ToolResult(call.id, "run_shell", (Text('{"stdout": "' + "o" * 400 + '", "stderr": "", "exitCode": 0}'),)))
    history.answer(Response(assistant("Ran them."), FinishReason.STOP))
    return history


def test_outdated_results_go_before_the_request_and_it_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """PRUNE-10: the log says how many, and what that saved; totals are kept."""

    async def go() -> None:
        clock = Clock()
        history = commands(clock)
        provider = model(answer(SNAPSHOT), window=1_000_000)
        agent = agent_of(provider, history)
        clock.ms += HOUR_MS
        run = agent.run("And?")
        events = await events_of(run)
        [told] = of(events, ContextPruned)
        [entry] = entries(agent, Pruned)
        assert told == ContextPruned(("c0", "c1", "c2", "c3"), entry.saved_tokens)
        assert entry.saved_tokens > 300
        sent = [result for message in provider.requests[0].messages for result in message.results]
        assert [result.content == (Text(PLACEHOLDER),) for result in sent] == [True] * 4 + [False] * 5

    with caplog.at_level(logging.INFO, "dragoman.context"):
        play(go)
    [line] = [record.getMessage() for record in caplog.records if record.name == "dragoman.context"]
    assert line.startswith("pruned 4 results, about ")
    assert "so far 4 results, about " in line


@pytest.mark.parametrize(("lang", "words"), [("en", "pruned 1 result, about "), ("zh", "精简了 1 个结果，约 ")])
def test_the_log_counts_one_result_as_one(lang: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    agent = agent_of(model(answer(SNAPSHOT), window=1_000_000), commands(clock, 6))
    clock.ms += HOUR_MS
    choose_language(lang)
    try:
        with caplog.at_level(logging.INFO, "dragoman.context"):
            assert agent.prune() == 1
    finally:
        choose_language("en")
    [line] = [record.getMessage() for record in caplog.records if record.name == "dragoman.context"]
    assert line.startswith(words)
    assert "1 results" not in line


def test_by_hand_whatever_the_schedule() -> None:
    clock = Clock()
    settings = ContextSettings(prune=PruneSettings(schedule="off"))
    agent = agent_of(model(answer(SNAPSHOT), window=1_000_000), commands(clock), settings)
    assert agent.prune() == 0, "nothing is outdated yet"
    clock.ms += HOUR_MS
    assert agent.prune() == 4
    assert agent.prune() == 0
    assert agent.history.view.pruned == {"c0", "c1", "c2", "c3"}


@pytest.mark.parametrize(
    ("in_program", "remedy"),
    [(False, "agent.prune() leaves them out now"), (True, "`dragoman context prune`, or /context prune in the conversation, does it now")],
)
def test_once_in_a_session_it_is_told_what_waits_and_how_it_goes_now(in_program: bool, remedy: str) -> None:
    """Outdated results that stay for the sake of a warm cache: a notice, when they make up a tenth of the request."""
    held = Conversation(ContextSettings())
    held.prompt("work")
    session = Session(held.history)
    session.model = Model(ScriptedProvider("text: x", profile=PRICED), "model")
    upkeep, events = Upkeep(session, held.settings), list[TurnEvent]()
    notices: list[int] = []
    speak_for_program(in_program)
    try:
        for _ in range(24):
            held.command(takes_ms=MINUTE)
            asyncio.run(upkeep.before_request(events.append))
            notices.append(len(of(events, NoticeGiven)))
    finally:
        speak_for_program(on=False)
    [told] = of(events, NoticeGiven)
    assert told.about == "context"
    assert told.message.startswith(f"{notices.index(1) + 1 - 16} outdated results are left out of ")
    assert "when they make up 25% of the request, or when the prompt cache is cold" in told.message
    assert remedy in told.message


def test_a_session_that_is_resumed_for_each_prompt_is_told_once_too() -> None:
    """It was told by every process: twenty times in forty minutes."""
    held, told = Conversation(ContextSettings()), list[int]()
    held.prompt("work")
    for minute in range(40):
        held.command(takes_ms=MINUTE)
        session, events = Session(History(entries=held.history.entries, now_ms=lambda: held.now_ms)), list[TurnEvent]()
        session.model = Model(ScriptedProvider("text: x", profile=PRICED), "model")
        asyncio.run(Upkeep(session, held.settings).before_request(events.append))
        told += [minute] * len(of(events, NoticeGiven))
    assert len(told) == 1
    assert held.pruned, "after it went, new results wait, of which nothing is said again"


@pytest.mark.parametrize("is_resumed", [True, False])
def test_a_clock_that_went_back_is_told_once_with_what_to_do(is_resumed: bool) -> None:
    held, events = Conversation(ContextSettings()), list[TurnEvent]()
    held.prompt("work")
    held.commands(2)
    if is_resumed:
        held.now_ms -= 90 * MINUTE
    session = Session(History(entries=held.history.entries, now_ms=lambda: held.now_ms))
    session.model = Model(ScriptedProvider("text: x", profile=PRICED), "model")
    upkeep = Upkeep(session, held.settings)
    if not is_resumed:
        asyncio.run(upkeep.before_request(events.append))
        assert events == []
        held.now_ms -= 90 * MINUTE
    for _ in range(3):
        asyncio.run(upkeep.before_request(events.append))
        session.history.say(user("and?"))  # dated by the clock as it is now
    [told] = of(events, NoticeGiven)
    assert re.match(r"this machine's clock says \d{4}-\d\d-\d\d \d\d:\d\d, but the newest entry of this session is of \d{4}-", told.message)
    assert told.message.endswith("nothing counts as outdated; set it right")


def test_switched_off_nothing_is_pruned() -> None:
    async def go() -> None:
        clock = Clock()
        settings = ContextSettings(prune=PruneSettings(schedule="off"))
        agent = agent_of(model(answer(SNAPSHOT), window=1_000_000), commands(clock), settings)
        clock.ms += HOUR_MS
        await agent.run("And?")
        assert not entries(agent, Pruned)

    play(go)


def test_a_plan_can_be_had_at_any_time() -> None:
    agent = agent_of(model(answer(SNAPSHOT)))
    assert agent.plan() is not None


# --- files that are no longer in view --------------------------------------------------------------------------------------------------

EVERYTHING = ContextSettings(prune=PruneSettings(schedule="request", rule=PruneRule(tools=("*",), age_ms=-1, keep=1)))


def files_agent(tmp_path: Any, script: str, context: ContextSettings | None = None, **options: Any) -> Agent:
    (tmp_path / "a.txt").write_text("start " + "alpha " * 30 + "\n")
    (tmp_path / "b.txt").write_text("start " + "beta " * 30 + "\n")
    profile = Profile(context_window=1_000_000)
    return agent_for(ScriptedProvider(script, profile=profile), builtin=True, workspace=tmp_path, ask=allow, context=context, **options)


async def allow(call: ToolCall, view: Intent) -> Allow | Deny:
    return Allow()


def last_result(agent: Agent) -> ToolResult:
    return agent.history.view.outcomes[-1].result


def text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))


READ_A, READ_B = 'call: read_file {"file_path": "a.txt"}', 'call: read_file {"file_path": "./b.txt"}'
EDIT_A = 'call: edit {"file_path": "a.txt", "old_string": "start", "new_string": "omega"}'
WRITE_A = 'call: write_file {"file_path": "a.txt", "content": "omega\\n"}'
LOOK = "call: list_directory {}"


@pytest.mark.parametrize(
    "read",
    [READ_A, 'call: read_many_files {"paths": ["a.txt"]}', 'call: read_many_files {"paths": ["*.txt"]}'],
    ids=["read_file", "by name", "by pattern"],
)
def test_what_was_pruned_must_be_read_again_before_it_is_replaced(tmp_path: Any, read: str) -> None:
    async def go() -> None:
        agent = files_agent(tmp_path, f"{read}\n---\n{LOOK}\n---\n{WRITE_A}\n---\ntext: x", EVERYTHING)
        await agent.run("Edit a.txt.")
        assert entries(agent, Pruned)
        refused = last_result(agent)
        assert refused.is_error
        assert "read it with read_file before" in text_of(refused)
        assert (tmp_path / "a.txt").read_text().startswith("start")

    play(go)


def test_what_is_still_in_view_need_not_be_read_again(tmp_path: Any) -> None:
    """One of two reads of the same file was pruned; the other stands."""

    async def go() -> None:
        agent = files_agent(tmp_path, f"{READ_A}\n---\n{READ_A}\n---\n{WRITE_A}\n---\ntext: x", EVERYTHING)
        await agent.run("Edit a.txt.")
        assert entries(agent, Pruned)
        assert not last_result(agent).is_error, text_of(last_result(agent))
        assert (tmp_path / "a.txt").read_text().startswith("omega")

    play(go)


SUPERSEDED = ContextSettings(prune=PruneSettings(schedule="request", rule=PruneRule(superseded=True, keep=1)))
PART_OF_A = 'call: read_file {"file_path": "a.txt", "offset": 1, "limit": 1}'


@pytest.mark.parametrize(("again", "may_replace"), [(READ_A, True), (PART_OF_A, False)])
def test_what_was_read_again_goes_and_the_guard_knows_what_is_left(tmp_path: Any, again: str, may_replace: bool) -> None:
    """The whole file, read again as a whole, is still known; read again in part, it is not."""

    async def go() -> None:
        agent = files_agent(tmp_path, f"{READ_A}\n---\n{EDIT_A}\n---\n{again}\n---\n{LOOK}\n---\n{WRITE_A}\n---\ntext: x", SUPERSEDED)
        (tmp_path / "a.txt").write_text("start " + "alpha " * 60 + "\nand more\n")
        await agent.run("Edit a.txt.")
        pruned = entries(agent, Pruned)[0]
        assert pruned.call_ids == (agent.history.view.outcomes[0].result.call_id,)
        shown = [part for message in agent.history.request.messages for part in message.results]
        assert "the result of read_file was removed to save room: call it again" in text_of(shown[0])
        last = last_result(agent)
        assert last.is_error is not may_replace, text_of(last)
        if not may_replace:
            assert "read only in part" in text_of(last)

    play(go)


def test_another_file_is_not_forgotten(tmp_path: Any) -> None:
    async def go() -> None:
        edit_b = EDIT_A.replace("a.txt", "b.txt")
        agent = files_agent(tmp_path, f"{READ_A}\n---\n{READ_B}\n---\n{edit_b}\n---\n{WRITE_A}\n---\ntext: x", EVERYTHING)
        await agent.run("Edit both.")
        results = [outcome.result for outcome in agent.history.view.outcomes]
        assert not results[2].is_error, text_of(results[2])
        assert results[3].is_error

    play(go)


def test_what_was_written_whole_is_known(tmp_path: Any) -> None:
    async def go() -> None:
        write = 'call: write_file {"file_path": "a.txt", "content": "start anew\\n"}'
        agent = files_agent(tmp_path, f"{READ_A}\n---\n{write}\n---\n{LOOK}\n---\n{LOOK}\n---\n{WRITE_A}\n---\ntext: x", EVERYTHING)
        await agent.run("Write and edit a.txt.")
        assert "c" not in agent.history.view.pruned
        assert not last_result(agent).is_error, text_of(last_result(agent))

    play(go)


def test_what_was_summed_up_must_be_read_again(tmp_path: Any) -> None:
    async def go() -> None:
        snapshot = SNAPSHOT.replace("\n", " ")
        script = (
            f"{READ_A}\n---\ntext: {' '.join(map(str, range(800)))}\n---\ntext: Hm.\n---\ntext: {snapshot}\n---\n{WRITE_A}\n---\ntext: x"
        )
        agent = files_agent(tmp_path, script)
        await agent.run("Read a.txt.")
        await agent.run("Talk.")
        assert agent._harness.seen.paths
        done = await agent.compress()
        assert done.status == "compressed", done
        assert not agent._harness.seen.paths
        await agent.run("Edit a.txt.")
        assert "read it with read_file before" in text_of(last_result(agent))

    play(go)
