"""Markers behind what a source supports: at exactly the right place, whatever the service says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import next_boundary
from dragoman.tools.web.citations import CitedText, cite, read_supports, source_list
from dragoman.values.messages import Source

WEATHER = "今天北京天气晴朗，最高温度25度，适合户外活动。"
WEATHER_CHUNKS = [
    {"web": {"uri": "https://weather.com.cn/beijing", "title": "中国天气网 - 北京天气"}},
    {"web": {"uri": "https://cma.gov.cn", "title": "中国气象局官网"}},
]
PAGES = [{"web": {"uri": f"https://{name}.example", "title": name}} for name in ("a", "b", "c")]


def support(end: Any, *indices: Any, start: Any = 0, text: str | None = None, part: Any = None) -> dict[str, Any]:
    segment: dict[str, Any] = {"startIndex": start, "endIndex": end}
    segment |= {"text": text} if text is not None else {}
    return {"segment": segment | ({"partIndex": part} if part is not None else {}), "groundingChunkIndices": list(indices)}


def marked(text: str | list[str], *supports: Any) -> str:
    return cite(text, supports, PAGES).text


# --- the worked examples of SEARCH-4 and SEARCH-5 -----------------------------------------------------------------------------


def test_the_weather_in_beijing() -> None:
    """SEARCH-4: offsets that are neither bytes nor characters; the segments' own texts say where the markers go."""
    supports = [
        support(12, 0, text="今天北京天气晴朗") | {"confidenceScores": [0.95]},
        support(22, 1, start=13, text="最高温度25度") | {"confidenceScores": [0.92]},
    ]
    cited = cite(WEATHER, supports, WEATHER_CHUNKS)
    assert cited.text == "今天北京天气晴朗[1]，最高温度25度[2]，适合户外活动。"
    assert cited.sources == (
        Source("中国天气网 - 北京天气", "https://weather.com.cn/beijing"),
        Source("中国气象局官网", "https://cma.gov.cn"),
    )


def test_the_list_of_sources() -> None:
    """SEARCH-5: `[n] Title (uri)`, with words of our own where either is missing."""
    cited = cite("x", [], [{"web": {"uri": "https://a.example", "title": "A"}}, {"web": {}}, {}, None, {"web": {"title": "two\nlines"}}])
    assert source_list(cited.sources).splitlines() == [
        "Sources:",
        "[1] A (https://a.example)",
        "[2] Untitled (No URI)",
        "[3] Untitled (No URI)",
        "[4] Untitled (No URI)",
        "[5] two lines (No URI)",
    ]
    assert cited.with_sources().startswith("x\n\nSources:\n[1] A ")
    assert CitedText("x").with_sources() == "x"


def test_other_kinds_of_chunks_have_a_page_too() -> None:
    chunks = [{"retrievedContext": {"uri": "u", "title": "t"}}, {"maps": {"uri": "m", "title": "place"}}]
    assert cite("", [], chunks).sources == (Source("t", "u"), Source("place", "m"))


# --- offsets -----------------------------------------------------------------------------------------------------------------


def test_offsets_are_bytes() -> None:
    assert marked("日本語 text", support(9, 0), support(14, 1)) == "日本語[1] text[2]"


def test_markers_at_one_place_ascend_without_repeats() -> None:
    assert marked("one two", support(3, 2, 0, 2), support(3, 1, 0), support(7, 1, 1)) == "one[1][2][3] two[2]"


def test_markers_ascend_by_number_and_not_by_chance() -> None:
    pages = [{"web": {"uri": str(number)}} for number in range(40)]
    numbers = [39, 31, 15, 7, 0, 8]
    assert cite("one", [support(3, *numbers)], pages).text == "one[1][8][9][16][32][40]"


def test_sources_that_are_not_there_are_passed_over() -> None:
    assert marked("one", support(3, 7, -1, 1, True, None, "0", 2.0)) == "one[2]"
    assert marked("one", support(3, 7), support(3)) == "one"


@pytest.mark.parametrize("end", [-1, 4, 10**30, None, "3", 2.5, True, [], {}])
def test_offsets_that_are_not_there_are_passed_over(end: Any) -> None:
    assert marked("one", support(end, 0)) == "one"


def test_an_end_before_its_start_is_no_segment() -> None:
    assert marked("one two", support(2, 0, start=5)) == "one two"


