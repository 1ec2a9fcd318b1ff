"""The part between `---` lines at the top of a Markdown file, read leniently: people write it by hand, and seldom as YAML wants it.

Every value is text, a list or a mapping: `true` stays "true". What cannot be read is named with its line and left out; the rest is used.
Anchors, aliases and tags are text like any other, so that nothing can grow while it is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property

import msgspec

from dragoman.extensions.yaml_scalars import NotFlow, Value, fold, quoted_at, read_flow, read_quoted
from dragoman.words import say

MAX_DEPTH = 12
MAX_FAULTS = 20
_COLON = re.compile(r":(?=\s|$)")
_BLOCK = re.compile(r"[|>](?P<marks>[+-]?[1-9]?[+-]?)(?:\s+#.*)?\s*")
_TAG = re.compile(r"<(\w[\w-]{0,40})>")
_END_TAG = re.compile(r"</(\w[\w-]{0,40})>")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class UnreadLine(msgspec.Struct, frozen=True):
    """Something that could not be read."""

    line: int
    reason: str
    """For the user."""


class Frontmatter(msgspec.Struct, frozen=True):
    """What stood between the `---` lines, and the text below them."""

    values: Mapping[str, Value]
    body: str
    lines: Mapping[str, int] = {}
    """The line on which each key stands, the first line of the file being 1."""
    body_line: int = 1
    faults: tuple[UnreadLine, ...] = ()
    written: Mapping[str, str] = {}
    """Values of one line as they are written: `[file] [options]`, which is not a list, and `[file]`, which would be one."""

    def text(self, key: str) -> str:
        """The value as one text; a list as it is written, or joined by commas. Empty if there is no value."""
        value = self.values.get(key, "")
        if isinstance(value, str):
            return value.strip()
        if written := self.written.get(key):
            return written
        return ", ".join(_leaves(value))

    def words(self, key: str, separator: str = ",") -> list[str]:
        """The value as a list: a list as it is, a text parted at the separators that stand in no brackets."""
        value = self.values.get(key, "")
        parts = part_outside_brackets(value, separator) if isinstance(value, str) else list(_leaves(value))
        return [part.strip() for part in parts if part.strip()]

    def flag(self, key: str) -> bool | None:
        """The value as a boolean; None if it is missing, or neither true nor false."""
        value = self.text(key).lower()
        return True if value in _TRUE else False if value in _FALSE else None


def read_frontmatter(text: str) -> Frontmatter:
    """Never fails. Without frontmatter everything is the body."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or lines[start].rstrip() != "---":
        return Frontmatter({}, "\n".join(lines))
    end = next((number for number in range(start + 1, len(lines)) if lines[number].rstrip() in ("---", "...")), None)
    reader = _Reader(lines, start + 1, _guess_end(lines, start + 1) if end is None else end)
    if end is None and reader.end == start + 1:  # a line across the page, and no frontmatter
        return Frontmatter({}, "\n".join(lines))
    values = reader.read_top()
    if end is None:
        reader.fault(start, say("skills.frontmatter_no_end"))
    below = reader.end if end is None else reader.end + 1
    body = "\n".join(lines[below:])
    faults = tuple(sorted(reader.faults, key=lambda fault: fault.line))[:MAX_FAULTS]
    return Frontmatter(values, body, reader.lines_of, below + 1, faults, reader.written)


def part_outside_brackets(text: str, separator: str = ",") -> list[str]:
    """`Bash(git add:*, x), Read` has two parts. A separator of a blank stands for any white space."""
    parts, depth, start = list[str](), 0, 0
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(0, depth - 1)
        elif depth == 0 and (char in separator or (" " in separator and char.isspace())):
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _leaves(value: Value) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [f"{key}: {', '.join(_leaves(each))}" for key, each in value.items()]
    return [leaf for each in value for leaf in _leaves(each)]


