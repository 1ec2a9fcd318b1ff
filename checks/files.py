"""docs/inside/files.md, made of the first sentence of each module's docstring: `python -m checks.files` writes it.

Lines are counted to two figures. A test compares the page with the source, its lines within a tenth, so that not every commit changes it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
PAGE = ROOT / "docs" / "inside" / "files.md"
LAYERS = (
    ("The public API", "Names of the modules below, in one place; importing `dragoman` loads nothing else.", ("dragoman",)),
    ("Ground", "Each stands on those before it.", ("words", "base", "values", "http")),
    (
        "Rooms",
        "Blind to each other: they stand on the ground and meet through its contracts.",
        ("context", "extensions", "mcp_client", "policy", "providers", "sessions", "text_tools", "tools", "typed_output"),
    ),
    ("Above the rooms", "Each stands on the rooms and on those before it.", ("foreign", "loop", "app", "conversation")),
    ("Front ends", "None imports another.", ("acp", "cli", "fleet", "plain", "tui", "viewer")),
    ("Annexes", "They stand on ground and rooms, and are loaded only when they are asked for.", ("local", "testing")),
)
"""The order of the page; tests/test_walks.py holds it to the walls of tests/test_imports.py."""
HEAD = """\
# Files by room

Every module of `src/dragoman`, with what its own docstring says of it.
A script writes this page, so do not edit it: mend the docstring and run `python -m checks.files`.
For an introduction, read the [map of the code](map.md) first.
"""
UNLISTED = (SOURCE / "words" / "zh",)
"""Has the same files as the folder beside it."""
ABOUT = "≈ "
"""Stands before each count of lines."""


def page() -> str:
    folders = sorted({path.parent for path in SOURCE.rglob("*.py")})
    parts = [HEAD, "| folder | files | lines | what is in it |", "|---|--:|--:|---|"]
    for title, sentence, rooms in LAYERS:
        parts.append(f"| **{title}** | | | {sentence} |")
        parts += [f"| {link(each)} | {counts(each)} | {summary(each)} |" for each in within(folders, rooms)]
    modules = [*SOURCE.rglob("*.py")]
    parts.append(f"| **All** | {len(modules):,} | {ABOUT}{rounded(sum(map(lines, modules))):,} | |")
    for _, _, rooms in LAYERS:
        for folder in within(folders, rooms):
            if is_listed(folder):
                parts += ["", f"## `{name(folder)}`", "", "| file | what is in it |", "|---|---|"]
                parts += [f"| `{path.name}` | {said(path)} |" for path in files_of(folder)]
    return "\n".join(parts) + "\n"


def within(folders: list[Path], rooms: tuple[str, ...]) -> Iterator[Path]:
    """The folders of some rooms, each followed by those inside it."""
    for room in rooms:
        top = SOURCE if room == "dragoman" else SOURCE / room
        yield from (each for each in folders if each == top or (top != SOURCE and each.is_relative_to(top)))


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]


def is_listed(folder: Path) -> bool:
    return folder not in UNLISTED and bool(files_of(folder))


def name(folder: Path) -> str:
    return "dragoman/" if folder == SOURCE else f"{folder.relative_to(SOURCE).as_posix()}/"


def link(folder: Path) -> str:
    """To its heading, whose anchor is made as GitHub and the site make it."""
    label = f"`{name(folder)}`"
    return label if not is_listed(folder) else f"[{label}](#{re.sub(r'[^a-z0-9_]', '', name(folder))})"


def counts(folder: Path) -> str:
    modules = sorted(folder.glob("*.py"))
    return f"{len(modules)} | {ABOUT}{rounded(sum(map(lines, modules))):,}"


def summary(folder: Path) -> str:
    return said(folder / "__init__.py")


def said(path: Path) -> str:
    """The first sentence of a module's docstring, without the name of its layer."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    text = re.sub(r"^(?:[A-Z]{2,} ?)+\. ", "", " ".join(text.split("\n\n")[0].split()))
    first = re.split(r"(?<=[a-z0-9`)\]][.?!]) (?=[A-Z`])", text)[0]
    return first.replace("|", "\\|").replace("<", "&lt;") if "`" not in first else first.replace("|", "\\|")


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def rounded(count: int) -> int:
    """To two figures."""
    step = 10 ** max(0, len(str(count)) - 2)
    return round(count / step) * step


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
