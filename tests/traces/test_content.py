"""Prompts, answers, arguments and results are in spans where that was asked for, and keys never."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dragoman as dm
from destinations import MAIN, connection
from dragoman.loop.trace_content import Cleaner, answer_content, prompt_content, request_content
from dragoman.testing.mock.server import MockServer
from dragoman.values.events import Retrying, StreamEvent
from dragoman.values.messages import Blob, FileRef, FinishReason, Message, Text, Thought, ToolCall, ToolResult
from scenarios.workshop import PlainTool, agent_for, failing, play

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT = {
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
}


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    yield InMemorySpanExporter()
    dm.traces.disable()


def enable(exporter: InMemorySpanExporter, **options: Any) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    dm.traces.enable(provider, **options)


def ask(protocol: str = "anthropic", prompt: str = "Where is the harbour?", act: Any = None) -> None:
    async def go() -> None:
        async with MockServer('call: look {"what": "the map"}\n---\ntext: At the quay.') as server:
            where = connection(protocol, server.url + ("/v1" if protocol.startswith("openai") else ""))
            async with agent_for(where, PlainTool(act=act), system="You are a pilot.") as agent:
                await agent.run(prompt)

    play(go)


def everything(exporter: InMemorySpanExporter) -> str:
    return "\n".join(span.to_json() for span in exporter.get_finished_spans())


@pytest.mark.parametrize("protocol", MAIN)
def test_nothing_that_was_said_is_told_unless_asked_for(protocol: str, exporter: InMemorySpanExporter) -> None:
    enable(exporter)
    ask(protocol)
    told = everything(exporter)
    assert len(exporter.get_finished_spans()) == 4
    assert not [words for words in ("harbour", "the map", "quay", "pilot") if words in told]


@pytest.mark.parametrize("protocol", MAIN)
def test_what_was_said_is_told_by_the_schemas_of_the_conventions(protocol: str, exporter: InMemorySpanExporter) -> None:
    enable(exporter, capture_content=True)
    ask(protocol)
    first, call, second, run = (dict(span.attributes or {}) for span in exporter.get_finished_spans())
    told = {name: str(value) for each in (first, call, second, run) for name, value in each.items()}
    assert set(told) >= CONTENT
    assert json.loads(first["gen_ai.system_instructions"]) == [{"type": "text", "content": "You are a pilot."}]  # type: ignore[arg-type]
    assert [tool["name"] for tool in json.loads(first["gen_ai.tool.definitions"])] == ["look"]  # type: ignore[arg-type]
    asked = {"role": "user", "parts": [{"type": "text", "content": "Where is the harbour?"}]}
    assert json.loads(run["gen_ai.input.messages"]) == [asked]  # type: ignore[arg-type]
    call_id = call["gen_ai.tool.call.id"]
    called = {"type": "tool_call", "id": call_id, "name": "look", "arguments": {"what": "the map"}}
    (answer,) = json.loads(first["gen_ai.output.messages"])  # type: ignore[arg-type]
    assert (answer["role"], answer["parts"][-1], answer["finish_reason"]) == ("assistant", called, "tool_call")
    assert json.loads(call["gen_ai.tool.call.arguments"]) == {"what": "the map"}  # type: ignore[arg-type]
    assert call["gen_ai.tool.call.result"] == "looked at the map"
    assert json.loads(second["gen_ai.input.messages"])[-1] == {  # type: ignore[arg-type]
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": call_id, "response": "looked at the map"}],
    }
    said = {"role": "assistant", "parts": [{"type": "text", "content": "At the quay."}], "finish_reason": "stop"}
    assert json.loads(run["gen_ai.output.messages"]) == [said]  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", MAIN)
def test_keys_are_redacted_wherever_they_stand(protocol: str, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in use, those in the environment, and whatever looks like one."""
    monkeypatch.setenv("GROQ_API_KEY", "our-other-key")
    enable(exporter, capture_content=True)
    secrets = ("key-for-tests", "our-other-key", "sk-abcdefghijklmnop")
    ask(protocol, f"My keys: {', '.join(secrets)}", failing(f"no access with {' '.join(secrets)}"))
    told = everything(exporter)
    assert told.count("REDACTED") >= 9
    assert not [secret for secret in secrets if secret in told]


