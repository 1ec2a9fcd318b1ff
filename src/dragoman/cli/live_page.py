"""How `dragoman doctor --live` shows its rows: as a table that fits the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.app.live import LiveRow, LiveRun, State
from dragoman.base import jsontext
from dragoman.base.graphemes import width
from dragoman.base.text import one_line
from dragoman.base.wrapping import wrap_line
from dragoman.conversation.page import Look, Page, Piece, pad
from dragoman.conversation.pages.context_page import dollars
from dragoman.conversation.style import Style
from dragoman.words import say

_MARKS: dict[State, tuple[str, Style]] = {
    "worked": ("✓", "green"),
    "failed": ("✗", "red"),
    "not_offered": ("-", "dim"),
    "skipped": ("-", "dim"),
    "not_tried": ("!", "yellow"),
}
_GAP = _NO_MARK = "  "
_INDENT = 4
_LEAST_COLUMNS = 20
_MOST_RESULT_CHARS = 600


def feature_name(feature: str) -> str:
    if feature.startswith("effort_"):
        return say("live_effort_word", word=feature.removeprefix("effort_"))
    return say(f"live_feature_{feature}")


def page_of(run: LiveRun, look: Look, *, stopped: bool, seconds: float, recorded: str = "") -> str:
    page = Page(look)
    _table(page, run.rows)
    page.blank()
    for line in filter(None, (*_summary(run, stopped, seconds), recorded)):
        page.line(line)
    return page.text


def _table(page: Page, rows: Sequence[LiveRow]) -> None:
    head = [say(f"live_head_{name}") for name in ("feature", "time", "in", "out", "cost")]
    cells = [[feature_name(row.feature), *_figures(row)] for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    before = 2 + sum(widths) + len(_GAP) * len(widths)
    page.line(_NO_MARK, *_aligned(head, widths, "dim"), (say("live_head_result"), "dim"))
    for row, line in zip(rows, cells, strict=True):
        mark, color = _MARKS[row.state]
        style: Style = "dim" if row.state in ("not_offered", "skipped") else ""
        start = (f"{mark} ", color)
        if not row.requests:  # there are no figures: the reason takes their place
            _with_result(page, [start, (pad(line[0], widths[0]) + _GAP, style)], 2 + widths[0] + len(_GAP), _result(row), style)
        elif not page.look.columns or width(_result(row)) <= page.look.columns - before:
            page.line(start, *_aligned(line, widths), _result(row))
        else:
            page.line(start, *_aligned(line, widths))
            _with_result(page, [], _INDENT, _result(row))
        for text, below in _below(row):
            _with_result(page, [], _INDENT, text, below)


def _aligned(cells: Sequence[str], widths: Sequence[int], style: Style = "") -> Iterator[Piece]:
    """The name on the left, figures on the right of their columns. Each a piece: a page takes out blanks inside one."""
    for place, (cell, columns) in enumerate(zip(cells, widths, strict=True)):
        yield pad(cell, columns, right=place > 0), style
        yield _GAP


def _with_result(page: Page, start: list[Piece], indent: int, text: str, style: Style = "") -> None:
    """Add a text behind `start`, over as many lines as it needs."""
    room = max(page.look.columns - indent, _LEAST_COLUMNS) if page.look.columns else 0
    for number, piece in enumerate(wrap_line(text, room)):
        page.line(*(start if start and number == 0 else [" " * indent]), (piece, style))


def _figures(row: LiveRow) -> list[str]:
    if not row.requests:
        return ["", "", "", ""]
    tokens = [f"{count:,}" if count else "" for count in (row.usage.input_tokens, row.usage.output_tokens)]
    return [f"{row.seconds:.1f} s", *tokens, dollars(row.cost_usd) if row.cost_usd and any(tokens) else ""]


def _result(row: LiveRow) -> str:
    text = one_line(row.text, _MOST_RESULT_CHARS)
    match row.state:
        case "not_offered":
            return say("live_not_offered", reason=text)
        case "skipped":
            return say("live_skipped", reason=text)
        case "not_tried":
            return say("live_not_tried", reason=text)
        case _:
            return text


def _below(row: LiveRow) -> Iterator[tuple[str, Style]]:
    """What stands under a row: notes, and what to do next."""
    for note in row.notes:
        yield say("live_note", text=one_line(note, _MOST_RESULT_CHARS)), "dim"
    if row.advice:
        yield f"→ {row.advice}", ""


def _summary(run: LiveRun, stopped: bool, seconds: float) -> Iterator[str]:
    tried = [row for row in run.rows if row.state in ("worked", "failed", "not_tried")]
    key = "live_stopped" if stopped else "live_all_worked" if run.worked else "live_some_failed"
    yield say(key, model=run.name, worked=sum(row.state == "worked" for row in tried), offered=len(tried))
    yield say(
        "live_total",
        requests=sum(row.requests for row in run.rows),
        input=f"{run.usage.input_tokens:,}",
        output=f"{run.usage.output_tokens:,}",
        cost=total_cost(run),
        seconds=seconds,
    )


def total_cost(run: LiveRun) -> str:
    if run.cost_usd is not None:
        return dollars(run.cost_usd)
    deployment = run.service.deployment
    return say("live_total_local" if deployment is not None and deployment.local else "live_total_unknown")


# --- JSON -----------------------------------------------------------------------------------------------------------------------


def json_of(run: LiveRun, *, stopped: bool, recorded: str, seconds: float) -> str:
    usage = run.usage
    return (
        jsontext.dumps(
            {
                "ok": run.worked and not stopped,
                "model": run.name,
                "stopped": stopped,
                "rows": [_row_json(row) for row in run.rows],
                "requests": sum(row.requests for row in run.rows),
                "tokens": {"input": usage.input_tokens, "cache_read": usage.cache_read_tokens, "output": usage.output_tokens},
                "cost_usd": run.cost_usd,
                "duration_ms": int(seconds * 1000),
                "recorded": recorded or None,
            }
        )
        + "\n"
    )


def _row_json(row: LiveRow) -> dict[str, Any]:
    return {
        "feature": row.feature,
        "state": row.state,
        "text": row.text,
        "advice": row.advice or None,
        "notes": list(row.notes),
        "requests": row.requests,
        "duration_ms": int(row.seconds * 1000),
        "tokens": {"input": row.usage.input_tokens, "cache_read": row.usage.cache_read_tokens, "output": row.usage.output_tokens},
        "cost_usd": row.cost_usd,
    }
