"""`--sandbox external`: in a container or a VM that is the boundary itself, commands run without a sandbox of ours, and all else holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import container
from processes import alive, gone_within, marked_sleep, started_within
from program import KEY, Done, Place, Service, calls, script

Serve = Callable[..., Service]
in_container = pytest.mark.skipif(not container.can_be_made(), reason="only root can change its root")
WRITES = calls(("run_shell", {"command": "echo inside > made.txt; env > env.txt; cat /proc/[0-9]*/environ 2>/dev/null >> env.txt; true"}))


def ask_in_container(place: Place, tmp_path: Path, *arguments: str, **env: str) -> Done:
    root = tmp_path / "root"
    root.mkdir()
    started = container.command(str(root), sys.executable, "-m", "dragoman", "-m", "anthropic/claude-opus-5", *arguments, "-p", "go")
    done = subprocess.run(started, cwd=place.work, env=place.env | env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return Done(done.returncode, done.stdout, done.stderr)


@in_container
def test_in_a_container_auto_is_refused_with_the_advice_to_name_the_boundary(place: Place, serve: Serve, tmp_path: Path) -> None:
    serve(script("text: Done."))
    done = ask_in_container(place, tmp_path, "--approval", "auto")
    said = done.complaint(44, "if a container or VM is the boundary: --sandbox external")
    assert "not 1: " in said
    assert "not 3: Landlock" in said


@in_container
def test_in_a_container_doctor_says_what_to_do(place: Place, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    doctor = container.command(str(tmp_path / "root"), sys.executable, "-m", "dragoman", "doctor", "--offline")
    done = subprocess.run(doctor, cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    line = next(line for line in done.stdout.splitlines() if line.startswith("! sandbox"))
    assert "not 1: " in line
    assert "if a container or VM is the boundary: --sandbox external" in line


@in_container
def test_in_a_container_external_runs_commands_unasked_without_secrets(place: Place, serve: Serve, tmp_path: Path) -> None:
    serve(script(WRITES, "text: Done."))
    asked = ("--approval", "auto", "--sandbox", "external", "--output-format", "stream-json")
    done = ask_in_container(place, tmp_path, *asked, DATABASE_URL="postgres://me:secret@db/x", DEPLOY_TOKEN="secret")
    assert done.code == 0, done
    assert (place.work / "made.txt").read_text() == "inside\n"
    given = (place.work / "env.txt").read_text("utf-8", "replace")
    assert "secret" not in given
    assert KEY not in given, "neither in its own environment nor in that of a process it can see"
    assert "PATH=" in given
    assert done.of("init")[0]["sandbox"] == "external"
    assert "sandbox: external" in done.err


def test_the_record_says_that_the_boundary_was_not_ours(place: Place, serve: Serve) -> None:
    serve(script("text: Done.", "text: Again."))
    assert place.ask("go", "--sandbox", "external").code == 0
    log = next((place.home / "dragoman").rglob("*.jsonl"))
    assert [each.get("boundary") for each in read(log) if each["kind"] == "configured"] == ["external"]
    assert place.ask("on", "--continue").code == 0
    assert [each.get("boundary") for each in read(log) if each["kind"] == "configured"] == ["external", None]


def read(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_rules_and_the_limits_of_web_tools_hold(place: Place, serve: Serve) -> None:
    serve(script(calls(("run_shell", {"command": "touch a.txt"}), ("web_fetch", {"url": "https://example.org/"})), "text: Done."))
    done = place.ask("go", "--sandbox", "external", "--approval", "auto", "--deny", "touch *", "--output-format", "json")
    assert not (place.work / "a.txt").exists()
    assert done.json["stats"]["tools"]["refused"] == 2


def test_nothing_outlives_the_program(place: Place, serve: Serve) -> None:
    sleep = marked_sleep()
    serve(script(calls(("run_shell", {"command": f"setsid {sleep} & {sleep}"})), "text: Done."))
    process = place.start("-m", "anthropic/claude-opus-5", "--sandbox", "external", "--approval", "auto", "-p", "go")
    assert started_within(60, sleep, 2)
    process.kill()
    assert gone_within(60, sleep), alive(sleep)
    process.communicate()


def test_a_trusted_project_cannot_name_itself_the_boundary(place: Place, serve: Serve) -> None:
    serve(script("text: Done."))
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('[sandbox]\nlevel = "external"\n')
    assert "sandbox.level" in place.ask("go", "--trust").complaint(52)


def test_the_users_own_file_can_and_doctor_and_config_show_it(place: Place, serve: Serve) -> None:
    serve(script("text: Done."))
    config = place.home / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[sandbox]\nlevel = "external"\n')
    assert "external, a container or VM" in place.run("doctor", "--offline").out
    shown = [line.split() for line in place.run("config").out.splitlines() if line.strip().startswith("sandbox.level")]
    assert [line[1] for line in shown] == ["external"]
    shown = [line.split() for line in place.run("config", "--sandbox", "off").out.splitlines() if line.strip().startswith("sandbox.level")]
    assert [(line[1], line[-1]) for line in shown] == [("off", "--sandbox")]


def test_in_default_mode_nothing_is_taken_for_held_read_only(place: Place, serve: Serve) -> None:
    serve(script(calls(("run_shell", {"command": "touch b.txt"})), "text: Done."))
    done = place.ask("go", "--sandbox", "external", "--output-format", "json")
    assert done.json["stats"]["tools"]["refused"] == 1
    assert not (place.work / "b.txt").exists()
