"""What a command that only reads leaves in the caches is never seen by one that may write."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dragoman.policy.sandbox.cache_layers import CacheLayers
from policy.sandbox.people import USERS, Person, person, require_level
from policy.sandbox.sandboxes import bash, sandbox_at
from policy.sandbox.test_caches import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

PLANTED = {
    "cargo, a wrapper of every compiler": "$CARGO_HOME/config.toml",
    "cargo, a program": "$CARGO_HOME/bin/cargo",
    "gradle, a script of every build": "$GRADLE_USER_HOME/init.d/a.gradle",
    "gradle, its properties": "$GRADLE_USER_HOME/gradle.properties",
    "pre-commit, an environment": "$PRE_COMMIT_HOME/repo/hook.py",
    "corepack, a package manager": "$COREPACK_HOME/v1/pnpm/9.0.0/bin/pnpm.cjs",
    "uv, an unpacked archive": "$UV_CACHE_DIR/archive-v0/a/a.py",
    "pip, a wheel": "$PIP_CACHE_DIR/wheels/a.whl",
    "npx, an installed program": "$npm_config_cache/_npx/a/node_modules/.bin/a",
    "npm, a package": "$npm_config_cache/_cacache/index-v5/a",
    "go, a module": "$GOMODCACHE/example.org/a@v1.0.0/a.go",
    "go, a built package": "$GOCACHE/00/a",
    "Maven, a plugin": "${MAVEN_OPTS##*-Dmaven.repo.local=}",
    "Maven, its wrapper": "$MAVEN_USER_HOME/wrapper/dists/a",
    "deno, a module": "$DENO_DIR/npm/a.js",
    "everything else": "$XDG_CACHE_HOME/a/b",
}
MAVEN = "M=${MAVEN_OPTS#*-Dmaven.repo.local=}; M=${M%% *}; "


def path_of(name: str) -> str:
    return "$M/org/a.jar" if name == "Maven, a plugin" else PLANTED[name]


def plant_all() -> str:
    """For a shell: write each of them, and say `planted` if all could be written."""
    made = "; ".join(f'mkdir -p "$(dirname "{path_of(name)}")" && echo planted > "{path_of(name)}" || exit 9' for name in PLANTED)
    return f"{MAVEN}{made}; echo all planted"


def look_for_all() -> str:
    """For a shell: name each of them that is there."""
    return MAVEN + "; ".join(f'test -e "{path_of(name)}" && echo "found: {name}"' for name in PLANTED) + "; echo looked"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", [1, 2])
def test_a_run_of_the_program_that_only_reads_prepares_nothing_for_one_that_writes(level: int, user: str) -> None:
    with person(user) as who:
        require_level(who, level)
        for mode in ("plan", "default"):
            plant(who, level, mode)
        asked = ("run_shell", {"command": look_for_all(), "writes": True})
        told = who.let_call(asked, options=("--sandbox", str(level), "--approval", "auto"))
        assert told.results == ["looked"], told.done


def plant(who: Person, level: int, mode: str) -> None:
    told = who.let_call(("run_shell", {"command": plant_all()}), options=("--sandbox", str(level), "--approval", mode))
    assert "all planted" in told.results[0], (told.results, told.done)


@pytest.mark.parametrize("level", [1, 2])
def test_what_is_cached_is_used_and_what_is_added_lasts_until_something_may_write(level: int, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    with sandbox_at(level, workspace, caches_in=str(tmp_path / "caches")) as sandbox:
        assert run(sandbox, "mkdir -p $GOCACHE; echo built > $GOCACHE/a", workspace) == (0, "")
        assert run(sandbox, "mkdir -p $GOCACHE; echo 1 > $GOCACHE/mine; echo changed > $GOCACHE/a", workspace, reach="read-only") == (0, "")
        assert run(sandbox, "cat $GOCACHE/mine $GOCACHE/a", workspace, reach="read-only") == (0, "1\nchanged\n")
        assert run(sandbox, "cat $GOCACHE/a; ls $GOCACHE", workspace) == (0, "built\na\n")
        if level == 1:
            assert run(sandbox, "cat $GOCACHE/a; ls $GOCACHE; rm -r $GOCACHE", workspace, reach="read-only") == (0, "built\na\n")
            assert run(sandbox, "cat $GOCACHE/a", workspace) == (0, "built\n")


@pytest.mark.parametrize("level", [1, 2])
def test_commands_that_read_side_by_side_are_not_in_each_others_way(level: int, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()

    async def all_at_once() -> list[str]:
        commands = [
            f"mkdir -p $GOCACHE; for n in 1 2 3 4 5; do echo {each} > $GOCACHE/{each}.$n; done; cat $GOCACHE/{each}.5" for each in range(6)
        ]
        return [
            said
            for _, said in await asyncio.gather(*(bash(sandbox, each, workspace, timeout_s=60, reach="read-only") for each in commands))
        ]

    with sandbox_at(level, workspace, caches_in=str(tmp_path / "caches")) as sandbox:
        assert asyncio.run(all_at_once()) == [f"{each}\n" for each in range(6)]
        assert run(sandbox, "ls $GOCACHE 2>/dev/null", workspace)[1] == ""


@pytest.mark.parametrize("level", [1, 2])
def test_settings_above_a_workspace_in_tmp_cannot_be_planted(level: int) -> None:
    """cargo, npm, eslint and others read settings from every folder above."""
    workspace = Path("/var/tmp") / f"dragoman-above-{os.getpid()}"
    workspace.mkdir()
    try:
        with sandbox_at(level, workspace) as sandbox:
            assert run(sandbox, "mkdir /var/tmp/.cargo && echo x > /var/tmp/.cargo/config.toml", workspace, reach="read-only") == (0, "")
            assert run(sandbox, "ls -A /var/tmp | grep cargo; echo shared > /tmp/a", workspace) == (0, "")
            assert run(sandbox, "cat /tmp/a", workspace, reach="read-only") == (0, "shared\n")
    finally:
        workspace.rmdir()


def test_layers_of_a_session_that_was_killed_are_gone_with_the_next(tmp_path: Path) -> None:
    from dragoman.policy.sandbox.caches import WorkspaceCaches

    caches = WorkspaceCaches(str(tmp_path / "caches"), str(tmp_path))
    (Path(caches.open()) / "go-build").mkdir()
    left = CacheLayers(caches.open(), caches.reading)
    (Path(left.take().upper) / "large").write_text("x")
    caches.close(60)
    caches.open()
    assert not (Path(caches.reading) / "layers").exists()
    caches.close(60)


def test_a_layer_is_used_again_until_a_command_may_have_written(tmp_path: Path) -> None:
    (tmp_path / "caches/go-build").mkdir(parents=True)
    layers = CacheLayers(str(tmp_path / "caches"), str(tmp_path / "reading"))
    first, second = layers.take(), layers.take()
    assert first.upper != second.upper
    layers.give_back(first)
    assert layers.take() == first
    layers.give_back(first)
    layers.renew()
    layers.give_back(second)
    assert not Path(second.upper).exists()
    assert layers.take().upper not in (first.upper, second.upper)
    layers.close()
    assert list((tmp_path / "reading/layers").iterdir()) == []
