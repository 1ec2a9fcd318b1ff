"""docs/reference/requirements.md keeps its word: every test it names exists, ids are unique, and no row is without proof or reason."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "requirements.md"

ID = re.compile(r"[A-Z]+-[1-9][0-9]*")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
REASON = re.compile(r"\b(?:Otherwise|Not yet): \S")


@dataclass(frozen=True)
class Row:
    id: str
    requirement: str
    tests: str
    remark: str


def rows_of(page: str) -> list[Row]:
    """Every line of a table but its heading and the line below it."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return [Row(*cells) for cells in lines if cells[0] not in ("id", "---")]


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def faults_of(row: Row) -> list[str]:
    """What is wrong with a row, in words."""
    faults: list[str] = []
    if not ID.fullmatch(row.id):
        faults.append(f"{row.id!r} is not an id")
    if not row.requirement:
        faults.append(f"{row.id} says nothing")
    named = TEST.findall(row.tests)
    if TEST.sub("", row.tests).strip():
        faults.append(f"{row.id} names something that is not `tests/path/test_x.py::test_name`")
    faults += [f"{row.id} names {path}::{name}, which does not exist" for path, name in named if not exists(path, name)]
    if not named and not REASON.search(row.remark):
        faults.append(f"{row.id} has neither a test nor a reason")
    return faults


def exists(path: str, name: str) -> bool:
    return name.startswith("test_") and (ROOT / path).is_file() and name in names_in(path)


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))


def verdict_of(row: Row) -> str:
    """How a requirement stands. What holds only in part is not there yet."""
    if "Not yet: " in row.remark:
        return "not yet"
    if "Otherwise: " in row.remark:
        return "another way" if TEST.search(row.tests) else "left out"
    return "holds"


def test_the_page_counts_its_requirements() -> None:
    found = re.search(
        r"There are (\d+) requirements: (\d+) hold as they are written, (\d+) hold in another way, (\d+) (?:is|are) left out, "
        r"(\d+) (?:is|are) not there yet\.",
        " ".join(PAGE.read_text(encoding="utf-8").split()),
    )
    assert found is not None
    counted = Counter(map(verdict_of, ROWS))
    assert [int(each) for each in found.groups()] == [
        len(ROWS),
        *(counted[each] for each in ("holds", "another way", "left out", "not yet")),
    ]
    assert len(ROWS) > 200


def test_what_is_left_out_is_little() -> None:
    assert sum(verdict_of(row) in ("left out", "not yet") for row in ROWS) <= 4


def test_ids_are_unique() -> None:
    assert [each for each, count in Counter(row.id for row in ROWS).items() if count > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_requirement_has_tests_that_exist_or_a_reason(row: Row) -> None:
    assert faults_of(row) == []


def test_ids_in_tests_are_ids_of_the_page() -> None:
    known = {row.id for row in ROWS}
    groups = "|".join(sorted({each.split("-")[0] for each in known}))
    mentioned = {
        (each, str(path.relative_to(ROOT)))
        for path in (ROOT / "tests").rglob("*.py")
        for each in re.findall(rf"\b(?:{groups})-[0-9]+\b", path.read_text(encoding="utf-8"))
        if path != Path(__file__).resolve()
    }
    assert sorted((each, where) for each, where in mentioned if each not in known) == []


# The check itself, on planted rows: each rule is seen to fail.


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row("VALUES", "x", "", "Not yet: y"), "is not an id"),
        (Row("VALUES-1", "", "", "Not yet: y"), "says nothing"),
        (Row("VALUES-1", "x", "", ""), "neither a test nor a reason"),
        (Row("VALUES-1", "x", "", "Otherwise: "), "neither a test nor a reason"),
        (Row("VALUES-1", "x", "`tests/test_requirements.py::test_nobody_wrote`", ""), "does not exist"),
        (Row("VALUES-1", "x", "`tests/test_nothing.py::test_ids_are_unique`", ""), "does not exist"),
        (Row("VALUES-1", "x", "`tests/test_requirements.py::rows_of`", ""), "does not exist"),
        (Row("VALUES-1", "x", "tests/test_requirements.py::test_ids_are_unique", "Not yet: y"), "names something"),
    ],
)
def test_a_bad_row_is_found(row: Row, fault: str) -> None:
    assert any(fault in each for each in faults_of(row))


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("VALUES-1", "x", "`tests/test_requirements.py::test_ids_are_unique`", ""), "holds"),
        (Row("VALUES-1", "x", "`tests/test_requirements.py::test_ids_are_unique`", "Otherwise: y"), "another way"),
        (Row("VALUES-1", "x", "", "Otherwise: y"), "left out"),
        (Row("VALUES-1", "x", "`tests/test_requirements.py::test_ids_are_unique`", "Not yet: z. Otherwise: y"), "not yet"),
    ],
)
def test_a_row_stands_as_it_says(row: Row, verdict: str) -> None:
    assert verdict_of(row) == verdict


def test_a_good_row_is_good() -> None:
    assert faults_of(Row("VALUES-1", "x", "`tests/test_requirements.py::test_ids_are_unique`", "")) == []
    assert faults_of(Row("VALUES-1", "x", "", "Otherwise: it is not needed.")) == []
