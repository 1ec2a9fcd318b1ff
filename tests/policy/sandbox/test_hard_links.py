"""Files of the workspace that are known outside by hard links: no command changes them there, and work goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.policy.sandbox import hard_links
from dragoman.policy.sandbox.hard_links import SharedFiles
from dragoman.policy.sandbox.survey import Linked, Survey
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace with an environment whose files are linked to a store outside, as package managers do."""
    work, store = tmp_path / "work", tmp_path / "store"
    packages = work / ".venv/lib/site-packages"
    packages.mkdir(parents=True)
    store.mkdir()
    for number in range(20):
        (store / f"m{number}.py").write_text(f"x = {number}\n")
        os.chmod(store / f"m{number}.py", 0o640)
        os.utime(store / f"m{number}.py", (1_000_000_000, 1_000_000_000.5))
        os.link(store / f"m{number}.py", packages / f"m{number}.py")
    return work, store


def contents(store: Path) -> dict[str, tuple[bytes, int, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in store.iterdir()}


HOSTILE = (
    "cd .venv/lib/site-packages; for each in *.py; do echo hostile >> $each; chmod 777 $each; touch -d @5 $each;truncate -s 0 $each; done; "
    "cd ../../..; cp -l .venv/lib/site-packages/m1.py m1.py; echo hostile >> m1.py; true"
)


@pytest.mark.parametrize("level", LEVELS)
def test_a_few_are_copied_first(level: int, place: tuple[Path, Path]) -> None:
    work, store = place
    before = contents(store)
    copied = work / ".venv/lib/site-packages/m3.py"
    with sandbox_at(level, work) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, "cat .venv/lib/site-packages/m3.py", work))
        status = copied.stat()
        assert (status.st_nlink, status.st_mode, status.st_mtime_ns) == (1, *before["m3.py"][1:])
        assert "20 files" in ended.notice
        assert ended.remark == ""
        again, _ = asyncio.run(bash(sandbox, HOSTILE, work))
    assert again.notice == ""
    assert contents(store) == before
    assert copied.read_text() == ""


@pytest.mark.parametrize("level", [1, 2])
def test_many_are_read_only_until_a_command_wants_to_write_there(
    level: int, place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hard_links, "AT_ONCE_FILES", 5)
    work, store = place
    before = contents(store)
    with sandbox_at(level, work) as sandbox:
        ended, said = asyncio.run(bash(sandbox, f"echo y > y; {HOSTILE}", work))
        assert contents(store) == before
        assert (work / "y").exists(), "the rest can be written"
        assert "20 files are shared" in ended.notice
        silent, _ = asyncio.run(bash(sandbox, "true", work))
        assert silent.notice == ""
        words = sandbox.explain(said)
        assert "Files in .venv are" in words
        assert "run this one again" in words
        again, _ = asyncio.run(bash(sandbox, "echo ours >> .venv/lib/site-packages/m2.py", work))
        assert (again.code, "copies" in again.notice) == (0, True)
    assert (work / ".venv/lib/site-packages/m2.py").read_text() == "x = 2\nours\n"
    assert contents(store) == before


@pytest.mark.parametrize("level", LEVELS)
def test_what_cannot_be_copied_is_read_only_or_nothing_runs(level: int, place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_links, "MOST_BYTES", 10)
    work, store = place
    before = contents(store)
    with sandbox_at(level, work) as sandbox:
        if level == 3:
            with pytest.raises(OSError, match="hard links"):
                asyncio.run(bash(sandbox, HOSTILE, work))
        else:
            _, said = asyncio.run(bash(sandbox, HOSTILE, work))
            assert "too large" in sandbox.explain(said)
            asyncio.run(bash(sandbox, HOSTILE, work))
    assert contents(store) == before