def test_the_ends_of_the_text_are_places() -> None:
    assert marked("one", support(0, 0), support(3, 1)) == "[1]one[2]"


@pytest.mark.parametrize("nonsense", [None, 3, "x", [], {}, {"segment": None}, {"segment": [], "groundingChunkIndices": [0]},
                                      {"segment": {"endIndex": 1}}, {"segment": {"endIndex": 1}, "groundingChunkIndices": 5},
                                      {"segment": {}, "groundingChunkIndices": [0]}])  # fmt: skip
def test_nonsense_is_passed_over(nonsense: Any) -> None:
    assert marked("one", nonsense, support(3, 0)) == "one[1]"


def test_nothing_at_all() -> None:
    assert cite("", None, None) == CitedText("")
    assert cite([], [support(1, 0)], PAGES).text == ""


# --- the segment's own text --------------------------------------------------------------------------------------------------


def test_the_text_nearest_to_the_offset_wins() -> None:
    text = "rain. sun. rain. sun. rain."
    assert marked(text, support(14, 0, start=10, text="rain")) == "rain. sun. rain[1]. sun. rain."
    assert marked(text, support(22, 0, start=18, text="rain")) == "rain. sun. rain. sun. rain[1]."
    assert marked(text, support(900, 0, start=896, text="rain")) == "rain. sun. rain. sun. rain[1]."
    assert marked(text, support(-5, 0, text="rain")) == "rain[1]. sun. rain. sun. rain."


def test_a_text_that_ends_at_the_offset_is_where_it_is_said_to_be() -> None:
    assert marked("aaaa", support(3, 0, start=1, text="aa")) == "aaa[1]a"


def test_overlapping_occurrences_are_all_looked_at() -> None:
    assert marked("x aaaaaa", support(6, 0, start=2, text="aaa")) == "x aaaa[1]aa"


def test_a_text_that_is_nowhere_leaves_the_offset() -> None:
    assert marked("one two", support(3, 0, text="elsewhere")) == "one[1] two"
    assert marked("one two", support(99, 0, text="elsewhere")) == "one two"


def test_a_text_without_offsets_is_found() -> None:
    assert marked("one two", {"segment": {"text": "one"}, "groundingChunkIndices": [0]}) == "one[1] two"


def test_offsets_in_characters_are_put_right_by_the_texts() -> None:
    sentences = [f"第{number}句，天气晴朗。" for number in range(200)]
    supports, start = [], 0
    for sentence in sentences:
        supports.append(support(start + len(sentence), 0, start=start, text=sentence))
        start += len(sentence)
    assert marked("".join(sentences), *supports) == "".join(f"{sentence}[1]" for sentence in sentences)


# --- parts -------------------------------------------------------------------------------------------------------------------


def test_offsets_count_in_the_part_they_name() -> None:
    """`partIndex` respected."""
    parts = ["Zürich ", "Genève"]
    assert marked(parts, support(7, 0), support(7, 1, part=1)) == "Zürich[1] Genève[2]"
    assert marked(parts, support(99, 0, part=1, text="Zürich")) == "Zürich Genève", "the text of another part is not its own"


@pytest.mark.parametrize("part", [2, -1, "1", 1.5])
def test_a_part_that_is_not_there_is_passed_over(part: Any) -> None:
    assert marked(["one", "two"], support(1, 0, part=part)) == "onetwo"


def test_a_character_over_two_parts_is_not_parted() -> None:
    assert marked(["e", "\u0301x"], support(1, 0)) == "e\u0301[1]x"


# --- properties --------------------------------------------------------------------------------------------------------------

PIECES = [
    "a",
    " ",
    "é",
    "e\u0301",
    "日",
    "本語",
    "שלום",
    "مرحبا",
    "👩\u200d💻",
    "❤\ufe0f",
    "🇩🇪",
    "👍🏽",
    "\r\n",
    "क्षि",
    "한글",
    "\u1112\u1161\u11ab",
    "𝒳",
    "\n",
]
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="[]")
)
offsets = st.integers(-3, 120) | st.sampled_from([0, 10**9, -(10**9)])


