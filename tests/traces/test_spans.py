"""Spans over loopback services: which there are, who is whose parent, and their attributes by the conventions for generative AI."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import dragoman as dm
from destinations import MAIN, connection
from dragoman.providers.retry import RetryPolicy
from dragoman.testing.mock.server import MockServer
from dragoman.values.calls import Show, ToolOutput
from scenarios.workshop import PlainTool, agent_for, failing, forever, no_wait, play, writer

SERVICES = {
    "gemini": "gcp.gemini",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
}
"""By protocol, the name that the conventions have for its service."""
REQUIRED = {
    "invoke_agent": {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.conversation.id"},
    "chat": {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.request.stream",
        "gen_ai.conversation.id",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.model",
        "gen_ai.response.time_to_first_chunk",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "server.address",
        "server.port",
    },
    "execute_tool": {
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.type",
        "gen_ai.tool.description",
        "gen_ai.conversation.id",
    },
}
"""What each kind of span has on a good day: required, conditionally required and recommended by the conventions."""
KNOWN = {
    "gen_ai.agent.name",
    "gen_ai.output.type",
    "gen_ai.request.max_tokens",
    "gen_ai.request.stop_sequences",
    "gen_ai.request.temperature",
    "gen_ai.request.top_k",
    "gen_ai.request.top_p",
    "gen_ai.response.id",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "error.type",
}.union(*REQUIRED.values())
"""Every name of the conventions that a span without content may have."""
KINDS = {"invoke_agent": SpanKind.INTERNAL, "chat": SpanKind.CLIENT, "execute_tool": SpanKind.INTERNAL, "compress": SpanKind.INTERNAL}

TWO_CALLS = 'call: look {"what": "a"}\ncall: look {"what": "b"}\n---\ntext: Done.'
ONE_CALL = 'call: look {"what": "a"}\n---\ntext: Done.'


class Collected:
    """The spans that have ended, and the program's own tracer."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("the program's own")
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def enable(self, **options: Any) -> None:
        dm.traces.enable(self.provider, self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, start: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.split(" ")[0] == start]

    def one(self, start: str) -> ReadableSpan:
        (span,) = self.named(start)
        return span

    def parent_of(self, span: ReadableSpan) -> ReadableSpan | None:
        return next((each for each in self.spans if span.parent is not None and each.context.span_id == span.parent.span_id), None)

    def tree(self, parent: ReadableSpan | None = None) -> list[Any]:
        """Names with the names beneath them; those side by side in the order of the alphabet where they began together."""
        return [(span.name, self.tree(span)) for span in self.spans if self.parent_of(span) is parent]

    def check(self) -> None:
        """What holds of every span."""
        for span in self.spans:
            if span.instrumentation_scope is None or span.instrumentation_scope.name != "dragoman":
                continue
            kind = attributes(span)["gen_ai.operation.name"]
            assert span.name.split(" ")[0] == kind
            assert span.kind is KINDS[kind] or (kind == "chat" and span.kind is SpanKind.INTERNAL)
            assert {name for name in attributes(span) if not name.startswith("dragoman.")} <= KNOWN
            assert ("error.type" in attributes(span)) == (span.status.status_code is StatusCode.ERROR)


@pytest.fixture
def collected() -> Iterator[Collected]:
    made = Collected()
    made.enable()
    yield made
    dm.traces.disable()
    made.check()


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


def served(protocol: str, server: MockServer, **options: Any) -> dm.Connection:
    return connection(protocol, server.url + ("/v1" if protocol.startswith("openai") else ""), **options)


def ask(protocol: str, script: str, *tools: Any, retry: RetryPolicy | None = None, prompt: str = "hi", **options: Any) -> None:
    async def go() -> None:
        async with MockServer(script) as server, agent_for(served(protocol, server, retry=retry), *tools, **options) as agent:
            await agent.run(prompt)

    play(go)


