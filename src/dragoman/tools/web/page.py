"""HTML to Markdown: headings, lists, links, tables and code; scripts, styles and hidden elements are left out."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from dragoman.tools.web.markup import EndTag, StartTag, TextToken, tokenize
from dragoman.tools.web.page_attributes import absolute, is_hidden, link
from dragoman.tools.worker import Stop, never_stop

MAX_CHARS = 2_000_000
"""Reading stops after this much Markdown."""
MAX_TOKENS = 1_000_000
MAX_OPEN = 1_000
"""Elements nested deeper are not opened; their text is. Browsers stop at 512."""
_MAX_COLUMNS = 40
_MAX_INDENT = 8
"""Lists and quotes nested deeper are not indented further."""
_STEP = 2_000
_LOOK_BACK = 100

_SPACE = re.compile(r"[ \t\n\r\f]+")
_VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
}  # fmt: skip
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend",
    "li", "main", "menu", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead",
    "title", "tr", "ul",
}  # fmt: skip
_NO_CELLS = {
    "blockquote", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "pre", "table", "ul",
}  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_EMPHASIS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_KNOWN = _BLOCKS | _EMPHASIS.keys() | _CODE | {"a", "font", "span"}
# An open element is closed by a start tag of its kind, unless one of the other elements is open between them.
_SIBLINGS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu", "dir"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
}


class WebPage(msgspec.Struct, frozen=True):
    title: str
    markdown: str
    is_cut: bool = False


def read_page(html: str, url: str = "", stop: Stop = never_stop) -> WebPage:
    """Convert a page to Markdown, with absolute links. Time and memory are linear in the size of the page."""
    writer = _Writer(url)
    for number, token in enumerate(tokenize(html)):
        if number % _STEP == 0:
            stop()
            if writer.chars > MAX_CHARS or number >= MAX_TOKENS:
                writer.is_cut = True
                break
        match token:
            case TextToken(text):
                writer.add_text(text)
            case StartTag(name, attributes):
                writer.begin(name, attributes)
            case EndTag(name):
                writer.end(name)
    return writer.page()


class _OpenElement(msgspec.Struct):
    """An element that is still open."""

    name: str
    is_hidden: bool = False
    mark: str = ""
    """The Markdown mark before and after its text."""
    link: str = ""
    at: int = 0
    """Position in the line where it began."""
    line: int = 0
    number: int = 0
    """The number of a numbered list's next item."""


class _Table(msgspec.Struct):
    rows: list[list[str]]
    is_layout: bool = False
    """A layout table: its cells contain tables, headings, lists or code, so they are written as paragraphs."""


