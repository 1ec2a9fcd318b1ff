"""The way into the program."""

from __future__ import annotations

import pytest

import dragoman
from dragoman.cli.main import main


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr() == (f"dragoman {dragoman.__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_goes_to_standard_output(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: dragoman")
    assert err == ""


@pytest.mark.parametrize("arguments", [[], ["--nonsense"], ["--version", "now"]])
def test_bad_arguments_are_an_input_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 42
    out, err = capsys.readouterr()
    assert out == ""
    assert "usage: dragoman" in err
    assert all(argument in err for argument in arguments)
