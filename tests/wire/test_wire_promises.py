"""What the wire keeps beyond the numbered rules of docs/reference/wire.md: roles, forms of a result, search, nothing lost or leaked."""

from __future__ import annotations

import json

import msgspec
import pytest

from wire import cases
from wire.cases import CASES
from wire.destinations import BY_NAME, DESTINATIONS

ANTHROPIC, OPENAI, RESPONSES, GEMINI = (BY_NAME[name] for name in ("anthropic", "openai", "responses", "gemini"))
UNSENT = {"search", "search_and_tools", "json_schema_and_tools"}
"""Cases that some destinations say they cannot do."""


def test_roles_map_to_those_of_the_service() -> None:
    """PROVIDERS-5: user → user, model → assistant, functionResponse → tool, with the call's id and not the tool's name."""
    messages = OPENAI.body(CASES["one_call_and_the_answer"])["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[2] == {"role": "tool", "tool_call_id": "call_1", "content": "content of call_1"}
    assert [content["role"] for content in GEMINI.body(CASES["one_call_and_the_answer"])["contents"]] == [
        "user",
        "model",
        "user",
        "model",
        "user",
    ]


@pytest.mark.parametrize(
    ("name", "output", "kinds"),
    [
        ("one_call", "content of call_1", ["functionResponse"]),
        ("result_of_an_image", "Binary content of type image/png was processed.", ["functionResponse", "inlineData"]),
        ("result_of_two_blobs", "Tool execution succeeded.", ["functionResponse", "inlineData", "inlineData"]),
        ("result_of_a_file_by_address", "Binary content of type image/png was processed.", ["functionResponse", "fileData"]),
        ("result_of_text_and_image", "A picture:as asked", ["functionResponse", "inlineData"]),
    ],
)
def test_a_result_takes_one_of_three_forms(name: str, output: str, kinds: list[str]) -> None:
    """TOOLS-4: a string is the output; binary is said to have been processed; parts follow a success."""
    found = GEMINI.body(CASES[name])["contents"][-1]["parts"]
    assert [next(iter(part)) for part in found] == kinds
    assert found[0]["functionResponse"] == {"id": "call_1", "name": "read_file", "response": {"output": output}}


def test_search_is_declared_as_a_tool_of_the_service() -> None:
    """SEARCH-11: `tools: [{googleSearch: {}}]`, and no functionCall of ours."""
    assert GEMINI.body(CASES["search"])["tools"] == [{"googleSearch": {}}]
    both = GEMINI.body(CASES["search_and_tools"])
    assert [next(iter(tool)) for tool in both["tools"]] == ["functionDeclarations", "googleSearch"]


def test_the_opaque_of_one_provider_is_sent_to_no_other() -> None:
    """Sent back byte-identical to the provider that made it, left out for any other."""
    secrets = {
        "anthropic": [cases.ANTHROPIC_THINKING["signature"], cases.ANTHROPIC_REDACTED["data"], "srvtoolu_01"],
        "responses": ["gAAAAABfirst", "gAAAAABsecond", "ws_1", "commentary"],
        "gemini": [cases.GEMINI_SIGNATURE, cases.GEMINI_THOUGHT["thoughtSignature"], "executableCode"],
        "openrouter": [cases.DETAILS[0]["signature"], cases.DETAILS[1]["data"]],
        "elsewhere": ["secret"],
    }
    for to in DESTINATIONS:
        for name, request in CASES.items():
            if name in UNSENT:
                continue
            body = to.prepare(request).body
            for maker, marks_of in secrets.items():
                if maker != to.deployment.name:
                    assert not [mark for mark in marks_of if mark.encode() in body], f"{to.name} {name}: something of {maker}"


def test_every_call_and_every_result_is_sent() -> None:
    """Nothing is lost on the way: as many calls and results on the wire as in the conversation."""
    for to, call, result in (
        (ANTHROPIC, '"type": "tool_use"', '"type": "tool_result"'),
        (OPENAI, '"type": "function", "function": {"name"', '"role": "tool"'),
        (RESPONSES, '"type": "function_call",', '"type": "function_call_output"'),
        (GEMINI, '"functionCall": {', '"functionResponse": {'),
    ):
        for name, request in CASES.items():
            if name not in UNSENT:
                body = to.body(msgspec.structs.replace(request, tools=()))
                text = json.dumps(body)
                assert text.count(call) == sum(len(message.calls) for message in request.messages), f"{to.name} {name}"
                assert text.count(result) == sum(len(message.results) for message in request.messages), f"{to.name} {name}"
