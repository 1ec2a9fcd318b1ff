"""Renders a context plan as text: a bar per kind, a line per item, and facts on pruning, cache and cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from dragoman.base.graphemes import fit, width
from dragoman.base.text import bar
from dragoman.context.decide import Waiting
from dragoman.context.plan import Plan, Total
from dragoman.context.plan_items import PlanItem
from dragoman.conversation.page import Look, Page, Piece, pad, table
from dragoman.conversation.pages.session_list import age
from dragoman.conversation.spent_words import spent_words
from dragoman.loop.waiting_notice import clock_fault
from dragoman.words import lookup, say

FIRST_ROWS, LAST_ROWS = 6, 24
"""How many rows of a long table are shown."""
LABEL_COLUMNS = 34
BAR_COLUMNS = 40
WINDOW_COLUMNS = 60
FACT_COLUMNS = 10
INDENT = "  "


def page_of(
    plan: Plan,
    look: Look,
    *,
    title: str = "",
    session_id: str = "",
    now_ms: int = 0,
    everything: bool = False,
    window_is_known: bool = True,
) -> str:
    page = Page(look)
    model = "/".join(filter(None, (plan.deployment, plan.model))) or say("context_no_model")
    if title:
        page.line((title, "bold"))
    page.line((say("context_head", id=session_id or plan.session_id, model=model, seq=plan.seq), "dim"))
    page.blank()
    _bars(page, plan, window_is_known)
    page.blank()
    _items(page, plan, now_ms, everything)
    page.blank()
    _facts(page, plan, now_ms, model)
    return page.text


# --- bars


def _bars(page: Page, plan: Plan, window_is_known: bool) -> None:
    share = plan.tokens / plan.window if plan.window else 0.0
    guess = "" if window_is_known else say("context_guessed_window")
    page.line((say("context_next", tokens=plan.tokens, percent=_percent(share), window=f"{plan.window:,}") + guess, "bold"))
    columns = min(page.look.columns - 4, WINDOW_COLUMNS) if page.look.columns else WINDOW_COLUMNS
    used = bar(share, columns)
    page.line(INDENT, (used, "red" if share > 0.9 else "yellow" if share > 0.5 else "green"), ("░" * (columns - len(used)), "dim"))
    page.blank()
    labels = [fit(_label(total), LABEL_COLUMNS) for total in plan.totals]
    notes = [_pruned_note(total) for total in plan.totals]
    sizes = [f"{total.tokens:,}" for total in plan.totals]
    label_columns, size_columns = max(map(width, labels), default=0), max(map(len, sizes), default=0)
    note_columns = max(map(width, notes), default=0)
    room = page.look.columns - label_columns - size_columns - note_columns - 14 if page.look.columns else BAR_COLUMNS
    most = max((total.tokens for total in plan.totals), default=0) or 1
    for total, label, size, note in zip(plan.totals, labels, sizes, notes, strict=True):
        filled = bar(total.tokens / most, max(min(room, BAR_COLUMNS), 4))
        numbers = pad(size, size_columns, right=True) + pad(_percent(total.tokens / (plan.tokens or 1)), 6, right=True)
        page.line(INDENT, pad(label, label_columns), "  ", numbers, "  ", (filled, "cyan"), (f"  {note}" if note else "", "yellow"))


def _label(total: Total) -> str:
    if total.kind == "result":
        return say("context_results_of", name=total.name, count=total.items)
    if total.kind == "tools" and total.name:
        return say("context_tools_of", name=total.name, count=total.items)
    kind = say(f"context_kind_{total.kind}")
    return (
        say("context_counted", kind=kind, count=total.items)
        if total.kind not in ("system", "environment", "skills", "summary", "unseen")
        else kind
    )


def _pruned_note(total: Total) -> str:
    gone = total.whole_tokens - total.tokens
    return say("context_pruned_part", tokens=f"{gone:,}") if gone > 0 else ""


# --- the table


class _Row(msgspec.Struct, frozen=True):
    seqs: tuple[int, int]
    timestamp_ms: int
    tokens: int
    what: str
    item: PlanItem
    """The first item of the row."""
    about: str
    whole_tokens: int = 0


def _items(page: Page, plan: Plan, now_ms: int, everything: bool) -> None:
    rows = list(map(_row, plan.items)) if everything else list(_group_rows(plan.items))
    left = 0 if everything else max(len(rows) - FIRST_ROWS - LAST_ROWS - 1, 0)
    shown: Sequence[_Row | None] = rows if not left else [*rows[:FIRST_ROWS], None, *rows[-LAST_ROWS - 1 :]]
    cells: list[list[Piece]] = [[say(f"context_{name}") for name in ("entry", "age", "tokens", "what")] + [""]]
    gap: list[Piece] = ["", "", "", "", (say("context_more", count=left), "dim")]
    cells += [gap if row is None else _cells(row, now_ms) for row in shown]
    table(page, cells, right=(0, 1, 2))


def _row(item: PlanItem) -> _Row:
    about = say("context_unseen") if item.kind == "unseen" else item.about
    if item.name and item.kind in ("result", "memory", "tools"):
        about = say("context_named", name=item.name, text=about)
    what = say(f"context_one_{item.kind}")
    return _Row((item.seq, item.seq), item.timestamp_ms, item.tokens, what, item, about, item.whole_tokens)


def _group_rows(items: Sequence[PlanItem]) -> Iterator[_Row]:
    """One row for all tools, for an answer with its calls, and for items that left the view for the same reason."""
    for _, group in groupby(items, key=_group_key):
        found = list(group)
        first = _row(found[0])
        if len(found) == 1:
            yield first
            continue
        tokens, whole = sum(item.tokens for item in found), sum(item.whole_tokens for item in found)
        seqs = min(item.seq for item in found), max(item.seq for item in found)
        if found[0].kind == "tools":
            what, about = first.what, ", ".join(item.name for item in found)
        elif found[0].state in ("summarised", "dropped"):
            what, about = say("context_items", count=len(found)), first.about
        else:
            spoken = [item.about for item in found if item.kind != "thinking" and item.about]
            what, about = say("context_one_answer"), " · ".join(spoken)
        yield _Row(seqs, first.timestamp_ms, tokens, what, found[0], about, whole)


def _group_key(item: PlanItem) -> tuple[object, ...]:
    if item.state in ("summarised", "dropped"):
        return item.state, item.reason, item.by_seq
    if item.kind == "tools":
        return (item.kind,)
    if item.kind in ("thinking", "answer", "call"):
        return "answer", item.seq
    return item.kind, item.seq, item.call_id, item.name


def _cells(row: _Row, now_ms: int) -> list[Piece]:
    first, last = row.seqs
    entry = "" if not first else str(first) if first == last else f"{first}–{last}"
    left_out = row.item.state in ("summarised", "dropped", "waiting")
    style = "dim" if left_out else ""
    words = _state(row)
    about = row.about if not words else f"{words} · {row.about}" if row.about else words
    mark = "yellow" if row.item.state == "pruned" else "cyan" if row.item.goes else style
    when = age(now_ms - row.timestamp_ms) if row.timestamp_ms else ""
    return [(entry, style), (when, "dim"), (f"{row.tokens:,}" if not left_out else "", style), (row.what, style), (about, mark)]


def _state(row: _Row) -> str:
    item = row.item
    if item.goes:
        return say("context_goes")
    if not item.reason:
        return say("context_state_dropped") if item.state == "dropped" else marks_of(item)
    detail = say("context_detail", text=fit(item.detail, 40)) if item.detail else ""
    words = say(f"context_state_{item.reason}", by=item.by_seq, whole=f"{row.whole_tokens:,}", detail=detail)
    return words + _only_for(item.window)


def marks_of(item: PlanItem) -> str:
    """The marks behind an item: kept by the user, and whether its file was read or edited since."""
    marks = [say("context_held")] if item.held else []
    if item.since and item.state in ("kept", "pruned"):
        marks.append(say(f"context_since_{item.since}"))
    return ", ".join(marks)


# --- facts


def _facts(page: Page, plan: Plan, now_ms: int, model: str) -> None:
    facts = {
        "pruned": [_savings(plan), *_prunings(plan, now_ms)],
        "next": [_next(plan)],
        **({"waiting": list(_waiting(plan, plan.next.waiting, now_ms))} if plan.next.waiting is not None else {}),
        **({"clock": [fault]} if (fault := clock_fault(now_ms, max((item.timestamp_ms for item in plan.items), default=0))) else {}),
        "estimate": [_estimate(plan)],
        "cache": [_cache(plan, now_ms)],
        "cost": [_cost(plan, model)],
    }
    for name, texts in facts.items():
        page.fact(say(f"context_fact_{name}"), FACT_COLUMNS, *texts)


def _savings(plan: Plan) -> str:
    savings = plan.savings
    if not savings.prunings:
        return say("context_pruned_none")
    words = say("context_pruned_all", results=savings.results, tokens=savings.tokens, not_sent=f"{savings.not_sent_tokens:,}")
    return words + (say("context_premium", tokens=f"{savings.premium_tokens:,}") if savings.premium_tokens else "")


def _prunings(plan: Plan, now_ms: int) -> Iterator[str]:
    for pruning in plan.savings.prunings[-5:]:
        yield say(
            "context_pruning",
            seq=pruning.seq,
            age=age(now_ms - pruning.timestamp_ms),
            results=pruning.results,
            tokens=pruning.saved_tokens,
            why=reason_words(pruning.reason),
        ) + _only_for(pruning.window)


def _only_for(window: int) -> str:
    return say("context_only_for", window=f"{window:,}") if window else ""


def _next(plan: Plan) -> str:
    after = plan.next
    words = say("context_next_nothing")
    if after.prune:
        words = say("context_next_prune", results=after.prune, tokens=after.saved_tokens, why=reason_words(after.reason))
    return words + (say("context_next_compress") if after.compress else "")


def _waiting(plan: Plan, waiting: Waiting, now_ms: int) -> Iterator[str]:
    """What is outdated and stays, until when, what it would save, and how it goes now."""
    limit = f"{waiting.share_limit:.0%}"
    saves = say("context_waits_saves", usd=dollars(plan.costs.waiting_usd)) if plan.costs.waiting_usd else ""
    cost = say("context_waits_cost", tokens=waiting.premium_tokens) if waiting.premium_tokens else ""
    yield say("context_waits", results=waiting.results, tokens=waiting.tokens, percent=_percent(waiting.share)) + saves + cost
    until: list[str] = []
    if waiting.share > waiting.share_limit:
        until.append(say("context_waits_price", limit=limit))
    elif waiting.share_limit < 1:
        until.append(say("context_waits_share", limit=limit))
    until.append(say("context_waits_cold", age=age(max(waiting.until_ms - now_ms, 0))) if waiting.until_ms else say("context_waits_prompt"))
    if waiting.pressure_tokens:
        until.append(say("context_waits_pressure", tokens=waiting.pressure_tokens))
    yield say("context_waits_until", until=say("context_waits_or").join(until))
    yield say("context_waits_now")


def _estimate(plan: Plan) -> str:
    estimate = plan.estimate
    words = say("context_estimate", tokens=plan.tokens)
    if estimate.reported_tokens:
        words += say("context_counted_last", tokens=f"{estimate.reported_tokens:,}")
    if estimate.measured:
        median, worst = f"{estimate.median_error:.1%}", f"{estimate.worst_error:.1%}"
        words += say("context_error", count=estimate.measured, median=median, worst=worst)
    return words


def _cache(plan: Plan, now_ms: int) -> str:
    cache = plan.cache
    if not cache.last_ms:
        return say("context_cache_unused")
    since = age(now_ms - cache.last_ms)
    if cache.expected_tokens:
        share = cache.expected_tokens / (plan.tokens or 1)
        words = say("context_cache_warm", tokens=cache.expected_tokens, percent=_percent(share), age=since)
    elif cache.broken:
        words = say("context_cache_broken", why=reason_words(cache.broken))
    else:
        words = say("context_cache_cold", age=since)
    share = cache.reported_tokens / (cache.reported_of_tokens or 1)
    return words + say("context_cache_last", tokens=f"{cache.reported_tokens:,}", percent=_percent(share))


def _cost(plan: Plan, model: str) -> str:
    costs = plan.costs
    words = say("context_cost_unknown", model=model)
    if costs.next_input_usd is not None:
        words = say("context_cost_next", usd=dollars(costs.next_input_usd))
    if costs.spent_usd is not None and plan.usage.total_tokens:
        more = "context_cost_least" if plan.usage.incomplete else "context_cost_more"
        words += say("context_cost_spent" if costs.spent_is_whole else more, usd=dollars(costs.spent_usd))
    if plan.usage.total_tokens or plan.usage.incomplete:
        words += say("context_cost_tokens", spent=spent_words(plan.usage, None, estimated=False))
    return words


def reason_words(reason: str) -> str:
    """The sentence for a reason code of the record; any other text is returned unchanged."""
    return say(f"context_why_{reason}") if lookup(f"context_why_{reason}") is not None else reason


def dollars(amount: float) -> str:
    if 0 < amount < 0.0001:
        return "< $0.0001"
    return f"${amount:.2f}" if amount >= 10 else f"${amount:.4f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.0995 or not share else f"{100 * share:.1f}%"
