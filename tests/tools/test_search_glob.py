"""glob, with the real ripgrep over real files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools import ripgrep, search
from dragoman.tools.search import Glob
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import ToolOutput
from file_tools import text_of

LONG = bool(os.environ.get("DRAGOMAN_LONG"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


def write(root: Path, *paths: str) -> None:
    """Files, each newer than the one before."""
    for age, path in enumerate(reversed(paths)):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")
        os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))


def run(root: Path, pattern: str, **args: Any) -> ToolOutput:
    return asyncio.run(Glob(Workspace(root)).run({"pattern": pattern, **args}, lambda text: None))


def found(root: Path, pattern: str, **args: Any) -> list[str]:
    output = run(root, pattern, **args)
    assert not output.is_error, output
    text = text_of(output)
    return [] if text.startswith("No files match") else text.split("\n")


def test_the_newest_come_first(root: Path) -> None:
    write(root, "old.py", "b/new.py", "a/older.py")
    write(root, "c.txt")
    assert found(root, "*.py") == ["a/older.py", "b/new.py", "old.py"]


def test_equally_old_ones_are_sorted_by_name(root: Path) -> None:
    for name in ("c", "a", "b"):
        write(root, name)
    assert found(root, "*") == ["a", "b", "c"]


def test_patterns_and_places(root: Path) -> None:
    write(root, "a/x.md", "b/y.md", "c/z.md", "src/p.ts", "src/deep/q.ts", "q.ts")
    assert found(root, "{a,b}/*.md") == ["b/y.md", "a/x.md"]
    assert found(root, "src/**/*.ts") == ["src/deep/q.ts", "src/p.ts"]
    assert found(root, "*.ts", path="src/deep") == ["src/deep/q.ts"]
    assert found(root, "src/") == ["src/deep/q.ts", "src/p.ts"]


def test_what_gitignore_names_is_left_out_whatever_the_pattern(root: Path) -> None:
    write(root, "a.py", "secret.py", "debug.log", "node_modules/x/b.py")
    (root / ".gitignore").write_text("secret.py\n*.log\nnode_modules/\n")
    assert found(root, "*.py") == ["a.py"]
    assert found(root, "**/*") == ["a.py"]
    assert found(root, "*.log") == []


def test_what_is_spelled_out_is_found_all_the_same(root: Path) -> None:
    write(root, "node_modules/x/b.py", ".github/workflows/ci.yml")
    (root / ".gitignore").write_text("node_modules/\n")
    assert found(root, "node_modules/**/*.py") == ["node_modules/x/b.py"]
    assert found(root, ".github/**/*.yml") == [".github/workflows/ci.yml"]
    assert found(root, "*.yml", path=".github") == [".github/workflows/ci.yml"]


def test_hidden_ones_want_a_dot(root: Path) -> None:
    write(root, ".env", ".hidden/a.py", ".b.py", "c.py")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("")
    assert found(root, "**/*") == ["c.py"]
    assert found(root, "*.py") == ["c.py"]
    assert found(root, ".*") == [".b.py", ".env"]


def test_nothing_found_is_a_plain_answer(root: Path) -> None:
    output = run(root, "*.none")
    assert not output.is_error
    assert text_of(output) == "No files match *.none. Hidden files and those that .gitignore names are left out."
    assert not run(root, "no/such/place/*.py").is_error


def test_more_than_wanted_are_counted_not_listed(root: Path) -> None:
    write(root, *(f"{number}.txt" for number in range(30)))
    lines = found(root, "*.txt", max_results=10)
    assert lines[:10] == [f"{number}.txt" for number in range(29, 19, -1)]
    assert lines[10:] == ["(10 of 30 files, the newest first: use a narrower pattern or path for the others)"]


def test_there_is_a_limit_to_how_many_are_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, *(f"{number}.txt" for number in range(300)))
    monkeypatch.setattr(search, "MAX_CANDIDATES", 50)
    assert "of more than 50 files" in found(root, "*.txt")[-1]


def test_a_search_that_takes_too_long_tells_what_it_has(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.txt")
    slow = tmp_path / "bin" / "rg"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\nprintf '{root}/a.txt\\0'\nsleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(ripgrep, "TIMEOUT_S", 0.3)
    lines = found(root, "*.txt")
    assert lines[0] == "a.txt"
    assert "took too long" in lines[1]


@pytest.mark.parametrize(
    ("args", "words", "error_type"),
    [
        ({"pattern": "/etc/*"}, "relative", "invalid"),
        ({"pattern": "../*"}, "`..`", "invalid"),
        ({"pattern": ""}, "empty", "invalid"),
        ({"pattern": "*", "path": "none"}, "none does not exist", "not_found"),
        ({"pattern": "*", "path": "a.py"}, "not a directory", "not_directory"),
        ({"pattern": "*", "path": "/etc"}, "outside the workspace", "outside"),
        ({"pattern": "*", "path": ".."}, "outside the workspace", "outside"),
        ({"pattern": "link/*"}, "outside the workspace", "outside"),
    ],
)
def test_what_cannot_work_is_refused_with_a_reason(root: Path, args: dict[str, Any], words: str, error_type: str) -> None:
    write(root, "a.py")
    (root / "link").symlink_to("/etc")
    output = run(root, **args)
    assert (output.is_error, output.error_type) == (True, error_type)
    assert words in text_of(output)
    assert words in Glob(Workspace(root)).intend(args).problem


def test_the_intent_is_one_visible_line(root: Path) -> None:
    intent = Glob(Workspace(root)).intend({"pattern": "*\u202e\n.py", "path": "."})
    assert intent.title == "glob *<U+202E><U+000A>.py in ."
    assert intent.problem == ""


def test_a_big_tree_with_everything_odd_in_it(root: Path) -> None:
    """DO04: many files, a loop of links, a deep directory, odd names. 300,000 files with DRAGOMAN_LONG=1."""
    count = 300_000 if LONG else 3_000
    for number in range(count):
        if number % 1000 == 0:
            folder = root / f"d{number // 1000}"
            folder.mkdir()
        (folder / f"f{number}.txt").touch()
    deep = root
    for _ in range(200):
        deep = deep / "d"
        deep.mkdir()
    (deep / "bottom.deep").touch()
    (root / "loop").symlink_to(".")
    (root / "outside").symlink_to("/etc")
    odd = [b"new\nline.odd", b"bad\xff.odd", b"-rf.odd", b"--files.odd", b" .odd", "漢字🎉.odd".encode(), b"a\x1b[2K.odd"]
    for name in odd:
        open(os.path.join(os.fsencode(root), name), "w").close()
    lines = found(root, "**/*")
    assert len(lines) == 201
    assert lines[-1].startswith(f"(200 of {count + 1 + len(odd):,} files")
    assert len(found(root, "*.deep")) == 1
    shown = found(root, "*.odd")
    assert len(shown) == len(odd)
    workspace = Workspace(root)
    assert {os.fsencode(os.path.basename(workspace.resolve(path))) for path in shown} == set(odd), "shown escaped, and still a way back"
    assert not [line for line in shown if line.startswith("-") or "\x1b" in line]


def test_a_cancel_comes_through_at_once(root: Path) -> None:
    write(root, *(f"{number}.txt" for number in range(500)))

    async def main() -> None:
        for delay_s in (0, 0.001, 0.005, 0.01):
            task = asyncio.create_task(Glob(Workspace(root)).run({"pattern": "**/*"}, lambda text: None))
            await asyncio.sleep(delay_s)
            task.cancel()
            await asyncio.wait([task], timeout=60)
            assert task.done()

    asyncio.run(main())
