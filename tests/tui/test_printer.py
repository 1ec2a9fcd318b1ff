"""What commands write: rows of lists go on under their second column."""

from __future__ import annotations

import pytest

from dragoman.base.graphemes import width
from dragoman.tui.asking import hang_of


@pytest.mark.parametrize(
    ("text", "hang"),
    [
        ("  /import      go on with a session", 15),
        ("Ctrl-J, \\ Enter  a new line", 17),
        ("    all tools · built in", 4),
        ("One sentence that goes on and on.", 0),
        ("", 0),
        ("a-name-that-takes-more-than-half-of-the-row  and what it is", 0),
        ("  a-name-that-takes-more-than-half-of-the-row  and what it is", 2),
    ],
)
def test_further_rows_begin_under_the_second_column(text: str, hang: int) -> None:
    assert hang_of(text, 40) == hang
    assert width(text[:hang]) == hang
