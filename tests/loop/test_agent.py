"""The agent as an embedder holds it: from plain code, from async code, with another model, over many prompts."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents import make_agent
from destinations import MAIN, connection, violation_in
from dragoman.loop import background
from dragoman.loop.agent import Agent
from dragoman.loop.history import NOT_RUN, History
from dragoman.loop.options import Limits
from dragoman.providers.connect import connect
from dragoman.testing.journal import MemoryJournal
from dragoman.testing.mock.server import MockServer
from dragoman.testing.mock.validate import Rules
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.function import tool
from dragoman.values.errors import ConfigError, InputError, ServerError
from dragoman.values.events import ErrorRaised, TextDelta, ToolCallFinished, TurnFinished
from dragoman.values.messages import FinishReason, Message, Response, Settings, Text, Thinking, ToolCall, assistant, user
from dragoman.values.notes import GREETING
from dragoman.values.parts import INTERRUPTED
from dragoman.values.profile import Profile
from dragoman.values.record import Configured, ModelChanged, Said, ToolFinished, ToolStarted
from dragoman.values.usage import Prices
from program import heeding_ctrl_c
from scenarios.workshop import PlainTool, agent_for, check_record, events_of, forever, play

ONE_CALL = 'call: look {"what": "a"}\n---\ntext: Done.'


@pytest.fixture
def agents() -> Iterator[list[Agent]]:
    """Agents put in here are closed when the test ends."""
    made: list[Agent] = []
    yield made
    for agent in made:
        agent.close()
    gc.collect()  # a task left behind would speak up now


# --- from plain code ----------------------------------------------------------------------------------------------------------------


def test_plain_code_asks_and_gets_the_result(agents: list[Agent]) -> None:
    agents.append(agent := agent_for("text: One.\n---\ntext: Two."))
    assert agent.run_sync("a").text == "One."
    assert agent.run_sync("b").text == "Two."
    assert [message.text for message in agent.history.view.messages] == ["a", "One.", "b", "Two."]


def test_plain_code_gets_the_error_raised(agents: list[Agent]) -> None:
    agents.append(agent := agent_for("error: 500\n---\ntext: At last."))
    with pytest.raises(ServerError):
        agent.run_sync("a")
    assert agent.run_sync("a").text == "At last."


def test_plain_code_gets_events_as_they_come(agents: list[Agent]) -> None:
    agents.append(agent := agent_for("text piece=2: Hello.\nstall\n---\ntext: Again."))
    seen: list[str] = []
    for event in agent.stream_sync("a"):
        if isinstance(event, TextDelta):
            seen.append(event.text)
        if "".join(seen) == "Hello.":
            break  # the rest never comes
    assert seen == ["He", "ll", "o."]


def test_streaming_tells_failures_as_its_last_event(agents: list[Agent]) -> None:
    agents.append(agent := agent_for("error: 500"))
    events = list(agent.stream_sync("a"))
    assert isinstance(events[-1], ErrorRaised)


def test_leaving_the_stream_early_ends_the_run(agents: list[Agent]) -> None:
    tool = PlainTool(act=forever)
    agents.append(agent := agent_for(ONE_CALL, tool))
    for event in agent.stream_sync("a"):
        if isinstance(event, TurnFinished):
            break
    assert agent.run_sync("b").text == "Done.", "the next may begin at once"
    check_record(agent.history)


def test_ctrl_c_in_plain_code_ends_the_run_and_comes_through(agents: list[Agent]) -> None:
    tool = PlainTool(act=forever)
    agents.append(agent := agent_for(ONE_CALL, tool))

    def press() -> None:
        while not tool.asked:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with heeding_ctrl_c(), pytest.raises(KeyboardInterrupt):
        agent.run_sync("a")
    assert agent.run_sync("b").text == "Done."
    check_record(agent.history)


def test_ctrl_c_before_the_waiting_begins_ends_the_run_too(agents: list[Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the run may be far along by the time the one who asked for it gets to wait."""
    tool = PlainTool(act=forever)
    agents.append(agent := agent_for(ONE_CALL, tool))
    begin = background._begin

    def begin_and_be_interrupted(*args: Any) -> None:
        begin(*args)
        monkeypatch.undo()
        while not tool.asked:
            time.sleep(0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(background, "_begin", begin_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        agent.run_sync("a")
    assert agent.run_sync("b").text == "Done."
    check_record(agent.history)


def test_an_empty_prompt_is_refused_in_plain_code_too(agents: list[Agent]) -> None:
    agents.append(agent := agent_for("text: a"))
    with pytest.raises(InputError, match="prompt is empty"):
        agent.run_sync("  ")
    with pytest.raises(InputError, match="prompt is empty"):
        list(agent.stream_sync(""))


def test_it_may_be_called_where_a_loop_is_running(agents: list[Agent]) -> None:
    """As in a notebook: the thread has a loop, and run_sync does not need it."""
    agents.append(agent := agent_for("text: One.\n---\ntext: Two."))

    async def go() -> None:
        assert agent.run_sync("a").text == "One."
        assert isinstance(list(agent.stream_sync("b"))[-1], TurnFinished)

    play(go)


def test_several_threads_may_have_an_agent_each(agents: list[Agent]) -> None:
    made = [agent_for(f"text: {number}") for number in range(4)]
    agents += made
    results: dict[int, str] = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: made[n].run_sync("a").text})) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: str(number) for number in range(4)}


