"""How a run ended stands on the record: the list, the session, every export, the page and whoever goes on with it say the same.

Runs of the real program, ended in fourteen ways by services on loopback, by signals and by a disk without space.
"""

from __future__ import annotations

import html
import json
import re
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.fleets import results, run_fleet, task, write_tasks
from program import Place, Service, calls, script
from terminals import terminal

Serve = Callable[..., Service]
RETRY = "[retry]\nfirst_delay_s = 0.001\nmax_delay_s = 0.001\n"
LOOK = ("list_directory", {"path": "."})
BROKEN_OFF = "The run was broken off: its end is not on the record."
CANCELLED = "The run was cancelled."


def configure(place: Place, text: str = "") -> None:
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text(RETRY + text)


# --- ending a run


def fail(script: str, words: str, *arguments: str, config: str = "", attempts: int = 0) -> Callable[[Place, Serve], tuple[str, int]]:
    """A way to end a run by what a service says; the error holds these words."""

    def end(place: Place, serve: Serve) -> tuple[str, int]:
        configure(place, config)
        serve(script)
        done = place.ask("look around", *arguments)
        assert done.code, done
        assert words in done.err, done
        return f"The run ended with an error: {told_by(done.err)}", attempts

    return end


def told_by(err: str) -> str:
    """The error as the person was told it, in the last line."""
    line = err.strip().splitlines()[-1]
    return " ".join(line.removeprefix("dragoman: ").split())


