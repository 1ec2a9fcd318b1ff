r"""The plain-text form of a script: one step per line, answers parted by `---`, comments after `#`.

script: end=raise                           how it ends: say (with text="..."), raise, repeat; only as the first line
answer: times=3 piece_bytes=1 piece_wait=2  options of an answer: also calls=interleaved+no_index, framing=crlf+bom
text piece=4: Let me read it.               what cannot stand on a line is a JSON string: text: "two\nlines"
thought signature=c2ln: I should look.      also redacted
call id=c1 piece=5: read_file {"path": 1}   id="" is an empty id; args="..." holds arguments that are no line of text
cite title="A page": https://example.org
usage: fresh=100 cache_read=50 output=20    also cache_write, cache_write_1h, thought
wait: 0.5
error: 429 retry_after=7 "Slow down"        also code, param, retry_date, retry_info, quota_id
ping: 3 every=0.1                           or: ping: forever every=1
garbage: {"broken
raw: "event: news\ndata: {}\n\n"            or: raw base64: ZGF0YQ==
finish: MALFORMED_FUNCTION_CALL "why"       finish: none leaves the terminal event out
block: SAFETY
cut: 120                                    at that byte of the body; alone: here
stall: 3                                    after so many events; alone: from here on
nothing                                     an answer without any step
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from dragoman.base.text import closest
from dragoman.testing.script_steps import (
    BlockStep,
    CallQuirk,
    CallStep,
    Cite,
    CutStep,
    Fail,
    Finish,
    Garbage,
    Ping,
    RawStep,
    ReportStep,
    Say,
    ScriptedAnswer,
    ScriptForm,
    ScriptFraming,
    Stall,
    Step,
    Think,
    Wait,
)
from dragoman.values.errors import InputError
from dragoman.values.usage import Usage
from dragoman.words import say

_STRING = r'"(?:[^"\\]|\\.)*"'
_LINE = re.compile(rf'\s*(\w+)((?:\s+\w+(?:=(?:{_STRING}|[^\s":]+))?)*)\s*(?::(.*))?', re.DOTALL)
_WORD = re.compile(rf'\s*(?:(\w+)=)?({_STRING}|[^\s"]+)(?=\s|$)')
_RULE = re.compile(r"\s*-{3,}\s*")

Number = TypeVar("Number", int, float)


class _Line:
    """One parsed line: keyword, options before the colon, and the body after it."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        found = _LINE.fullmatch(text)
        if found is None:
            self.fail(say("testing.script_not_a_line", text=text.strip()))
        self.keyword, options, body = found.groups()
        self.has_body = body is not None
        self.body = (body or "").strip()
        self.options = {key or value: self.unquote(value) if key else "" for key, value in _WORD.findall(options)}

    def fail(self, problem: str) -> NoReturn:
        raise InputError(say("testing.script_line", line=self.number, problem=problem))

    def unquote(self, text: str) -> str:
        """Decode a JSON string; plain text stays unchanged."""
        if not text.startswith('"'):
            return text
        try:
            value = json.loads(text)
        except ValueError as error:
            self.fail(say("testing.script_not_a_string", text=text, reason=error))
        return value

    def text(self) -> str:
        """The body as text. It is required, even if it is an empty string."""
        if not self.body:
            self.fail(say("testing.script_no_text", keyword=self.keyword))
        return self.unquote(self.body)

    def words(self, *allowed: str) -> tuple[list[str], dict[str, str]]:
        """The body as plain words, and as key=value pairs."""
        plain: list[str] = []
        pairs: dict[str, str] = {}
        at = 0
        while at < len(self.body):
            found = _WORD.match(self.body, at)
            if found is None:
                self.fail(say("testing.script_not_words", text=self.body[at:].strip()))
            at = found.end()
            key, value = found.groups()
            if key is None:
                plain.append(self.unquote(value))
            else:
                pairs[key] = self.unquote(value)
        self.check_options(pairs, allowed)
        return plain, pairs

    def check_options(self, options: Mapping[str, str], allowed: tuple[str, ...]) -> None:
        for key in options:
            if key not in allowed:
                if not allowed:
                    self.fail(say("testing.script_no_options", keyword=self.keyword, option=key))
                known, hint = ", ".join(allowed), _nearest(key, allowed)
                self.fail(say("testing.script_unknown_option", keyword=self.keyword, option=key, known=known, hint=hint))

    def number_of(self, kind: type[Number], text: str, what: str, least: Number | None = None) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or value != value or value in (float("inf"), float("-inf")) or (least is not None and value < least):
            if least is None:
                self.fail(say("testing.script_not_whole" if kind is int else "testing.script_not_a_number", text=text, what=what))
            key = "testing.script_not_whole_from" if kind is int else "testing.script_not_a_number_from"
            self.fail(say(key, text=text, what=what, least=least))
        return value


