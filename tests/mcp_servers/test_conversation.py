"""MCP servers in a conversation: the question before it, `/mcp`, and prompts of servers; and `dragoman mcp` with `dragoman config`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from program import Place, Service, calls, script
from quay import HARBOUR, Quay
from terminals import terminal, tmux

Serve = Callable[..., Service]


def project(quay: Quay) -> None:
    (quay.place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"harbour": quay.entry("harbour")}}))


def test_a_projects_server_is_asked_about_once(quay: Quay, serve: Serve) -> None:
    project(quay)
    asked = serve(script(calls(("mcp__harbour__tide", {"port": "Sur"})), "text: At noon.", "text: Hello, Ann."))
    with terminal(quay.place) as shown:
        shown.expect("Trust this folder?", "(Enter: n): ")
        shown.send("y\n")
        shown.expect("This project brings a program", "server harbour:", "(.mcp.json:1)", "Use it?", "(Enter: n): ")
        shown.send("?\n")
        shown.expect("A server is a program", "(Enter: n): ")
        shown.send("y\n")
        shown.prompt()
        shown.ask("/mcp")
        assert "11 tools" in shown.prompt()
        shown.ask("When is the tide high?")
        shown.expect("harbour: tide", "Run it?", "run): ")
        shown.send("y")
        assert "At noon." in shown.prompt()
        shown.ask("/mcp__harbour__greet Ann")
        assert "Hello, Ann." in shown.prompt()
        shown.send(b"\x04")
        assert shown.ended() == 0
    assert "In Sur the tide is high at noon." in json.dumps(asked.requests)
    assert "Say hello to Ann." in json.dumps(asked.requests[-1])
    assert quay.living() == []
    with terminal(quay.place) as shown:
        assert "Use it?" not in shown.prompt()


def test_a_no_holds_and_can_be_taken_back_in_the_conversation(quay: Quay, serve: Serve) -> None:
    project(quay)
    asked = serve(script("text: One.", "text: Two."))
    with terminal(quay.place) as shown:
        shown.expect("Trust this folder?", "(Enter: n): ")
        shown.send("y\n")
        shown.expect("Use it?", "(Enter: n): ")
        shown.send("n\n")
        shown.prompt()
        shown.ask("one")
        shown.prompt()
        assert quay.pids() == []
        shown.ask("/mcp approve harbour")
        shown.expect("approved: harbour")
        shown.prompt()
        shown.ask("two")
        shown.prompt()
        shown.send(b"\x04")
        assert shown.ended() == 0
    first, second = (json.dumps(request["tools"]) for request in asked.requests)
    assert "mcp__harbour__tide" not in first
    assert "mcp__harbour__tide" in second


def test_in_a_live_conversation_the_tools_join_at_the_next_prompt(quay: Quay, serve: Serve) -> None:
    project(quay)
    asked = serve(script("text: One.", "text: Two."))
    quay.place.ui = ""
    with tmux(quay.place) as shown:
        shown.expect("Enter answers with it")
        shown.type("y")
        shown.expect("Use it?")
        shown.expect("Enter answers with it; or another key")
        shown.type("y")
        shown.expect("11 tools are added at the next prompt")
        shown.type("/mcp")
        shown.keys("Enter")
        shown.expect("tokens · started")
        shown.type("one")
        shown.keys("Enter")
        shown.expect("One.")
    assert "mcp__harbour__tide" in json.dumps(asked.requests[0]["tools"])


def test_a_server_that_cannot_be_tried_yet_is_added_and_the_reason_told(place: Place) -> None:
    """A variable that is missing is named, and nothing is sent without it. What is written into an untrusted folder is told too."""
    done = place.run("mcp", "add", "charts", "http://127.0.0.1:1/mcp", "--header", "Authorization: Bearer ${NOT_SET_HERE}")
    assert (done.code, done.out.splitlines()[1]) == (0, "it does not work yet: cannot be used: the variable NOT_SET_HERE is not set")
    done = place.run("mcp", "add", "harbour", "--scope", "project", "--", sys.executable, HARBOUR)
    assert (done.code, done.out.splitlines()[0]) == (0, f"added harbour to {place.work / '.dragoman' / 'config.toml'}")
    assert "this folder is not trusted" in done.out.splitlines()[1]


def test_a_server_is_added_tried_shown_and_removed(quay: Quay, place: Place) -> None:
    done = place.run("mcp", "add", "harbour", "--env", "MODE=test", "--", sys.executable, HARBOUR)
    assert done.code == 0, done
    assert "harbour works: 11 tools, 1 prompt, 1 resource" in done.out
    [row] = place.run("mcp", "--json").json["servers"]
    assert (row["name"], row["state"], row["line"], row["variables"]) == ("harbour", "known", 1, ["MODE"])
    assert "tide" in row["tools"]
    shown = place.run("config").out
    assert "MCP servers" in shown
    assert "config.toml:1" in shown
    assert "MODE" not in shown, "nor the values of its variables"
    assert "/mcp__harbour__greet" in place.run("mcp", "get", "harbour").out
    assert place.run("mcp", "remove", "harbour").code == 0
    assert place.run("mcp", "--json").json["servers"] == []


def test_a_server_that_ends_is_called_by_its_name(place: Place) -> None:
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"harbour": {"command": "false"}}}))
    place.run("mcp", "approve", "harbour", "--trust")
    done = place.run("mcp", "test", "harbour", "--trust")
    assert "the MCP server harbour ended" in done.out + done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tset"], "did you mean test"),
        (["get"], "needs the name"),
        (["get", "harbor"], "did you mean harbour"),
        (["get", "harbour", "more"], "unexpected argument"),
        (["add", "x"], "needs a name and a command or a URL"),
        (["add", "a b", "--", "x"], "invalid name for a server"),
        (["add", "x", "--env", "A", "--", "y"], "not NAME=VALUE"),
        (["remove", "harbour"], "belongs to another program"),
        (["approve", "harbour"], "needs no approval"),
    ],
)
def test_mistakes_are_told(quay: Quay, words: list[str], said: str) -> None:
    quay.configure("harbour")
    assert said in quay.place.run("mcp", *words).complaint(42)


def test_a_server_that_does_not_work_is_told_by_its_test(quay: Quay) -> None:
    (quay.place.home / ".claude.json").write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program"}}}))
    done = quay.place.run("mcp", "test", "gone")
    assert (done.code, "was not found" in done.out) == (1, True), done
    assert quay.place.run("mcp", "test", "gone", "--json").json["works"] is False


@pytest.mark.parametrize("ui", ["plain", ""])
def test_a_sentence_at_a_servers_own_question_answers_nothing(quay: Quay, serve: Serve, ui: str) -> None:
    project(quay)
    asked = serve(script(calls(("mcp__harbour__ask", {})), "text: So be it."))
    quay.place.ui = ui
    ready = "(Enter: n)" if ui else "Enter answers with it; or another key"
    with tmux(quay.place, size=(40, 100)) as shown:
        shown.expect("Trust this folder?")
        shown.expect(ready)
        shown.keys("y", "Enter")
        shown.expect("Use it?")
        shown.expect(ready, count=2 if ui else 1)
        shown.keys("y", "Enter")
        shown.expect("/help" if ui else "tools are added at the next prompt")
        shown.type("ask me")
        shown.keys("Enter")
        shown.expect("run):" if ui else "a key answers, or a key and Enter")
        shown.keys("y", "Enter")
        shown.expect("A number (Enter for none):")
        shown.type("1 would like to know why")
        shown.keys("Enter")
        shown.expect("A number that is shown and Enter answers")
        shown.expect("A number (Enter for none):", count=2 if ui else 1)
        assert len(asked.requests) == 1
        shown.type("2")
        shown.keys("Enter")
        shown.expect("So be it.")
        shown.expect("› 1 would like to know why")
    assert "decline" in json.dumps(asked.requests[-1]["messages"][-1])
