"""`-p` says what it refused and why, and what a saved approval let run."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dragoman.cli.refusals import Refusals
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolCall
from program import Place, Service, calls, script

Serve = Callable[..., Service]
WRITE = calls(("write_file", {"file_path": "a.txt", "content": "x"}), ("run_shell", {"command": "env true", "writes": True}))


def test_plan_mode_counts_what_it_refuses_and_says_so(place: Place, serve: Serve) -> None:
    serve(script(WRITE, "text: I would write it."))
    done = place.ask("go", "--approval", "plan", "--output-format", "json")
    assert json.loads(done.out)["stats"]["tools"]["refused"] == 2
    assert done.err == (
        "dragoman: plan mode only reads, so these calls were refused (2: write_file a.txt, $ env true); "
        "without --approval plan they would be asked about\n"
    )


def test_a_hint_that_would_not_help_is_not_given(place: Place, serve: Serve) -> None:
    serve(script(WRITE, "text: Done."))
    done = place.ask("go", "--approval", "auto-edit")
    assert done.err == (
        "dragoman: calls that need approval were refused, because nobody can be asked (1: $ env true); "
        "--allow allows commands (--allow 'pytest *'), --approval auto all of them inside the sandbox, and dragoman without -p asks you\n"
    )


def test_a_tool_of_a_server_is_named_as_allow_takes_it() -> None:
    refused = Refusals()
    refused.take(ToolCall("c1", "mcp__git__git_log", "{}"), Intent(title="git: git_log"))
    assert refused.lines("default") == [
        "dragoman: calls that need approval were refused, because nobody can be asked (1: git: git_log); "
        "--allow allows tools of MCP servers by name (--allow mcp__git__git_log), and dragoman without -p asks you"
    ]


def test_what_a_saved_approval_let_run_is_said(place: Place, serve: Serve) -> None:
    data = place.home / "dragoman" / "data"
    data.mkdir(parents=True)
    (data / "grants.jsonl").write_text(json.dumps({"folder": str(place.work.resolve()), "key": "edit"}))
    serve(script(WRITE, "text: Done."))
    done = place.ask("go")
    assert (place.work / "a.txt").read_text() == "x"
    assert "ran without asking, because you saved an approval for this folder (1: write_file a.txt); dragoman approvals" in done.err
    assert "(1: $ env true)" in done.err


def test_a_command_reads_unasked_and_is_refused_to_write_with_what_to_do(place: Place, serve: Serve) -> None:
    asked = serve(
        script(calls(("run_shell", {"command": "env echo read"})), calls(("run_shell", {"command": "touch made"})), "text: Done.")
    )
    done = place.ask("go")
    if "(1: $ touch made)" not in done.err:
        pytest.skip("no sandbox of level 1 or 2 works here")
    assert "--allow allows commands (--allow 'pytest *'), --approval auto all of them inside the sandbox" in done.err
    told = json.dumps(asked.requests[-1]["messages"])
    assert '"text": "read"' in told or '"content": "read"' in told
    assert "nobody can be asked here" in told
    assert not (place.work / "made").exists()


OUTSIDE = calls(("run_shell", {"command": "touch ../home/out", "outside": "May I?"}))


def test_a_command_that_may_not_run_outside_is_said_with_what_allows_it(place: Place, serve: Serve) -> None:
    service = serve(script(OUTSIDE, "text: I could not."))
    done = place.ask("go", "--approval", "auto", "--allow", "touch *", "--allow", "run_shell")
    assert done.err == (
        "dragoman: commands were not run outside the sandbox, because nobody can be asked (1: $ touch ../home/out); "
        "--allow 'outside COMMAND' allows one (--allow 'outside git push'), and without -p you are asked\n"
    )
    assert "a person must allow that each time" in json.dumps(service.requests[1])
    assert not (place.home / "out").exists()


def test_a_rule_on_the_command_line_lets_a_command_run_outside(place: Place, serve: Serve) -> None:
    serve(script(OUTSIDE, "text: Done."))
    done = place.ask("go", "--allow", "outside touch *", "--output-format", "stream-json")
    assert (place.home / "out").exists()
    assert [line for line in map(json.loads, done.out.splitlines()) if line.get("outside_sandbox")]
    assert "(outside the sandbox) ✓" in place.run("sessions", "show", "latest").out


def test_a_rule_that_would_let_everything_out_is_refused(place: Place) -> None:
    done = place.ask("go", "--allow", "outside")
    assert done.code == 42
    assert "name the command" in done.err


def test_a_project_lets_nothing_out(place: Place, serve: Serve) -> None:
    serve(script(OUTSIDE, "text: Done."))
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('[rules]\nallow = ["outside touch *"]\n')
    done = place.ask("go", "--trust")
    assert "rules.allow" in done.err
    assert not (place.home / "out").exists()


def test_another_programs_file_lets_nothing_out(place: Place, serve: Serve) -> None:
    serve(script(OUTSIDE, "text: Done."))
    for folder in (place.home, place.work):
        (folder / ".gemini" / "policies").mkdir(parents=True)
        (folder / ".gemini" / "settings.json").write_text(json.dumps({"tools": {"allowed": ["outside", "run_shell_command(touch)"]}}))
    (place.home / ".gemini" / "policies" / "a.toml").write_text('[[rule]]\ntoolName = "outside"\ndecision = "allow"\npriority = 100\n')
    place.ask("go", "--trust", "--approval", "auto")
    assert not (place.home / "out").exists()
