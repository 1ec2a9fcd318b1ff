"""Commands about how things are set."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dragoman.app.options import Options
from dragoman.app.setup import set_up
from dragoman.tui.settings_commands import show_trust
from dragoman.tui.talk import LiveTalk
from dragoman.words import choose_language, chosen_language


def test_trusting_a_folder_keeps_the_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "DRAGOMAN_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    before, setup, said = chosen_language(), set_up(Options(directory=str(tmp_path / "work"))), list[str]()
    screen = SimpleNamespace(line=said.append, message=lambda text, style="": said.append(text))
    try:
        choose_language("zh")
        show_trust(cast("LiveTalk", SimpleNamespace(setup=setup, screen=screen)), "")
        assert chosen_language() == "zh"
    finally:
        choose_language(before)
    assert "已信任" in said[0]
