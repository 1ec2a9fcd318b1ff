"""Subagents in the real program, over the loopback service: in every protocol, and with calls as text."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.record import Started, ToolFinished, ToolStarted
from dragoman.sessions.store import FileStore
from loop.together_service import Parts
from program import PROTOCOLS, Done, Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
ASKED = "Where can we land?"
EAST, NORTH, WEST = "Go east and read the map.", "Go north.", "Go west and write it down."


def task(agent: str, prompt: str) -> tuple[str, dict[str, str]]:
    return ("task", {"agent": agent, "description": prompt.lower().rstrip("."), "prompt": prompt})


def as_text(*made: tuple[str, dict[str, Any]]) -> str:
    """Calls as the default dialect of text tools writes them."""
    bodies = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in made]
    return "text: " + json.dumps("\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies))


def voyage(write: Callable[..., str] = calls) -> dict[str, str]:
    return {
        ASKED: script(
            write(task("explore", EAST), task("general", NORTH), task("general", WEST)) + "\nusage: fresh=100 output=10",
            "text: In the east.\nusage: fresh=200 output=20",
        ),
        EAST: script(
            write(("read_file", {"file_path": "map.txt"})) + "\nusage: fresh=30 output=3", "text: A bay.\nusage: fresh=40 output=4"
        ),
        NORTH: 'error: 400 "The pass is closed"',
        WEST: script(
            write(("write_file", {"file_path": "west.txt", "content": "reef"})) + "\nusage: fresh=50 output=5",
            "text: I may not write.\nusage: fresh=60 output=6",
        ),
    }


def record_of(place: Place) -> dict[str, list[Any]]:
    """The entries of every session, by its id."""
    store = FileStore(str(place.home / "dragoman" / "data" / "sessions"))
    return {each.session_id: list(store.read(each.path).entries) for each in store.list()}


def parent_and_children(place: Place) -> tuple[list[Any], list[list[Any]]]:
    kept = record_of(place)
    heads = {key: next(entry for entry in entries if isinstance(entry, Started)) for key, entries in kept.items()}
    (root,) = [key for key, head in heads.items() if not head.parent]
    return kept[root], [kept[key] for key, head in heads.items() if head.parent == root]


WAYS = [(protocol, False) for protocol in PROTOCOLS] + [("anthropic", True)]


@pytest.mark.parametrize(("protocol", "in_text"), WAYS, ids=[*PROTOCOLS, "text"])
def test_three_at_once_one_answers_one_fails_one_is_refused_a_write(place: Place, serve: Serve, protocol: str, in_text: bool) -> None:
    (place.work / "map.txt").write_text("a bay in the east")
    asked = serve(Parts(voyage(as_text if in_text else calls)))
    flags = ["--output-format", "stream-json", *(["--text-tools"] if in_text else [])]
    done = place.ask(ASKED, *flags, model=PROTOCOLS[protocol])

    assert done.code == 0, done
    assert not (place.work / "west.txt").exists(), "the caller's approvals hold"
    ids = [event["id"] for event in done.of("tool_use")]
    results = {event["id"]: event for event in done.of("tool_result")}
    assert [results[each]["is_error"] for each in ids] == [False, True, False]
    assert results[ids[0]]["text"] == "A bay."
    assert "The pass is closed" in results[ids[1]]["text"]
    inner = done.of("subagent")
    assert {(event["id"], event["name"]) for event in inner} == set(zip(ids, ("explore", "general", "general"), strict=True))
    read = [event["event"]["name"] for event in inner if event["id"] == ids[0] and event["event"]["type"] == "tool_use"]
    assert read == ["read_file"]

    last = [body for body in map(json.dumps, asked.requests) if ASKED in body][-1]
    assert "a bay in the east" not in last, "only its answer enters the caller's context"
    assert "A bay." in last
    assert done.events[-1]["stats"]["tokens"]["output"] == 10 + 20 + 3 + 4 + 5 + 6
    parent, children = parent_and_children(place)
    assert sorted(head.parent_call for child in children for head in child if isinstance(head, Started)) == sorted(ids)
    finished = [entry.result.call_id for entry in parent if isinstance(entry, ToolFinished)]
    assert sorted(finished) == sorted(ids)
    _assert_prefixes(asked)


def _unmarked(value: Any) -> Any:
    """Without the marks that say up to where a prompt is cached: they move."""
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


def _assert_prefixes(asked: Service) -> None:
    """What the caller sends second begins with what it sent first."""
    first, second = [_unmarked(body) for body in asked.requests if ASKED in json.dumps(body)]
    for name in ("messages", "contents", "input"):
        if name in first:
            assert second[name][: len(first[name])] == first[name]
    assert first.get("tools") == second.get("tools")


def test_a_subagent_has_the_tools_of_its_definition_and_its_instructions(place: Place, serve: Serve) -> None:
    folder = place.home / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text(
        "---\nname: reviewer\ndescription: Reviews a change.\ntools: Read, Grep, Telescope\nmodel: sonnet\n---\n"
        "You are a strict reviewer.\n"
    )
    (folder / "broken.md").write_text("---\nname: broken\n---\nNo description.\n")
    asked = serve(Parts({ASKED: script(calls(task("reviewer", "Look at it.")), "text: Fine."), "strict reviewer": "text: Good."}))
    done = place.ask(ASKED)
    assert done.out == "Fine.\n"
    assert "Telescope" in done.err
    assert f"{folder / 'broken.md'}:1" in done.err
    inner = next(body for body in asked.requests if "strict reviewer" in json.dumps(body))
    assert {tool["name"] for tool in inner["tools"]} == {"read_file", "read_many_files", "grep"}
    assert "sonnet" in inner["model"]
    offered = next(tool for tool in asked.requests[0]["tools"] if tool["name"] == "task")
    assert "- reviewer: Reviews a change." in offered["description"]


def test_subagents_go_no_deeper_than_two(place: Place, serve: Serve) -> None:
    scripts = {
        ASKED: script(calls(task("general", "First step.")), "text: Done."),
        "First step.": script(calls(task("general", "Second step.")), "text: One."),
        "Second step.": script(calls(task("general", "Third step.")), "text: Two."),
    }
    asked = serve(Parts(scripts))
    assert place.ask(ASKED).out == "Done.\n"
    deepest = [body for body in asked.requests if "Second step." in json.dumps(body) and "First step." not in json.dumps(body)]
    assert all("task" not in {tool["name"] for tool in body["tools"]} for body in deepest)
    assert len(asked.requests) == 6, "the third is never asked"
    assert len(record_of(place)) == 3


def test_a_session_that_was_killed_goes_on_with_one_result_for_each_call(place: Place, serve: Serve) -> None:
    held = {
        ASKED: script(calls(task("explore", EAST), task("explore", WEST)), "text: I do not know."),
        EAST: "wait: 30\ntext: never",
        WEST: "wait: 30\ntext: never",
    }
    asked = serve(Parts(held))
    with place.start("-m", PROTOCOLS["anthropic"], "-p", ASKED) as process:
        deadline = time.monotonic() + 60
        while len(asked.requests) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    again = place.ask("And now?", "-c")
    assert again.out == "I do not know.\n", again
    parent, children = parent_and_children(place)
    started = [entry.call_id for entry in parent if isinstance(entry, ToolStarted)]
    finished = [entry.result.call_id for entry in parent if isinstance(entry, ToolFinished)]
    assert len(started) == 2
    assert sorted(finished) == sorted(started)
    assert len(children) == 2
    last = asked.requests[-1]
    results = [part for message in last["messages"] for part in message["content"] if part.get("type") == "tool_result"]
    assert len(results) == 2
    assert last["tools"] == asked.requests[0]["tools"], "the definitions are sent as before"


def test_the_plain_conversation_tells_who_asks_and_what_it_did(place: Place, serve: Serve) -> None:
    write = calls(("write_file", {"file_path": "west.txt", "content": "reef"}))
    serve(Parts({ASKED: script(calls(task("general", WEST)), "text: Noted."), WEST: script(write, "text: Written.")}))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask(ASKED)
        assert "asked by general" in shown.expect("Run it?", "run): ")
        shown.send("y")
        said = shown.expect("Noted.")
        assert "task general: go west and write it down" in said
        assert "1 call" in said
        shown.prompt()
        shown.ask("/agents")
        assert "built in" in shown.prompt()
    assert (place.work / "west.txt").read_text() == "reef"


def test_sessions_show_the_links(place: Place, serve: Serve) -> None:
    serve(Parts({ASKED: script(calls(task("explore", EAST)), "text: There."), EAST: "text: A bay."}))
    place.ask(ASKED)
    (root,) = place.run("sessions", "--output-format", "json").json["sessions"]
    shown = place.run("sessions", "show", root["id"], "--output-format", "json").json
    (child,) = shown["subagents"]
    assert "subagent: session" in place.run("sessions", "show", root["id"]).out
    of_child = place.run("sessions", "show", child["id"], "--output-format", "json").json
    assert of_child["parent"] == root["session_id"]
    assert f"called by session {root['id']}" in place.run("sessions", "show", child["id"]).out


def test_agents_are_listed_with_their_origin(place: Place) -> None:
    folder = place.home / "dragoman" / "agents"
    folder.mkdir(parents=True)
    (folder / "tester.md").write_text("---\ndescription: Writes tests.\ntools: [edit, bash]\n---\nTest.\n")
    listed = {each["name"]: each for each in place.run("agents", "list", "--json").json["agents"]}
    assert set(listed) == {"explore", "general", "tester"}
    assert listed["tester"]["tools"] == ["edit", "run_shell", "shell_output"]
    assert listed["tester"]["origin"] == f"{folder / 'tester.md'}:1"
    assert listed["explore"]["origin"] is None
    assert "built in" in place.run("agents").out
    place.run("agents", "dance").complaint(42, "dragoman agents has no action dance; choose from list")


def test_a_project_s_agents_are_read_only_where_it_is_trusted(place: Place, serve: Serve) -> None:
    folder = place.work / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "spy.md").write_text("---\nname: spy\ndescription: Spies.\n---\nSpy.\n")

    def names(done: Done) -> set[str]:
        return {each["name"] for each in done.json["agents"]}

    assert "spy" not in names(place.run("agents", "--json"))
    place.run("trust")
    assert "spy" in names(place.run("agents", "--json"))
    asked = serve("text: hi")
    place.ask()
    offered = next(tool for tool in asked.requests[0]["tools"] if tool["name"] == "task")
    assert "- spy: Spies." in offered["description"]
