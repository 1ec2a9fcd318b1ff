"""Every command of the conversation has its words, in each language: they are looked up while a person types."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

import pytest

import dragoman as dm
from dragoman.conversation.commands import listed
from dragoman.tui.commands import LiveCommands
from dragoman.tui.completion import Menu, Suggestion
from dragoman.tui.talk import LiveTalk
from dragoman.words import lookup, say
from program import Place, service
from terminals import tmux
from tui.test_conversation import begin

pytestmark = pytest.mark.usefixtures("with_tmux")


def test_help_lists_every_command_in_the_users_language(place: Place) -> None:
    """The program itself looks the words of all its commands up; one without them would end it."""
    with service("text: hi") as place.service, tmux(place, "--lang", "zh", size=(60, 100)) as pane:
        begin(pane, ready="提问，/ 查看命令")
        pane.type("/help")
        pane.keys("Enter")
        screen = pane.expect("/quit")
        shown = set(re.findall(r"^ +(/[a-z-]+) ", screen, re.MULTILINE))
    told = {row.slash for row in listed("live")}
    assert shown >= told - {"/sessions"}, sorted(told - shown)


def test_what_another_program_calls_a_command_runs_it() -> None:
    said: list[str] = []
    agent = SimpleNamespace(background_commands=[])
    talk = cast("LiveTalk", SimpleNamespace(screen=SimpleNamespace(message=lambda text, style="": said.append(text)), agent=agent))
    LiveCommands(talk).run("/tasks")
    LiveCommands(talk).run("/tsks")
    assert said[0] == say("no_background_commands")
    assert "unknown command /tsks" in said[1]


@pytest.mark.parametrize(("columns", "wanted"), [(80, "what the model sees; also simulate"), (40, "what the model sees")])
def test_a_menu_says_what_a_command_does_in_whole_clauses(columns: int, wanted: str) -> None:
    menu = Menu(0, [Suggestion("/context", "what the model sees; also simulate")])
    assert "".join(span.text for span in menu.lines(columns, 6)[0]) == f"› /context  {wanted}"


def test_every_tool_of_ours_is_described_for_people_in_each_language() -> None:
    with dm.Agent(dm.testing.ScriptedProvider("text: hi"), tools=dm.ToolOptions(builtin=True)) as agent:
        names = {spec.name for spec in agent.tools.specs}
    assert "read_file" in names
    for name in (*names, "task", "activate_skill"):
        assert {lookup(f"tools.about_{name}", language) is not None for language in ("en", "zh")} == {True}, name
