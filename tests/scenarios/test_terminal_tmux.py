"""A conversation in a real terminal: keys go in, and the screen is looked at. A write approved, one refused, one cancelled."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from program import Place, Service, calls, script, service
from terminals import Tmux, tmux

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: the conversation cannot be driven in a terminal"
)

EVIL = "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b5mblink\rover"
OLD, NEW = "The old text.\n", "The new text.\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def serving(place: Place) -> Iterator[Service]:
    edit = calls(("edit", {"file_path": "story.txt", "old_string": "old", "new_string": "new"}))
    look = calls(("read_file", {"file_path": "story.txt"}), ("list_directory", {"path": "."}))
    undo = calls(("write_file", {"file_path": "story.txt", "content": "Spoiled.\n"}))
    answers = script(
        f"thought: The story must be read first.\n{look}",
        f"text: I change one word.\n{edit}",
        f"text: {json.dumps(f'Approved. {EVIL}')}",
        undo,
        "text: Then I leave it as it is.",
        undo,
        "text: Still here after the cancel.",
        "text: Said by the other model.",
    )
    with service(answers) as serving:
        place.service = serving
        yield serving


def test_a_conversation(place: Place, serving: Service) -> None:
    """TURN-1 and TOOLS-1 as a user sees them: a write approved, one refused, one cancelled."""
    story = place.work / "story.txt"
    story.write_text(OLD)
    with tmux(place) as pane:
        pane.expect("› ")
        _approved(pane, story)
        _harmless(pane)
        _refused(pane, story, serving)
        _cancelled(pane, story, serving)
        _other_model(pane, serving)
        _leaves(pane)
    assert story.read_text() == NEW


def _approved(pane: Tmux, story: Path) -> None:
    pane.type("Change the story.")
    pane.keys("Enter")
    screen = pane.expect("run):")
    for line in ("… The story must be read first.", "● read_file story.txt ✓", "● list_directory . ✓", "I change one word."):
        assert line in screen
    for line in ("-The old text.", "+The new text.", "[y]es once", "[r]efuse with a reason"):
        assert line in screen
    _keep(screen, "approval")
    pane.keys("x")
    pane.expect("kept for the next prompt")
    assert story.read_text() == OLD
    pane.expect("run):", count=2)
    pane.keys("y")
    pane.expect("Approved.")
    pane.expect("› x", count=1)
    pane.keys("BSpace")
    assert story.read_text() == NEW


def _harmless(pane: Tmux) -> None:
    """What the model said did not clear the screen, set the title, colour or move anything."""
    screen = pane.screen()
    assert "Change the story." in screen
    assert "[31mred" in screen
    assert "blinkover" in screen
    assert "owned" not in pane.run("display-message", "-p", "-t", "talk", "#{pane_title}")


def _refused(pane: Tmux, story: Path, serving: Service) -> None:
    pane.type("Spoil it.")
    pane.keys("Enter")
    pane.expect("run):", count=3)
    pane.keys("r")
    pane.expect("(the model reads this):")
    pane.type("it is fine as it is")
    pane.keys("Enter")
    screen = pane.expect("Then I leave it as it is.")
    assert "● write_file story.txt ✗" in screen
    assert story.read_text() == NEW
    assert "it is fine as it is" in str(serving.requests[-1]["messages"][-1])
    pane.expect("› ", count=3)


def _cancelled(pane: Tmux, story: Path, serving: Service) -> None:
    pane.type("Spoil it all the same.")
    pane.keys("Enter")
    pane.expect("run):", count=4)
    pane.keys("C-c")
    pane.expect("\ncancelled", within_s=60)
    pane.expect("› ", count=4)
    assert story.read_text() == NEW
    pane.type("never sent")
    pane.keys("C-c")
    pane.expect("press Ctrl-C again, or Ctrl-D, to leave")
    pane.paste("Are you\nstill there?")
    pane.expect("still there?")
    pane.keys("Enter")
    _keep(pane.expect("Still here after the cancel."), "refused-and-cancelled")
    last = str(serving.requests[-1])
    assert "Cancelled by the user before it was run" in last
    assert "Are you\\nstill there?" in last
    assert "never sent" not in last


def _other_model(pane: Tmux, serving: Service) -> None:
    pane.expect("› ", count=6)
    pane.type("/model openai/gpt-4.1")
    pane.keys("Enter")
    pane.expect("the model is now openai/gpt-4.1")
    pane.type("And you?")
    pane.keys("Enter")
    pane.expect("Said by the other model.")
    assert [exchange.protocol for exchange in serving.server.requests[-2:]] == ["anthropic", "openai_chat"]


def _leaves(pane: Tmux) -> None:
    pane.expect("› ", count=8)
    pane.keys("C-d")
    pane.expect("exit code 0")
    screen = pane.expect(" echo ")  # and not -echo: the terminal is as it was
    assert " icanon " in screen.replace("\n", " ")
    assert "-icanon" not in screen
    assert "Traceback" not in screen
    _keep(screen, "whole")


def _keep(screen: str, name: str) -> None:
    """For looking at it, where somebody wants to: DRAGOMAN_SCREENS names a folder."""
    if folder := KEEP:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}.txt").write_text(screen.rstrip() + "\n")


KEEP = os.environ.get("DRAGOMAN_SCREENS", "")
