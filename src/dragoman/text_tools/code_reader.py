"""Calls written as code: `name(key=value, …)`. Values are read with `ast` and never evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Generator, Iterator
from typing import Any

import msgspec

from dragoman.text_tools.lexer import LexerSource, NotACall

MAX_DEPTH = 60
MAX_ARGS = 500
MAX_NUMBER = 10**18
LOOSE_QUOTES = "quotes inside a string"
LINE_BREAKS = "line breaks inside a string"
BARE_WORD = "a word without quotes"
SUM = "a sum worked out"
LEADING_ZEROS = "zeros before a number"

_PLAIN = re.compile(r"""[^"'()\[\]{}]*""")
_PLAIN_ESCAPED = re.compile(r"""[^"'()\[\]{}\\]*""")
# No possessive repetition of a group: CPython before 3.11.5 matches it wrongly (gh-106052).
_IN_STRING = {
    '"': re.compile(r'(?:[^"\\]++|\\.|"(?=\s{0,32}[^\s,)\]}:"]))*', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.|'(?=\s{0,32}[^\s,)\]}:']))*", re.DOTALL),
}
_IN_TRIPLE = {'"': re.compile(r'(?:[^"\\]++|\\.)*', re.DOTALL), "'": re.compile(r"(?:[^'\\]++|\\.)*", re.DOTALL)}
_BEHIND_STRING = ",)]}:"
_WINDOW = 64
_NAMES: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None, "True": True, "False": False, "None": None}
_KEY = re.compile(r"\s*([^\W\d][\w-]*)\s*=(?!=)")
_ZEROS = re.compile(r"(-?)0+(\d+)")
_WORDS = re.compile(r"[^\W_][^\"'()\[\]{}=<>\n]{0,200}")
"""Words without quotes: `location=San Diego`. Whether text is wanted there is the schema's matter."""


class UnreadableArguments(NotACall):
    """A call that is well formed as far as its brackets go. What stands beside it may be read."""


class Code(msgspec.Struct, frozen=True):
    args: dict[str, Any]
    positional: tuple[Any, ...] = ()
    repairs: tuple[str, ...] = ()


def read_parentheses(source: LexerSource, *, is_escaped: bool = False) -> Generator[None, None, str]:
    """Take the text between this parenthesis and the one that closes it. `is_escaped`: the call stands in quotes, which it may escape."""
    text: list[str] = []
    scanner = _Scanner(text, is_escaped=is_escaped)
    while True:
        done, end = scanner.scan(source.buffer, source.position, is_last=source.closed)
        if end > source.position:
            text.append(source.take(end))
        if done:
            return "".join(text)[1:-1]
        if source.closed:
            raise NotACall("it breaks off")
        yield


class _Scanner:
    """Distinguishes Python brackets and strings in a stream."""

    def __init__(self, text: list[str], *, is_escaped: bool = False) -> None:
        self._quote = ""
        self._depth = 0
        self._text = text
        self._plain = _PLAIN_ESCAPED if is_escaped else _PLAIN

    def scan(self, text: str, at: int, *, is_last: bool) -> tuple[bool, int]:
        """Whether the parenthesis closes, and the position reached."""
        while at < len(text):
            if self._quote:
                step = self._in_string(text, at, is_last=is_last)
                if step < 0:
                    return False, ~step
                at = step
                continue
            match = self._plain.match(text, at)
            at = match.end() if match else at
            if at >= len(text):
                break
            mark = text[at]
            if mark == "\\":
                if at + 1 >= len(text) and not is_last:
                    return False, at
                if text[at + 1 : at + 2] in ("'", '"'):
                    self._quote = text[at : at + 2]
                at += 2
            elif mark in "\"'":
                if len(text) - at < 3 and not is_last and text[at:] == mark * (len(text) - at):
                    return False, at
                self._quote = mark * 3 if text.startswith(mark * 3, at) else mark
                at += len(self._quote)
            elif mark in "([{":
                self._depth += 1
                at += 1
                if self._depth > MAX_DEPTH:
                    raise NotACall("it is nested too deeply")
            else:
                self._depth -= 1
                at += 1
                if self._depth <= 0:
                    return True, at
        return False, at

    def _in_string(self, text: str, at: int, *, is_last: bool) -> int:
        """The position reached in a string; its complement (~) if more text is needed."""
        quote = self._quote
        if quote[0] == "\\":
            end = text.find(quote, at)
            if end < 0:
                return len(text) if is_last or text[-1] != "\\" else ~(len(text) - 1)
            self._quote = ""
            return end + 2
        match = (_IN_STRING if len(quote) == 1 else _IN_TRIPLE)[quote[0]].match(text, at)
        at = match.end() if match else at
        if at >= len(text):
            return at
        if text[at] == "\\":
            return at + 2 if at + 1 < len(text) else ~at
        if len(quote) == 3:
            if text.startswith(quote, at):
                self._quote = ""
                return at + 3
            return ~at if len(text) - at < 3 and not is_last else at + 1
        behind = text[at + 1 : at + 1 + _WINDOW]
        following = behind.lstrip()[:1]
        if not following and len(behind) < _WINDOW and not is_last:
            return ~at
        if not following or following in _BEHIND_STRING:
            self._quote = ""
        return at + 1