def parse(text: str) -> ScriptForm:
    """Read a script. InputError names the line, what is wrong with it and what would be right."""
    script: dict[str, Any] = {}
    answers: list[ScriptedAnswer] = []
    block: list[_Line] = []
    seen_any = False
    last_rule = 0
    for number, content in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        if _RULE.fullmatch(content):
            if block:
                answers.append(_read_answer(list(block)))
            elif last_rule:
                problem = say("testing.script_no_step", since=last_rule)
                raise InputError(say("testing.script_line", line=number, problem=problem))
            block.clear()
            last_rule = number
            continue
        line = _Line(number, content)
        if line.keyword == "script":
            if seen_any:
                line.fail(say("testing.script_too_late"))
            script = _read_script_options(line)
        else:
            block.append(line)
        seen_any = True
    if block:
        answers.append(_read_answer(block))
    return ScriptForm(tuple(answers), **script)


def _read_script_options(line: _Line) -> dict[str, Any]:
    _, pairs = line.words("end", "text")
    if pairs.get("end", "say") not in ("say", "raise", "repeat"):
        line.fail(say("testing.script_wrong_end", end=pairs["end"]))
    names = {"end": "at_end", "text": "end_text"}
    return {names[key]: value for key, value in pairs.items()}


def _read_answer(lines: list[_Line]) -> ScriptedAnswer:
    options: dict[str, Any] = {}
    if lines[0].keyword == "answer":
        options = _read_answer_options(lines[0])
        lines = lines[1:]
    if lines and lines[0].keyword == "nothing":
        if len(lines) > 1:
            lines[1].fail(say("testing.script_nothing_and_more"))
        lines = []
    return ScriptedAnswer(tuple(_read_step(line) for line in lines), **options)


def _read_answer_options(line: _Line) -> dict[str, Any]:
    _, pairs = line.words("calls", "framing", "piece_bytes", "piece_wait", "times")
    options: dict[str, Any] = {}
    for key, value in pairs.items():
        match key:
            case "calls":
                options["calls"] = tuple(_read_member(line, CallQuirk, word) for word in value.split("+"))
            case "framing":
                options["framing"] = tuple(_read_member(line, ScriptFraming, word) for word in value.split("+"))
            case "piece_wait":
                options["piece_wait_s"] = line.number_of(float, value, "piece_wait", 0.0)
            case _:
                options[key] = line.number_of(int, value, key, 1 if key == "times" else 0)
    return options


Member = TypeVar("Member", CallQuirk, ScriptFraming)


def _read_member(line: _Line, kind: type[Member], word: str) -> Member:
    try:
        return kind(word)
    except ValueError:
        names = tuple(kind)
        line.fail(say("testing.script_unknown_word", word=word, known=", ".join(names), hint=_nearest(word, names)))


def _read_step(line: _Line) -> Step:
    read = _READERS.get(line.keyword)
    if read is None:
        if line.keyword in ("answer", "nothing"):
            line.fail(say("testing.script_answer_too_late", keyword=line.keyword))
        hint = _nearest(line.keyword, tuple(_READERS))
        line.fail(say("testing.script_unknown_step", keyword=line.keyword, known=", ".join(_READERS), hint=hint))
    return read(line)


def _read_text(line: _Line) -> Say:
    line.check_options(line.options, ("piece",))
    return Say(line.text(), _piece(line))


def _read_thought(line: _Line) -> Think:
    line.check_options(line.options, ("signature", "piece", "redacted"))
    signed = line.options.get("signature", "")
    text = line.text() if line.body or not signed else ""
    return Think(text, signed, _piece(line), "redacted" in line.options)


