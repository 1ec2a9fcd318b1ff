"""HTML as Markdown: what a reader would see, on real pages and on hostile ones."""

from __future__ import annotations

import html as entities
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.web import page as page_module
from dragoman.tools.web.markup import tokenize
from dragoman.tools.web.page import read_page
from dragoman.tools.worker import Stopped

BASE = "https://docs.example/guide/index.html"


def markdown(html: str) -> str:
    return read_page(html, BASE).markdown


# --- what becomes of each element ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>One</h1><h3>Three</h3>text", "# One\n\n### Three\n\ntext"),
        ("<p>one<p>two", "one\n\ntwo"),
        ("<p>a <b>b <i>c</i></b> <code>d</code></p>", "a **b *c*** `d`"),
        ("one<br>two", "one\ntwo"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ol><li>a<p>more</ol>", "1. a\n\n  more"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
        ("<pre>x\n  y\n\n\nz</pre>", "```\nx\n  y\n\n\nz\n```"),
        ("<pre>``` fence</pre>", "````\n``` fence\n````"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2|3</table>", "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |"),
        ("<table><tr><td>only</table>", "only"),
        ("<table><tr><td><h2>Head</h2><p>text<td>side</table>", "## Head\n\ntext\n\nside"),
        ("<table><tr><td>x<table><tr><td>a<td>b</table></table>", "x\n\n| a | b |\n| --- | --- |"),
        ("<dl><dt>word<dd>what it means</dl>", "word\n\n  what it means"),
        ("  many \n\t spaces  ", "many spaces"),
        ("&lt;b&gt; &amp; &eacute; &#x1F600; &nosuch;", "<b> & é 😀 &nosuch;"),
        ("a < b and c > d", "a < b and c > d"),
        ("<B>upper</B> <p CLASS=x>case", "**upper**\n\ncase"),
        ("<em></em><b> </b>x", "x"),
    ],
)
def test_elements(html: str, expected: str) -> None:
    assert markdown(html) == expected


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("/a", "[x](https://docs.example/a)"),
        ("b?c#d", "[x](https://docs.example/guide/b?c#d)"),
        ("//other.example/", "[x](https://other.example/)"),
        ("a b(c)", "[x](https://docs.example/guide/a%20b%28c%29)"),
        ("mailto:a@b.example", "[x](mailto:a@b.example)"),
        ("#here", "x"),
        ("javascript:alert(1)", "x"),
        ("JaVaScRiPt:alert(1)", "x"),
        ("data:text/html,x", "x"),
        ("file:///etc/passwd", "x"),
        ("http://[", "x"),
        ("", "x"),
        ("x" * 9_000, "x"),
    ],
)
def test_links_are_absolute_or_no_links(href: str, expected: str) -> None:
    assert markdown(f'<a href="{href}">x</a>') == expected


def test_base_moves_the_links() -> None:
    assert markdown("<base href='/other/'><a href=a>x</a>") == "[x](https://docs.example/other/a)"


def test_images_are_named_by_their_alternative_text() -> None:
    assert markdown("<img src=a.png alt='A chart'><img src=b.png><img alt='' src=c.png>") == "![A chart](https://docs.example/guide/a.png)"


def test_the_title_stands_apart() -> None:
    page = read_page("<head><title>A &amp;\n B</title><meta charset=utf-8></head><body>text", BASE)
    assert (page.title, page.markdown) == ("A & B", "text")


