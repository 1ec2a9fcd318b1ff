"""Thinking off in words (document 000, 4.3): in every mode of tools, and nowhere that a service has a setting of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import dragoman as dm
from dragoman.loop.agent import Agent
from dragoman.loop.model import Models
from dragoman.loop.options import Connector
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import connect
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script_steps import answer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.text_tools.no_think import NoThink
from dragoman.text_tools.options import TextOptions
from dragoman.text_tools.wrapper import TextTools
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.events import NoticeGiven
from dragoman.values.messages import Blob, Request, Settings, Thinking, ToolCall, ToolSpec, assistant, tool_result, user
from dragoman.values.profile import Profile

OFF = Settings(thinking=Thinking("off"))
CALL = ToolCall("1", "read_file", "{}")
TALK = (user("Read a.txt."), assistant(CALL), user(tool_result(CALL, "x")), assistant("Done."), user("Thanks."))


def prompts_of(server: MockServer) -> list[str]:
    return [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "user"]


def asked(profile: dict[str, Any], text: TextOptions | None, calling: Any = "native", prompts: tuple[str, ...] = ("Hello.",)) -> Any:
    """What a chat service is sent for the last prompt, and the notices on the way."""

    async def go() -> Any:
        async with MockServer("answer: times=3\ntext: Good.") as server:
            row = {"protocol": "openai_chat", "base_url": server.url + "/v1", "auth": "none", "models": {"one": profile}}
            catalog = builtin_catalog().with_rows({"corp": row})
            connector = Connector(lambda name, blobs: connect(name, env={}, catalog=catalog, blobs=blobs), "corp/one", catalog)
            tools = dm.ToolOptions(builtin=False, calling=calling, text=text)
            workspace = dm.options.WorkspaceOptions(describe=False)
            async with Agent(connector, tools=tools, workspace=workspace, settings=OFF) as agent:
                notices = [event.message for prompt in prompts async for event in agent.run(prompt) if isinstance(event, NoticeGiven)]
            return prompts_of(server), notices

    return asyncio.run(go())


@pytest.mark.parametrize("calling", ["native", "auto", "text"])
@pytest.mark.parametrize(
    ("words", "sent"),
    [("/no_think", ["Hello.\n/no_think", "More.\n/no_think"]), ("<no_think>", ["<no_think>\n\nHello.", "<no_think>\n\nMore."])],
)
def test_the_words_reach_the_service_in_every_mode_of_tools(calling: str, words: str, sent: list[str]) -> None:
    assert asked({}, TextOptions(no_think=words), calling, ("Hello.", "More.")) == (sent, [])


@pytest.mark.parametrize("calling", ["native", "text"])
def test_a_profile_that_can_be_switched_but_names_no_field_gets_them_unasked(calling: str) -> None:
    assert asked({"thinking": "switch"}, None, calling)[0] == ["Hello.\n/no_think"]
    assert asked({"thinking": "switch", "thinking_switch": "enable_thinking"}, None, calling)[0] == ["Hello."]
    assert asked({"thinking": "switch"}, TextOptions(no_think=""), calling)[0] == ["Hello."]


@pytest.mark.parametrize("calling", ["native", "text"])
@pytest.mark.parametrize("kind", ["effort", "budget", "level", "adaptive"])
def test_a_service_with_a_setting_of_its_own_is_not_told_in_words_and_a_notice_says_so_once(calling: str, kind: str) -> None:
    sent, notices = asked({"thinking": kind}, TextOptions(no_think="/no_think"), calling, ("Hello.", "More."))
    assert sent == ["Hello.", "More."]
    assert [notice for notice in notices if "/no_think" in notice] == [
        "/no_think is not added to prompts: the service of corp/one has a setting of its own for thinking"
    ]


def test_a_model_that_always_thinks_is_not_said_to_think_where_it_was_told_in_words() -> None:
    assert asked({"thinking": "always"}, TextOptions(no_think="/no_think")) == (["Hello.\n/no_think"], [])
    assert len(asked({"thinking": "always"}, None)[1]) == 1


def test_only_prompts_have_the_words_and_each_message_stays_the_same_object() -> None:
    provider = NoThink(ScriptedProvider("text: x", profile=Profile(thinking="switch")))
    first, second = (provider.rewrite_request(Request("any", TALK[:count], settings=OFF)).messages for count in (3, 5))
    assert [message.text for message in second] == ["Read a.txt.\n/no_think", "", "", "Done.", "Thanks.\n/no_think"]
    assert all(one is other for one, other in zip(first, second, strict=False)), "the cached prefix stays"
    assert second[1:4] == TALK[1:4]
    plain = Request("any", TALK, settings=Settings())
    assert provider.rewrite_request(plain) is plain
    assert TALK[0] == user("Read a.txt."), "the record keeps the person's words"


def test_a_prompt_without_text_is_left_alone() -> None:
    provider = NoThink(ScriptedProvider("text: x"), "/no_think")
    picture = user(Blob("image/png", "0" * 64, 1))
    (sent,) = provider.rewrite_request(Request("any", (picture,), settings=OFF)).messages
    assert sent is picture


@pytest.mark.parametrize(
    "make", [lambda inner: NoThink(inner, "/no_think"), lambda inner: TextTools(inner, TextOptions(no_think="/no_think"))]
)
def test_generate_and_stream_and_counting_send_the_same(make: Callable[[ScriptedProvider], Any]) -> None:
    inner = ScriptedProvider("answer: times=2\ntext: x")
    provider = make(inner)

    async def go() -> None:
        await provider.generate(Request("any", TALK[:1], settings=OFF))
        async for _ in provider.stream(Request("any", TALK[:1], settings=OFF)):
            pass

    asyncio.run(go())
    assert [request.messages[0].text for request in inner.requests] == ["Read a.txt.\n/no_think"] * 2


def test_going_on_in_text_adds_them_once() -> None:
    """A model that turns out to write its calls as text keeps the words, and gets them from one place."""
    models = Models(None, MemoryBlobs(), "auto", TextOptions(no_think="/no_think"))
    inner = ScriptedProvider("text: x", profile=Profile(known=False))
    watched = models.use(inner)
    for model in (watched, models.adopt(watched), models.in_text(watched), models.in_text(models.in_text(watched))):
        provider: Any = model.provider
        layers = 0
        while provider is not inner:
            layers += isinstance(provider, NoThink | TextTools)
            provider = provider.provider
        assert layers == 1


# --- what is written down at DEBUG


def test_a_line_says_which_prompts_got_the_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    provider = NoThink(ScriptedProvider("text: x"), "/no_think")
    for _ in range(2):
        provider.rewrite_request(Request("any", TALK, settings=OFF))
    assert [record.getMessage() for record in caplog.records if "/no_think" in record.getMessage()] == [
        "added /no_think to a prompt of 11 characters, because thinking is off",
        "added /no_think to a prompt of 7 characters, because thinking is off",
    ]


@pytest.mark.parametrize(("preserve", "verb"), [(True, "kept"), (False, "dropped")])
def test_lines_say_what_was_taken_for_thinking_and_what_became_of_words_beside_calls(
    preserve: bool, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    said = '<think>secret thought</think>I look.\n<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call>'
    inner = ScriptedProvider([answer(said)])
    provider = TextTools(inner, TextOptions("hermes", preserve_context=preserve))
    tool = ToolSpec.of("read_file", "Read.", {"type": "object"})
    asyncio.run(provider.generate(Request("any", (user("Go."),), tools=(tool,))))
    lines = [record.getMessage() for record in caplog.records]
    assert "took 14 characters of thinking out of the text of an answer" in lines
    assert f"{verb} 7 characters of text beside 1 tool calls" in lines
    assert not any("secret" in line or "I look" in line for line in lines), "sizes, not what was said"
