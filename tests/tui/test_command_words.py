"""Every command of the conversation has its words, in each language: they are looked up while a person types."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from dragoman.base.words import choose_language, say
from dragoman.tui.commands import LiveCommands


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_command_says_what_it_does(language: Any) -> None:
    names = LiveCommands(MagicMock()).names
    choose_language(language)
    try:
        for name in names:
            assert name == "/exit" or say(f"conversation.help_{name[1:]}"), name
    finally:
        choose_language("en")
