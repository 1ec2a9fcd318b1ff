"""Hooks through the real program: a command of the user's at each point of a run, over every protocol."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from processes import gone_within, marked_sleep, started_within
from program import PROTOCOLS, Place, calls, script, service
from terminals import terminal

SAY_WHERE = script(calls(("run_shell", {"command": "echo hello > made.txt"})), "text: Done.")
LIST = script(calls(("list_directory", {"path": "."})), "text: Done.")


def settings(
    place: Place, hooks: Mapping[str, Any], program: str = ".claude", name: str = "settings.json", *, project: bool = False
) -> Path:
    folder = (place.work if project else place.home) / program
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(json.dumps({"hooks": hooks}, indent=1))
    return file


def command(place: Place, name: str, code: str) -> str:
    """A hook in Python; `told` is what it is told."""
    file = place.home / f"{name}.py"
    file.write_text(f"import json, os, sys, time\ntold = json.load(sys.stdin)\n{code}\n")
    return shlex.join([sys.executable, str(file)])


def group(line: str, matcher: str = "", **fields: Any) -> list[dict[str, Any]]:
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": line, **fields}]}]


class Judge(BaseHTTPRequestHandler):
    """Refuses what it is asked about, and keeps what it was told."""

    told: ClassVar[list[tuple[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.told.append((self.headers["authorization"], body))
        said = json.dumps({"decision": "block", "reason": "Not on a Friday."}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        return


def test_a_service_judges_calls_that_fit_a_condition(place: Place) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    Thread(target=server.serve_forever, daemon=True).start()
    http = {
        "type": "http",
        "url": f"http://127.0.0.1:{server.server_port}/judge",
        "headers": {"Authorization": "Bearer $JUDGE $HOME"},
        "allowedEnvVars": ["JUDGE"],
        "if": "Bash(touch *)",
    }
    settings(place, {"PreToolUse": [{"matcher": "Bash", "hooks": [http]}]})
    answers = script(calls(("run_shell", {"command": "echo a && touch made"}), ("run_shell", {"command": "mkdir -p other"})), "text: Done.")
    options = ("--allow", "touch *", "--allow", "mkdir *")
    try:
        with service(answers) as place.service:
            done = place.ask("Go.", *options, env={"JUDGE": "me"})
            result = json.dumps(place.service.requests[-1])
        assert (done.code, done.err) == (0, "")
        assert "Not on a Friday." in result
        assert not (place.work / "made").exists()
        assert (place.work / "other").exists()
        ((header, told),) = Judge.told
        assert header == "Bearer me"
        assert (told["tool_name"], told["tool_input"]["command"]) == ("Bash", "echo a && touch made")
        with service(answers) as place.service:
            done = place.ask("Go.", *options, "--deny", f"web_fetch 127.0.0.1:{server.server_port}")
        assert "nothing was sent to 127.0.0.1" in done.err
        assert (place.work / "made").exists()
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_event_of_a_run_is_told_and_heeded(place: Place, protocol: str) -> None:
    log = place.home / "log.jsonl"
    keep = f"open({str(log)!r}, 'a').write(json.dumps(told) + '\\n')\n"
    other = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"path": "."}}}
    quiet = {"systemMessage": "looked", "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "It was quiet."}}
    again = "if not told['stop_hook_active']:\n    print('Check again.', file=sys.stderr); sys.exit(2)"
    hooks = {
        "SessionStart": group(command(place, "start", keep + "print('The tide is high.')")),
        "UserPromptSubmit": group(command(place, "prompt", keep + "print('It is Friday.')")),
        "PreToolUse": group(command(place, "pre", f"{keep}print(json.dumps({other}))"), "LS"),
        "PostToolUse": group(command(place, "post", f"{keep}print(json.dumps({quiet}))")),
        "Stop": group(command(place, "stop", keep + again)),
        "SessionEnd": group(command(place, "end", keep)),
    }
    settings(place, hooks)
    answers = script(calls(("list_directory", {"path": "nowhere"})), "text: One.", "text: Two.")
    with service(answers) as place.service:
        done = place.ask("Look around.", "--output-format", "stream-json", model=PROTOCOLS[protocol])
        bodies = [json.dumps(body) for body in place.service.requests]
        resumed = place.ask("Go on.", "--continue", "--output-format", "json", model=PROTOCOLS[protocol])
        last = json.dumps(place.service.requests[3])
    assert done.code == 0, done
    assert done.events[-1]["response"].endswith("Two.")
    told = [json.loads(line) for line in log.read_text().splitlines()]
    first = told[:7]
    assert [each["hook_event_name"] for each in first] == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "Stop",
        "SessionEnd",
    ]
    assert (first[0]["source"], first[1]["prompt"], first[2]["tool_name"]) == ("startup", "Look around.", "LS")
    assert os.path.exists(first[-1]["transcript_path"])
    assert {each["transcript_path"] for each in first} == {first[-1]["transcript_path"]}
    assert "The tide is high." in bodies[0]
    assert "It is Friday." in bodies[0]
    assert "It was quiet." in bodies[1]
    assert "Check again." in bodies[2]
    assert [event["message"] for event in done.of("error") if event.get("about") == "hook"] == ["hook: looked"]
    assert resumed.code == 0, resumed
    assert told[7]["source"] == "resume"
    for words in ("The tide is high.", "It is Friday.", "It was quiet.", "Check again."):
        assert words in last


def test_a_hook_for_the_end_runs_where_it_is_the_only_one(place: Place) -> None:
    settings(place, {"SessionEnd": group(command(place, "end", "open('ended', 'a').write(told['reason'])"))})
    with service(script("text: Done.")) as place.service:
        done = place.ask("Go.")
    assert (done.code, done.err) == (0, "")
    assert (place.work / "ended").read_text() == "other"


def test_a_resumed_session_sends_the_same_bytes_though_its_hooks_are_gone(place: Place) -> None:
    file = settings(
        place,
        {
            "UserPromptSubmit": group("echo It is Friday."),
            "PostToolUse": group("""echo '{"decision": "block", "reason": "Look twice."}'"""),
        },
    )
    with service(LIST + "\n---\ntext: Again.") as place.service:
        place.ask("Look around.")
        file.unlink()
        assert place.ask("Go on.", "--continue").code == 0
        first, second, third = (body["messages"] for body in place.service.requests)
    assert plain(third[: len(second)]) == plain(second)
    assert plain(second[: len(first)]) == plain(first)
    assert "Look twice." in json.dumps(second)


def plain(messages: Any) -> Any:
    """Without the marks of the prompt cache, which move on."""
    if isinstance(messages, list):
        return [plain(each) for each in messages]
    return {name: plain(value) for name, value in messages.items() if name != "cache_control"} if isinstance(messages, dict) else messages


def test_a_hook_blocks_a_call_and_the_model_is_told_why(place: Place) -> None:
    settings(place, {"PreToolUse": group("echo 'Not on a Friday.' >&2; exit 2", "Bash")})
    with service(SAY_WHERE) as place.service:
        done = place.ask("Go.", "--allow", "echo *")
        assert "Not on a Friday." in json.dumps(place.service.requests[1])
    assert done.code == 0, done
    assert not (place.work / "made.txt").exists()


def test_a_hook_allows_a_call_that_would_be_asked_about_but_not_against_a_rule(place: Place) -> None:
    yes = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    settings(place, {"PreToolUse": group(f"echo '{json.dumps(yes)}'", "Write")})
    write = script(calls(("write_file", {"file_path": "a.txt", "content": "a"})), "text: Done.")
    for arguments, is_written in (((), True), (("--deny", "write_file"), False)):
        with service(write) as place.service:
            place.ask("Go.", *arguments)
        assert (place.work / "a.txt").exists() == is_written
        (place.work / "a.txt").unlink(missing_ok=True)


def test_a_hook_changes_the_input_of_a_call(place: Place) -> None:
    code = """told["tool_input"]["content"] = "b"