def parse_arguments(inside: str) -> Code:
    """The text between a call's parentheses as values."""
    args: dict[str, Any] = {}
    positional: list[Any] = []
    repairs: dict[str, None] = {}
    for part in _split_arguments(inside):
        if not part.strip():
            continue
        if len(args) + len(positional) >= MAX_ARGS:
            raise UnreadableArguments("it has too many arguments")
        if part.lstrip().startswith("**"):
            spread = _value(part.lstrip()[2:], repairs)
            if not isinstance(spread, dict):
                raise UnreadableArguments("its arguments are no values")
            args.update(spread)
        elif key := _KEY.match(part):
            args[key[1]] = _value(part[key.end() :], repairs)
        else:
            positional.append(_value(part, repairs))
    return Code(args, tuple(positional), tuple(repairs))


def _split_arguments(inside: str) -> Iterator[str]:
    """Split text at the commas between arguments."""
    scanner = _Commas(inside)
    start = 0
    for comma in scanner.positions():
        yield inside[start:comma]
        start = comma + 1
    yield inside[start:]


class _Commas:
    _MARK = re.compile(r"""["'()\[\]{},]""")

    def __init__(self, text: str) -> None:
        self._text = text

    def positions(self) -> Iterator[int]:
        text, at, depth = self._text, 0, 0
        strings = _Scanner([])
        while match := self._MARK.search(text, at):
            at, mark = match.end(), match.group()
            if mark in "\"'":
                strings._quote = mark * 3 if text.startswith(mark * 3, match.start()) else mark
                at = match.start() + len(strings._quote)
                while strings._quote and at < len(text):
                    step = strings._in_string(text, at, is_last=True)
                    at = step if step >= 0 else len(text)
            elif mark == ",":
                if depth == 0:
                    yield match.start()
            else:
                depth += 1 if mark in "([{" else -1


# --- values ---------------------------------------------------------------------------------------------------------------------------


def _value(text: str, repairs: dict[str, None]) -> Any:
    text = text.strip()
    node = _parse_expression(text)
    if node is not None:
        return _literal(node, repairs)
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return _loose_string(text, repairs)
    if zeros := _ZEROS.fullmatch(text):
        repairs[LEADING_ZEROS] = None
        return int(zeros[1] + zeros[2])
    if _WORDS.fullmatch(text):
        repairs[BARE_WORD] = None
        return text
    raise UnreadableArguments("its arguments are no values")


def _parse_expression(text: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes that Python does not know
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _literal(node: ast.expr, repairs: dict[str, None]) -> Any:
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_literal(item, repairs) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _literal(value, repairs) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if not isinstance(number, bool):
            return -number
        case ast.UnaryOp(op=ast.UAdd(), operand=ast.Constant(value=int() | float() as number)) if not isinstance(number, bool):
            return number
        case ast.BinOp():
            repairs[SUM] = None
            return _work_out(node, 0)
        case ast.Name(id=name):
            if name not in _NAMES:
                repairs[BARE_WORD] = None
            return _NAMES.get(name, name)
        case _:
            raise UnreadableArguments("its arguments are no values")


def _work_out(node: ast.expr, depth: int) -> int | float:
    """The value of a sum of numbers, such as `60 * 60`. Nothing but numbers and four signs, so it is one value and no program."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool) and abs(number) < MAX_NUMBER:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner) if depth < MAX_DEPTH:
            return -_work_out(inner, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if depth < MAX_DEPTH:
            one, other = _work_out(left, depth + 1), _work_out(right, depth + 1)
            match op:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult() if abs(one * other) < MAX_NUMBER:
                    return one * other
                case ast.Div() if other:
                    return one / other
                case _:
                    pass
        case _:
            pass
    raise UnreadableArguments("its arguments are no values")


def _key(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str() as key):
            return key
        case ast.Constant(value=bool() | None as key):
            return {True: "true", False: "false", None: "null"}[key]
        case ast.Constant(value=int() | float() as key):
            return str(key)
        case _:
            raise UnreadableArguments("its arguments are no values")


def _loose_string(text: str, repairs: dict[str, None]) -> str:
    """A string with line breaks or quotes that Python would reject."""
    inside = text[1:-1]
    if "\n" in inside or "\r" in inside:
        repairs[LINE_BREAKS] = None
    whole = inside.replace("\r\n", "\n").replace("\n", "\\n").replace("\r", "\\r").replace("\x00", "\\x00")
    node = _parse_expression(text[0] + whole + text[0])
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        repairs[LOOSE_QUOTES] = None
        node = _parse_expression(text[0] + _escape_quotes(whole, text[0]) + text[0])
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return inside


def _escape_quotes(text: str, quote: str) -> str:
    return re.sub(rf"(\\.)|{quote}", lambda match: match[1] or "\\" + quote, text, flags=re.DOTALL)
