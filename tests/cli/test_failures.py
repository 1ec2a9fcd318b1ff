"""Every way a headless run can fail: the right exit code, one line that says what to do, and exactly one result."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable

import pytest

from program import PROTOCOLS, Done, Place, Service, calls, script

Serve = Callable[..., Service]
FAST = "[retry]\nfirst_delay_s = 0\n[answers]\ndelay_s = 0\n"
FORMATS = ("text", "json", "stream-json")


@pytest.fixture
def fast(place: Place) -> Place:
    """Waits between attempts are left out."""
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text(FAST)
    return place


def told_everywhere(run: Callable[..., Done], code: int, *words: str) -> None:
    """The same failure in all three formats."""
    text = run("--output-format", "text")
    assert text.out == ""
    assert text.code == code, text
    last = text.err.splitlines()[-1]
    assert last.startswith("dragoman: ")
    told = run("--output-format", "json")
    assert told.code == code, told
    error = told.json["error"]
    assert error["exit_code"] == code
    assert set(told.json) == {"session_id", "response", "stats", "error"}
    streamed = run("--output-format", "stream-json")
    assert streamed.code == code, streamed
    assert streamed.events[-1]["error"]["exit_code"] == code
    assert streamed.events[-1]["status"] == "error"
    assert [event for event in streamed.of("error") if event["severity"] == "error"][-1]["exit_code"] == code
    for word in words:
        assert word in last, text
        assert word in error["message"], told


# --- before anything is sent


def test_no_key(place: Place) -> None:
    told_everywhere(
        lambda *more: place.run("-p", "hi", *more), 41, "GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "dragoman models"
    )


def test_no_key_for_the_model_that_was_named(place: Place) -> None:
    told_everywhere(lambda *more: place.run("-p", "hi", "-m", "mistral", *more), 41, "MISTRAL_API_KEY")


@pytest.mark.parametrize("model", ["nonsense", "antropic/claude-opus-5", "vllm"])
def test_an_unknown_model(place: Place, model: str) -> None:
    place.run("-p", "hi", "-m", model).complaint(52, model)


def test_bad_arguments_in_every_format(place: Place) -> None:
    told_everywhere(lambda *more: place.run("--nonsense", *more), 42, "--nonsense")
    told_everywhere(lambda *more: place.run("-p", "", *more), 42, "prompt is empty")
    told_everywhere(lambda *more: place.run("-p", "x", "--resume", "latest", *more), 42, "no session to resume")


def test_a_bad_configuration_in_every_format(place: Place) -> None:
    (place.work / "c.toml").write_text("max_turn = 3")
    told_everywhere(lambda *more: place.run("-p", "hi", "--config", "c.toml", *more), 52, "c.toml:1", "max_turn", "max_turns")


@pytest.mark.parametrize("option", ["-C", "--include"])
def test_a_directory_that_is_none(place: Place, serve: Serve, option: str) -> None:
    serve("text: ok")
    (place.work / "file").write_text("")
    place.ask("hi", option, "nowhere").complaint(42, "nowhere", option)
    place.ask("hi", option, "file").complaint(42, "not a directory")


def test_a_disabled_tool_that_is_none(place: Place, serve: Serve) -> None:
    serve("text: ok")
    (place.work / "c.toml").write_text('[tools]\ndisabled = ["run_shel"]')
    place.ask("hi", "--config", "c.toml").complaint(52, "run_shel", "run_shell", "c.toml")


def test_a_system_file_that_is_none(place: Place, serve: Serve) -> None:
    serve("text: ok")
    (place.work / "c.toml").write_text('system_file = "nowhere.md"')
    place.ask("hi", "--config", "c.toml").complaint(52, "nowhere.md")


def test_a_discovery_command_that_fails(place: Place, serve: Serve) -> None:
    serve("text: ok")
    (place.work / "c.toml").write_text('[tools]\ndiscover = ["false"]\ncall = ["false"]')
    told_everywhere(lambda *more: place.ask("hi", "--config", "c.toml", *more), 52, "discovery")


# --- the service


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_a_wrong_key(place: Place, serve: Serve, model: str) -> None:
    asked = serve("error: 401")
    place.ask(model=model).complaint(41, "API_KEY")
    assert len(asked.server.requests) == 1, "a key does not get better by trying again"


def test_a_server_of_this_machine_that_does_not_run_is_said_at_once(place: Place) -> None:
    """It was tried again for 19 seconds: waiting starts no server."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        env = {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        done = place.ask(env=env)
    assert done.out == ""
    done.complaint(57, "connection refused", "is the server running? Start it")


