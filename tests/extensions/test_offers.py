"""Servers and hooks of a project: one question about all of them before the conversation begins, in the first frame or line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from program import Place, service
from terminals import Terminal, terminal

LIVE = pytest.mark.parametrize("ui", ["plain", ""])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    servers = {name: {"command": "false", "args": [name]} for name in ("notes", "tickets")}
    (made.work / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (made.work / ".claude").mkdir()
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": "echo green >> started.log"}]}]}
    (made.work / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    yield made
    made.close()


def answer(shown: Terminal, place: Place, letter: str) -> None:
    wait_until_it_takes_answers(shown, place)
    shown.send(f"{letter}\n" if place.ui else letter)


def wait_until_it_takes_answers(shown: Terminal, place: Place) -> None:
    """What is typed before is none."""
    shown.expect("(Enter: n): " if place.ui else "Enter answers with it; or another key")


def states(place: Place) -> list[str]:
    servers = place.run("mcp", "--json").json["servers"]
    [hook] = place.run("hooks", "--json").json["hooks"]
    return [*(row["approved"] for row in servers), hook["state"]]


@LIVE
@pytest.mark.parametrize(("letter", "said"), [("y", ["yes", "yes", "runs"]), ("n", ["no", "no", "refused"])])
def test_one_question_is_about_all_of_them_and_asked_once(place: Place, ui: str, letter: str, said: list[str]) -> None:
    place.ui = ui
    with service("text: hello") as place.service:
        with terminal(place) as shown:
            shown.expect("Trust this folder?")
            answer(shown, place, "y")
            shown.expect(
                "This project brings programs", "server notes: false notes", "server tickets: false", "hook at SessionStart: echo green"
            )
            shown.expect("(.claude/settings.json:1)", "Use all of them?")
            answer(shown, place, "?")
            shown.expect("A hook is a command")
            answer(shown, place, letter)
            shown.expect("anthropic/claude-opus-5 ·")
        assert states(place) == said
        with terminal(place) as shown:
            assert "This project brings" not in shown.expect("anthropic/claude-opus-5 ·")


@LIVE
def test_they_can_be_asked_about_one_by_one(place: Place, ui: str) -> None:
    place.ui = ui
    place.run("trust")
    with service("text: hello") as place.service, terminal(place) as shown:
        shown.expect("Use all of them?")
        answer(shown, place, "e")
        for name, letter in (("server notes", "n"), ("server tickets", "y"), ("hook at SessionStart", "y")):
            shown.expect(name, "Use it?")
            answer(shown, place, letter)
        shown.expect("anthropic/claude-opus-5 ·")
    assert states(place) == ["no", "yes", "runs"]


@LIVE
def test_who_leaves_at_the_question_has_answered_nothing(place: Place, ui: str) -> None:
    place.ui = ui
    place.run("trust")
    before = states(place)
    with terminal(place) as shown:
        wait_until_it_takes_answers(shown, place)
        shown.send(b"\x04")
        assert shown.ended() == 0
        assert shown.modes == shown.before
    assert states(place) == before
