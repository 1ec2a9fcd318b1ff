"""How lines of code are counted, and the twins they are counted in."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.lines import code_lines
from hypothesis import given
from hypothesis import strategies as st

APPS = Path(__file__).parent.parent / "benchmarks" / "apps"
TWINS = ("service", "batch", "research")


def test_blank_lines_comments_and_docstrings_are_not_code() -> None:
    source = '"""What it is.\n\nAnd more.\n"""\n\n# why\nimport os  # too\n\n\ndef f(a):\n    """Says it."""\n    return a\n'
    assert code_lines(source) == 3


def test_a_text_that_is_no_docstring_is_code_with_all_its_lines() -> None:
    assert code_lines('TEXT = """one\n\nthree\n"""\n') == 4
    assert code_lines("x = (\n    1,\n\n    # why\n    2,\n)\n") == 4


@given(st.lists(st.sampled_from(["x = 1", "# a comment", "", "y = [", "    1,", "]"]), max_size=12))
def test_comments_and_blank_lines_never_change_the_count(lines: list[str]) -> None:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return
    code = [line for line in lines if line and not line.startswith("#")]
    assert code_lines("\n".join(lines) + "\n") == len(code)


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_says_which_features_it_has_and_is_formatted_at_100_columns(name: str) -> None:
    path = APPS / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    assert "Features: " in (ast.get_docstring(ast.parse(source)) or "")
    assert code_lines(source) > 40
    ruff = Path(sys.executable).with_name("ruff")
    formatted = subprocess.run([ruff, "format", "--check", "--isolated", "--line-length", "100", path], capture_output=True, check=False)
    assert formatted.returncode == 0, formatted.stdout
    assert max(map(len, source.splitlines())) <= 100