@pytest.mark.parametrize(
    "html",
    [
        "<script>HIDDEN</script>", "<SCRIPT>HIDDEN</SCRIPT >", "<script>'</' + HIDDEN</script>", "<style>HIDDEN</style>",
        "<template>HIDDEN</template>",
        "<!-- HIDDEN -->", "<!-- > HIDDEN -->", "<![CDATA[HIDDEN]]>", "<?php HIDDEN ?>", "<!DOCTYPE HIDDEN>",
        "<svg><text>HIDDEN</text></svg>",
        "<div hidden>HIDDEN</div>", "<div hidden><div>x</div>HIDDEN</div>", "<p hidden>HIDDEN<p>",
        "<div style='display : none'>HIDDEN</div>",
        "<span style='color:red;visibility:hidden'>HIDDEN</span>", "<span style=font-size:0>HIDDEN</span>",
        "<i style='opacity:0'>HIDDEN</i>",
        "<div aria-hidden=true>HIDDEN</div>", "<iframe>HIDDEN</iframe>", "<select><option>HIDDEN</select>",
        "<input type=hidden value=HIDDEN>",
        "<a href=x title=HIDDEN></a>", "<ul><li hidden>HIDDEN<li>x</ul>", "<div><p hidden>HIDDEN</div>",
    ],
)  # fmt: skip
def test_what_is_not_seen_is_left_out(html: str) -> None:
    """Scripts, styles and hidden content dropped: also what a page would say to a model behind its reader's back."""
    shown = markdown(f"<p>before</p>{html}<p>after</p>")
    assert "HIDDEN" not in shown
    assert shown.startswith("before")
    assert shown.endswith("after")


@pytest.mark.parametrize("style", ["opacity:0.5", "display:block", "font-size:10px", "opacity: 0.05"])
def test_what_is_seen_is_not(style: str) -> None:
    assert markdown(f"<p style='{style}'>seen") == "seen"


# --- hostile pages ----------------------------------------------------------------------------------------------------------------

HOSTILE = {
    "deep elements": "<div>" * 200_000,
    "deep emphasis": "<b>" * 100_000 + "x",
    "deep links": "<a href=x>" * 50_000 + "x",
    "deep lists": "<ul><li>" * 50_000 + "x",
    "deep quotes": "<blockquote>" * 50_000 + "x",
    "deep tables": "<table><tr><td>" * 30_000 + "x",
    "closing what is not open": "<div>" * 1_000 + "</p></li></td>" * 50_000,
    "comments": "<!--" * 500_000,
    "declarations": "<!x" * 500_000,
    "sections": "<![CDATA[" * 300_000,
    "angles": "<" * 500_000,
    "tags without end": "<a" * 500_000,
    "attributes without end": "<a b='" * 300_000,
    "closings without end": "</" * 500_000,
    "scripts": "<script>" * 200_000,
    "titles": "<title>" * 200_000,
    "references": "&" * 500_000 + "&#" * 300_000,
    "a long number": "&#" + "9" * 500_000 + ";",
    "a huge attribute": f"<a href='{'x' * 2_000_000}'>y</a>",
    "many attributes": "<a " + " ".join(f"a{number}=1" for number in range(100_000)) + ">y</a>",
    "one long line": "<p>" + "x " * 1_000_000,
    "wide cells": "<table><tr>" + "<td>x" * 20_000,
    "a huge span": "<table><tr><td colspan=1000000000 rowspan=1000000000>x<td>y</table>",
    "backticks": "<pre>" + "```` " * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_read_in_proportion(name: str) -> None:
    """Twice the page, about twice the steps: told by counting tokens and characters, not by a clock. Without it these take minutes."""
    html = HOSTILE[name]
    page = read_page(html, BASE)
    assert len(page.markdown) <= 2 * len(html) + 100
    assert sum(1 for _ in tokenize(html)) <= len(html)


def test_a_page_is_cut_where_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "MAX_CHARS", 1_000)
    page = read_page("<p>word</p>" * 100_000, BASE)
    assert page.is_cut
    assert len(page.markdown) <= 1_000


def test_reading_stops_when_it_is_no_longer_wanted() -> None:
    steps = 0

    def stop() -> None:
        nonlocal steps
        steps += 1
        if steps > 2:
            raise Stopped

    with pytest.raises(Stopped):
        read_page("<p>word" * 100_000, BASE, stop)
    assert steps == 3


PIECES = ["<p>", "</p>", "<b>", "</b>", "<a href='/x'>", "</a>", "<ul>", "<li>", "</ul>", "<table>", "<tr>", "<td>", "</table>",
"<pre>", "</pre>", "text",
          " ", "<div hidden>", "</div>", "<br>", "<h2>", "</h2>", "&amp;", "<!--", "-->", "<script>", "</script>", "<", ">", "'",
          '"', "<blockquote>",
          "<code>", "</code>", "<title>", "</title>", "<th>", "</td>", "<ol>", "</li>", "<hr>", "<img alt=x src=y>"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text())
