"""docs/inside: files that walks and map name exist, one turn is read in one sitting, and the list of files is as the tree."""

from __future__ import annotations

import re
from pathlib import Path

from checks import files

import test_imports

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
INSIDE = ROOT / "docs" / "inside"
WALKS = (INSIDE / "walks.md").read_text(encoding="utf-8")
MAP = (INSIDE / "map.md").read_text(encoding="utf-8")
FILES_OF_A_TURN, LINES_OF_A_TURN = 6, 1_500
FILES_OF_THE_CORE = 12


def walk(title: str) -> list[str]:
    """The files a walk names, in order."""
    part = WALKS[WALKS.index(f"## {title}") :].partition("\n## ")[0]
    return names_in(part)


def core() -> list[str]:
    """The files that a newcomer is told to read, in order."""
    return names_in(MAP[MAP.index("## The core") :].partition("Keep two files")[0])


def names_in(text: str) -> list[str]:
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)", text)
    return list(dict.fromkeys(name for name in named if not name.startswith("tests/")))


def test_every_file_that_is_named_exists() -> None:
    named = names_in(WALKS) + names_in(MAP)
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


def test_the_core_is_small_and_in_one_line_of_reading() -> None:
    assert 8 <= len(core()) <= FILES_OF_THE_CORE, core()


def test_the_map_has_every_room_with_its_size() -> None:
    sizes = {room: int(count.replace(",", "")) for room, count in re.findall(r"^\| `(\w+)/` \| ≈ ([\d,]+) \|", MAP, re.MULTILINE)}
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(sizes) == rooms
    for room, said in sizes.items():
        assert_about(said, sum(map(files.lines, (SOURCE / room).rglob("*.py"))), f"{room}/ in map.md")


def test_the_list_of_files_is_as_the_tree() -> None:
    """Every module is on it by its docstring. Counts of lines may be off by a tenth, so that the page need not change with each commit."""
    there, made = files.PAGE.read_text(encoding="utf-8"), files.page()
    count = re.compile(f"{files.ABOUT}([\\d,]+)")
    assert count.sub("", there) == count.sub("", made), "run: python -m checks.files"
    for said, found in zip(count.findall(there), count.findall(made), strict=True):
        assert_about(int(said.replace(",", "")), int(found.replace(",", "")), "run: python -m checks.files")


def test_the_list_of_files_has_the_layers_of_the_walls() -> None:
    layers = {title: {*rooms} for title, _, rooms in files.LAYERS}
    assert layers == {
        "The public API": {"dragoman"},
        "Ground": {*test_imports.GROUND},
        "Rooms": test_imports.ROOMS,
        "Above the rooms": {*test_imports.ABOVE},
        "Front ends": test_imports.FRONT_ENDS - {"__main__"},
        "Annexes": test_imports.ANNEXES,
    }
    page = (INSIDE / "architecture.md").read_text(encoding="utf-8")
    for title in ("ground", "rooms", "above the rooms", "front ends", "annexes"):
        [row] = re.findall(rf"^\| {title} \| ([^|]*) \|", page, re.MULTILINE)
        assert {*re.findall(r"`(\w+)/`", row)} == layers[title.capitalize()]


def test_a_sentence_ends_where_it_ends(tmp_path: Path) -> None:
    def said(docstring: str) -> str:
        path = tmp_path / "module.py"
        path.write_text(f'"""{docstring}"""\n', encoding="utf-8")
        return files.said(path)

    assert said("ROOM. Reads a|b. Writes nothing.") == "Reads a\\|b."
    assert said("ABOVE THE ROOMS. Runs `dragoman fleet …`: many\ntasks.\n\nMore.") == "Runs `dragoman fleet …`: many tasks."
    assert said("HTTP/1.1 over asyncio.") == "HTTP/1.1 over asyncio."


def assert_about(said: int, found: int, what: str) -> None:
    assert abs(said - found) <= max(20, found // 10), f"{what}: {said} lines, there are {found}"
