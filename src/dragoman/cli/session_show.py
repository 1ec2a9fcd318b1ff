"""A session as it looked: prompts, answers, a line for each call. Nothing in it can act on the terminal."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.base.text import harmless, one_line
from dragoman.base.words import say
from dragoman.sessions.export_words import heading, note_words, outcome_words, time_of
from dragoman.sessions.transcript import Call, Note, Prompt, Reply, Step, Transcript
from dragoman.values.messages import Blob, FileRef, Part
from dragoman.values.parts import call_in_words

_TITLE_CHARS = 100
_LINE_CHARS = 300


def as_text(transcript: Transcript) -> str:
    """The number before a step is the one that `rewind --to` and `fork --at` take."""
    usage = transcript.usage
    facts = [
        transcript.session_id,
        time_of(transcript.started_ms),
        ", ".join(transcript.directories),
        transcript.model,
        say("show_tokens", input=f"{usage.input_tokens:,}", output=f"{usage.output_tokens:,}") if usage.total_tokens else "",
    ]
    head = [one_line(heading(transcript)), one_line(" · ".join(filter(None, facts)))]
    return "\n".join(head + as_lines(transcript)) + "\n"


def as_lines(transcript: Transcript) -> list[str]:
    """What was said and done, without the head."""
    return [line for step in transcript.steps for line in _lines(step)]


def _lines(step: Step) -> list[str]:
    gone = say("show_taken_back") if step.taken_back else ""
    match step:
        case Prompt(is_setup=True):
            return ["", say("show_setup", seq=step.seq, lines=step.text.count("\n") + 1) + gone]
        case Prompt(is_note=True):
            return ["", say("show_told", seq=step.seq, text=one_line(step.text, _LINE_CHARS)) + gone]
        case Prompt():
            body = _indented(step.text, "› ")
            return ["", say("show_prompt", seq=step.seq, time=time_of(step.timestamp_ms)) + gone, *body, *_attached(step.parts)]
        case Reply():
            return ["", *_reply(step, gone)]
        case Call():
            return [_call(step) + gone]
        case Note():
            words, detail = note_words(step)
            return ["", say("show_note", seq=step.seq, text=one_line(words)) + gone, *_indented(detail, "│ ")]


def _reply(step: Reply, gone: str) -> list[str]:
    lines = [say("show_answer", seq=step.seq, model=one_line(step.model, _TITLE_CHARS)) + gone]
    if marks := outcome_words(step):
        lines.append(say("show_marked", text=one_line(marks)))
    lines += [say("thought", text=one_line(_first_line(thought), _LINE_CHARS)) for thought in step.thoughts]
    lines += harmless(step.text.strip("\n")).split("\n") if step.text.strip() else []
    sources = dict.fromkeys(one_line(f"{each.title} {each.uri}", _LINE_CHARS) for each in step.citations)
    return [*lines, *_attached(step.parts), *(say("source", text=source) for source in sources if source)]


def _call(step: Call) -> str:
    said = one_line(_first_line(step.display or step.output), _LINE_CHARS)
    match step.outcome:
        case "finished":
            outcome = say("call_done", what=said)
        case "failed":
            outcome = say("call_failed", why=said)
        case _:
            outcome = say("call_ended_oddly", what=outcome_words(step))
    return say("call_ended", title=one_line(call_in_words(step.call), _TITLE_CHARS), outcome=outcome)


def _indented(text: str, sign: str) -> list[str]:
    return [f"{sign}{line}" for line in harmless(text.strip("\n")).split("\n")] if text.strip() else []


def _attached(parts: tuple[Part, ...]) -> list[str]:
    named = [f"{part.mime}, {part.size:,} bytes" for part in parts if isinstance(part, Blob)]
    named += [f"{part.mime} {part.uri}" for part in parts if isinstance(part, FileRef)]
    return [say("show_attached", what=one_line(each, _LINE_CHARS)) for each in named]


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip(" *_#")), "").strip(" *_#")


# --- JSON


def as_json(transcript: Transcript) -> dict[str, Any]:
    told = msgspec.to_builtins(msgspec.structs.replace(transcript, steps=()))
    return told | {"title": heading(transcript), "steps": [_told(step) for step in transcript.steps]}


def _told(step: Step) -> dict[str, Any]:
    about_it: dict[str, Any] = {"seq": step.seq, "timestamp_ms": step.timestamp_ms, "taken_back": step.taken_back}
    match step:
        case Prompt():
            return {"type": "setup" if step.is_setup else "told" if step.is_note else "prompt", **about_it, "text": step.text}
        case Reply():
            marks = {"rejected": step.rejected, "broken_off": step.broken_off}
            usage = msgspec.to_builtins(step.usage) if step.usage is not None else None
            answer = {"text": step.text, "thoughts": list(step.thoughts), "model": step.model, "usage": usage}
            return {"type": "answer", **about_it, **answer, **marks}
        case Call(call=call):
            result = {"outcome": step.outcome, "output": step.output, "display": step.display}
            return {"type": "call", **about_it, "id": call.id, "name": call.name, "arguments": call.arguments, **result}
        case Note():
            return {"type": "note", **about_it, "kind": step.kind, "about": step.about}
