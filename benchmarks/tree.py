"""The folder tree of a first message, beside programs that list all files. `python -m benchmarks.tree --files 200000` for a large one."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.sample import best, interleaved, median
from benchmarks.table import Table
from dragoman.context.environment import environment_text
from dragoman.loop.surroundings import folder_tree, gather_surroundings
from dragoman.tools.ripgrep import find_ripgrep

OURS = "our tree: 200 names at most, sorted, what git ignores left out"
PER_FOLDER = 20
IGNORED = "*.log\n*.py[cod]\n__pycache__/\n/build/\nnode_modules/\n!keep.log\ndocs/**/*.html\n.env*\n[Bb]in/\n*.sw?\n"
"""What a usual .gitignore holds, wildcards in the middle included."""


def run(quick: bool) -> list[Table]:
    return [_table(name, plant, 500 if quick else 20_000, 2 if quick else 7) for name, plant in SHAPES.items()]


# --- the folders ---------------------------------------------------------------------------------------------------------


def nested(root: Path, files: int) -> None:
    """A source tree: folders of folders, a tenth of the files ignored."""
    for number in range(files // PER_FOLDER):
        folder = root / f"part{number % 30:02}" / f"module{number // 30:04}"
        folder.mkdir(parents=True)
        for inner in range(PER_FOLDER):
            (folder / (f"out{inner}.log" if inner % 10 == 9 else f"file{inner}.py")).touch()


def flat(root: Path, files: int) -> None:
    """A folder of data: everything in one place."""
    root.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (root / f"{number:07}.json").touch()


SHAPES: dict[str, Callable[[Path, int], None]] = {"nested": nested, "flat": flat}


# --- measuring -----------------------------------------------------------------------------------------------------------


def _table(name: str, plant: Callable[[Path, int], None], files: int, repetitions: int) -> Table:
    folder = Path(tempfile.mkdtemp(prefix="dragoman-tree-"))
    try:
        plant(folder, files)
        (folder / ".gitignore").write_text(IGNORED, encoding="utf-8")
        _git(folder, "init", "-q", "--template=")
        return _measured(f"Folder tree: {files:,} files, {name}", folder, repetitions)
    finally:
        shutil.rmtree(folder)


def _measured(title: str, folder: Path, repetitions: int) -> Table:
    cases: dict[str, Callable[[], int]] = {
        OURS: lambda: sum(len(listing.names) for listing in folder_tree(str(folder)).values()),
        "the whole first message": lambda: environment_text(gather_surroundings([str(folder)])).count("\n"),
        "`os.walk`, names only": lambda: sum(len(files) for _, _, files in os.walk(folder)),
        "`git ls-files -co --exclude-standard`": lambda: _git(folder, "ls-files", "-co", "--exclude-standard"),
        "`rg --files`": lambda: _lines([find_ripgrep(), "--files", "--no-config", str(folder)]),
        "`git --version`, which does nothing": lambda: _git(folder, "--version"),
    }
    taken = interleaved({case: lambda act=act: _timed(act) for case, act in cases.items()}, repetitions)
    floor = best([wall_ms for wall_ms, _ in taken[OURS]])
    table = Table(title, ["case", "wall ms, best", "median", "× ours", "lines or names"])
    for case, samples in taken.items():
        walls = [wall_ms for wall_ms, _ in samples]
        table.rows.append([case, best(walls), median(walls), best(walls) / floor, samples[0][1]])
    table.notes = [
        f"Ours in this process, the others as processes with their start; the disk's cache is warm; {repetitions} interleaved rounds."
    ]
    return table


def _timed(act: Callable[[], int]) -> tuple[float, int]:
    began = time.perf_counter()
    count = act()
    return (time.perf_counter() - began) * 1000, count


def _git(folder: Path, *arguments: str) -> int:
    return _lines(["git", "-c", "core.excludesFile=", "-C", str(folder), *arguments])


def _lines(argv: list[str]) -> int:
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.count(b"\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tree", description=__doc__)
    parser.add_argument("--files", type=int, default=20_000, help="how many files each folder holds")
    options = parser.parse_args()
    for shape, planted in SHAPES.items():
        print(_table(shape, planted, options.files, 5).markdown(), flush=True)
