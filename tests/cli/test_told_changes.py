"""The model is told with the next prompt what happened to its files beside it: undo, rewind, edits by somebody else, another branch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses a terminal of this system")

MODEL = ("-m", "anthropic/claude-opus-5")
EDITS = ("--approval", "auto-edit")
UNDONE = "These changes of yours were undone"
CHANGED = "These files changed on disk since you last read or wrote them"
WRITES = calls(("write_file", {"file_path": "new.txt", "content": "a\nb\n"}), ("read_file", {"file_path": "old.txt"}))
FIXES = calls(("edit", {"file_path": "old.txt", "old_string": "two", "new_string": "TWO\nmore"}))


def said(body: dict[str, Any]) -> list[str]:
    """The texts of a request's messages, in order."""
    parts = [message["content"] if isinstance(message["content"], list) else [message["content"]] for message in body["messages"]]
    return [part if isinstance(part, str) else part.get("text", "") for each in parts for part in each]


def note(body: dict[str, Any]) -> str:
    """The one note about files in the last message; empty if there is none."""
    found = [text for text in said({"messages": body["messages"][-1:]}) if UNDONE in text or CHANGED in text]
    assert len(found) <= 1
    assert not found or found[0].startswith("This is Dragoman.")
    return found[0] if found else ""


def messages(body: dict[str, Any]) -> list[str]:
    """Without the marks of the cache, which move."""
    return [json.dumps(message).replace(', "cache_control": {"type": "ephemeral"}', "") for message in body["messages"]]


def extends(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return messages(after)[: len(before["messages"])] == messages(before)


@pytest.fixture
def work(place: Place) -> Path:
    (place.work / "old.txt").write_text("one\ntwo\nthree\n")
    return place.work


def test_an_undo_is_told_with_the_next_prompt(place: Place, serve: Serve, work: Path) -> None:
    served = serve(script(WRITES, FIXES, "text: Fixed.", "text: Two.", "text: Three."))
    with terminal(place, *MODEL, *EDITS) as shown:
        shown.prompt()
        shown.ask("fix it")
        shown.expect("Fixed.")
        shown.prompt()
        shown.ask("/undo")
        shown.prompt()
        shown.ask("and now?")
        shown.expect("Two.")
        shown.prompt()
        shown.ask("and then?")
        shown.expect("Three.")
        shown.prompt()
    assert not (work / "new.txt").exists()
    *_, third, fourth, fifth = served.requests
    assert extends(third, fourth)
    told = note(fourth)
    assert UNDONE in told
    assert "  new.txt (removed: there was no such file)" in told
    assert "  old.txt (+1 -2 lines)" in told
    assert CHANGED not in told
    assert "TWO" not in told
    assert extends(fourth, fifth)
    assert not note(fifth), "it is told once"


def test_an_undo_of_a_stored_session_is_told_when_it_goes_on_and_every_resume_sends_the_same(
    place: Place, serve: Serve, work: Path
) -> None:
    served = serve(script(WRITES, FIXES, "text: Fixed.", "text: Two.", "text: Three."))
    assert place.ask("fix it", *EDITS).code == 0
    assert place.run("sessions", "undo", "latest").code == 0
    assert place.ask("and now?", *EDITS, "--continue").code == 0
    assert place.ask("and then?", *EDITS, "--continue").code == 0
    *_, third, fourth, fifth = served.requests
    assert UNDONE in note(fourth)
    assert extends(third, fourth)
    assert extends(fourth, fifth)
    assert not note(fifth)


@pytest.mark.parametrize("resumed", [False, True])
def test_files_that_somebody_else_changed_are_told_the_same_live_and_resumed(place: Place, serve: Serve, work: Path, resumed: bool) -> None:
    (work / "gone.txt").write_text("x\n")
    (work / "same.txt").write_text("x\n")
    reads = calls(*(("read_file", {"file_path": f"{name}.txt"}) for name in ("old", "gone", "same")))
    served = serve(script(reads, WRITES, "text: One.", "text: Two."))

    def change() -> None:
        (work / "old.txt").write_text("one\n")
        (work / "new.txt").write_text("A\nB\n")
        (work / "gone.txt").unlink()
        (work / "same.txt").write_text("y\n")
        (work / "same.txt").write_text("x\n")
        (work / "unknown.txt").write_text("y\n")

    if resumed:
        assert place.ask("look", *EDITS).code == 0
        change()
        assert place.ask("now?", *EDITS, "--continue").code == 0
    else:
        with terminal(place, *MODEL, *EDITS) as shown:
            shown.prompt()
            shown.ask("look")
            shown.expect("One.")
            shown.prompt()
            change()
            shown.ask("now?")
            shown.expect("Two.")
            shown.prompt()
    told = note(served.requests[-1])
    lines = told[told.index(CHANGED) :].split("\n\n")[0].split("\n")[1:]
    assert lines == ["  old.txt (1 line, 3 before)", "  new.txt (2 lines, as many as before)", "  gone.txt (removed)"]
    assert UNDONE not in told


def test_an_edit_of_a_file_that_a_prompt_brought_is_told(place: Place, serve: Serve, work: Path) -> None:
    served = serve(script("text: One.", "text: Two."))
    assert place.ask("look at @old.txt").code == 0
    (work / "old.txt").write_text("four\n")
    assert place.ask("now?", "--continue").code == 0
    assert "  old.txt (1 line, 3 before)" in note(served.requests[-1])


def test_what_the_model_did_itself_is_not_told(place: Place, serve: Serve, work: Path) -> None:
    served = serve(script(WRITES, FIXES, "text: One.", "text: Two.", "text: Three."))
    for prompt in ("one", "two", "three"):
        assert place.ask(prompt, *EDITS, *(("--continue",) if prompt != "one" else ())).code == 0
    assert not any(note(request) for request in served.requests)


def test_an_undo_that_was_done_again_by_hand_is_not_told(place: Place, serve: Serve, work: Path) -> None:
    served = serve(script(WRITES, "text: One.", "text: Two."))
    assert place.ask("one", *EDITS).code == 0
    assert place.run("sessions", "undo", "latest").code == 0
    (work / "new.txt").write_text("a\nb\n")
    assert place.ask("two", *EDITS, "--continue").code == 0
    assert not note(served.requests[-1])


def test_another_branch_is_told_with_the_next_prompt(place: Place, serve: Serve, work: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=work, capture_output=True, check=True)

    git("init", "-q", "-b", "harbour")
    git("add", "-A")
    git("commit", "-qm", "first")
    served = serve(script("text: One.", "text: Two.", "text: Three."))
    with terminal(place, *MODEL) as shown:
        shown.prompt()
        shown.ask("one")
        shown.expect("One.")
        shown.prompt()
        git("checkout", "-qb", "quay")
        shown.ask("two")
        shown.expect("Two.")
        shown.prompt()
        shown.ask("three")
        shown.expect("Three.")
        shown.prompt()
    first, second, third = served.requests
    assert any("Git branch: harbour" in text for text in said(first))
    assert sum("Git branch: quay" in text for text in said(second)) == 1
    assert extends(second, third)
    assert sum("Git branch: quay" in text for text in said(third)) == 1
