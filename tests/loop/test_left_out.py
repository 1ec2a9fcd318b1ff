"""Settings that a model is not sent: the user is told which, and why, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import make_agent
from destinations import connection
from dragoman.loop.left_out import left_out
from dragoman.loop.model import Model
from dragoman.providers.catalog import Catalog, builtin_catalog
from dragoman.providers.connect import Connection, connect
from dragoman.testing.mock.server import MockServer
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.events import NoticeGiven
from dragoman.values.messages import Settings, Thinking
from scenarios.workshop import agent_for, events_of, play

SAMPLING = Settings(temperature=0.2, top_p=0.9, top_k=20)


def names(provider: Connection, settings: Settings) -> list[str]:
    return [name for name, _ in left_out(Model.of(provider), settings, ())]


def a_model(**profile: object) -> Connection:
    """A model of a chat service, with this profile."""
    row = {"protocol": "openai_chat", "base_url": "http://127.0.0.1:9", "auth": "none", "models": {"one": profile}}
    return connect("corp/one", env={}, catalog=Catalog({}).with_rows({"corp": row}))


def test_what_is_sent_is_not_told() -> None:
    assert names(connection("gemini"), Settings()) == []
    assert names(a_model(), Settings(temperature=0.2, top_p=0.9)) == []
    assert names(a_model(thinking="effort"), Settings(thinking=Thinking("high"))) == []


def test_a_reasoning_model_is_sent_no_sampling() -> None:
    [temperature, top_p, top_k] = left_out(Model.of(a_model(temperature=False)), SAMPLING, ())
    assert temperature == ("temperature", "settings.temperature is not sent: corp/one takes neither temperature nor top_p nor top_k")
    assert (top_p[0], top_k[0]) == ("top_p", "top_k")


def test_a_setting_that_the_protocol_does_not_have_is_told_alone() -> None:
    assert names(a_model(), SAMPLING) == ["top_k"]


def test_settings_that_exclude_each_other_are_told() -> None:
    """Anthropic takes temperature or top_p, and neither while the model thinks."""
    haiku = connection("anthropic-budget")
    assert names(haiku, Settings(temperature=0.2, top_p=0.9)) == ["top_p"]
    assert names(haiku, Settings(temperature=0.2, thinking=Thinking("high"))) == ["temperature"]


def test_of_a_model_nobody_knows_it_is_said_how_to_send_them() -> None:
    catalog = builtin_catalog().with_rows({"gemini": {"profile": {"temperature": False}}})
    unknown = connect("gemini/gemini-99-new", key="k", env={}, catalog=catalog)
    [(_, why)] = left_out(Model.of(unknown), Settings(temperature=0.2), ())
    assert "not in the catalog" in why
    assert "[deployments]" in why


@pytest.mark.parametrize(
    ("profile", "effort", "word"),
    [
        ({"thinking": "none"}, "high", "cannot be told"),
        ({"thinking": "always"}, "low", "always thinks"),
        ({"thinking": "effort", "thinking_off": False}, "off", "cannot do without thinking"),
        ({"thinking": "effort", "efforts": ["none", "high"]}, "medium", "takes none, high"),
        ({"thinking": "switch", "thinking_switch": "enable_thinking"}, "low", "to think or not to"),
        ({"thinking": "none"}, "off", ""),
        ({"thinking": "effort", "efforts": ["none", "high"]}, "max", ""),
        ({"thinking": "switch", "thinking_switch": "enable_thinking"}, "high", ""),
    ],
)
def test_an_effort_that_is_not_sent_as_it_was_asked_for_is_told(profile: dict[str, object], effort: str, word: str) -> None:
    found = left_out(Model.of(a_model(**profile)), Settings(thinking=Thinking(effort)), ())  # type: ignore[arg-type]
    if not word:
        assert found == []
        return
    [(name, why)] = found
    assert name == "thinking"
    assert word in why
    assert effort in why


def test_an_effort_that_is_dropped_beside_tools_is_told() -> None:
    from scenarios.workshop import PlainTool

    model = Model.of(a_model(thinking="effort", effort_with_tools=False))
    assert left_out(model, Settings(thinking=Thinking("high")), ()) == []
    [(_, why)] = left_out(model, Settings(thinking=Thinking("high")), (PlainTool().spec,))
    assert "while it has tools" in why


def test_a_run_tells_it_once_for_each_model(tmp_path: Path) -> None:
    async def go() -> None:
        async with MockServer("answer: times=9\ntext: ok") as server:
            opus = connection("anthropic", server.url)
            agent = make_agent(opus, builtin=False, describe=False, workspace=tmp_path, settings=Settings(temperature=0.2))

            async def notices() -> list[str]:
                return [event.message for event in await events_of(agent.run("a")) if isinstance(event, NoticeGiven)]

            told = [await notices(), await notices()]
            agent.change_model(connection("openai_responses", f"{server.url}/v1"))
            told.append(await notices())
            assert [len(each) for each in told] == [1, 0, 1]
            assert "anthropic/claude-opus-5" in told[0][0]
            assert "responses/gpt-6.1-sol" in told[2][0]

    play(go)


def test_nothing_is_said_of_a_provider_of_somebodys_own() -> None:
    async def go() -> None:
        agent = agent_for(ScriptedProvider("text: ok"), settings=SAMPLING)
        assert not [event for event in await events_of(agent.run("a")) if isinstance(event, NoticeGiven)]

    play(go)
