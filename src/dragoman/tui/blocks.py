"""Markdown's blocks, line by line: what a line goes on with, what it opens, and what it is. Pure: `tui/markdown.py` keeps the state.

CommonMark's rules, and GitHub's tables and tasks. Where a rule would need text that is on the screen already to look different, it is left
out; docs/inside/decisions/014-markdown-in-the-terminal.md lists these.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

MOST_DEPTH = 16
"""Quotes and lists inside each other. What is nested deeper is text."""

Kind = Literal["blank", "text", "heading", "rule", "fence", "indented", "html", "underline", "delimiter", "pipe"]

_ITEM = re.compile(r"( {0,3})([-*+]|(\d{1,9})([.)]))(?: +|$)")
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ ]*([^`]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?: +|$)")
_RULE = re.compile(r" {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+) *$")
_DELIMITER = re.compile(r" {0,3}\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$")
_HTML = re.compile(
    r" {0,3}<(?:!--|\?|![A-Z]|/?(?:address|article|aside|blockquote|body|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure"
    r"|footer|form|h[1-6]|head|header|hr|html|iframe|li|link|main|menu|nav|ol|p|pre|script|section|style|summary|table|tbody|td|tfoot|th|thead"
    r"|title|tr|ul)(?:[\s/>]|$))",
    re.IGNORECASE,
)
_LEADING = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+|>)*[ \t]*")
_TEXT = re.compile(  # a line that is text, however it goes on
    r"(?: |>|[-*+] |\d{1,9}[.)] )*"
    r"(?:[^\s\-*+>#=_~`<|:\d\[]|\[...|\d{1,9}[^\d.)]|\d{10}|\d{1,9}[.)][^ ]|[-*+][^ \-*+_:|]|\*\*[^* ]|#{1,6}[^# ]|#{7}|_[^_ ]|__[^_ ]|"
    r"~[^~]|~~[^~]|``?[^`])"
)


_SIGNS = re.compile(r"[ \t>]*(?:[-=*+_#`~|: ]+|\d{1,9}[.)]?[ \t]*|\[.?\]?|[-*+] \[.?\]?)?$")


class Quote(NamedTuple):
    """`> `"""

    def strip(self, text: str) -> str | None:
        """The text inside of it, or None if the line is not in it."""
        bare = text.lstrip(" ")
        if not bare.startswith(">") or len(text) - len(bare) > 3:
            return None
        return bare[1:].removeprefix(" ")


class ListItem(NamedTuple):
    """One of a list."""

    indent: int
    """Columns before what belongs to it."""
    sign: str
    """What marks the items of the same list: `-`, `*`, `+`, `.` or `)`."""
    number: int = -1
    """-1: the list is not numbered."""

    @property
    def marker(self) -> str:
        return "- " if self.number < 0 else f"{self.number}{self.sign} "

    def strip(self, text: str) -> str | None:
        if not text.strip(" "):
            return ""
        return text[self.indent :] if text[: self.indent].strip(" ") == "" and len(text) > self.indent else None


Container = Quote | ListItem


class Start(NamedTuple):
    """What a line is."""

    matched: int
    """How many of the open containers it goes on in."""
    opened: tuple[Container, ...]
    kind: Kind
    rest: str
    """Its text, without the marks of its containers."""


def read_start(line: str, containers: tuple[Container, ...], *, in_paragraph: bool, is_heading_possible: bool, may_delimit: bool) -> Start:
    """Reads the start of a line. `in_paragraph`: a paragraph is open, which not everything interrupts. `is_heading_possible`: a line under
    it can make a heading of it. `may_delimit`: the line before may be the head of a table."""
    rest, matched = strip_containers(line, containers)
    goes_on = matched == len(containers)
    opened: list[Container] = []
    while len(opened) + matched < MOST_DEPTH:
        if goes_on and not opened and may_delimit and "|" in rest and _DELIMITER.match(rest):
            return Start(matched, (), "delimiter", rest)
        found = _container(rest, interrupts=in_paragraph and goes_on and not opened, may_underline=is_heading_possible)
        if found is None:
            break
        opened.append(found[0])
        rest = found[1]
    is_paragraph = in_paragraph and not opened
    return Start(matched, tuple(opened), _kind(rest, is_paragraph, is_paragraph and goes_on and is_heading_possible), rest)


def strip_containers(line: str, containers: tuple[Container, ...]) -> tuple[str, int]:
    """What is left of a line without the marks of the containers it goes on in, and how many those are."""
    matched = 0
    for container in containers:
        inside = container.strip(line)
        if inside is None:
            break
        line, matched = inside, matched + 1
    return line, matched


def is_text(line: str) -> bool:
    """Whether a line of which only the beginning is there can be nothing but text."""
    return _TEXT.match(line) is not None


def is_undecided(line: str) -> bool:
    """Whether of a line only signs are there: `-` is a list, a rule, or makes a heading of the line above, until more comes."""
    return len(line) < 80 and _SIGNS.match(line) is not None and not is_text(expand_leading(line))


def expand_leading(line: str) -> str:
    """Tabs as blanks where they are indents."""
    if "\t" not in line:
        return line
    found = _LEADING.match(line)
    end = found.end() if found else 0
    return line[:end].expandtabs(4) + line[end:]


def read_fence(rest: str) -> tuple[int, str, str]:
    """Its indent, its sign and its language."""
    found = _FENCE.match(rest)
    assert found is not None
    return len(found.group(1)), found.group(2), found.group(3).strip().partition(" ")[0].strip("{.}")


def closes_fence(text: str, sign: str) -> bool:
    bare = text.strip(" ")
    return bare.startswith(sign) and not bare.strip(sign[0]) and len(text) - len(text.lstrip(" ")) < 4


def read_heading(rest: str) -> tuple[int, str]:
    """Its level and its text."""
    found = _HEADING.match(rest)
    assert found is not None
    text = rest[found.end() :].rstrip(" ")
    bare = text.rstrip("#")
    return len(found.group(1)), bare.rstrip(" ") if not bare or bare.endswith(" ") else text


def split_cells(row: str) -> list[str]:
    """The cells of a table's row."""
    row = row.strip(" ").removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip(" ").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)]


