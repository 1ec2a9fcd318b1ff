"""What is seen as one character is never parted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.graphemes import next_boundary

WHOLE = [
    "e\u0301",  # a letter and its accent
    "\u1ea1\u0302\u0303",
    "\r\n",
    "❤\ufe0f",
    "1\ufe0f\u20e3",  # a keycap
    "👍🏽",
    "👩\u200d💻",
    "👨\u200d👩\u200d👧\u200d👦",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England, in tags
    "🇩🇪",
    "\u1112\u1161\u11ab",  # a syllable in letters
    "가\u11a8",
    "ก\u0e33",
    "क्षि",
    "\u0600١",  # a sign before the number it belongs to
    "ｶ\uff9e",
]


@pytest.mark.parametrize("whole", WHOLE)
def test_one_character_is_not_parted(whole: str) -> None:
    text = f"a{whole}b"
    assert [next_boundary(text, index) for index in range(1, len(whole) + 2)] == [1, *[1 + len(whole)] * len(whole)]


@pytest.mark.parametrize(
    ("text", "ends"),
    [("ab", [0, 1, 2]), ("🇩🇪🇫🇷", [0, 2, 4]), ("日本", [0, 1, 2]), ("a\u200db", [0, 2, 3]), ("\n\u0301", [0, 1, 2]), ("각나", [0, 1, 2]),
     ("💻💻", [0, 1, 2]), ("\r\r\n\n", [0, 1, 3, 4]), ("ש\u05c1ב", [0, 2, 3])],
)  # fmt: skip
def test_two_characters_are_two(text: str, ends: list[int]) -> None:
    assert sorted({next_boundary(text, index) for index in range(len(text) + 1)}) == ends


@given(
    st.lists(st.sampled_from([*WHOLE, "a", "日", "א", "\u200d", "\u0301", "💻", "🇫", "\n", "\u11a8"]), max_size=12).map("".join) | st.text()
)
def test_it_never_parts_what_the_regex_module_keeps_together(text: str) -> None:
    regex = pytest.importorskip("regex")
    theirs, at = {0}, 0
    for cluster in regex.findall(r"\X", text):
        at += len(cluster)
        theirs.add(at)
    assert {next_boundary(text, index) for index in range(len(text) + 1)} <= theirs


@given(st.lists(st.sampled_from([*WHOLE, "a", "🇫", "\u0301", "💻"]), max_size=12).map("".join), st.data())
def test_a_floor_changes_nothing(text: str, data: st.DataObject) -> None:
    """Looking no further back than a boundary gives the same: that is what makes many lookups one walk."""
    index = data.draw(st.integers(0, len(text)))
    floor = max(at for at in range(index + 1) if next_boundary(text, at) == at)
    assert next_boundary(text, index, floor) == next_boundary(text, index)