def test_closing_ends_a_run_that_is_under_way_and_its_thread() -> None:
    tool = PlainTool(act=forever)
    agent = agent_for(ONE_CALL, tool)
    events = agent.stream_sync("a")
    next(events)
    before = threading.active_count()
    agent.close()  # the tool goes on for ever
    assert threading.active_count() < before
    events.close()  # type: ignore[attr-defined]
    agent.close()
    gc.collect()


def test_closing_what_never_ran_is_fine() -> None:
    agent_for("text: a").close()


class Watched(ScriptedProvider):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def test_what_is_no_provider_is_refused_with_words() -> None:
    class Echo:
        name = "echo"

    with pytest.raises(InputError, match=r"an Echo is neither the name of a model nor a dragoman\.Provider"):
        make_agent(Echo())


def test_plain_code_may_use_a_block_too(tmp_path: Path) -> None:
    with make_agent(ScriptedProvider("text: Ahoy."), workspace=tmp_path, sessions=tmp_path / "sessions") as agent:
        assert agent.run_sync("hi").text == "Ahoy."
        assert any(thread.name == "dragoman" for thread in threading.enumerate())
    assert not any(thread.name == "dragoman" for thread in threading.enumerate())
    with make_agent(None, workspace=tmp_path, sessions=tmp_path / "sessions", resume="latest", connect=lambda *_: ScriptedProvider("")):
        pass  # one that was never asked closes its log as well


def test_a_block_closes_what_the_agent_connected() -> None:
    async def go() -> None:
        made = [Watched("text: Hello."), Watched("text: Good day.")]
        left = iter(made)
        async with make_agent("a/b", connect=lambda model, blobs: next(left), describe=False, builtin=False) as agent:
            assert (await agent.run("hi")).text == "Hello."
            agent.change_model("c/d")
            assert (await agent.run("hi")).text == "Good day."
        assert [each.closed for each in made] == [1, 1]

    play(go)


def test_a_provider_that_was_given_serves_other_agents_after_one_is_closed() -> None:
    async def go() -> None:
        provider = Watched(("text: Hello.\n---\n" * 3).removesuffix("---\n"))
        for _ in range(3):
            async with agent_for(provider) as agent:
                assert (await agent.run("hi")).text == "Hello."
        assert provider.closed == 0

    play(go)


# --- own tools ------------------------------------------------------------------------------------------------------------------------