@pytest.mark.parametrize("level", LEVELS)
def test_links_made_outside_while_the_session_goes_on_are_found(
    level: int, place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.policy.sandbox.survey.AGAIN_S", 0.0)
    work, store = place
    with sandbox_at(level, work) as sandbox:
        asyncio.run(bash(sandbox, "true", work))
        (store / "later.py").write_text("x")
        os.link(store / "later.py", work / "later.py")
        while Survey([str(work)]).look().shared:
            asyncio.run(bash(sandbox, "true", work))
        asyncio.run(bash(sandbox, "echo hostile > later.py", work))
    assert (store / "later.py").read_text() == "x"
    assert (work / "later.py").read_text() == "hostile\n"


def test_a_whole_workspace_that_is_a_copy_by_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard_links, "AT_ONCE_FILES", 5)
    work, store = tmp_path / "work", tmp_path / "store"
    for number in range(60):
        (store / f"folder{number}").mkdir(parents=True)
        (work / f"folder{number}").mkdir(parents=True)
        (store / f"folder{number}/a").write_text("x")
        os.link(store / f"folder{number}/a", work / f"folder{number}/a")
    with sandbox_at(1, work) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, "for each in */a; do echo y > $each; done", work))
    assert ended.code == 0
    assert {path.read_text() for path in store.rglob("a")} == {"x"}
    assert {path.read_text() for path in work.rglob("a")} == {"y\n"}


def test_folders_are_covered_as_deep_as_the_number_of_mounts_allows() -> None:
    def shared(*folders: str) -> SharedFiles:
        return SharedFiles({path: (Linked("a", (1, 1), 2, 1),) for path in folders})

    assert shared("/w/a/b", "/w/a/b/c").covers(["/w"]) == ("/w/a/b",)
    assert shared(*(f"/w/lib/x/{number}" for number in range(200)), "/w/y").covers(["/w"]) == ("/w/y", "/w/lib/x")
    assert shared("/w").covers(["/w"]) == ("/w/a",)
    assert shared(*(f"/w/{number}" for number in range(200))).covers(["/w"]) is None


@pytest.mark.parametrize("level", [1, 2])
def test_shared_files_stay_read_only_where_they_are_moved_to(level: int, place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another folder in their place does not take the cover away from them."""
    monkeypatch.setattr(hard_links, "AT_ONCE_FILES", 5)
    work, store = place
    before = contents(store)
    moves = "mv .venv v2 && mkdir -p .venv/lib/site-packages && echo hostile > v2/lib/site-packages/m1.py"
    with sandbox_at(level, work) as sandbox:
        asyncio.run(bash(sandbox, moves, work))
        ended, _ = asyncio.run(bash(sandbox, "echo hostile > v2/lib/site-packages/m1.py", work))
    assert ended.code != 0
    assert contents(store) == before


@pytest.mark.parametrize("level", LEVELS)
def test_objects_of_the_main_tree_of_a_worktree_that_are_known_elsewhere_stay(level: int, tmp_path: Path) -> None:
    """`git clone` of a local repository links its objects."""
    origin, clone, tree = tmp_path / "origin", tmp_path / "clone", tmp_path / "tree"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C"]
    for command in (["init", "-q", str(origin)], [*git[1:], str(origin), "commit", "-q", "--allow-empty", "-m", "one"],
                    ["clone", "-q", str(origin), str(clone)], ["-C", str(clone), "worktree", "add", "-q", str(tree)]):  # fmt: skip
        subprocess.run(["git", *command], check=True, capture_output=True)
    objects = {path: path.read_bytes() for path in (origin / ".git/objects").rglob("*") if path.is_file()}
    assert any(path.stat().st_nlink > 1 for path in objects)
    hostile = f"cd {clone}/.git/objects && for each in */*; do chmod u+w $each; echo hostile > $each; done; true"
    with sandbox_at(level, tree) as sandbox:
        asyncio.run(bash(sandbox, hostile, tree))
    assert {path: path.read_bytes() for path in objects} == objects
