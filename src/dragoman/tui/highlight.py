"""Light syntax colours: comments, strings, numbers, keywords and the names that are defined, line by line, by one small lexer.

It knows no grammar. What it does not know it leaves as it is, and no line takes more than linear time.
"""

from __future__ import annotations

import re
from functools import cache

from dragoman.tui.languages import DEFINING, LANGUAGES, LITERALS, NAMES
from dragoman.tui.line import Line, Span, line

MOST_CHARS = 2_000
"""A longer line is data, and is left as it is."""


def language_of(name: str) -> str:
    """The language that a fence or a file name's ending means; empty for one that is not known."""
    name = name.lower()
    name = NAMES.get(name, name)
    return name if name in LANGUAGES or name in ("diff", "patch") else ""


def highlight(text: str, language: str, inside: str = "") -> tuple[Line, str]:
    """A line of code in colours. `inside` is what the line before ended in, and is given back for the next: a string or a comment that
    goes over lines."""
    if not language or len(text) > MOST_CHARS:
        return line(text), ""
    if language in ("diff", "patch"):
        return line(text, _diff_style(text)), ""
    spans: list[Span] = []
    known = LANGUAGES[language]
    at = 0
    if inside:
        _, closing, style = next(block for block in known.blocks if block[0] == inside)
        end = text.find(closing)
        if end < 0:
            return line(text, style), inside
        at = end + len(closing)
        spans.append(Span(text[:at], style))
    return _lex(text, at, language, spans)


def _lex(text: str, at: int, language: str, spans: list[Span]) -> tuple[Line, str]:
    known, pattern, keywords = LANGUAGES[language], _pattern(language), _keywords(language)
    plain_from = at
    last_word = ""
    while found := pattern.search(text, at):
        kind, part = found.lastgroup or "", found.group()
        at = found.end()
        style = {"comment": "comment", "string": "string", "number": "literal", "word": ""}.get(kind, "")
        inside = ""
        if kind == "block":
            _, closing, style = next(block for block in known.blocks if block[0] == part)
            end = text.find(closing, at)
            inside, at = ("", end + len(closing)) if end >= 0 else (part, len(text))
        elif kind == "word":
            style = _word_style(part, last_word, keywords, known.ignores_case)
            last_word = part
        elif kind == "string" and language == "json" and text[at:].lstrip().startswith(":"):
            style = "name"
        if style:
            spans += [Span(text[plain_from : found.start()])] if found.start() > plain_from else []
            spans.append(Span(text[found.start() : at], style))
            plain_from = at
        if inside:
            return tuple(spans), inside
    if plain_from < len(text):
        spans.append(Span(text[plain_from:]))
    return tuple(spans), ""


def _word_style(word: str, last: str, keywords: frozenset[str], ignores_case: bool) -> str:
    if word in LITERALS:
        return "literal"
    if (word.lower() if ignores_case else word) in keywords:
        return "keyword"
    return "name" if last in DEFINING else ""


@cache
def _keywords(language: str) -> frozenset[str]:
    return frozenset(LANGUAGES[language].keywords.split())


@cache
def _pattern(language: str) -> re.Pattern[str]:
    known = LANGUAGES[language]
    blocks = "|".join(re.escape(opening) for opening, _, _ in known.blocks)
    comments = "|".join(re.escape(sign) for sign in known.comment.split())
    # In a shell `#` starts a comment only after a blank: ${#name} does not.
    comment = rf"(?:(?<=\s)|^)(?:{comments}).*" if comments == r"\#" else rf"(?:{comments}).*"
    parts = [
        rf"(?P<block>{blocks})" if blocks else "",
        rf"(?P<comment>{comment})" if comments else "",
        rf"(?P<string>{'|'.join(rf'{quote}(?:[^{quote}{chr(92) * 2}]|{chr(92) * 2}.)*{quote}?' for quote in known.quotes)})",
        r"(?P<number>(?<![\w.])(?:0[xXoObB][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\w*)",
        r"(?P<word>-*[A-Za-z_][\w-]*)" if language == "shell" else r"(?P<word>[#@]?[A-Za-z_]\w*)",
    ]
    return re.compile("|".join(filter(None, parts)))


def _diff_style(text: str) -> str:
    if text.startswith(("+++", "---", "diff ", "index ")):
        return "strong"
    return {"+": "add", "-": "del", "@": "accent"}.get(text[:1], "")