class _Writer:
    def __init__(self, url: str) -> None:
        self._base = url
        self._open: list[_OpenElement] = []
        self._names: Counter[str] = Counter()
        self._unopened: Counter[str] = Counter()
        """Elements that were nested too deep, by name: their end tags end nothing."""
        self._hidden = 0
        self._title: list[str] = []
        self._blocks: list[str] = []
        self._line: list[str] = []
        """The pieces of the paragraph being written."""
        self._lines = 0
        self._prefix = ""
        """Prefix of the next paragraph: `## `, `- `."""
        self._pre: list[str] | None = None
        self._tables: list[_Table] = []
        """The open tables, innermost last."""
        self._marks: Counter[str] = Counter()
        self.chars = 0
        self.is_cut = False

    def page(self) -> WebPage:
        while self._open:
            self._pop()
        self._flush()
        lines: list[str] = []
        for block in self._blocks:
            if block.strip("> ") or (lines and lines[-1].strip("> ")):
                lines.append(block)
            elif lines:
                lines[-1] = min(block, lines[-1], key=len)  # one blank line is enough
        markdown = "\n".join(lines).rstrip("\n")
        return WebPage(_join_words(self._title), markdown[:MAX_CHARS], self.is_cut or len(markdown) > MAX_CHARS)

    # --- tokens

    def add_text(self, text: str) -> None:
        if self._open and self._open[-1].name == "title":
            self._title.append(text)
        elif self._pre is not None and not self._hidden:
            self._pre.append(text)
            self.chars += len(text)
        elif not self._hidden:
            self._line.append(text)
            self.chars += len(text)

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        if name == "base" and "href" in attributes:
            self._base = absolute(self._base, attributes["href"]) or self._base
        if name in _VOID:
            if not self._hidden and not is_hidden(name, attributes):
                self._add_void(name, attributes)
            return
        self._close_implied(name)
        element = _OpenElement(name, is_hidden(name, attributes))
        if len(self._open) >= MAX_OPEN and (self._hidden or not element.is_hidden):
            if name in _KNOWN:
                self._unopened[name] += 1
            return
        self._open.append(element)
        self._names[name] += 1
        self._hidden += element.is_hidden
        if not self._hidden:
            self._open_element(element, attributes)

    def end(self, name: str) -> None:
        if name == "br":
            self.begin("br", {})
        if self._unopened[name]:
            self._unopened[name] -= 1
            return
        if not self._names[name]:
            return
        while self._open[-1].name != name:
            self._pop()
        self._pop()

    def _close_implied(self, name: str) -> None:
        if name in _BLOCKS and self._names["p"] and self._pre is None:
            self._close_near({"p"}, {"table", "td", "th", "li", "div", "section", "article", "blockquote", "body"})
        if (siblings := _SIBLINGS.get(name)) is not None:
            self._close_near(*siblings)
        if name == "body":
            self._close_near({"head"}, set())

    def _close_near(self, names: frozenset[str] | set[str], between: frozenset[str] | set[str]) -> None:
        for element in reversed(self._open[-_LOOK_BACK:]):
            if element.name in names:
                self.end(element.name)
                return
            if element.name in between:
                return

    # --- elements

    def _open_element(self, element: _OpenElement, attributes: dict[str, str]) -> None:
        name = element.name
        if name in _NO_CELLS and self._pre is None and self._tables:
            self._convert_to_layout(self._tables[-1])
        if name in _BLOCKS and self._pre is None:
            self._flush()
        element.at, element.line = len(self._line), self._lines
        if self._pre is not None:
            return
        if name in _HEADINGS:
            self._prefix = f"{_HEADINGS[name]} "
        elif name == "li":
            self._prefix = self._bullet()
        elif name == "ol":
            start = attributes.get("start", "")
            element.number = int(start) if start.isascii() and start.isdecimal() and len(start) < 8 else 1
        elif name == "pre":
            self._pre = []
        elif name == "table":
            self._tables.append(_Table([]))
        elif name == "tr" and self._tables:
            self._tables[-1].rows.append([])
        elif name == "a":
            self._mark(element, "[", link(self._base, attributes.get("href", "")))
        elif name in _EMPHASIS or name in _CODE:
            self._mark(element, _EMPHASIS.get(name, "`"))

    def _mark(self, element: _OpenElement, mark: str, link: str = "") -> None:
        """Nested marks of the same kind are ignored."""
        if not self._marks[mark] and (link or mark != "["):
            element.mark, element.link = mark, link
            self._marks[mark] += 1

    def _pop(self) -> None:
        element = self._open[-1]
        if not self._hidden:
            self._close_element(element)
        self._open.pop()
        self._names[element.name] -= 1
        if not self._names[element.name]:
            del self._names[element.name]  # a page may use any number of names
        self._hidden -= element.is_hidden
        if element.mark:
            self._marks[element.mark] -= 1

    def _close_element(self, element: _OpenElement) -> None:
        name = element.name
        if name == "pre" and self._pre is not None and self._names["pre"] == 1:
            self._write_code()
        elif self._pre is not None:
            return
        elif element.mark:
            self._wrap(element)
        elif name in ("td", "th") and self._in_cells:
            self._write_cell()
        elif name == "table" and self._tables:
            self._write_table()
        elif name in _BLOCKS:
            self._flush()

    def _add_void(self, name: str, attributes: dict[str, str]) -> None:
        if name == "br":
            if self._pre is not None:
                self._pre.append("\n")
            else:
                self._line.append("\v")
        elif name == "hr" and self._pre is None:
            self._flush()
            self._blocks += ["", "---", ""]
        elif name == "img" and (alt := _join_words([attributes.get("alt", "")])):
            source = link(self._base, attributes.get("src", ""))
            self.add_text(f"![{alt}]({source})" if source else alt)

    def _wrap(self, element: _OpenElement) -> None:
        """Format the text since the element began as a link, emphasis or code."""
        if element.line != self._lines:  # it spans paragraphs: the text is already written
            self._line += [f" ({element.link})"] if element.link else []
            return
        text = "".join(self._line[element.at :])
        inner = _SPACE.sub(" ", text.replace("\v", " ")).strip()
        if not inner:
            return
        before, after = " " if text[0].isspace() else "", " " if text[-1].isspace() else ""
        shown = f"[{inner}]({element.link})" if element.link else f"{element.mark}{inner}{element.mark}"
        self._line[element.at :] = [before, shown, after]

    # --- paragraphs

    def _flush(self) -> None:
        """End the paragraph and write it."""
        if self._in_cells:
            self._line.append("\v")
            return
        text = _paragraph(self._line)
        self._line.clear()
        self._lines += 1
        if not text:
            return
        quoted, indent = self._margin()
        prefix, self._prefix = self._prefix, ""
        lines = text.split("\n")
        is_item = prefix.endswith((". ", "- "))
        first = indent[: -len(_ITEM)] if is_item and indent else indent
        margin = f"{quoted}{indent}"
        if not is_item or not self._blocks or not _is_item(self._blocks[-1]):
            self._blocks.append(quoted.rstrip())
        self._blocks.append(f"{quoted}{first}{prefix}{lines[0]}")
        self._blocks += [f"{margin}{line}" for line in lines[1:]]
        if not is_item:
            self._blocks.append(quoted.rstrip())

    def _margin(self) -> tuple[str, str]:
        quotes = min(self._names["blockquote"], _MAX_INDENT)
        items = min(self._names["li"] + self._names["dd"], _MAX_INDENT)
        return "> " * quotes, _ITEM * items

    def _bullet(self) -> str:
        for element in reversed(self._open[-_LOOK_BACK:-1]):
            if element.name == "ol":
                element.number += 1
                return f"{element.number - 1}. "
            if element.name in ("ul", "menu", "dir"):
                break
        return "- "

    def _write_code(self) -> None:
        code = "".join(self._pre or ()).replace("\v", "\n").strip("\n")
        self._pre = None
        if not code.strip():
            return
        self._flush()
        quoted, indent = self._margin()
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`{3,}", code)), default=0))
        lines = "\n".join(f"{quoted}{indent}{line}" for line in (fence, *code.split("\n"), fence))
        self._blocks += [quoted.rstrip(), lines, quoted.rstrip()]

    # --- tables

    @property
    def _in_cells(self) -> bool:
        return bool(self._tables) and not self._tables[-1].is_layout

    def _write_cell(self) -> None:
        text = _paragraph(self._line).replace("|", "\\|").replace("\n", " ")
        self._line.clear()
        self._lines += 1
        rows = self._tables[-1].rows
        if not rows:
            rows.append([])
        rows[-1].append(text)

    def _convert_to_layout(self, table: _Table) -> None:
        if table.is_layout:
            return
        table.is_layout = True
        for text in (cell for row in table.rows for cell in row if cell):
            self._blocks += ["", text, ""]
        table.rows.clear()

    def _write_table(self) -> None:
        if self._in_cells and "".join(self._line).strip():
            self._write_cell()
        table = self._tables.pop()
        rows = [row for row in table.rows if any(row)]
        if table.is_layout or not rows:
            self._flush()
            return
        if max(map(len, rows)) == 1:
            table.rows = rows
            self._convert_to_layout(table)
            return
        width = min(max(map(len, rows)), _MAX_COLUMNS)
        lines = [f"| {' | '.join((row + [''] * width)[:width])} |" for row in rows]
        lines.insert(1, f"|{' --- |' * width}")
        quoted, indent = self._margin()
        self._blocks += [quoted.rstrip(), *(f"{quoted}{indent}{line}" for line in lines), quoted.rstrip()]


_ITEM = "  "


def _is_item(line: str) -> bool:
    return re.match(r"[> ]*(?:- |\d+\. )", line) is not None


def _paragraph(pieces: list[str]) -> str:
    """Collapse white space to single spaces; keep the page's explicit line breaks."""
    lines = (_SPACE.sub(" ", line).strip() for line in "".join(pieces).split("\v"))
    return "\n".join(line for line in lines if line)


def _join_words(pieces: list[str]) -> str:
    return " ".join("".join(pieces).split())
