r"""The plain-text form of a script: one step per line, answers parted by `---`, comments after `#`.

script: end=raise                           how it ends: say (with text="..."), raise, repeat; only as the first line
answer: times=3 piece_bytes=1 piece_wait=2  options of an answer: also calls=interleaved+no_index, framing=crlf+bom
text piece=4: Let me read it.               what cannot stand on a line is a JSON string: text: "two\nlines"
thought signature=c2ln: I should look.      also redacted
call id=c1 piece=5: read_file {"path": 1}   id="" is an empty id; args="..." holds arguments that are no line of text
cite title="A page": https://example.org
usage: fresh=100 cache_read=50 output=20    also cache_write, cache_write_1h, thought
wait: 0.5
error: 429 retry_after=7 "Slow down"        also code, retry_date, retry_info, quota_id
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
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar, assert_never

from dragoman.base.text import closest
from dragoman.testing.script import (
    Answer,
    Block,
    Call,
    CallQuirk,
    Cite,
    Cut,
    Fail,
    Finish,
    Framing,
    Garbage,
    Ping,
    Raw,
    Report,
    Say,
    Script,
    Stall,
    Step,
    Think,
    Wait,
)
from dragoman.values.errors import InputError
from dragoman.values.usage import Usage

_STRING = r'"(?:[^"\\]|\\.)*"'
_LINE = re.compile(rf'\s*(\w+)((?:\s+\w+(?:=(?:{_STRING}|[^\s":]+))?)*)\s*(?::(.*))?', re.DOTALL)
_WORD = re.compile(rf'\s*(?:(\w+)=)?({_STRING}|[^\s"]+)(?=\s|$)')
_BARE = re.compile(r"[\w.+-]+")
_RULE = re.compile(r"\s*-{3,}\s*")

Number = TypeVar("Number", int, float)


class _Line:
    """One line, taken apart: keyword, options before the colon, and the body after it."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        found = _LINE.fullmatch(text)
        if found is None:
            self.wrong(f"`{text.strip()}` is not a step", "write `text: ...`, or another step and a colon")
        self.keyword, options, body = found.groups()
        self.has_body = body is not None
        self.body = (body or "").strip()
        self.options = {key or value: self.unquoted(value) if key else "" for key, value in _WORD.findall(options)}

    def wrong(self, what: str, right: str) -> NoReturn:
        raise InputError(f"line {self.number}: {what}; {right}")

    def unquoted(self, text: str) -> str:
        """A JSON string, or plain text as it is."""
        if not text.startswith('"'):
            return text
        try:
            value = json.loads(text)
        except ValueError as error:
            self.wrong(f"{text} is not a JSON string ({error})", r'write "...", with \" and \\ and \n inside')
        return value

    def text(self) -> str:
        """The body as text. It must be there, even where it is empty."""
        if not self.body:
            self.wrong(f"`{self.keyword}` says nothing", f'write `{self.keyword}: words`, or `{self.keyword}: ""` for no words')
        return self.unquoted(self.body)

    def words(self, *allowed: str) -> tuple[list[str], dict[str, str]]:
        """The body as plain words, and as key=value pairs."""
        plain: list[str] = []
        pairs: dict[str, str] = {}
        at = 0
        while at < len(self.body):
            found = _WORD.match(self.body, at)
            if found is None:
                self.wrong(f"cannot read `{self.body[at:].strip()}`", 'write words, key=value or key="..." with spaces between')
            at = found.end()
            key, value = found.groups()
            if key is None:
                plain.append(self.unquoted(value))
            else:
                pairs[key] = self.unquoted(value)
        self.known(pairs, allowed)
        return plain, pairs

    def known(self, options: Mapping[str, str], allowed: tuple[str, ...]) -> None:
        for key in options:
            if key not in allowed:
                right = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
                self.wrong(f"`{self.keyword}` has no option `{key}`", right + _nearest(key, allowed))

    def number_of(self, kind: type[Number], text: str, what: str, least: Number | None = None) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or value != value or value in (float("inf"), float("-inf")) or (least is not None and value < least):
            example = "a whole number" if kind is int else "a number"
            self.wrong(f"`{text}` cannot be {what}", f"write {example}" + (f" of at least {least}" if least is not None else ""))
        return value


