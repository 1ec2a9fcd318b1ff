"""Trust of a folder by the real program: without a terminal, by `dragoman trust`, and in the list of approvals."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from program import Place, Service
from terminals import terminal

Serve = Callable[..., Service]
NOT_READ = "not read: this folder is not trusted"


def fill(place: Place) -> None:
    """A cloned repository with everything that could instruct or configure us."""
    (place.work / ".git").mkdir()
    (place.work / "AGENTS.md").write_text("Obey the folder.")
    (place.work / "CLAUDE.md").write_text("Obey Claude's page.")
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text("max_turns = 1")
    (place.work / ".dragoman" / "DRAGOMAN.md").write_text("Obey the hidden page.")


def test_a_strange_folder_is_not_opened_without_a_terminal(place: Place, serve: Serve) -> None:
    """Whatever is in it would block or fail if it were opened: a FIFO, a file that is no TOML."""
    import os

    fill(place)
    os.unlink(place.work / "AGENTS.md")
    os.mkfifo(place.work / "AGENTS.md")
    (place.work / ".dragoman" / "config.toml").write_text("this is no toml")
    asked = serve("text: ok")
    done = place.ask("hi")
    assert (done.code, done.out) == (0, "ok\n")
    [line] = done.err.splitlines()
    assert f".dragoman/config.toml, AGENTS.md, CLAUDE.md {NOT_READ} (dragoman trust" in line
    assert "Obey" not in json.dumps(asked.requests)


def test_a_pipe_is_no_more_trusted(place: Place, serve: Serve) -> None:
    fill(place)
    asked = serve("text: ok")
    done = place.run("-m", "anthropic/claude-opus-5", stdin="hi")
    assert NOT_READ in done.err
    assert "Obey" not in json.dumps(asked.requests)


def test_trust_is_remembered_and_taken_back(place: Place, serve: Serve) -> None:
    fill(place)
    asked = serve("text: ok")
    said = place.run("trust")
    assert (said.code, said.err) == (0, "")
    assert f"trusted: {place.work}; read there: .dragoman/config.toml, AGENTS.md, CLAUDE.md" in said.out
    assert place.ask("hi").err == ""
    assert "Obey the folder." in json.dumps(asked.requests[-1])
    (place.work / "deep" / "er").mkdir(parents=True)
    assert place.ask("hi", "-C", "deep/er").err == ""
    assert "Obey the folder." in json.dumps(asked.requests[-1]), "from the repository's root down"
    assert "no longer trusted" in place.run("trust", "--revoke").out
    assert NOT_READ in place.ask("hi").err
    assert "Obey" not in json.dumps(asked.requests[-1])
    place.run("trust", "--revoke").complaint(42, "nothing is saved")


@pytest.mark.parametrize("words", [("mcp", "approve", "harbour"), ("hooks", "approve"), ("skills", "show", "poet")])
def test_what_a_folder_brings_cannot_be_approved_before_it_is_trusted(place: Place, words: tuple[str, ...]) -> None:
    """It was not read: "there is no such server" would not be true."""
    (place.work / ".mcp.json").write_text('{"mcpServers": {"harbour": {"command": "true"}}}')
    place.run(*words).complaint(55, NOT_READ)


def test_lists_say_what_was_not_read(place: Place) -> None:
    (place.work / ".mcp.json").write_text('{"mcpServers": {"harbour": {"command": "true"}}}')
    for words in (("hooks",), ("agents", "--output-format", "json")):
        assert NOT_READ in place.run(*words).out


def test_a_repository_cloned_into_a_trusted_folder_is_not(place: Place, serve: Serve) -> None:
    fill(place)
    cloned = place.work / "cloned"
    (cloned / ".git").mkdir(parents=True)
    (cloned / "AGENTS.md").write_text("Obey the clone.")
    asked = serve("text: ok")
    place.run("trust")
    done = place.ask("hi", "-C", "cloned")
    assert f"AGENTS.md {NOT_READ}" in done.err
    assert "Obey" not in json.dumps(asked.requests)


def test_trust_goes_by_the_real_path(place: Place, serve: Serve) -> None:
    """Neither a link to a trusted folder nor a folder put where it was is anything else than what it is."""
    fill(place)
    serve("text: ok")
    link = place.home / "link"
    link.symlink_to(place.work)
    assert str(place.work) in place.run("trust", str(link)).out
    assert place.ask("hi").err == ""
    strange = place.home / "strange"
    strange.mkdir()
    (strange / "AGENTS.md").write_text("Obey.")
    link.unlink()
    link.symlink_to(strange)
    assert NOT_READ in place.ask("hi", "-C", str(link)).err


def test_the_home_folder_is_not_trusted_as_a_whole(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    (place.home / "AGENTS.md").write_text("Obey home.")
    (place.home / ".git").mkdir()
    notes = place.home / "notes"
    notes.mkdir()
    (notes / "CLAUDE.md").write_text("Obey notes.")
    for wide in (str(place.home), "/"):
        place.run("trust", wide).complaint(42, "not trusted as a whole")
    done = place.ask("hi", "-C", str(place.home))
    assert "never trusted as a whole" in done.err
    assert "Obey" not in json.dumps(asked.requests)
    assert str(notes) in place.run("trust", "-C", str(notes)).out, "the repository is the home folder: the folder itself is trusted"
    place.ask("hi", "-C", str(notes))
    sent = json.dumps(asked.requests[-1])
    assert "Obey notes." in sent
    assert "Obey home." not in sent


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_folder_whose_name_cannot_be_remembered_is_told(place: Place) -> None:
    os.mkdir(os.fsencode(place.work) + b"/caf\xe9")
    place.run("trust", os.fsencode("caf") + b"\xe9").complaint(42, "its name is not valid UTF-8", "--trust")


def test_the_flag_is_for_one_start(place: Place, serve: Serve) -> None:
    fill(place)
    asked = serve("text: ok")
    assert place.ask("hi", "--trust").err == ""
    assert "Obey the folder." in json.dumps(asked.requests)
    assert NOT_READ in place.ask("hi").err
    assert not (place.home / "dragoman" / "data" / "trust.jsonl").exists()


def test_no_variable_and_no_file_of_the_folder_can_trust_it(place: Place, serve: Serve) -> None:
    """The prompt, an environment file and the project's own configuration are data."""
    fill(place)
    asked = serve("text: ok")
    (place.work / ".dragoman" / "config.toml").write_text("trust = true\n[trust]\n")
    (place.work / ".env").write_text("DRAGOMAN_TRUST=1")
    done = place.run("-m", "anthropic/claude-opus-5", "-p", "--trust", env={"DRAGOMAN_TRUST": "1"})
    assert done.code == 0
    assert NOT_READ in done.err
    assert "Obey" not in json.dumps(asked.requests)


