"""What blocks a Markdown text has: as ours reads it, and as markdown-it-py does."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from dragoman.tui.blocks import Quote
from dragoman.tui.leaves import Leaf
from dragoman.tui.line import Line, plain
from dragoman.tui.markdown import MarkdownStream

COLUMNS = 100_000
"""So wide that nothing is wrapped."""
_LEFT_OUT = str.maketrans("", "", " \n\t━─\xa0")


class Block(NamedTuple):
    kind: str
    path: tuple[str, ...]
    """The quotes and lists it is in."""
    text: str
    """Without white space and rules."""


class _Traced(MarkdownStream):
    def __init__(self) -> None:
        super().__init__(COLUMNS)
        self.blocks: list[Block] = []
        self._path: tuple[str, ...] = ()

    def _open(self, leaf: Leaf | None, kind: str, *, is_apart: bool = False) -> None:
        super()._open(leaf, kind, is_apart=is_apart)
        self._begin_traced(kind)

    def _begin_traced(self, kind: str) -> None:
        path = tuple(
            "quote" if isinstance(each, Quote) else "list" if each.number < 0 else f"list {each.number}" for each in self._containers
        )
        self.blocks.append(Block(kind, path, ""))

    def _finish_paragraph(self, style: str) -> None:
        self.blocks[-1] = self.blocks[-1]._replace(kind="heading")
        super()._finish_paragraph(style)

    def _emit(self, rows: list[Line], *, is_bare: bool = False) -> None:
        if rows and not self.blocks:
            self._begin_traced("text")
        if rows:
            before = 0 if is_bare else len(self._containers)
            text = "".join(plain(row[before:]) for row in rows).translate(_LEFT_OUT)
            self.blocks[-1] = self.blocks[-1]._replace(text=self.blocks[-1].text + text)
        super()._emit(rows, is_bare=is_bare)


def ours(text: str) -> list[Block]:
    stream = _Traced()
    stream.feed(text)
    stream.finish()
    return [block for block in stream.blocks if block.text or block.kind in ("rule", "code")]


def theirs(text: str) -> list[Block]:
    blocks: list[Block] = []
    path: list[str] = []
    numbers: list[int] = []
    table: list[str] | None = None
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        match token.type:
            case "blockquote_open":
                path.append("quote")
            case "ordered_list_open":
                numbers.append(int(token.attrs.get("start", 1)) - 1)
            case "bullet_list_open":
                numbers.append(-1)
            case "list_item_open":
                numbers[-1] += numbers[-1] >= 0 or token.info != ""
                path.append(f"list {numbers[-1]}" if token.info else "list")
            case "ordered_list_close" | "bullet_list_close":
                numbers.pop()
            case "blockquote_close" | "list_item_close":
                path.pop()
            case "table_open":
                table = []
            case "table_close":
                blocks.append(Block("table", tuple(path), "".join(table or [])))
                table = None
            case "heading_open" | "paragraph_open":
                blocks.append(Block("heading" if token.type == "heading_open" else "text", tuple(path), ""))
            case "inline":
                shown = _inline(token).translate(_LEFT_OUT)
                if table is not None:
                    table.append(shown)
                else:
                    blocks[-1] = blocks[-1]._replace(text=shown)
            case "fence" | "code_block":
                blocks.append(Block("code", tuple(path), token.content.translate(_LEFT_OUT)))
            case "html_block":
                blocks.append(Block("html", tuple(path), token.content.translate(_LEFT_OUT)))
            case "hr":
                blocks.append(Block("rule", tuple(path), ""))
            case _:
                pass
    return [block for block in blocks if block.text or block.kind in ("rule", "code")]


def _inline(token: Token) -> str:
    shown: list[str] = []
    links: list[tuple[int, str]] = []
    for child in token.children or []:
        match child.type:
            case "link_open":
                links.append((len(shown), unquote(str(child.attrs["href"]))))  # it escapes what is not ASCII; we show it as written
            case "link_close":
                start, address = links.pop()
                inside = "".join(shown[start:])
                shown.append("" if address in (inside, f"mailto:{inside}") else f"({address})")
            case "image":
                shown.append(f"{child.content}({child.attrs['src']})")
            case _:
                shown.append(child.content)
    text = "".join(shown)
    for task, sign in (("[ ] ", "☐"), ("[x] ", "☑")):
        if text.startswith(task):
            text = sign + text.removeprefix(task)
    return text
