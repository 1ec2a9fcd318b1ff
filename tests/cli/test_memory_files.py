"""Memory files through the program: the user's own always, the project's where it is trusted, and a line on what is not used."""

from __future__ import annotations

import json
from collections.abc import Callable

from program import Place, Service, calls, script

Serve = Callable[..., Service]


def test_the_users_own_memory_is_told_and_the_projects_only_where_it_is_trusted(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "DRAGOMAN.md").write_text("Likes whales.")
    (place.work / ".git").mkdir()
    (place.work / "AGENTS.md").write_text("Speak of @docs/sharks.md and @../secret.md")
    (place.work / "docs").mkdir()
    (place.work / "docs" / "sharks.md").write_text("Sharks are fish.")
    (place.work.parent / "secret.md").write_text("SECRET")
    asked = serve("text: ok")
    done = place.ask()
    assert done.err.splitlines() == [
        "dragoman: AGENTS.md not read: this folder is not trusted (dragoman trust remembers that it is, --trust is for one start)"
    ]
    done = place.ask("hi", "--trust")
    assert len(done.err.splitlines()) == 1
    assert "AGENTS.md: @../secret.md is not imported: it is outside" in done.err
    untrusted, trusted = map(json.dumps, asked.requests)
    assert "Likes whales." in untrusted
    assert "Sharks" not in untrusted
    assert "Likes whales." in trusted
    assert "Sharks are fish." in trusted
    assert "SECRET" not in trusted
    assert "/secret.md is not put in here" in trusted


def test_a_resumed_session_hears_what_changed(place: Place, serve: Serve) -> None:
    """The first message stays as it was, what changed since follows as a new one; and its title stays what the person asked."""
    asked = serve(script("text: one", "text: two", "text: three"))
    place.ask("first prompt")
    (place.work / "new.txt").write_text("")
    place.run("--resume", "latest", "-p", "second prompt")
    place.run("--resume", "latest", "-p", "third prompt")
    first, second, third = (body["messages"] for body in asked.requests)
    before, after = json.dumps(first[0]["content"][0]["text"]), json.dumps(second[0]["content"][0]["text"])
    assert before == after
    assert [part["text"].splitlines()[-1].strip() for part in second[-1]["content"]] == ["new.txt", "second prompt"]
    assert [part["text"] for part in third[-1]["content"]] == ["third prompt"]
    listed = place.run("sessions", "list")
    assert "first prompt" in listed.out
    assert "Something in the context" not in listed.out


def test_an_imported_session_is_told_of_memory_and_directories_before_what_was_said_elsewhere(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "DRAGOMAN.md").write_text("Likes whales.")
    (place.work / "new.txt").write_text("")
    record = {"sessionId": "x", "projectHash": "y", "startTime": "2026-01-01T00:00:00Z", "lastUpdated": "2026-01-01T00:00:01Z"}
    said = [{"id": "1", "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": "Hello"}]
    said += [{"id": "2", "timestamp": "2026-01-01T00:00:01Z", "type": "gemini", "content": "Hi there!", "model": "gemini-2.5-pro"}]
    (place.home / "session.json").write_text(json.dumps(record | {"messages": said}))
    assert place.run("sessions", "import", str(place.home / "session.json")).code == 0
    asked = serve(script("text: one", "text: two"))
    for prompt in ("go on", "and again"):
        assert place.run("--resume", "latest", "-m", "anthropic/claude-opus-5", "-p", prompt).code == 0
    first, second = (body["messages"] for body in asked.requests)
    told, hello = (part["text"] for part in first[0]["content"])
    for words in ("Likes whales.", "new.txt", str(place.work)):
        assert words in told
    assert hello == "Hello"
    assert second[0]["content"][0]["text"] == told, "as it was told, and once"
    assert json.dumps(second).count("Likes whales.") == 1


def test_what_is_saved_needs_approval_and_so_somebody_to_ask(place: Place, serve: Serve) -> None:
    asked = serve(script(calls(("save_memory", {"fact": "Likes whales."})), "text: ok"))
    assert place.ask("remember", "--approval", "auto-edit").code == 0
    assert "save_memory" in {tool["name"] for tool in asked.requests[0]["tools"]}
    assert "nobody can be asked here" in json.dumps(asked.requests[1])
    assert not (place.home / "dragoman" / "DRAGOMAN.md").exists()
