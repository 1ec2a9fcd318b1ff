"""Matches a regular expression step by step, as Python's `re` would, and gives up after so many steps.

`re` backtracks, and cannot be stopped: `^(a+)+$` on forty letters takes longer than anybody waits. What ends here within the bound ends
within a bound there too, because both try the same ways in the same order.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

MAX_INSTRUCTIONS = 5_000
_FLAGS = re.UNICODE | re.IGNORECASE | re.MULTILINE | re.DOTALL


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


_CATEGORIES = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": _is_word,
}

Test = Callable[[str], bool]


class _Unsupported(Exception):
    """The pattern has a part that is not matched here."""


class _Ways:
    """The instructions of a pattern: `test` a character, go on at one of two places, stand at a place, or look around."""

    def __init__(self, flags: int) -> None:
        self.code: list[tuple[Any, ...]] = []
        self.loops = 0
        self._flags = flags

    def add(self, *instruction: Any) -> int:
        if len(self.code) >= MAX_INSTRUCTIONS:
            raise _Unsupported
        self.code.append(instruction)
        return len(self.code) - 1

    def build(self, parsed: Any) -> None:
        for kind, value in parsed:
            match str(kind):
                case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                    self.add("test", self._test(str(kind), value))
                case "SUBPATTERN":
                    _, added, removed, inner = value
                    if added or removed:
                        raise _Unsupported
                    self.build(inner)
                case "BRANCH":
                    self._branch(value[1])
                case "MAX_REPEAT" | "MIN_REPEAT":
                    self._repeat(*value, is_greedy=str(kind) == "MAX_REPEAT")
                case "AT":
                    self.add("at", str(value), bool(self._flags & re.MULTILINE))
                case "ASSERT" | "ASSERT_NOT":
                    self._look(value, is_wanted=str(kind) == "ASSERT")
                case _:
                    raise _Unsupported

    def _branch(self, branches: list[Any]) -> None:
        ends: list[int] = []
        for inner in branches[:-1]:
            split = self.add("either")
            self.build(inner)
            ends.append(self.add("jump"))
            self.code[split] = ("either", split + 1, len(self.code))
        self.build(branches[-1])
        for end in ends:
            self.code[end] = ("jump", len(self.code))

    def _repeat(self, least: int, most: int, inner: Any, *, is_greedy: bool) -> None:
        for _ in range(min(least, MAX_INSTRUCTIONS + 1)):
            self.build(inner)
        if most >= MAX_INSTRUCTIONS:  # without an end
            loop, self.loops = self.loops, self.loops + 1
            begin = self.add("loop")
            self.build(inner)
            self.add("jump", begin)
            self.code[begin] = ("loop", loop, begin + 1, len(self.code), is_greedy)
            return
        splits: list[int] = []
        for _ in range(most - least):
            splits.append(self.add("either"))
            self.build(inner)
        for split in splits:
            ways = (split + 1, len(self.code))
            self.code[split] = ("either", *(ways if is_greedy else ways[::-1]))

    def _look(self, value: tuple[int, Any], *, is_wanted: bool) -> None:
        direction, inner = value
        least, most = inner.getwidth()
        if direction < 0 and least != most:
            raise _Unsupported
        ways = _Ways(self._flags)
        ways.build(inner)
        self.add("look", ways, least if direction < 0 else 0, is_wanted)

    def _test(self, kind: str, value: Any) -> Test:
        folds = bool(self._flags & re.IGNORECASE)
        if kind == "ANY":
            return (lambda sign: True) if self._flags & re.DOTALL else (lambda sign: sign != "\n")
        if kind != "IN":
            wanted = chr(value)
            is_same: Test = (lambda sign: sign.lower() == wanted.lower()) if folds else (lambda sign: sign == wanted)
            return is_same if kind == "LITERAL" else (lambda sign: not is_same(sign))
        is_among = [_member(str(item), given) for item, given in value if str(item) != "NEGATE"]
        is_negated = str(value[0][0]) == "NEGATE"

        def test(sign: str) -> bool:
            forms = {sign, sign.lower(), sign.upper()} if folds else (sign,)
            return any(each(form) for each in is_among for form in forms) is not is_negated

        return test


def _member(kind: str, value: Any) -> Test:
    match kind:
        case "LITERAL":
            return lambda sign: ord(sign) == value if len(sign) == 1 else False
        case "RANGE":
            return lambda sign: len(sign) == 1 and value[0] <= ord(sign) <= value[1]
        case "CATEGORY":
            name = str(value).replace("CATEGORY_NOT_", "CATEGORY_")
            if name not in _CATEGORIES:
                raise _Unsupported
            test, is_negated = _CATEGORIES[name], name != str(value)
            return lambda sign: test(sign) is not is_negated
        case _:
            raise _Unsupported


@lru_cache(maxsize=256)
def _ways_of(pattern: str) -> _Ways | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = importlib.import_module("re._parser").parse(pattern)
        if parsed.state.flags & ~_FLAGS:
            return None
        ways = _Ways(parsed.state.flags)
        ways.build(parsed)
    except (_Unsupported, re.error, OverflowError, RecursionError, AttributeError, ImportError):
        return None
    return ways


def search_in_steps(pattern: str, text: str, most: int) -> tuple[bool | None, int]:
    """Whether a pattern is found in a text, and the steps that took; None if it takes more steps, or the pattern has parts (such as
    back-references) that are not matched here."""
    ways = _ways_of(pattern)
    if ways is None:
        return None, 0
    left = most
    for begin in range(len(text) + 1):
        found, left = _run(ways, text, begin, left)
        if found or left <= 0:
            return (True if found else None), most - left
    return False, most - left


def _run(ways: _Ways, text: str, begin: int, left: int) -> tuple[bool, int]:
    """Whether it matches from a place on, and how many steps are left."""
    waiting: list[tuple[int, int, tuple[int, ...]]] = [(0, begin, (-1,) * ways.loops)]
    while waiting:
        at, place, loops = waiting.pop()
        while left > 0:
            left -= 1
            if at == len(ways.code):
                return True, left
            instruction = ways.code[at]
            match instruction[0]:
                case "test" if place < len(text) and instruction[1](text[place]):
                    at, place = at + 1, place + 1
                case "jump":
                    at = instruction[1]
                case "either":
                    waiting.append((instruction[2], place, loops))
                    at = instruction[1]
                case "loop":
                    _, loop, inner, after, is_greedy = instruction
                    if loops[loop] == place:  # nothing was matched the last time round
                        at = after
                        continue
                    entered = (*loops[:loop], place, *loops[loop + 1 :])
                    first, second = ((inner, entered), (after, loops)) if is_greedy else ((after, loops), (inner, entered))
                    waiting.append((second[0], place, second[1]))
                    at, loops = first
                case "at" if _stands(instruction[1], instruction[2], text, place):
                    at += 1
                case "look":
                    found, left = (False, left) if place < instruction[2] else _run(instruction[1], text, place - instruction[2], left)
                    if found is not instruction[3]:
                        break
                    at += 1
                case _:
                    break
        if left <= 0:
            return False, 0
    return False, left


def _stands(where: str, is_multiline: bool, text: str, place: int) -> bool:
    match where:
        case "AT_BEGINNING" if is_multiline:
            return place == 0 or text[place - 1] == "\n"
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return place == 0
        case "AT_END" if is_multiline:
            return place == len(text) or text[place] == "\n"
        case "AT_END":
            return place == len(text) or (place == len(text) - 1 and text[place] == "\n")
        case "AT_END_STRING":
            return place == len(text)
        case _:
            sides = [0 <= at < len(text) and _is_word(text[at]) for at in (place - 1, place)]
            return (sides[0] is not sides[1]) is (where == "AT_BOUNDARY")
