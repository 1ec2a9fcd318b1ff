"""Ctrl-C and its kin: the first cancels cleanly and soon, the second leaves at once, and none leaves a traceback."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from dragoman.cli import stream_json
from dragoman.cli.outcome import Failure, Outcome
from dragoman.cli.startup import CANCELLED_OUTPUT
from dragoman.testing.script_steps import Say, ScriptedAnswer, Stall
from dragoman.words import say
from processes import wait_for_rest
from program import Done, Place, Service, calls, script

Serve = Callable[..., Service]


def interrupted(process: subprocess.Popen[bytes], *signals: signal.Signals, gap_s: float = 0.0) -> Done:
    """Send the signals, and tell how the program ended. Left alone, it would go on for longer than anybody waits here."""
    for number in signals:
        process.send_signal(number)
        time.sleep(gap_s)
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def wait_for_text(pipe: int) -> None:
    """Until there is something to read, which is left there."""
    assert select.select([pipe], [], [], 60)[0]


STALLED = "text: Once upon a\nstall"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["SIGINT", "SIGTERM", "SIGHUP"]
)
@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_signal_during_the_answer(place: Place, serve: Serve, number: signal.Signals, code: int, form: str) -> None:
    asked = serve(STALLED)
    process = place.start("-m", "anthropic", "-p", "hi", "--output-format", form)
    asked.expect(1)
    done = interrupted(process, number)
    assert done.code == code
    if form == "text":
        assert done.out == "", "what was broken off is no answer"
        assert done.err == "dragoman: cancelled\n"
    elif form == "json":
        assert done.json["error"] == {"message": "cancelled", "type": "Cancelled", "exit_code": code}
    else:
        last = done.events[-1]
        assert (last["status"], last["exit_code"]) == ("cancelled", code)
        assert last["session_id"]


def test_a_signal_during_a_retry_wait(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[retry]\nfirst_delay_s = 300\nmax_delay_s = 300\ndeadline_s = 1000\n")
    serve(script(*["error: 500"] * 3))
    process = place.start("-m", "anthropic", "-p", "hi")
    assert process.stderr is not None
    assert b"trying again" in process.stderr.readline()
    done = interrupted(process, signal.SIGINT)
    assert done.code == 130


def test_a_signal_while_a_tool_runs_ends_the_tool(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    declared = json.dumps([{"name": "slow", "description": "Slow.", "parameters": {"type": "object"}, "read_only": True}])
    (place.work / "list.sh").write_text(f"cat <<'END'\n{declared}\nEND\n")
    (place.work / "call.sh").write_text("sleep 0.3; echo $$ > pid; sleep 300\n")
    (place.home / "dragoman" / "config.toml").write_text('[tools]\ndiscover = ["sh", "list.sh"]\ncall = ["sh", "call.sh"]')
    serve(script([calls(("slow", {}))], "text: never"))
    process = place.start("-m", "anthropic", "-p", "hi", "--output-format", "stream-json")
    deadline = time.monotonic() + 60
    while not (place.work / "pid").exists() or not (place.work / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    done = interrupted(process, signal.SIGINT)
    assert done.code == 130
    [result] = done.of("tool_result")
    assert result["is_error"]
    pid = int((place.work / "pid").read_text())
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{pid}")


def test_the_second_ctrl_c_leaves_at_once(place: Place, serve: Serve) -> None:
    asked = serve(STALLED)
    process = place.start("-m", "anthropic", "-p", "hi", "--output-format", "stream-json")
    asked.expect(1)
    done = interrupted(process, signal.SIGINT, signal.SIGINT, gap_s=0.001)
    assert done.code == 130
    assert done.events[-1]["status"] == "cancelled"


STUCK = """
import sys, time
import dragoman.providers.http_provider as http

async def stream(self, request):
    print("stuck", file=sys.stderr, flush=True)
    time.sleep(300)  # a bug that blocks the loop
    yield

http.HttpProvider.stream = stream
from dragoman.cli.main import main
sys.argv[1:] = ["-m", "anthropic", "-p", "hi", "--output-format", "stream-json"]
main()
"""


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGINT, signal.SIGINT]], ids=["once", "twice"])
def test_not_even_a_program_that_hangs_outlives_it(place: Place, serve: Serve, signals: list[signal.Signals]) -> None:
    serve("text: never")
    command = [sys.executable, "-c", STUCK]
    options = {"cwd": place.work, "env": place.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **options)  # type: ignore[call-overload]
    assert process.stderr is not None
    assert process.stderr.readline() == b"stuck\n"
    done = interrupted(process, *signals, gap_s=0.05)
    assert done.code == 130
    assert done.events[-1]["status"] == "cancelled"


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_signal_while_standard_input_is_read(place: Place, serve: Serve, form: str) -> None:
    serve("text: ok")
    process = place.start("-m", "anthropic", "-p", "hi", "--output-format", form, stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert b"waiting" in process.stderr.readline()
    done = interrupted(process, signal.SIGTERM)
    assert done.code == 143
    if form == "stream-json":
        assert done.events[-1]["status"] == "cancelled"


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
@pytest.mark.parametrize("delay_ms", [5, 15, 25, 40, 60, 80, 100, 150, 200])
def test_ctrl_c_during_start_up_is_quiet(place: Place, serve: Serve, delay_ms: int, form: str) -> None:
    """Whenever it comes, there is no traceback (Done sees to that) and no crash, once our own code has begun."""
    serve(STALLED)
    probe = f"""
