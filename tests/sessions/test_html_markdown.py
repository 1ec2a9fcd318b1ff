"""Answers as HTML: readable, complete, and harmless whatever a model wrote."""

from __future__ import annotations

import time
from html import escape
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.sessions.html_markdown import MOST_CHARS, markdown_to_html

TAGS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "div", "small", "table", "tr", "th", "td", "hr"}
TAGS |= {"code", "strong", "em", "del"}
VOID = {"hr"}
MARKS = ["**", "*", "`", "``", "```", "~~~", "~~", "\n", "\n\n", "- ", "1. ", "  ", "> ", "# ", "| ", "|-|-|", "---", "[a](b)", "![i](u)"]
TRAPS = ["<b>", "&amp;", "[x](javascript:alert(1))", "<script>alert(1)</script>", '"onload="', "</div>", "\\", "\x00", "\r\n", "word", "字"]
MARKED = st.lists(st.sampled_from([*MARKS, *TRAPS]), max_size=40).map("".join)


def html(text: str) -> str:
    return markdown_to_html(text, lambda piece: escape(piece, quote=True))


class Parsed(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, "every element that was opened is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("no comment is written")


def letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "<p>plain</p>"),
        ("two\nlines", "<p>two\nlines</p>"),
        ("one\n\ntwo", "<p>one</p><p>two</p>"),
        ("# Title\ntext", "<h3>Title</h3><p>text</p>"),
        ("#hash", "<p>#hash</p>"),
        ("a **bold *and* `code`** b", "<p>a <strong>bold <em>and</em> <code>code</code></strong> b</p>"),
        ("2 * 3 * 4, snake_case_name, a*b*c", "<p>2 * 3 * 4, snake_case_name, a*b*c</p>"),
        ("`**not bold**`", "<p><code>**not bold**</code></p>"),
        ("~~gone~~", "<p><del>gone</del></p>"),
        ("- a\n- b\n  - c", "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></ul></li></ul>"),
        ("3. a\n4. b", '<ol><li value="3"><p>a</p></li><li value="4"><p>b</p></li></ol>'),
        ("> said\n> twice", "<blockquote><p>said\ntwice</p></blockquote>"),
        ("```python\nif a < b:\n    pass\n```\nend", '<small>python</small><div class="text code">if a &lt; b:\n    pass</div><p>end</p>'),
        ("```\ncut off", '<div class="text code">cut off</div>'),
        (
            "| a | b |\n|---|---|\n| 1 | **2** |",
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><strong>2</strong></td></tr></table>",
        ),
        ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
        ("[site](https://example.org)", "<p>site <small>(https://example.org)</small></p>"),
        ("![image](https://example.org/x.png)", "<p>![image](https://example.org/x.png)</p>"),
    ],
)
def test_what_models_write_is_rendered(text: str, shown: str) -> None:
    assert html(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "**<img src=x onerror=alert(1)>**",
        "[x](javascript:alert(1))",
        '[x](https://x/"onmouseover="alert(1))',
        "[<script>](https://example.org)",
        "```<script>\n</div><script>alert(1)</script>\n```",
        "| <script> | b |\n|-|-|\n| </table><script> | c |",
        "# <svg onload=alert(1)>",
        "> <iframe src=//x>",
        '1. <a href="x">',
        "`</code><script>`",
    ],
)
def test_nothing_a_model_writes_becomes_an_element_or_an_attribute(text: str) -> None:
    page = html(text)
    parsed = Parsed(page)
    assert parsed.tags <= TAGS
    assert {name for name, _ in parsed.attributes} <= {"class", "value"}
    assert "<script" not in page
    assert "href" not in page.replace("href=&quot;", "")


@given(MARKED | st.text(max_size=200))
@example("> " * 50 + "deep")
@example("- " * 50 + "deep")
def test_any_text_gives_our_elements_alone_and_loses_no_word(text: str) -> None:
    parsed = Parsed(html(text))
    assert parsed.tags <= TAGS
    assert all((name, value) == ("class", "text code") or (name == "value" and str(value).isdecimal()) for name, value in parsed.attributes)
    assert letters(parsed.text) == letters(text)


@pytest.mark.parametrize(
    "piece", ["**a", "`a", "[a](", "*a ", "> ", "- ", "\n", "|a", "~~a", "```\n", "1. a\n", "  - a\n", "[", "a\n|-|-|\n", "#"]
)
def test_a_hostile_text_takes_no_longer_than_a_second(piece: str) -> None:
    started = time.process_time()
    html(piece * (MOST_CHARS // len(piece)))
    assert time.process_time() - started < 5  # measured under 1 s; the machine may be busy


def test_a_huge_text_is_shown_as_it_is() -> None:
    assert html("**a**" * MOST_CHARS) == f"<p>{'**a**' * MOST_CHARS}</p>"
