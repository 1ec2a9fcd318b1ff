"""Caches of commands: one folder per workspace, bounded, and removed without following anything that a command has put there."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.sandbox import caches
from dragoman.policy.sandbox.cache_removal import ASIDE, measure, remove_tree
from dragoman.policy.sandbox.caches import WorkspaceCaches, cache_variables
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

LONG_S = 60.0


def run(sandbox: Any, command: str, folder: Path, **options: Any) -> tuple[int, str]:
    ended, said = asyncio.run(bash(sandbox, command, folder, timeout_s=LONG_S, **options))
    return ended.code, said


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.npm").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def folder_of(place: Path) -> Path:
    return next(
        path for path in place.iterdir() if path.is_dir() and not path.name.startswith(ASIDE) and not path.name.endswith("-reading")
    )


# --- commands use them


@pytest.mark.parametrize("level", LEVELS)
def test_commands_write_their_caches_and_nothing_else_there(level: int, workspace: Path) -> None:
    place = workspace.parent / "caches"
    with sandbox_at(level, workspace, caches_in=str(place), own=[str(place)]) as sandbox:
        assert (
            run(sandbox, "echo kept > $XDG_CACHE_HOME/a && mkdir -p $npm_config_cache && echo b > $npm_config_cache/b", workspace)[0] == 0
        )
        run(
            sandbox, f"touch {place}/made {place}/other.lock ~/.npm/made; rm -rf {place}/*.lock; mv $XDG_CACHE_HOME/.. {place}/x", workspace
        )
    names = sorted(path.name for path in place.iterdir())
    assert names == [folder_of(place).name, f"{folder_of(place).name}-reading", f"{folder_of(place).name}.lock"]
    assert stat.S_IMODE(folder_of(place).stat().st_mode) == 0o700
    assert list((workspace.parent / "home/.npm").iterdir()) == []
    with sandbox_at(level, workspace, caches_in=str(place)) as sandbox:
        assert run(sandbox, "cat $XDG_CACHE_HOME/a $npm_config_cache/b", workspace) == (0, "kept\nb\n")
        if sandbox.has_read_only:
            assert run(sandbox, "echo too > $PIP_CACHE_DIR && cat $PIP_CACHE_DIR", workspace, reach="read-only") == (0, "too\n")


@pytest.mark.parametrize("level", [1, 2])
def test_caches_are_writable_though_our_cache_folder_lies_in_the_workspace(level: int, workspace: Path) -> None:
    own = workspace / ".cache/dragoman"
    own.mkdir(parents=True)
    with sandbox_at(level, workspace, caches_in=str(own / "commands"), own=[str(own)]) as sandbox:
        assert run(sandbox, f"echo 1 > $XDG_CACHE_HOME/a; touch {own}/made", workspace)[0] == 1
        said = run(sandbox, "cat $XDG_CACHE_HOME/a; echo 2 > $XDG_CACHE_HOME/b && cat $XDG_CACHE_HOME/b", workspace, reach="read-only")[1]
        assert said.endswith("1\n2\n" if level == 1 else "directory\n2\n")  # bubblewrap lays nothing over a folder
    assert [path.name for path in own.iterdir()] == ["commands"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("level", LEVELS)
def test_another_users_commands_have_caches_for_the_session(level: int) -> None:
    workspace = Path("/var/tmp") / f"dragoman-caches-{os.getpid()}"
    workspace.mkdir()
    try:
        os.chown(workspace, 65534, 65534)
        with sandbox_at(level, workspace, caches_in="/root/.cache/dragoman-test") as sandbox:
            assert run(sandbox, "mkdir -p $UV_CACHE_DIR && echo 1 > $UV_CACHE_DIR/a", workspace) == (0, "")
            assert run(sandbox, "cat $UV_CACHE_DIR/a", workspace) == (0, "1\n")
    finally:
        shutil.rmtree(workspace)
    assert not os.path.lexists("/root/.cache/dragoman-test")


def test_variables_that_name_a_place_in_the_workspace_are_kept_and_others_replaced() -> None:
    env = {
        "HOME": "/h",
        "UV_CACHE_DIR": "/w/.uv",
        "PIP_CACHE_DIR": "/h/.cache/pip",
        "MAVEN_OPTS": "-Xmx1g -Dmaven.repo.local=/h/m",
        "GOCACHE": "off",
    }
    found = cache_variables("/c", env, ["/w"])
    assert (found["UV_CACHE_DIR"], found["PIP_CACHE_DIR"], found["GOCACHE"]) == ("/w/.uv", "/c/pip", "/c/go-build")
    assert found["MAVEN_OPTS"].split()[:2] == ["-Xmx1g", "-Dmaven.repo.local=/c/maven"]
    assert cache_variables("/c", {"MAVEN_OPTS": "-Dmaven.repo.local=/w/m"}, ["/w"])["MAVEN_OPTS"].startswith("-Dmaven.repo.local=/w/m")


# --- they are bounded


def open_and_close(place: Path, workspace: Path, **options: Any) -> str:
    session = WorkspaceCaches(str(place), str(workspace), **options)
    try:
        return session.open()
    finally:
        session.close(LONG_S)


def test_a_cache_that_is_too_large_is_gone_when_the_next_session_begins(tmp_path: Path) -> None:
    place = tmp_path / "caches"
    folder = Path(open_and_close(place, tmp_path, most_bytes=100_000))
    (folder / "large").write_bytes(b"x" * 200_000)
    (place / f"{folder.name}.lock").write_bytes(b"")  # so that it is measured at once, and not in an hour
    first = WorkspaceCaches(str(place), str(tmp_path), most_bytes=100_000)
    first.open()
    assert (folder / "large").exists(), "not while a session that may use it goes on"
    first._keeper.join(LONG_S)  # type: ignore[union-attr]
    open_and_close(place, tmp_path, most_bytes=100_000)
    assert (folder / "large").exists(), "nor by another session meanwhile"
    first.close(LONG_S)
    assert open_and_close(place, tmp_path, most_bytes=100_000) == str(folder)
    assert [path.name for path in folder.iterdir()] == ["xdg"]
    assert not [path for path in place.iterdir() if path.name.startswith(ASIDE)]


def test_caches_that_nobody_used_for_a_month_are_gone_but_not_one_in_use(tmp_path: Path) -> None:
    place = tmp_path / "caches"
    old, used = Path(open_and_close(place, tmp_path / "old")), WorkspaceCaches(str(place), str(tmp_path / "used"))
    kept = Path(used.open())
    used._keeper.join(LONG_S)  # type: ignore[union-attr]
    past = time.time() - caches.UNUSED_S - 60
    for name in (f"{old.name}.lock", f"{kept.name}.lock"):
        os.utime(place / name, (past, past))
    open_and_close(place, tmp_path / "new")
    assert (old.exists(), kept.exists()) == (False, True)
    used.close()


# --- whatever a command has put there


def make_hostile(folder: Path, victim: Path) -> None:
    """What a command may leave: links to elsewhere, pipes, closed folders, hard links, a tree without an end."""
    folder.mkdir(exist_ok=True)
    (folder / "link").symlink_to(victim)
    (folder / "file-link").symlink_to(victim / "letter.txt")
    os.mkfifo(folder / "pipe")
    os.link(victim / "letter.txt", folder / "hard")
    (folder / "closed/inner").mkdir(parents=True)
    (folder / "closed/inner/file").write_text("x")
    (folder / "closed/inner").chmod(0o000)
    (folder / "closed").chmod(0o000)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(150):  # longer than a path may be
        os.mkdir(name := "d" * 50, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.symlink(victim, "link", dir_fd=here)
    os.close(here)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "victim/inner").mkdir(parents=True)
    (tmp_path / "victim/letter.txt").write_text("mine")
    (tmp_path / "victim/inner/too.txt").write_text("mine")
    return tmp_path / "victim"


def test_hostile_contents_are_measured_and_removed_and_nothing_else_is_touched(tmp_path: Path, victim: Path) -> None:
    before = {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in (victim, *victim.rglob("*"))}
    place = tmp_path / "caches"
    folder = Path(open_and_close(place, tmp_path))
    make_hostile(folder, victim)
    assert measure(str(place), folder.name, 10_000_000, lambda: False) == 10_000_001, "what is so deep counts as too large"
    (place / f"{folder.name}.lock").write_bytes(b"")
    open_and_close(place, tmp_path)
    open_and_close(place, tmp_path)
    assert [path.name for path in folder.iterdir()] == ["xdg"]
    assert sorted(path.name for path in place.iterdir()) == sorted((folder.name, f"{folder.name}.lock"))
    assert {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in (victim, *victim.rglob("*"))} == before
    assert (victim / "letter.txt").read_text() == "mine"


@pytest.mark.skipif(os.getuid() != 0, reason="root opens every folder anyway: this is for another user")
def test_an_ordinary_user_removes_folders_that_were_closed(tmp_path: Path, victim: Path) -> None:
    place = Path("/var/tmp") / f"dragoman-closed-{os.getpid()}"
    place.mkdir()
    os.chown(place, 65534, 65534)
    try:
        child = os.fork()
        if child == 0:
            try:
                os.setgid(65534)
                os.setuid(65534)
                (place / "a/b/c").mkdir(parents=True)
                (place / "a/b/c/file").write_text("x")
                for closed in ("a/b/c", "a/b", "a"):
                    (place / closed).chmod(0o000)
                remove_tree(str(place), "a")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert list(place.iterdir()) == []
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
def test_what_stands_in_place_of_a_cache_is_set_aside_and_not_followed(kind: str, tmp_path: Path, victim: Path) -> None:
    place = tmp_path / "caches"
    folder = Path(open_and_close(place, tmp_path))
    shutil.rmtree(folder)
    {"link": lambda: folder.symlink_to(victim), "file": lambda: folder.write_text("x"), "pipe": lambda: os.mkfifo(folder)}[kind]()
    assert open_and_close(place, tmp_path) == str(folder)
    assert folder.is_dir() and not folder.is_symlink()  # noqa: PT018
    assert sorted(path.name for path in victim.iterdir()) == ["inner", "letter.txt"]


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path, victim: Path) -> None:
    place = tmp_path / "caches"
    folder = Path(open_and_close(place, tmp_path))
    (place / f"{folder.name}.lock").unlink()
    (place / f"{folder.name}.lock").symlink_to(victim / "made")
    with pytest.raises(OSError, match="symbolic links"):
        open_and_close(place, tmp_path)
    assert not (victim / "made").exists()
