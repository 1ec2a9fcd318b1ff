"""`make types` judges what type checkers say: that judgement, without them."""

from __future__ import annotations

from pathlib import Path

import checks.types
from checks.types import Found, judge, marked_lines

WRONG = Path("wrong.py")


def test_marked_lines_are_those_with_the_mark() -> None:
    assert marked_lines('"""Lines marked `# wrong`."""\nx = 1\ny()  # wrong: because\n') == {3}


def test_a_marked_line_that_is_an_error_is_right() -> None:
    assert list(judge([Found(WRONG, 3, "no"), Found(WRONG, 3, "no again")], WRONG, {3})) == []


def test_a_marked_line_that_passes_is_told() -> None:
    assert list(judge([Found(WRONG, 3, "no")], WRONG, {3, 5})) == ["wrong.py:5: this must be an error, and is none"]


def test_a_value_that_is_not_used_is_not_what_is_wrong() -> None:
    errors = [Found(WRONG, 3, "unused", "reportUnusedExpression"), Found(WRONG, 4, "unused", "unused-coroutine")]
    assert list(judge(errors, WRONG, {3})) == ["wrong.py:3: this must be an error, and is none"]
    assert list(judge([Found(Path("right.py"), 1, "unused", "unused-ignore")], WRONG, set())) == ["right.py:1: unused"]


def test_an_error_elsewhere_is_told() -> None:
    told = list(judge([Found(Path("right.py"), 3, "no"), Found(WRONG, 4, "nor this")], WRONG, {3}))
    assert told == ["right.py:3: no", "wrong.py:4: nor this", "wrong.py:3: this must be an error, and is none"]


def test_a_misspelt_agent_is_among_what_must_be_an_error() -> None:
    source = checks.types.WRONG.read_text(encoding="utf-8")
    marked = [source.splitlines()[line - 1] for line in marked_lines(source)]
    assert any("dm.Agnet(" in line for line in marked)
    assert len(marked) > 40
