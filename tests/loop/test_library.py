"""Small things that an embedder reaches for: estimates, events, embeddings, sessions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman.context import estimate_tokens
from dragoman.testing.scripted import ScriptedProvider

# --- how long something is


def test_a_token_estimate_is_made_of_texts_messages_tools_and_requests() -> None:
    @dm.tool
    def tides(harbour: str) -> str:
        "When the tide is high."
        return harbour

    message, spec = dm.user("Where is the tide computed?"), tides.spec
    request = dm.build_request("m", [message], system="Be brief.", tools=[spec])
    assert estimate_tokens("") == 0
    assert 5 <= estimate_tokens("Where is the tide computed?") <= 9
    assert estimate_tokens([message, message]) == 2 * estimate_tokens(message)
    assert abs(estimate_tokens(request) - sum(map(estimate_tokens, ["Be brief.", spec, *request.messages]))) <= 2
    assert dm.context.estimate_tokens is estimate_tokens


def test_it_is_scaled_to_a_models_tokenizer() -> None:
    text = "word " * 1_000
    assert estimate_tokens(text, dm.Profile(token_scale=1.5)) == pytest.approx(1.5 * estimate_tokens(text), abs=2)


@given(st.lists(st.text(max_size=50), max_size=5))
def test_it_is_what_the_agent_itself_goes_by(texts: list[str]) -> None:
    history = dm.History()
    history.configure("m", "Be brief.", session_id="s")
    for text in texts:
        history.say(dm.user(text))
    view = history.view
    assert abs(estimate_tokens(view.request) - view.raw_tokens) <= 1 + len(texts)


# --- events


def test_a_finished_call_says_which_tool_it_was(tmp_path: Path) -> None:
    @dm.tool(read_only=True)
    def look() -> str:
        "Look."
        return "a gull"

    agent = dm.Agent(ScriptedProvider("call: look {}\n---\ntext: Done."), tools=[look])
    finished = [event for event in agent.stream_sync("Look.") if isinstance(event, dm.ToolCallFinished)]
    agent.close()
    assert [event.name for event in finished] == ["look"]


# --- embeddings


@pytest.mark.parametrize("model", ["anthropic", "local//some/where.gguf"])
def test_a_service_without_embeddings_names_no_remedy_that_does_not_exist(model: str) -> None:
    """It said that a model could be named, which did not help."""
    with pytest.raises(dm.errors.Unsupported) as caught:
        asyncio.run(dm.connect(model, key="k", env={}).embed(["a text"]))
    assert "name one" not in str(caught.value)


def test_a_service_that_could_have_some_asks_for_the_model() -> None:
    with pytest.raises(dm.errors.Unsupported, match="name one"):
        asyncio.run(dm.connect("vllm/any", env={}).embed(["a text"]))


# --- sessions


def test_the_sessions_of_a_folder_are_listed_and_resumed(tmp_path: Path) -> None:
    with dm.Agent(ScriptedProvider("text: Hello."), session=tmp_path / "sessions", workspace=tmp_path) as agent:
        agent.run_sync("Hello?")
    (summary,) = dm.stores.FileStore(tmp_path / "sessions").list()
    resumed = dm.SessionOptions(tmp_path / "sessions", resume=summary.session_id)
    with dm.Agent(ScriptedProvider("text: Again."), session=resumed, workspace=tmp_path) as agent:
        assert len(agent.history.view.messages) >= 2
    with pytest.raises(dm.InputError, match=r"Store\.list\(\)"):
        dm.Agent(ScriptedProvider(""), session=dm.SessionOptions(tmp_path / "sessions", resume="20200101-000000-00000000"))


DECLARED = {"name": "tides", "description": "When the tide is high.", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "tools",
    [
        [DECLARED],
        [{"functionDeclarations": [DECLARED]}],
        {"functionDeclarations": [DECLARED]},
        [{"type": "function", "function": DECLARED}],
        [{"name": "tides", "description": DECLARED["description"], "input_schema": DECLARED["parameters"]}],
    ],
)
def test_the_tools_of_a_request_may_be_declared_as_any_service_has_them(tools: Any) -> None:
    spec = dm.ToolSpec.of("tides", "When the tide is high.", {"type": "object", "properties": {}})
    assert dm.build_request("m", "When?", tools=tools).tools == (spec,)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tools": [3]}, "this declares no tool: 3"),
        ({"tools": "tides"}, "this declares no tool: 'tides'"),
        ({"tools": [{"googleSearch": {}}]}, "'googleSearch' is the service's own search .*=Settings\\(search=True\\) for a single request"),
        ({"system": {"parts": [{"text": "Be brief."}]}}, "system must be a text, not a dict"),
        ({"settings": {"temperature": 0}}, "settings must be a dragoman.Settings, not a dict"),
    ],
)
def test_what_no_request_can_hold_is_refused_in_words(given: dict[str, Any], words: str) -> None:
    with pytest.raises(dm.InputError, match=words):
        dm.build_request("m", "When?", **given)
