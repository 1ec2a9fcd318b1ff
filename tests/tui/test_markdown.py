"""Markdown on the screen: the same lines in whatever pieces it comes, lines that never change again, and the blocks that others read."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tui.blocks import is_undecided
from dragoman.tui.inline import REACH, parse
from dragoman.tui.line import Line, columns_of, plain
from dragoman.tui.markdown import MarkdownStream, render
from dragoman.tui.theme import Theme
from tui.markdown_trace import ours, theirs
from tui.scenes import EVERYTHING

ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])

SIGNS = [
    "\n",
    "\n\n",
    "- ",
    "* ",
    "1. ",
    "2) ",
    "> ",
    "# ",
    "```",
    "```py\n",
    "~~~",
    "| a | b |\n",
    "|-|-|\n",
    "---\n",
    "===\n",
    "    ",
    "\t",
    "  \n",
    "\r\n",
    "\r",
]
WORDS = [
    "*",
    "**",
    "_",
    "~~",
    "`",
    "[",
    "](",
    ")",
    "[a](b)",
    "![",
    "<",
    "<div>",
    "<!--",
    "-->",
    "<br>",
    "&amp;",
    "&",
    "\\",
    "https://a.b/c_d.",
    "htt",
    "[x] ",
    "|",
]
TEXT = [
    "a",
    "word word ",
    "x" * 20,
    "汉字",
    "，",
    "“",
    "👩",
    "\u200d",
    "\u0301",
    "שלום",
    "\x1b[31m",
    "\u202e",
    "\x00",
    "1",
    "10. ",
    ":",
    "=",
    "+",
    "!",
    " ",
    "  ",
]
TEXTS = st.lists(st.sampled_from([*SIGNS, *WORDS, *TEXT]), max_size=25).map("".join) | st.text(max_size=80)
WIDTHS = st.sampled_from([8, 12, 20, 40, 80])


def styled(rows: list[Line]) -> list[list[tuple[str, str]]]:
    """Each character with its style: how a line is parted into pieces does not matter."""
    return [[(char, span.style) for span in row for char in span.text] for row in rows]


def pieces(text: str, sizes: list[int]) -> list[str]:
    parts: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(parts) % len(sizes)]
        parts.append(text[at : at + size])
        at += size
    return parts


@given(TEXTS, st.lists(st.integers(1, 6), min_size=1, max_size=8), WIDTHS)
def test_pieces_give_the_lines_of_the_whole(text: str, sizes: list[int], columns: int) -> None:
    stream = MarkdownStream(columns)
    committed: list[Line] = []
    so_far = ""
    for piece in pieces(text, sizes):
        committed += stream.feed(piece)
        so_far += piece
        # What is on the screen is what the text so far is: nothing that was committed is taken back.
        decided = so_far.removesuffix(re.split(r"[\r\n]", so_far)[-1]) if is_undecided(re.split(r"[\r\n]", so_far)[-1]) else so_far
        assert styled(committed + stream.tail()) == styled(render(decided, columns))
    assert styled(committed + stream.finish()) == styled(render(text, columns))


@given(TEXTS, WIDTHS)
def test_every_row_fits_and_acts_on_nothing(text: str, columns: int) -> None:
    for row in render(text, columns):
        assert columns_of(row) <= columns
        assert all(char.isprintable() or char in "\xa0\u3000" or ord(char) > 0xFF for char in plain(row))
        assert not any(char in plain(row) for char in "\u202e\u200b\u2028\x1b\n\t")


@given(st.lists(st.text(st.sampled_from("abcdeXYZ019,.;汉字"), min_size=1, max_size=10), max_size=40), WIDTHS)
def test_a_paragraph_keeps_every_word_once(words: list[str], columns: int) -> None:
    text = "x " + " ".join(words)
    assert "".join(plain(row) for row in render(text, columns)).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.sampled_from(WORDS + TEXT), max_size=20).map("".join), st.integers(1, 5), st.sampled_from([12, REACH]))
def test_what_is_certain_inside_a_paragraph_stays(text: str, size: int, reach: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.tui.inline.REACH", reach)
        whole = styled([tuple(parse(text).spans)])
        source, before, spans = "", " ", []
        for piece in pieces(text, [size]):
            source += piece
            parsed = parse(source, before=before, is_whole=False)
            spans += parsed.spans
            before = source[parsed.used - 1] if parsed.used else before
            source = source[parsed.used :]
        spans += parse(source, before=before).spans
    assert styled([tuple(spans)]) == whole


def test_a_long_paragraph_does_not_wait_for_its_end() -> None:
    stream = MarkdownStream(40)
    rows = stream.feed("A paragraph **of many words** that goes on " + "and on " * 40)
    assert len(rows) >= 6
    assert len(stream.tail()) <= 2


def test_code_is_committed_line_by_line_and_a_table_at_its_end() -> None:
    stream = MarkdownStream(40)
    assert [plain(row) for row in stream.feed("```py\nx = 1\ny = ")] == ["  x = 1"]
    assert [plain(row) for row in stream.tail()] == ["  y = "]
    stream = MarkdownStream(40)
    assert stream.feed("| a | b |\n|--:|---|\n| 1 | 2 |\n") == []
    assert [plain(row) for row in stream.tail()] == ["a  b", "━  ━", "1  2"]
    assert [plain(row) for row in stream.feed("\nafter it")] == ["a  b", "━  ━", "1  2"]


@pytest.mark.parametrize("signs", ["-", "--", "=", "1", "1.", "*", "#", "`", "``", "|", "> ", "- [", "- [x"])
def test_signs_are_not_shown_before_it_is_known_what_they_are(signs: str) -> None:
    stream = MarkdownStream(40)
    stream.feed(f"These are the items:\n{signs}")
    assert [(plain(row), {span.style for span in row}) for row in stream.tail()] == [("These are the items:", {""})]


def test_a_long_table_does_not_wait_for_its_end() -> None:
    stream = MarkdownStream(40)
    rows = stream.feed("| a | b |\n|---|---|\n" + "| x | yy |\n" * 300)
    assert len(rows) == 302
    assert stream.tail() == []


def test_a_word_in_a_table_is_cut_only_where_it_must_be() -> None:
    table = "| file | words | state | where |\n|---|---|---|---|\n"
    table += f"| a.py | {'some words ' * 12} | unimplemented | https://example.org/{'x' * 60} |"
    for columns in (50, 60, 80):
        shown = "\n".join(plain(row) for row in render(table, columns))
        assert "unimplemented" in shown
        assert all(columns_of(row) <= columns for row in render(table, columns))


def test_a_narrow_table_becomes_a_list() -> None:
    shown = [plain(row) for row in render("| name | lines | verdict |\n|---|---|---|\n| calc.py | 27 | good |\n| b | 1 | bad |\n", 16)]
    assert shown == ["name: calc.py", "lines: 27", "verdict: good", "", "name: b", "lines: 1", "verdict: bad"]


def test_a_change_of_width_holds_for_what_comes() -> None:
    stream = MarkdownStream(20)
    narrow = stream.feed("word " * 10)
    stream.columns = 60
    assert max(map(columns_of, narrow)) <= 20
    assert [plain(row) for row in stream.feed("word " * 20)][-1] == ("word " * 12).strip()


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: str(path.relative_to(ROOT)))
def test_our_own_pages_have_the_blocks_that_markdown_it_reads(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ours(text) == theirs(text)


def test_the_corpus_is_worth_reading() -> None:
    blocks = [block for path in CORPUS for block in theirs(path.read_text(encoding="utf-8"))]
    assert len(blocks) > 1_000
    assert {block.kind for block in blocks} >= {"text", "heading", "code", "table"}
    without_chinese = EVERYTHING.replace("**“强调”**", "强调")
    assert ours(without_chinese) == theirs(without_chinese)


DIFFERENCES = {
    "its rows are on the screen when the line under it comes": "one  \ntwo\n===",
    "what a reference means may come later than it, and nothing is hidden": "see [it][1]\n\n[1]: https://example.org",
    "an empty item and an empty line: the next indented line is still the item's": "-\n\n  text",
    "a table begins where its first line stands, in no list": "- item\n| 1 | 2 |",
    "cells beyond the last column are kept in it": "| a | b |\n|---|---|\n| 1 | 2 | 3 |",
    "a line break is one": "one<br>two",
    "a tag alone on a line is text, and shown": '<a href="x">\n*y*\n</a>',
    "Chinese has no blanks beside its emphasis": "前**“强调”**后",
    "only a bare `|` at the start of a line says that it may be a table in a paragraph": "text\na | b\n--|--\n1 | 2",
}


@pytest.mark.parametrize("why", DIFFERENCES)
def test_what_we_read_differently_is_listed(why: str) -> None:
    """Each on purpose. One that is gone is taken off the list, and out of the decision record."""
    assert ours(DIFFERENCES[why]) != theirs(DIFFERENCES[why])


HOSTILE = {
    "stars": "*a ",
    "runs": "***a***b",
    "brackets": "[",
    "links": "[a](",
    "backticks": "`a",
    "tags": "<a ",
    "escapes": "\x1b[31m\x07",
    "words": "word ",
    "one word": "x",
    "Chinese": "汉字",
    "joined": "👩\u200d",
    "marks": "e\u0301\u0301",
    "directions": "\u202e\u200b",
    "quotes": "> ",
    "lists": "* ",
    "fences": "```\n",
    "pipes": "|",
    "rows": "| a | b |\n|--|--|\n",
    "nested": "- a\n  ",
    "blanks": " ",
    "tabs": "\t",
    "lines": " \n",
    "entities": "&a",
    "addresses": "http://))",
    "html": "<div>\n",
    "code": "    x\n\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_text_and_not_faster(name: str) -> None:
    def seconds(chars: int, size: int) -> float:
        text = HOSTILE[name] * (chars // len(HOSTILE[name]))
        start = time.process_time()
        stream = MarkdownStream(79)
        for at in range(0, len(text), size):
            stream.feed(text[at : at + size])
        stream.tail()
        stream.finish()
        return time.process_time() - start

    for size in (20, 1_000_000):
        most = 40 * max(seconds(2_000, size), 0.01)
        assert any(seconds(16_000, size) < most for _ in range(3))  # a busy machine may be slow once


def test_ten_thousand_lists_in_each_other() -> None:
    assert plain(render("* " * 10_000 + "a", 60)[0]).startswith("- - - - - - - - - - - - - - - - * * *")
    deep = "\n".join(" " * (2 * depth) + "- a" for depth in range(300))
    assert all(columns_of(row) <= 40 for row in render(deep, 40))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2. a\n3. b\n3. c", ["2. a", "3. b", "4. c"]),
        ("- a\n\n- b", ["- a", "", "- b"]),
        ("- a\n- b\n\ntext", ["- a", "- b", "", "text"]),
        ("text:\n- a", ["text:", "- a"]),
        ("# a\n\ntext\n## b", ["a", "text", "", "b"]),
        ("> a\n>\n> b", ["│ a", "│", "│ b"]),
        ("```\na\n\n\nb\n```\nc", ["  a", "", "", "  b", "c"]),
        ("-\n- a", ["- ", "- a"]),
        ("a\\\nb", ["a", "b"]),
        ("&lt;b&gt; &copy; &nope;", ["<b> © &nope;"]),
        ("a&#x202e;b&#10;c&#x3164;d&#0;e&#x41;", ["a�b�c�d�eA"]),
        ("<https://a.b> <i>x</i>", ["https://a.b <i>x</i>"]),
        ("[a](a) [b](<c d>) ![pic](x.png)", ["a b (c d) pic (x.png)"]),
        ("第一行\n第二行", ["第一行第二行"]),
        ("a\u202eb\x1b[2J\x9b", ["a<U+202E>b␛[2J<U+009B>"]),
    ],
)
def test_what_is_shown(text: str, shown: list[str]) -> None:
    assert [plain(row) for row in render(text, 60)] == shown


def test_code_that_is_continued_has_a_mark() -> None:
    assert [plain(row) for row in render("```\nlong_name = other_name + one_more\n```", 20)] == [
        "  long_name = ",
        "↪ other_name + ",
        "↪ one_more",
    ]


def test_an_answer_costs_next_to_nothing() -> None:
    """7 kB in 300 pieces, a frame for each: 0.15 s of processor time is the aim (benchmarks measure it); this finds what multiplies it."""
    text = (EVERYTHING * 12)[:7_000]
    theme = Theme("dark")

    def seconds() -> float:
        start = time.process_time()
        stream = MarkdownStream(79)
        for piece in pieces(text, [len(text) // 300 + 1]):
            for row in [*stream.feed(piece), *stream.tail()[-8:]]:
                theme.paint(row)
        stream.finish()
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < 5
