"""A strict reading of a command line: plain words, quotes that hold nothing special, `&&`, `||`, `|`, `;` and a few harmless redirections.

It understands far less than bash does, on purpose: what it does not know, it refuses to read. It works on bytes, because bash does and
because the parser (shell_grammar.py) counts in bytes; both must find the same words at the same places.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from dragoman.base.visible import escape_hidden
from dragoman.words import say

MAX_WORDS = 2_000
"""A line with more is not read: it would hold up everything else."""
_PLAIN_RUN = re.compile(rb"[A-Za-z0-9_./:,+%@=^-]+")
_GLOB = frozenset(b"*?[]")
_ENDS_WORD = frozenset(b" \t\n;&|<>()")
_AFTER_LONE_DOLLAR = frozenset(b'" |)')
"""Behind these, a `$` between double quotes is a dollar sign and expands to nothing, as in a pattern: "end$"."""
_IN_DOUBLE_QUOTES = frozenset(b'"\\$`')
"""What a backslash between double quotes takes the meaning from."""
_REDIRECT = re.compile(rb"(?:(?P<null>[12]?>>?|&>|<)[ \t]*(?P<target>/dev/null)|(?:2>&|>&|1>&)(?P<copy>[12]))(?=[ \t\n;&|]|$)")
_STATUS = b"$?"
_OPERATORS = (b"&&", b"||", b"|", b";")

Operator = Literal["&&", "||", "|", ";"]
Span = tuple[int, int]


class Unclear(Exception):
    """The command cannot be read with certainty; the text says what stands in the way."""


class ShellWord(msgspec.Struct, frozen=True):
    """One word of a command, quotes removed."""

    text: str
    span: Span
    is_plain: bool
    """Written without quotes, backslashes, patterns or a tilde."""
    has_glob: bool = False
    """The shell replaces it by the names of files that fit; `text` is then the pattern."""
    has_tilde: bool = False
    """Begins with the name of a home directory, not quoted."""
    has_status: bool = False
    """Holds `$?`, for which the shell puts a number."""


class ShellReading(msgspec.Struct, frozen=True):
    """The commands of a line in order, each as its words, and what stands between them."""

    commands: tuple[tuple[ShellWord, ...], ...]
    operators: tuple[Operator, ...]
    """One fewer than commands."""
    spans: tuple[Span, ...]
    """Where words stand, those of redirections included; and the operators."""


def read_words(line: bytes) -> ShellReading:
    """Raises Unclear."""
    return _Reader(line).read()


class _Reader:
    def __init__(self, line: bytes) -> None:
        self._line = line
        self._at = 0
        self._commands: list[tuple[ShellWord, ...]] = []
        self._operators: list[Operator] = []
        self._words: list[ShellWord] = []
        self._spans: list[Span] = []
        self._has_status = False

    def read(self) -> ShellReading:
        if bad := re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", self._line):
            raise Unclear(say("policy.shell_control", code=f"{bad.group()[0]:02x}"))
        while self._at < len(self._line):
            self._read_one()
            if len(self._spans) > MAX_WORDS:
                raise Unclear(say("policy.shell_many", count=MAX_WORDS))
        self._end_command()
        if not self._commands or len(self._operators) != len(self._commands) - 1:
            raise Unclear(say("policy.shell_incomplete"))
        return ShellReading(tuple(self._commands), tuple(self._operators), tuple(sorted(self._spans)))

    def _read_one(self) -> None:
        here = self._line[self._at]
        if here in b" \t":
            self._at += 1
        elif self._line.startswith(b"\\\n", self._at):
            self._at += 2
        elif here == ord("\n"):
            self._at += 1
            self._end_line()
        elif here == ord("#"):
            end = self._line.find(b"\n", self._at)
            self._at = len(self._line) if end < 0 else end
        elif not self._read_redirect() and not self._read_operator():
            self._words.append(self._read_word())

    def _read_redirect(self) -> bool:
        found = _REDIRECT.match(self._line, self._at)
        if found is None:
            return False
        if not self._words:
            raise Unclear(say("policy.shell_redirect"))
        self._spans.append(found.span("target") if found["target"] else found.span("copy"))
        self._at = found.end()
        return True

    def _read_operator(self) -> bool:
        for operator in _OPERATORS:
            if self._line.startswith(operator, self._at):
                break
        else:
            return False
        after = self._at + len(operator)
        if self._line[after : after + 1] in (b"&", b";") or (operator == b"|" and self._line[after : after + 1] == b"|"):
            raise Unclear(say("policy.shell_operator", text=self._line[self._at : after + 1].decode("ascii", "replace")))
        if not self._words:
            raise Unclear(say("policy.shell_incomplete"))
        self._spans.append((self._at, after))
        self._at = after
        self._end_command()
        self._operators.append(operator.decode())  # type: ignore[arg-type]
        return True

    def _end_line(self) -> None:
        """A newline ends a command, unless the one before it waits for another."""
        if self._words:
            self._end_command()
            self._operators.append(";")

    def _end_command(self) -> None:
        if self._words:
            self._commands.append(tuple(self._words))
            self._words = []
        elif self._operators and self._operators[-1] == ";" and len(self._operators) == len(self._commands):
            self._operators.pop()  # a last `;` or newline, with nothing behind it

    def _read_word(self) -> ShellWord:
        begin, text = self._at, bytearray()
        is_plain, has_glob, has_tilde = True, False, False
        self._has_status = False
        if self._line[begin : begin + 2] == b"{}" and (begin + 2 == len(self._line) or self._line[begin + 2] in _ENDS_WORD):
            self._at += 2  # as find has it: alone, it means nothing to the shell
            self._spans.append((begin, self._at))
            return ShellWord("{}", (begin, self._at), is_plain=False)
        while self._at < len(self._line) and (here := self._line[self._at]) not in _ENDS_WORD:
            if plain := _PLAIN_RUN.match(self._line, self._at):
                text += plain.group()
                self._at = plain.end()
                continue
            if here == ord("#") and self._at > begin:
                text.append(here)
                self._at += 1
                continue
            is_plain = False
            if here in _GLOB:
                has_glob = True
                text.append(here)
                self._at += 1
            elif here == ord("~"):
                has_tilde = self._read_tilde(begin, text) or has_tilde
            elif here == ord("'"):
                text += self._read_single()
            elif here == ord('"'):
                text += self._read_double()
            elif here == ord("\\"):
                text += self._read_backslash()
            elif self._line.startswith(_STATUS, self._at):
                text += self._read_status()
            else:
                raise Unclear(_reason_for(self._line, self._at))
        if self._at == begin:
            raise Unclear(_reason_for(self._line, self._at))
        self._spans.append((begin, self._at))
        if has_glob and (
            b"\\" in self._line[begin : self._at] or b"'" in self._line[begin : self._at] or b'"' in self._line[begin : self._at]
        ):
            raise Unclear(say("policy.shell_glob"))  # which of its characters are meant literally is not worth finding out
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            raise Unclear(say("policy.shell_encoding")) from None
        return ShellWord(decoded, (begin, self._at), is_plain, has_glob, has_tilde, self._has_status)

    def _read_tilde(self, begin: int, text: bytearray) -> bool:
        after = self._line[self._at + 1 : self._at + 2]
        if self._at == begin and after not in (b"", b"/", b" ", b"\t", b"\n", b";", b"|", b"&"):
            raise Unclear(say("policy.shell_tilde"))  # ~name, ~+, ~-
        if self._at > begin and not chr(self._line[self._at - 1]).isalnum():
            raise Unclear(say("policy.shell_tilde"))  # bash expands it behind = and : too
        text += b"~"
        self._at += 1
        return self._at - 1 == begin

    def _read_single(self) -> bytes:
        end = self._line.find(b"'", self._at + 1)
        if end < 0:
            raise Unclear(say("policy.shell_quote"))
        inner = self._line[self._at + 1 : end]
        self._at = end + 1
        return inner

    def _read_double(self) -> bytes:
        text = bytearray()
        self._at += 1
        while True:
            here = self._line[self._at : self._at + 1]
            after = self._line[self._at + 1 : self._at + 2]
            if not here:
                raise Unclear(say("policy.shell_quote"))
            if here == b'"':
                self._at += 1
                return bytes(text)
            if here + after == _STATUS:
                text += self._read_status()
                continue
            if here == b"`" or (here == b"$" and (not after or after[0] not in _AFTER_LONE_DOLLAR)):
                raise Unclear(_reason_for(self._line, self._at))
            if here == b"\\":
                # In some encodings (GBK, Shift JIS) a backslash behind such a byte is the second half of a character.
                if after == b"\n" or not after or self._line[self._at - 1] > 126:
                    raise Unclear(say("policy.shell_backslash"))
                text += after if after[0] in _IN_DOUBLE_QUOTES else here + after
                self._at += 2
                continue
            text += here
            self._at += 1

    def _read_status(self) -> bytes:
        self._has_status = True
        self._at += len(_STATUS)
        return _STATUS

    def _read_backslash(self) -> bytes:
        after = self._line[self._at + 1 : self._at + 2]
        if not after or after == b"\n" or after[0] > 126:
            raise Unclear(say("policy.shell_backslash"))
        self._at += 2
        return after


def _reason_for(line: bytes, at: int) -> str:
    """What the character is that stops the reading."""
    two = line[at : at + 2]
    here = two[:1]
    if two in (b"$(", b"<(", b">(") or here == b"`":
        return say("policy.shell_substitution")
    if two == b"<<":
        return say("policy.shell_heredoc")
    if here in (b"<", b">") or two == b"&>":
        return say("policy.shell_redirect")
    if here == b"$":
        return say("policy.shell_variable")
    if here == b"&":
        return say("policy.shell_background")
    if here.isascii():
        return say("policy.shell_character", text=here.decode())
    # A letter of another alphabet may look like one of ours: its number tells them apart.
    sign = line[at:].decode("utf-8", "replace")[:1]
    return say("policy.shell_character", text=f"{escape_hidden(sign, one_line=True)} (U+{ord(sign):04X})")
