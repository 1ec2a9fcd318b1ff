"""The status line and the sign of life: from facts to one row each. With less room, the least important facts are left out first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.base.text import bar, one_line
from dragoman.tui.cells import dollars, short_count
from dragoman.tui.line import EMPTY, Line, Span, columns_of, line, visible
from dragoman.tui.wrap import beside, fit, spread
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.judge import Mode

WIDE = 100
"""From this many columns on, more is shown."""
NARROW = 60
"""Below so many columns less is."""
BAR_COLUMNS = 10
SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧"
_FOLDER = 7
_SERVICE, _HTTP = re.compile(r"^[\w.-]+: "), re.compile(r"\(HTTP (\d+)\)")
_SHORT = {1: 1, 2: 1, 3: 3, 4: 1}
"""Which words a level of the sandbox has where there is little room."""
SLOW = 3
"""A service that takes this many times longer than usual is called slow."""


class Facts(msgspec.Struct, frozen=True):
    """What holds for the next request."""

    mode: Mode = "default"
    """How calls are approved."""
    sandbox: int | None = None
    """The level in which commands run; 0: none; None: not known yet, or no command has anything to do with it."""
    has_gate: bool = True
    """False: that level would let hosts be reached, and this system does not."""
    model: str = ""
    """`deployment/model`."""
    used_tokens: int = 0
    window_tokens: int = 0
    cost_usd: float | None = None
    """Of the session so far."""
    next_usd: float | None = None
    """What the next request costs at least."""
    cache: Literal["", "warm", "cold"] = ""
    cache_s: int = 0
    """How long it stays warm, or has been cold; 0: not known."""
    folder: str = ""
    branch: str = ""
    is_running: bool = False


class _Part(msgspec.Struct, frozen=True):
    line: Line
    rank: int
    """What has the highest goes first."""


def status_line(facts: Facts, columns: int) -> Line:
    """`ask first ⇧⇥   sonnet-5-5   ctx █ 12% of 1M   $0.0061   cache warm   ? keys`"""
    keys = line(say("tui.keys_running") if facts.is_running else say("tui.keys_idle"), "status")
    between = 3 if NARROW <= columns < WIDE else 2
    if columns < WIDE:
        parts = _parts(facts, bar_columns=1, is_wide=False)
        if not _fits(parts, columns - columns_of(keys) - 2, between):
            parts = _parts(facts, bar_columns=1, is_wide=False, is_short=True)
        if columns < NARROW:
            parts[0] = _Part(parts[0].line[:1], 1)
        return spread(_joined(parts, columns, between), keys, columns)
    room = columns - columns_of(keys) - 2
    for is_short, bar_columns in ((False, BAR_COLUMNS), (False, 1), (True, BAR_COLUMNS), (True, 1)):
        # a longer bar, the name of the service and the word sandbox say less than what the next request costs
        parts = _parts(facts, bar_columns=bar_columns, is_wide=True, is_short=is_short)
        if _fits(parts, room, between):
            return spread(_joined(parts, room, between), keys, columns)
    return spread(_joined(parts, columns, between), keys, columns)


def _parts(facts: Facts, *, bar_columns: int, is_wide: bool, is_short: bool = False) -> list[_Part]:
    model = facts.model if is_wide and not is_short else facts.model.rpartition("/")[2].removeprefix("claude-")
    parts = [
        _Part((Span(say(f"tui.mode_{facts.mode.replace('-', '_')}"), "accent"), Span(" ⇧⇥", "status")), 1),
        _Part(_sandbox(facts, is_short=is_short), 2),
        _Part(line(visible(one_line(model, 60)), "status"), 0),
        _Part(_context(facts, bar_columns), 3),
        _Part(line(dollars(facts.cost_usd), "status") if facts.cost_usd is not None else EMPTY, 4),
        _Part(_cache(facts, is_wide), 5),
        _Part(line(say("tui.next_costs", cost=dollars(facts.next_usd)), "status") if is_wide and facts.next_usd is not None else EMPTY, 6),
        _Part(line(visible(one_line(" ".join(filter(None, (facts.folder, facts.branch))), 60)), "status") if is_wide else EMPTY, _FOLDER),
    ]
    return [part for part in parts if part.line]


def _fits(parts: Sequence[_Part], columns: int, between: int) -> bool:
    """Whether there is room for all but the folder."""
    return sum(columns_of(part.line) + between for part in parts if part.rank != _FOLDER) - between <= columns


def _sandbox(facts: Facts, *, is_short: bool) -> Line:
    """What holds commands, in words. It is said in every mode: where the workspace can be held read-only, some run in plan mode too."""
    if facts.sandbox is None:
        return EMPTY
    is_short = is_short and facts.sandbox in _SHORT
    level = say(f"tui.sandbox_short_{_SHORT[facts.sandbox]}" if is_short else f"tui.sandbox_{facts.sandbox}")
    if not facts.has_gate:
        level = say("tui.sandbox_short_no_gate") if is_short else say("tui.sandbox_no_gate", level=level)
    return line(level, "status" if facts.sandbox in (1, 2, 4, 5) else "warn")


def _joined(parts: Sequence[_Part], columns: int, between: int) -> Line:
    kept = list(parts)
    while kept and sum(columns_of(part.line) + between for part in kept) - between > columns:
        kept.remove(max(kept, key=lambda part: part.rank))
        if not kept:
            return fit(min(parts, key=lambda part: part.rank).line, columns)
    spans: list[Span] = []
    for number, part in enumerate(kept):
        spans += [Span(" " * between)] if number else []
        spans += part.line
    return tuple(spans)


def _context(facts: Facts, columns: int) -> Line:
    if not facts.window_tokens:
        return EMPTY
    share = facts.used_tokens / facts.window_tokens
    percent = f"{100 * share:.1f}" if share < 0.01 else f"{100 * share:.0f}"
    style = "bad" if share >= 0.9 else "warn" if share >= 0.7 else "status"
    filled = bar(share, columns)
    drawn = filled + ("░" * (columns - len(filled)) if columns > 1 else "")
    return (
        Span(f"{say('tui.context')} ", "status"),
        Span(f"{drawn} ", style),
        Span(say("tui.context_of", percent=percent, window=short_count(facts.window_tokens)), style),
    )


def _cache(facts: Facts, is_wide: bool) -> Line:
    if not facts.cache:
        return EMPTY
    time = f" {facts.cache_s // 60}:{facts.cache_s % 60:02}" if is_wide and facts.cache_s and facts.cache == "warm" else ""
    return line(say(f"tui.cache_{facts.cache}") + time, "status" if facts.cache == "warm" else "warn")


# --- what waits


def waiting_lines(unsaid: Sequence[str], queued: Sequence[str], columns: int) -> list[Line]:
    """What the model gets as soon as possible, then what is sent after the run; the last can be taken back."""
    texts = [*((say("tui.unsaid"), text) for text in unsaid), *((say("tui.queued"), text) for text in queued)]
    rows = [(Span("⏎ ", "accent"), Span(f"{when} ", "dim"), Span(visible(one_line(text)))) for when, text in texts]
    back = line(say("tui.take_back"), "dim")
    return [*(fit(row, columns) for row in rows[:-1]), *(beside(row, back, columns) for row in rows[-1:])]


# --- the sign of life


class Activity(msgspec.Struct, frozen=True):
    """What is going on."""

    doing: Literal["waiting", "reading", "thinking", "writing", "running", "retrying", "compressing"]
    seconds: float = 0.0
    service: str = ""
    usual_s: float = 0.0
    """How long its first word usually takes; 0: not known."""
    tokens: int = 0
    cost_usd: float | None = None
    first_word_s: float = 0.0
    percent: int = 0
    about: str = ""
    """What the thought is about, what runs next, or why it is tried again."""
    number: int = 0
    count: int = 0
    """Calls at work, and all of this answer; or the attempt, and how many there may be."""
    wait_s: float = 0.0


def sign_of_life(activity: Activity, columns: int, beat: int = 0, keys: str = "") -> Line:
    """One row that changes, never a page of them. `beat` counts up: the sign moves with it. `keys`: what can be done, if it is more than
    stopping."""
    sign = "↻" if activity.doing == "retrying" else SIGNS[beat % len(SIGNS)]
    style = "warn" if activity.doing == "retrying" or _is_slow(activity) else "dim"
    left = (Span(f"{sign} ", "warn" if activity.doing == "retrying" else "accent"), Span(_doing(activity, columns >= WIDE), style))
    if not keys:
        keys = say("tui.esc_stops_all") if activity.doing == "running" and activity.count > 1 else say("tui.esc_stops")
    return (spread if columns < NARROW else beside)(left, line(keys, "dim"), columns)


def keys_at_work(activity: Activity, columns: int, has_command: bool) -> str:
    """What can be done about it, where that is more than stopping."""
    length = "wide" if columns >= WIDE else "short"
    if activity.doing == "retrying" and activity.wait_s > 0:
        return say(f"tui.keys_retrying_{length}")
    if activity.doing != "running":
        return ""
    several = activity.count > 1
    parts = [
        say("tui.esc_stops_all" if several else "tui.esc_stops"),
        say(f"tui.key_stops_one_{length}") if several else "",
        say("tui.key_next_one") if activity.number > 1 and columns >= WIDE else "",
        say("tui.key_background") if has_command else "",
    ]
    return " · ".join(filter(None, parts))


def _doing(activity: Activity, is_wide: bool) -> str:
    seconds, about = int(activity.seconds), visible(one_line(activity.about, 80))
    match activity.doing:
        case "waiting":
            where = visible(one_line(activity.service, 60))
            if _is_slow(activity):
                return say("tui.waiting_long", service=where, seconds=seconds, usual=f"{activity.usual_s:.0f}")
            return say("tui.waiting", service=where, seconds=seconds)
        case "reading":
            return say("tui.reading", percent=activity.percent, seconds=seconds)
        case "thinking":
            return " · ".join(filter(None, (say("tui.thinking", seconds=seconds), about)))
        case "writing":
            first = activity.first_word_s
            more = [
                say("tui.tokens", count=activity.tokens) if activity.tokens else "",
                dollars(activity.cost_usd) if activity.cost_usd is not None else "",
                say("tui.first_word", seconds=f"{first:.1f}") if is_wide and first else "",
            ]
            return " · ".join(filter(None, (say("tui.writing", seconds=seconds), *more)))
        case "running":
            following = say("tui.next", what=about) if about else ""
            return " · ".join(filter(None, (say("tui.running", number=str(activity.number), count=str(activity.count)), following)))
        case "retrying":
            words = say("tui.retrying", attempt=str(activity.number), count=str(activity.count), wait=ceil(activity.wait_s))
            reason = _HTTP.sub(r"(\1)", _SERVICE.sub("", about.partition(" [")[0]))  # the rest stands in the line that stays
            return " · ".join(filter(None, (words, reason, say("tui.nothing_lost") if is_wide else "")))
        case "compressing":
            return say("tui.compressing", seconds=seconds)


def _is_slow(activity: Activity) -> bool:
    return activity.doing == "waiting" and 0 < activity.usual_s * SLOW < activity.seconds