wanted = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": told["tool_input"]}
print(json.dumps({"hookSpecificOutput": wanted}))"""
    settings(place, {"PreToolUse": group(command(place, "change", code), "Write|Edit")})
    with service(script(calls(("write_file", {"file_path": "a.txt", "content": "a"})), "text: Done.")) as place.service:
        place.ask("Go.")
        assert "were changed before it ran" in json.dumps(place.service.requests[1])
    assert (place.work / "a.txt").read_text() == "b"


def test_a_refused_prompt_is_never_sent_nor_kept(place: Place) -> None:
    settings(place, {"UserPromptSubmit": group("""echo '{"decision": "block", "reason": "It has a secret."}'""")})
    with service("text: hi") as place.service:
        done = place.ask("The key is 1234.")
        assert place.service.requests == []
    done.complaint(62, "It has a secret.")
    assert place.run("sessions", "--output-format", "json").json["sessions"] == []


def test_a_hook_ends_the_run(place: Place) -> None:
    settings(place, {"PostToolUse": group("""echo '{"continue": false, "stopReason": "Enough."}'""")})
    with service(LIST) as place.service:
        done = place.ask("Look.")
        assert len(place.service.requests) == 1
    done.complaint(62, "Enough.")


def test_hooks_of_gemini_cli_have_their_own_names_and_milliseconds(place: Place) -> None:
    log = place.home / "log.jsonl"
    keep = command(place, "keep", f"open({str(log)!r}, 'a').write(json.dumps(told) + '\\n')")
    hide = command(place, "hide", "print(json.dumps({'decision': 'deny', 'reason': 'It is secret.'}))")
    settings(
        place,
        {
            "BeforeTool": group(keep, "list_.*", timeout=5000),
            "AfterTool": group(hide, "list_directory"),
            "BeforeModel": group("true"),
            "AfterAgent": group("sleep 300", timeout=200),
        },
        ".gemini",
    )
    with service(LIST) as place.service:
        done = place.ask("Look.")
        result = json.dumps(place.service.requests[1])
    assert done.code == 0, done
    told = json.loads(log.read_text())
    assert (told["hook_event_name"], told["tool_name"], "timestamp" in told) == ("BeforeTool", "list_directory", True)
    assert "It is secret." in result
    assert "BeforeModel" in done.err
    assert "timed out" in done.err


# --- hooks of projects


def test_hooks_of_a_project_run_after_trust_and_a_yes_and_no_longer_once_they_change(place: Place) -> None:
    (place.work / "check.sh").write_text("touch $HOME/ran\n")
    settings(place, {"UserPromptSubmit": group("sh $CLAUDE_PROJECT_DIR/check.sh")}, project=True)
    ran = place.home / "ran"

    def ask(*arguments: str) -> str:
        ran.unlink(missing_ok=True)
        with service("text: hi") as place.service:
            return place.ask("hi", *arguments).err

    ask()
    assert not ran.exists()
    assert "dragoman hooks approve" in ask("--trust")
    assert not ran.exists()
    place.run("trust")
    listed = place.run("hooks", "--json").json["hooks"]
    assert [(each["state"], Path(each["place"]).name) for each in listed] == [("unasked", "settings.json:7")]
    approved = place.run("hooks", "approve")
    assert "check.sh" in approved.out
    assert "hooks" not in ask()
    assert ran.exists()
    (place.work / "check.sh").write_text("touch $HOME/ran; echo worse\n")
    assert "dragoman hooks approve" in ask()
    assert not ran.exists()
    place.run("hooks", "approve")
    ask()
    assert ran.exists()
    place.run("hooks", "revoke")
    ask()
    assert not ran.exists()


def test_a_hook_that_the_model_changes_during_a_run_is_not_run_any_more(place: Place) -> None:
    (place.work / "check.sh").write_text("true\n")
    settings(place, {"PreToolUse": group("sh check.sh")}, project=True)
    place.run("trust")
    place.run("hooks", "approve")
    change = calls(("write_file", {"file_path": "check.sh", "content": "touch $HOME/ran"}))
    read = calls(("read_file", {"file_path": "check.sh"}))
    with service(script(read, change, calls(("list_directory", {"path": "."})), "text: Done.")) as place.service:
        done = place.ask("Go.", "--approval", "auto-edit")
    assert done.code == 0, done
    assert (place.work / "check.sh").read_text() == "touch $HOME/ran"
    assert not (place.home / "ran").exists()
    assert "has changed since you agreed" in done.err


def test_a_hook_of_the_user_s_own_runs_no_file_of_the_folder_without_a_yes(place: Place) -> None:
    settings(place, {"Stop": group("test ! -e check.sh || sh $CLAUDE_PROJECT_DIR/check.sh")})
    write = calls(("write_file", {"file_path": "check.sh", "content": "touch $HOME/ran"}))
    with service(script(write, "text: Done.")) as place.service:
        assert "has changed since you agreed" in place.ask("Go.", "--approval", "auto-edit").err
    with service("text: hi") as place.service:
        assert "dragoman hooks approve" in place.ask().err
        assert not (place.home / "ran").exists()
        place.run("hooks", "approve")
        place.ask()
    assert (place.home / "ran").exists()


def test_hooks_of_our_own_configuration_and_the_commands_about_them(place: Place) -> None:
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        'model = "anthropic/claude-opus-5"\n\n[[hooks.PreToolUse]]\nmatcher = "run_shell"\ncommand = "echo no >&2; exit 2"\ntimeout = 5\n'
    )
    shown = place.run("config").out
    assert f"{config}:3)" in shown
    assert place.run("config", "--output-format", "json").json["hooks"][0]["origin"]["line"] == 3
    tested = place.run("hooks", "test", "PreToolUse", "run_shell", "--json").json["hooks"][0]
    assert (tested["exit_code"], tested["answer"]["reason"]) == (2, "no")
    assert "exit code 2" in place.run("hooks", "test", "PreToolUse").out
    assert "run_shell" in place.run("hooks").out
    config.write_text(config.read_text() + '\n[[hooks.Stop]]\ncommand = "echo lost >&2; exit 3"\n')
    assert "\n  warnings: the hook echo lost" in place.run("hooks", "test", "Stop").out
    with service(SAY_WHERE) as place.service:
        place.ask("Go.", "--allow", "echo *")
    assert not (place.work / "made.txt").exists()


def test_a_wrong_file_is_one_notice_and_the_rest_works(place: Place) -> None:
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").write_text('{\n "hooks": {\n  "Stop": [}\n}')
    settings(place, {"PreToolUse": group("true")}, ".codex", "hooks.json")
    with service("text: hi") as place.service:
        done = place.ask("hi")
    assert (done.code, done.out) == (0, "hi\n")
    lines = done.err.splitlines()
    assert len(lines) == 1, done
    assert "settings.json:3" in lines[0]


# --- processes


def test_hooks_die_with_us_also_when_we_are_killed(place: Place) -> None:
    mark, other = marked_sleep(), marked_sleep()
    code = f"""import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen({mark.split()!r}, start_new_session=True)
