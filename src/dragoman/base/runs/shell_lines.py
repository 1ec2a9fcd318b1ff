"""Reads lines of a shell for the commands in them: by far not all a shell can do, but what stands in hooks, scripts and recipes.

Where it takes something for a command that is none, a file more is looked for, and not found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

MAX_WORDS = 20_000
MAX_CHARS = 64_000
_SEPARATORS = frozenset((";", "&", "|", "\n", "(", ")", "{", "}", "then", "do", "else", "elif", "if", "while", "until", "!", "&&", "||"))
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}]*))?\}|([A-Za-z_]\w*))")
_OWN_FOLDER = re.compile(r"""\$\(\s*(?:cd\s+)?(?:--\s+)?["']?(?:\$\()?dirname[^)]*\)["']?(?:\s*&&\s*pwd(?:\s+-P)?\s*\))?|\$\{0%/\*\}""")
"""`$(dirname "$0")`, `$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)`, `${0%/*}`: where the script itself lies."""


class ShellCommand(msgspec.Struct, frozen=True):
    """One command of a line, and what was set for it alone."""

    words: tuple[str, ...]
    env: dict[str, str]
    read: tuple[str, ...] = ()
    """Files that are its input: `python < server.py`."""


def commands_in(text: str, env: Mapping[str, str], own_folder: str = "") -> list[ShellCommand]:
    """The commands of a line or a script, in order, with the variables filled in that are known."""
    if own_folder:
        text = _OWN_FOLDER.sub(lambda _: own_folder, text)
    known = dict(env)
    found: list[ShellCommand] = []
    for words in _parted(_words(text)):
        command = _command([_fill(word, known) for word in words])
        if not command.words:
            known |= command.env  # it holds for what follows
        else:
            found.append(command)
    return found


def _words(text: str) -> list[str]:
    """Of a very long script the rest counts as plain words: reading it as a shell does takes seconds for a megabyte."""
    words = _lex(text[:MAX_CHARS])
    return [*words, *text[MAX_CHARS:].split(maxsplit=MAX_WORDS)] if len(text) > MAX_CHARS else words


def _lex(text: str) -> list[str]:
    import shlex  # not where no line of a shell is read

    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[str] = []
    with suppress(ValueError):  # an open quote: what came before it counts, and the rest as plain words
        for word in lexer:
            found.append(word)
            if len(found) >= MAX_WORDS:
                return found
        return found
    return [*found, *text.split()]


def _parted(words: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    is_comment = False
    for word in words:
        is_end = word in _SEPARATORS or (set(word) <= set(";&|()\n") and bool(word))
        is_comment = (is_comment and "\n" not in word) or word.startswith("#")
        if is_end:
            parts.append([])
        elif not is_comment:
            parts[-1].append(word)
    return [part for part in parts if part]


def _command(words: Sequence[str]) -> ShellCommand:
    env: dict[str, str] = {}
    kept: list[str] = []
    read: list[str] = []
    waiting = ""
    for word in words:
        if waiting:
            read += [word] if waiting == "<" else []
            waiting = ""
        elif word and set(word) <= set("<>&"):
            waiting = word
            if kept and kept[-1].isdigit():  # 2>file
                kept.pop()
        elif not kept and (assigned := _ASSIGNED.fullmatch(word)):
            env[assigned[1]] = assigned[2]
        else:
            kept.append(word)
    return ShellCommand(tuple(kept), env, tuple(read))


def _fill(word: str, env: Mapping[str, str]) -> str:
    if "$" not in word:
        return os.path.expanduser(word) if word.startswith("~") else word

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        return env.get(name, found[2] if found[2] is not None else found[0])

    return _VARIABLE.sub(value, word)
