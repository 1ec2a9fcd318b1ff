"""Answers of plain text that follow each other are one message of OpenAI's protocols (document 000, 3.3); the record keeps both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from destinations import connection
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Message, Opaque, Request, Response, Text, Thought, ToolCall, assistant, tool_result, user

CALL = ToolCall("c1", "look", "{}")
said = st.sampled_from(
    [
        user("A question."),
        assistant("One."),
        assistant("Two."),
        assistant("  "),
        Message("assistant", (Thought("hm"), Text("Three."))),
    ]
)


def sent(where: str, *messages: Message) -> list[dict[str, Any]]:
    provider = connection(where)
    body = json.loads(provider.prepare(Request(provider.model, messages)).body)
    found: list[dict[str, Any]] = body["messages" if where == "openai_chat" else "input"]
    return found


def texts(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n\n".join(block["text"] for block in content)


@pytest.mark.parametrize("where", ["openai_chat", "openai_responses"])
@given(messages=st.lists(said, min_size=1, max_size=8))
def test_no_answer_of_text_follows_another_and_nothing_is_lost(where: str, messages: list[Message]) -> None:
    wire = sent(where, *messages, user("And?"))
    roles = [message["role"] for message in wire]
    assert "assistant assistant" not in " ".join(roles)
    words = " ".join(texts(message) for message in wire).replace("\n\n", " ").split(" ")
    assert words == " ".join(message.text for message in (*messages, user("And?")) if message.text.strip()).split(" ")


@pytest.mark.parametrize("where", ["openai_chat", "openai_responses"])
@given(messages=st.lists(said, max_size=8), more=st.lists(said, max_size=4))
def test_a_request_that_ended_with_a_prompt_is_the_beginning_of_every_later_one(
    where: str, messages: list[Message], more: list[Message]
) -> None:
    """What is merged lies between two messages of the record, so the cached prefix holds."""
    asked = [*messages, user("And?")]
    assert sent(where, *asked, *more)[: len(sent(where, *asked))] == sent(where, *asked)


@pytest.mark.parametrize("where", ["openai_chat", "openai_responses"])
def test_calls_their_results_and_what_the_service_marked_stay_apart(where: str) -> None:
    own = Opaque(connection(where).name, '{"phase":"commentary"}', connection(where).model)
    talk = (user("Go."), assistant("One."), Message("assistant", (Text("I look."), CALL)), user(tool_result(CALL, "x")), assistant("Done."))
    kinds = [message.get("role") or message["type"] for message in sent(where, *talk)]
    if where == "openai_chat":
        assert kinds == ["user", "assistant", "assistant", "tool", "assistant"]
    else:
        assert kinds == ["user", "assistant", "assistant", "function_call", "function_call_output", "assistant"]
        marked = Message("assistant", (Text("Two.", own),))
        assert [message.get("phase") for message in sent(where, user("Go."), assistant("One."), marked)] == [None, None, "commentary"]


def test_the_record_keeps_both() -> None:
    history = History()
    history.configure("m")
    history.say(user("Go."))
    for text in ("One.", "Two."):
        history.answer(Response(assistant(text), FinishReason.STOP))
    assert [message.text for message in history.curated()] == ["Go.", "One.", "Two."]
