"""Our client against the reference server that offers everything, on Node."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from waiting import until

from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import Elicitation, Elicited, StdioServer
from node_parts import node, require_package


@dataclass
class Everything:
    runner: asyncio.Runner
    client: McpClient
    asked: list[Elicitation] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def text_of(self, name: str, **arguments: object) -> str:
        result = self.runner.run(self.client.call_tool(name, arguments))
        return "\n".join(block.get("text", "") for block in result.content)


@pytest.fixture(scope="module")
def everything() -> Iterator[Everything]:
    script = require_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    asked: list[Elicitation] = []
    changed: list[str] = []

    async def elicit(question: Elicitation) -> Elicited:
        asked.append(question)
        return Elicited("accept", {"name": "Ada"})

    with asyncio.Runner() as runner:
        client = McpClient(StdioServer(node(), (str(script), "stdio")), elicit=elicit, on_change=changed.append)
        runner.run(client.connect())
        yield Everything(runner, client, asked, changed)
        runner.run(client.aclose())


def test_everything_is_listed(everything: Everything) -> None:
    tools = everything.runner.run(everything.client.list_tools()).items
    resources = everything.runner.run(everything.client.list_resources()).items
    prompts = everything.runner.run(everything.client.list_prompts()).items
    assert {"echo", "get-sum", "get-tiny-image"} <= {tool.name for tool in tools}
    assert all(tool.annotations for tool in tools)
    assert {each.is_template for each in resources} == {True, False}
    assert {"simple-prompt", "args-prompt"} <= {prompt.name for prompt in prompts}
    assert everything.client.info.instructions


def test_tools_answer_in_text_images_links_and_structure(everything: Everything) -> None:
    call = everything.client.call_tool
    assert everything.text_of("get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
    (image,) = [each for each in everything.runner.run(call("get-tiny-image", {})).content if each["type"] == "image"]
    assert b64decode(image["data"]).startswith(b"\x89PNG")
    links = everything.runner.run(call("get-resource-links", {"count": 2})).content
    assert [each["type"] for each in links].count("resource_link") == 2
    weather = everything.runner.run(call("get-structured-content", {"location": "New York"}))
    assert set(weather.structured) == {"temperature", "conditions", "humidity"}


def test_a_tool_that_is_not_there_is_said_to_be_none(everything: Everything) -> None:
    assert everything.runner.run(everything.client.call_tool("no-such-tool", {})).is_error


def test_the_user_is_asked(everything: Everything) -> None:
    said = everything.text_of("trigger-elicitation-request")
    assert "Ada" in said
    (question,) = everything.asked
    assert question.schema is not None
    assert "name" in question.schema["properties"]


def test_pages_that_must_be_opened_first_are_shown_to_the_user(everything: Everything) -> None:
    address = {"url": "https://example.com/sign", "message": "Sign here", "elicitationId": "e1"}
    asked = Elicitation(message="Sign here", url="https://example.com/sign")

    everything.asked.clear()
    everything.text_of("trigger-url-elicitation", **address, errorPath=True)
    assert len(everything.asked) == 2  # the page that its error names, and when the call was repeated, the one it asks for
    assert everything.asked[0].url.startswith("https://")
    assert everything.asked[1] == asked

    everything.asked.clear()
    everything.text_of("trigger-url-elicitation", **address)
    assert everything.asked == [asked]


def test_progress_is_told(everything: Everything) -> None:
    told: list[float] = []
    call = everything.client.call_tool(
        "trigger-long-running-operation", {"duration": 0.2, "steps": 4}, progress=lambda done, total, words: told.append(done)
    )
    assert "completed" in everything.runner.run(call).content[0]["text"]
    assert told == [1.0, 2.0, 3.0, 4.0]


def test_resources_are_read_and_prompts_got(everything: Everything) -> None:
    run, client = everything.runner.run, everything.client
    assert "Resource 3" in run(client.read_resource("demo://resource/dynamic/text/3"))[0]["text"]
    assert b64decode(run(client.read_resource("demo://resource/dynamic/blob/3"))[0]["blob"])
    assert "Berlin" in run(client.get_prompt("args-prompt", {"city": "Berlin"}))[0]["content"]["text"]


def test_a_list_that_changes_is_told(everything: Everything) -> None:
    everything.runner.run(until(lambda: "tools" in everything.changed, 5))


def test_a_variable_that_was_not_named_is_not_given(everything: Everything, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "PYTEST_CURRENT_TEST" not in everything.text_of("get-env")


def test_a_call_that_is_cancelled_leaves_the_others_alone(everything: Everything) -> None:
    async def cancel_one() -> str:
        long = asyncio.ensure_future(everything.client.call_tool("trigger-long-running-operation", {"duration": 30, "steps": 2}))
        await asyncio.sleep(0.05)
        long.cancel()
        result = await everything.client.call_tool("echo", {"message": "still here"})
        assert long.cancelled()
        return result.content[0]["text"]

    assert everything.runner.run(cancel_one()) == "Echo: still here"
