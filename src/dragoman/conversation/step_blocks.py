"""The steps of a session as blocks to show: what a prompt, an answer, a call and a note say of themselves, as text and as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from dragoman.base.text import one_line
from dragoman.conversation.call_lines import in_words, title
from dragoman.conversation.command_result import clean_output, read_command_result
from dragoman.conversation.types import ViewEvent, ViewState
from dragoman.sessions.export_words import note_words, outcome_words, tokens_words
from dragoman.sessions.last_run import LastRun, run_words, trouble_words
from dragoman.sessions.transcript import Note, Prompt, Reply, Step, ToolCallStep, Transcript
from dragoman.values.messages import Blob, Citation, FileRef, Part, Text, Thought
from dragoman.values.record import RunEnded

_LINE_CHARS = 300


def prompt_block(id: str, step: Prompt) -> ViewEvent:
    """What a person said; as a notice, what the program told the model."""
    data = _place(step) | _attached(step.parts)
    if step.is_setup or step.is_note:
        return ViewEvent(0, "notice", id, step.text, data=data | {"about": "setup" if step.is_setup else "told"})
    return ViewEvent(0, "prompt", id, step.text, data=data)


def note_block(id: str, step: Note) -> ViewEvent:
    words, detail = note_words(step)
    about = {"about": step.kind, "detail": detail, "of": step.about} | ({"window": step.window} if step.window else {})
    outcome = {"outcome": step.of.outcome} if isinstance(step.of, RunEnded) else {}
    return ViewEvent(0, "notice", id, words, data=_place(step) | about | outcome)


def answer_blocks(id: str, step: Reply) -> list[ViewEvent]:
    """The answer as a whole, then its thoughts and its text in their order. Each thought is a block."""
    state: ViewState = "rejected" if step.rejected else "cancelled" if step.broken_off else "done"
    data = _place(step) | _attached(step.parts) | {"model": step.model, "sent_ms": step.sent_ms, "first_ms": step.first_ms}
    data["usage"] = step.usage.as_told() if step.usage is not None else None
    data["sources"] = [{"title": part.title, "uri": part.uri} for part in step.parts if isinstance(part, Citation)]
    data |= {"rejected": step.rejected, "broken_off": step.broken_off, "outcome": outcome_words(step)}
    part_data = {"answer": id, "taken_back": step.taken_back}
    parts = [ViewEvent(0, kind, f"{id}.{number}", text, data=part_data) for number, (kind, text) in enumerate(_said(step.parts), 1)]
    return [ViewEvent(0, "status", id, state=state, data=data), *parts]


def _said(parts: Iterable[Part]) -> list[Any]:
    """Of a part that a citation divides, the whole: so it came."""
    said: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, Thought) and part.text:
            said.append(("thought", part.text))
        elif isinstance(part, Text) and part.text:
            before = said.pop()[1] if said and said[-1][0] == "text" else ""
            said.append(("text", before + part.text))
    return said


def call_block(id: str, answer: str, step: ToolCallStep, folder: str = "") -> ViewEvent:
    """`folder`: the workspace; paths inside it are written as from there."""
    data = _place(step) | {"answer": answer, "call_id": step.call.id, "name": step.call.name, "arguments": step.call.arguments}
    data |= {"outcome": step.outcome, "outside": step.outside, "started_ms": step.started_ms, "changed": list(step.changed)}
    if step.has_result:
        data |= {"finished_ms": step.finished_ms, "display": step.display, "output": step.output} | _attached(step.content)
        data |= _of_command(step)
    data["result"] = result_words(step)
    return ViewEvent(0, "call", id, title(step.call, outside=step.outside, folder=folder), state=_call_state(step), data=data)


def _call_state(step: ToolCallStep) -> ViewState:
    if step.has_result:
        return "done" if step.outcome == "finished" else cast("ViewState", step.outcome)
    return "running" if step.started_ms or step.outcome == "unknown" else "waiting"


def result_words(step: ToolCallStep) -> str:
    """What came of it, in a line."""
    if step.outcome in ("finished", "failed"):
        return one_line(in_words(first_line(step.display or step.output)), _LINE_CHARS)
    return outcome_words(step)


def _of_command(step: ToolCallStep) -> dict[str, Any]:
    """Of a command: what it put out and how it ended, what stopped it, and if it failed, the lines that tell most."""
    if step.call.name != "run_shell":
        return {}
    said = read_command_result(step.command, step.output)
    data: dict[str, Any] = {"notes": list(said.notes), "exit_code": said.exit_code}
    if step.command is not None:
        data["command"] = msgspec.to_builtins(step.command)
    if said.has_failed:
        from dragoman.conversation.telling_lines import choose_telling

        data["telling"] = choose_telling(clean_output(said.output).strip("\n"))
    return data


def question_block(id: str, call: ViewEvent, before: ViewEvent | None) -> ViewEvent | None:
    """Whether a call may run, where its decision is kept on the record; None where nobody is, or was, asked."""
    data = {"call": call.id, "call_id": call.data["call_id"], "taken_back": call.data["taken_back"]}
    if call.data["outcome"] == "waits_for_decision":
        return ViewEvent(0, "question", id, call.text, state="waiting", data=data)
    if before is None:
        return None
    decided: ViewState = call.state if call.state in ("refused", "cancelled", "not_run") else "allowed"
    return ViewEvent(0, "answered", id, call.text, state=decided, data=data)


def plan_block(call: ViewEvent, step: ToolCallStep) -> ViewEvent | None:
    """The model's task list, where a call has replaced it."""
    items = (step.call.args or {}).get("items") if step.call.name == "todo" and step.outcome == "finished" else None
    return ViewEvent(0, "plan", "plan", data={"call": call.id, "items": items}) if isinstance(items, list) else None


def session_block(facts: Transcript) -> ViewEvent:
    names = ("session_id", "project", "model", "title", "started_ms", "imported_from", "parent", "parent_call")
    data = {name: getattr(facts, name) for name in names} | {"directories": list(facts.directories)}
    data["run"] = run_data(facts.run)
    return ViewEvent(0, "status", "session", data=data)


def run_data(run: LastRun) -> dict[str, str]:
    """How the last run stands by the record: an open one is under way where a process has the session open, else it was broken off."""
    data = {"state": run.state, "sentence": str(trouble_words(run, is_held=False))}
    return data | ({"running": str(run_words(run, is_held=True))} if run.state == "open" else {})


def usage_block(facts: Transcript) -> ViewEvent:
    return ViewEvent(0, "usage", "usage", tokens_words(facts.usage), data=facts.usage.as_told())


def first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip(" *_#")), "").strip(" *_#")


def _place(step: Step) -> dict[str, Any]:
    return {"seq": step.seq, "at_ms": step.timestamp_ms, "taken_back": step.taken_back}


def _attached(parts: Iterable[Part | Blob | FileRef]) -> dict[str, Any]:
    """Images and files: those of the session by their hash, others by their address; text by its name."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Blob):
            found.append({"mime": part.mime, "size": part.size, "sha256": part.sha256})
        elif isinstance(part, FileRef):
            found.append({"mime": part.mime, "uri": part.uri})
        elif isinstance(part, Text) and part.attached is not None:
            found.append({"name": part.attached.name, "path": part.attached.path, "text": part.text})
    return {"attachments": found} if found else {}
