"""A small model's answer that nothing supports is marked wherever a person or a program reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from program import Place, Service
from terminals import terminal

Serve = Callable[..., Service]
MODEL = "openai/gpt-4.1"
SMALL = """\
[deployments.openai.models."gpt-4.1"]
tools = "text"
small.short_prompt = true
small.few_tools = { read_file = ["file_path"], list_directory = ["path"] }
"""
ASKED = "which port does app.py use?"
MARK = "not checked: no file was read and no command was run for this answer, so what gpt-4.1 says is a guess"


@pytest.fixture
def small(place: Place, serve: Serve) -> Place:
    serve("text: It uses port 8080.")
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(SMALL)
    return place


def test_beside_the_answer_alone(small: Place) -> None:
    done = small.ask(ASKED, model=MODEL)
    assert (done.code, done.out) == (0, "It uses port 8080.\n")
    assert MARK in " ".join(done.err.split())


def test_as_a_field(small: Place) -> None:
    done = small.ask(ASKED, "--output-format", "json", model=MODEL)
    assert (done.json["response"], done.json["unchecked"]) == ("It uses port 8080.", MARK)
    greeted = small.ask("hi", "--output-format", "json", model=MODEL)
    assert "unchecked" not in greeted.json


def test_in_the_stream(small: Place) -> None:
    done = small.ask(ASKED, "--output-format", "stream-json", model=MODEL)
    assert done.events[-1]["unchecked"] == MARK
    assert MARK in [event["message"] for event in done.of("error")]


def test_in_chinese(small: Place) -> None:
    done = small.ask(ASKED, "--output-format", "json", "--lang", "zh", model=MODEL)
    assert done.json["unchecked"] == "未经核实：这个回答没有读取任何文件，也没有运行任何命令，gpt-4.1 的说法只是猜测"


@pytest.mark.parametrize("ui", ["plain", ""])
def test_in_a_conversation_and_when_the_session_is_shown(ui: str, small: Place) -> None:
    small.ui = ui
    with terminal(small, model=MODEL) as shown:
        shown.expect("›")
        shown.send(f"{ASKED}\r")
        shown.expect("what gpt-4.1 says is a guess")
        shown.send("/tools\r")
        listed = shown.expect("too small to keep them apart")
        assert "list_directory" in listed
        assert "run_shell" not in listed
        shown.send("/quit\r")
        assert shown.ended() == 0
    assert MARK in " ".join(small.run("sessions", "show", "latest").out.split())
