"""`dragoman --text-tools`: the program with a model that has no function calling, over every protocol."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from program import PROTOCOLS, Place, Service, script

Serve = Callable[..., Service]


def written(name: str, **arguments: object) -> str:
    """A call as the default dialect writes it."""
    body = json.dumps({"name": name, "arguments": arguments})
    return "text: " + json.dumps(f"Let me see.\n<tool_call>\n{body}\n</tool_call>")


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_a_call_in_text_is_carried_out(place: Place, serve: Serve, model: str) -> None:
    (place.work / "a.txt").write_text("alpha")
    asked = serve(script(written("read_file", path="a.txt"), "text: It says alpha."))
    done = place.ask("What does a.txt say?", "--text-tools", model=model)
    assert (done.code, done.out, done.err) == (0, "It says alpha.\n", "")
    first, second = asked.requests
    assert not first.get("tools")
    assert "read_file" in json.dumps(first)
    assert "tool_response" in json.dumps(second)
    assert "alpha" in json.dumps(second)


def test_configured_names_are_understood(place: Place, serve: Serve) -> None:
    (place.work / "a.txt").write_text("alpha")
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(
        '[text_tools]\nmode = "text"\n[text_tools.mapping.read_file]\nwhich = "file_path"\n'
    )
    asked = serve(script(written("read_file", which="a.txt"), "text: It says alpha."))
    assert place.ask().out == "It says alpha.\n"
    assert "alpha" in json.dumps(asked.requests[1])


@pytest.mark.parametrize("name", ["fenced_json", "seed"])
def test_the_format_of_the_fenced_json_dialect_under_its_old_name_too(name: str, place: Place, serve: Serve) -> None:
    (place.work / "a.txt").write_text("alpha")
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(f'[text_tools]\nmode = "text"\ndialect = "{name}"\n')
    call = '```json\n{"tool_call": {"name": "read_file", "arguments": {"file_path": "a.txt"}}}\n```'
    asked = serve(script("text: " + json.dumps(call), "text: It says alpha."))
    assert place.ask(model=PROTOCOLS["gemini"]).out == "It says alpha.\n"
    guidance = asked.requests[0]["contents"][0]["parts"][0]["text"]
    assert guidance.startswith("You are an AI assistant with access to the following tools."), "over Gemini it is the first user content"


def test_a_dialect_nobody_knows_is_an_error_that_says_which_there_are(place: Place) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text('[text_tools]\ndialect = "hermse"\n')
    done = place.ask(env={"ANTHROPIC_API_KEY": "k" * 20})
    assert done.code == 52
    assert "hermse" in done.err
    assert "hermes" in done.err.replace("hermse", "")


def test_an_unknown_model_that_writes_its_calls_as_text_is_understood(place: Place, serve: Serve) -> None:
    """In native mode: the first such call is taken for what it is, and from then on tools are told in text."""
    (place.work / "a.txt").write_text("alpha")
    asked = serve(script(written("read_file", file_path="a.txt"), "text: It says alpha."))
    done = place.ask(model="openai/some-new-model")
    assert (done.code, done.out) == (0, "It says alpha.\n")
    assert "as text" in done.err
    first, second = asked.requests
    assert first["tools"]
    assert not second.get("tools")
