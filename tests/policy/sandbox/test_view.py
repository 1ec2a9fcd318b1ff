"""A command that only reads: it writes nothing but temporary files, and sees no other homes and projects."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.policy.sandbox.toolchains import find_toolchains
from dragoman.policy.sandbox.view import make_view
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at
from reachable import AS_NOBODY, NOBODY, find_reachable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

VARIABLES = ("PATH", "VIRTUAL_ENV", "PYTHONPATH", "CARGO_HOME", "GOPATH")


class World:
    """A home with a workspace, another project and toolchains. Not beneath /tmp, which commands do not see anyway."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.home, self.workspace, self.other = top / "home/ann", top / "home/ann/src/mine", top / "home/ann/src/other"
        for name in (".cargo/bin", ".ssh", "Documents", "tools/bin", "tools/lib"):
            (self.home / name).mkdir(parents=True)
        for folder in (self.workspace, self.other):
            folder.mkdir(parents=True)
            (folder / "notes.txt").write_text(f"of {folder.name}")
        (self.home / ".cargo/credentials.toml").write_text("secret")
        (self.home / ".cargo/bin/carg").write_text("#!/bin/sh\necho carg runs\n")
        (self.home / "tools/bin/tool").write_text("#!/bin/sh\ncat ${0%/*}/../lib/words\n")
        (self.home / "tools/lib/words").write_text("tool runs\n")
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.com\n")
        (self.home / "Documents/letter.txt").write_text("private")
        for program in (".cargo/bin/carg", "tools/bin/tool"):
            (self.home / program).chmod(0o755)

        subprocess.run(["git", "init", "-q", self.workspace], check=True)

    def give_to(self, uid: int) -> None:
        for path in (self.top, *self.top.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)