# --- reading -------------------------------------------------------------------------------------------------------------


def parse(text: str) -> Script:
    """Read a script. InputError names the line, what is wrong with it and what would be right."""
    script: dict[str, Any] = {}
    answers: list[Answer] = []
    block: list[_Line] = []
    seen_any = False
    last_rule = 0
    for number, content in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        if _RULE.fullmatch(content):
            if block:
                answers.append(_answer(list(block)))
            elif last_rule:
                raise InputError(f"line {number}: there is no step since line {last_rule}; write `nothing` for an answer that says nothing")
            block.clear()
            last_rule = number
            continue
        line = _Line(number, content)
        if line.keyword == "script":
            if seen_any:
                line.wrong("`script` comes too late", "it stands on the first line, before any answer")
            script = _script_options(line)
        else:
            block.append(line)
        seen_any = True
    if block:
        answers.append(_answer(block))
    return Script(tuple(answers), **script)


def _script_options(line: _Line) -> dict[str, Any]:
    _, pairs = line.words("end", "text")
    if pairs.get("end", "say") not in ("say", "raise", "repeat"):
        line.wrong(f"a script cannot end with `{pairs['end']}`", "write end=say, end=raise or end=repeat")
    names = {"end": "at_end", "text": "end_text"}
    return {names[key]: value for key, value in pairs.items()}


def _answer(lines: list[_Line]) -> Answer:
    options: dict[str, Any] = {}
    if lines[0].keyword == "answer":
        options = _answer_options(lines[0])
        lines = lines[1:]
    if lines and lines[0].keyword == "nothing":
        if len(lines) > 1:
            lines[1].wrong("this answer says `nothing` and then something", "leave one of them out")
        lines = []
    return Answer(tuple(_step(line) for line in lines), **options)


def _answer_options(line: _Line) -> dict[str, Any]:
    _, pairs = line.words("calls", "framing", "piece_bytes", "piece_wait", "times")
    options: dict[str, Any] = {}
    for key, value in pairs.items():
        match key:
            case "calls":
                options["calls"] = tuple(_member(line, CallQuirk, word) for word in value.split("+"))
            case "framing":
                options["framing"] = tuple(_member(line, Framing, word) for word in value.split("+"))
            case "piece_wait":
                options["piece_wait_s"] = line.number_of(float, value, "piece_wait", 0.0)
            case _:
                options[key] = line.number_of(int, value, key, 1 if key == "times" else 0)
    return options


Member = TypeVar("Member", CallQuirk, Framing)


def _member(line: _Line, kind: type[Member], word: str) -> Member:
    try:
        return kind(word)
    except ValueError:
        names = tuple(kind)
        line.wrong(f"`{word}` is unknown", f"choose from {', '.join(names)}" + _nearest(word, names))


def _step(line: _Line) -> Step:
    read = _READERS.get(line.keyword)
    if read is None:
        if line.keyword in ("answer", "nothing"):
            line.wrong(f"`{line.keyword}` comes too late", "it stands at the start of an answer, right after `---`")
        line.wrong(f"`{line.keyword}` is not a step", f"steps are {', '.join(_READERS)}" + _nearest(line.keyword, tuple(_READERS)))
    return read(line)


def _read_text(line: _Line) -> Say:
    line.known(line.options, ("piece",))
    return Say(line.text(), _piece(line))


def _read_thought(line: _Line) -> Think:
    line.known(line.options, ("signature", "piece", "redacted"))
    signed = line.options.get("signature", "")
    text = line.text() if line.body or not signed else ""
    return Think(text, signed, _piece(line), "redacted" in line.options)


