"""One word for one thing: no class name has two meanings, and no word of a private dialect comes back."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dragoman"
FAMILIES = {
    "Decoder": "each protocol reads its stream by a class of this name",
    "Rendered": "each protocol renders a message to a value of this name",
}
"""Class names that stand in several modules, and why that is one meaning."""


def test_no_class_name_means_two_things() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in homes.items() if len(where) > 1 and name not in FAMILIES} == {}
    assert [name for name in FAMILIES if len(homes[name]) < 2] == []


def test_the_project_speaks_of_itself_alone() -> None:
    """What was asked for at the beginning has its ids in docs/reference/requirements.md; other documents are not referred to."""
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    names = [name for name in listed if not name.startswith("tests/wire/bodies")] or [str(path) for path in SOURCE.rglob("*.py")]
    assert names
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).exists() else ""
        assert not re.search(r"\bS00[1-5]\b", text) or name == "tests/test_names.py", name
        assert name.startswith("tests/") or not re.search(r"\b[Tt]he seed\b", text), name
