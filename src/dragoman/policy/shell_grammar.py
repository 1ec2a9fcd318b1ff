"""Which commands a command line runs, if that is certain. Two readers must agree: bash's grammar in tree-sitter, of which only a few node
types are known here, and our own strict reading of the words. Where they differ, or either gives up, the user is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.base.text import set_of
from dragoman.policy.shell_split import split_commands
from dragoman.policy.shell_words import Operator, ShellReading, ShellWord, Unclear, read_words
from dragoman.policy.work import WorkDone
from dragoman.words import say

MAX_BYTES = 64 * 1024
MAX_LOOSE_BYTES = 4 * 1024
"""Longer lines that are not plain are split by their signs alone: the parser takes quadratic time for text that is not valid shell."""
_FAULTY_BYTES, _SOUND_BYTES = 128, 8
"""How many bytes are a unit of work, squared or not."""
_QUOTES = re.compile(r"""\\\n|["'\\]""")

_IN_BRACKETS = frozenset({"[", "]", "test_operator"})
"""Words to the shell, though the grammar has names of its own for them."""
_STATUS = b"$?"
_WORDS = frozenset({"word", "number", "concatenation", "string", "raw_string"})
_OPERATORS = frozenset({"&&", "||", "|", ";"})
_KNOWN = frozenset(
    {"program", "list", "pipeline", "command", "command_name", "string_content", "redirected_statement", "file_redirect", "file_descriptor"}
    | {"test_command", "unary_expression"} | _IN_BRACKETS
    | {"comment", '"', ">", ">>", ">&", "&>", "<", "\n"} | _WORDS | _OPERATORS
)  # fmt: skip
"""Every type of node that may be in a command that is read. Whatever else the grammar knows, or will know, asks."""
_NAMES = {
    "command_substitution": "substitution",
    "process_substitution": "substitution",
    "simple_expansion": "variable",
    "expansion": "variable",
    "arithmetic_expansion": "variable",
    "heredoc_redirect": "heredoc",
    "herestring_redirect": "heredoc",
    "variable_assignment": "assignment",
    "variable_assignments": "assignment",
    "ansi_c_string": "ansi_quote",
    "&": "background",
    "ERROR": "quote",
}
_RESERVED = set_of("! [ [[ ]] { } ( ) case coproc do done elif else esac fi for function if in select then time until while")
_COMMAND_NAME = re.compile(r"[A-Za-z0-9_./+-]+")

_language: Any = None


class Commands(msgspec.Struct, frozen=True):
    """The simple commands of a line, in order, and what stands between each and the next."""

    commands: tuple[tuple[ShellWord, ...], ...]
    operators: tuple[Operator, ...]


def read_commands(command: str) -> Commands:
    """Raises Unclear."""
    if os.name != "posix":
        raise Unclear(say("policy.shell_not_bash"))
    try:
        line = command.encode()
    except UnicodeEncodeError:
        raise Unclear(say("policy.shell_encoding")) from None
    if len(line) > MAX_BYTES:
        raise Unclear(say("policy.shell_long"))
    reading = read_words(line)
    _check_tree(line, reading)
    commands = tuple(map(_open_brackets, reading.commands))
    for words in commands:
        name = words[0]
        if name.text == "[" and name.is_plain:
            continue
        if not name.is_plain or name.text in _RESERVED or not _COMMAND_NAME.fullmatch(name.text):
            raise Unclear(say("policy.shell_assignment" if "=" in name.text else "policy.shell_name"))
    return Commands(commands, reading.operators)


def _open_brackets(words: tuple[ShellWord, ...]) -> tuple[ShellWord, ...]:
    """`[ -f name ]` is a command whose name is a bracket, and whose last word is one; not a pattern for the names of files."""
    first, *rest = words
    if len(rest) != 3 or not _is_bracket(first, "[") or not _is_bracket(rest[-1], "]"):
        return words
    return (ShellWord("[", first.span, is_plain=True), *rest[:-1], ShellWord("]", rest[-1].span, is_plain=True))


def _is_bracket(word: ShellWord, sign: str) -> bool:
    return word.text == sign and word.has_glob and word.span[1] - word.span[0] == 1


def find_commands(command: str, work: WorkDone) -> Iterator[tuple[str, ...]]:
    """Whatever looks like a command anywhere in a line, read loosely: in substitutions, loops and functions too. For rules that forbid.
    Raises TooMuchWork."""
    line = command.encode("utf-8", "replace")
    parser = _bash() if len(line) <= MAX_LOOSE_BYTES else None
    if parser is None:
        yield from split_commands(command, work)
        return
    root = parser.parse(line).root_node
    work.spend(len(line) ** 2 // _FAULTY_BYTES if root.has_error else len(line) // _SOUND_BYTES)
    stack = [root]
    while stack:
        node = stack.pop()
        stack += reversed(node.children)
        if node.type == "command":
            parts = [child for child in node.children if child.type not in ("file_redirect", "variable_assignment")]
            work.spend(1 + sum(child.end_byte - child.start_byte for child in parts) // _SOUND_BYTES)
            words = [_loose_text(line[child.start_byte : child.end_byte]) for child in parts]
            yield tuple(word for word in words if word)


def _loose_text(written: bytes) -> str:
    return _QUOTES.sub("", written.decode("utf-8", "replace"))


def _check_tree(line: bytes, reading: ShellReading) -> None:
    """Check that the grammar found only known nodes, and the same words and operators at the same places. Raises Unclear."""
    parser = _bash()
    if parser is None:
        raise Unclear(say("policy.shell_no_parser"))
    root = parser.parse(line).root_node
    if root.has_error:
        raise Unclear(say("policy.shell_quote"))
    spans: list[tuple[int, int]] = []
    stack = [(root, "")]
    while stack:
        node, above = stack.pop()
        if node.type == "$" and above == "string":
            continue  # our own reading knows whether it stands for itself
        if node.type == "simple_expansion" and node.text == _STATUS:
            if above in ("command", "unary_expression"):
                spans.append((node.start_byte, node.end_byte))
            continue
        if node.type not in _KNOWN or node.is_missing:
            raise Unclear(say(f"policy.shell_{_NAMES[node.type]}" if node.type in _NAMES else "policy.shell_other", kind=node.type))
        if node.type == "concatenation" and not all(_is_known_part(child) for child in _below(node)):
            raise Unclear(say("policy.shell_other", kind=node.type))
        if node.type in _WORDS or node.type in _OPERATORS or node.type in _IN_BRACKETS:
            spans.append((node.start_byte, node.end_byte))
        if node.type not in ("concatenation", "raw_string"):
            stack += [(child, node.type) for child in node.children if node.type not in _WORDS or child.type not in _WORDS]
    if tuple(sorted(spans)) != reading.spans:
        raise Unclear(say("policy.shell_disagree"))


def _is_known_part(node: Any) -> bool:
    return node.type in _KNOWN or node.type == "$" or (node.parent if node.type == "special_variable_name" else node).text == _STATUS


def _below(node: Any) -> Iterator[Any]:
    for child in node.children:
        yield child
        yield from _below(child)


def _bash() -> Any:
    """A parser of its own for each command, because none may be shared by threads; None where the package is not installed."""
    global _language
    try:
        from tree_sitter import Language, Parser
        from tree_sitter_bash import language
    except ImportError:
        return None
    if _language is None:
        _language = Language(language())
    return Parser(_language)