def test_a_function_is_a_tool_and_runs_unasked() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def go() -> None:
        agent = agent_for('call: add {"a": 2, "b": 3}\n---\ntext: Five.', add)  # type: ignore[arg-type]
        events = await events_of(agent.run("add"))
        (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
        assert finished.error == ""
        assert agent.history.view.messages[-2].results[0].content == (Text("5"),)

    play(go)


def test_a_function_that_runs_commands_is_asked_for() -> None:
    ran: list[str] = []

    @tool(kind="execute")
    def launch(what: str) -> str:
        """Launch it."""
        ran.append(what)
        return "launched"

    async def go() -> None:
        agent = agent_for('call: launch {"what": "rockets"}\n---\ntext: No.', launch)  # type: ignore[arg-type]
        assert (await agent.run("go")).tool_failures == 1
        assert ran == []

    play(go)


def test_what_has_effects_is_on_the_record_before_it_runs() -> None:
    """ARCHITECTURE 5: a tool that is not read-only is marked started, and synced, before it runs."""

    async def go() -> None:
        journal = MemoryJournal()
        synced: list[bool] = []

        @tool
        def act() -> str:
            """Act."""
            synced.append(any(isinstance(entry, ToolStarted) for entry in journal.entries[: journal.synced]))
            return "done"

        agent = agent_for("call: act {}\n---\ntext: Done.", act, history=History(journal))  # type: ignore[arg-type]
        await agent.run("go")
        assert synced == [True]
        assert journal.entries == agent.history.entries
        assert journal.synced == len(journal.entries)

    play(go)


def test_names_that_are_no_builtin_tool_are_refused() -> None:
    with pytest.raises(InputError, match="no built-in tool called 'red_file'"):
        agent_for("text: a", builtin=["red_file"])


def test_builtin_tools_may_be_chosen() -> None:
    agent = agent_for("text: a", builtin=["read_file", "grep"])
    assert agent.tools.names == ("read_file", "grep")


def test_the_fixed_part_of_a_first_request_is_small(tmp_path: Path) -> None:
    """System prompt, tools and environment in at most 4,000 tokens."""

    async def go() -> None:
        for name in "abcdefgh":
            (tmp_path / f"{name}.txt").write_text(name)
        provider = ScriptedProvider("text: Hello.")
        await make_agent(provider, workspace=tmp_path).run("hi")
        for name in MAIN:
            where = connection(name)
            body = where.prepare(msgspec.structs.replace(provider.requests[0], model=where.model)).body
            assert violation_in(where, body) is None
            assert len(body) / 4 <= 4_000, f"{name}: {len(body)} bytes"

    play(go)


# --- many prompts -----------------------------------------------------------------------------------------------------------------------


def test_the_environment_is_told_once() -> None:
    async def go() -> None:
        provider = ScriptedProvider("error: 500\n---\ntext: One.\n---\ntext: Two.")
        agent = agent_for(provider, describe=True, memory=[("AGENTS.md", "Be kind.")])
        with pytest.raises(ServerError):
            await agent.run("a")
        await agent.run("a")
        await agent.run("b")
        texts = [message.text for message in provider.requests[-1].messages]
        assert [text.startswith(GREETING) for text in texts] == [True, False, False, False]
        assert "Be kind." in texts[0]
        assert os.getcwd() in texts[0]

    play(go)


def test_what_holds_is_written_down_only_where_it_changed() -> None:
    async def go() -> None:
        agent = agent_for("text: a")
        for number in range(3):
            await agent.run(f"prompt {number}")
        assert len([entry for entry in agent.history.entries if isinstance(entry, Configured)]) == 1
        agent.tools.register(PlainTool("another"))
        await agent.run("with another tool")
        agent.settings = Settings(temperature=0.5)
        await agent.run("with other settings")
        await agent.run("and again")
        configured = [entry for entry in agent.history.entries if isinstance(entry, Configured)]
        assert [(len(entry.tools), entry.settings.temperature) for entry in configured] == [(0, None), (1, None), (1, 0.5)]
        assert len({entry.session_id for entry in configured}) == 1

    play(go)


@pytest.mark.parametrize("name", MAIN)
def test_each_request_begins_with_the_one_before(name: str) -> None:
    """ARCHITECTURE 2: prompt caches hold from turn to turn, over prompts, failures and tool rounds."""

    async def go() -> None:
        calls = 'call: look {"what": "a"}\ncall: look {"what": "b"}'
        script = f"text: Let me.\n{calls}\n---\n{calls}\n---\ntext: One.\n---\nerror: 400\n---\ntext: Two."
        where = connection(name)
        provider = ScriptedProvider(script, name=where.name, model=where.model)
        agent = agent_for(provider, PlainTool(), describe=True, system="Be brief.")
        await agent.run("first")
        with pytest.raises(Exception):  # noqa: B017
            await agent.run("second")
        await agent.run("second")
        bodies = [msgspec.json.decode(where.prepare(request).body) for request in provider.requests]
        assert len(bodies) == 5
        for before, after in pairwise(bodies):
            assert violation_in(where, msgspec.json.encode(after)) is None
            for field in ("contents", "messages", "input"):
                if field in before:
                    assert _plain(after[field])[: len(before[field])] == _plain(before[field])
            fixed = {key: value for key, value in before.items() if key not in ("contents", "messages", "input")}
            assert fixed == {key: value for key, value in after.items() if key in fixed}

    play(go)


def _plain(messages: list[object]) -> object:
    """Without cache markers, which move to the end of each request."""
    match messages:
        case list():
            return [_plain(each) for each in messages]  # type: ignore[arg-type]
        case dict():
            return {key: _plain(value) for key, value in messages.items() if key != "cache_control"}
        case _:
            return messages


def test_a_prompt_may_hold_more_than_text() -> None:
    async def go() -> None:
        agent = agent_for("text: A picture.")
        picture = agent.blobs.put("image/png", b"\x89PNG\r\n\x1a\n" + bytes(20))
        await agent.run(["What is this?", picture])
        assert agent.history.view.messages[0].parts == (Text("What is this?"), picture)

    play(go)


@pytest.mark.parametrize("prompt", ["", " \n", [], [""]])
def test_an_empty_prompt_is_refused(prompt: str | list[str]) -> None:
    with pytest.raises(InputError, match="say what you want"):
        agent_for("text: a").run(prompt)


def test_a_conversation_may_be_taken_up_again() -> None:
    async def go() -> None:
        first = agent_for("text: One.\n---\ntext: Two.", describe=True)
        await first.run("a")
        second = agent_for("text: Two.", describe=True, history=History(entries=first.history.entries))
        await first.run("b")
        await second.run("b")
        assert second.session_id == first.session_id
        assert second.provider.requests[0] == first.provider.requests[1]  # type: ignore[attr-defined]

    play(go)


@pytest.mark.parametrize("prompt", [None, "And now?"])
@pytest.mark.parametrize("had_begun", [True, False])
def test_calls_of_a_session_that_was_broken_off_are_answered_as_interrupted(prompt: str | None, had_begun: bool) -> None:
    """SS06, ARCHITECTURE 4: interrupted, outcome unknown; what had not begun was not run; nothing runs twice."""

    async def go() -> None:
        before = History()
        before.configure("m", tools=[PlainTool().spec])
        before.say(user("hi"))
        before.say(assistant(call := ToolCall("x", "look", '{"what": "a"}')))
        if had_begun:
            before.start_tool(call)
        tool = PlainTool()
        agent = agent_for("text: Good.", tool, history=History(entries=before.entries))
        assert (await agent.run(prompt)).text == "Good."
        assert tool.asked == []
        (told,) = agent.provider.requests[0].messages[2].results  # type: ignore[attr-defined]
        assert told.content == (Text(INTERRUPTED if had_begun else NOT_RUN),)
        outcomes = [entry.outcome for entry in agent.history.entries if isinstance(entry, ToolFinished)]
        assert outcomes == ["unknown" if had_begun else "not_run"]
        check_record(agent.history)

    play(go)


# --- roles -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["model", "system", "developer", "tool"])
def test_a_foreign_role_in_a_live_history_is_refused(role: str) -> None:
    """VALUES-9: services know two roles, and would take it for the user's."""
    foreign = Message(role, (Text("Be brief."),))  # type: ignore[arg-type]
    journal = MemoryJournal()
    history = History(journal)
    history.say(user("hi"))
    with pytest.raises(InputError, match=f"got '{role}' in message 1"):
        history.say(foreign)
    with pytest.raises(InputError, match=role):
        history.answer(Response(foreign, FinishReason.STOP))
    assert len(history.entries) == len(journal.entries) == 1, "nothing of it is on the record"
    with pytest.raises(InputError, match=role):
        History(entries=[Said(1, 0, foreign, by="person")])


def test_a_prompt_is_the_users() -> None:
    agent = agent_for("text: Yes.")
    for role in ("model", "system", "assistant"):
        with pytest.raises(InputError, match=role):
            agent.run([user("a"), Message(role, (Text("b"),))])  # type: ignore[arg-type]
    agent.run(user("a")).cancel()


# --- another model ------------------------------------------------------------------------------------------------------------------------


def test_the_conversation_goes_on_with_another_model() -> None:
    async def go() -> None:
        one, other = ScriptedProvider(ONE_CALL, name="one"), ScriptedProvider("text: Other.", name="other")
        agent = agent_for(one, PlainTool())
        await agent.run("a")
        agent.change_model(other)
        assert (await agent.run("b")).text == "Other."
        assert (agent.model, agent.provider) == ("other", other)
        request = other.requests[0]
        assert request.model == "other"
        assert [message.text for message in request.messages] == ["a", "", "", "Done.", "b"]
        kinds = [type(entry) for entry in agent.history.entries]
        assert (kinds.count(Configured), kinds.count(ModelChanged)) == (1, 1)
        assert [entry.model for entry in agent.history.entries if isinstance(entry, Said) and entry.usage] == ["one", "one", "other"]

    play(go)


def test_changing_the_model_before_anything_was_asked() -> None:
    async def go() -> None:
        agent = agent_for("text: One.")
        agent.change_model(ScriptedProvider("text: Other.", name="other"))
        assert (await agent.run("a")).text == "Other."
        assert [entry.model for entry in agent.history.entries if isinstance(entry, Configured)] == ["other"]

    play(go)


def test_a_model_changed_in_the_middle_of_a_run_gives_the_next_answer() -> None:
    async def go() -> None:
        one, other = ScriptedProvider(ONE_CALL, name="one"), ScriptedProvider("text: Other.", name="other")

        async def switch(args: object, show: object) -> str:
            agent.change_model(other)
            return "switched"

        agent = agent_for(one, PlainTool(act=switch))  # type: ignore[arg-type]
        assert (await agent.run("a")).text == "Other."
        assert [request.model for request in other.requests] == ["other"]
        check_record(agent.history)

    play(go)


def test_a_name_that_is_no_model_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"gemini/gemini-3\.8-flash"):
        make_agent("gemini-3.8-flush")