def test_the_key_of_a_provider_without_an_agent_is_redacted(exporter: InMemorySpanExporter) -> None:
    enable(exporter, capture_content=True)

    async def go() -> None:
        async with MockServer("text: Yes.") as server:
            provider = dm.traces.trace_provider(connection("anthropic", server.url))
            await provider.generate(dm.build_request(provider.model, "Is it key-for-tests?"))
            await provider.aclose()

    play(go)
    assert "Is it REDACTED?" in everything(exporter)


def test_a_key_in_the_words_of_an_error_is_redacted(exporter: InMemorySpanExporter, caplog: pytest.LogCaptureFixture) -> None:
    """A provider of somebody else's may say anything."""
    caplog.set_level("INFO", "dragoman")

    class Telling(dm.testing.ScriptedProvider):
        async def stream(self, request: dm.messages.Request) -> AsyncGenerator[StreamEvent, None]:
            yield Retrying(1, 0.0, "refused sk-abcdefghijklmnop")
            raise dm.ProviderError("refused sk-abcdefghijklmnop", provider="mine")

    async def go() -> None:
        async with agent_for(Telling("text: Hi.")) as agent:
            with pytest.raises(dm.ProviderError):
                await agent.run("hi")

    enable(exporter)
    play(go)
    told = everything(exporter)
    assert told.count("refused REDACTED") == 3, "of the retry, the request and the run"
    assert caplog.text.count("refused REDACTED") == 2
    assert "sk-abc" not in told + caplog.text


@pytest.mark.parametrize(
    ("variable", "option", "is_told"),
    [
        ("true", None, True),
        ("SPAN_ONLY", None, True),
        ("span_and_event", None, True),
        ("event_only", None, False),
        ("false", None, False),
        ("", None, False),
        ("true", False, False),
        ("false", True, True),
    ],
)
def test_the_variable_holds_where_nothing_is_said_in_code(
    variable: str, option: bool | None, is_told: bool, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    enable(exporter, capture_content=option)
    ask()
    assert ("harbour" in everything(exporter)) is is_told


def test_every_kind_of_part_has_its_form() -> None:
    parts = (
        Text("look"),
        Thought("hm"),
        Blob("image/png", "ab" * 32, 7),
        FileRef("application/pdf", "gs://bucket/a.pdf"),
        ToolCall("1", "look", "not json"),
        ToolResult("1", "look", (Text("a"), Blob("audio/wav", "cd" * 32, 7))),
    )
    (message,) = json.loads(prompt_content(Message("user", parts), str)["gen_ai.input.messages"])
    assert message["parts"] == [
        {"type": "text", "content": "look"},
        {"type": "reasoning", "content": "hm"},
        {"type": "file", "mime_type": "image/png", "modality": "image", "file_id": "ab" * 32},
        {"type": "uri", "mime_type": "application/pdf", "modality": "document", "uri": "gs://bucket/a.pdf"},
        {"type": "tool_call", "id": "1", "name": "look", "arguments": "not json"},
        {
            "type": "tool_call_response",
            "id": "1",
            "response": [
                {"type": "text", "content": "a"},
                {"type": "file", "mime_type": "audio/wav", "modality": "audio", "file_id": "cd" * 32},
            ],
        },
    ]


def test_a_key_that_is_set_later_is_redacted_in_what_was_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clean, request = Cleaner(), dm.build_request("m", "hello, latest-key", system="say latest-key", tools=(PlainTool("latest-key").spec,))
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    before = request_content(request, clean)
    assert all("latest-key" in value for value in before.values())
    monkeypatch.setenv("GROQ_API_KEY", "latest-key")
    after = request_content(request, clean)
    assert after == {name: value.replace("latest-key", "REDACTED") for name, value in before.items()}
    monkeypatch.setenv("GROQ_API_KEY", "another-key")
    assert request_content(request, clean) == before, "it is nobody's key any more"
    assert set(after) == {"gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"}


@pytest.mark.parametrize("finish", FinishReason)
def test_every_reason_to_finish_has_a_word_of_the_conventions(finish: FinishReason) -> None:
    (message,) = json.loads(answer_content(Message("assistant", ()), finish, str)["gen_ai.output.messages"])
    assert message["finish_reason"] in {"stop", "length", "content_filter", "tool_call", "error"}
