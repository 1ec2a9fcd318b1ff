"""Writes a script in its plain-text form, which `script_text.parse` reads."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import assert_never

from dragoman.testing.script_steps import (
    BlockStep,
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
    Stall,
    Step,
    Think,
    Wait,
)

_BARE = re.compile(r"[\w.+-]+")


def render(script: ScriptForm) -> str:
    """Write a script so that `script_text.parse` reads the same."""
    blocks = ["\n".join(_answer_lines(each)) for each in script.answers]
    head = ""
    if (script.at_end, script.end_text) != (ScriptForm().at_end, ScriptForm().end_text):
        text = "" if script.end_text == ScriptForm().end_text else f" text={_quote(script.end_text)}"
        head = f"script: end={script.at_end}{text}\n"
    return head + "\n---\n".join(blocks) + ("\n" if blocks else "")


def _answer_lines(answer: ScriptedAnswer) -> Iterator[str]:
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
            return f"text{_pairs({'piece': piece or None})}: {_render_text(text)}"
        case Think(text, signature, piece, redacted):
            flag = " redacted" if redacted else ""
            return f"thought{_pairs({'signature': signature or None, 'piece': piece or None})}{flag}: {_render_text(text)}"
        case CallStep(name, arguments, call_id, piece, signature):
            fits = bool(arguments) and _fits_on_line(arguments)
            options = {"id": call_id, "piece": piece or None, "signature": signature or None, "args": None if fits else arguments}
            body = f" {arguments}" if fits and arguments != "{}" else ""
            return f"call{_pairs(options)}: {name if _BARE.fullmatch(name) else _quote(name)}{body}"
        case Cite(uri, title, text):
            return f"cite{_pairs({'title': title or None, 'text': text or None})}: {_render_text(uri)}"
        case ReportStep(usage):
            counts = {name.removesuffix("_tokens"): getattr(usage, name) or None for name in usage.__struct_fields__}
            return f"usage:{_pairs(counts)}"
        case Finish(reason, detail):
            return f"finish: {_word(reason) if reason else 'none'}{f' {_quote(detail)}' if detail else ''}"
        case BlockStep(reason):
            return f"block: {_render_text(reason)}"
        case Wait(seconds):
            return f"wait: {_number(seconds)}"
        case Fail(status, message, code, after, date, info, quota, param):
            hints = {"code": code or None, "retry_after": after, "retry_date": date, "retry_info": info, "quota_id": quota or None}
            hints["param"] = param or None
            return f"error: {status}{_pairs(hints)}{f' {_quote(message)}' if message else ''}"
        case CutStep(after_bytes):
            return "cut" if after_bytes is None else f"cut: {after_bytes}"
        case Stall(after_events):
            return "stall" if after_events is None else f"stall: {after_events}"
        case Ping(count, every):
            return f"ping: {'forever' if count is None else count}{_pairs({'every': every or None})}"
        case Garbage(text):
            return f"garbage: {_render_text(text)}"
        case RawStep(data):
            return _raw_line(data)
        case _:
            assert_never(step)


def _raw_line(data: bytes) -> str:
    try:
        return f"raw: {_quote(data.decode())}"
    except UnicodeDecodeError:
        return f"raw base64: {base64.b64encode(data).decode()}"


def _pairs(options: Mapping[str, object]) -> str:
    return "".join(f" {key}={_word(value)}" for key, value in options.items() if value is not None)


def _word(value: object) -> str:
    text = _number(value) if isinstance(value, float) else str(value)
    return text if _BARE.fullmatch(text) else _quote(text)


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


def _fits_on_line(text: str) -> bool:
    """Whether a text survives on a line of its own."""
    return text.isprintable() and text == text.strip()


def _render_text(text: str) -> str:
    return text if text and _fits_on_line(text) and not text.startswith('"') else _quote(text)


def _quote(text: str) -> str:
    """A JSON string in which everything is escaped that an editor might not show."""
    written = json.dumps(text, ensure_ascii=False)
    return written if written.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)