def test_prices_are_those_of_the_model_that_answered() -> None:
    async def go() -> None:
        dear, cheap = Profile(prices=Prices(input=2_000_000, output=0)), Profile(prices=Prices(input=1_000_000, output=0))
        answer = "usage: fresh=10\ntext: a"
        agent = agent_for(ScriptedProvider(answer, name="dear", profile=dear))
        assert (await agent.run("a")).cost_usd == pytest.approx(20)
        agent.change_model(ScriptedProvider(answer, name="cheap", profile=cheap))
        assert (await agent.run("b")).cost_usd == pytest.approx(10)

    play(go)


def test_after_a_change_of_model_the_whole_session_has_a_price() -> None:
    """Also where both providers have the same name: the first model's prices are not looked for at the second one's."""

    async def go() -> None:
        answer = "usage: fresh=10\ntext: a"
        known = {"dear": Profile(prices=Prices(input=2_000_000, output=0)), "cheap": Profile(prices=Prices(input=1_000_000, output=0))}
        dear, cheap = (
            ScriptedProvider(answer, name="own", model=model, profiles={model: profile}, profile=Profile(known=False))
            for model, profile in known.items()
        )
        agent = agent_for(dear)
        await agent.run("a")
        agent.change_model(cheap)
        await agent.run("b")
        assert agent.cost_usd(agent.history.entries) == pytest.approx(30)
        assert agent.plan().costs.spent_usd == pytest.approx(30)
        assert agent.plan().costs.spent_is_whole

    play(go)