subprocess.Popen({other.split()!r}).wait()"""
    settings(place, {"UserPromptSubmit": group(command(place, "hang", code))})
    with service("text: hi") as place.service:
        process = place.start("-m", "anthropic/claude-opus-5", "-p", "hi", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert started_within(60, mark)
        assert started_within(60, other)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert gone_within(60, mark)
    assert gone_within(60, other)


# --- conversations


@pytest.mark.parametrize("ui", ["plain", ""])
def test_a_conversation_asks_once_about_hooks_of_a_project_and_shows_what_they_say(place: Place, ui: str) -> None:
    place.ui = ui
    settings(place, {"UserPromptSubmit": group("""echo '{"systemMessage": "welcome aboard"}'""")}, project=True)
    place.run("trust")
    with service("text: hello there") as place.service:
        with terminal(place) as talk:
            talk.expect("This project brings a program", "hook at UserPromptSubmit", "welcome aboard", "Use it?")
            talk.expect("(Enter: n): " if ui else "Enter answers with it; or another key")
            talk.send("y\n" if ui else "y")
            talk.expect("›" if ui else "└ used")
            talk.send("hi\r")
            talk.expect("hook: welcome aboard", "hello there")
            if ui:
                talk.prompt()
            talk.send("/hooks\r")
            talk.expect("settings.json:7", "runs")
            talk.send("/quit\r")
            assert talk.ended() == 0
        assert "hooks approve" not in place.ask("hi").err


CODEX = """model = "o"