# --- the conventions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", MAIN)
def test_a_run_with_calls_side_by_side(protocol: str, collected: Collected) -> None:
    ask(protocol, TWO_CALLS, PlainTool())
    model = MAIN[protocol].partition("/")[2]
    assert collected.tree() == [
        (
            "invoke_agent",
            [(f"chat {model}", []), ("execute_tool look", []), ("execute_tool look", []), (f"chat {model}", [])],
        )
    ]
    run, (first, second), calls = collected.one("invoke_agent"), collected.named("chat"), collected.named("execute_tool")
    for span in collected.spans:
        assert REQUIRED[attributes(span)["gen_ai.operation.name"]] <= set(attributes(span)), span.name
        assert span.status.status_code is StatusCode.UNSET
        assert attributes(span)["gen_ai.conversation.id"] == attributes(run)["gen_ai.conversation.id"]
    for span in (run, first, second):
        assert attributes(span)["gen_ai.provider.name"] == SERVICES[protocol]
        assert attributes(span)["gen_ai.request.model"] == model
    assert attributes(first)["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert attributes(second)["gen_ai.response.finish_reasons"] == ("stop",) == attributes(run)["gen_ai.response.finish_reasons"]
    assert attributes(first)["server.address"] == "127.0.0.1"
    for count in ("input_tokens", "output_tokens"):
        total = attributes(first)[f"gen_ai.usage.{count}"] + attributes(second)[f"gen_ai.usage.{count}"]
        assert attributes(run)[f"gen_ai.usage.{count}"] == total
    assert len({attributes(call)["gen_ai.tool.call.id"] for call in calls}) == 2


def test_an_agent_that_a_call_runs_is_beneath_the_call(collected: Collected) -> None:
    async def go() -> None:
        scout = dm.Agent(dm.testing.ScriptedProvider(ONE_CALL), tools=[PlainTool()])
        script = 'call: scout {"prompt": "Go."}\ncall: scout {"prompt": "Go."}\n---\ntext: Done.'
        captain = dm.Agent(dm.testing.ScriptedProvider(script), name="captain", tools=[scout.as_tool("scout", "Send one.")])
        await captain.run("Go.")

    play(go)
    ((name, beneath),) = collected.tree()
    assert name == "invoke_agent captain"
    assert [each for each, _ in beneath] == ["chat scripted", "execute_tool scout", "execute_tool scout", "chat scripted"]
    inner = [run for each, runs in beneath if each.startswith("execute") for run in runs]
    assert {each for each, _ in inner} == {"invoke_agent scout"}
    assert sum(len(runs) for _, runs in inner) >= 3  # both share the script: chats, and the call of one or both


def test_settings_are_those_of_the_request(collected: Collected) -> None:
    ask("gemini", "text: Hi.", settings=dm.Settings(temperature=0.5, top_p=0.9, top_k=7, max_output_tokens=99, stop=("END",)))
    told = attributes(collected.one("chat"))
    assert {name.removeprefix("gen_ai.request."): told[name] for name in told if name.startswith("gen_ai.request.")} == {
        "model": "gemini-3.8-flash",
        "stream": True,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 7.0,
        "max_tokens": 99,
        "stop_sequences": ("END",),
    }


def test_metrics_of_tokens_and_time(collected: Collected) -> None:
    ask("anthropic", "text: Hi.")
    data = collected.reader.get_metrics_data()
    assert data is not None
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    tokens, seconds = metrics["gen_ai.client.token.usage"], metrics["gen_ai.client.operation.duration"]
    assert (tokens.unit, seconds.unit) == ("{token}", "s")
    span = attributes(collected.one("chat"))
    points = {point.attributes["gen_ai.token.type"]: point.sum for point in tokens.data.data_points}  # type: ignore[index, union-attr]
    assert points == {"input": span["gen_ai.usage.input_tokens"], "output": span["gen_ai.usage.output_tokens"]}
    (point,) = seconds.data.data_points
    assert dict(point.attributes or {}) == {
        name: span[name]
        for name in (
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "server.address",
            "server.port",
        )
    }


# --- parents ----------------------------------------------------------------------------------------------------------------------


def test_a_span_that_a_tool_opens_is_a_child_of_its_call(collected: Collected) -> None:
    @dm.tool
    def in_a_thread(what: str) -> str:
        """Works in a thread.

        Args:
            what: anything
        """
        assert threading.current_thread() is not threading.main_thread()
        with collected.tracer.start_as_current_span("query"):
            return what

    @dm.tool
    async def in_the_loop(what: str) -> str:
        """Works in the event loop.

        Args:
            what: anything
        """
        with collected.tracer.start_as_current_span("fetch"):
            await asyncio.sleep(0)
            return what

    script = 'call: in_a_thread {"what": "a"}\ncall: in_the_loop {"what": "b"}\n---\ntext: Done.'
    ask("anthropic", script, in_a_thread, in_the_loop)
    calls = {span.name: collected.tree(span) for span in collected.named("execute_tool")}
    assert calls == {"execute_tool in_a_thread": [("query", [])], "execute_tool in_the_loop": [("fetch", [])]}


@pytest.mark.parametrize("is_async", [True, False])
def test_a_run_inside_a_tool_is_a_child_of_its_call(is_async: bool, collected: Collected) -> None:
    inner = agent_for("text: From within.")
    dm.traces.name_agent(inner, "researcher")

    @dm.tool
    async def delegate(task: str) -> str:
        """Hand it on.

        Args:
            task: what to do
        """
        return (await inner.run(task)).text

    @dm.tool
    def delegate_sync(task: str) -> str:
        """Hand it on.

        Args:
            task: what to do
        """
        return inner.run_sync(task).text

    name = "delegate" if is_async else "delegate_sync"
    ask("openai_chat", f'call: {name} {{"task": "look"}}\n---\ntext: Done.', delegate, delegate_sync)
    if not is_async:
        inner.close()
    (outer,) = collected.tree()
    called = dict(outer[1])[f"execute_tool {name}"]
    assert called == [("invoke_agent researcher", [("chat scripted", [])])]
    ids = {attributes(span)["gen_ai.conversation.id"] for span in collected.named("invoke_agent")}
    assert len(ids) == 2


def test_a_run_is_a_child_of_where_it_was_started(collected: Collected) -> None:
    with agent_for("text: Hi.\n---\ntext: Hi.") as agent:
        with collected.tracer.start_as_current_span("a request to our service"):
            agent.run_sync("one")
        with collected.tracer.start_as_current_span("another"):
            list(agent.stream_sync("two"))
    trees = [(name, [child for child, _ in beneath]) for name, beneath in collected.tree()]
    assert trees == [("a request to our service", ["invoke_agent"]), ("another", ["invoke_agent"])]


def test_threads_do_not_mix(collected: Collected) -> None:
    def work(number: int) -> None:
        with agent_for(f"text piece=1: I am {number}.") as agent, collected.tracer.start_as_current_span(f"thread {number}"):
            dm.traces.name_agent(agent, str(number))
            assert agent.run_sync("hi").text == f"I am {number}."

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    expected = [(f"thread {number}", [(f"invoke_agent {number}", [("chat scripted", [])])]) for number in range(8)]
    assert sorted(collected.tree()) == expected


def test_agents_at_once_do_not_mix(collected: Collected) -> None:
    async def go() -> None:
        async def one(number: int) -> None:
            async def act(args: Mapping[str, Any], show: Show) -> str:
                with collected.tracer.start_as_current_span(f"work {number}"):
                    await asyncio.sleep(0.01)
                    return "seen"

            async with agent_for(served("gemini", server), PlainTool(f"look{number}", act)) as agent:
                dm.traces.name_agent(agent, str(number))
                await agent.run("hi")

        def answer(request: Any) -> Any:
            name = next(tool["name"] for tool in request.body["tools"][0]["functionDeclarations"])
            said = '{"what": "a"}'
            has_result = "functionResponse" in str(request.body["contents"])
            return dm.testing.Script.parse("text: Done." if has_result else f"call: {name} {said}").answers[0]

        async with MockServer(answer) as server:
            await asyncio.gather(*(one(number) for number in range(8)))

    play(go)
    trees = collected.tree()
    assert len(trees) == 8
    for name, beneath in trees:
        number = name.split(" ")[1]
        calls = [(child, inside) for child, inside in beneath if child.startswith("execute_tool")]
        assert calls == [(f"execute_tool look{number}", [(f"work {number}", [])])]
    for span in collected.named("execute_tool"):
        parent = collected.parent_of(span)
        assert parent is not None
        assert attributes(parent)["gen_ai.conversation.id"] == attributes(span)["gen_ai.conversation.id"]


def test_whoever_reads_the_events_is_not_inside_the_request(collected: Collected) -> None:
    async def go() -> None:
        seen = set[trace.Span]()
        with collected.tracer.start_as_current_span("reading"):
            here = trace.get_current_span()
            async with agent_for("text piece=2: Hello there.") as agent:
                async for _ in agent.run("hi"):
                    seen.add(trace.get_current_span())
            provider = dm.traces.trace_provider(dm.testing.ScriptedProvider("text piece=2: Hello."))
            async for _ in provider.stream(dm.build_request("scripted", "hi")):
                seen.add(trace.get_current_span())
        assert seen == {here}

    play(go)
    assert [(name, len(beneath)) for name, beneath in collected.tree()] == [("reading", 2)]


# --- what goes wrong --------------------------------------------------------------------------------------------------------------


def failed(span: ReadableSpan) -> str:
    assert span.status.status_code is StatusCode.ERROR
    return str(attributes(span)["error.type"])


def test_a_tool_that_fails(collected: Collected) -> None:
    @dm.tool
    def divide(by: int) -> float:
        """Divide.

        Args:
            by: a number
        """
        raise ValueError("the secret plan does not divide")

    ask("anthropic", 'call: divide {"by": 0}\ncall: look {"what": "a"}\n---\ntext: Done.', divide, PlainTool(act=failing()))
    first, second = collected.named("execute_tool")
    assert (failed(first), failed(second)) == ("ValueError", "not_found")
    assert "secret plan" not in str(first.status.description), "what a tool says is content"
    assert collected.one("invoke_agent").status.status_code is StatusCode.UNSET, "the model was told, and went on"


def test_calls_that_are_not_run(collected: Collected) -> None:
    async def refuse(call: Any, view: Any) -> dm.Deny:
        return dm.Deny("not today")

    script = 'call: change {"what": "a"}\ncall: nonsense {}\ncall: look {"what": {"a": [7]}}\n---\ntext: Done.'
    tools = writer(), PlainTool()
    ask("openai_chat", script, *tools, ask=refuse)
    assert {span.name: failed(span) for span in collected.named("execute_tool")} == {
        "execute_tool change": "denied",
        "execute_tool nonsense": "unknown_tool",
        "execute_tool look": "invalid_arguments",
    }
    assert all(collected.parent_of(span) is collected.one("invoke_agent") for span in collected.named("execute_tool"))
    assert not tools[0].asked


@pytest.mark.parametrize("protocol", MAIN)
def test_a_retry_is_an_event_on_the_one_span(protocol: str, collected: Collected) -> None:
    policy = RetryPolicy(sleep=no_wait)
    ask(protocol, 'error: 503 "Busy, key-for-tests"\n---\ntext: Hi.', retry=policy)
    span = collected.one("chat")
    assert span.status.status_code is StatusCode.UNSET
    (event,) = span.events
    told = event.attributes or {}
    assert (event.name, told["dragoman.retry.attempt"]) == ("dragoman.retry", 1)
    assert "Busy" in str(told["dragoman.retry.reason"])
    assert "key-for-tests" not in str(told)


def test_a_request_that_fails(collected: Collected) -> None:
    with pytest.raises(dm.ProviderError):
        ask("anthropic", 'error: 400 "No such thing as key-for-tests"')
    assert {failed(collected.one("chat")), failed(collected.one("invoke_agent"))} == {"BadRequest"}
    assert attributes(collected.one("invoke_agent"))["dragoman.outcome"] == "failed", "as it stands on the record"
    assert "No such thing" in str(collected.one("chat").status.description)
    assert "key-for-tests" not in str([span.status.description for span in collected.spans])
    data = collected.reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    assert (metric.name, metric.data.data_points[0].attributes["error.type"]) == ("gen_ai.client.operation.duration", "BadRequest")  # type: ignore[index]


async def cancel_when(run: Any, is_ready: Callable[[], bool]) -> None:
    async def look_on() -> None:
        async for _ in run:
            pass

    reading = asyncio.create_task(look_on())
    while not is_ready():  # noqa: ASYNC110  what is waited for has no event
        await asyncio.sleep(0.005)
    run.cancel()
    await reading


@pytest.mark.parametrize("protocol", MAIN)
def test_a_cancel_while_an_answer_streams(protocol: str, collected: Collected) -> None:
    async def go() -> None:
        async with MockServer("text: Hello\nstall\ntext: never") as server, agent_for(served(protocol, server)) as agent:
            run = agent.run("hi")
            await cancel_when(run, lambda: bool(server.requests))

    play(go)
    assert (failed(collected.one("chat")), failed(collected.one("invoke_agent"))) == ("Cancelled", "Cancelled")


def test_a_cancel_while_a_tool_runs(collected: Collected) -> None:
    async def go() -> None:
        tool = PlainTool(act=forever)
        async with MockServer(ONE_CALL) as server, agent_for(served("gemini", server), tool) as agent:
            await cancel_when(agent.run("hi"), tool.running.is_set)

    play(go)
    assert (failed(collected.one("execute_tool")), failed(collected.one("invoke_agent"))) == ("Cancelled", "Cancelled")
    assert collected.one("chat").status.status_code is StatusCode.UNSET


def test_a_cancel_of_one_call(collected: Collected) -> None:
    async def go() -> None:
        tool = PlainTool(act=forever)
        async with MockServer(ONE_CALL) as server, agent_for(served("gemini", server), tool) as agent:
            run = agent.run("hi")
            waiting = asyncio.ensure_future(run._wait())
            await tool.running.wait()
            (call,) = agent.history.view.messages[-1].calls
            run.cancel_call(call.id)
            await waiting

    play(go)
    assert failed(collected.one("execute_tool")) == "Cancelled"
    assert collected.one("invoke_agent").status.status_code is StatusCode.UNSET


def test_a_tool_that_takes_too_long_and_knows_its_call(collected: Collected) -> None:
    seen: list[str] = []

    @dm.tool(timeout_s=0.05)
    async def look(context: dm.ToolContext, what: str) -> None:
        seen.append(context.call_id)
        await asyncio.sleep(30)

    ask("gemini", ONE_CALL, look)
    assert failed(collected.one("execute_tool")) == "timeout"
    assert [attributes(collected.one("execute_tool"))["gen_ai.tool.call.id"]] == seen


def test_a_refused_answer(collected: Collected) -> None:
    with pytest.raises(dm.errors.Refused):
        ask("anthropic", "text: I\nfinish: refusal")
    assert attributes(collected.one("chat"))["gen_ai.response.finish_reasons"] == ("content_filter",)
    assert failed(collected.one("invoke_agent")) == "Refused"


def test_a_tool_that_breaks_the_rules_is_not_our_failure(collected: Collected) -> None:
    async def act(args: Mapping[str, Any], show: Show) -> ToolOutput:
        return 7  # type: ignore[return-value]

    ask("gemini", ONE_CALL, PlainTool(act=act))
    assert len(collected.named("chat")) == 2


def test_a_provider_that_nothing_is_known_of(collected: Collected) -> None:
    """It may have attributes that look like ours, and mean something else."""

    class Own(dm.testing.ScriptedProvider):
        __slots__ = ()
        provider = "mine"
        base_url = 7

        def secrets(self, name: str) -> None:
            raise AssertionError(name)

    async def go() -> None:
        async with agent_for(Own("text: Hi.")) as agent:
            await agent.run("hi")

    play(go)
    assert "server.address" not in attributes(collected.one("chat"))


# --- compression ------------------------------------------------------------------------------------------------------------------


def test_a_compression_has_its_request_beneath_it(collected: Collected) -> None:
    async def go() -> None:
        long = " ".join(f"word{number}" for number in range(4_000))
        summary = "text: <snapshot><goal>short</goal></snapshot>"
        script = f"text: {long}\n---\ntext: {long}\n---\ntext: ok\n---\n{summary}"
        async with MockServer(script) as server, agent_for(served("anthropic", server)) as agent:
            for prompt in ("one", "two", "three"):
                await agent.run(prompt)
            done = await agent.compress()
            assert done.status == "compressed", done

    play(go)
    span = collected.one("compress")
    assert [name.split(" ")[0] for name, _ in collected.tree(span)] == ["chat"]
    told = attributes(span)
    assert told["dragoman.compression.status"] == "compressed"
    assert told["dragoman.compression.tokens_after"] < told["dragoman.compression.tokens_before"]