def _container(rest: str, *, interrupts: bool, may_underline: bool) -> tuple[Container, str] | None:
    bare = rest.lstrip(" ")
    if not bare or len(rest) - len(bare) > 3:
        return None
    if bare[0] == ">":
        return Quote(), bare[1:].removeprefix(" ")
    found = _ITEM.match(rest)
    if found is None or _RULE.match(rest) or (interrupts and may_underline and _UNDERLINE.match(rest)):
        return None
    number = int(found.group(3)) if found.group(3) else -1
    content = rest[found.end() :]
    if interrupts and (not content or number not in (-1, 1)):
        return None
    marker_end = found.end(2)
    blanks = found.end() - marker_end
    if not content:
        return ListItem(marker_end + 1, found.group(4) or found.group(2), number), ""
    if blanks > 4:  # code in an item
        return ListItem(marker_end + 1, found.group(4) or found.group(2), number), rest[marker_end + 1 :]
    return ListItem(found.end(), found.group(4) or found.group(2), number), content


def _kind(rest: str, in_paragraph: bool, may_underline: bool) -> Kind:
    bare = rest.lstrip(" ")
    if not bare:
        return "blank"
    if len(rest) - len(bare) > 3:
        return "text" if in_paragraph else "indented"
    match bare[0]:
        case "`" | "~" if _FENCE.match(rest):
            return "fence"
        case "#" if _HEADING.match(rest):
            return "heading"
        case "=" | "-" if may_underline and _UNDERLINE.match(rest):
            return "underline"
        case "-" | "*" | "_" if _RULE.match(rest):
            return "rule"
        case "<" if _HTML.match(rest):
            return "html"
        case "|":
            return "pipe"
        case _:
            return "text"
