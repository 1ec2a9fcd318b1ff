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
from dragoman.base.words import say
from dragoman.policy.shell_words import Operator, ShellReading, ShellWord, Unclear, read_words

MAX_BYTES = 64 * 1024

_WORDS = frozenset({"word", "number", "concatenation", "string", "raw_string"})
_OPERATORS = frozenset({"&&", "||", "|", ";"})
_KNOWN = frozenset(
    {"program", "list", "pipeline", "command", "command_name", "string_content", "redirected_statement", "file_redirect", "file_descriptor"}
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
    for words in reading.commands:
        name = words[0]
        if not name.is_plain or name.text in _RESERVED or not _COMMAND_NAME.fullmatch(name.text):
            raise Unclear(say("policy.shell_assignment" if "=" in name.text else "policy.shell_name"))
    return Commands(reading.commands, reading.operators)


def find_commands(command: str) -> Iterator[tuple[str, ...]]:
    """Whatever looks like a command anywhere in a line, read loosely: in substitutions, loops and functions too. For rules that forbid."""
    parser = _bash()
    if parser is None:
        return
    line = command.encode("utf-8", "replace")[:MAX_BYTES]
    stack = [parser.parse(line).root_node]
    while stack:
        node = stack.pop()
        stack += reversed(node.children)
        if node.type == "command":
            words = [_loose_text(child) for child in node.children if child.type not in ("file_redirect", "variable_assignment")]
            yield tuple(word for word in words if word)


def _loose_text(node: Any) -> str:
    text = node.text.decode("utf-8", "replace")
    return re.sub(r"""["'\\]""", "", text)


def _check_tree(line: bytes, reading: ShellReading) -> None:
    """That the grammar sees known nodes alone, and the same words and operators at the same places. Raises Unclear."""
    parser = _bash()
    if parser is None:
        raise Unclear(say("policy.shell_no_parser"))
    root = parser.parse(line).root_node
    if root.has_error:
        raise Unclear(say("policy.shell_quote"))
    spans: list[tuple[int, int]] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "$" and node.parent.type == "string":
            continue  # our own reading knows whether it stands for itself
        if node.type not in _KNOWN or node.is_missing:
            raise Unclear(say(f"policy.shell_{_NAMES[node.type]}" if node.type in _NAMES else "policy.shell_other", kind=node.type))
        if node.type == "concatenation" and not all(child.type in _KNOWN or child.type == "$" for child in _below(node)):
            raise Unclear(say("policy.shell_other", kind=node.type))
        if node.type in _WORDS or node.type in _OPERATORS:
            spans.append((node.start_byte, node.end_byte))
        if node.type not in ("concatenation", "raw_string"):
            stack += node.children if node.type not in _WORDS else [child for child in node.children if child.type not in _WORDS]
    if tuple(sorted(spans)) != reading.spans:
        raise Unclear(say("policy.shell_disagree"))


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
