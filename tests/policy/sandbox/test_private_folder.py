"""Our own state never lies where a command may write, whatever TMPDIR, HOME, the XDG variables or the workspace are."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.loop.commands import CommandStarter
from dragoman.loop.options import Sandboxing
from dragoman.policy.sandbox.private_folder import make_private_folder, remove_private_folder
from dragoman.policy.sandbox.sandbox import Sandbox
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at
from reachable import NOBODY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

ME = (os.getuid(), os.getgid())


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that is not in the system's temporary folder, with a home in it."""
    with tempfile.TemporaryDirectory(prefix="dragoman-test-", dir="/var/tmp") as place:
        work = Path(place).resolve() / "work"
        for name in ("tmp", "home"):
            (work / name).mkdir(parents=True)
        monkeypatch.setenv("HOME", str(work / "home"))
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "DRAGOMAN_HOME"):
            monkeypatch.delenv(name, raising=False)
        yield work  # type: ignore[misc]


def starter_at(level: int, folder: Path) -> CommandStarter:
    return CommandStarter([str(folder)], Sandboxing(level=level))  # type: ignore[arg-type]


@pytest.mark.parametrize("level", LEVELS)
def test_a_temporary_folder_in_the_workspace_is_not_used(level: int, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(work / "tmp"))
    outside = work.parent / "outside"
    outside.mkdir()
    monkeypatch.setenv("HOME", str(outside))
    swap = f"for d in tmp/dragoman-private-*; do mv $d/tmp $d/t2; ln -s {outside} $d/tmp; mv $d/covers $d/c2; ln -s /etc $d/covers; done"
    with sandbox_at(level, work) as sandbox:
        asyncio.run(bash(sandbox, swap, work))
        asyncio.run(bash(sandbox, "echo hostile | tee /tmp/x $TMPDIR/x", work))
        assert sandbox._ground is not None
        assert not sandbox._ground.private.startswith(str(work))
    assert os.listdir(outside) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs commands as somebody else")
