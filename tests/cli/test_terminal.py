"""`dragoman` in a terminal: the real program on a pty, key by key (TURN-6: a user can always stop it, and sees what it does)."""

from __future__ import annotations

import re
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from processes import alive, marked_sleep, wait_until_stopped
from program import Place, Service, calls, script
from terminals import MARK, terminal

Serve = Callable[..., Service]
WRITE = calls(("write_file", {"file_path": "note.txt", "content": "one\ntwo\n"}))
SLEEP = calls(("run_shell", {"command": "env echo begun; sleep 30", "writes": True}))


# --- coming and going


def test_the_banner_says_what_holds(place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    (place.work / "AGENTS.md").write_text("Be rude.")
    with terminal(place) as shown:
        shown.expect("Trust this folder?", "(Enter: n): ")
        shown.send("n\n")
        banner = shown.prompt()
        for word in (dragoman.__version__, "anthropic/claude-opus-5", str(place.work), "approval: default", "/help", "AGENTS.md not read"):
            assert word in banner


def test_a_conversation_of_two_prompts(place: Place, serve: Serve) -> None:
    service = serve(script("text: Hello there.", "text: And again."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("hi")
        said = shown.prompt()
        assert "\nHello there.\n" in said
        assert "tokens in" in said
        shown.ask("once more")
        assert "\nAnd again.\n" in shown.prompt()
        shown.send(b"\x04")
        assert shown.ended() == 0
        assert shown.modes == shown.before
    assert "once more" in str(service.requests[1])
    assert "Hello there." in str(service.requests[1])


@pytest.mark.parametrize("way", ["/quit\r", "/exit\r", "\x04"])
def test_ways_to_leave(way: str, place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.send(way)
        assert shown.ended() == 0
        assert shown.modes == shown.before


def test_ctrl_c_at_the_prompt_clears_the_line_and_twice_leaves(place: Place, serve: Serve) -> None:
    service = serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.send("never sent")
        shown.expect("never sent")
        shown.send(b"\x03")
        shown.expect("again, or Ctrl-D, to leave")
        shown.prompt()
        shown.ask("hi")
        shown.expect("Hello.")
        shown.prompt()
        shown.send(b"\x03")
        shown.prompt()
        shown.send(b"\x03")
        assert shown.ended() == 0
        assert shown.modes == shown.before
    assert "never sent" not in str(service.requests)


def test_an_empty_line_does_nothing(place: Place, serve: Serve) -> None:
    service = serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.send("\r")
        shown.prompt()
        shown.send("   \r")
        shown.prompt()
        shown.send(b"\x04")
        assert shown.ended() == 0
    assert service.requests == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_prompt_ends_it_with_its_code(number: signal.Signals, place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.process.send_signal(number)
        assert shown.ended() == 128 + number
        assert shown.modes == shown.before


# --- what is typed


def test_a_backslash_at_the_end_goes_on_in_the_next_line(place: Place, serve: Serve) -> None:
    service = serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.send("first\\\r")
        shown.expect("… ")
        shown.send("second\r")
        shown.expect("Hello.")
    assert "first\\nsecond" in _last_user_text(service)


def test_pasted_lines_are_one_prompt(place: Place, serve: Serve) -> None:
    service = serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.send(b"\x1b[200~alpha\nbeta\ngamma\x1b[201~")
        shown.expect("gamma")
        shown.send("\r")
        shown.expect("Hello.")
        shown.prompt()
    assert "alpha\\nbeta\\ngamma" in _last_user_text(service)
    assert len(service.requests) == 1


def test_lines_that_come_at_once_are_one_prompt_where_nothing_marks_a_paste(place: Place, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "readline.py").write_text("raise ImportError('no readline here')\n")
    service = serve("text: Hello.")
    with terminal(place, env={"PYTHONPATH": str(tmp_path)}) as shown:
        shown.prompt()
        shown.send("alpha\nbeta\n")
        shown.expect("Hello.")
        shown.prompt()
    assert "alpha\\nbeta" in _last_user_text(service)


def test_earlier_prompts_come_back(place: Place, serve: Serve) -> None:
    service = serve(script("text: One.", "text: Two."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("unusual words")
        shown.prompt()
        shown.send(b"\x1b[A\r")
        shown.expect("Two.")
    assert str(service.requests[1]).count("unusual words") == 2


def test_what_was_typed_during_a_run_stands_in_the_next_prompt(place: Place, serve: Serve) -> None:
    service = serve(script("text: Wait\nwait: 0.7\ntext: ed.", "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("hi")
        shown.expect("Wait")
        shown.send("typed ahead\r")
        shown.expect("ed.", f"{MARK}typed ahead")
        assert len(service.requests) == 1
        shown.send("\r")
        shown.expect("Next.")
    assert "typed ahead" in _last_user_text(service)


def test_a_slash_twice_is_sent_as_one(place: Place, serve: Serve) -> None:
    service = serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.send("//etc is what?\r")
        shown.expect("Hello.")
    assert "/etc is what?" in _last_user_text(service)
    assert "//etc" not in _last_user_text(service)


def test_a_path_dropped_on_the_terminal_is_a_prompt_and_no_command(place: Place, serve: Serve) -> None:
    service = serve(script(*["text: Hello."] * 3))
    lines = ["/no/such/a.py what is this?", "/etc"]
    with terminal(place) as shown:
        shown.prompt()
        for line in lines:
            shown.ask(line)
            shown.expect("Hello.")
            assert line in _last_user_text(service)
            shown.prompt()


# --- commands


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/help", ["/model", "/approval", "/retry", "Esc"]),
        ("/modle", ["unknown command /modle", "did you mean /model?"]),
        ("/etcetera", ["unknown command", "//text"]),
        ("/model", ["anthropic/claude-opus-5"]),
        ("/model nonsense", ["✗", "nonsense"]),
        ("/approval", ["approval: default", "sandbox: "]),
        ("/approval plan", ["approval: plan"]),
        ("/approval nonsense", ["unknown approval mode nonsense", "auto-edit"]),
        ("/approval auto", ["sandbox"]),  # what holds, or that there is none
        ("/tools", ["read_file", "run_shell", "asks first"]),
        ("/usage", ["0 tokens in"]),
        ("/retry", ["nothing to retry"]),
    ],
)
def test_commands_are_answered_here(line: str, words: list[str], place: Place, serve: Serve) -> None:
    service = serve("text: Hello.")
    with terminal(place) as shown:
        shown.prompt()
        shown.ask(line)
        said = shown.prompt()
        for word in words:
            assert word in said
    assert service.requests == []


def test_tools_of_ones_own_command_and_of_packages_are_there_too(place: Place, serve: Serve) -> None:
    """Every front end opens its agent in one place, so that none forgets what is configured."""
    serve("text: Hello.")
    (place.work / "list.sh").write_text('#!/bin/sh\necho \'[{"name": "lucky", "description": "A lucky number."}]\'\n')
    config = '[tools]\ndiscover = ["sh", "list.sh"]\ncall = ["sh", "call.sh"]\nload = ["textwrap:dedent"]\ndisabled = ["run_shell"]'
    (place.home / "dragoman").mkdir(exist_ok=True)
    (place.home / "dragoman" / "config.toml").write_text(config)
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("/tools")
        said = shown.prompt()
        assert "lucky" in said
        assert "dedent" in said
        assert "run_shell" not in said


def test_another_model_goes_on_with_the_same_conversation(place: Place, serve: Serve) -> None:
    service = serve(script("text: From the first.", "text: From the second."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("remember blue")
        shown.prompt()
        shown.ask("/model openai/gpt-4.1")
        shown.expect("the model is now openai/gpt-4.1")
        shown.prompt()
        shown.ask("which colour?")
        shown.expect("From the second.")
    assert [exchange.protocol for exchange in service.server.requests] == ["anthropic", "openai_chat"]
    assert "remember blue" in str(service.requests[1])


def test_a_directory_is_added_in_the_conversation(place: Place, serve: Serve) -> None:
    service = serve(script("text: One.", "text: Two."))
    other = place.work.parent / "other"
    other.mkdir()
    (other / "whale.txt").write_text("")
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("hi")
        shown.prompt()
        shown.ask("/directory add ../other")
        shown.expect("may now work in")
        shown.prompt()
        shown.ask("/directory add ../other")
        shown.expect("already")
        shown.prompt()
        shown.ask("/directory")
        assert str(other) in shown.prompt()
        shown.ask("/directory add nowhere")
        assert "is not a directory" in shown.prompt()
        shown.ask("and now?")
        shown.expect("Two.")
    assert "whale.txt" not in str(service.requests[0])
    assert "whale.txt" in str(service.requests[1]["messages"][-1])


def test_a_conversation_is_cleared(place: Place, serve: Serve) -> None:
    service = serve(script("text: One.", "text: Two.", "text: Three."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("/clear")
        assert "nothing to clear" in shown.prompt()
        shown.ask("remember blue")
        shown.prompt()
        shown.ask("/clear")
        shown.expect("starts afresh")
        shown.prompt()
        shown.ask("which colour?")
        shown.expect("Two.")
    assert place.run("--resume", "latest", "-p", "and now?").code == 0
    asked = [str(body) for body in service.requests]
    afresh = next(number for number, body in enumerate(asked) if "which colour?" in body)
    assert not any("remember blue" in body for body in asked[afresh:])
    assert all("which colour?" in body for body in asked[afresh:])


def test_retry_goes_on_after_a_failure(place: Place, serve: Serve) -> None:
    service = serve(script('error: 400 "No."', "text: Now it works."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("please")
        failed = shown.prompt()
        assert "✗" in failed
        shown.ask("/retry")
        shown.expect("Now it works.")
    assert str(service.requests[1]).count("please") == 1


def test_plan_mode_holds_from_the_next_call(place: Place, serve: Serve) -> None:
    serve(script(WRITE, "text: Could not."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("/approval plan")
        shown.prompt()
        shown.ask("write it")
        assert "plan mode" in shown.expect("Could not.")
    assert not (place.work / "note.txt").exists()


def test_usage_counts_all_runs(place: Place, serve: Serve) -> None:
    serve(script("text: A\nusage: fresh=1000 cache_read=3000 output=5", "text: B\nusage: fresh=1000 output=6"))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("one")
        assert "4,000 tokens in (75% cached) · 5 out" in shown.prompt()
        shown.ask("two")
        shown.prompt()
        shown.ask("/usage")
        assert "5,000 tokens in (60% cached) · 11 out" in shown.prompt()


# --- a run


def test_calls_thoughts_and_failures_are_a_line_each(place: Place, serve: Serve) -> None:
    (place.work / "a.txt").write_text("x\ny\n")
    both = calls(("read_file", {"file_path": "a.txt"}), ("read_file", {"file_path": "missing.txt"}))
    serve(script(f"thought: I should look at it.\n{both}", "text: Done."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("look")
        lines = shown.prompt().splitlines()
        assert sum(line.endswith("… I should look at it.") for line in lines) >= 1
        (good,) = [line for line in lines if "● read_file a.txt ✓" in line]
        (bad,) = [line for line in lines if "● read_file missing.txt ✗" in line]
        assert lines.index("Done.") > max(lines.index(good), lines.index(bad))
    assert b"\x1b[31m" in next(line for line in shown.raw.splitlines() if "missing.txt ✗".encode() in line)


def test_a_broken_answer_is_taken_back_and_the_wait_is_counted(place: Place, serve: Serve) -> None:
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[retry]\nfirst_delay_s = 1.0\n")
    serve(script("text: Half of\ncut", "text: The whole."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        said = shown.expect("Half of", "[answer discarded, trying again]", "Ctrl-C cancels", "The whole.")
        assert len(set(re.findall(r"trying again in ([\d.]+) s", said))) > 1
    assert shown.raw.count(b"\r\x1b[K") > 1


def test_an_error_says_what_to_do(place: Place, serve: Serve) -> None:
    serve("error: 401")
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        failed = shown.prompt()
        assert "✗" in failed
        assert "ANTHROPIC_API_KEY" in failed


def test_what_a_model_says_cannot_act_on_the_terminal(place: Place, serve: Serve) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31mA\rB\x08\x1b]52;c;aGk=\x07C\x7f\x1b[?1049h"
    command = {"command": "env printf '\\033[2Jraw\\033]0;owned\\007\\n'", "writes": True}
    serve(script(f"text: {_quoted(evil)}\n" + calls(("run_shell", command)), "text: Over."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("Run it?", "run): ")
        shown.send("y")
        shown.expect("Over.")
        shown.prompt()
    for sequence in (b"\x1b]", b"\x1b[2J", b"\x9b", b"\xc2\x9b", b"\x08", b"\x7f", b"\x1b[?1049h", b"A\rB"):
        assert sequence not in shown.raw.partition(b"go\r\n")[2], sequence


def test_questions_of_the_model_are_put(place: Place, serve: Serve) -> None:
    service = serve(
        script(
            calls(("ask_user", {"question": "Which colour?", "choices": ["red", "blue"]})),
            calls(("ask_user", {"question": "Why?"})),
            calls(("ask_user", {"question": "Sure?"})),
            "text: Fine.",
        )
    )
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("ask me")
        shown.expect("Which colour?", "1. red", "2. blue", ": ")
        shown.send("2\r")
        shown.expect("Why?", ": ")
        shown.send("because\r")
        shown.expect("Sure?", ": ")
        shown.send("\r")
        shown.expect("Fine.")
        shown.prompt()
    assert "blue" in str(service.requests[1]["messages"][-1])
    assert "because" in str(service.requests[2]["messages"][-1])
    assert "did not answer" in str(service.requests[3]["messages"][-1])


# --- cancelling


def test_ctrl_c_cancels_while_the_answer_streams(place: Place, serve: Serve) -> None:
    serve(script("text: Begun\nstall", "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("Begun")
        _cancels(shown, b"\x03")


def test_ctrl_c_drops_what_a_slow_terminal_has_not_shown_yet(place: Place, serve: Serve) -> None:
    service = serve(script("text: " + " ".join(map(str, range(90_000))) + "\nstall", "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        _eventually(lambda: service.server.requests)
        time.sleep(1.5)  # nobody reads: far more is queued than a terminal takes
        before = len(shown.raw)
        shown.send(b"\x03")
        shown.expect("\ncancelled")
        assert len(shown.raw) - before < 100_000, "of 500,000"
        shown.prompt()
        shown.ask("on")
        shown.expect("Next.")


def test_escape_cancels_too(place: Place, serve: Serve) -> None:
    serve(script("text: Begun\nstall", "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("Begun")
        shown.send(b"\x1b[A")  # an arrow key begins with the same byte
        shown.read_for(0.3)
        assert "cancelled" not in shown.text
        _cancels(shown, b"\x1b")


def test_ctrl_c_cancels_before_anything_came(place: Place, serve: Serve) -> None:
    service = serve(script("wait: 300", "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        _eventually(lambda: service.server.requests)
        _cancels(shown, b"\x03")


def test_ctrl_c_cancels_a_running_command_and_all_it_started(place: Place, serve: Serve) -> None:
    sleep = marked_sleep()  # found by its name: in the sandbox processes have numbers of their own
    serve(script(calls(("run_shell", {"command": f"echo begun; {sleep}"})), "text: Next."))  # which only wait: nobody is asked
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("begun")  # nobody is asked: it does no more than read
        _cancels(shown, b"\x03")
        _eventually(lambda: not alive(sleep))


@pytest.mark.parametrize("key", [b"\x03", b"\x1b"])
def test_cancelling_a_question_runs_nothing(key: bytes, place: Place, serve: Serve) -> None:
    service = serve(script(WRITE, "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("write")
        shown.expect("Run it?", "run): ")
        _cancels(shown, key)
    assert not (place.work / "note.txt").exists()
    assert "Cancelled by the user before it was run" in str(service.requests[1])
    assert "the user said no" not in str(service.requests[1])


def test_ctrl_c_cancels_the_wait_before_a_retry(place: Place, serve: Serve) -> None:
    serve(script("error: 503", "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("trying again in")
        _cancels(shown, b"\x03")


def test_a_prompt_after_a_cancel_is_answered_however_often(place: Place, serve: Serve) -> None:
    serve(script(*["text: Begun\nstall"] * 3, "text: Next."))
    with terminal(place) as shown:
        shown.prompt()
        for _ in range(3):
            shown.ask("go")
            shown.expect("Begun")
            shown.send(b"\x03")
            shown.expect("cancelled")
            shown.prompt()
        shown.ask("again")
        shown.expect("Next.")


@pytest.mark.parametrize(
    ("how", "code"),
    [("term", 143), ("quit", 131)],
)
def test_the_terminal_is_given_back_whatever_ends_the_program(how: str, code: int, place: Place, serve: Serve) -> None:
    serve(script("text: Begun\nstall"))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("Begun")
        assert not shown.modes[3] & termios.ECHO
        if how == "term":
            shown.process.send_signal(signal.SIGTERM)
        else:
            shown.send(b"\x1c")
        assert shown.ended() == code
        assert shown.modes == shown.before


def test_a_question_that_is_ended_by_a_signal_gives_the_terminal_back(place: Place, serve: Serve) -> None:
    serve(WRITE)
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("write")
        shown.expect("Run it?", "run): ")
        shown.process.send_signal(signal.SIGTERM)
        assert shown.ended() == 143
        assert shown.modes == shown.before
    assert not (place.work / "note.txt").exists()


def test_stopped_and_continued_it_reads_keys_again(place: Place, serve: Serve) -> None:
    serve(script(WRITE, "text: Written."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("write")
        shown.expect("Run it?", "run): ")
        shown.process.send_signal(signal.SIGSTOP)
        wait_until_stopped(shown.process.pid)
        shown.set_modes(shown.before)  # as a shell does
        shown.process.send_signal(signal.SIGCONT)
        _eventually(lambda: not shown.modes[3] & termios.ICANON)
        shown.send("y")
        shown.expect("Written.")
    assert (place.work / "note.txt").exists()


# --- terminals of every kind


def test_no_color(place: Place, serve: Serve) -> None:
    for arguments, env in [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]:
        serve(script(WRITE, "text: Done."))
        with terminal(place, *arguments, env=env) as shown:
            shown.prompt()
            shown.ask("write")
            shown.expect("Run it?", "run): ")
            shown.send("n")
            shown.expect("Done.")
            shown.prompt()
        assert not [code for code in (b"\x1b[2m", b"\x1b[31m", b"\x1b[32m", b"\x1b[1m") if code in shown.raw]


def test_a_dumb_terminal_is_sent_no_sequences(place: Place, serve: Serve) -> None:
    serve(script("error: 503 retry_after=0", "thought: hm\n" + calls(("list_directory", {"path": "."})), "text: Done."))
    with terminal(place, env={"TERM": "dumb"}) as shown:
        shown.prompt()
        shown.ask("go")
        said = shown.expect("Done.")
        assert "trying again" in said
        assert "● list_directory . ✓" in said
    assert b"\x1b" not in shown.raw


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_a_terminal_that_knows_ascii_alone(env: dict[str, str], place: Place, serve: Serve) -> None:
    serve(script("text: Grüße …\n" + calls(("list_directory", {"path": "."})), "text: Done."))
    with terminal(place, env=env) as shown:
        shown.expect("\n> ")
        shown.send("hi\r")
        shown.expect("* list_directory . ok:", "Done.", "\n> ")
        shown.send(b"\xff\xfe\r")
        shown.expect("\n> ")
        shown.send(b"\x04")
        assert shown.ended() == 0


def test_standard_output_gets_the_answers_alone_where_it_is_a_file(place: Place, serve: Serve, tmp_path: Path) -> None:
    serve(script("text: Writing.\n" + WRITE, "text: Half\ncut", "text: The answer."))
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text("[retry]\nfirst_delay_s = 0.1\n")
    with (tmp_path / "out.txt").open("wb") as out, terminal(place, stdout=out) as shown:
        shown.prompt()
        shown.send("write it\r")
        shown.expect("+one", "Run it?", "run): ")
        shown.send("y")
        shown.expect("The answer.")
        shown.prompt()
        shown.send(b"\x04")
        assert shown.ended() == 0
    assert (tmp_path / "out.txt").read_text() == "Writing.\nThe answer.\n"


def test_with_no_terminal_to_be_shown_in_it_says_so(place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    with terminal(place, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shown:
        out, err = shown.process.communicate(timeout=60)
    assert shown.process.returncode == 42
    assert out == b""
    assert b"-p" in err


def test_a_terminal_that_goes_away_ends_the_program(place: Place, serve: Serve) -> None:
    serve("text: Begun\nstall")
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        shown.expect("Begun")
        shown.hang_up()
        assert shown.process.wait(60) in (129, 130)


def test_what_cannot_begin_is_one_line_and_an_exit_code(place: Place) -> None:
    place.more_env |= {"DRAGOMAN_UI": "plain"}
    with terminal(place, "-m", "nosuch/model") as shown:
        assert shown.ended() == 52
        assert shown.text.count("\n") == 1
        assert "nosuch" in shown.text


# --- help for the tests


def _cancels(shown: Any, key: bytes) -> None:
    """It is cancelled, long before what it waits for would come, and the next prompt is answered."""
    shown.send(key)
    shown.expect("cancelled")
    shown.prompt()
    shown.ask("again")
    shown.expect("Next.")
    shown.prompt()
    shown.send(b"\x04")
    assert shown.ended() == 0
    assert shown.modes == shown.before


def _last_user_text(service: Service) -> str:
    import json

    return json.dumps(service.requests[-1]["messages"][-1], ensure_ascii=False)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


def _eventually(holds: Callable[[], Any], within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


# --- going on with a session


def test_a_resumed_conversation_is_shown_again_and_its_figures_go_on(place: Place, serve: Serve) -> None:
    serve(script("text: Hello there.", "text: And again."))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("remember the sea")
        shown.prompt()
        shown.send(b"\x04")
        shown.ended()
    with terminal(place, "--resume") as shown:
        said = shown.prompt() + shown.prompt()  # the first is what was asked then
        assert "› remember the sea" in said
        assert "\nHello there.\n" in said
        shown.ask("once more")
        assert "\nAnd again.\n" in shown.prompt()
        shown.ask("/usage")
        assert re.search(r"\b2\b", shown.prompt()), "the run before counts"


def test_leaving_says_how_to_come_back(place: Place, serve: Serve) -> None:
    serve(script("text: Hello there.", "text: And again."))
    with terminal(place) as shown:
        shown.prompt()
        shown.send(b"\x04")
        shown.ended()
        assert "--resume" not in shown.text, "nothing was said, so there is nothing to come back to"
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("remember the sea")
        shown.prompt()
        shown.send(b"\x04")
        shown.ended()
        found = re.search(r"dragoman --resume ([0-9a-f]{4}) goes on from here", shown.text)
    assert found is not None
    assert place.run("--resume", found[1], "-p", "again").out == "And again.\n"


def test_in_auto_the_first_lines_say_which_sandbox_holds(place: Place, serve: Serve) -> None:
    serve("text: Hello.")
    with terminal(place, "--approval", "auto") as shown:
        shown.expect("sandbox")
        if "approval: auto" in shown.text:
            assert "does not" in shown.prompt(), "also what it does not hold"