def test_any_page_is_read(html: str) -> None:
    page = read_page(html, BASE)
    assert page.markdown == page.markdown.strip("\n")


@given(
    st.lists(
        st.sampled_from(
            ["<p>", "</p>", "<div>", "</div>", "<b>", "</b>", "<li>", "<ul>", "</ul>", "<td>", "<tr>", "<table>", "</table>", " "]
        ),
        max_size=40,
    )
)
def test_no_word_is_lost(pieces: list[str]) -> None:
    """Whatever the markup around them, words that are not hidden are all there, in order."""
    html = "".join(f"{piece}w{number}" for number, piece in enumerate(pieces))
    assert re.findall(r"w\d+", markdown(html)) == [f"w{number}" for number in range(len(pieces))]


# --- real pages -------------------------------------------------------------------------------------------------------------------

DOCS = Path("/usr/share/doc")


def real_pages() -> list[Path]:
    """Ten pages of the documentation on this machine: of different packages, as far as there are any."""
    found: list[Path] = []
    for folder in sorted(DOCS.iterdir()) if DOCS.is_dir() else []:
        pages = [path for path in sorted(folder.rglob("*.html"))[:200] if 8_000 < path.stat().st_size < 400_000] if folder.is_dir() else []
        found += pages[:2]
    return found[:10]


@pytest.mark.parametrize("path", real_pages() or [None], ids=lambda path: path.name if path else "none")
def test_real_pages_keep_all_their_words(path: Path | None) -> None:
    if path is None:
        pytest.skip("no HTML documentation is installed here")
    html = path.read_bytes().decode("utf-8", "replace")
    body = re.sub(r"(?is)<head.*?</head>|<script.*?</script>|<style.*?</style>|<svg.*?</svg>|<select.*?</select>|<!--.*?-->", " ", html)
    body = re.sub(r"(?is)<(div|span|p|ul)\b[^>]*display: *none.*?</\1>", " ", body)  # nobody sees it
    words = set(re.findall(r"[^\W_]{2,}", entities.unescape(re.sub(r"(?s)<[^>]+>", " ", body))))
    page = read_page(html, BASE)
    missing = words - set(re.findall(r"[^\W_]{2,}", page.markdown))
    assert len(missing) <= len(words) // 100, sorted(missing)[:20]
    assert not re.search(r"</?(p|div|li|td|span|h[1-6])\b[^>]*>", re.sub(r"(?s)```.*?```|`[^`]*`", "", page.markdown)) or "&lt;" in html
    for target in re.findall(r"\]\(([^)]*)\)", page.markdown):
        assert target.startswith(("http://", "https://", "mailto:")) or target in entities.unescape(html), target


# --- nesting ----------------------------------------------------------------------------------------------------------------------


def peak_bytes(html: str) -> int:
    tracemalloc.start()
    try:
        read_page(html)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("piece", ["<div>", "<table><tr><td>", "<ul><li>", "<div hidden>", "<x{}>", "<x{}></x{}>"])
def test_elements_that_are_never_closed_take_bounded_memory(piece: str) -> None:
    few, many = ("".join(piece.replace("{}", str(number)) for number in range(count)) for count in (5_000, 20_000))
    assert peak_bytes(many) < 2 * peak_bytes(few) + 100_000


def test_what_is_nested_too_deep_is_still_read_and_hidden_as_it_should_be() -> None:
    deep = page_module.MAX_OPEN + 500
    html = f"<h1>Top</h1>{'<div>' * deep}inner <b>bold</b><p hidden>secret <i>too</i></p> shown{'</div>' * deep}<h2>After</h2>"
    text = markdown(html)
    assert text.startswith("# Top")
    assert "inner" in text
    assert "bold" in text
    assert "shown" in text
    assert "secret" not in text
    assert text.endswith("## After")
