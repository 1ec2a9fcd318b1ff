"""assert_valid, Validated and calls: what a user's test asserts on requests and calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman as dm
from dragoman.providers.catalog import builtin_catalog
from dragoman.testing.mock.rules import rules_of
from dragoman.values.contracts import HttpRequest
from dragoman.values.errors import InputError
from dragoman.values.messages import Message, Request, Text
from dragoman.values.wrapping import WrappingProvider

PROTOCOLS = ["gemini", "openai_chat", "openai_responses", "anthropic"]
ASKED = Request("", (Message("user", (Text("Hello"),)),))


@dm.tool(read_only=True)
def tides(harbour: str) -> str:
    """When the tide is high."""
    return f"04:05 in {harbour}"


@dm.tool(kind="execute")
def sink(ship: str) -> str:
    """Sink a ship."""
    return "sunk"


@pytest.mark.parametrize("where", ["", *PROTOCOLS, "kimi", "mistral", "vertex", "azure", "ollama/any", "anthropic/claude-haiku-4-5"])
def test_a_good_request_passes(where: str) -> None:
    dm.testing.assert_valid(ASKED, where)


@pytest.mark.parametrize(
    ("protocol", "body", "words"),
    [
        ("anthropic", {"model": "claude-opus-5", "messages": []}, "max_tokens: Field required"),
        ("openai_chat", {"model": "gpt-4.1", "messages": []}, "messages"),
        ("openai_responses", {"model": "gpt-6.1-sol", "input": [], "nonsense": 1}, "Unknown parameter: 'nonsense'"),
        ("gemini", {"contents": [], "nonsense": 1}, 'Unknown name "nonsense"'),
    ],
)
def test_a_bad_body_is_refused_in_the_words_of_the_service(protocol: str, body: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError) as caught:
        dm.testing.assert_valid(body, protocol)
    assert "would refuse this request: " in str(caught.value)
    assert words in str(caught.value)


def test_a_request_is_checked_by_the_rules_of_its_model() -> None:
    """The same body, another row of the catalog."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "thinking": {"type": "enabled"}}
    dm.testing.assert_valid(body, "kimi/kimi-k2.6")
    with pytest.raises(AssertionError, match=r"openai/.* would refuse"):
        dm.testing.assert_valid(body, "openai_chat")


def test_a_request_that_one_of_the_four_refuses_names_it() -> None:
    with pytest.raises(AssertionError, match="would refuse this request"):
        dm.testing.assert_valid(msgspec.structs.replace(ASKED, messages=()))


def test_a_body_alone_has_to_be_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not say which service it is for: name one of gemini, openai_chat"):
        dm.testing.assert_valid({"messages": []})
    with pytest.raises(InputError, match="scripted is no service whose requests could be checked"):
        dm.testing.assert_valid(ASKED, dm.testing.ScriptedProvider(""))
    with pytest.raises(dm.errors.ConfigError, match="no-such"):
        dm.testing.assert_valid(ASKED, "no-such")


def test_every_deployment_with_a_protocol_of_ours_can_be_asked() -> None:
    for name, deployment in builtin_catalog().deployments.items():
        if not deployment.in_process and deployment.default_model:
            dm.testing.assert_valid(ASKED, name)
            assert rules_of(deployment, deployment.profile)


def test_the_next_request_of_an_agent_is_valid_everywhere(tmp_path: Path) -> None:
    script = 'call: tides {"harbour": "Oban"}\n---\ntext: At 04:05.'
    with dm.Agent(dm.testing.ScriptedProvider(script), tools=[tides], workspace=tmp_path) as agent:
        agent.run_sync("When?")
        dm.testing.assert_valid(agent.history.request)
        for protocol in PROTOCOLS:
            dm.testing.assert_valid(agent.history.request, protocol)


# --- every request ------------------------------------------------------------------------------------------------------------


def test_every_request_is_checked_before_it_is_sent(tmp_path: Path) -> None:
    provider = dm.testing.ScriptedProvider("script: end=repeat\n---\ntext: Yes.")
    checked = dm.testing.Validated(provider, "anthropic")

    async def go() -> None:
        async for _ in checked.stream(ASKED):
            pass
        assert (await checked.generate(ASKED)).message.text == "Yes."
        empty = msgspec.structs.replace(ASKED, messages=())
        for ask in (checked.generate(empty), anext(checked.stream(empty))):
            with pytest.raises(AssertionError, match=r"anthropic/.* would refuse this request"):
                await ask

    asyncio.run(go())
    assert len(provider.requests) == 2
    assert len(checked.refusals) == 2


def test_a_run_of_an_agent_fails_with_the_words_of_the_service(tmp_path: Path) -> None:
    with dm.testing.Loopback("text: Hi.") as loopback:
        checked = dm.testing.Validated(loopback.connect("anthropic"))
        with dm.Agent(checked, workspace=tmp_path) as agent:
            assert agent.run_sync("Hello").text == "Hi."
        assert checked.refusals == []
        refused = dm.testing.Validated(Sampling(loopback.connect("openai/gpt-4.1")))
        with (
            dm.Agent(refused, workspace=tmp_path) as agent,
            pytest.raises(AssertionError, match=r"openai/gpt-4\.1 would refuse this request"),
        ):
            agent.run_sync("Hello")
        assert [request.violation for request in loopback.requests] == [None]


class Sampling(WrappingProvider):
    """Stands for a mistake in how a request is rendered."""

    def prepare(self, request: Request) -> HttpRequest:
        made = self.provider.prepare(request)
        return msgspec.structs.replace(made, body=made.body[:-1] + b',"nonsense":1}')


# --- calls --------------------------------------------------------------------------------------------------------------------


def test_calls_tell_what_was_called_and_what_became_of_it(tmp_path: Path) -> None:
    script = """
call: tides {"harbour": "Oban"}
call: sink {"ship": "Bounty"}
call: tides {"harbour": 7}
---
text: Done.
"""
    with dm.Agent(dm.testing.ScriptedProvider(script), tools=[tides, sink], workspace=tmp_path) as agent:
        agent.run_sync("Go")
        made = dm.testing.calls(agent)
    assert [(call.name, call.args) for call in made[:2]] == [("tides", {"harbour": "Oban"}), ("sink", {"ship": "Bounty"})]
    assert [call.outcome for call in made[:2]] == ["finished", "refused"]
    assert made[0].text == "04:05 in Oban"


def test_calls_of_rejected_answers_are_left_out(tmp_path: Path) -> None:
    script = "finish: MALFORMED_FUNCTION_CALL\n---\ntext: Done."
    with dm.Agent(dm.testing.ScriptedProvider(script), workspace=tmp_path) as agent:
        agent.run_sync("Go")
        assert dm.testing.calls(agent) == []