@pytest.mark.parametrize("order", [("gemini", "anthropic", "openai_chat", "openai_responses"), ("openai_responses", "gemini", "anthropic")])
def test_the_model_is_changed_between_services_with_calls_in_the_history(order: tuple[str, ...]) -> None:
    """Over real HTTP; each service checks each request."""
    round_trip = 'thought signature="c2lnbmVk": Hm.\ntext: Let me look.\ncall: look {"what": "a"}\n---\ntext: Seen.'

    async def go() -> None:
        async with MockServer(scripts={name: "\n---\n".join([round_trip] * 3) for name in order}) as server:
            first, *others = [connection(name, f"{server.url}/s/{name}{_path(name)}") for name in order]
            agent = agent_for(first, PlainTool())
            await agent.run("prompt 0")
            for number, other in enumerate([*others, first], 1):
                agent.change_model(other)
                assert (await agent.run(f"prompt {number}")).text == "Seen."
            assert [exchange.violation for exchange in server.requests] == [None] * len(server.requests)
            assert [exchange.protocol for exchange in server.requests][::2] == [*order, order[0]]
            check_record(agent.history)
            for each in (first, *others):
                await each.aclose()

    play(go)


@pytest.mark.parametrize("model", ["google/gemini-4-argon", "anthropic/claude-sonnet-5.5"])
def test_a_tool_loop_behind_openrouter_keeps_the_reasoning_of_the_model(model: str) -> None:
    """The service knows its signatures and refuses any other; each request brings back those of all earlier steps."""
    steps = [
        'thought signature="b25l" piece=3: Let me look.\ncall id=c1: look {"what": "a"}',
        'thought signature="dHdv":\ncall id=c2: look {"what": "b"}',
        "text: Seen.",
    ]
    rules = Rules(
        service="openrouter",
        reasoning_field="reasoning_details",
        reasoning_back="always",
        empty_text_refused=True,
        known_signatures=frozenset({"b25l", "dHdv"}),
    )

    async def go() -> None:
        async with MockServer("\n---\n".join(steps), rules=rules) as server:
            provider = connect(f"openrouter/{model}", key="k", env={}, base_url=f"{server.url}/v1")
            agent = agent_for(provider, PlainTool(), settings=Settings(thinking=Thinking("high")))
            assert (await agent.run("Look.")).text == "Seen."
            assert [exchange.violation for exchange in server.requests] == [None] * 3
            said = [message for message in server.requests[-1].body["messages"] if message["role"] == "assistant"]
            signed = [[each.get("signature") or each["data"] for each in message["reasoning_details"]] for message in said]
            assert signed == [["b25l"], ["dHdv"]]
            assert said[0]["reasoning_details"][0]["text"] == "Let me look."
            await provider.aclose()

    play(go)


