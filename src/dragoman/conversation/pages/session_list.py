"""Lists of sessions and search hits, as text and as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.app.surface import surface
from dragoman.base.graphemes import fit, width
from dragoman.base.text import one_line, size, strip_controls
from dragoman.sessions.last_run import is_held, run_facts, trouble_words
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.search_table import Hit
    from dragoman.sessions.summary import Summary

_MOST_COLUMNS = 160
_MODEL_COLUMNS = 28
_FOLDER_COLUMNS = 30


def as_table(found: Sequence[Summary], short: Mapping[str, str], *, now_ms: int, everywhere: bool) -> str:
    """One line per session, most recent first, and below it how its last run ended, unless with an answer. `short`: the short ids; across
    folders (`everywhere`), the folder is shown too."""
    cells = [(short[each.session_id], *_cells(each, now_ms, everywhere)) for each in found]
    heads = ("sessions_id", "sessions_age", "sessions_title", "sessions_messages")
    titles = [say(head) for head in (*heads, "sessions_model", "sessions_size", *(["sessions_folder"] if everywhere else []))]
    rows = [[(cell, width(cell)) for cell in row] for row in (titles, *cells)]
    widths = [max(width for _, width in column) for column in zip(*rows, strict=True)]
    widths[2] = max(min(widths[2], _columns() - sum(widths) + widths[2] - 2 * (len(widths) - 1)), 20)
    told = ["", *(trouble_of(each) for each in found)]
    lines = (line for row, words in zip(rows, told, strict=True) for line in (_line(row, widths), *_told_line(words)))
    return "\n".join(lines) + "\n"


def trouble_of(found: Summary) -> str:
    """How the last run of a session stands now, in a sentence; empty where it ended with its answer."""
    return trouble_words(found.run, is_held=_is_held(found))


def _is_held(found: Summary) -> bool:
    return found.run.state == "open" and is_held(found.path)


def _told_line(words: str) -> list[str]:
    return [say("sessions_run", words=fit(words, _columns() - 6))] if words else []


def as_json(found: Sequence[Summary], short: Mapping[str, str]) -> list[dict[str, Any]]:
    return [_summary_json(each, short) for each in found]


def hits_as_text(found: Sequence[Hit], short: Mapping[str, str], *, now_ms: int) -> str:
    lines: list[str] = []
    for hit in found:
        summary = hit.summary
        title = fit(one_line(summary.title), _columns() - 40)
        lines.append(f"{short[summary.session_id]}  {_age_of(summary, now_ms):>4}  {title}")
        lines.append(say("session_hit", seq=hit.seq, role=say(f"hit_{hit.role}"), excerpt=one_line(hit.excerpt, 300), matches=hit.matches))
    return "\n".join(lines) + "\n"


def hits_as_json(found: Sequence[Hit], short: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"session": _summary_json(hit.summary, short), "matches": hit.matches, "seq": hit.seq, "role": hit.role, "excerpt": hit.excerpt}
        for hit in found
    ]


def _age_of(summary: Summary, now_ms: int) -> str:
    return age(now_ms - summary.updated_ms) if summary.updated_ms else say("sessions_age_unknown")


def age(ms: int) -> str:
    """`5s`, `12m`, `3h`, `2d`, `7w`, `1y`."""
    seconds = max(ms // 1000, 0)
    for unit, length, most in (("s", 1, 60), ("m", 60, 60), ("h", 3_600, 24), ("d", 86_400, 14), ("w", 604_800, 52)):
        if seconds < length * most:
            return f"{seconds // length}{unit}"
    return f"{seconds // 31_556_952}y"


def _cells(summary: Summary, now_ms: int, everywhere: bool) -> tuple[str, ...]:
    title = one_line(summary.title, 200) or say("sessions_untitled")
    model = fit(one_line(summary.model, 200), _MODEL_COLUMNS)
    cells = (_age_of(summary, now_ms), title, str(summary.messages), model, size(summary.size))
    return (*cells, _folder(one_line(summary.workspace, 4_000))) if everywhere else cells


def _line(cells: Sequence[tuple[str, int]], widths: Sequence[int]) -> str:
    shown: list[str] = []
    for place, ((cell, used), room) in enumerate(zip(cells, widths, strict=True)):
        if used > room:
            cell = fit(cell, room)
            used = width(cell)
        blank = " " * (room - used)
        shown.append(blank + cell if place in (1, 3, 5) else cell + blank)
    return "  ".join(shown).rstrip()


def _folder(path: str) -> str:
    """Shorten a path at its beginning, because its end says more."""
    home = os.path.expanduser("~")
    path = f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path
    parts = path.split(os.sep)
    while width(path) > _FOLDER_COLUMNS and len(parts) > 1:
        parts = parts[1:]
        path = os.sep.join(["…", *parts])
    return fit(path, _FOLDER_COLUMNS)


def _summary_json(summary: Summary, short: Mapping[str, str]) -> dict[str, Any]:
    data = {"id": short[summary.session_id]} | {
        name: getattr(summary, name) for name in ("session_id", "path", "workspace", "title", "first_prompt", "started_ms", "updated_ms")
    }
    data |= {name: data[name] or None for name in ("started_ms", "updated_ms")}
    data["run"] = run_facts(summary.run, is_held=_is_held(summary))
    data |= {"messages": summary.messages, "model": summary.model, "size": summary.size, "usage": summary.usage.as_told()}
    return {name: strip_controls(value) if isinstance(value, str) else value for name, value in data.items()}


def _columns() -> int:
    return max(min(surface().columns or 120, _MOST_COLUMNS), 60)
