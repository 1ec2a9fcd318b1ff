"""A session as text (prompts, answers, a line for each call) or JSON. Control characters are removed from the text."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.base.text import one_line, strip_controls
from dragoman.base.words import say
from dragoman.conversation.call_lines import in_words
from dragoman.sessions.export_words import heading, note_words, outcome_words, time_of, tokens_words
from dragoman.sessions.transcript import Note, Prompt, Reply, Step, ToolCallStep, Transcript
from dragoman.values.messages import Blob, FileRef, Part
from dragoman.values.parts import call_in_words

_TITLE_CHARS = 100
_LINE_CHARS = 300


def as_text(transcript: Transcript) -> str:
    """The number before a step is the one for `rewind --to` and `fork --at`."""
    facts = [
        transcript.session_id,
        time_of(transcript.started_ms),
        ", ".join(transcript.directories),
        transcript.model,
        tokens_words(transcript.usage),
    ]
    head = [one_line(heading(transcript)), one_line(" · ".join(filter(None, facts)))]
    return "\n".join(head + as_lines(transcript)) + "\n"


def as_lines(transcript: Transcript) -> list[str]:
    """The steps, without the heading."""
    return [line for step in transcript.steps for line in _step_lines(step)]


def _step_lines(step: Step) -> list[str]:
    gone = say("show_taken_back") if step.taken_back else ""
    match step:
        case Prompt(is_setup=True):
            return ["", say("show_setup", seq=step.seq, lines=step.text.count("\n") + 1) + gone]
        case Prompt(is_note=True):
            return ["", say("show_told", seq=step.seq, text=one_line(step.text, _LINE_CHARS)) + gone]
        case Prompt():
            body = _indent(step.text, "› ")
            return ["", say("show_prompt", seq=step.seq, time=time_of(step.timestamp_ms)) + gone, *body, *_attachment_lines(step.parts)]
        case Reply():
            return ["", *_reply_lines(step, gone)]
        case ToolCallStep():
            return [_call_line(step) + gone]
        case Note():
            words, detail = note_words(step)
            return ["", say("show_note", seq=step.seq, text=one_line(words)) + gone, *_indent(detail, "│ ")]


def _reply_lines(step: Reply, gone: str) -> list[str]:
    lines = [say("show_answer", seq=step.seq, model=one_line(step.model, _TITLE_CHARS)) + gone]
    if marks := outcome_words(step):
        lines.append(say("show_marked", text=one_line(marks)))
    lines += [say("thought", text=one_line(_first_line(thought), _LINE_CHARS)) for thought in step.thoughts]
    lines += strip_controls(step.text.strip("\n")).split("\n") if step.text.strip() else []
    sources = dict.fromkeys(one_line(f"{each.title} {each.uri}", _LINE_CHARS) for each in step.citations)
    return [*lines, *_attachment_lines(step.parts), *(say("source", text=source) for source in sources if source)]


def _call_line(step: ToolCallStep) -> str:
    words = one_line(in_words(_first_line(step.display or step.output)), _LINE_CHARS)
    match step.outcome:
        case "finished":
            outcome = say("call_done", what=words)
        case "failed":
            outcome = say("call_failed", why=words)
        case _:
            outcome = say("call_ended_oddly", what=outcome_words(step))
    title = one_line(call_in_words(step.call), _TITLE_CHARS)
    return say("call_ended", title=say("call_outside", title=title) if step.outside else title, outcome=outcome)


def _indent(text: str, sign: str) -> list[str]:
    return [f"{sign}{line}" for line in strip_controls(text.strip("\n")).split("\n")] if text.strip() else []


def _attachment_lines(parts: tuple[Part, ...]) -> list[str]:
    named = [f"{part.mime}, {part.size:,} bytes" for part in parts if isinstance(part, Blob)]
    named += [f"{part.mime} {part.uri}" for part in parts if isinstance(part, FileRef)]
    return [say("show_attached", what=one_line(each, _LINE_CHARS)) for each in named]


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip(" *_#")), "").strip(" *_#")


# --- JSON


def as_json(transcript: Transcript) -> dict[str, Any]:
    data = msgspec.to_builtins(msgspec.structs.replace(transcript, steps=()))
    data["usage"] = transcript.usage.as_told()
    return data | {"title": heading(transcript), "steps": [_step_json(step) for step in transcript.steps]}


def _step_json(step: Step) -> dict[str, Any]:
    common: dict[str, Any] = {"seq": step.seq, "timestamp_ms": step.timestamp_ms or None, "taken_back": step.taken_back}
    match step:
        case Prompt():
            return {"type": "setup" if step.is_setup else "told" if step.is_note else "prompt", **common, "text": step.text}
        case Reply():
            marks = {"rejected": step.rejected, "broken_off": step.broken_off}
            usage = step.usage.as_told() if step.usage is not None else None
            answer = {"text": step.text, "thoughts": list(step.thoughts), "model": step.model, "usage": usage}
            return {"type": "answer", **common, **answer, **marks}
        case ToolCallStep(call=call):
            result = {"outcome": step.outcome, "output": step.output, "display": step.display}
            return {"type": "call", **common, "id": call.id, "name": call.name, "arguments": call.arguments, **result}
        case Note():
            return {"type": "note", **common, "kind": step.kind, "about": step.about}
