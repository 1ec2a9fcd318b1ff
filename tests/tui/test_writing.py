"""The question about writing, after a command ran with the workspace read-only: in the live conversation and line by line."""

from __future__ import annotations

from typing import Any

import pytest

from program import Place, calls, script, service
from system_parts import require_read_only
from terminals import tmux
from tui.test_conversation import ASKS, READY, begin

COMMAND = "mkdir made && echo it is made"
AGAIN = {"": "Let this command write in the workspace?", "plain": "Let it write?"}


@pytest.fixture(autouse=True)
def is_read_only_here(place: Place) -> None:
    require_read_only(place.work)


def shell(command: str = COMMAND, **more: Any) -> str:
    return calls(("run_shell", {"command": command, **more}))


def told(place: Place) -> list[str]:
    assert place.service is not None
    parts = [part for message in place.service.requests[-1]["messages"] for part in message["content"]]
    texts = [part["content"] for part in parts if part["type"] == "tool_result"]
    return [text if isinstance(text, str) else text[0]["text"] for text in texts]


@pytest.mark.parametrize("ui", ["", "plain"])
def test_the_refused_line_is_shown_and_yes_runs_it_again(place: Place, ui: str) -> None:
    place.ui = ui
    with service(script(shell(), shell("rmdir made"), "text: Both done.")) as place.service, tmux(place, size=(40, 100)) as pane:
        begin(pane, "go", "/help" if ui else READY)
        screen = pane.expect(AGAIN[ui])
        assert "cannot create directory ‘made’: Read-only file system" in screen.replace("\n  ", " ")
        assert not (place.work / "made").exists()
        pane.expect("run):" if ui else ASKS)
        pane.keys("y")
        pane.expect(AGAIN[ui], count=2 if ui else 1)
        pane.expect("rmdir")
        pane.expect("run):" if ui else ASKS, count=2 if ui else 1)
        assert (place.work / "made").exists()
        pane.keys("n")
        screen = pane.expect("Both done.")
        assert "stopped by the sandbox: it ran with the workspace read-only" in screen
    first, second = told(place)
    assert first == "it is made\n[It ran again with writing allowed; this is the second run.]"
    assert "the user said no" in second
    assert (place.work / "made").exists()


@pytest.mark.parametrize("ui", ["", "plain"])
def test_one_key_lets_commands_write_for_the_session(place: Place, ui: str) -> None:
    place.ui = ui
    answers = script(shell(), shell("rmdir made"), "text: 完成。")
    with service(answers) as place.service, tmux(place, "--lang", "zh", size=(40, 100)) as pane:
        begin(pane, "go", "/help" if ui else "提问")
        screen = pane.expect("允许它写入吗" if ui else "允许这条命令写入工作区吗")
        assert "本次会话中所有命令都可以写入工作区" in screen.replace("\n", "")
        pane.expect("停止运行）：" if ui else "按一个键回答")
        pane.keys("w")
        pane.expect("完成。")
        assert pane.screen().count("Read-only") == 1, "what the first run said stands in the question alone"
    assert told(place) == ["it is made\n[It ran again with writing allowed; this is the second run.]", "(no output)"]
    assert not (place.work / "made").exists()