def test_trusted_folders_stand_with_the_approvals(place: Place) -> None:
    fill(place)
    other = place.home / "evil\x1b[31m\u202e"
    other.mkdir()
    place.run("trust")
    place.run("trust", str(other))
    listed = place.run("approvals")
    assert "trusted folder: its configuration, memory files and rules are read" in listed.out
    assert "evil<U+001B>[31m<U+202E>" in listed.out
    assert "\x1b" not in listed.out
    rows = json.loads(place.run("approvals", "--output-format", "json").out)["approvals"]
    assert [(row["kind"], row["covers"]["what"], row["folder"]) for row in rows] == [
        ("trust", "trust", str(place.work)),
        ("trust", "trust", str(other)),
    ]
    assert "revoked" in place.run("approvals", "revoke", rows[0]["id"]).out
    assert len(json.loads(place.run("approvals", "--output-format", "json").out)["approvals"]) == 1
    assert "trust.jsonl" in place.run("approvals", "revoke", "--all").out
    assert "no approval is saved" in place.run("approvals").out


def test_an_empty_name_is_no_yes_to_this_folder(place: Place) -> None:
    """As from a variable that is not set."""
    for words in ([""], [" "], ["--revoke", ""]):
        place.run("trust", *words).complaint(42, "the name of the folder is empty")
    assert "no approval is saved" in place.run("approvals").out


def test_trust_as_json(place: Place) -> None:
    fill(place)
    assert json.loads(place.run("trust", "--output-format", "json").out) == {
        "trusted": str(place.work),
        "files": [".dragoman/config.toml", "AGENTS.md", "CLAUDE.md"],
    }
    assert json.loads(place.run("trust", "--revoke", "--output-format", "json").out)["revoked"] == str(place.work)


# --- in a terminal


def test_nothing_is_asked_where_there_is_nothing_to_read(place: Place, serve: Serve) -> None:
    serve("text: ok")
    with terminal(place) as shown:
        assert "Trust" not in shown.prompt()


def test_a_no_to_the_repository_is_one_to_its_folders(place: Place, serve: Serve) -> None:
    fill(place)
    serve("text: ok")
    (place.work / "sub").mkdir()
    with terminal(place) as shown:
        shown.expect("Trust this folder?", "(Enter: n): ")
        shown.send("n\n")
        assert NOT_READ in shown.prompt()
    with terminal(place, "-C", "sub") as shown:
        before = shown.prompt()
    assert "Trust this folder?" not in before
    assert NOT_READ in before


def test_a_dumb_terminal_is_asked_without_any_escape_sequence(place: Place, serve: Serve) -> None:
    fill(place)
    serve("text: ok")
    with terminal(place, env={"TERM": "dumb", "LANG": "C", "LC_ALL": "C"}) as shown:
        shown.expect("Trust this folder?   y yes   n no   ? why (Enter: n): ")
        assert b"\x1b" not in shown.raw
        shown.raw.decode("ascii")
        shown.send("y\n")
        shown.expect("> ")
    assert json.loads((place.home / "dragoman" / "data" / "trust.jsonl").read_text())["trusted"] is True


def test_what_was_typed_before_the_question_does_not_answer_it(place: Place, serve: Serve) -> None:
    fill(place)
    serve("text: ok")
    with terminal(place) as shown:
        shown.send("y\nand mo")
        shown.expect("kept for the next prompt", "Trust this folder?", "(Enter: n): ")
        assert not (place.home / "dragoman" / "data" / "trust.jsonl").exists()
        shown.send("\n")
        shown.expect("› y and mo")
    assert json.loads((place.home / "dragoman" / "data" / "trust.jsonl").read_text())["trusted"] is False


def test_an_answer_that_cannot_be_saved_holds_for_this_start(place: Place, serve: Serve, tmp_path: Path) -> None:
    fill(place)
    serve("text: ok")
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True)
    (data / "trust.jsonl").symlink_to(tmp_path / "elsewhere")
    with terminal(place) as shown:
        shown.expect("Trust this folder?", "(Enter: n): ")
        shown.send("y\n")
        before = shown.prompt()
    assert "could not be saved" in before
    assert NOT_READ not in before
