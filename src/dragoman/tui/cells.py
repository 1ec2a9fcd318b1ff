"""What is said in a conversation, as lines: a prompt, a thought, a notice, an error, the line under an answer. Calls are in
`tui/call_cells.py`, questions in `tui/question.py`, answers in `tui/markdown.py`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.base.graphemes import width
from dragoman.base.text import one_line
from dragoman.tui.line import INDENT, Line, Span, line, visible
from dragoman.tui.wrap import fit, wrap
from dragoman.values.usage import Usage
from dragoman.words import say

PROMPT_ROWS = 12
"""A longer prompt is folded: its beginning is shown, and how much follows."""
_SUBJECT_CHARS = 120
RULE = "─"


def prompt(text: str, columns: int, *, is_whole: bool = False) -> list[Line]:
    """What the user said."""
    rows: list[Line] = []
    for number, each in enumerate(text.rstrip("\n").split("\n")):
        rows += wrap(line(visible(each), "bold"), columns, (Span("  " if number else "› ", "prompt"),), INDENT)
    if is_whole or len(rows) <= PROMPT_ROWS:
        return rows
    left = len(rows) - PROMPT_ROWS + 1
    return [*rows[: PROMPT_ROWS - 1], fit(line(f"  {say('tui.more_lines', count=left)}", "dim"), columns)]


def thinking(text: str, columns: int, most_rows: int = 3) -> list[Line]:
    """A thought while it comes: its last rows."""
    paragraphs = [part.strip() for part in text.split("\n") if part.strip()]
    rows = [row for part in paragraphs[-most_rows:] for row in wrap(line(visible(part), "thinking"), columns, INDENT)][-most_rows:]
    return [(Span("… ", "thinking"), *rows[0][1:]), *rows[1:]] if rows and rows[0][:1] == (Span("  "),) else rows


def thought(text: str, seconds: float, columns: int) -> list[Line]:
    """A thought that is over: how long it took and what it was about."""
    subject = subject_of(text)
    words = say("tui.thought", seconds=max(round(seconds), 1))
    return [fit((Span(f"… {words}", "thinking"), Span(f" · {subject}" if subject else "", "thinking")), columns)]


def subject_of(text: str) -> str:
    """The headline of a thought: its last line in bold, if it has one."""
    headlines = [part.strip() for part in text.split("\n") if part.strip().startswith("**") and part.strip().endswith("**")]
    return visible(one_line(headlines[-1].strip("*# "), _SUBJECT_CHARS)) if headlines else ""


def notice(text: str, columns: int, style: str = "dim") -> list[Line]:
    """Something the user should know."""
    return wrap(line(visible(one_line(text)), style), columns, rest=INDENT)


def error(text: str, columns: int) -> list[Line]:
    """What went wrong, whole: its remedy is in it."""
    first, *others = text.strip("\n").split("\n") or [""]
    rows = wrap(line(visible(first), "bad"), columns, (Span("✗ ", "bad"),))
    return [*rows, *(row for each in others for row in wrap(line(visible(each)), columns, INDENT))]


def sources(citations: list[tuple[str, str]], columns: int) -> list[Line]:
    """Where an answer comes from: titles and addresses."""
    rows = [line(say("tui.sources"), "dim")] if citations else []
    for number, (title, address) in enumerate(citations, 1):
        shown = visible(one_line(title or address))
        spans = (Span(shown, "link"), Span(f" ({visible(one_line(address))})" if title and address != title else "", "dim"))
        rows += wrap(spans, columns, (Span(f"[{number}] ", "dim"),))
    return rows


_NAMED_FILES = 3


class Ended(msgspec.Struct, frozen=True):
    """What a run took."""

    seconds: float
    usage: Usage = Usage()
    cost_usd: float | None = None
    requests: int = 0
    changes: tuple[str, ...] = ()
    """Files it changed: `calc.py +2 −0`."""
    can_undo: bool = False


def ended(run: Ended, columns: int) -> Line:
    """The line under an answer: time, tokens, cost, files. What does not fit is left out, the last first and how to take it back last."""
    usage = run.usage
    least = "≥" if usage.incomplete and usage.total_tokens else ""
    parts = [say("tui.took", seconds=f"{run.seconds:.0f}" if run.seconds >= 10 else f"{run.seconds:.1f}")]
    requests = say("tui.requests", count=run.requests) if run.requests > 1 else ""
    if not usage.is_unknown and usage.total_tokens:
        cached = say("tui.cached", percent=usage.cached_percent) if usage.cached_percent else ""
        read, written = f"{least}{usage.input_tokens:,}", f"{least}{usage.output_tokens:,}"
        parts += [say("tui.tokens_in", tokens=read) + cached, say("tui.tokens_out", tokens=written)]
    if run.cost_usd is not None:
        parts.append(f"{least}{dollars(run.cost_usd)}")
    back = ["/undo", *(["/diff"] if run.changes else [])] if run.can_undo else []
    told = _files(run.changes)
    if requests and width(" · ".join([*parts, *told[:1], requests, *back])) + 5 <= columns:
        parts.insert(1, requests)
    room = columns - 5 - sum(width(part) + 3 for part in back)
    kept: list[str] = []
    for part in parts:
        if width(" · ".join([*kept, part])) <= room:
            kept.append(part)
    files = next((each for each in told if width(" · ".join([*kept, each])) <= room), "")
    kept += [files] if files else []
    return fit(line(f"{RULE} {' · '.join([*kept, *back])} {RULE * 2}", "dim"), columns)


def _files(names: Sequence[str]) -> list[str]:
    """The files that were changed, in fewer and fewer words: never some of them as if they were all."""
    shown = [visible(one_line(each, 80)) for each in names]
    if not shown:
        return []
    count = [say("tui.files", count=len(shown))]
    return [*([" · ".join(shown)] if len(shown) <= _NAMED_FILES else []), *(count if len(shown) > 1 else [])]


def dollars(cost: float) -> str:
    """`$0.0072`, `$0.41`, `$12.30`: two figures that say something."""
    if cost <= 0 or cost >= 0.1:
        return f"${max(cost, 0):,.2f}"
    return f"${cost:.4f}" if cost >= 0.0001 else "<$0.0001"


def short_count(tokens: int) -> str:
    """`812`, `4.1k`, `18k`, `1M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1000:.1f}k" if tokens < 9_950 else f"{tokens / 1000:.0f}k"
    millions = f"{tokens / 1_000_000:.1f}"
    return f"{millions.removesuffix('.0')}M"
