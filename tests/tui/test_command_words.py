"""Every command of the conversation has its words, in each language: they are looked up while a person types."""

from __future__ import annotations

import re

import pytest

from dragoman.base.words.en.conversation import TEXTS as ENGLISH
from dragoman.base.words.zh.conversation import TEXTS as CHINESE
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
    told = {f"/{key.removeprefix('conversation.help_')}" for key in ENGLISH if key.startswith("conversation.help_")}
    assert shown >= told - {"/sessions", "/cost", "/add-dir"}, sorted(told - shown)
    assert {key for key in ENGLISH if key.startswith("conversation.help_")} <= CHINESE.keys()
