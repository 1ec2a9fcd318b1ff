"""What bash, zsh and fish complete, asked of the shells themselves."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.test_context import worked
from dragoman.app.arguments import COMMANDS, OPTIONS
from dragoman.cli.completion_table import completed_commands
from program import Place
from system_parts import require_program
from terminals import plain

Complete = Callable[[str], set[str]]


@pytest.fixture
def env(place: Place) -> dict[str, str]:
    """`dragoman` is on the PATH."""
    folder = place.home / "bin"
    folder.mkdir()
    program = folder / "dragoman"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dragoman "$@"\n')
    program.chmod(0o755)
    return place.env | {"PATH": f"{folder}:{os.environ['PATH']}"}


def script_of(place: Place, shell: str) -> Path:
    done = place.run("completions", shell)
    assert (done.code, done.err) == (0, "")
    path = place.home / f"completions.{shell}"
    path.write_text(done.out)
    return path


@pytest.fixture(params=["bash", "fish"])
def complete(request: pytest.FixtureRequest, place: Place, env: dict[str, str]) -> Complete:
    """What the shell offers at the end of a line."""
    shell = require_program(request.param)
    path = script_of(place, request.param)

    def in_bash(line: str) -> set[str]:
        words = shlex.split(line) + ([""] if line.endswith(" ") else [])
        parts = [part for word in words for part in re.split(r"(?<=[=:])|(?=[=:])", word) if part or word == ""]
        asked = f"COMP_WORDS=({shlex.join(parts)}); COMP_CWORD={len(parts) - 1}; _dragoman; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return run(["bash", "--norc", "-c", f"source {path}; {asked}"])

    def in_fish(line: str) -> set[str]:
        return run(["fish", "--no-config", "-c", f"source {path}; complete -C {shlex.quote(line)}"])

    def run(command: list[str]) -> set[str]:
        done = subprocess.run([shell, *command[1:]], env=env, cwd=place.work, capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        return {each.split("\t")[0].strip() for each in done.stdout.splitlines()} - {""}

    return in_bash if request.param == "bash" else in_fish


def test_commands_actions_options_and_choices(complete: Complete) -> None:
    assert complete("dragoman ") >= set(COMMANDS)
    assert complete("dragoman sess") == {"sessions"}
    assert complete("dragoman --no-color sess") == {"sessions"}
    assert complete("dragoman -p sessions --outp") == {"--output-format"}, "what follows -p is the prompt"
    assert complete("dragoman sessions ") >= {"show", "export", "undo", "resume"}
    assert complete("dragoman models pu") == {"pull"}
    assert complete("dragoman --approval ") == {"plan", "default", "auto-edit", "auto"}
    assert {each.rpartition("=")[2] for each in complete("dragoman --approval=au")} == {"auto-edit", "auto"}
    assert complete("dragoman sessions export latest --as h") == {"html"}
    assert "--record" in complete("dragoman doctor --")
    assert "--record" not in complete("dragoman models --"), "an option of another command"
    assert complete("dragoman completions ") == {"bash", "zsh", "fish"}


def test_every_option_of_every_command(complete: Complete) -> None:
    for command in ("doctor", "sessions", "serve-local"):
        names = {option.names[-1] for option in OPTIONS if not option.commands or command in option.commands}
        assert {each for each in complete(f"dragoman {command} --") if each.startswith("--")} >= names


def test_names_that_the_program_knows(complete: Complete, place: Place) -> None:
    session = worked(place, count=1).closed()
    assert "anthropic/claude-opus-5" in complete("dragoman -m anthropic/claude-o")
    assert complete("dragoman --resume ") >= {"latest", session.session_id}
    assert complete(f"dragoman sessions show {session.session_id[:6]}") == {session.session_id}
    assert session.session_id in complete("dragoman context ")
    assert "smollm2" in complete("dragoman models pull ")


def test_files_and_directories(complete: Complete, place: Place) -> None:
    (place.work / "notes.txt").write_text("")
    (place.work / "nested").mkdir()
    assert {each.rstrip("/") for each in complete("dragoman -C ne")} == {"nested"}
    assert {each.rstrip("/") for each in complete("dragoman sessions import no")} == {"notes.txt"}


def test_a_colon_in_the_name_of_a_model_is_no_end(place: Place, env: dict[str, str]) -> None:
    bash = require_program("bash")
    path = script_of(place, "bash")
    asked = "found=(); cur=ollama/qwen:; dragoman() { :; }; COMP_WORDS=(dragoman -m ollama/qwen : 7); COMP_CWORD=4"
    stub = "_dragoman_ask() { found+=('ollama/qwen:7b '); }"
    done = subprocess.run(
        [bash, "--norc", "-c", f"source {path}; {stub}; {asked}; _dragoman; printf '[%s]' \"${{COMPREPLY[@]}}\""],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "[7b ]"


@pytest.mark.parametrize(
    ("shell", "start"),
    [
        ("bash", ["--norc", "--noprofile", "-i"]),
        ("zsh", ["-f", "-i"]),
        ("fish", ["--no-config", "-i"]),
    ],
)
def test_the_tab_key(shell: str, start: list[str], place: Place, env: dict[str, str]) -> None:
    """In a terminal, as it is typed. The completed line is run: what it prints shows what it was."""
    program = require_program(shell)
    path = script_of(place, shell)
    prepare = {"zsh": "autoload -Uz compinit; compinit -u -D; ", "bash": "", "fish": ""}[shell]
    master, slave = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [program, *start],
        env=env,
        cwd=place.work,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(slave)
    try:
        type_line(master, f"{prepare}source {path}; echo rea''dy\r", "ready")
        for part, whole in (("dragoman compl", "completions"), ("zs", "zsh")):
            type_line(master, f"{part}\t", whole)
        type_line(master, " > a.txt; echo do''ne\r", "done")
        for part, whole in (("dragoman --lan", "--lang"), ("e", "en"), ("sess", "sessions"), ("--output-", "format"), ("js", "json")):
            type_line(master, f"{part}\t", whole)
        type_line(master, " > b.txt; echo do''ne2\r", "done2")
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert (place.work / "a.txt").read_text().startswith("#compdef")
    assert (place.work / "b.txt").read_text() == '{"sessions":[]}\n'


def type_line(master: int, keys: str, until: str) -> None:
    """Waits until that is seen and nothing more comes: a shell drops keys that come while it completes."""
    seen = ""
    deadline = time.monotonic() + 60
    os.write(master, keys.encode())
    while select.select([master], [], [], 0.25)[0] or until not in plain(seen.encode()):
        assert time.monotonic() < deadline, seen
        if select.select([master], [], [], 0)[0]:
            seen += os.read(master, 1 << 16).decode(errors="replace")


def test_every_command_is_described(place: Place) -> None:
    for command in completed_commands():
        assert command.about, command.name
        for option in command.options:
            assert "  " not in option.about


def test_what_is_asked_for_wrongly_is_said(place: Place) -> None:
    place.run("completions").complaint(42, "bash, zsh or fish")
    place.run("completions", "zssh").complaint(42, "zssh", "did you mean zsh?")
    place.run("completions", "bash", "more").complaint(42, "more")
    assert "--output-format" in place.run("completions", "bash", "--output-format", "json").json["error"]["message"]