def _guess_end(lines: list[str], start: int) -> int:
    """Without a closing line it ends before the first line that looks like none of it, or before a blank line that no key follows."""
    at = start
    for number in range(start, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        if line[0] in " \t" or (line.startswith(("- ", "#")) and number == at) or _part(line.rstrip()):
            at = number + 1
        else:
            break
    return at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith(("- ", "-\t"))


class _Reader:
    """Goes through the lines once, from the top."""

    def __init__(self, lines: list[str], start: int, end: int):
        self._lines = lines
        self._at = start
        self.end = end
        self.faults: list[UnreadLine] = []
        self.lines_of: dict[str, int] = {}
        self.written: dict[str, str] = {}

    def fault(self, number: int, reason: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(UnreadLine(number + 1, reason))

    def read_top(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        while (indent := self._peek()) is not None:
            values.update(self._read_mapping(indent, 0))
        return values

    def _peek(self) -> int | None:
        """The indentation of the next line that holds something; None at the end."""
        while self._at < self.end:
            text = self._lines[self._at].strip()
            if text and not text.startswith("#"):
                return _indent(self._lines[self._at])
            self._at += 1
        return None

    def _skip(self, indent: int) -> None:
        """Past everything that is indented as deep or deeper."""
        while (found := self._peek()) is not None and found >= indent:
            self._at += 1

    def _read_mapping(self, indent: int, depth: int) -> dict[str, Value]:
        values: dict[str, Value] = {}
        while (found := self._peek()) is not None and found >= indent:
            number = self._at
            line = self._lines[number]
            parted = _part(line.strip())
            if parted is None:
                self.fault(number, say("skills.frontmatter_line", text=line.strip()[:60]))
                self._at += 1
                continue
            key, rest = parted
            value = self._read_value(rest, found, depth)
            if value is None:
                self.fault(number, say("skills.frontmatter_deep"))
                continue
            values[key] = value
            if depth == 0:
                self._note(key, number, rest)
        return values

    def _note(self, key: str, number: int, rest: str) -> None:
        self.lines_of[key] = number + 1
        self.written.pop(key, None)
        if rest and self._at == number + 1:
            self.written[key] = rest.strip()

    def _read_sequence(self, indent: int, depth: int) -> list[Value]:
        values: list[Value] = []
        while (found := self._peek()) is not None and found == indent and _is_item(self._lines[self._at].lstrip()):
            number = self._at
            line = self._lines[number]
            rest = line.lstrip()[1:]
            inner = found + 1 + _indent(rest)
            rest = rest.strip()
            if _is_item(rest) or _part(rest):
                # `- name: x` begins a mapping, `- - x` a list, indented to where its first word stands
                if depth >= MAX_DEPTH:
                    self.fault(number, say("skills.frontmatter_deep"))
                    self._at += 1
                    self._skip(indent + 1)
                    continue
                self._lines[number] = " " * inner + rest
                values.append(self._read_sequence(inner, depth + 1) if _is_item(rest) else self._read_mapping(inner, depth + 1))
            else:
                value = self._read_value(rest, found, depth)
                if value is None:
                    self.fault(number, say("skills.frontmatter_deep"))
                else:
                    values.append(value)
        return values

    def _read_value(self, rest: str, indent: int, depth: int) -> Value | None:
        """The value whose first line is `rest`, and the lines below that belong to it. None: nested too deep."""
        self._at += 1
        rest = rest.strip()
        if match := _BLOCK.fullmatch(rest):
            return self._read_block(rest[0], match["marks"], indent)
        if not rest or rest.startswith("#"):
            return self._read_below(indent, depth)
        if rest[0] in "\"'":
            return self._read_quoted(rest, indent)
        if rest[0] in "[{":
            return self._read_flow(rest, indent)
        return self._read_plain(rest, indent)

    def _read_below(self, indent: int, depth: int) -> Value | None:
        found = self._peek()
        if found is None:
            return ""
        text = self._lines[self._at].strip()
        is_item = _is_item(text)
        if found < indent or (found == indent and not is_item) or (found == indent and self._is_in_sequence(indent)):
            return ""
        if depth >= MAX_DEPTH:
            self._skip(indent + 1)
            return None
        if is_item:
            return self._read_sequence(found, depth + 1)
        if _part(text):
            return self._read_mapping(found, depth + 1)
        return self._read_value(text, indent, depth)

    def _is_in_sequence(self, indent: int) -> bool:
        """Whether the line before is an item itself, so that an item as deep is its neighbour and not its value."""
        number = self._at - 1
        while number >= 0 and (not self._lines[number].strip() or self._lines[number].lstrip().startswith("#")):
            number -= 1
        return number >= 0 and _is_item(self._lines[number].lstrip()) and _indent(self._lines[number]) == indent

    def _take_deeper(self, indent: int) -> list[str]:
        """The lines below that are indented deeper, blank ones between them included."""
        taken, upto = list[str](), 0
        number = self._at
        while number < self.end:
            line = self._lines[number]
            if line.strip() and _indent(line) <= indent:
                break
            taken.append(line)
            number += 1
            if line.strip():
                upto = len(taken)
        self._at += upto
        return taken[:upto]

    @cached_property
    def _ends_of_tags(self) -> dict[str, list[int]]:
        """The lines on which each tag closes."""
        ends: dict[str, list[int]] = {}
        for number in range(self.end):
            for tag in _END_TAG.findall(self._lines[number]):
                ends.setdefault(tag, []).append(number)
        return ends

    def _take_tagged(self, rest: str) -> list[str]:
        """The lines below up to the last tag that closes, where a tag is left open or follows: descriptions have examples in tags,
        and their lines are seldom indented."""
        taken = list[str]()
        last, number, upto = rest, self._at, self._at
        while True:
            if (tag := _open_tag(last)) is None:
                number = next((at for at in range(number, self.end) if self._lines[at].strip()), self.end)
                if number == self.end or _TAG.match(self._lines[number]) is None:
                    return taken
                last = self._lines[number]
                if (tag := _open_tag(last)) is None:  # a tag that closes on its own line
                    upto = number
            if tag is not None:
                ends = self._ends_of_tags.get(tag, [])
                if (place := bisect_left(ends, number)) == len(ends):
                    return taken
                upto = ends[place]
                last = self._lines[upto]
            taken += self._lines[self._at : upto + 1]
            self._at = number = upto + 1

    def _read_plain(self, rest: str, indent: int) -> str:
        if indent == 0 and (tagged := self._take_tagged(rest)):
            return "\n".join([rest, *tagged]).strip()
        lines = [rest]
        start = self._at
        below = self._take_deeper(indent)
        text = _without_comment(rest)
        if text != rest or not below:  # a comment ends the text
            if below:
                self._at = start
                return self._give_up(text, indent)
            return text
        for line in below:
            stripped = line.strip()
            if stripped.startswith("#"):
                break
            lines.append(_without_comment(stripped))
            if lines[-1] != stripped:
                break
        return fold(lines).strip()

    def _give_up(self, text: str, indent: int) -> str:
        """Lines that belong to nothing: indented under a value that has ended."""
        for line in self._take_deeper(indent):
            if line.strip() and not line.lstrip().startswith("#"):
                self.fault(self._at - 1, say("skills.frontmatter_line", text=line.strip()[:60]))
                break
        return text

    def _read_quoted(self, rest: str, indent: int) -> str:
        """In quotes, over several lines if it is so written. Where the quotes do not close, or text follows them, it is plain text."""
        start = self._at
        if (found := read_quoted([rest])) is not None:
            return found
        below = self._take_deeper(indent)
        if below and (found := read_quoted([rest, *(line.strip() for line in below)])) is not None:
            return found
        self._at = start
        return self._read_plain(rest, indent)

    def _read_flow(self, rest: str, indent: int) -> Value:
        start = self._at
        try:
            return read_flow(rest, MAX_DEPTH)
        except NotFlow:
            pass
        below = self._take_deeper(indent)
        if self._at < self.end and self._lines[self._at].strip()[:1] in ("]", "}") and self._lines[self._at].strip():
            below = [*below, self._lines[self._at]]
            self._at += 1
        try:
            if below:
                return read_flow("\n".join([rest, *(line.strip() for line in below)]), MAX_DEPTH)
        except NotFlow:
            pass
        self._at = start
        return self._read_plain(rest, indent)

    def _read_block(self, style: str, marks: str, indent: int) -> str:
        """`|` keeps the lines, `>` joins them."""
        lines = list[str]()
        while self._at < self.end and (not self._lines[self._at].strip() or _indent(self._lines[self._at]) > indent):
            lines.append(self._lines[self._at])
            self._at += 1
        digits = re.sub(r"\D", "", marks)
        first = next((_indent(line) for line in lines if line.strip()), 0)
        inner = indent + int(digits) if digits else first
        lines = [line[inner:] if line[:inner].strip() == "" else line.lstrip() for line in lines]
        trailing = 0
        while lines and not lines[-1]:
            lines.pop()
            trailing += 1
        text = "\n".join(lines) if style == "|" else fold(lines, literal=True)
        if "+" in marks:
            return text + "\n" * (trailing + bool(lines))
        return text if "-" in marks or not text else text + "\n"


def _open_tag(line: str) -> str | None:
    """The first tag that a line opens and does not close."""
    closed = set(_END_TAG.findall(line))
    return next((tag for tag in _TAG.findall(line) if tag not in closed), None)


def _part(text: str) -> tuple[str, str] | None:
    """A key, and what follows its colon; None if there is no key."""
    if text[:1] in ("'", '"'):
        if (found := quoted_at(text, 0)) is None or not _COLON.match(text, found[1]):
            return None
        return found[0], text[found[1] + 1 :].strip()
    colon = _COLON.search(text)
    if colon is None or text[0] in "#[]{},:":
        return None
    return text[: colon.start()].strip(), text[colon.end() :].strip()


def _without_comment(text: str) -> str:
    match = re.search(r"\s#", text)
    return text[: match.start()].rstrip() if match else text