@pytest.mark.parametrize("model", PROTOCOLS.values(), ids=list(PROTOCOLS))
@pytest.mark.parametrize(
    ("answer", "code", "word"),
    [
        ('error: 400 "no such thing"', 57, "no such thing"),
        ("error: 429 quota_id=RequestsPerDay", 57, ""),
        ("text: half of\ncut", 57, ""),
        ("garbage: {{{", 57, ""),
        ("finish: stop", 57, "empty"),
        ("text: some\nfinish: refusal", 58, "refused"),
        ("text: Once upon a\nfinish: length", 59, "output limit"),
    ],
    ids=["400", "daily quota", "cut", "garbage", "empty", "refusal", "length"],
)
def test_a_service_that_fails(fast: Place, serve: Serve, model: str, answer: str, code: int, word: str) -> None:
    serve(script(*[answer] * 5))
    done = fast.ask(model=model)
    assert done.code == code, done
    assert word in done.err.splitlines()[-1], done
    assert done.out == ("Once upon a\n" if code == 59 else ""), done


def test_a_failing_service_in_every_format(fast: Place, serve: Serve) -> None:
    serve(script(*["text: half of\ncut"] * 20))
    told_everywhere(lambda *more: fast.ask("hi", *more), 57)
    serve(script(*["error: 403"] * 3))
    told_everywhere(lambda *more: fast.ask("hi", *more), 41)


def test_what_is_void_is_said_to_be_so(fast: Place, serve: Serve) -> None:
    serve(script("text: wrong\ncut", "text: right"))
    done = fast.ask("hi", "--output-format", "stream-json")
    kinds = [(event["type"], event.get("text") or event.get("discard")) for event in done.events if event["type"] in ("message", "error")][
        1:
    ]
    assert kinds == [("message", "wrong"), ("error", True), ("message", "right")]
    assert done.events[-1]["response"] == "right"


def test_nothing_of_a_broken_answer_is_run(fast: Place, serve: Serve) -> None:
    """PV01, PV09: no call of an answer that was cut or ended at the output limit is executed."""
    write = calls(("write_file", {"file_path": "PWN", "content": "x"}))
    serve(script(*[f"{write}\ncut", f"{write}\nfinish: length"] * 4))
    assert fast.ask("hi", "--approval", "auto-edit").code != 0
    assert os.listdir(fast.work) == []


# --- the loop


def test_max_turns(place: Place, serve: Serve) -> None:
    looking = [calls(("list_directory", {"path": "."}))]
    asked = serve(script(*[looking] * 9))
    told_everywhere(lambda *more: place.ask("hi", "--max-turns", "2", *more), 53, "max_turns")
    assert len(asked.requests) == 6


def test_going_in_circles(place: Place, serve: Serve) -> None:
    serve(script(*[[calls(("read_file", {"file_path": "nowhere.txt"}))]] * 20))
    done = place.ask("hi", "--output-format", "stream-json")
    assert done.code == 56
    assert [event["count"] for event in done.of("error") if event["error_type"] == "loop_detected"] == [1, 2]


def test_an_unknown_tool_and_a_failing_one_are_the_models_business(place: Place, serve: Serve) -> None:
    asked = serve(script([calls(("rm_all", {}), ("read_file", {"file_path": "nowhere"}), ("read_file", {}))], "text: I see."))
    done = place.ask("hi", "--output-format", "json")
    assert done.code == 0
    assert done.json["stats"]["tools"] == {"calls": 3, "failures": 3, "refused": 0}
    assert "rm_all" in json.dumps(asked.requests[1])


# --- what nobody expected


def test_an_internal_error_is_one_line_and_a_result(place: Place) -> None:
    """A file in a room is replaced by one that breaks: whatever is wrong inside, the user sees one line."""
    broken = place.work / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text("import sys\nsys.modules['dragoman.loop.agent'] = None")
    env = {"PYTHONPATH": str(broken), "ANTHROPIC_API_KEY": "x"}
    told_everywhere(lambda *more: place.ask("hi", *more, env=env), 1, "internal error", "--debug")
    place.run("models", env=env)
    with place.start("-p", "hi", "--debug", env=env) as process:
        assert process.stderr is not None
        assert b"Traceback" in process.stderr.read()
