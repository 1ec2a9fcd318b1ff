"""What an agent has and tells when it is given nothing more: for a library, nothing of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import dragoman as dm
from dragoman.testing import ScriptedProvider


def tides(harbour: str) -> str:
    """When the tide is high."""
    return "04:05"


def asked_of(agent: dm.Agent, provider: ScriptedProvider) -> dm.Request:
    with agent:
        agent.run_sync("When is high water?")
    return provider.requests[-1]


def test_an_agent_has_the_tools_it_was_given_and_says_nothing_of_its_own() -> None:
    provider = ScriptedProvider("text: At four.")
    request = asked_of(dm.Agent(provider, tools=[tides]), provider)
    assert [tool.name for tool in request.tools] == ["tides"]
    assert request.system == ""
    assert [message.text for message in request.messages] == ["When is high water?"]


def test_an_agent_without_tools_declares_none() -> None:
    provider = ScriptedProvider("text: At four.")
    request = asked_of(dm.Agent(provider, tools=dm.ToolOptions()), provider)
    assert request.tools == ()


def test_a_coding_agent_has_what_the_program_has(tmp_path: Path) -> None:
    (tmp_path / "harbour.py").touch()
    provider = ScriptedProvider("text: At four.")
    request = asked_of(dm.coding_agent(provider, tools=[tides], workspace=tmp_path), provider)
    assert {"read_file", "edit", "run_shell", "tides"} <= {tool.name for tool in request.tools}
    assert "tool" in request.system
    assert "harbour.py" in request.messages[0].text


@pytest.mark.parametrize("chosen", [["grep"], ("read_file", "grep")])
def test_a_coding_agent_may_have_a_few_of_the_tools(chosen: list[str]) -> None:
    provider = ScriptedProvider("text: At four.")
    request = asked_of(dm.coding_agent(provider, tools=dm.ToolOptions(builtin=chosen)), provider)
    assert {tool.name for tool in request.tools} == set(chosen)


def test_what_is_told_can_be_chosen_apart_from_the_tools(tmp_path: Path) -> None:
    provider = ScriptedProvider("text: At four.")
    told = asked_of(dm.Agent(provider, workspace=dm.WorkspaceOptions(tmp_path, describe=True)), provider)
    assert len(told.messages) == 2
    silent = asked_of(dm.coding_agent(provider, workspace=dm.WorkspaceOptions(tmp_path, describe=False), system=""), provider)
    assert (len(silent.messages), silent.system) == (1, "")


def test_memory_files_that_are_given_are_told() -> None:
    provider = ScriptedProvider("text: At four.")
    memory = dm.WorkspaceOptions(memory=[("AGENTS.md", "Answer in verse.")])
    request = asked_of(dm.Agent(provider, workspace=memory), provider)
    assert "Answer in verse." in request.messages[0].text


def test_an_agent_may_be_named_by_its_dependencies_alone() -> None:
    assert dm.Agent[int].__origin__ is dm.Agent
    assert dm.Agent[int, str](ScriptedProvider("text: Aye."), deps=7).run_sync("Ready?").text == "Aye."
