"""The judge looks at git's files before git runs. Whatever lies in their place, it answers, and asks where it cannot be sure."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from dragoman.policy.command_rules import CommandRuling, judge_command
from dragoman.policy.commands import ReadableFolders
from special_files import KINDS, can_plant, plant, watchdog

COMMANDS = ("git status", "git diff", "git grep word", "git log -1", "cd sub && git status", "git show HEAD:sub/a.txt")
ALWAYS_ASKED = (".git", ".git/config", ".git/HEAD", ".git/index", ".git/commondir")
ASKED_FOR_PIPES = (".git/packed-refs", ".git/info/exclude", ".git/refs/heads/main", ".gitignore", ".gitattributes", ".gitmodules")
MOST_MEMORY = 100 << 20
kinds = pytest.mark.parametrize("kind", [kind for kind in KINDS if can_plant(kind)])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("words")
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    assert judged("git status", folder).decision == "allow", judged("git status", folder)
    return folder


def judged(command: str, folder: Path, denied: tuple[str, ...] = ()) -> CommandRuling:
    return judge_command(command, str(folder), (), ReadableFolders((str(folder),), denied=denied))


@kinds
@pytest.mark.parametrize("name", [*ALWAYS_ASKED, *ASKED_FOR_PIPES, "sub/.gitignore"])
def test_every_command_of_git_is_judged_and_ends(repository: Path, name: str, kind: str) -> None:
    plant(repository / name, kind)
    tracemalloc.start()
    try:
        with watchdog():
            rulings = [judged(command, repository, denied) for command in COMMANDS for denied in ((), ("secret/**",))]
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    if name in ALWAYS_ASKED:
        assert {ruling.decision for ruling in rulings} == {"ask"}


@pytest.mark.parametrize("name", ASKED_FOR_PIPES)
def test_git_is_not_run_unasked_where_it_would_wait_for_a_pipe(repository: Path, name: str) -> None:
    plant(repository / name, "pipe")
    ruling = judged("git status", repository)
    assert ruling.decision == "ask"
    assert f"{name} is a named pipe or a device: git would wait for it" in ruling.reason


def test_an_index_that_is_too_large_is_said_to_be(repository: Path) -> None:
    plant(repository / ".git" / "index", "huge")
    assert "it is larger than 64,000,000 bytes" in judged("git status", repository).reason


def test_an_index_whose_names_grow_without_end_is_not_followed(repository: Path) -> None:
    """Version 4 keeps what names have in common: few bytes could stand for very many."""
    entry = bytes(60) + struct.pack(">H", 0xFFF)
    long = entry + b"\0" + b"x" * 8_000_000 + b"\0"
    again = (entry + b"\0" + b"y\0") * 400_000
    (repository / ".git" / "index").write_bytes(struct.pack(">4sLL", b"DIRC", 4, 400_001) + long + again)
    with watchdog():
        assert judged("git grep word", repository).decision == "ask"