@pytest.fixture(params=[0, NOBODY], ids=["own", "another-users"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """For root, once with a workspace of its own, and once with that of another user, whom commands run as then."""
    if request.param and os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    place = next(place for place in ("/srv", os.path.expanduser("~")) if os.access(place, os.W_OK))
    top = Path(tempfile.mkdtemp(prefix="dragoman-view-", dir=place))
    top.chmod(0o755)
    try:
        world = World(top)
        monkeypatch.setenv("HOME", str(world.home))
        if request.param:
            if not all(above.stat().st_mode & 0o001 for above in top.parents):
                pytest.skip(f"nobody else gets to {top}")
            world.give_to(request.param)
        yield world
    finally:
        shutil.rmtree(top)


def read(sandbox: Sandbox, command: str, folder: Path, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    ended, said = asyncio.run(bash(sandbox, command, folder, reach="read-only", env=env))
    return ended.code, said


@pytest.mark.parametrize("level", [1, 2])
def test_a_command_that_only_reads_sees_the_workspace_and_toolchains_and_nothing_else(level: int, world: World) -> None:
    env = {
        "PATH": f"{world.home}/tools/bin:{world.home}/.cargo/bin:{world.home}:/:.:{world.home}/src:/usr/bin:/bin",
        "HOME": str(world.home),
    }
    with sandbox_at(level, world.workspace) as sandbox:
        assert sandbox.has_read_only
        assert read(sandbox, "cat notes.txt; tool; carg; git status --short", world.workspace, env)[1].split("\n") == [
            *("of minetool runs", "carg runs", "?? notes.txt", ""),
        ]
        _, said = read(
            sandbox, f"find {world.top} -path {world.workspace} -prune -o -type f -size +0 -print; ls -A /srv /home", world.workspace
        )
        visible = {os.path.relpath(line, world.top) for line in said.split() if line.startswith(str(world.top))}
        assert visible <= {"home/ann/.gitconfig", "home/ann/.cargo/bin/carg", "home/ann/tools/bin/tool", "home/ann/tools/lib/words"}, said
        assert "home/ann/.cargo/bin/carg" in visible
        assert read(sandbox, f"ls -A {world.home}/src", world.workspace) == (0, "mine\n")
        assert "secret" not in read(sandbox, f"cat {world.home}/.cargo/credentials.toml", world.workspace)[1]


@pytest.mark.parametrize("level", [1, 2])
def test_a_command_that_only_reads_writes_nothing_but_temporary_files(level: int, world: World) -> None:
    places = (".", world.home, world.other, world.home / "src", world.home / ".cargo", world.top)
    tries = "; ".join(f"mkdir {place}/made 2>&1 | grep -c -e 'Read-only file system' -e 'No such file'" for place in places)
    with sandbox_at(level, world.workspace) as sandbox:
        assert read(sandbox, tries, world.workspace) == (0, "1\n" * len(places))
        assert "Read-only file system" in read(sandbox, "echo x >> notes.txt", world.workspace)[1]
        assert "Read-only file system" in read(sandbox, "rm notes.txt; mv notes.txt b; ln notes.txt c; chmod 777 .", world.workspace)[1]
        assert read(sandbox, "echo kept > /tmp/a; echo too > /var/tmp/a; cat /tmp/a /var/tmp/a", world.workspace) == (0, "kept\ntoo\n")
    assert sorted(path.name for path in world.workspace.iterdir()) == [".git", "notes.txt"]
    assert (world.workspace / "notes.txt").read_text() == "of mine"


def test_landlock_alone_cannot_make_the_workspace_read_only(tmp_path: Path) -> None:
    with sandbox_at(3, tmp_path) as sandbox:
        assert not sandbox.has_read_only
        with pytest.raises(OSError, match="read-only"):
            read(sandbox, "true", tmp_path)


SANDBOXED = """
import asyncio, json, os, sys
from dragoman.policy.sandbox.sandbox import Sandbox
from dragoman.tools.process import run_process

level, workspace, caches, *commands = sys.argv[1:]

async def run(command):
    said = bytearray()
    await run_process(
        ["/bin/bash", "-c", command], directory=workspace, env=dict(os.environ), take_stdout=said.extend, take_stderr=said.extend,
        timeout_s=60, launch=sandbox, reach="read-only",
    )
    return said.decode()

sandbox = Sandbox([workspace], level=int(level), caches_in=caches)
print(json.dumps([asyncio.run(run(command)) for command in commands]))
sandbox.close()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("world", [NOBODY], indirect=True, ids=["as-nobody"])
def test_an_ordinary_user_sees_no_more(level: int, world: World) -> None:
    reachable = find_reachable(AS_NOBODY)
    argv = [*AS_NOBODY, reachable.python, "-c", SANDBOXED, str(level), str(world.workspace), str(world.home / ".cache/ours")]
    home = world.home
    tries = f"exec 2>&1; cat {world.other}/notes.txt {home}/Documents/letter.txt; echo x > made; echo x > {home}/made; ls -A {home}/src"
    env = {"PATH": f"{world.home}/tools/bin:/usr/bin:/bin", "HOME": str(world.home), "PYTHONPATH": os.pathsep.join(reachable.modules)}
    commands = ["tool; git status --short", tries, "echo kept > $XDG_CACHE_HOME/a; cat $XDG_CACHE_HOME/a"]
    done = subprocess.run([*argv, *commands], capture_output=True, text=True, env=env, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    worked, refused, cached = json.loads(done.stdout)
    assert (worked, cached) == ("tool runs\n?? notes.txt\n", "kept\n")
    assert (refused.count("No such file"), refused.count("Read-only file system"), refused.splitlines()[-1]) == (2, 2, "mine")


# --- toolchains, wherever they lie


def make_environment(folder: Path, home: str) -> None:
    """A virtual environment, made by hand: its Python is a link."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(f"{home}/python3")
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    (folder / "lib").mkdir()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("reach", ["workspace", "read-only"])
def test_an_environment_in_the_temporary_folder_is_the_one_that_runs(level: int, reach: Any, tmp_path: Path) -> None:
    workspace, environment = tmp_path / "work", tmp_path / "environment"
    workspace.mkdir()
    make_environment(environment, "/usr/bin")
    (tmp_path / "link").symlink_to(environment)
    (tmp_path / "letter.txt").write_text("private")
    show = f"exec 2>&1; python -c 'import sys; print(sys.prefix)'; touch $VIRTUAL_ENV/made; cat {tmp_path}/letter.txt"
    with sandbox_at(level, workspace) as sandbox:
        if reach == "read-only" and not sandbox.has_read_only:
            return
        for name in ("environment", "link") if level != 3 else ("environment",):
            env = {"PATH": f"{tmp_path}/{name}/bin:/usr/bin:/bin", "VIRTUAL_ENV": f"{tmp_path}/{name}"}
            said = asyncio.run(bash(sandbox, show, workspace, reach=reach, env=env))[1]
            assert said.split("\n")[0] == f"{tmp_path}/{name}"
            assert "private" not in said
        assert not (environment / "made").exists()
        shutil.rmtree(environment)
        assert asyncio.run(bash(sandbox, "echo on", workspace, reach=reach, env=env))[1] == "on\n", "also when it is gone"


@pytest.mark.parametrize("level", [1, 2])
def test_certificates_that_variables_name_are_seen_and_never_what_is_hidden(level: int, world: World) -> None:
    (world.home / "certificates").mkdir()
    for name in ("certificates/ours.pem", "certificates/letter.txt", ".ssh/id_rsa"):
        (world.home / name).write_text(f"text of {name}\n")
    world.give_to(world.workspace.stat().st_uid)
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(world.home),
        "SSL_CERT_FILE": f"{world.home}/certificates/ours.pem",
        "NODE_EXTRA_CA_CERTS": f"{world.home}/.ssh/id_rsa",
    }
    with sandbox_at(level, world.workspace) as sandbox:
        said = read(sandbox, "cat $SSL_CERT_FILE; cat $NODE_EXTRA_CA_CERTS ~/certificates/letter.txt 2>/dev/null", world.workspace, env)[1]
    assert said == "text of certificates/ours.pem\n"


@pytest.mark.parametrize("level", [1, 2])
def test_the_python_behind_an_environment_of_the_workspace_is_visible(level: int, world: World) -> None:
    python = world.home / "pythons/cpython-3"
    for name in ("bin", "lib", "private"):
        (python / name).mkdir(parents=True)
    (python / "private/letter.txt").write_text("private")
    (python / "bin/python3").write_text("#!/bin/sh\necho this python\n")
    (python / "bin/python3").chmod(0o755)
    make_environment(world.workspace / ".venv", f"{python}/bin")
    hostile = world.workspace / "env"
    hostile.mkdir()
    (hostile / "pyvenv.cfg").write_text(f"home = {world.other}\n")
    world.give_to(world.workspace.stat().st_uid)
    with sandbox_at(level, world.workspace) as sandbox:
        said = read(sandbox, f".venv/bin/python; ls {python} {world.home}/src", world.workspace)[1]
    assert said.split() == ["this", "python", f"{python}:", "bin", "lib", f"{world.home}/src:", "mine"]


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("lead", ["python", "python by cwd", "programs", "libraries", "modules", "home"])
def test_no_link_of_the_workspace_shows_what_lies_behind_it(level: int, lead: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes in the workspace, or sent it, chooses where its links lead."""
    work, env = world.workspace, {"PATH": "/usr/bin:/bin", "HOME": str(world.home)}
    match lead:
        case "python" | "python by cwd":
            (work / "fake/bin").mkdir(parents=True)
            (work / "fake/bin/python3").symlink_to("/usr/bin/python3")
            (work / "fake/lib").symlink_to(world.other)
            (work / ".venv").mkdir()
            named = f"{work}/fake/bin" if lead == "python" else "/proc/self/cwd/fake/bin"
            (work / ".venv/pyvenv.cfg").write_text(f"home = {named}\n")
        case "programs":
            (work / "bin").symlink_to(world.other)
            env["PATH"] = f"{work}/bin:/usr/bin:/bin"
        case "libraries":
            (work / "bin").mkdir()
            (work / "lib").symlink_to(world.other)
            env["PATH"] = f"{work}/bin:/usr/bin:/bin"
        case "modules":
            (work / "modules").symlink_to(world.other)
            env["PYTHONPATH"] = f"{work}/modules"
        case _:
            (work / "programs").symlink_to(world.other)
            (world.home / ".local").mkdir()
            (world.home / ".local/bin").symlink_to(work / "programs")
    world.give_to(work.stat().st_uid)
    monkeypatch.chdir(work)
    with sandbox_at(level, work) as sandbox:
        said = read(sandbox, f"exec 2>&1; cat {world.other}/notes.txt; cat notes.txt", work, env)[1]
    assert said.endswith("No such file or directory\nof mine")


@pytest.mark.parametrize("level", LEVELS)
def test_no_link_of_the_workspace_shows_temporary_files_of_others(level: int, tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    (work / ".venv/bin").mkdir(parents=True)
    other.mkdir()
    (other / "letter.txt").write_text("private")
    (work / ".venv/bin/python3").symlink_to("/usr/bin/python3")
    (work / ".venv/lib").symlink_to(other)
    (work / ".venv/pyvenv.cfg").write_text(f"home = {work}/.venv/bin\n")
    env = {"PATH": f"{work}/.venv/bin:/usr/bin:/bin", "VIRTUAL_ENV": f"{work}/.venv"}
    with sandbox_at(level, work) as sandbox:
        assert "private" not in asyncio.run(bash(sandbox, f"cat {other}/letter.txt .venv/lib/letter.txt", work, env=env))[1]


@pytest.mark.parametrize("level", [1, 2])
def test_an_environment_elsewhere_is_found_through_a_link_and_the_workspace_by_another_name(level: int, world: World) -> None:
    environment = world.home / "environments/one"
    make_environment(environment, "/usr/bin")
    (environment / "bin/python3").symlink_to("/usr/bin/python3")
    (world.workspace / ".venv").symlink_to(environment)
    (world.home / "mine").symlink_to(world.workspace)
    (world.workspace / "bin").mkdir()
    (world.workspace / "bin/tell").write_text("#!/bin/sh\necho told\n")
    (world.workspace / "bin/tell").chmod(0o755)
    world.give_to(world.workspace.stat().st_uid)
    env = {"PATH": f"{world.home}/mine/bin:{world.workspace}/.venv/bin:/usr/bin:/bin", "HOME": str(world.home)}
    with sandbox_at(level, world.workspace) as sandbox:
        said = read(sandbox, "tell; python -c 'import sys; print(sys.prefix)'", world.workspace, env)[1]
    assert said.split() == ["told", str(world.workspace / ".venv")]


@pytest.mark.parametrize("level", [1, 2])
def test_a_linked_worktree_and_a_folder_of_a_repository_find_their_history(level: int, world: World) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*", "-C", str(world.other)]
    linked, package = world.home / "src/linked", world.other / "package"
    package.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"], ["worktree", "add", "-q", str(linked)]):
        subprocess.run([*git, *words], check=True)
    world.give_to(world.workspace.stat().st_uid)
    for workspace, shown in ((linked, {".git"}), (package, {".git", "notes.txt", "package"})):
        with sandbox_at(level, workspace) as sandbox:
            said = read(sandbox, f"git log --format=%s; ls -A {world.other}", workspace, {"HOME": str(world.home)})[1].split()
        assert (said[0], set(said[1:])) == ("one", shown)


PLACES = (
    "", ".", "/", "top", "home", "home/ann", "home/bob", "home/ann/src", "home/ann/src/a", "home/ann/src/a/bin", "home/ann/src/a/.venv/bin",
    "home/ann/src/b", "home/ann/src/mine", "home/ann/src/mine/bin", "home/ann/tools/bin", "home/ann/.local/bin", "link/0", "link/1",
    "link/2", "link/3", "link/2/bin", "home/ann/more", "link/4",
)  # fmt: skip
LINKED = ("home/ann", "home/ann/src", "home/ann/src/a", "home", "home/ann/more")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two homes, three projects, and links to them."""
    top = tmp_path_factory.mktemp("crowd").resolve()
    for name in ("home/ann/src/a", "home/ann/src/b", "home/ann/src/mine", "home/ann", "home/bob", "home/ann/more/c"):
        (top / name / "bin").mkdir(parents=True)
        (top / name / "own.txt").write_text("x")
    for name in ("a/.git", "b/.git", "mine/.git", "../more/c/.git", "../tools/bin", "../.local/bin", "../.cargo"):
        (top / "home/ann/src" / name).mkdir(parents=True)
    for name in ("link", "views", "covers/folder"):
        (top / name).mkdir(parents=True)
    (top / "covers/file").touch()
    make_environment(top / "home/ann/src/a/.venv", "/usr/bin")
    for number, target in enumerate(LINKED):
        (top / "link" / str(number)).symlink_to(top / target)
    return top


@given(
    st.lists(st.tuples(st.sampled_from(VARIABLES), st.lists(st.sampled_from(PLACES), max_size=4)), max_size=4),
    st.sampled_from(["mine", "a"]),
)
@settings(max_examples=80, deadline=None)
def test_nothing_is_seen_of_a_folder_that_no_variable_names(crowd: Path, named: list[tuple[str, list[str]]], mine: str) -> None:
    env = {name: os.pathsep.join(place if place in ("", ".", "/") else str(crowd / place) for place in places) for name, places in named}
    workspace, homes = str(crowd / "home/ann/src" / mine), [str(crowd / "home/ann"), str(crowd / "home/bob")]
    show = [workspace, *find_toolchains(env, homes, [workspace])]
    view = make_view(tempfile.mkdtemp(dir=crowd / "views"), str(crowd / "covers"), show, top=str(crowd))
    exactly = {os.path.realpath(place) for value in env.values() for place in value.split(os.pathsep) if os.path.isabs(place)}
    for path in map(str, crowd.glob("home/**/own.txt")):
        folder = os.path.dirname(path)
        may_be_seen = folder == workspace or (folder in exactly and folder not in homes)
        assert may_be_seen or not view.places_of(path), path
    assert view.places_of(f"{workspace}/own.txt")
