"""What the program tells the model of where it is: with -p, in a conversation, in a git repository; and what the first request costs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.app.git_status import MAX_FILES, StatusLook, status_lines
from dragoman.loop.history import History
from dragoman.values.messages import ToolCall
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
MAX_FIRST_TOKENS = 3_000
"""Of the first request, four bytes for one."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is told of the sandbox is told on Linux")


def said(body: dict[str, Any]) -> str:
    """Every text of a request's messages."""
    parts = [message["content"] if isinstance(message["content"], list) else [message["content"]] for message in body["messages"]]
    return "\n".join(part if isinstance(part, str) else part.get("text", "") for each in parts for part in each)


def size(body: dict[str, Any]) -> float:
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) / 4


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    subprocess.run(command, capture_output=True, check=True)


@pytest.mark.parametrize("mode", ["plan", "default", "auto-edit", "auto"])
def test_with_p_nobody_can_be_asked_and_nothing_says_so(mode: str, place: Place, serve: Serve) -> None:
    options = ("--sandbox", "external") if mode == "auto" else ()
    served = serve("text: Hi.")
    assert place.ask("hello", "--approval", mode, *options).code == 0
    (body,) = served.requests
    assert "nobody can answer or approve anything" in said(body)
    whole = json.dumps(body)
    for words in ("I am asked", "asks me", "ask_user", "They are asked", ", ask;"):
        assert words not in whole
    assert size(body) <= MAX_FIRST_TOKENS


def test_in_a_conversation_the_person_can_be_asked_and_a_change_of_mode_is_told(place: Place, serve: Serve) -> None:
    served = serve(script("text: One.", "text: Two.", "text: Three."))
    with terminal(place, "-m", "anthropic/claude-opus-5") as shown:
        shown.prompt()
        shown.ask("one")
        shown.expect("One.")
        shown.prompt()
        shown.ask("/approval plan")
        shown.prompt()
        shown.ask("/approval default")
        shown.prompt()
        shown.ask("two")
        shown.expect("Two.")
        shown.prompt()
        shown.ask("/approval plan")
        shown.prompt()
        shown.ask("three")
        shown.expect("Three.")
    first, second, third = served.requests
    assert "Questions: I can answer." in said(first)
    assert "I am asked about each edit." in said(first)
    assert size(first) <= MAX_FIRST_TOKENS, size(first)
    assert "has changed" not in said(second), "there and back is no change"
    assert said(third).count("Approval mode: plan.") == 1
    assert said(third).count("Commands run in a sandbox") == 1


def test_a_conversation_that_goes_on_with_p_is_told_that_nobody_answers(place: Place, serve: Serve) -> None:
    serve("text: One.")
    with terminal(place, "-m", "anthropic/claude-opus-5") as shown:
        shown.prompt()
        shown.ask("one")
        shown.expect("One.")
    served = serve("text: Two.")
    assert place.ask("two", "--continue").code == 0
    (body,) = served.requests
    assert said(body).index("Questions: I can answer.") < said(body).index("Questions: nobody can answer")


# --- git ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(place: Place) -> Path:
    git(place.work, "init", "-q", "-b", "harbour")
    (place.work / "a.txt").write_text("one\n")
    git(place.work, "add", "-A")
    git(place.work, "commit", "-qm", "first")
    (place.work / "a.txt").write_text("two\n")
    (place.work / "b.txt").write_text("new\n")
    return place.work


SLOW = "wait: 1.5\n" + calls(("read_file", {"file_path": "a.txt"}))


def test_branch_and_status_are_told_in_a_trusted_folder_without_the_first_request_waiting(
    place: Place, serve: Serve, repository: Path
) -> None:
    served = serve(script(SLOW, "text: Hi."))
    before = time.strftime("%Y-%m-%d %H:%M:%S")
    assert place.ask("hello", "--trust").code == 0
    first, second = served.requests
    assert "Git branch: harbour\n" in said(first)
    assert "Git status" not in said(first)
    told = re.search(r"Git status of (\S+) at (\S+ \S+) \(what happened since may not be in it\):\n   M a.txt\n  \?\? b.txt", said(second))
    assert told is not None
    assert told[1] == str(repository)
    assert before <= told[2] <= time.strftime("%Y-%m-%d %H:%M:%S"), "when it was looked at"
    assert "has changed" not in said(second), "it is the first that the model is told of it"


def test_in_a_folder_that_is_not_trusted_git_does_not_run(place: Place, serve: Serve, repository: Path) -> None:
    served = serve(script(SLOW, "text: Hi."))
    assert place.ask("hello").code == 0
    assert "Git branch: harbour\n" in said(served.requests[0])
    assert "Git status" not in said(served.requests[1])


def test_what_the_repository_names_does_not_run(place: Place, serve: Serve, repository: Path) -> None:
    ran = place.home / "ran"
    program = place.home / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))
    git(repository, "config", "filter.evil.clean", str(program))
    (repository / ".gitattributes").write_text("* filter=evil\n")
    served = serve(script(SLOW, "text: Hi."))
    assert place.ask("hello", "--trust").code == 0
    assert "M a.txt" in said(served.requests[1])
    assert not ran.exists()


def test_a_status_that_may_show_the_models_own_work_is_not_told(repository: Path) -> None:
    history = History()
    look = StatusLook(str(repository))
    look._look()
    assert "   M a.txt\n  ?? b.txt" in look.take(history)
    assert look.take(history) == "", "it is told once"
    look = StatusLook(str(repository))
    history.start_tool(ToolCall("a", "edit"))
    look._look()
    assert look.take(history) == ""


def test_a_clean_tree_is_told_with_the_time_though_the_model_has_written_since(place: Place, serve: Serve, repository: Path) -> None:
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "second")
    write = "wait: 1.5\n" + calls(("write_file", {"file_path": "mine.txt", "content": "x\n"}))
    served = serve(script(write, "text: Hi."))
    assert place.ask("hello", "--trust", "--approval", "auto-edit").code == 0
    second = said(served.requests[1])
    assert re.search(r"Git status of \S+ at \S+ \S+: clean\. What happened since may not be in it\.", second)
    assert "now: clean" not in second
    assert "has changed" not in second


def test_a_long_status_is_short() -> None:
    lines = status_lines(["## main", *(f"?? {number}.txt" for number in range(30)), ""])
    assert len(lines) == MAX_FILES + 1
    assert lines[-1] == "… and 20 more"
    assert status_lines(["## main", "?? a\nb"]) == ("?? a\\nb",)