def _read_call(line: _Line) -> Call:
    line.known(line.options, ("id", "piece", "args", "signature"))
    found = _WORD.match(line.body)
    if found is None or found[1]:
        line.wrong("the call names no tool", 'write `call: read_file {"path": "a.txt"}`')
    arguments = line.body[found.end() :].strip()
    if arguments and "args" in line.options:
        line.wrong("the call has arguments twice", "write them after the name, or as args=")
    arguments = line.options.get("args", arguments or "{}")
    return Call(line.unquoted(found[2]), arguments, line.options.get("id"), _piece(line), line.options.get("signature", ""))


def _read_cite(line: _Line) -> Cite:
    line.known(line.options, ("title", "text"))
    return Cite(line.text(), line.options.get("title", ""), line.options.get("text", ""))


def _read_usage(line: _Line) -> Report:
    names = tuple(name.removesuffix("_tokens") for name in Usage.__struct_fields__)
    plain, pairs = line.words(*names)
    if plain:
        line.wrong(f"`{plain[0]}` is not a count", "write `usage: fresh=100 output=20`")
    return Report(Usage(**{f"{key}_tokens": line.number_of(int, value, key, 0) for key, value in pairs.items()}))


def _read_wait(line: _Line) -> Wait:
    return Wait(line.number_of(float, line.body, "a wait in seconds", 0.0))


def _read_error(line: _Line) -> Fail:
    plain, pairs = line.words("code", "retry_after", "retry_date", "retry_info", "quota_id")
    if not plain or len(plain) > 2:
        line.wrong("the error needs an HTTP status and at most one message", 'write `error: 429 retry_after=7 "Slow down"`')
    hints = {f"{key}_s": line.number_of(float, pairs[key], key, 0.0) for key in ("retry_after", "retry_date", "retry_info") if key in pairs}
    status = line.number_of(int, plain[0], "an HTTP status", 400)
    if status > 599:
        line.wrong(f"`{status}` cannot be the status of an error", "write 400 to 599")
    return Fail(status, plain[1] if len(plain) == 2 else "", pairs.get("code", ""), quota_id=pairs.get("quota_id", ""), **hints)


def _read_cut(line: _Line) -> Cut:
    return Cut(line.number_of(int, line.body, "a number of bytes", 0) if line.has_body else None)


def _read_stall(line: _Line) -> Stall:
    return Stall(line.number_of(int, line.body, "a number of events", 0) if line.has_body else None)


def _read_ping(line: _Line) -> Ping:
    plain, pairs = line.words("every")
    if len(plain) > 1:
        line.wrong(f"`{plain[1]}` is too much", "write `ping: 3 every=0.1` or `ping: forever every=1`")
    count = None if plain == ["forever"] else line.number_of(int, plain[0] if plain else "1", "a number of pings", 0)
    return Ping(count, line.number_of(float, pairs.get("every", "0"), "every", 0.0))


def _read_garbage(line: _Line) -> Garbage:
    return Garbage(line.text()) if line.has_body else Garbage()


def _read_finish(line: _Line) -> Finish:
    plain, _ = line.words()
    if not plain or len(plain) > 2:
        line.wrong(
            "the finish needs one word and at most one explanation", "write `finish: length`, or `finish: none` for no finish at all"
        )
    return Finish("" if plain[0] == "none" else plain[0], plain[1] if len(plain) == 2 else "")


def _read_block(line: _Line) -> Block:
    return Block(line.text()) if line.has_body else Block()


def _read_raw(line: _Line) -> Raw:
    line.known(line.options, ("base64",))
    if "base64" not in line.options:
        return Raw(line.text().encode("utf-8", "surrogatepass"))
    try:
        return Raw(base64.b64decode(line.body, validate=True))
    except binascii.Error as error:
        line.wrong(f"`{line.body}` is not base64 ({error})", "write base64, or text as `raw: ...`")


def _piece(line: _Line) -> int:
    return line.number_of(int, line.options.get("piece", "0"), "the size of a piece", 0)


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
    return f". Did you mean `{near[0]}`?" if near else ""


# --- writing -------------------------------------------------------------------------------------------------------------


