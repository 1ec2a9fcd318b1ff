"""Export a session as Markdown, JSON, or the ConversationRecord that gemini-cli reads.

Messages stay plain content: Markdown quotes them, or fences them with a fence longer than any inside. As a page of HTML:
`conversation/session_page/one_file.py`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.export_words import escape_controls, facts_of, heading, label, note_words, outcome_words, time_of, utc_of
from dragoman.sessions.last_run import words_for_file
from dragoman.sessions.transcript import Note, Prompt, Reply, ToolCallStep, Transcript, read_transcript
from dragoman.sessions.upgrade import upgrade
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, FileRef, Part, Text, ToolResult
from dragoman.values.parts import call_in_words
from dragoman.values.record import (
    Compressed,
    Entry,
    RunEnded,
    Said,
    ToolFinished,
    encode_entry,
    fold,
)
from dragoman.values.record_reading import decode_entry
from dragoman.values.usage import Usage
from dragoman.words import say

__all__ = ["FORMAT", "SessionExport", "from_json", "is_json_export", "to_conversation_record", "to_json", "to_markdown"]

FORMAT = "dragoman-session"

_OUR_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"format"\s*:\s*"%b"' % FORMAT.encode())
_BACKTICKS = re.compile("`+")
_PUNCTUATION = re.compile(r"([\\`*_\[\]<>#|~&!$])")
_ACTIVE = ("<", "](", "]:")
"""What Markdown needs for raw HTML, links and images: text without any of these may be rendered inside a quotation."""


# --- Markdown


def to_markdown(entries: Iterable[Entry], *, is_held: bool | None = None) -> str:
    """The whole session. Nothing in it can end its quotation or fence, load an image or become HTML. `is_held`: whether a process has the
    session open, so that a run without an end is under way."""
    transcript = read_transcript(entries)
    blocks = [f"# {_escape(heading(transcript))}", _facts(transcript, is_held=is_held)]
    for step in transcript.steps:
        match step:
            case Prompt():
                kind = "setup" if step.is_setup else "told" if step.is_note else "prompt"
                blocks += _step_head(label(kind), "", step.timestamp_ms, taken_back=step.taken_back)
                blocks += [_fence(step.text) if step.is_setup else _quote(step.text), *_attachments(step.parts)]
            case Reply():
                blocks += _reply(step)
            case ToolCallStep():
                blocks += _call(step)
            case Note():
                words, detail = note_words(step)
                blocks += [f"*{_escape(words)}*", *([_fence(detail)] if detail else [])]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _facts(transcript: Transcript, *, is_held: bool | None) -> str:
    return "\n".join(f"- {name}: {_code_span(value)}" for name, value in facts_of(transcript, is_held=is_held).items() if value)


def _reply(step: Reply) -> list[str]:
    blocks = _step_head(label("answer"), step.model, step.timestamp_ms, taken_back=step.taken_back)
    if step.rejected or step.broken_off:
        blocks.append(f"*{_escape(outcome_words(step))}*")
    for thought in step.thoughts:
        blocks += [f"*{label('thought')}*", _fence(thought)]
    blocks += [_quote(step.text), *_attachments(step.parts)]
    sources = dict.fromkeys(" ".join(filter(None, (each.title, each.uri))) for each in step.citations)
    return [*blocks, "\n".join(f"- {label('source')}: {_code_span(source)}" for source in sources if source)]


def _call(step: ToolCallStep) -> list[str]:
    marks = f", {label('taken_back')}" if step.taken_back else ""
    blocks = [
        f"**{label('call')}** {_code_span(call_in_words(step.call))}: {outcome_words(step)}{marks}",
        _fence(step.call.arguments, "json"),
    ]
    output = step.output or step.display
    return [*blocks, _fence(output) if output else "", *_attachments(step.content)]


def _step_head(title: str, model: str, timestamp_ms: int, *, taken_back: bool) -> list[str]:
    about_it = [_code_span(text) for text in (model, time_of(timestamp_ms)) if text]
    marks = f" ({label('taken_back')})" if taken_back else ""
    return [f"## {title}{marks}", " · ".join(about_it)]


def _attachments(parts: Iterable[Part]) -> list[str]:
    found = [name for each in parts if (name := _attached_name(each))]
    return ["\n".join(f"- {label('attached')}: {_code_span(name)}" for name in found)] if found else []


def _attached_name(part: Part) -> str:
    if isinstance(part, Text):
        return part.attached.name if part.attached is not None else ""
    return _describe_file(part) if isinstance(part, Blob | FileRef) else ""


def _describe_file(part: Blob | FileRef) -> str:
    return f"{part.mime}, {part.size:,} bytes" if isinstance(part, Blob) else f"{part.mime} {part.uri}"


def _quote(text: str) -> str:
    """The text as a quotation if rendering it is harmless; otherwise fenced verbatim."""
    text = escape_controls(text)
    if not text.strip():
        return ""
    if any(sign in text for sign in _ACTIVE):
        return _fence(text)
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _fence(text: str, language: str = "") -> str:
    text = escape_controls(text)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _code_span(text: str) -> str:
    """A code span on one line, whatever the text contains."""
    line = " ".join(escape_controls(text).split())
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    fence, space = "`" * (longest + 1), " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _escape(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", " ".join(escape_controls(text).split()))


# --- our own JSON


class SessionExport(msgspec.Struct, frozen=True):
    """A session and the bytes its messages refer to."""

    entries: tuple[Entry, ...]
    blobs: Mapping[str, tuple[str, bytes]]
    """SHA-256 → MIME type and bytes."""


class _JsonExport(msgspec.Struct, frozen=True):
    """The JSON export: one entry per line, as in the log."""

    format: str
    entries: list[msgspec.Raw]
    version: int = 1
    blobs: dict[str, tuple[str, str]] = {}


def to_json(entries: Iterable[Entry], blobs: BlobStore | None = None) -> str:
    """Every entry as stored, and the attachments, so that `from_json` returns the same session.

    The bytes of files that tools changed are not included: undo only makes sense on the machine that has the files.
    """
    entries = list(entries)
    carried = {sha256: (mime, base64.b64encode(data).decode()) for sha256, (mime, data) in _collect_blobs(entries, blobs).items()}
    head = f'{{"format":"{FORMAT}","version":1,"blobs":{jsontext.dumps(carried)},"entries":[\n'
    return head + ",\n".join(encode_entry(entry).decode() for entry in entries) + "\n]}\n"


def is_json_export(data: bytes) -> bool:
    """Whether a file that begins like this is one of our exports, reformatted or not."""
    return _OUR_HEAD.match(data) is not None


def from_json(data: bytes | str) -> SessionExport:
    """Read a JSON export. Raises InputError if it is not one."""
    try:
        wrapped = msgspec.json.decode(data, type=_JsonExport)
        if wrapped.format != FORMAT:
            raise InputError(say("sessions.export_other_format", format=wrapped.format[:40]))
        entries = tuple(upgrade(decode_entry(_on_one_line(bytes(raw))) for raw in wrapped.entries))
        blobs = {sha256: (mime, base64.b64decode(text, validate=True)) for sha256, (mime, text) in wrapped.blobs.items()}
    except RecursionError as error:
        raise InputError(say("sessions.export_unreadable", reason=say("sessions.too_deep"))) from error
    except (msgspec.DecodeError, jsontext.NotJSON, UnicodeError, ValueError) as error:
        raise InputError(say("sessions.export_unreadable", reason=error)) from error
    if any(later.seq <= earlier.seq for earlier, later in pairwise(entries)):
        raise InputError(say("sessions.export_out_of_order"))
    return SessionExport(entries, blobs)


def _on_one_line(entry: bytes) -> bytes:
    """An entry that was reformatted over several lines must not become several lines of a log."""
    return msgspec.json.format(entry, indent=-1) if b"\n" in entry or b"\r" in entry else entry


def _collect_blobs(entries: Iterable[Entry], blobs: BlobStore | None) -> dict[str, tuple[str, bytes]]:
    carried: dict[str, tuple[str, bytes]] = {}
    if blobs is None:
        return carried
    for part in (part for entry in entries for part in _parts_of(entry)):
        if isinstance(part, Blob) and part.sha256 not in carried and (data := blobs.get(part.sha256)) is not None:
            carried[part.sha256] = (part.mime, data)
    return carried


@fold("blobs")
def _parts_of(entry: Entry) -> Iterable[Part]:
    match entry:
        case Said(message=message) | Compressed(summary=message):
            for part in message.parts:
                yield from part.content if isinstance(part, ToolResult) else (part,)
        case ToolFinished(result=result):
            yield from result.content
        case _:
            pass


# --- gemini-cli's ConversationRecord


def to_conversation_record(entries: Iterable[Entry], blobs: BlobStore | None = None, *, is_held: bool | None = None) -> dict[str, Any]:
    """The current conversation in gemini-cli's format. Rejected answers, rewound messages and the setup message are left out. `is_held`: as
    for `to_markdown`."""
    transcript = read_transcript(entries)
    messages: list[dict[str, Any]] = []
    for step in transcript.steps:
        if step.taken_back or (isinstance(step, Prompt) and step.is_setup):
            continue
        stamp = {"id": str(step.seq), "timestamp": utc_of(step.timestamp_ms)}
        match step:
            case Prompt(parts=parts):
                messages.append({**stamp, "type": "user", "content": _wire_parts(parts, blobs)})
            case Note(of=RunEnded(outcome=outcome)):
                kind = "error" if outcome in ("failed", "broken_off") else "info"
                messages.append({**stamp, "type": kind, "content": note_words(step)[0]})
            case Reply(rejected=""):
                messages.append({**stamp, "type": "gemini"} | _reply_fields(step, blobs))
            case ToolCallStep() if messages and messages[-1]["id"] == stamp["id"]:
                messages[-1].setdefault("toolCalls", []).append(_call_record(step, blobs))
            case _:
                pass
    if transcript.run.state == "open" and (words := words_for_file(transcript.run, is_held=is_held)):
        kind = "info" if is_held else "error"
        messages.append({"id": "last-run", "timestamp": utc_of(transcript.updated_ms), "type": kind, "content": words})
    return {
        "sessionId": transcript.session_id,
        "projectHash": transcript.project,
        "startTime": utc_of(transcript.started_ms),
        "lastUpdated": utc_of(transcript.updated_ms),
        "messages": messages,
    }


def _reply_fields(step: Reply, blobs: BlobStore | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"content": _wire_parts(step.parts, blobs)}
    if step.thoughts:
        fields["thoughts"] = [{**_thought(text), "timestamp": utc_of(step.timestamp_ms)} for text in step.thoughts]
    if step.usage is not None and not step.usage.is_unknown:
        fields["tokens"] = _tokens(step.usage)
    return fields | ({"model": step.model} if step.model else {})


def _call_record(step: ToolCallStep, blobs: BlobStore | None) -> dict[str, Any]:
    call = step.call
    result = {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": step.output}}}
    status = {"finished": "success", "failed": "error"}.get(step.outcome, "cancelled")
    attached = _wire_parts((part for part in step.content if not isinstance(part, Text)), blobs)
    fields: dict[str, Any] = {"id": call.id, "name": call.name, "args": call.args or {}, "result": [result, *attached], "status": status}
    fields |= {"timestamp": utc_of(step.finished_ms or step.timestamp_ms), "resultDisplay": step.display or step.output}
    return fields | ({"outsideSandbox": True} if step.outside else {})


def _wire_parts(parts: Iterable[Part], blobs: BlobStore | None) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text(text=text):
                wire.append({"text": text})
            case FileRef(mime=mime, uri=uri):
                wire.append({"fileData": {"mimeType": mime, "fileUri": uri}})
            case Blob(mime=mime):
                data = blobs.get(part.sha256) if blobs is not None else None
                inline = {"inlineData": {"mimeType": mime, "data": base64.b64encode(data or b"").decode()}}
                wire.append(inline if data is not None else {"text": f"[{_describe_file(part)}]"})
            case _:
                pass
    return wire


def _thought(text: str) -> dict[str, str]:
    """Gemini starts a thought with its subject in bold."""
    _, bold, rest = text.partition("**")
    subject, closing, description = rest.partition("**")
    if not bold or not closing or not text.startswith("**") or "\n" in subject:
        return {"subject": "", "description": text}
    return {"subject": subject.strip(), "description": description.strip()}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens - usage.thought_tokens,
        "cached": usage.cache_read_tokens,
        "thoughts": usage.thought_tokens,
        "tool": 0,
        "total": usage.total_tokens,
    }
