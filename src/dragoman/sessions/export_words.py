"""What an export says in its own words, in Markdown and HTML alike."""

from __future__ import annotations

import time

from dragoman.base import jsontext
from dragoman.sessions.transcript import Call, Note, Reply, Transcript

LABELS = {
    "prompt": "Prompt",
    "setup": "Setup",
    "told": "Told by the program",
    "answer": "Answer",
    "thought": "Thought",
    "call": "Call",
    "attached": "Attached",
    "source": "Source",
    "taken_back": "taken back",
}
_OUTCOMES = {
    "finished": "done",
    "failed": "failed",
    "cancelled": "cancelled",
    "not_run": "not run",
    "unknown": "interrupted, outcome unknown",
}
_NOTES = {
    "model": "The model is {about} from here on.",
    "pruned": "Old tool output was taken out of what the model sees (calls: {about}).",
    "compressed": "What came before was summed up for the model:",
    "rewound": "Went back to entry {about}.",
    "restored": "Files were put back as they had been (changes undone: {about}).",
    "unknown": "An entry of a kind this version does not know:",
}
# Line ends and tabs stay; anything else that acts on a terminal or an HTML parser becomes a sign for itself.
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421} | dict.fromkeys(range(128, 160), 0xFFFD)


def shown(text: str) -> str:
    """The text with its control characters made visible, and valid Unicode."""
    text = jsontext.valid_unicode(text)
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_CONTROLS)


def facts_of(transcript: Transcript) -> dict[str, str]:
    """What stands at the head; empty where it is not known."""
    return {
        "Session": transcript.session_id,
        "Started": time_of(transcript.started_ms),
        "Last change": time_of(transcript.updated_ms),
        "Folder": ", ".join(transcript.directories),
        "Model": transcript.model,
    }


def heading(transcript: Transcript) -> str:
    from dragoman.sessions.titles import title_of

    return transcript.title or title_of(transcript.first_prompt) or transcript.session_id or "Session"


def outcome_words(step: Reply | Call) -> str:
    """How it ended; of an answer that ended well, nothing."""
    if isinstance(step, Call):
        return _OUTCOMES[step.outcome]
    words = [step.broken_off, f"rejected: {step.rejected}" if step.rejected else ""]
    return ", ".join(filter(None, words))


def note_words(note: Note) -> tuple[str, str]:
    """A sentence, and what it introduces, where it introduces something."""
    introduces = note.kind in ("compressed", "unknown")
    return _NOTES[note.kind].format(about=note.about), note.about if introduces else ""


def time_of(timestamp_ms: int, form: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    """Nothing, where the clock of whoever wrote it was not one."""
    try:
        return time.strftime(form, time.gmtime(timestamp_ms // 1000)).replace("{ms:03d}", f"{timestamp_ms % 1000:03d}")
    except (OverflowError, ValueError, OSError):
        return ""