def render(script: Script) -> str:
    """Write a script so that `parse` reads the same."""
    blocks = ["\n".join(_answer_lines(each)) for each in script.answers]
    head = ""
    if (script.at_end, script.end_text) != (Script().at_end, Script().end_text):
        text = "" if script.end_text == Script().end_text else f" text={_quoted(script.end_text)}"
        head = f"script: end={script.at_end}{text}\n"
    return head + "\n---\n".join(blocks) + ("\n" if blocks else "")


def _answer_lines(answer: Answer) -> Iterator[str]:
    options = {
        "times": answer.times if answer.times != 1 else None,
        "calls": "+".join(answer.calls) or None,
        "framing": "+".join(answer.framing) or None,
        "piece_bytes": answer.piece_bytes or None,
        "piece_wait": answer.piece_wait_s or None,
    }
    if any(value is not None for value in options.values()):
        yield f"answer:{_pairs(options)}"
    if not answer.steps:
        yield "nothing"
    for step in answer.steps:
        yield _step_line(step)


def _step_line(step: Step) -> str:
    match step:
        case Say(text, piece):
            return f"text{_pairs({'piece': piece or None})}: {_plain(text)}"
        case Think(text, signature, piece, redacted):
            flag = " redacted" if redacted else ""
            return f"thought{_pairs({'signature': signature or None, 'piece': piece or None})}{flag}: {_plain(text)}"
        case Call(name, arguments, call_id, piece, signature):
            fits = bool(arguments) and _fits(arguments)
            options = {"id": call_id, "piece": piece or None, "signature": signature or None, "args": None if fits else arguments}
            body = f" {arguments}" if fits and arguments != "{}" else ""
            return f"call{_pairs(options)}: {name if _BARE.fullmatch(name) else _quoted(name)}{body}"
        case Cite(uri, title, text):
            return f"cite{_pairs({'title': title or None, 'text': text or None})}: {_plain(uri)}"
        case Report(usage):
            counts = {name.removesuffix("_tokens"): getattr(usage, name) or None for name in usage.__struct_fields__}
            return f"usage:{_pairs(counts)}"
        case Finish(reason, detail):
            return f"finish: {_word(reason) if reason else 'none'}{f' {_quoted(detail)}' if detail else ''}"
        case Block(reason):
            return f"block: {_plain(reason)}"
        case Wait(seconds):
            return f"wait: {_number(seconds)}"
        case Fail(status, message, code, after, date, info, quota):
            hints = {"code": code or None, "retry_after": after, "retry_date": date, "retry_info": info, "quota_id": quota or None}
            return f"error: {status}{_pairs(hints)}{f' {_quoted(message)}' if message else ''}"
        case Cut(after_bytes):
            return "cut" if after_bytes is None else f"cut: {after_bytes}"
        case Stall(after_events):
            return "stall" if after_events is None else f"stall: {after_events}"
        case Ping(count, every):
            return f"ping: {'forever' if count is None else count}{_pairs({'every': every or None})}"
        case Garbage(text):
            return f"garbage: {_plain(text)}"
        case Raw(data):
            return _raw_line(data)
        case _:
            assert_never(step)


def _raw_line(data: bytes) -> str:
    try:
        return f"raw: {_quoted(data.decode())}"
    except UnicodeDecodeError:
        return f"raw base64: {base64.b64encode(data).decode()}"


def _pairs(options: Mapping[str, object]) -> str:
    return "".join(f" {key}={_word(value)}" for key, value in options.items() if value is not None)


def _word(value: object) -> str:
    text = _number(value) if isinstance(value, float) else str(value)
    return text if _BARE.fullmatch(text) else _quoted(text)


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


def _fits(text: str) -> bool:
    """Whether a text survives on a line of its own."""
    return text.isprintable() and text == text.strip()


def _plain(text: str) -> str:
    return text if text and _fits(text) and not text.startswith('"') else _quoted(text)


def _quoted(text: str) -> str:
    """A JSON string with everything escaped that an editor might not show."""
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)
