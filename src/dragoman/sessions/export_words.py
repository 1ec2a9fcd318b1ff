"""The labels and sentences that Markdown and HTML exports share."""

from __future__ import annotations

import time

from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.sessions.last_run import LastRun, next_run, run_words, words_for_file
from dragoman.sessions.transcript import Note, Reply, ToolCallStep, Transcript
from dragoman.values.record import AttemptFailed, RunEnded
from dragoman.values.usage import Usage
from dragoman.words import say

# Newlines and tabs stay; any other character that acts on a terminal or an HTML parser is replaced by a visible symbol.
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421} | dict.fromkeys(range(128, 160), 0xFFFD)


def label(name: str) -> str:
    return say(f"sessions.label_{name}")


def escape_controls(text: str) -> str:
    """The text with its control characters made visible, and valid Unicode."""
    text = jsontext.valid_unicode(text)
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_CONTROLS)


def facts_of(transcript: Transcript, *, is_held: bool | None = None) -> dict[str, str]:
    """The facts at the head of an export; empty where unknown. `is_held`: whether a process has the session open."""
    return {
        label("session"): transcript.session_id,
        label("started"): time_of(transcript.started_ms),
        label("changed"): time_of(transcript.updated_ms),
        label("folder"): ", ".join(transcript.directories),
        label("model"): transcript.model,
        label("last_run"): words_for_file(transcript.run, is_held=is_held),
    }


def tokens_words(usage: Usage) -> str:
    """What a session used; empty where nothing was asked."""
    if usage.is_unknown:
        return say("sessions.tokens_unknown")
    key = "sessions.tokens_least" if usage.incomplete else "sessions.tokens"
    return say(key, input=f"{usage.input_tokens:,}", output=f"{usage.output_tokens:,}") if usage.total_tokens else ""


def heading(transcript: Transcript) -> str:
    return heading_of(transcript.title, transcript.first_prompt, transcript.session_id)


def heading_of(title: str, first_prompt: str, session_id: str) -> str:
    from dragoman.sessions.titles import title_of

    return title or title_of(first_prompt) or session_id or label("session")


def outcome_words(step: Reply | ToolCallStep) -> str:
    """How it ended; empty for an answer that ended normally."""
    if isinstance(step, ToolCallStep):
        words = say(f"sessions.outcome_{step.outcome}")
        return say("sessions.outcome_outside", words=words) if step.outside else words
    words = [step.broken_off, say("sessions.answer_rejected", reason=step.rejected) if step.rejected else ""]
    return ", ".join(filter(None, words))


def note_words(note: Note) -> tuple[str, str]:
    """A sentence, and the text it introduces, if any."""
    if note.of is not None:
        return _attempt_words(note.of) if isinstance(note.of, AttemptFailed) else end_words(note.of), ""
    introduces = note.kind in ("compressed", "unknown")
    words = say(f"sessions.note_{note.kind}", about=note.about)
    if note.window:
        words = say("sessions.note_for_window", words=words, window=f"{note.window:,}")
    return words, note.about if introduces else ""


def _attempt_words(failed: AttemptFailed) -> str:
    then = ""
    if failed.model:
        then = say("sessions.attempt_other_model", model=failed.model)
    elif failed.wait_s:
        then = say("sessions.attempt_again", wait=round(failed.wait_s, 1))
    return say("sessions.note_attempt_failed", attempt=failed.attempt, then=then, words=one_line(failed.words))


def end_words(ended: RunEnded) -> str:
    """How a run ended and what it took."""
    sentence = run_words(next_run(LastRun(), ended))
    if ended.outcome == "broken_off":  # whoever noted it does not know
        return sentence
    key = "sessions.run_cost_least" if ended.is_cost_least else "sessions.run_cost"
    cost = say(key, usd=f"{ended.cost_usd:.4f}") if ended.cost_usd is not None else ""
    return say("sessions.note_run_ended", sentence=sentence, turns=ended.turns, requests=ended.requests, cost=cost)


def time_of(timestamp_ms: int) -> str:
    """The local time with its distance from UTC: an export may be read elsewhere. In words if it is not known, empty if it is out of
    range."""
    if not timestamp_ms:
        return say("sessions.time_unknown")
    try:
        local = time.localtime(timestamp_ms // 1000)
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', local)} {_zone(local.tm_gmtoff)}"
    except (OverflowError, ValueError, OSError):
        return ""


def _zone(seconds: int) -> str:
    """`UTC`, `UTC+05:30`."""
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"UTC{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}" if seconds else "UTC"


def utc_of(timestamp_ms: int) -> str:
    """For programs: `2026-11-15T12:01:02.123Z`. Empty if it is not known or out of range."""
    if not timestamp_ms:
        return ""
    try:
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(timestamp_ms // 1000))}.{timestamp_ms % 1000:03}Z"
    except (OverflowError, ValueError, OSError):
        return ""
