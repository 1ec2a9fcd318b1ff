"""Reads the options of a command by a list of those that are known: one that is not on it means that the command is not known.

Short options are written as getopt has it (`A:` takes a value, `A::` may have one in the same word); of the long ones, `name=` takes a
value and `name?` may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.policy.read_only_scripts import Found

Operands = Literal["paths", "pattern", "text", "none", "one"]
"""What the words other than options are: files; a pattern and then files; any text; nothing; at most one file."""


class Program(msgspec.Struct, frozen=True):
    """The options of a program with which it only reads."""

    short: str = ""
    long: str = ""
    operands: Operands = "paths"
    takes_number: bool = False
    """`-3` is a count."""
    recursive: str = ""
    """Options with which it goes into folders; `*`: it always does."""
    is_builtin: bool = False
    """A part of the shell, not a file that somebody could put in its place."""
    pattern_options: str = ""
    """Options that give the pattern, so that no operand is one."""


def scan_options(program: Program, words: Sequence[str], begin: int) -> Found | None:
    """Tell options from operands. Options may stand anywhere before `--`, as GNU's getopt has it."""
    if program.operands == "text" and not program.short and not program.long:
        return Found()
    operands: list[int] = []
    behind: list[int] = []
    given: set[str] = set()
    at, has_ended = begin, False
    while at < len(words):
        word, begun = words[at], at
        if has_ended or word == "-" or not word.startswith("-"):
            operands.append(at)
        elif word == "--":
            has_ended = True
        elif program.takes_number and re.fullmatch(r"-\d+", word):
            pass
        else:
            names, takes_next = _long(program, word) if word.startswith("--") else _short(program, word)
            if not names:
                return None
            given.update(names)
            at += takes_next
        at += 1
        if operands and not has_ended and operands[-1] != begun:
            behind += range(begun, min(at, len(words)))
    return _found(program, operands, behind, given)


def _found(program: Program, operands: list[int], behind: list[int], given: set[str]) -> Found | None:
    goes_deep = program.recursive == "*" or not given.isdisjoint(program.recursive.split())
    match program.operands:
        case "none":
            return None if operands else Found()
        case "text":
            return Found()
        case "one" if len(operands) > 1 or behind:
            return None  # it would write the second
        case "pattern" if given.isdisjoint(program.pattern_options.split()):
            operands = operands[1:]
        case _:
            pass
    return Found(tuple(operands), goes_deep, behind=tuple(behind))


def _short(program: Program, word: str) -> tuple[list[str], int]:
    """The letters of `-abc5`, and whether the next word is the value of the last; no letters if one is not known."""
    names: list[str] = []
    letters = word[1:]
    for position, letter in enumerate(letters):
        place = program.short.find(letter)
        if place < 0 or letter in ": ":
            return [], 0
        names.append(letter)
        if program.short[place + 1 : place + 3] == "::":
            return names, 0  # its value, if any, is the rest of the word
        if program.short[place + 1 : place + 2] == ":":
            return names, 0 if position < len(letters) - 1 else 1
    return names, 0


def _long(program: Program, word: str) -> tuple[list[str], int]:
    name, equals, _ = word[2:].partition("=")
    known = program.long.split()
    if f"{name}=" in known:
        return [name], 0 if equals else 1
    if f"{name}?" in known or (name in known and not equals):
        return [name], 0
    return [], 0