[[hooks.UserPromptSubmit]]
matcher = ""
[[hooks.UserPromptSubmit.hooks]]
type = "command"
command = "echo It is Friday."

[hooks.state."x"]
trusted_hash = "1"
"""


def test_codex_has_hooks_in_its_configuration_too(place: Place) -> None:
    file = place.home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(CODEX)
    with service("text: ok") as place.service:
        assert place.ask().err == ""
        assert "It is Friday." in json.dumps(place.service.requests)
    hooks = place.run("hooks", "list", "--json").json["hooks"]
    assert [(each["place"], each["command"]) for each in hooks] == [(f"{file}:3", "echo It is Friday.")]
    (file.parent / "hooks.json").write_text(json.dumps({"hooks": {"Stop": group("true")}}))
    assert len(place.run("hooks", "list", "--json").json["hooks"]) == 2
    off = "".join(f'[hooks.state."{key}"]\nenabled = false\n' for key in (f"{file.parent / 'hooks.json'}:stop:0:0", f"{file}:stop:0:0"))
    file.write_text(CODEX + off)
    assert [each["place"] for each in place.run("hooks", "list", "--json").json["hooks"]] == [f"{file}:3"], (
        "one that Codex has switched off"
    )
    file.write_text(CODEX + "[features]\nhooks = false\n")
    assert place.run("hooks", "list", "--json").json["hooks"] == []


def test_those_of_a_project_in_codexs_configuration_are_asked_about(place: Place) -> None:
    (place.work / ".codex").mkdir()
    (place.work / ".codex" / "config.toml").write_text(CODEX)
    with service("text: ok") as place.service:
        assert "dragoman hooks approve" in place.ask("hi", "--trust").err
        assert "It is Friday." not in json.dumps(place.service.requests)
