"""The walks of docs/inside/architecture.md: the files they name exist, and one turn can be read in one sitting."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
PAGE = (ROOT / "docs" / "inside" / "architecture.md").read_text(encoding="utf-8")
WALKS = PAGE[PAGE.index("## Ten walks") : PAGE.index("## The rooms")]
FILES_OF_A_TURN, LINES_OF_A_TURN = 6, 1_500


def walk(title: str) -> list[str]:
    """The files a walk names, in order."""
    part = WALKS[WALKS.index(f"### {title}") :].partition("\n### ")[0]
    return list(dict.fromkeys(re.findall(r"`([a-z_]+/[a-z_/]+\.py)", part)))


def test_every_file_that_is_named_exists() -> None:
    named = [name for name in re.findall(r"`([a-z_]+/[a-z_/]+\.py)", WALKS) if not name.startswith("tests/")]
    assert len(named) > 50
    assert [name for name in named if not (SOURCE / name).is_file()] == []


def test_every_function_that_is_named_is_in_its_file() -> None:
    for name, what in re.findall(r"`([a-z_]+/[a-z_/]+\.py): (\w+)`", WALKS):
        assert re.search(rf"\b(?:class|def) {what}\b", (SOURCE / name).read_text(encoding="utf-8")), f"{name}: {what}"


def test_one_turn_is_read_in_one_sitting() -> None:
    files = walk("One turn")
    lines = sum(len((SOURCE / name).read_text(encoding="utf-8").splitlines()) for name in files)
    assert len(files) <= FILES_OF_A_TURN, files
    assert lines <= LINES_OF_A_TURN, f"{lines} lines in {files}"


def test_every_module_is_on_the_page() -> None:
    """In the part about its room, by its name or as part of a family (`*_stream.py`, `session_*.py`): the page can be used as a map."""
    overview = PAGE[PAGE.index("## The rooms") : PAGE.index("### loop/")]
    rooms = dict(re.findall(r"^### (\w+)/: .*?\n(.*?)(?=^### |^## )", PAGE, re.DOTALL | re.MULTILINE))
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        if (
            path.name in ("__init__.py", "__main__.py")
            or room in ("testing", "local")
            or (path.parent.name == "sessions" and path.parent.parent.name == "foreign")
            or "words" in path.parts
        ):
            continue
        names = re.findall(r"[\w*]+\.py", rooms.get(room, overview))
        assert any(re.fullmatch(name.replace("*", r"\w*"), path.name) for name in names), f"{path.relative_to(SOURCE)} is not on the page"
