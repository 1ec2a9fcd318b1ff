"""Shift-Tab goes through auto where commands run inside a boundary, and `/sandbox` shows and changes it, in a real terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.words import choose_language, say
from policy.sandbox.sandboxes import sandbox_at
from program import Place, calls, script, service
from terminals import Tmux, tmux

pytestmark = [
    pytest.mark.usefixtures("with_tmux"),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux"),
]
LEAVE = "⌃D"


@pytest.fixture(autouse=True)
def at_level_one(tmp_path: Path) -> None:
    """The sandbox of these tests: where it does not work, they are skipped."""
    with sandbox_at(1, tmp_path):
        pass


def cycle(pane: Tmux, *modes: str) -> None:
    for mode in modes:
        pane.keys("BTab")
        pane.expect(say(f"mode_{mode}")[:14])
        pane.keys("BSpace")  # the hint goes, and the status line is back
        pane.expect(LEAVE)


def status(pane: Tmux) -> str:
    return pane.run("capture-pane", "-p", "-t", "talk").rstrip().splitlines()[-1]


def test_shift_tab_goes_through_auto_and_the_sandbox_is_said_and_turned_off(place: Place) -> None:
    server = calls(("run_shell", {"command": "python3 -m http.server 8124", "background": True}))
    asks = calls(("shell_output", {"id": "bg1", "wait_s": 1}))
    with service(script(server, asks, "text: It serves.")) as place.service, tmux(place, "--sandbox", "1", size=(40, 120)) as pane:
        pane.expect(LEAVE)
        cycle(pane, "auto-edit", "auto")
        assert "sandbox: workspace only" in status(pane)
        pane.type("start it")
        pane.keys("Enter")
        pane.expect("bg1 listens on port 8124 inside the sandbox. /sandbox port 8124 opens it to your browser.")
        pane.expect("It serves.")
        pane.type("/sandbox port 8124")
        pane.keys("Enter")
        pane.expect("port 8124: http://127.")
        pane.type("/sandbox o")
        pane.expect("back into the sandbox")  # what may follow is offered
        pane.keys("Tab", "Enter")
        pane.expect("the sandbox is off for this session")
        pane.expect("approval: default, because auto needs a sandbox")
        assert "no sandbox" in status(pane)
        cycle(pane, "auto-edit", "plan", "default")
        pane.type("/sandbox on")
        pane.keys("Enter")
        pane.expect("sandbox: level 1", count=1)


@pytest.mark.parametrize(
    ("level", "modes", "line"),
    [
        ("off", ("auto-edit", "plan", "default"), "无沙箱"),
        ("external", ("auto-edit", "auto", "plan"), "沙箱：外部边界"),
    ],
)
def test_auto_is_skipped_without_a_boundary_and_not_where_one_was_named(
    place: Place, level: str, modes: tuple[str, ...], line: str
) -> None:
    with service(script("text: Hi.")) as place.service, tmux(place, "--sandbox", level, "--lang", "zh", size=(30, 80)) as pane:
        pane.expect(LEAVE)
        assert line in status(pane)
        choose_language("zh")
        try:
            cycle(pane, *modes)
        finally:
            choose_language("en")