def close_port(place: Place, serve: Serve) -> tuple[str, int]:
    configure(place)
    place.more_env["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    place.more_env["ANTHROPIC_API_KEY"] = "sk-test-0123456789abcdef"
    done = place.ask("look around")
    assert done.code == 57, done
    return f"The run ended with an error: {told_by(done.err)}", 0


def interrupt(number: int, sentence: str) -> Callable[[Place, Serve], tuple[str, int]]:
    def end(place: Place, serve: Serve) -> tuple[str, int]:
        configure(place)
        service = serve("text: I will\nstall: 1")
        process = place.start("-m", "anthropic/claude-opus-5", "-p", "look around", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        service.expect(1)
        process.send_signal(number)
        assert process.wait(60)
        return sentence, 0

    return end


def fill_disk(place: Place, serve: Serve) -> tuple[str, int]:
    """The log cannot grow beyond the prompt: nothing after it can be written, its end neither."""
    configure(place)
    serve(script(*["error: 401"] * 2))
    place.ask("look around")
    [log] = logs(place)
    lines = log.read_bytes().splitlines(keepends=True)
    prompt = next(number for number, line in enumerate(lines) if b"look around" in line and b'"kind":"said"' in line)
    size = sum(map(len, lines[: prompt + 1])) + 20
    log.unlink()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    arguments = ("-m", "anthropic/claude-opus-5", "-p", "look around")
    process = place.start(*arguments, preexec_fn=limit, stdout=subprocess.DEVNULL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 41
    assert b"was not saved" in err or b"could not be saved" in err or b"saved" in err, err
    return BROKEN_OFF, 0


WAYS: dict[str, Callable[[Place, Serve], tuple[str, int]]] = {
    "401": fail('error: 401 "invalid x-api-key"', "invalid x-api-key"),
    "429": fail(script(*['error: 429 "Slow down"'] * 3), "Slow down", attempts=2),
    "500 three times": fail(script(*["error: 500"] * 3), "HTTP 500", attempts=2),
    "closed port": close_port,
    "cut stream": fail(script(*["text: It is\ncut"] * 3), "", attempts=2),
    "bad JSON": fail(script(*['text: It is\ngarbage: {"broken'] * 3), "", attempts=2),
    "budget": fail(calls(LOOK), "budget.requests", config="[budget]\nrequests = 1\n"),
    "turn limit": fail(calls(LOOK), "1", "--max-turns", "1"),
    "loop": fail(script(*[calls(LOOK)] * 30), "", "--max-turns", "30"),
    "refusal": fail("block: SAFETY", ""),
    "Ctrl-C": interrupt(signal.SIGINT, CANCELLED),
    "SIGTERM": interrupt(signal.SIGTERM, CANCELLED),
    "kill -9": interrupt(signal.SIGKILL, BROKEN_OFF),
    "full disk": fill_disk,
}


def logs(place: Place) -> list[Path]:
    return sorted((place.home / "dragoman" / "data" / "sessions").glob("*/*.jsonl"))


# --- what is said of it


@pytest.mark.parametrize("way", WAYS)
def test_everything_says_the_same_of_how_a_run_ended(place: Place, serve: Serve, way: str) -> None:
    sentence, attempts = WAYS[way](place, serve)
    [log] = logs(place)
    before = log.read_bytes()

    shown = place.run("sessions", "show")
    assert sentence in " ".join(shown.out.split()), shown
    facts = place.run("sessions", "show", "--output-format", "json").json
    assert facts["run"]["sentence"] == sentence
    failed = [step for step in facts["steps"] if step.get("kind") == "attempt_failed"]
    assert len(failed) == attempts, facts["steps"]

    [row] = place.run("sessions", "list", "--output-format", "json").json["sessions"]
    assert row["run"] == facts["run"]
    lines = place.run("sessions", "list", env={"COLUMNS": "160"}).out.splitlines()
    assert sentence.startswith(lines[2].strip().rstrip("…")), lines
    assert len(lines[2].strip()) > 20

    markdown = place.run("sessions", "export", "--as", "markdown").out
    assert sentence in " ".join(markdown.split())
    record = json.loads(place.run("sessions", "export", "--as", "record").out)
    assert sentence in record["messages"][-1]["content"]
    assert record["messages"][-1]["type"] == ("info" if sentence == CANCELLED else "error")
    trajectory = json.loads(place.run("sessions", "export", "--as", "atif").out)
    assert trajectory["notes"].startswith(sentence)
    assert trajectory["extra"]["last_run"]["outcome"] == facts["run"]["state"]
    page = data_of(place.run("sessions", "export", "--as", "html").out)
    [session] = page["sessions"].values()
    assert session["last_run"] == sentence
    entries = json.loads(place.run("sessions", "export", "--as", "json").out)["entries"]
    assert [entry["kind"] for entry in entries].count("run_ended") == (0 if sentence == BROKEN_OFF else 1)
    assert log.read_bytes() == before, "looking at it has changed it"

    serve("text: It is fine.")
    place.more_env.clear()
    configure(place)
    again = place.run("-c", "-m", "anthropic/claude-opus-5", "-p", "and now?")
    assert again.code == 0, again
    assert sentence in " ".join(again.err.split())
    facts = place.run("sessions", "show", "--output-format", "json").json
    assert facts["run"]["state"] == "answered"
    notes = [step["run"]["sentence"] for step in facts["steps"] if step.get("kind") == "run_ended"]
    assert notes == [sentence], "what happened stays in the session"


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script[^>]*id="session-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found.group(1)))


def test_running_is_said_while_a_run_is_running_and_then_no_more(place: Place, serve: Serve) -> None:
    configure(place)
    service = serve("text: I will\nstall: 1")
    process = place.start("-m", "anthropic/claude-opus-5", "-p", "look around", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    service.expect(1)
    facts = place.run("sessions", "show", "--output-format", "json").json
    assert facts["run"]["state"] == "running"
    assert "A run is under way." in place.run("sessions", "show").out
    assert "A run is under way." in place.run("sessions", "list").out
    assert "A run was under way when this was written." in place.run("sessions", "export").out
    process.kill()
    process.wait(60)
    assert BROKEN_OFF in place.run("sessions", "list").out


def test_a_conversation_that_waits_for_its_user_is_not_running(place: Place, serve: Serve) -> None:
    """Also one that goes on with a run that was killed: the lock alone says nothing of a run."""
    configure(place)
    interrupt(signal.SIGKILL, BROKEN_OFF)(place, serve)
    serve("text: It is fine.")
    with terminal(place, "-c") as screen:
        screen.expect(f"{BROKEN_OFF} — /retry goes on with it.")
        screen.prompt()
        assert BROKEN_OFF in place.run("sessions", "list").out
        screen.ask("/retry")
        screen.expect("It is fine.")
        screen.prompt()
        [row] = place.run("sessions", "list", "--output-format", "json").json["sessions"]
        assert row["run"]["state"] == "answered"
        screen.send("/quit\r")
        screen.ended()


def test_who_goes_on_is_told_how_the_last_run_ended_and_can_try_again(place: Place, serve: Serve) -> None:
    WAYS["401"](place, serve)
    service = serve("text: It is fine.")
    with terminal(place, "-c") as screen:
        screen.expect("The run ended with an error:", "invalid x-api-key", "/retry goes on with it.")
        screen.prompt()
        screen.ask("/retry")
        screen.expect("It is fine.")
        screen.prompt()
        screen.send("/quit\r")
        screen.ended()
    [request] = service.requests
    said = [part["text"] for message in request["messages"] for part in message["content"] if part["type"] == "text"]
    assert said.count("look around") == 1, "it is asked again without a new prompt"
    assert not any("/retry" in text or "run ended" in text or "x-api-key" in text for text in said), "what is noted of runs is not sent"


def test_a_failed_task_of_a_fleet_and_its_session_say_the_same(place: Place, serve: Serve) -> None:
    configure(place)
    serve('script: end=repeat\nerror: 401 "invalid x-api-key"')
    write_tasks(place, [task("one")])
    assert run_fleet(place, "--workers", "1").code
    [result] = [row.get("result", row) for row in results(place)]
    facts = place.run("sessions", "show", result["session_id"], "--output-format", "json").json["run"]
    assert (facts["state"], facts["error"]) == ("failed", "Unauthorized")
    assert facts["words"] == result["reason"]
    shown = place.run("fleet", "show", "tasks", "one").out
    assert facts["sentence"] in " ".join(shown.split())
    [row] = json.loads(place.run("fleet", "show", "tasks", "one", "--output-format", "json").out)
    assert row["run"] == facts
