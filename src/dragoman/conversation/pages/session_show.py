"""A session as text (prompts, answers, a line for each call) or JSON. Control characters are removed from the text.

The text is made of the ViewEvents that a conversation under way is made of, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.base.text import one_line, strip_controls
from dragoman.conversation.blocks import join_events
from dragoman.conversation.events import Renderer
from dragoman.conversation.step_blocks import first_line
from dragoman.conversation.types import ViewEvent
from dragoman.sessions.export_words import heading, heading_of, time_of
from dragoman.sessions.last_run import LastRun, next_run, run_facts, trouble_words
from dragoman.sessions.titles import own_words
from dragoman.sessions.transcript import Note, Prompt, Reply, Step, ToolCallStep, Transcript
from dragoman.values.messages import Text
from dragoman.values.record import Entry, RunEnded
from dragoman.words import say

_TITLE_CHARS = 100
_LINE_CHARS = 300


def as_text(entries: Iterable[Entry], *, is_held: bool | None = None) -> str:
    """The number before a step is the one for `rewind --to` and `fork --at`. `is_held`: whether a process has the session open."""
    renderer = Renderer()
    blocks = join_events(renderer.read(entries))
    session = next((block.data for block in blocks if block.id == "session"), _NO_SESSION)
    usage = next((block.text for block in blocks if block.id == "usage"), "")
    facts = [session["session_id"], time_of(session["started_ms"]), ", ".join(session["directories"]), session["model"], usage]
    prompts = [block.text for block in blocks if block.kind == "prompt"]
    prompts = [own_words(text) for text in prompts] if session["imported_from"] else prompts
    head = [
        one_line(heading_of(session["title"], next(filter(str.strip, prompts), ""), session["session_id"])),
        one_line(" · ".join(filter(None, facts))),
        trouble_words(renderer.run, is_held=is_held),
    ]
    return "\n".join([*filter(None, head), *as_lines(blocks)]) + "\n"


_NO_SESSION: Mapping[str, Any] = {"session_id": "", "started_ms": 0, "directories": (), "model": "", "title": "", "imported_from": ""}


def as_lines(blocks: Sequence[ViewEvent]) -> list[str]:
    """The steps, without the heading."""
    parts: dict[str, list[ViewEvent]] = {}
    for block in blocks:
        if block.kind in ("thought", "text"):
            parts.setdefault(block.data["answer"], []).append(block)
    return [line for block in blocks for line in _block_lines(block, parts.get(block.id, ()))]


def _block_lines(block: ViewEvent, parts: Sequence[ViewEvent]) -> list[str]:
    data = block.data
    gone = say("show_taken_back") if data.get("taken_back") else ""
    match block.kind:
        case "prompt":
            head = say("show_prompt", seq=data["seq"], time=time_of(data["at_ms"])) + gone
            return ["", head, *_indent(block.text, "› "), *_attachment_lines(data)]
        case "notice" if data["about"] == "setup":
            return ["", say("show_setup", seq=data["seq"], lines=block.text.count("\n") + 1) + gone]
        case "notice" if data["about"] == "told":
            return ["", say("show_told", seq=data["seq"], text=one_line(block.text, _LINE_CHARS)) + gone]
        case "notice":
            return ["", say("show_note", seq=data["seq"], text=one_line(block.text)) + gone, *_indent(data["detail"], "│ ")]
        case "status" if "usage" in data:
            return ["", *_answer_lines(data, parts, gone)]
        case "call":
            return [_call_line(block) + gone]
        case _:
            return []


def _answer_lines(data: Mapping[str, Any], parts: Sequence[ViewEvent], gone: str) -> list[str]:
    lines = [say("show_answer", seq=data["seq"], model=one_line(data["model"], _TITLE_CHARS)) + gone]
    if data["outcome"]:
        lines.append(say("show_marked", text=one_line(data["outcome"])))
    lines += [say("thought", text=one_line(first_line(part.text), _LINE_CHARS)) for part in parts if part.kind == "thought"]
    text = "".join(part.text for part in parts if part.kind == "text")
    lines += strip_controls(text.strip("\n")).split("\n") if text.strip() else []
    sources = dict.fromkeys(one_line(f"{each['title']} {each['uri']}", _LINE_CHARS) for each in data["sources"])
    return [*lines, *_attachment_lines(data), *(say("source", text=source) for source in sources if source)]


def _call_line(block: ViewEvent) -> str:
    words = block.data["result"]
    match block.data["outcome"]:
        case "finished" if "telling" in block.data:  # a command that was carried out, and failed
            outcome = say("call_failed", why=one_line(next(reversed(block.data["telling"]), words), _LINE_CHARS))
        case "finished":
            outcome = say("call_done", what=words)
        case "failed":
            outcome = say("call_failed", why=words)
        case _:
            outcome = say("call_ended_oddly", what=words)
    return say("call_ended", title=block.text, outcome=outcome)


def _indent(text: str, sign: str) -> list[str]:
    return [f"{sign}{line}" for line in strip_controls(text.strip("\n")).split("\n")] if text.strip() else []


def _attachment_lines(data: Mapping[str, Any]) -> list[str]:
    attachments = data.get("attachments", ())
    named = [f"{each['mime']}, {each['size']:,} bytes" for each in attachments if "size" in each]
    named += [f"{each['mime']} {each['uri']}" for each in attachments if "uri" in each]
    return [say("show_attached", what=one_line(each, _LINE_CHARS)) for each in named]


# --- JSON


def as_json(transcript: Transcript, *, is_held: bool | None = None) -> dict[str, Any]:
    data = msgspec.to_builtins(msgspec.structs.replace(transcript, steps=()))
    data |= {"usage": transcript.usage.as_told(), "run": run_facts(transcript.run, is_held=is_held)}
    return data | {"title": heading(transcript), "steps": [_step_json(step) for step in transcript.steps]}


def _step_json(step: Step) -> dict[str, Any]:
    common: dict[str, Any] = {"seq": step.seq, "timestamp_ms": step.timestamp_ms or None, "taken_back": step.taken_back}
    match step:
        case Prompt():
            attached = [part.attached.name for part in step.parts if isinstance(part, Text) and part.attached is not None]
            also = {"attached": attached} if attached else {}
            return {"type": "setup" if step.is_setup else "told" if step.is_note else "prompt", **common, "text": step.text, **also}
        case Reply():
            marks = {"rejected": step.rejected, "broken_off": step.broken_off}
            usage = step.usage.as_told() if step.usage is not None else None
            answer = {"text": step.text, "thoughts": list(step.thoughts), "model": step.model, "usage": usage}
            return {"type": "answer", **common, **answer, **marks}
        case ToolCallStep(call=call):
            result = {"outcome": step.outcome, "output": step.output, "display": step.display}
            return {"type": "call", **common, "id": call.id, "name": call.name, "arguments": call.arguments, **result}
        case Note():
            ended = run_facts(next_run(LastRun(), step.of)) if isinstance(step.of, RunEnded) else None
            return {"type": "note", **common, "kind": step.kind, "about": step.about} | ({"run": ended} if ended else {})
