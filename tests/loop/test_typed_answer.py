"""Runs that end with a value of a type: over all four protocols, bound to a schema, with a tool, and with tools as text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec
import pytest

from agents import make_agent
from destinations import MAIN, connection, rules_of
from dragoman.base import jsontext
from dragoman.loop.agent import Agent
from dragoman.providers.connect import connect
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script_steps import CallStep, ScriptedAnswer, answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.text_tools.options import TextOptions
from dragoman.text_tools.render import render_call
from dragoman.typed_output.asking import output_request
from dragoman.typed_output.wire_form import wire_form
from dragoman.values.contracts import Provider
from dragoman.values.errors import InputError, OutputInvalid, OutputLimit
from dragoman.values.events import OutputUpdated, ToolCallFinished, TurnFinished
from dragoman.values.messages import FinishReason, Settings, ToolCall
from dragoman.values.profile import Deployment, Profile
from dragoman.values.record import Configured, Said
from dragoman.values.typed import typed
from dragoman.values.wrapping import WrappingProvider
from scenarios.workshop import QUICK, PlainTool, agent_for, check_record, events_of, play

Way = Literal["bound", "tool", "text"]
WAYS: tuple[Way, ...] = ("bound", "tool", "text")
BASE = {"gemini": "", "anthropic": "", "openai_chat": "/v1", "openai_responses": "/v1"}
SERVICE: dict[str, Any] = {"gemini": "gemini", "anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "openai"}


class Harbour(msgspec.Struct):
    name: str
    depth_m: float
    berths: dict[str, int] = {}


MUSCAT = Harbour("Muscat", 13.5, {"north": 2})
PLAIN = msgspec.to_builtins(MUSCAT)


class Unbound(WrappingProvider):
    """A service that cannot be bound to a schema."""

    def profile(self, model: str) -> Profile:
        return msgspec.structs.replace(self.provider.profile(model), json_schema=False)


def step(call: ToolCall) -> CallStep:
    return CallStep(call.name, call.arguments, piece_chars=5)


def answers(values: Sequence[Any], way: Way, protocol: str, name: str = "final_answer") -> list[ScriptedAnswer]:
    """What a model says that gives these values, one after the other; a text is said as it is."""
    return [_answer(value, way, protocol, name) for value in values]


def _answer(value: Any, way: Way, protocol: str, name: str) -> ScriptedAnswer:
    if isinstance(value, str):
        return answer(value)
    if way == "bound":
        return answer(jsontext.dumps(wire_form(typed(Harbour).schema, SERVICE[protocol]).to_wire(value)))
    call = ToolCall("1", name, jsontext.dumps(value))
    return answer(step(call)) if way == "tool" else answer(render_call(call))


@asynccontextmanager
async def typed_agent(protocol: str, way: Way, script: Any, folder: Path, **options: Any) -> AsyncGenerator[tuple[Agent, MockServer], None]:
    known = connection(protocol)
    deployment: Any = known.provider.deployment  # type: ignore[attr-defined]
    async with MockServer(script, rules=rules_of(deployment, known.profile(known.model))) as server:
        provider: Provider = connection(protocol, server.url + BASE[protocol])
        provider = Unbound(provider) if way == "tool" else provider
        settled: dict[str, Any] = {"builtin": False, "describe": False, "system": "", "workspace": folder, "limits": QUICK}
        calling = {"calling": "text", "text": TextOptions()} if way == "text" else {}
        async with make_agent(provider, **(settled | calling | options)) as agent:
            yield agent, server
        assert [exchange.violation for exchange in server.requests if exchange.violation] == []


@pytest.mark.parametrize("has_tools", [False, True], ids=["alone", "with tools"])
@pytest.mark.parametrize("misses", [0, 2, 3])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protocol", MAIN)
def test_a_run_ends_with_a_value_of_the_type(protocol: str, way: Way, misses: int, has_tools: bool, tmp_path: Path) -> None:
    """What does not fit is told back, twice at most; then the run fails."""
    wrong = [{"name": "Muscat", "depth_m": "deep", "berths": {}}, "It is Muscat.", {"name": "Muscat", "berths": {}}]
    values = [*wrong[:misses], PLAIN]

    async def go() -> None:
        tools = [PlainTool("look")] if has_tools else []
        async with typed_agent(protocol, way, answers(values, way, protocol), tmp_path, tools=tools) as (agent, server):
            run = agent.run("Which harbour?", output=Harbour)
            if misses <= 2:
                result = await run
                assert result.output == MUSCAT
                assert len(server.requests) == misses + 1
            else:
                with pytest.raises(OutputInvalid, match="in 3 tries"):
                    await run
                assert run.result.exit_code == 61
                assert run.result.output is None
            assert [spec.name for spec in agent.tools.specs] == (["look"] if has_tools else []), "the tool was there for this run alone"
            check_record(agent.history)
            view = agent.history.view
            assert bool(view.settings.response_schema) == (way == "bound")
            assert ("final_answer" in [spec.name for spec in view.tools]) == (way != "bound")

    play(go)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protocol", MAIN)
def test_other_tools_are_called_first_and_the_next_run_is_asked_for_text(protocol: str, way: Way, tmp_path: Path) -> None:
    look = PlainTool("look")
    call = ToolCall("0", "look", '{"what":"quay"}')
    first = answer(render_call(call)) if way == "text" else answer(step(call))

    async def go() -> None:
        script = [first, *answers([PLAIN], way, protocol), answer("At the quay.")]
        async with typed_agent(protocol, way, script, tmp_path, tools=[look], approval="plan") as (agent, _):
            assert (await agent.run("Which harbour?", output=Harbour)).output == MUSCAT
            assert look.asked == [{"what": "quay"}]
            result = await agent.run("And where is it?")
            assert (result.text, result.output) == ("At the quay.", "At the quay.")
            assert agent.history.view.settings == Settings()
            assert [spec.name for spec in agent.history.view.tools] == ["look"]
            check_record(agent.history)

    play(go)


@pytest.mark.parametrize("way", ["bound", "tool"])
@pytest.mark.parametrize("protocol", MAIN)
def test_a_resumed_session_sends_the_same_bytes(protocol: str, way: Way, tmp_path: Path) -> None:
    async def go() -> None:
        script = answers([PLAIN], way, protocol)
        async with typed_agent(protocol, way, script, tmp_path, sessions=tmp_path / "sessions") as (agent, server):
            await agent.run("Which harbour?", output=Harbour)
            request, provider = agent.history.request, agent.provider
            await agent.aclose()
            again = make_agent(provider, sessions=tmp_path / "sessions", resume=agent.session_id, builtin=False, describe=False, system="")
            assert again.history.request == request
            body = provider.prepare(again.history.request).body
            assert body == provider.prepare(request).body
            assert body.count(b'"depth_m"') > 1, "the schema, and the answer"
            await again.aclose()
            sent = _beside_messages(server.requests[0].body)
            assert _beside_messages(jsontext.decode(body)) == sent

    play(go)


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses"])
def test_openai_is_bound_strictly(protocol: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with typed_agent(protocol, "bound", answers([PLAIN], "bound", protocol), tmp_path) as (agent, server):
            await agent.run("Which harbour?", output=Harbour)
            body = server.requests[0].body
        form = body["response_format"]["json_schema"] if protocol == "openai_chat" else body["text"]["format"]
        assert form["strict"] is True

    play(go)


def _beside_messages(body: dict[str, Any]) -> dict[str, Any]:
    """Without the choice of a tool too: as soon as the model has called, it may choose."""
    return {key: value for key, value in body.items() if key not in ("messages", "input", "contents", "tool_choice", "toolConfig")}


@pytest.mark.parametrize(("in_process", "has_tools", "is_bound"), [(True, False, True), (True, True, False), (False, False, False)])
def test_a_model_with_tools_as_text_is_bound_where_our_own_engine_serves_it(in_process: bool, has_tools: bool, is_bound: bool) -> None:
    class AsText(WrappingProvider):
        dialect = "fenced_json"  # type: ignore[assignment]

        @property
        def deployment(self) -> Deployment:
            known = self.provider.deployment
            assert known is not None
            return msgspec.structs.replace(known, in_process=in_process)

    asked = output_request(typed(Harbour), AsText(connection("openai_chat")), MAIN["openai_chat"].partition("/")[2], has_tools=has_tools)
    assert asked.is_bound is is_bound


def test_the_way_is_chosen_anew_where_another_model_goes_on(tmp_path: Path) -> None:
    async def go() -> None:
        async with typed_agent("openai_chat", "bound", [answer("no JSON")], tmp_path) as (agent, _):
            second = ScriptedProvider(answers([PLAIN], "tool", ""))
            async with agent.run("Which harbour?", output=Harbour) as run:
                async for event in run:
                    if isinstance(event, TurnFinished) and agent.provider is not second:
                        agent.change_model(second)
            assert run.result.output == MUSCAT
            configured = [entry for entry in agent.history.entries if isinstance(entry, Configured)]
            assert [bool(entry.settings.response_schema) for entry in configured] == [True, False]
            assert [spec.name for spec in second.requests[0].tools] == ["final_answer"]

    play(go)


def test_a_fallback_is_asked_in_its_own_way(tmp_path: Path) -> None:
    """The service of the first model is bound to the schema; the second one is given a tool."""
    second = said(("final_answer", PLAIN))

    async def go() -> None:
        script = "answer: times=9\nerror: 429 quota_id=GenerateRequestsPerDayPerProjectPerModel-FreeTier"
        async with typed_agent("gemini", "bound", script, tmp_path, fallback=[second]) as (agent, server):
            assert (await agent.run("Which harbour?", output=Harbour)).output == MUSCAT
            assert "responseJsonSchema" in str(server.requests[0].body)
        assert [spec.name for spec in second.requests[0].tools] == ["final_answer"]
        assert second.requests[0].settings.response_schema == ""

    play(go)


def test_a_model_that_turns_out_to_write_calls_as_text_is_told_of_the_tool_in_text(tmp_path: Path) -> None:
    look, call = PlainTool("look"), ToolCall("0", "look", '{"what":"quay"}')
    script = [answer(render_call(call, "hermes"))]
    script.append(answer(render_call(ToolCall("1", "final_answer", jsontext.dumps(PLAIN)), "hermes")))

    async def go() -> None:
        async with MockServer(script) as server:
            provider = connect("vllm/any-model", key="key-for-tests", base_url=server.url + "/v1", env={})
            async with make_agent(provider, tools=[look], builtin=False, describe=False, system="", limits=QUICK) as agent:
                assert (await agent.run("Which harbour?", output=Harbour)).output == MUSCAT
            assert "response_format" in server.requests[0].body
            assert "response_format" not in server.requests[-1].body
            assert "final_answer" in str(server.requests[-1].body["messages"])
        assert look.asked == [{"what": "quay"}]

    play(go)


# --- kinds of types


@dataclass
class Ship:
    name: str


@dataclass
class Port:
    name: str


class Tide(TypedDict):
    high: list[str]


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def said(*calls: tuple[str, Any] | str) -> ScriptedProvider:
    made = [answer(each) if isinstance(each, str) else answer(step(ToolCall("1", each[0], jsontext.dumps(each[1])))) for each in calls]
    return ScriptedProvider(made)


@pytest.mark.parametrize(
    ("output", "written", "value"),
    [
        (Ship, {"name": "Dhow"}, Ship("Dhow")),
        (Tide, {"high": ["04:05"]}, {"high": ["04:05"]}),
        (list[Ship], {"result": [{"name": "Dhow"}]}, [Ship("Dhow")]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (int | None, {"result": None}, None),
        (SCHEMA, {"n": 3}, {"n": 3}),
    ],
)
def test_types_of_every_kind(output: Any, written: Any, value: Any) -> None:
    async def go() -> None:
        async with agent_for(said(("final_answer", written))) as agent:
            assert (await agent.run("go", output=output)).output == value

    play(go)


def test_a_union_of_classes_is_a_tool_for_each() -> None:
    async def go() -> None:
        async with agent_for(said(("final_answer_2", {"name": "Muscat"}))) as agent:
            assert (await agent.run("go", output=Ship | Port)).output == Port("Muscat")

    play(go)


def test_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Berth(pydantic.BaseModel):
        number: int = pydantic.Field(gt=0)

        @pydantic.field_validator("number")
        @classmethod
        def is_free(cls, number: int) -> int:
            if number == 13:
                raise ValueError("berth 13 is taken")
            return number

    async def go() -> None:
        model = said(("final_answer", {"number": 13}), ("final_answer", {"number": 4}))
        async with agent_for(model) as agent:
            assert (await agent.run("go", output=Berth)).output == Berth(number=4)
        [told] = [result for message in model.requests[1].messages for result in message.results]
        assert told.is_error
        assert "berth 13 is taken" in told.text

    play(go)


def test_a_type_without_a_schema_is_refused_when_it_is_asked_for() -> None:
    async def go() -> None:
        with pytest.raises(InputError, match="has no JSON Schema"):
            agent_for(said(), output=asyncio.Lock)
        async with agent_for(said()) as agent:
            with pytest.raises(InputError, match="has no JSON Schema"):
                agent.run("go", output=asyncio.Lock)

    play(go)


def test_a_function_is_called_with_the_answer() -> None:
    seen: list[Ship] = []

    async def launch(ship: Ship, fast: bool = False) -> int:
        """Launch a ship."""
        if ship.name == "Ark":
            raise ValueError("there is one already")
        seen.append(ship)
        return 7 if fast else 3

    async def go() -> None:
        model = said(("final_answer", {"ship": {"name": "Ark"}}), ("final_answer", {"ship": {"name": "Dhow"}, "fast": True}))
        async with agent_for(model, output=launch) as agent:
            assert (await agent.run("go")).output == 7
        assert seen == [Ship("Dhow")]
        [spec] = model.requests[0].tools
        assert spec.schema["properties"].keys() == {"ship", "fast"}

    play(go)


# --- checks


def test_a_check_changes_the_value_or_has_the_model_asked_again() -> None:
    async def go() -> None:
        model = said(("final_answer", {"name": "Dhow"}), ("final_answer", {"name": "Sambuk"}))
        async with agent_for(model, output=Ship) as agent:

            @agent.check
            async def not_a_dhow(ship: Ship) -> None:
                if ship.name == "Dhow":
                    raise ValueError("another ship than the Dhow")

            @agent.check
            def in_capitals(ship: Ship) -> Ship:
                return Ship(ship.name.upper())

            assert (await agent.run("go")).output == Ship("SAMBUK")
        [told] = [result for message in model.requests[1].messages for result in message.results]
        assert "another ship than the Dhow" in told.text

    play(go)


def test_a_text_can_be_checked_too() -> None:
    async def go() -> None:
        model = said("maybe", "yes")
        async with agent_for(model) as agent:

            @agent.check
            def is_decided(text: str) -> str:
                if text == "maybe":
                    raise ValueError("say yes or no")
                return text + "!"

            result = await agent.run("Is it deep?")
            assert (result.text, result.output) == ("yes", "yes!")
        assert "say yes or no" in model.requests[1].messages[-1].text
        assert [entry.about for entry in agent.history.entries if isinstance(entry, Said) and entry.by == "program"] == ["output"]

    play(go)


@pytest.mark.parametrize("script", [("final_answer", {"name": "Dhow"}), '{"name": "Dhow"}'], ids=["call", "text"])
def test_what_else_a_check_raises_ends_the_run(script: Any) -> None:
    async def go() -> None:
        async with agent_for(said(script), output=Ship) as agent:

            @agent.check
            def broken(ship: Ship) -> Ship:
                raise KeyError("a bug")

            with pytest.raises(KeyError):
                await agent.run("go")
            check_record(agent.history)

    play(go)


def test_an_output_of_the_runs_own_is_not_checked_as_the_agents() -> None:
    async def go() -> None:
        async with agent_for(said(("final_answer", {"name": "Muscat"})), output=Ship) as agent:

            @agent.check
            def no_ship(ship: Ship) -> Ship:
                raise ValueError("never")

            assert (await agent.run("go", output=Port)).output == Port("Muscat")

    play(go)


# --- how it may go


def test_how_often_the_model_is_asked_again_can_be_set() -> None:
    async def go() -> None:
        limits = msgspec.structs.replace(QUICK, output_tries=0)
        async with agent_for(said("words"), limits=limits) as agent:
            with pytest.raises(OutputInvalid, match="in 1 try"):
                await agent.run("go", output=Ship)

    play(go)


def test_the_first_of_two_answers_counts_and_other_calls_of_the_same_answer_run() -> None:
    look = PlainTool("look")
    calls = [ToolCall("1", "final_answer", '{"name":"Dhow"}'), ToolCall("2", "look", "{}"), ToolCall("3", "final_answer", '{"name":"Ark"}')]

    async def go() -> None:
        async with agent_for(ScriptedProvider([answer(*map(step, calls))]), look) as agent:
            assert (await agent.run("go", output=Ship)).output == Ship("Dhow")
            check_record(agent.history)
        assert look.asked == [{}]

    play(go)


def test_a_tool_of_the_same_name_keeps_it() -> None:
    async def go() -> None:
        own = PlainTool("final_answer")
        async with agent_for(said(("final_answer_", {"name": "Dhow"})), own) as agent:
            assert (await agent.run("go", output=Ship)).output == Ship("Dhow")
            assert agent.tools.names == ("final_answer",)
        assert own.asked == []

    play(go)


def test_an_answer_that_was_cut_is_not_asked_for_again() -> None:
    async def go() -> None:
        script = 'text: {"name": "Dho\nfinish: length'
        async with agent_for(script) as agent:
            with pytest.raises(OutputLimit):
                await agent.run("go", output=Ship)

    play(go)


def test_run_sync_and_stream_sync() -> None:
    with agent_for(said(("final_answer", {"name": "Dhow"}), ("final_answer", {"name": "Ark"}))) as agent:
        assert agent.run_sync("go", output=Ship).output == Ship("Dhow")
        events = list(agent.stream_sync("go", output=Ship))
    assert [event.value for event in events if isinstance(event, OutputUpdated)][-1] == {"name": "Ark"}
    assert [event.outcome for event in events if isinstance(event, ToolCallFinished)] == ["finished"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("protocol", MAIN)
def test_the_value_so_far_is_told_while_it_streams(protocol: str, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.loop.typed_answer.UPDATE_S", 0)

    async def go() -> None:
        script = answers([PLAIN], way, protocol)
        async with typed_agent(protocol, way, script, tmp_path) as (agent, _):
            events = await events_of(agent.run("Which harbour?", output=Harbour))
        values = [event.value for event in events if isinstance(event, OutputUpdated)]
        assert values
        assert values[-1].items() <= PLAIN.items()

    play(go)


def test_the_value_is_told_a_few_times_and_not_for_every_piece() -> None:
    words = jsontext.dumps({"name": "Dhow " * 400})

    async def go() -> None:
        async with agent_for(ScriptedProvider([answer(CallStep("final_answer", words, piece_chars=2))])) as agent:
            events = await events_of(agent.run("go", output=Ship))
        values = [event.value for event in events if isinstance(event, OutputUpdated)]
        assert 1 <= len(values) < 20
        assert values[-1] == {"name": "Dhow " * 400}

    play(go)


def test_nothing_is_told_of_a_run_that_is_asked_for_text() -> None:
    async def go() -> None:
        async with agent_for(said('{"name": "Dhow"}')) as agent:
            events = await events_of(agent.run("go"))
        assert not [event for event in events if isinstance(event, OutputUpdated)]
        assert FinishReason.STOP is agent.history.entries[-2].finish  # type: ignore[union-attr]

    play(go)