import sys
sys.argv[1:] = ["-m", "anthropic", "-p", "hi", "--output-format", "{form}"]
from dragoman.cli.startup import end_quietly_on_signals
end_quietly_on_signals(sys.argv[1:])
print("ready", file=sys.stderr, flush=True)
from dragoman.cli.main import main
main()
"""
    command = [sys.executable, "-c", probe]
    options = {"cwd": place.work, "env": place.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **options)  # type: ignore[call-overload]
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    time.sleep(delay_ms / 1000)
    done = interrupted(process, signal.SIGINT)
    assert done.code == 130
    if form == "stream-json":
        assert done.events[-1]["status"] == "cancelled"
    elif form == "json":
        assert done.json["error"]["exit_code"] == 130


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_what_is_said_before_anything_is_loaded_is_what_would_be_said_later(form: str) -> None:
    outcome = Outcome(failure=Failure(say("cancelled"), "Cancelled", 130))
    told = (
        [outcome.to_json()]
        if form == "json"
        else [stream_json.failure_data("cancelled", "Cancelled", 130), stream_json.result_data(outcome)]
    )
    lines = CANCELLED_OUTPUT[form].replace("CODE", "130").replace("TIME", "7").splitlines()
    assert [json.loads(line) for line in lines] == [each | ({} if form == "json" else {"at_ms": 7}) for each in told]


def test_a_signal_that_was_ignored_stays_ignored(place: Place, serve: Serve) -> None:
    """nohup, and jobs in the background of a script."""
    asked = serve("text: Hello\nwait: 0.5\ntext: , world")
    process = place.start("-m", "anthropic", "-p", "hi", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    asked.expect(1)
    done = interrupted(process, signal.SIGHUP)
    assert (done.code, done.out) == (0, "Hello, world\n")


def test_a_stalled_reader_can_be_left(place: Place, serve: Serve) -> None:
    """Nobody reads, the pipe is full, the answer complete: Ctrl-C still ends it."""
    serve("text: " + " ".join(f"word {number}," for number in range(30_000)))
    process = place.start("-m", "anthropic", "-p", "hi")
    assert process.stdout is not None
    wait_for_text(process.stdout.fileno())
    wait_for_rest(process.pid)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.communicate()


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_cancelled_answer_tells_what_the_service_had_told(place: Place, serve: Serve, form: str) -> None:
    """The input came with the first event: 0 tokens and $0.0000 would be a lie."""
    asked = serve("usage: fresh=1200 output=40\ntext: Once upon a\nstall")
    process = place.start("-m", "anthropic", "-p", "hi", "--output-format", form)
    asked.expect(1)
    wait_for_rest(process.pid)
    done = interrupted(process, signal.SIGINT)
    stats = (done.json if form == "json" else done.events[-1])["stats"]
    assert stats["tokens"] == {"input": 1200, "fresh": 1200, "cache_read": None, "cache_write": None, "output": 1, "thought": None}
    assert stats["complete"] is False
    assert stats["cost_usd"] > 0
    listed = json.loads(place.run("sessions", "list", "--output-format", "json").out)["sessions"]
    assert (listed[0]["usage"]["input_tokens"], listed[0]["usage"]["incomplete"]) == (1200, 1)
    assert "at least 1,200 tokens in" in place.run("sessions", "show", "latest").out
    assert "at least $" in place.run("context", "latest").out


def test_a_long_answer_is_kept_whole_when_it_is_cancelled(place: Place, serve: Serve) -> None:
    """60,000 pieces: the program used to leave before it had put together more than 30,000."""
    text = "".join(f"{number:07d} " for number in range(60_000))
    serve([ScriptedAnswer((Say(text, piece_chars=8), Stall()))])
    process = place.start("-m", "anthropic", "-p", "hi", "--output-format", "stream-json")
    assert process.stdout is not None
    for line in process.stdout:
        if b"0059999" in line:
            break
    done = interrupted(process, signal.SIGTERM)
    assert done.code == 143
    shown = json.loads(place.run("sessions", "show", "latest", "--output-format", "json").out)
    assert [step["text"] for step in shown["steps"] if step["type"] == "answer"] == [text]
