"""The way into the program."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import cast, get_args

import pytest

import dragoman
from dragoman.app.options import Command
from dragoman.cli.main import main
from dragoman.cli.program import load_command
from program import Place


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    assert main([flag, "--debug"]) == 0
    assert capsys.readouterr() == (f"dragoman {dragoman.__version__}\n" * 2, "")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["-h", "-p"], ["--nonsense", "-h"]])
def test_help_goes_to_standard_output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: dragoman")
    assert err == ""


SUBCOMMANDS = [command for command in get_args(Command) if command != "run"]


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_every_command_has_a_function(command: str) -> None:
    assert command in ("acp", "serve-local", "fleet", "view") or callable(load_command(cast("Command", command)))


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_every_command_has_a_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: dragoman {command}")


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--nonsense", "now"], ["now"]])
def test_bad_arguments_are_an_input_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 42
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dragoman: ")
    assert err.count("\n") == 1
    assert arguments[0] in err


def test_help_into_a_pipe_that_is_closed_is_quiet(place: Place) -> None:
    command = f"{shlex.quote(sys.executable)} -m dragoman models | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=place.work, env=place.env, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
