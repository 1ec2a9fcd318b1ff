"""What a command leaves behind that would make git, the user's own, run something: it is put back or moved aside."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.sandbox.guard import Guard
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

EVIL = '[core]\n\tfsmonitor = "touch PWN"\n'


def make_repository(place: Path, config: str = "[core]\n\tbare = false\n") -> Path:
    for name in ("objects", "refs", "hooks"):
        (place / ".git" / name).mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place / ".git" / "config").write_bytes(config.encode())
    return place / ".git"


def guard_of(workspace: Path, *, with_content: bool = False) -> Guard:
    return Guard([str(workspace)], with_content=with_content)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path.resolve() / "work"


@pytest.mark.parametrize(
    "config",
    [EVIL, f"[core]\n\tbare = false\n[advice] {EVIL.replace(chr(10), '')}", "[core]\n# \x0c[advice]\n\tfsmonitor = x\n",
     "[core]\n# \r[advice]\n\tfsmonitor = x\n", "[core]\n# \u2028[color]\n\tfsmonitor = x\n", f"#{'x' * 1_000_000}\n{EVIL}",
     "[core]\n\tbare = \\\n[advice]\nfsmonitor = x\n", '[advice "]\n"]\n' + EVIL],
)  # fmt: skip
def test_a_new_repository_whose_settings_run_something_is_moved_aside(config: str, workspace: Path) -> None:
    guard = guard_of(workspace)
    made = make_repository(workspace / "new", config)
    assert guard.restore() == [str(made)]
    assert not made.exists()


def test_a_new_repository_that_runs_nothing_stays(workspace: Path) -> None:
    guard = guard_of(workspace)
    make_repository(workspace / "new", '[core]\n\tbare = false\n[remote "origin"]\n\turl = x ; y\n[advice] a = b\n# [core]\n')
    assert guard.restore() == []


def test_another_repository_in_the_place_of_one_that_was_moved_away_is_not_believed(workspace: Path) -> None:
    """What is fixed moves with the folder above it."""
    make_repository(workspace / "sub")
    guard = guard_of(workspace)
    (workspace / "sub").rename(workspace / "elsewhere")
    put = make_repository(workspace / "sub", EVIL)
    assert guard.restore() == [str(put)]
    assert (workspace / "elsewhere" / ".git").exists()


def test_a_repository_outside_is_not_moved_though_a_link_leads_to_it(workspace: Path) -> None:
    make_repository(workspace / "sub")
    other = make_repository(workspace.parent / "other", EVIL)
    guard = guard_of(workspace)
    (workspace / "sub").rename(workspace / "elsewhere")
    (workspace / "sub").symlink_to(other.parent)
    assert guard.restore() == []
    assert other.exists()


@pytest.mark.parametrize("with_content", [True, False])
@pytest.mark.parametrize(
    ("config", "name"),
    [("[core]\n\thooksPath = .githooks\n", ".githooks/pre-commit"), ("[include]\n\tpath = ../shared.cfg\n", "shared.cfg"),
     ('[includeIf "gitdir:x"]\n\tpath = "../shared.cfg"\n', "shared.cfg")],
)  # fmt: skip
def test_hooks_and_settings_that_lie_beside_the_files_are_put_back(config: str, name: str, with_content: bool, workspace: Path) -> None:
    make_repository(workspace, config)
    file = workspace / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("as it was")
    guard = guard_of(workspace, with_content=with_content)
    file.write_text("touch PWN")
    assert guard.restore() in ([str(file)], [str(file.parent)])
    assert file.read_text() == "as it was"
    file.write_text("touch PWN") if file.parent == workspace else shutil.rmtree(file.parent)
    guard.restore()
    assert file.read_text() == "as it was"


def test_hooks_that_the_users_own_settings_name_are_moved_aside_where_there_were_none(workspace: Path) -> None:
    (workspace.parent / "home" / ".gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    make_repository(workspace)
    guard = guard_of(workspace)
    (workspace / ".githooks").mkdir()
    (workspace / ".githooks" / "pre-commit").write_text("touch PWN")
    assert guard.restore() == [str(workspace / ".githooks")]
    assert os.listdir(workspace / ".githooks.held-back") == ["pre-commit"], "nothing is lost"


def test_hooks_elsewhere_are_left_alone(workspace: Path) -> None:
    for path in ("/usr/share/hooks", "..", ".", ".git/hooks", "~/hooks"):
        make_repository(workspace, f"[core]\n\thooksPath = {path}\n")
        guard = guard_of(workspace)
        (workspace / "file").write_text(path)
        assert guard.restore() == []
        shutil.rmtree(workspace / ".git")


@pytest.mark.parametrize("with_content", [True, False])
def test_what_runs_by_itself_in_a_home_that_is_the_workspace_is_put_back(with_content: bool, workspace: Path) -> None:
    (workspace / "dotfiles").mkdir()
    for name, text in ((".bashrc", "a"), ("dotfiles/gitconfig", "b"), (".config/git/config", "c")):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    (workspace / ".gitconfig").symlink_to("dotfiles/gitconfig")
    ground = Ground([str(workspace)], homes=[str(workspace)], private=str(workspace.parent / "private"))
    guard = Guard(ground.writable, ground.believed, ground.started, with_content=with_content)
    (workspace / ".bashrc").write_text("touch PWN")
    (workspace / ".profile").write_text("touch PWN")
    (workspace / "dotfiles" / "gitconfig").write_text("[core]")
    (workspace / ".config").rename(workspace / "elsewhere")
    (workspace / ".config" / "git").mkdir(parents=True)
    (workspace / ".config" / "git" / "config").write_text("[core]")
    (workspace / "plain").write_text("x")
    changed = {os.path.relpath(path, workspace) for path in guard.restore()}
    assert changed == {".bashrc", ".profile", "dotfiles/gitconfig", ".config/git/config"}
    assert [(workspace / name).read_text() for name in (".bashrc", ".gitconfig", ".config/git/config")] == ["a", "b", "c"]
    assert not (workspace / ".profile").exists()
    assert (workspace / "plain").exists()


def test_the_home_is_left_alone_where_it_is_not_in_the_workspace(workspace: Path) -> None:
    assert Ground([str(workspace)], homes=[str(workspace.parent)], private="").started == []


ATTACK = """
for each in .config .local; do mv $each x$each; done
mkdir -p .config/dragoman .local/share/dragoman
echo hostile | tee -a .config/dragoman/config.toml .config/dragoman/new.toml .local/share/dragoman/grants.jsonl; true
"""


@pytest.mark.parametrize("level", LEVELS)
def test_our_own_files_stay_where_they_are_in_a_home_that_is_the_workspace(level: int, tmp_path: Path) -> None:
    """The folders above them cannot be moved away, and another one put in their place."""
    config, grants = tmp_path / ".config/dragoman/config.toml", tmp_path / ".local/share/dragoman/grants.jsonl"
    for path in (config, grants):
        path.parent.mkdir(parents=True)
        path.write_text("ours")
    with sandbox_at(level, tmp_path, own=[str(config.parent), str(grants)], decided=[str(config), str(grants)]) as sandbox:
        ended, said = asyncio.run(bash(sandbox, ATTACK, tmp_path))
    assert ended.code == 0, said
    assert (config.read_text(), grants.read_text()) == ("ours", "ours")
    assert ("put back" in ended.remark) == (level == 3)


def test_a_link_by_which_our_own_files_are_found_is_put_back(workspace: Path) -> None:
    (workspace / "dotfiles" / "dragoman").mkdir(parents=True)
    (workspace / ".config").symlink_to("dotfiles")
    own = [str(workspace / ".config" / "dragoman")]
    ground = Ground([str(workspace)], homes=[], private="", own=own)
    assert ground.draw([]).pinned == (str(workspace / "dotfiles"),)
    guard = Guard(ground.writable, ground.believed, ground.started, with_content=False)
    (workspace / ".config").unlink()
    (workspace / ".config" / "dragoman").mkdir(parents=True)
    assert guard.restore() == [str(workspace / ".config")]
    assert os.readlink(workspace / ".config") == "dotfiles"
