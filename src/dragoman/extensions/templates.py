"""Prompt templates of commands: placeholders for arguments, shell commands and files, in two syntaxes. Pure.

Markdown (Claude Code, Codex, opencode, ours): `$ARGUMENTS`, `$1`, `$name`, `` !`command` ``, `@file`.
TOML (gemini-cli): `{{args}}`, `!{command}`, `@{file}`.
What the user gives as arguments is never read as a template: a command or a file in it stays text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

Style = Literal["markdown", "toml"]
MAX_PARTS = 50
"""How many commands and files one prompt may name; what is beyond is text."""

_MARKDOWN = re.compile(r"(?<!\S)!`(?P<command>[^`\n]+)`|(?<![\w`@./\\-])@(?P<file>[^\s`'\"<>()\[\]{},;|]+)")
_ARGUMENT = re.compile(
    r"\$ARGUMENTS(?:\[(?P<from_zero>\d{1,2})\])?|\$(?P<number>\d{1,2})(?!\d)|(?P<dollar>\$\$)|\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
)
_BRACES = re.compile(r"[!@]\{(?!\{)")
_BRACE = re.compile(r"[{}]")
_MAX_INSIDE = 10_000
_ARGS = "{{args}}"


class ShellPart(msgspec.Struct, frozen=True):
    """What this command prints stands here."""

    command: str


class FilePart(msgspec.Struct, frozen=True):
    """What this file says stands here."""

    path: str
    written: str
    """As it is written in the template, for when there is no such file."""


Part: TypeAlias = str | ShellPart | FilePart


def fill_in(template: str, style: Style, arguments: str, *, swallows: bool = False, names: Sequence[str] | None = ()) -> list[Part]:
    """The parts of a prompt, in order. Arguments that the template has no place for are added at its end.

    `swallows`: the highest of `$1`, `$2` … takes all further words, as opencode has it. `names`: what the arguments are called, so that
    `$issue` is the first; None: arguments name themselves, as `FILE=a.py`, and `$$` is a `$`, as Codex has it.
    """
    parts = split_markdown(template) if style == "markdown" else _split_toml(template)
    numbers = _numbers(template)
    # Claude Code counts from 0 by now; commands that were written before count from 1.
    given = _Given(arguments, max(numbers, default=-1) if swallows and 0 not in numbers else -1, 0 if 0 in numbers else 1, names)
    is_used = False
    filled: list[Part] = []
    for part in parts:
        text = part if isinstance(part, str) else part.command if isinstance(part, ShellPart) else part.path
        if style == "markdown":
            made = _ARGUMENT.sub(given.replace, text)
            is_used = is_used or given.is_used
        else:
            made = text.replace(_ARGS, shlex.quote(arguments) if isinstance(part, ShellPart) and arguments else arguments)
            is_used = is_used or _ARGS in text
        filled.append(_with_text(part, made))
    if arguments.strip() and not is_used:
        filled.append(f"\n\nArguments: {arguments}")
    return filled


class _Given:
    """The arguments, for the places that want them."""

    def __init__(self, arguments: str, last: int, first: int, names: Sequence[str] | None) -> None:
        self._words = split_arguments(arguments)
        self._named = _named_in(self._words) if names is None else dict(zip(names, self._words, strict=False))
        self._known = frozenset(self._named if names is None else names)
        self._keeps_dollars = names is not None
        self._all = arguments
        self._last, self._first = last, first
        self.is_used = False

    def replace(self, match: re.Match[str]) -> str:
        if match["dollar"]:
            return match[0] if self._keeps_dollars else "$"
        if match["name"]:
            if match["name"] not in self._known:
                return match[0]
            self.is_used = True
            return self._named.get(match["name"], "")
        self.is_used = True
        if match["number"]:
            number = int(match["number"])
            return " ".join(self._words[number - 1 :]) if number == self._last else self._word(number - self._first)
        return self._word(int(match["from_zero"])) if match["from_zero"] else self._all

    def _word(self, at: int) -> str:
        return self._words[at] if at < len(self._words) else ""


def _named_in(words: Sequence[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words)
    return {name: value for name, sign, value in pairs if sign and name.isidentifier()}


def split_arguments(arguments: str) -> Sequence[str]:
    """Split arguments as a shell does; if a quote is not closed, at blanks."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def _numbers(template: str) -> list[int]:
    return [int(match["number"]) for match in _ARGUMENT.finditer(template) if match["number"]]


def _with_text(part: Part, text: str) -> Part:
    if isinstance(part, ShellPart):
        return ShellPart(text)
    return FilePart(text, part.written.replace(part.path, text)) if isinstance(part, FilePart) else text


def split_markdown(template: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    for number, match in enumerate(_MARKDOWN.finditer(template)):
        if number >= MAX_PARTS:
            break
        parts.append(template[at : match.start()])
        if match["command"]:
            parts.append(ShellPart(match["command"].strip()))
            at = match.end()
        else:
            path = match["file"].rstrip(".:!?")
            parts.append(FilePart(path, f"@{path}"))
            at = match.start() + 1 + len(path)
    return [*parts, template[at:]]


def _split_toml(template: str) -> list[Part]:
    parts: list[Part] = []
    closing = _closing_braces(template)
    at, searched, count = 0, 0, 0
    while count < MAX_PARTS and (match := _BRACES.search(template, searched)) is not None:
        end = closing.get(match.end() - 1, -1)
        if not 0 <= end - match.end() < _MAX_INSIDE:
            searched = match.end()
            continue
        inside = template[match.end() : end].strip()
        parts.append(template[at : match.start()])
        parts.append(ShellPart(inside) if match[0][0] == "!" else FilePart(inside, template[match.start() : end + 1]))
        at = searched = end + 1
        count += 1
    return [*parts, template[at:]]


def _closing_braces(template: str) -> dict[int, int]:
    """Where each brace that is closed ends. In one pass: a template may open thousands and close none."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for match in _BRACE.finditer(template):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            closing[opened.pop()] = match.start()
    return closing
