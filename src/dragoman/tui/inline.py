"""Markdown inside a paragraph: emphasis, code, links, line breaks. Text may come in pieces: what cannot change any more is given at once.

CommonMark's rules for emphasis, with one bound: what belongs together lies within `REACH` characters. So a star that is never closed holds
the rest of a paragraph up only so long, and no text takes more than linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from dragoman.base.visible import is_hidden
from dragoman.tui.formula import find_formula, may_become_one
from dragoman.tui.line import Line, Span

REACH = 1_000
"""How far from its beginning a link, a piece of code or an emphasis may end, in characters."""
BREAK = Span("\n")
"""A line break that the text asks for."""

_SPECIAL = re.compile(r"[\\`*_~\[\]!<&\n$]|  +|https?://")
_RUN = re.compile(r"\*+|_+|~+|`+")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TARGET = re.compile(r"\(\s*(<[^<>\n]*>|[^\s()<][^\s()]*(?:\([^\s()]*\)[^\s()]*)*|)(?:\s+(\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->|<(?:!(?!--)|\?)[^<>]*>", re.DOTALL)
_ADDRESS = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+)>")
_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>`*|\[\]，。；：！？、（）【】「」《》“”]*")
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([A-Za-z]{2,8}));")
_ENTITY_START = re.compile(r"&#?[A-Za-z0-9]{0,8}\Z")
_ENTITIES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": "\xa0", "copy": "©", "reg": "®", "trade": "™", "hellip": "…",
    "ndash": "–", "mdash": "—", "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "laquo": "«", "raquo": "»", "rarr": "→",
    "larr": "←", "uarr": "↑", "darr": "↓", "times": "×", "middot": "·", "bull": "•", "deg": "°", "plusmn": "±", "ne": "≠", "le": "≤",
    "ge": "≥",
}  # fmt: skip
_URL_STARTS = ("h", "ht", "htt", "http", "https", "http:", "https:", "http:/", "https:/")


class _Run:
    """A run of `*`, `_` or `~`: what is left of it when its pairs are found is shown as it is."""

    __slots__ = ("at", "can_close", "can_open", "char", "closes", "count", "index", "opens", "since", "size")

    def __init__(self, index: int, at: int, char: str, size: int, flanks: tuple[bool, bool]) -> None:
        self.index, self.at, self.char = index, at, char
        self.since = at
        """Where the first run begins that this one closed, or that one in its turn."""
        self.size = self.count = size
        self.can_open, self.can_close = flanks
        self.opens: list[str] = []
        self.closes: list[str] = []


class _Bracket(NamedTuple):
    index: int
    at: int
    is_image: bool
    runs: int
    """How many runs were open before it."""


class Inline(NamedTuple):
    """Styled pieces, and how much of the text they stand for."""

    spans: list[Span]
    used: int
    """How much of the text they are."""


def parse(text: str, *, before: str = " ", is_whole: bool = True) -> Inline:
    """The text as styled pieces, a `BREAK` for each forced line break. Unless it is whole, only as much of it as cannot change, whatever
    follows. `before` is the character before it."""
    return _Parser(text, before, is_whole).parse()


def split_breaks(spans: Iterable[Span]) -> tuple[Line, ...]:
    """The lines between the forced line breaks: one at least."""
    lines: list[list[Span]] = [[]]
    for span in spans:
        if span == BREAK:
            lines.append([])
        else:
            lines[-1].append(span)
    return tuple(map(tuple, lines))


class _Parser:
    def __init__(self, text: str, before: str, is_whole: bool) -> None:
        self._text = text
        self._before = before
        self._is_whole = is_whole
        self._nodes: list[Span | _Run] = []
        self._starts: list[int] = []
        """Where each node starts in the text."""
        self._runs: list[_Run] = []
        """Those that may still open something."""
        self._bottoms: dict[tuple[str, bool, int], int] = {}
        """Where to stop looking back for what a run closes: further back there is nothing it could close."""
        self._brackets: list[_Bracket] = []
        self._at = 0

    def parse(self) -> Inline:
        text = self._text
        end = len(text) if self._is_whole else _end_of_decided(text)
        while self._at < end:
            found = _SPECIAL.search(text, self._at, end)
            start = end if found is None else found.start()
            if start > self._at:
                self._put(Span(text[self._at : start]), start - self._at)
            if found is not None and not self._take(found.group()):
                break
        return Inline(self._styled(len(self._nodes)), len(text)) if self._is_whole else self._certain(self._at)

    def _certain(self, stop: int) -> Inline:
        """Up to the first thing that what follows may still close."""
        reached = stop - REACH
        stop = min([stop, *(run.since for run in self._runs if run.at >= reached)])
        stop = min([stop, *(bracket.at for bracket in self._brackets if bracket.at >= reached)])
        count = next((number for number, start in enumerate(self._starts) if start >= stop), len(self._starts))
        return Inline(self._styled(count), stop)

    # --- one thing after the other

    def _take(self, sign: str) -> bool:
        """Takes what begins here. False if it cannot be known yet what it is."""
        match sign[0]:
            case "\n":
                return self._take_break(1)
            case " ":
                return self._put(Span(" "), len(sign))
            case "\\":
                return self._take_formula() or self._take_escaped()
            case "$":
                return self._take_formula() or self._take_dollar()
            case "`":
                return self._take_code()
            case "*" | "_" | "~":
                return self._take_run()
            case "[" | "!":
                return self._take_opening()
            case "]":
                return self._take_closing()
            case "<":
                return self._take_tag()
            case "&":
                return self._take_entity()
            case _:
                return self._take_url()

    def _take_break(self, size: int) -> bool:
        """With the blanks after it."""
        end = self._at + size
        while self._text[end : end + 1] == " ":
            end += 1
        return not self._is_unsure(end) and self._put(BREAK, end - self._at)

    def _take_formula(self) -> bool:
        if (found := find_formula(self._text, self._at)) is None or self._is_unsure(self._at + found.size):
            return False
        return self._put(Span(found.shown), found.size)

    def _take_dollar(self) -> bool:
        return (self._is_whole or not may_become_one(self._text, self._at)) and self._put(Span("$"), 1)

    def _take_escaped(self) -> bool:
        if not self._is_whole and self._text[self._at + 1 : self._at + 2] in ("(", "[") and may_become_one(self._text, self._at):
            return False
        following = self._text[self._at + 1 : self._at + 2]
        if not following and not self._is_whole:
            return False
        if following == "\n":
            return self._take_break(2)
        if following and following in _PUNCTUATION:
            return self._put(Span(following), 2)
        return self._put(Span("\\"), 1)

    def _take_code(self) -> bool:
        size = self._run_length()
        if self._is_unsure(self._at + size):
            return False
        at = self._at + size
        while found := _RUN.search(self._text, at, self._at + REACH):
            at = found.end()
            if found.group()[0] == "`" and at - found.start() == size:
                if self._is_unsure(at):
                    return False
                return self._put(Span(_code(self._text[self._at + size : found.start()]), "code"), at - self._at)
        if not self._is_whole and len(self._text) - self._at < REACH:
            return False
        return self._put(Span("`" * size), size)

    def _take_run(self) -> bool:
        size = self._run_length()
        at = self._at
        if self._is_unsure(at + size):
            return False
        char = self._text[at]
        if char == "~" and size != 2:
            return self._put(Span(char * size), size)
        following = self._text[at + size : at + size + 1] or " "
        run = _Run(len(self._nodes), at, char, size, _flanks(char, self._text[at - 1] if at else self._before, following))
        self._nodes.append(run)
        self._starts.append(at)
        self._at += size
        if run.can_close:
            self._close(run)
        if run.can_open and run.count:
            self._runs.append(run)
        return True

    def _take_opening(self) -> bool:
        is_image = self._text[self._at] == "!"
        if is_image:
            if self._is_unsure(self._at + 1):
                return False
            if self._text[self._at + 1 : self._at + 2] != "[":
                return self._put(Span("!"), 1)
        self._brackets.append(_Bracket(len(self._nodes), self._at, is_image, len(self._runs)))
        return self._put(Span("![" if is_image else "["), 2 if is_image else 1)

    def _take_closing(self) -> bool:
        if not self._brackets or self._at - self._brackets[-1].at > REACH:
            self._brackets.clear()
            return self._put(Span("]"), 1)
        if self._is_unsure(self._at + 1):
            return False
        target = _TARGET.match(self._text, self._at + 1, self._at + REACH)
        if target is None:
            if self._text[self._at + 1 : self._at + 2] == "(" and not self._is_whole and len(self._text) - self._at < REACH:
                return False
            self._brackets.pop()
            return self._put(Span("]"), 1)
        self._link(self._brackets.pop(), _address_of(target))
        self._at = target.end()
        return True

    def _take_tag(self) -> bool:
        text, at = self._text, self._at
        if found := _ADDRESS.match(text, at, at + REACH):
            return self._put(Span(found.group(1), "link"), len(found.group()))
        if found := _BREAK_TAG.match(text, at):
            return self._take_break(len(found.group()))
        if found := _TAG.match(text, at, at + REACH):
            return self._put(Span(found.group().replace("\n", " "), "dim"), len(found.group()))
        if not self._is_whole and len(text) - at < REACH and re.match(r"<(?:\Z|[A-Za-z0-9/!?])", text[at:]):
            return False
        return self._put(Span("<"), 1)

    def _take_entity(self) -> bool:
        if found := _ENTITY.match(self._text, self._at):
            return self._put(Span(_entity(found)), len(found.group()))
        if not self._is_whole and _ENTITY_START.match(self._text, self._at):
            return False
        return self._put(Span("&"), 1)

    def _take_url(self) -> bool:
        found = _URL.match(self._text, self._at, self._at + REACH)
        assert found is not None
        if self._is_unsure(found.end()) and len(found.group()) < REACH:
            return False
        url = found.group().rstrip("?!.,:;_~'\"")
        unopened = url.count(")") - url.count("(")
        if unopened > 0:
            url = url[: max(len(url.rstrip(")")), len(url) - unopened)].rstrip("?!.,:;_~'\"")
        return self._put(Span(url, "link"), len(url))

    def _put(self, span: Span, size: int) -> bool:
        self._nodes.append(span)
        self._starts.append(self._at)
        self._at += size
        return True

    def _run_length(self) -> int:
        found = _RUN.match(self._text, self._at)
        assert found is not None
        return len(found.group())

    def _is_unsure(self, end: int) -> bool:
        """Whether what ends here is the end of what has come so far."""
        return not self._is_whole and end >= len(self._text)

    # --- pairs

    def _close(self, closer: _Run) -> None:
        """Pairs a run with those before it that it closes, the nearest first."""
        runs = self._runs
        floor = self._brackets[-1].runs if self._brackets and closer.at - self._brackets[-1].at <= REACH else 0
        while closer.count:
            key = (closer.char, closer.can_open, closer.size % 3)
            bottom = max(floor, min(self._bottoms.get(key, 0), len(runs)))
            found = next((at for at in range(len(runs) - 1, bottom - 1, -1) if _is_pair(runs[at], closer)), -1)
            if found < 0 or closer.at - runs[found].at > REACH:
                if not floor:
                    self._bottoms[key] = len(runs)
                return
            opener = runs[found]
            size = 2 if closer.char == "~" or (opener.count >= 2 and closer.count >= 2) else 1
            style = "strike" if closer.char == "~" else "strong" if size == 2 else "emphasis"
            opener.opens.insert(0, style)
            closer.closes.append(style)
            closer.since = min(closer.since, opener.since)
            opener.count -= size
            closer.count -= size
            del runs[found + (1 if opener.count else 0) :]
            self._shrink_bottoms(len(runs))

    def _shrink_bottoms(self, count: int) -> None:
        for key, bottom in self._bottoms.items():
            if bottom > count:
                self._bottoms[key] = count

    def _link(self, bracket: _Bracket, address: str) -> None:
        """What stands in the brackets becomes a link; its address follows it, unless it is the text."""
        del self._runs[bracket.runs :]
        self._shrink_bottoms(len(self._runs))
        if not bracket.is_image:  # no link in a link
            self._brackets = [each for each in self._brackets if each.is_image]
        self._nodes[bracket.index] = Span("")
        inside = self._styled(len(self._nodes), bracket.index)
        shown = "".join(span.text for span in inside)
        linked = [span if span == BREAK else Span(span.text, f"link {span.style}".strip()) for span in inside]
        if address and address not in (shown, f"mailto:{shown}"):
            linked.append(Span(f" ({address})" if shown else address, "dim"))
        del self._nodes[bracket.index :], self._starts[bracket.index :]
        self._nodes += linked
        self._starts += [bracket.at] * len(linked)

    # --- what is shown

    def _styled(self, end: int, start: int = 0) -> list[Span]:
        styles: list[str] = []
        spans: list[Span] = []
        for node in self._nodes[start:end]:
            if isinstance(node, _Run):
                for style in node.closes:
                    styles.remove(style)
                if node.count:
                    spans.append(Span(node.char * node.count, " ".join(styles)))
                styles += node.opens
            elif node.text:
                spans.append(Span(node.text, " ".join([*styles, node.style]).strip()) if styles and node is not BREAK else node)
        return _joined(spans)


def _joined(spans: list[Span]) -> list[Span]:
    """Neighbours of the same style as one."""
    joined: list[Span] = []
    texts: list[str] = []
    for span in spans:
        if texts and (span.style != joined[-1].style or BREAK in (span, joined[-1])):
            joined[-1] = Span("".join(texts), joined[-1].style)
            texts = []
        if not texts:
            joined.append(span)
        texts.append(span.text)
    if texts:
        joined[-1] = Span("".join(texts), joined[-1].style)
    return joined


def _end_of_decided(text: str) -> int:
    """Where blanks begin that may be the end of a line, or the start of an address."""
    end = len(text.rstrip(" "))
    if end < len(text):
        return end
    return end - next((len(start) for start in reversed(_URL_STARTS) if text.endswith(start)), 0)


def _is_pair(opener: _Run, closer: _Run) -> bool:
    if opener.char != closer.char:
        return False
    odd = (opener.can_close or closer.can_open) and (opener.size + closer.size) % 3 == 0
    return not odd or (opener.size % 3 == 0 and closer.size % 3 == 0)


def _flanks(char: str, before: str, following: str) -> tuple[bool, bool]:
    """Whether a run may open something, and whether it may close something: by what stands beside it."""
    before_blank, following_blank = before.isspace(), following.isspace()
    before_sign, following_sign = _is_sign(before), _is_sign(following)
    left = not following_blank and (not following_sign or before_blank or before_sign or _is_cjk(before))
    right = not before_blank and (not before_sign or following_blank or following_sign or _is_cjk(following))
    if char != "_":
        return left, right
    return left and (not right or before_sign), right and (not left or following_sign)


def _is_sign(char: str) -> bool:
    return char in _PUNCTUATION or (char > "\x7f" and unicodedata.category(char)[0] in "PS")


def _is_cjk(char: str) -> bool:
    """Chinese and Japanese have no blanks between words: CommonMark's rule would leave `**“引号”**之后` as it is."""
    return char >= "\u2e80" and unicodedata.east_asian_width(char) in "WF"


def _code(text: str) -> str:
    text = text.replace("\n", " ")
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == " " and text.strip(" ") else text


def _address_of(target: re.Match[str]) -> str:
    address = target.group(1)
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", address.removeprefix("<").removesuffix(">"))


def _entity(found: re.Match[str]) -> str:
    decimal, hexadecimal, name = found.groups()
    if name:
        return _ENTITIES.get(name, found.group())
    code = int(decimal) if decimal else int(hexadecimal, 16)
    char = chr(code) if 0 < code <= 0x10FFFF else "\ufffd"
    return char if (char.isprintable() and not is_hidden(char)) or char == "\xa0" else "\ufffd"