@st.composite
def grounded(draw: st.DrawFn) -> tuple[list[str], list[Any]]:
    """An answer in parts, and supports for it: right, in characters, off by some, for text that is elsewhere or nowhere."""
    parts = draw(st.lists(texts, min_size=1, max_size=3))
    supports = []
    for _ in range(draw(st.integers(0, 12))):
        index = draw(st.integers(0, len(parts) - 1))
        start = draw(st.integers(0, len(parts[index])))
        end = draw(st.integers(start, len(parts[index])))
        cut = parts[index][start:end]
        unit = draw(st.sampled_from(["bytes", "characters", "wrong"]))
        first, last = len(parts[index][:start].encode()), len(parts[index][:end].encode())
        if unit != "bytes":
            first, last = (start, end) if unit == "characters" else (draw(offsets), draw(offsets))
        told = draw(st.sampled_from([None, cut, cut, draw(texts)]))
        supports.append(support(last, *draw(st.lists(st.integers(-1, 4), max_size=4)), start=first, text=told, part=index or None))
    return parts, supports


@given(grounded())
def test_without_the_markers_it_is_the_text(answer: tuple[list[str], list[Any]]) -> None:
    """Removing the markers gives back the text."""
    parts, supports = answer
    assert re.sub(r"\[[123]\]", "", cite(parts, supports, PAGES).text) == "".join(parts)


@given(grounded())
def test_no_character_is_parted_and_markers_ascend(answer: tuple[list[str], list[Any]]) -> None:
    regex = pytest.importorskip("regex")
    parts, supports = answer
    text = "".join(parts)
    boundaries, at = {0}, 0
    for cluster in regex.findall(r"\X", text):
        at += len(cluster)
        boundaries.add(at)
    done = 0
    for piece in re.split(r"((?:\[[123]\])+)", cite(parts, supports, PAGES).text):
        if piece.startswith("["):
            assert done in boundaries, f"{text!r} is parted at {done}"
            numbers = [int(number) for number in re.findall(r"\d", piece)]
            assert numbers == sorted(set(numbers))
        else:
            done += len(piece)


@given(grounded())
def test_supports_as_data_are_passages_of_the_answer(answer: tuple[list[str], list[Any]]) -> None:
    """Each stands where it says, ends where its marker stands at the earliest, and its sources exist."""
    parts, supports = answer
    text = "".join(parts)
    found = read_supports(parts, supports, PAGES)
    assert all(text[each.start : each.end] == each.text for each in found)
    assert all(0 <= each.start <= each.end <= len(text) for each in found)
    assert all(each.sources and set(each.sources) <= {1, 2, 3} for each in found)
    marked = {int(number) for number in re.findall(r"\[([123])\]", cite(parts, supports, PAGES).text)}
    assert marked == {number for each in found for number in each.sources}


@given(grounded())
def test_the_order_of_supports_makes_no_difference(answer: tuple[list[str], list[Any]]) -> None:
    parts, supports = answer
    assert cite(parts, supports, PAGES) == cite(parts, list(reversed(supports)), PAGES)


@given(texts, st.lists(st.integers(0, 60), min_size=1, max_size=10))
def test_every_true_segment_is_marked_at_its_end(text: str, cuts: list[int]) -> None:
    """With right byte offsets, a marker stands behind the segment, or behind the character that its end would part."""
    ends = sorted({min(cut, len(text)) for cut in cuts})
    shown = marked(text, *(support(len(text[:end].encode()), 0, text=text[:end]) for end in ends))
    places, done = [], 0
    for piece in re.split(r"(\[1\])", shown):
        places += [done] if piece == "[1]" else []
        done += len(piece) if piece != "[1]" else 0
    assert places == sorted({next_boundary(text, end) for end in ends})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["segment", "groundingChunkIndices", "endIndex", "startIndex", "partIndex", "text", "web", "uri"]), inner
        )
    ),
    max_leaves=20,
)


@given(texts, st.lists(json_values, max_size=6), st.lists(json_values, max_size=6))
def test_nothing_a_service_says_raises(text: str, supports: list[Any], chunks: list[Any]) -> None:
    assert len(cite(text, supports, chunks).sources) == len(chunks)
    assert all(each.sources for each in read_supports(text, supports, chunks))


def test_lone_surrogates_are_text_too() -> None:
    assert marked("a\ud800b", support(4, 0)) == "a\ud800[1]b"