def _read_call(line: _Line) -> CallStep:
    line.check_options(line.options, ("id", "piece", "args", "signature"))
    found = _WORD.match(line.body)
    if found is None or found[1]:
        line.fail(say("testing.script_call_without_name", example='{"path": "a.txt"}'))
    arguments = line.body[found.end() :].strip()
    if arguments and "args" in line.options:
        line.fail(say("testing.script_arguments_twice"))
    arguments = line.options.get("args", arguments or "{}")
    return CallStep(line.unquote(found[2]), arguments, line.options.get("id"), _piece(line), line.options.get("signature", ""))


def _read_cite(line: _Line) -> Cite:
    line.check_options(line.options, ("title", "text"))
    return Cite(line.text(), line.options.get("title", ""), line.options.get("text", ""))


def _read_usage(line: _Line) -> ReportStep:
    names = tuple(name.removesuffix("_tokens") for name in Usage.__struct_fields__)
    plain, pairs = line.words(*names)
    if plain:
        line.fail(say("testing.script_not_a_count", word=plain[0]))
    return ReportStep(Usage(**{f"{key}_tokens": line.number_of(int, value, key, 0) for key, value in pairs.items()}))


def _read_wait(line: _Line) -> Wait:
    return Wait(line.number_of(float, line.body, say("testing.a_wait"), 0.0))


def _read_error(line: _Line) -> Fail:
    plain, pairs = line.words("code", "param", "retry_after", "retry_date", "retry_info", "quota_id")
    if not plain or len(plain) > 2:
        line.fail(say("testing.script_wrong_error"))
    hints = {f"{key}_s": line.number_of(float, pairs[key], key, 0.0) for key in ("retry_after", "retry_date", "retry_info") if key in pairs}
    status = line.number_of(int, plain[0], say("testing.a_status"), 400)
    if status > 599:
        line.fail(say("testing.script_wrong_status", status=status))
    code, param, quota = (pairs.get(key, "") for key in ("code", "param", "quota_id"))
    return Fail(status, plain[1] if len(plain) == 2 else "", code, quota_id=quota, param=param, **hints)


def _read_cut(line: _Line) -> CutStep:
    return CutStep(line.number_of(int, line.body, say("testing.a_byte_count"), 0) if line.has_body else None)


def _read_stall(line: _Line) -> Stall:
    return Stall(line.number_of(int, line.body, say("testing.an_event_count"), 0) if line.has_body else None)


def _read_ping(line: _Line) -> Ping:
    plain, pairs = line.words("every")
    if len(plain) > 1:
        line.fail(say("testing.script_wrong_ping", word=plain[1]))
    count = None if plain == ["forever"] else line.number_of(int, plain[0] if plain else "1", say("testing.a_ping_count"), 0)
    return Ping(count, line.number_of(float, pairs.get("every", "0"), "every", 0.0))


def _read_garbage(line: _Line) -> Garbage:
    return Garbage(line.text()) if line.has_body else Garbage()


def _read_finish(line: _Line) -> Finish:
    plain, _ = line.words()
    if not plain or len(plain) > 2:
        line.fail(say("testing.script_wrong_finish"))
    return Finish("" if plain[0] == "none" else plain[0], plain[1] if len(plain) == 2 else "")


def _read_block(line: _Line) -> BlockStep:
    return BlockStep(line.text()) if line.has_body else BlockStep()


def _read_raw(line: _Line) -> RawStep:
    line.check_options(line.options, ("base64",))
    if "base64" not in line.options:
        return RawStep(line.text().encode("utf-8", "surrogatepass"))
    try:
        return RawStep(base64.b64decode(line.body, validate=True))
    except binascii.Error as error:
        line.fail(say("testing.script_not_base64", text=line.body, reason=error))


def _piece(line: _Line) -> int:
    return line.number_of(int, line.options.get("piece", "0"), say("testing.a_piece_size"), 0)


_READERS: dict[str, Callable[[_Line], Step]] = {
    "text": _read_text,
    "thought": _read_thought,
    "call": _read_call,
    "cite": _read_cite,
    "usage": _read_usage,
    "wait": _read_wait,
    "error": _read_error,
    "cut": _read_cut,
    "stall": _read_stall,
    "ping": _read_ping,
    "garbage": _read_garbage,
    "finish": _read_finish,
    "block": _read_block,
    "raw": _read_raw,
}


def _nearest(word: str, names: tuple[str, ...]) -> str:
    near = closest(word, names)
    return say("testing.script_did_you_mean", name=near[0]) if near else ""