def test_a_call_that_groq_refuses_does_not_end_the_run() -> None:
    """The model is told what was wrong, and calls again."""
    script = 'error: 400 code=tool_use_failed "Tool call validation failed"\n---\ncall: look {"what": "a"}\n---\ntext: Seen.'

    async def go() -> None:
        async with MockServer(script, rules=Rules(service="groq")) as server:
            provider = connect("groq/openai/gpt-oss-120b", key="k", env={}, base_url=f"{server.url}/v1")
            agent = agent_for(provider, PlainTool())
            assert (await agent.run("Look.")).text == "Seen."
            assert "Tool call validation failed" in str(server.requests[1].body["messages"][-1])
            await provider.aclose()

    play(go)


def _path(name: str) -> str:
    return "/v1" if name.startswith("openai") else ""


def test_limits_reach_the_tools() -> None:
    async def long(args: object, show: object) -> str:
        return "x" * 50_000

    async def go() -> None:
        agent = agent_for(ONE_CALL, PlainTool(act=long), limits=Limits(max_output_chars=2_000))  # type: ignore[arg-type]
        await agent.run("hi")
        told = agent.history.view.messages[-2].results[0].content[0].text  # type: ignore[union-attr]
        assert len(told) < 3_000

    play(go)


def test_the_connection_opens_while_the_request_is_made() -> None:
    class Eager(ScriptedProvider):
        def __init__(self, script: str) -> None:
            super().__init__(script)
            self.requests_then: list[int] = []

        async def preconnect(self) -> None:
            self.requests_then.append(len(self.requests))

    async def go() -> None:
        provider = Eager("text: a\n---\ntext: b")
        agent = agent_for(provider)
        await agent.run("a")
        await agent.run("b")
        assert provider.requests_then == [0]

    play(go)


def test_a_message_is_a_prompt_too() -> None:
    async def go() -> None:
        agent = agent_for("text: a")
        await agent.run(user("hello"))
        assert agent.history.view.messages[0] == user("hello")

    play(go)
