"""A session for others to read: Markdown, HTML and JSON, and the ConversationRecord that gemini-cli reads.

What was said is content and stays so. In Markdown it stands in a quotation, or in a fence longer than any inside it; in HTML it is escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.sessions.export_words import LABELS, facts_of, heading, note_words, outcome_words, shown, time_of
from dragoman.sessions.html_page import to_html
from dragoman.sessions.transcript import Call, Note, Prompt, Reply, Transcript, read_transcript
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, FileRef, Part, Text, ToolResult
from dragoman.values.parts import call_in_words
from dragoman.values.record import Compressed, Entry, Said, ToolFinished, decode_entry, encode_entry
from dragoman.values.usage import Usage

__all__ = ["FORMAT", "Package", "from_json", "is_json_export", "to_conversation_record", "to_html", "to_json", "to_markdown"]

FORMAT = "dragoman-session"

_OUR_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"format"\s*:\s*"%b"' % FORMAT.encode())
_BACKTICKS = re.compile("`+")
_PUNCTUATION = re.compile(r"([\\`*_\[\]<>#|~&!$])")
_ACTIVE = ("<", "](", "]:")
"""What Markdown needs for raw HTML, links and images: text without any of it may be rendered, quoted."""


# --- Markdown


def to_markdown(entries: Iterable[Entry]) -> str:
    """The whole session. Nothing in it can end its quotation or fence, load an image or become HTML."""
    transcript = read_transcript(entries)
    blocks = [f"# {_escaped(heading(transcript))}", _facts(transcript)]
    for step in transcript.steps:
        match step:
            case Prompt():
                label = "setup" if step.is_setup else "told" if step.is_note else "prompt"
                blocks += _titled(LABELS[label], "", step.timestamp_ms, taken_back=step.taken_back)
                blocks += [_fenced(step.text) if step.is_setup else _quoted(step.text), *_attached(step.parts)]
            case Reply():
                blocks += _reply(step)
            case Call():
                blocks += _call(step)
            case Note():
                words, detail = note_words(step)
                blocks += [f"*{_escaped(words)}*", *([_fenced(detail)] if detail else [])]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _facts(transcript: Transcript) -> str:
    return "\n".join(f"- {name}: {_code(value)}" for name, value in facts_of(transcript).items() if value)


def _reply(step: Reply) -> list[str]:
    blocks = _titled(LABELS["answer"], step.model, step.timestamp_ms, taken_back=step.taken_back)
    if step.rejected or step.broken_off:
        blocks.append(f"*{_escaped(outcome_words(step))}*")
    for thought in step.thoughts:
        blocks += [f"*{LABELS['thought']}*", _fenced(thought)]
    blocks += [_quoted(step.text), *_attached(step.parts)]
    sources = dict.fromkeys(" ".join(filter(None, (each.title, each.uri))) for each in step.citations)
    return [*blocks, "\n".join(f"- {LABELS['source']}: {_code(source)}" for source in sources if source)]


def _call(step: Call) -> list[str]:
    marks = f", {LABELS['taken_back']}" if step.taken_back else ""
    blocks = [f"**{LABELS['call']}** {_code(call_in_words(step.call))}: {outcome_words(step)}{marks}", _fenced(step.call.arguments, "json")]
    output = step.output or step.display
    return [*blocks, _fenced(output) if output else "", *_attached(step.content)]


def _titled(label: str, model: str, timestamp_ms: int, *, taken_back: bool) -> list[str]:
    about_it = [_code(text) for text in (model, time_of(timestamp_ms)) if text]
    marks = f" ({LABELS['taken_back']})" if taken_back else ""
    return [f"## {label}{marks}", " · ".join(about_it)]


def _attached(parts: Iterable[Part]) -> list[str]:
    found = [each for each in parts if isinstance(each, Blob | FileRef)]
    return ["\n".join(f"- {LABELS['attached']}: {_code(_named(each))}" for each in found)] if found else []


def _named(part: Blob | FileRef) -> str:
    return f"{part.mime}, {part.size:,} bytes" if isinstance(part, Blob) else f"{part.mime} {part.uri}"


def _quoted(text: str) -> str:
    """Rendered where that can do nothing but look like something; else as it stands."""
    text = shown(text)
    if not text.strip():
        return ""
    if any(sign in text for sign in _ACTIVE):
        return _fenced(text)
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _fenced(text: str, language: str = "") -> str:
    text = shown(text)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    """A code span on one line, whatever is in it."""
    line = " ".join(shown(text).split())
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    fence, space = "`" * (longest + 1), " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _escaped(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", " ".join(shown(text).split()))


# --- our own JSON


class Package(msgspec.Struct, frozen=True):
    """A session and the bytes its messages refer to."""

    entries: tuple[Entry, ...]
    blobs: Mapping[str, tuple[str, bytes]]
    """SHA-256 → MIME type and bytes."""


class _Wrapped(msgspec.Struct, frozen=True):
    """The JSON form: an entry per line, as in the log."""

    format: str
    entries: list[msgspec.Raw]
    version: int = 1
    blobs: dict[str, tuple[str, str]] = {}


def to_json(entries: Iterable[Entry], blobs: BlobStore | None = None) -> str:
    """Every entry as it is kept, and the attachments, so that `from_json` gives the same session back.

    Bytes of files that tools changed are not in it: undoing is for the machine the files are on.
    """
    entries = list(entries)
    carried = {sha256: (mime, base64.b64encode(data).decode()) for sha256, (mime, data) in _carried(entries, blobs).items()}
    head = f'{{"format":"{FORMAT}","version":1,"blobs":{jsontext.dumps(carried)},"entries":[\n'
    return head + ",\n".join(encode_entry(entry).decode() for entry in entries) + "\n]}\n"


def is_json_export(data: bytes) -> bool:
    """Whether a file that begins so is one of ours, laid out anew or not."""
    return _OUR_HEAD.match(data) is not None


def from_json(data: bytes | str) -> Package:
    """Raises InputError where it is no such export."""
    try:
        wrapped = msgspec.json.decode(data, type=_Wrapped)
        if wrapped.format != FORMAT:
            raise InputError(f"this is not a session of ours: its format is {wrapped.format[:40]!r}")
        entries = tuple(decode_entry(_on_one_line(bytes(raw))) for raw in wrapped.entries)
        blobs = {sha256: (mime, base64.b64decode(text, validate=True)) for sha256, (mime, text) in wrapped.blobs.items()}
    except (msgspec.DecodeError, jsontext.NotJSON, UnicodeError, ValueError) as error:
        raise InputError(f"the export cannot be read: {error}") from error
    if any(later.seq <= earlier.seq for earlier, later in pairwise(entries)):
        raise InputError("the export cannot be read: its entries are not in order")
    return Package(entries, blobs)


def _on_one_line(entry: bytes) -> bytes:
    """An entry that somebody laid out over several lines must not become several lines of a log."""
    return msgspec.json.format(entry, indent=-1) if b"\n" in entry or b"\r" in entry else entry


def _carried(entries: Iterable[Entry], blobs: BlobStore | None) -> dict[str, tuple[str, bytes]]:
    carried: dict[str, tuple[str, bytes]] = {}
    if blobs is None:
        return carried
    for part in (part for entry in entries for part in _parts_of(entry)):
        if isinstance(part, Blob) and part.sha256 not in carried and (data := blobs.get(part.sha256)) is not None:
            carried[part.sha256] = (part.mime, data)
    return carried


def _parts_of(entry: Entry) -> Iterable[Part]:
    match entry:
        case Said(message=message) | Compressed(summary=message):
            for part in message.parts:
                yield from part.content if isinstance(part, ToolResult) else (part,)
        case ToolFinished(result=result):
            yield from result.content
        case _:
            pass


# --- the seed's ConversationRecord


def to_conversation_record(entries: Iterable[Entry], blobs: BlobStore | None = None) -> dict[str, Any]:
    """S003 1: what stands, as gemini-cli keeps it. Rejected answers, what was taken back and the setup message are left out."""
    transcript = read_transcript(entries)
    messages: list[dict[str, Any]] = []
    for step in transcript.steps:
        if step.taken_back or (isinstance(step, Prompt) and step.is_setup):
            continue
        stamp = {"id": str(step.seq), "timestamp": _iso(step.timestamp_ms)}
        match step:
            case Prompt(parts=parts):
                messages.append({**stamp, "type": "user", "content": _wire_parts(parts, blobs)})
            case Reply(rejected=""):
                messages.append({**stamp, "type": "gemini"} | _answered(step, blobs))
            case Call() if messages and messages[-1]["id"] == stamp["id"]:
                messages[-1].setdefault("toolCalls", []).append(_called(step, blobs))
            case _:
                pass
    return {
        "sessionId": transcript.session_id,
        "projectHash": transcript.project,
        "startTime": _iso(transcript.started_ms),
        "lastUpdated": _iso(transcript.updated_ms),
        "messages": messages,
    }


def _answered(step: Reply, blobs: BlobStore | None) -> dict[str, Any]:
    told: dict[str, Any] = {"content": _wire_parts(step.parts, blobs)}
    if step.thoughts:
        told["thoughts"] = [{**_thought(text), "timestamp": _iso(step.timestamp_ms)} for text in step.thoughts]
    if step.usage is not None:
        told["tokens"] = _tokens(step.usage)
    return told | ({"model": step.model} if step.model else {})


def _called(step: Call, blobs: BlobStore | None) -> dict[str, Any]:
    call = step.call
    result = {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": step.output}}}
    status = {"finished": "success", "failed": "error"}.get(step.outcome, "cancelled")
    attached = _wire_parts((part for part in step.content if not isinstance(part, Text)), blobs)
    told: dict[str, Any] = {"id": call.id, "name": call.name, "args": call.args or {}, "result": [result, *attached], "status": status}
    return told | {"timestamp": _iso(step.finished_ms or step.timestamp_ms), "resultDisplay": step.display or step.output}


def _wire_parts(parts: Iterable[Part], blobs: BlobStore | None) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text(text=text):
                told.append({"text": text})
            case FileRef(mime=mime, uri=uri):
                told.append({"fileData": {"mimeType": mime, "fileUri": uri}})
            case Blob(mime=mime):
                data = blobs.get(part.sha256) if blobs is not None else None
                inline = {"inlineData": {"mimeType": mime, "data": base64.b64encode(data or b"").decode()}}
                told.append(inline if data is not None else {"text": f"[{_named(part)}]"})
            case _:
                pass
    return told


def _thought(text: str) -> dict[str, str]:
    """Gemini heads a thought with its subject in bold."""
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


def _iso(timestamp_ms: int) -> str:
    return time_of(timestamp_ms, "%Y-%m-%dT%H:%M:%S.{ms:03d}Z")
