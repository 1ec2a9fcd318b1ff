"""Markdown as HTML, safe whatever a model wrote: every piece of text is escaped, and only tags from here are written.

It knows what models use: headings, lists, quotations, fenced code, tables, rules, code spans, bold, italic, struck text and links. A link
is shown with its address and leads nowhere: what is read here may be hostile. Anything else stays the text it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Escape = Callable[[str], str]

MOST_CHARS = 200_000
"""A longer text is not rendered."""
_MOST_DEPTH = 6
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]+(?=\S)")
_ITEM = re.compile(r"([ \t]*)(?:([-*+])|(\d{1,9})[.)])[ \t]+(?=\S)")
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_SPAN = re.compile(
    r"``(?P<double>[^\n]{1,300}?)``|`(?P<code>[^`\n]{1,300})`"
    r"|\*\*(?=\S)(?P<bold>[^\n]{1,300}?)(?<=\S)\*\*|(?<![\w*])\*(?=[^\s*])(?P<italic>[^*\n]{1,300}?)(?<=\S)\*(?![\w*])"
    r"|~~(?=\S)(?P<struck>[^~\n]{1,300})(?<=\S)~~|(?<!!)\[(?P<title>[^\[\]\n]{1,300})\]\((?P<address>[^()\s<>]{1,1000})\)"
)
_TAGS = {"double": "code", "code": "code", "bold": "strong", "italic": "em", "struck": "del"}


def markdown_to_html(text: str, escape: Escape) -> str:
    """`escape` makes text safe between tags, and must leave no `<` and no `&` of its own."""
    if len(text) > MOST_CHARS:
        return f"<p>{escape(text)}</p>"
    return _Renderer(escape).blocks(text.replace("\r\n", "\n").split("\n"), 0)


class _Renderer:
    def __init__(self, escape: Escape) -> None:
        self._escape = escape

    def blocks(self, lines: list[str], depth: int) -> str:
        if depth > _MOST_DEPTH:
            return self._paragraph(lines)
        made: list[str] = []
        at = 0
        while at < len(lines):
            block, at = self._block(lines, at, depth)
            made.append(block)
        return "".join(made)

    def _block(self, lines: list[str], at: int, depth: int) -> tuple[str, int]:
        """The block that begins at this line, and where the next one begins."""
        first = lines[at]
        if not first.strip():
            return "", at + 1
        if found := _FENCE.fullmatch(first):
            return self._fenced(found[1], found[2], lines, at + 1)
        if found := _HEADING.match(first):
            level = min(len(found[1]) + 2, 6)  # the page itself has h1 and h2
            return f"<h{level}>{self._inline(first[found.end() :])}</h{level}>", at + 1
        if _RULE.fullmatch(first):
            return "<hr>", at + 1
        if _is_quote(first):
            end = _end_of(lines, at, _is_quote)
            return f"<blockquote>{self.blocks([_unquote(line) for line in lines[at:end]], depth + 1)}</blockquote>", end
        if _ITEM.match(first):
            return self._list(lines, at, depth)
        if "|" in first and at + 1 < len(lines) and _is_table_rule(lines[at + 1]):
            end = _end_of(lines, at + 2, lambda line: "|" in line)
            return self._table([first, *lines[at + 2 : end]]), end
        end = _end_of(lines, at + 1, lambda line: bool(line.strip()) and not _begins_block(line))
        return self._paragraph(lines[at:end]), end

    def _paragraph(self, lines: list[str]) -> str:
        text = "\n".join(lines)
        return f"<p>{self._inline(text)}</p>"

    def _fenced(self, fence: str, language: str, lines: list[str], at: int) -> tuple[str, int]:
        """Up to the closing fence, or to the end: an answer may have been cut."""
        end = _end_of(lines, at, lambda line: not _closes(line, fence))
        label = f"<small>{self._escape(language.strip())}</small>" if language.strip() else ""
        code = "\n".join(lines[at:end])
        return f'{label}<div class="text code">{self._escape(code)}</div>', end + 1  # not <pre>: a browser drops the first newline there

    def _list(self, lines: list[str], at: int, depth: int) -> tuple[str, int]:
        """Items of one kind; what is indented below an item belongs to it."""
        tag = _list_tag(lines[at])
        items: list[str] = []
        while at < len(lines) and (found := _ITEM.match(lines[at])) and _list_tag(lines[at]) == tag:
            indent = len(found[1]) + 2
            end = _end_of(lines, at + 1, lambda line, least=indent: not line.strip() or _indent_of(line) >= least)
            inner = [lines[at][found.end() :], *(line[min(_indent_of(line), indent) :] for line in lines[at + 1 : end])]
            number = f' value="{int(found[3])}"' if found[3] else ""
            items.append(f"<li{number}>{self.blocks(inner, depth + 1)}</li>")
            at = end
        return f"<{tag}>{''.join(items)}</{tag}>", at

    def _table(self, lines: list[str]) -> str:
        head, *rows = [[self._inline(cell) for cell in _cells(line)] for line in lines]
        shown = [f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>"]
        shown += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
        return f"<table>{''.join(shown)}</table>"

    def _inline(self, text: str, depth: int = 0) -> str:
        pieces: list[str] = []
        position = 0
        for found in _SPAN.finditer(text) if depth < 3 else ():
            pieces.append(self._escape(text[position : found.start()]))
            pieces.append(self._span(found, depth + 1))
            position = found.end()
        return "".join([*pieces, self._escape(text[position:])])

    def _span(self, found: re.Match[str], depth: int) -> str:
        if found["address"]:
            return f"{self._inline(found['title'], depth)} <small>({self._escape(found['address'])})</small>"
        kind = found.lastgroup or "code"
        tag = _TAGS[kind]
        inner = self._escape(found[kind]) if tag == "code" else self._inline(found[kind], depth)
        return f"<{tag}>{inner}</{tag}>"


# --- lines


def _end_of(lines: list[str], at: int, holds: Callable[[str], bool]) -> int:
    """The first line from here on that does not belong to it any more."""
    while at < len(lines) and holds(lines[at]):
        at += 1
    return at


def _list_tag(line: str) -> str:
    found = _ITEM.match(line)
    return "" if found is None else "ol" if found[3] else "ul"


def _begins_block(line: str) -> bool:
    return bool(_FENCE.fullmatch(line) or _HEADING.match(line) or _RULE.fullmatch(line) or _is_quote(line) or _ITEM.match(line))


def _is_quote(line: str) -> bool:
    return line.lstrip(" \t").startswith(">")


def _unquote(line: str) -> str:
    return line.lstrip(" \t")[1:].removeprefix(" ")


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return stripped.startswith(fence) and not stripped.strip(fence[0])


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _is_table_rule(line: str) -> bool:
    return "|" in line and "-" in line and not line.strip("|:- \t")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
