"""Turning traces on and off, and what it costs to leave them off."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dragoman as dm
from dragoman.loop.traced_requests import TracedProvider
from dragoman.loop.web import Metered
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values import tracing
from scenarios.workshop import agent_for, play

RUN = """
import sys
import dragoman as dm
agent = dm.Agent(dm.testing.ScriptedProvider('call: look {"what": "a"}\\n---\\ntext: Hi.'))
agent.run_sync("hi")
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_off_nothing_is_loaded() -> None:
    done = run(RUN + "print([name for name in sys.modules if 'opentelemetry' in name or '.loop.trac' in name or '.traces' in name])")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_off_nothing_is_wrapped() -> None:
    provider = ScriptedProvider("text: Hi.")
    assert tracing.active is None
    assert tracing.traced(provider) is provider


def test_without_the_extra_the_error_names_it() -> None:
    hide = "import sys; sys.modules['opentelemetry'] = None\n"
    done = run(hide + "import dragoman as dm\ntry:\n    dm.traces.enable()\nexcept dm.ConfigError as error:\n    print(error)")
    assert done.stdout.strip() == "traces need one more package: run pip install '.[otel]' in your clone of Dragoman", done.stderr


def test_enabled_again_the_new_settings_hold_and_disabled_none() -> None:
    async def ask() -> None:
        async with agent_for("text: Hi.") as agent:
            await agent.run("hi")

    exporters = [InMemorySpanExporter() for _ in range(2)]
    try:
        for exporter in exporters:
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            dm.traces.enable(provider)
            play(ask)
    finally:
        dm.traces.disable()
    play(ask)
    assert [len(exporter.get_finished_spans()) for exporter in exporters] == [2, 2]


def test_a_run_under_way_ends_its_spans_when_traces_go_off() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def ask() -> None:
        dm.traces.enable(provider)
        async with agent_for("text: Hi.") as agent:
            async for event in agent.run("hi"):
                if isinstance(event, dm.events.ResponseStarted):
                    dm.traces.disable()

    try:
        play(ask)
    finally:
        dm.traces.disable()
    assert sorted(span.name for span in exporter.get_finished_spans()) == ["chat scripted", "invoke_agent"]


def test_without_providers_those_of_the_program_are_used_and_may_be_none() -> None:
    """The API without an SDK makes spans that record nothing: the run goes on as ever."""

    async def ask() -> str:
        async with agent_for("text: Hi.") as agent:
            return (await agent.run("hi")).text

    dm.traces.enable(capture_content=True)
    try:
        assert play(ask) == "Hi."
    finally:
        dm.traces.disable()


def test_a_provider_without_an_agent_is_wrapped_once() -> None:
    traced = dm.traces.trace_provider(ScriptedProvider("text: Hi.\n---\ntext: Hi."))
    assert isinstance(traced, TracedProvider)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    dm.traces.enable(provider)
    try:
        assert dm.traces.trace_provider(traced) is traced
        wrapped = dm.traces.trace_provider(ScriptedProvider("text: Hi.\n---\ntext: Ho."))

        async def ask() -> None:
            assert (await wrapped.generate(dm.build_request("scripted", "hi"))).message.text == "Hi."
            async with agent_for(wrapped) as agent:
                assert (await agent.run("hi")).text == "Ho."

        play(ask)
    finally:
        dm.traces.disable()
    names = sorted(span.name for span in exporter.get_finished_spans())
    assert names == ["chat scripted", "chat scripted", "invoke_agent"]


@pytest.mark.parametrize("name", ["enable", "disable", "name_agent", "trace_provider"])
def test_the_names_are_public(name: str) -> None:
    assert callable(getattr(dm.traces, name))


def test_what_a_web_tool_asks_a_model_has_a_span() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def ask() -> None:
        asked = Metered(ScriptedProvider("text: Found."), lambda: None, lambda usage: None)
        await asked.generate(dm.build_request("scripted", "search"))

    dm.traces.enable(provider)
    try:
        play(ask)
    finally:
        dm.traces.disable()
    (span,) = exporter.get_finished_spans()
    assert span.name == "chat scripted"
    assert "gen_ai.request.stream" not in (span.attributes or {})