@pytest.mark.parametrize("level", LEVELS)
def test_our_code_in_a_temporary_folder_that_is_closed_to_the_owner_of_the_workspace_does_no_harm(
    level: int, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    code = work.parent / "closed" / "code"
    code.mkdir(parents=True)
    code.parent.chmod(0o700)
    work.parent.chmod(0o755)
    os.chown(work, NOBODY, NOBODY)
    with sandbox_at(level, work):
        pass  # the level works here
    with closing(Sandbox([str(work)], level=level, readable=[str(code)])) as sandbox:  # type: ignore[arg-type]
        assert sandbox.detected.level == level, sandbox.detected.words
        ended, said = asyncio.run(bash(sandbox, f"id -u; ls {code}", work))
        assert (ended.code != 0, said.split("\n")[0]) == (True, str(NOBODY))
    code.parent.chmod(0o755)
    (code / "module.py").touch()
    with sandbox_at(level, work, readable=[str(code)]) as sandbox:
        assert asyncio.run(bash(sandbox, f"ls {code}", work))[1] == "module.py\n"


def test_the_systems_own_temporary_folder_as_the_workspace() -> None:
    made = make_private_folder(["/tmp"], ["/tmp"], ME)
    assert made.startswith("/var/tmp/")
    remove_private_folder(made)
    assert not os.path.exists(made)


def test_where_every_place_can_be_written_there_is_no_sandbox_and_it_is_said(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.policy.sandbox.private_folder._SYSTEM", (str(work / "tmp"),))
    monkeypatch.setattr(tempfile, "tempdir", str(work / "tmp"))
    with pytest.raises(OSError, match="no place"):
        make_private_folder([], [str(work)], ME)
    starter = starter_at(1, work)
    assert not starter.is_sandbox
    assert "no place for temporary files" in starter.words
    starter.close()


def test_a_folder_added_later_that_holds_our_own_gets_another(work: Path, tmp_path: Path) -> None:
    with sandbox_at(1, tmp_path, private_in=str(work / "tmp")) as sandbox:
        assert sandbox._ground is not None
        first = sandbox._ground.private
        assert first.startswith(str(work))
        sandbox.add_folder(str(work))
        asyncio.run(bash(sandbox, "true", tmp_path))
        assert not sandbox._ground.private.startswith(str(work))
    assert not os.path.exists(first)


def test_a_replaced_temporary_folder_is_noticed(work: Path, tmp_path: Path) -> None:
    """As by the command of another session, which may write there."""
    with sandbox_at(1, tmp_path, private_in=str(work / "tmp")) as sandbox:
        asyncio.run(bash(sandbox, "true", tmp_path))
        assert sandbox._ground is not None
        private = Path(sandbox._ground.private)
        (private / "tmp").rename(private / "moved")
        (private / "tmp").symlink_to(work)
        with pytest.raises(OSError, match="was replaced"):
            asyncio.run(bash(sandbox, "echo x > /tmp/x", tmp_path))
        (private / "tmp").unlink()
    assert not (work / "x").exists()


ATTACK = """
for each in .config .local .cache; do mv $each x$each; done
mkdir -p .config/dragoman .local/share/dragoman
echo hostile | tee -a .config/dragoman/config.toml .config/dragoman/new.toml .local/share/dragoman/grants.jsonl .cache/dragoman/mcp/x
rm -rf .config/dragoman .local/share/dragoman .cache/dragoman; true
"""


@pytest.mark.parametrize("level", [1, 2])
def test_our_own_files_stay_in_a_home_that_is_the_workspace(level: int, work: Path) -> None:
    home = work / "home"
    files = [home / name for name in (".config/dragoman/config.toml", ".local/share/dragoman/grants.jsonl", ".cache/dragoman/mcp/list")]
    for path in files:
        path.parent.mkdir(parents=True)
        path.write_text("ours")
    starter = starter_at(level, home)
    try:
        ended, said = asyncio.run(bash(starter, ATTACK, home))  # type: ignore[arg-type]
    finally:
        starter.close()
    assert ended.code == 0, said
    assert [path.read_text() for path in files] == ["ours"] * 3
    assert not (home / ".config/dragoman/new.toml").exists()


def test_level_three_is_not_used_where_it_cannot_protect_what_is_ours(work: Path) -> None:
    starter = starter_at(3, work / "home")
    assert not starter.is_sandbox
    assert str(work / "home") in starter.words
    starter.close()


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_in_the_workspace_by_which_our_files_are_found_cannot_be_protected(level: int, work: Path) -> None:
    home = work / "home"
    (work / "dotfiles" / "dragoman").mkdir(parents=True)
    (home / ".config").symlink_to("../dotfiles")
    starter = starter_at(level, home)
    assert not starter.is_sandbox
    assert str(home / ".config") in starter.words or level == 3
    starter.close()


@pytest.mark.parametrize("level", [1, 2])
def test_our_own_code_in_the_workspace_is_read_only(level: int, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / ".venv").mkdir()
    (work / ".venv" / "module.py").write_text("ours")
    monkeypatch.setattr(sys, "prefix", str(work / ".venv"))
    starter = starter_at(level, work)
    try:
        asyncio.run(bash(starter, "echo hostile > .venv/module.py; mv .venv v; echo fine > other", work))  # type: ignore[arg-type]
    finally:
        starter.close()
    assert (work / ".venv" / "module.py").read_text() == "ours"
    assert (work / "other").exists()


def test_nothing_is_left_where_there_is_no_sandbox(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where an agent is refused the mode auto, and nobody closes it."""
    monkeypatch.setattr(tempfile, "tempdir", str(work.parent))
    starter = starter_at(3, work / "home")
    assert not starter.is_sandbox
    assert [name for name in os.listdir(work.parent) if name.startswith("dragoman-private-")] == []
