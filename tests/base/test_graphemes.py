"""What is seen as one character is never parted, and its width is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import graphemes
from dragoman.base.graphemes import clusters, fit, next_boundary, unbroken_parts, width, width_of

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


# Whole characters

ONE = ["👨‍👩‍👧‍👦", "👋🏽", "🇩🇪", "❤️", "e\u0301", "\u1112\u1161\u11ab", "क्ष", "नि", "1\ufe0f\u20e3"]


@pytest.mark.parametrize("one", ONE)
def test_what_a_person_counts_as_one_is_one(one: str) -> None:
    assert list(clusters(f"a{one}b")) == ["a", one, "b"]
    assert list(clusters(one * 3)) == [one] * 3


@pytest.mark.parametrize(
    "words",
    [
        "தமிழ்நாடு க்ஷ",
        "ଓଡ଼ିଆ",
        "ਪੰਜਾਬੀ ਸ੍ਰੀ",
        "ಕನ್ನಡ ಕ್ಷ",
        "ภาษาไทย คำ น้ำ",
        "ພາສາລາວ",
        "한국어 각나",
        "\u1112\u1161\u11ab\u1100\u116e\u11a8",
        "日本語ｶﾞｷﾞ",
        "العَرَبِيَّة \u0600١٢",
        "Tiếng Việt a\u0302\u0301",
        "👨‍👩‍👧‍👦👋🏽🇩🇪🇫🇷❤️‍🔥1️⃣ ⌚‍a",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f🏳️‍🌈",
        "a\u200db क\u200dष",
    ],
)
def test_written_words_part_as_the_regex_module_parts_them(words: str) -> None:
    regex = pytest.importorskip("regex")
    assert list(clusters(words)) == regex.findall(r"\X", words)


@given(
    st.lists(st.sampled_from([*WHOLE, *ONE, "a", "字", "क", "\u094d", "\u200d", "ᆫ", "🇪", "\ufe0f"]), max_size=30).map("".join) | st.text()
)
def test_clusters_lose_nothing(text: str) -> None:
    assert "".join(clusters(text)) == text
    assert all(clusters(text))


# Columns


@pytest.mark.parametrize("one", ["👨‍👩‍👧‍👦", "👋🏽", "🇩🇪", "❤️", "字", "한", "\u1112\u1161\u11ab", "1\ufe0f\u20e3"])
def test_wide_characters_take_two_columns(one: str) -> None:
    assert width_of(one) == 2


@pytest.mark.parametrize("one", ["a", "é", "e\u0301", "ش", "…"])
def test_others_take_one(one: str) -> None:
    assert width_of(one) == 1


def test_what_fits_exactly_is_not_cut() -> None:
    assert fit("x" * 60, 60) == "x" * 60
    assert fit("x" * 61, 60) == "x" * 59 + "…"
    assert fit("字" * 30, 60) == "字" * 30
    assert fit("字" * 31, 60) == "字" * 29 + "…"


@given(st.text(st.characters(exclude_categories=["C", "Z"])), st.integers(2, 40))
def test_what_fits_is_whole_and_what_does_not_is_cut_with_a_sign(text: str, columns: int) -> None:
    shown = fit(text, columns)
    if shown != text:
        assert shown.endswith("…")
        assert text.startswith(shown[:-1])
    assert len(shown) <= len(text) or not text


def test_wide_signs_take_two_columns() -> None:
    assert fit("你好世界", 8) == "你好世界"
    assert fit("你好世界", 7) == "你好世…"
    assert fit("你好世界", 6) == "你好…"
    assert fit("abcdef", 4) == "abc…"


SIMPLE = "a !Zé©®ßЖяΩ…“”·›─█→汉字，。（）「」カなー　％ｱ"


@given(st.text(st.sampled_from(SIMPLE), max_size=30) | st.text(max_size=20))
def test_the_short_way_for_simple_letters_says_the_same(text: str) -> None:
    assert width(text) == sum(map(width_of, clusters(text)))
    short = list(unbroken_parts(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphemes, "_is_simple", lambda _: False)
        assert list(unbroken_parts(text)) == short or not text


def test_every_simple_letter_is_one_character_of_its_width() -> None:
    letters = [char for char in map(chr, range(0x20, 0x10000)) if graphemes._is_simple(char)]
    assert len(letters) > 28_000
    assert {
        char for char in letters if width(char) != width_of(char) or graphemes._is_attached(char) or graphemes._is_control(char)
    } == set()
