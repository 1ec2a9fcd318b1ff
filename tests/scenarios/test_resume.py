"""Sessions through the real program: left, killed, resumed, switched, in two terminals at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from program import PROTOCOLS, Place, service


def logs(place: Place) -> list[Path]:
    return sorted((place.home / "dragoman").rglob("*.jsonl"))


def told(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)


def unmarked(value: Any) -> Any:
    """Without cache markers, which move to the end."""
    if isinstance(value, dict):
        return {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def grant(place: Place, command: str) -> None:
    """As if a person had allowed this command in this folder for good: headless, nobody else can be asked."""
    file = place.home / "dragoman" / "data" / "grants.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"folder": os.path.realpath(place.work), "key": f"run_shell {command}"}) + "\n")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_conversation_goes_on_where_it_was_left(place: Place, protocol: str) -> None:
    (place.work / "a.txt").write_text("the word is amber\n")
    script = 'call: read_file {"file_path": "a.txt"}\n---\ntext: Amber.\n---\ntext: As I said: amber.'
    with service(script) as place.service:
        assert place.ask("Which word?", model=PROTOCOLS[protocol]).code == 0
        done = place.run("--resume", "-p", "Again?")
        assert (done.code, done.out) == (0, "As I said: amber.\n")
        before, after = place.service.requests[1:3]
        assert all(word in told(after) for word in ("Which word?", "the word is amber", "Amber.", "Again?"))
        messages = next(key for key in ("contents", "messages", "input") if key in after)
        sent = unmarked(before[messages])
        assert unmarked(after[messages])[: len(sent)] == sent, "what was sent before is sent again as it was"
        assert all(exchange.violation is None for exchange in place.service.server.requests)
    [log] = logs(place)
    assert log.stat().st_mode & 0o777 == 0o600


def test_with_another_model_of_another_service(place: Place) -> None:
    with service("text: One.\n---\ntext: Two.\n---\ntext: Three.") as place.service:
        place.ask("a", model=PROTOCOLS["anthropic"])
        done = place.run("--resume", "latest", "-m", PROTOCOLS["gemini"], "-p", "b")
        assert (done.code, done.out) == (0, "Two.\n")
        assert place.run("--resume", logs(place)[0].stem[-8:-4], "-p", "c").out == "Three.\n"
        assert "contents" in place.service.requests[2], "it goes on with the model it was last held with"
        assert all(exchange.violation is None for exchange in place.service.server.requests)


def test_a_command_that_ran_when_we_were_killed_is_not_run_again(place: Place) -> None:
    """SS06: the model sees `interrupted, outcome unknown`."""
    command = "echo ran >> ran.txt; sleep 60"
    grant(place, command)
    with service(f"call: run_shell {json.dumps({'command': command})}\n---\ntext: I see.") as place.service:
        process = place.start("-m", PROTOCOLS["anthropic"], "-p", "do it", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not (place.work / "ran.txt").exists():
            assert time.monotonic() < until, "the command never ran"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        done = place.run("--resume", "-p", "and?")
        assert (done.code, done.out) == (0, "I see.\n")
        assert "interrupted, outcome unknown" in told(place.service.requests[-1])
        assert place.service.server.requests[-1].violation is None
    assert (place.work / "ran.txt").read_text() == "ran\n"


def test_killed_in_the_middle_of_an_answer_the_prompt_is_there(place: Place) -> None:
    with service("text: Half\nstall\n---\ntext: Whole.") as place.service:
        process = place.start(
            "-m", PROTOCOLS["openai_chat"], "-p", "remember the sea", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 60
        while not place.service.requests:
            assert time.monotonic() < until
            time.sleep(0.01)
        process.kill()
        process.wait(60)
        done = place.run("--resume", "-p", "go on")
        assert (done.code, done.out) == (0, "Whole.\n")
        assert told(place.service.requests[-1]).count("remember the sea") == 1


def test_a_session_open_elsewhere_is_not_written_twice(place: Place) -> None:
    """SS05: the second is told who holds it, and what to do."""
    with service("text: One.\n---\ntext: Half\nstall\n---\ntext: Two.") as place.service:
        place.ask("a")
        first = place.start("--resume", "-p", "b", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        place.service.expect(2)
        second = place.run("--resume", "-p", "c")
        assert second.code == 42
        assert str(first.pid) in second.err
        first.kill()
        first.wait(60)
        assert place.run("--resume", "-p", "c").code == 0, "a dead holder does not block"


@pytest.mark.parametrize("which", ["../../etc/passwd", "nonsense", "99", "20200101-000000-00000000"])
def test_what_is_no_session_is_told_with_what_to_do(place: Place, which: str) -> None:
    done = place.run("--resume", which, "-p", "x", env={"GEMINI_API_KEY": "k"})
    assert done.code == 42
    assert "sessions list" in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_torn_end_is_set_aside_and_told(place: Place) -> None:
    with service("text: One.\n---\ntext: Two.") as place.service:
        place.ask("a")
        [log] = logs(place)
        log.write_bytes(log.read_bytes() + b'{"kind":"said","seq":99,"mess')
        done = place.run("--resume", "-p", "b")
        assert (done.code, done.out) == (0, "Two.\n")
        assert "moved to" in done.err
        assert [path.read_bytes() for path in log.parent.glob("*.torn-*")] == [b'{"kind":"said","seq":99,"mess']


def test_where_nothing_can_be_saved_the_answer_comes_and_the_user_is_told(place: Place) -> None:
    """SS04: at once, and nothing is promised."""
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True)
    (data / "sessions").write_text("in the way")
    with service("text: One.") as place.service:
        done = place.ask("a")
    assert (done.code, done.out) == (0, "One.\n")
    assert "NOT being saved" in done.err


def test_nothing_is_kept_of_a_prompt_that_was_never_sent(place: Place) -> None:
    assert place.ask("a", model="nonsense/x").code == 52
    assert logs(place) == []


def test_sessions_can_be_turned_off(place: Place) -> None:
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[sessions]\nkeep = false\n")
    with service("text: One.") as place.service:
        assert place.ask("a").code == 0
    assert logs(place) == []


def test_what_is_beyond_the_limit_is_deleted_when_the_work_is_done(place: Place) -> None:
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[sessions]\nmax_count = 2\n")
    with service("text: One.\n---\ntext: Two.\n---\ntext: Three.") as place.service:
        for prompt in "abc":
            place.ask(prompt)
    assert len(logs(place)) == 2
    assert [summary["first_prompt"] for summary in json.loads(place.run("sessions", "--output-format", "json").out)["sessions"]] == [
        "c",
        "b",
    ]


def test_where_its_model_is_not_to_be_had_another_may_be_named(place: Place) -> None:
    with service("text: One.\n---\ntext: Two.") as place.service:
        place.ask("a", model=PROTOCOLS["anthropic"])
        done = place.run("--resume", "-p", "b", env={"ANTHROPIC_API_KEY": ""})
        assert done.code == 41
        assert all(words in done.err for words in ("claude-opus-5", "ANTHROPIC_API_KEY", "-m"))
        assert place.run("--resume", "-p", "b", "-m", PROTOCOLS["gemini"], env={"ANTHROPIC_API_KEY": ""}).out == "Two.\n"
