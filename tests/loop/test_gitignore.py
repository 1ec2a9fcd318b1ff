""".gitignore is read as git reads it, and no pattern takes long."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.loop.gitignore import MAX_STEPS, IgnoreFile, IgnoreRules, StepBudget

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

# --- as git does ---------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "ab", "a.b", "b.a", "aa", "x-y", "é", "a b", "[a]", "a*", "!a", "#a", "-", "\\a", "a\\"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from([
    "a", "b", "ab", ".", "*", "**", "?", "/", "/**/", "**/", "/**", "*.b", "[ab]", "[!a]", "[^b]", "[a-b]", "[]-a]", "[[:alpha:]]",
    "[[:punct:]]", "[[:x:]]", "[a", "[:]", "[a-", "[\\]]", "\\", "\\*", "\\ ", " ", "é", "#", "-", "[.-b]", "x-y", "[!-]", "[[:]", "/",
])  # fmt: skip
PATTERNS = st.tuples(
    st.sampled_from(["", "", "", "!", "\\!", "/", "!/", "#", "\\#"]), st.lists(PIECES, max_size=5), st.sampled_from(["", "", "/"])
).map(lambda parts: parts[0] + "".join(parts[1]) + parts[2])
FILES = st.lists(PATTERNS, max_size=6).flatmap(lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines)))


@needs_git
@given(paths=st.sets(PATHS, min_size=1, max_size=8), top=FILES, inner=st.dictionaries(PATHS, FILES, max_size=2))
@example({"a/b/a", "ab"}, "a**/b", {})
@example({"a/b", "a.b"}, "a[./]b", {})
@example({"a/x-y/b"}, "a/\n!a/x-y/b", {})
@example({"a/b", "a/ab"}, "*\n!a/\n!a/b", {"a": "b"})
def test_git_itself_says_the_same(paths: set[str], top: str, inner: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        made = list(plant(root, paths))
        ignore_files = {"": top} | {path: text for path, text in inner.items() if (root / path).is_dir()}
        for path, text in ignore_files.items():
            (root / path / ".gitignore").write_bytes(text.encode())
        assert {path for path in made if ours(ignore_files, path, root)} == gits(root, made)


def plant(root: Path, paths: Iterable[str]) -> Iterable[str]:
    """Files at these paths, as far as they do not stand in each other's way; every path that then exists."""
    for path in sorted(paths):
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
        except OSError:
            continue
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def ours(files: Mapping[str, str], path: str, root: Path) -> bool:
    ignored = IgnoreRules().within("", IgnoreFile(files[""].encode()))
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        if ignored.ignores(here, (root / here).is_dir()):
            return True
        if here in files:
            ignored = ignored.within(f"{here}/", IgnoreFile(files[here].encode()))
    return False


def gits(root: Path, paths: Iterable[str]) -> set[str]:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(root), "PATH": os.environ["PATH"]}
    git = ["git", "-c", "core.excludesFile=", "-C", str(root)]
    subprocess.run([*git, "init", "-q", "--template="], check=True, env=quiet)
    given = b"".join(os.fsencode(f"./{path}") + b"\0" for path in paths)
    done = subprocess.run([*git, "check-ignore", "--no-index", "-z", "--stdin"], input=given, capture_output=True, env=quiet)
    assert done.returncode in (0, 1), done.stderr
    return {os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0") if path}


@pytest.mark.parametrize(
    ("pattern", "ignored", "kept"),
    [
        ("*.py[cod]", ["a.pyc", "x/a.pyo"], ["a.py", "a.pyx"]),
        ("/build", ["build"], ["x/build"]),
        ("docs/*.html", ["docs/a.html"], ["docs/x/a.html", "x/docs/a.html"]),
        ("**/gen/**", ["gen/a", "x/gen/a/b"], ["gen"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("*.log\n!keep.log", ["a.log"], ["keep.log"]),
        ("[Bb]in/", [], ["bin"]),
        ("caf\u00e9\u0301*", ["caf\u00e9\u0301.txt"], ["caf\u00e9"]),
    ],
)
def test_what_people_write(pattern: str, ignored: list[str], kept: list[str]) -> None:
    file = IgnoreFile(pattern.encode())
    assert [path for path in ignored if not file.verdict(path, False, StepBudget())] == []
    assert [path for path in kept if file.verdict(path, False, StepBudget())] == []


def test_a_pattern_for_folders_leaves_files_alone() -> None:
    file = IgnoreFile(b"[Bb]in/")
    assert (file.verdict("bin", True, StepBudget()), file.verdict("bin", False, StepBudget())) == (True, None)


# --- what strangers write ------------------------------------------------------------------------------------------------


def test_no_pattern_takes_long() -> None:
    """Where `re` would backtrack for ever: at most so many steps as both lengths multiplied, and all patterns together a fixed number."""
    pattern, name = "*a" * 40 + "b*c", "a" * 250
    steps = StepBudget()
    assert IgnoreFile(pattern.encode()).verdict(name, False, steps) is None
    assert IgnoreFile(("a/" + "**/*a*" * 20 + "/b*c").encode()).verdict("a/" + "/".join([name] * 10), False, steps) is None
    assert MAX_STEPS - steps.left < len(pattern) * len(name) * 30
    hostile = IgnoreFile("\n".join(["*a" * 400 + f"[0-{number % 9}]*c" for number in range(10)]).encode())
    steps = StepBudget(10_000)
    for number in range(5):
        hostile.verdict(f"{name}{number}c", False, steps)
    assert -1_000 * 10 * 5 < steps.left <= 0, "and then they are no longer followed"


@given(data=st.binary(max_size=300), path=PATHS)
def test_any_bytes_are_a_gitignore(data: bytes, path: str) -> None:
    IgnoreFile(data).verdict(path, True, StepBudget())


def test_a_monstrous_file_is_read_in_part() -> None:
    file = IgnoreFile(b"first\n" + b"x" * 3_000 + b"\n" + b"y\n" * 1_000_000 + b"last\n")
    assert [file.verdict(name, False, StepBudget()) for name in ("first", "y", "last", "x" * 3_000)] == [True, True, None, None]
