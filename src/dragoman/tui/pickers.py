"""The lists of a conversation: sessions to go on with, models with what a change costs, prompts to go back to, what the model sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.app.setup import catalog_of
from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.cli.session_list import age
from dragoman.sessions.projects import session_id_of
from dragoman.tui.calls import Folded
from dragoman.tui.overlay import Viewer
from dragoman.tui.picker import Picker, PickerItem
from dragoman.values.messages import ToolResult
from dragoman.values.record import Said

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.context.plan_items import PlanItem
    from dragoman.sessions.summary import Summary
    from dragoman.tui.talk import LiveTalk

MILLION = 1_000_000


# --- sessions


def pick_session(conversation: LiveTalk) -> None:
    is_everywhere = False

    def items() -> list[PickerItem]:
        found = conversation.store.list(None if is_everywhere else conversation.setup.workspace)
        now = now_ms()
        return [_session_item(each, now, is_everywhere) for each in found if each.session_id != conversation.agent.session_id]

    def switch(_: str) -> bool:
        nonlocal is_everywhere
        is_everywhere = not is_everywhere
        picker.set_choices(items())
        return True

    def fork(session_id: str) -> None:
        path = conversation.store.fork(conversation.store.find(session_id, conversation.setup.workspace).path)
        open_session(conversation, session_id_of(path))

    picker = Picker(
        say("conversation.sessions_title"),
        items(),
        lambda session_id: open_session(conversation, session_id),
        keys=say("conversation.sessions_keys"),
        actions={"tab": switch, "ctrl-f": fork},
        empty=say("conversation.sessions_none"),
    )
    conversation.canvas.open(picker)


def _session_item(found: Summary, now: int, is_everywhere: bool) -> PickerItem:
    counted = say("conversation.messages", count=found.messages)
    where = (found.workspace,) if is_everywhere else ()
    return PickerItem(
        found.session_id,
        (one_line(found.title or found.first_prompt, 200), age(now - found.updated_ms), counted, found.model.rpartition("/")[2], *where),
        f"{found.session_id} {found.first_prompt} {found.imported_from}",
        one_line(found.first_prompt, 200),
    )


def open_session(conversation: LiveTalk, session_id: str) -> None:
    options = msgspec.structs.replace(conversation.setup.options, resume=session_id, model="")
    conversation.start(conversation.open_session(msgspec.structs.replace(conversation.setup, options=options)))


# --- models


def pick_model(conversation: LiveTalk) -> None:
    """Those that can be used first; each with its window, its price, and what the change itself costs."""
    from dragoman.cli.models import can_be_used, price_words, tokens_in_short

    catalog = catalog_of(conversation.setup)
    plan = conversation.agent.plan() if conversation.agent.history.entries else None
    rows = sorted(catalog.deployments.values(), key=lambda row: not can_be_used(row, conversation.setup, None))
    items: list[PickerItem] = []
    for row in rows:
        usable = can_be_used(row, conversation.setup, None)
        for name, profile in row.models.items():
            full = f"{row.name}/{name}"
            key = "✓" if usable else say("conversation.no_key")
            cost = _change_words(plan, full, profile.prices.input if profile.prices else None, profile.context_window)
            note = say("conversation.model_now") if full == conversation.model else cost
            items.append(PickerItem(full, (full, tokens_in_short(profile.context_window), price_words(profile), key, note)))
    items.sort(key=lambda item: item.key != conversation.model)
    conversation.canvas.open(Picker(say("conversation.models_title"), items, conversation.change_model, yielding=4))


def _change_words(plan: Plan | None, full: str, price: float | None, window: int) -> str:
    """What the next request costs because the other model has nothing of it in its cache."""
    if plan is None or not plan.tokens:
        return ""
    if plan.tokens > window:
        return say("conversation.does_not_fit", tokens=plan.tokens)
    return say("conversation.next_costs", usd=f"{plan.tokens * price / MILLION:.3f}") if price is not None else ""


# --- going back


def pick_prompt(conversation: LiveTalk) -> None:
    """Prompts of this conversation, the last first: it goes on from before the one that is taken, which comes back to be edited."""
    entries = conversation.agent.history.entries
    seen = {item.seq for item in conversation.agent.plan().items if item.state == "kept"} if entries else set()
    said = [entry for entry in entries if isinstance(entry, Said) and entry.by == "person" and entry.seq in seen]
    now = now_ms()
    items = [PickerItem(str(each.seq), (one_line(each.message.text, 200), age(now - each.timestamp_ms))) for each in reversed(said)]

    def go_back(key: str, *, files: bool) -> None:
        at = next(number for number, entry in enumerate(entries) if entry.seq == int(key))
        prompt = entries[at]
        changed = conversation.agent.rewind(entries[at - 1].seq, files=files)
        for path in changed:
            conversation.screen.message(say("undo_restored", path=path))
        conversation.screen.message(say("conversation.rewound"), "yellow")
        if isinstance(prompt, Said):
            conversation.write_prompt(prompt.message.text)

    conversation.canvas.open(
        Picker(
            say("conversation.rewind_title"),
            items,
            lambda key: go_back(key, files=False),
            keys=say("conversation.rewind_keys"),
            actions={"ctrl-f": lambda key: go_back(key, files=True)},
            empty=say("conversation.rewind_none"),
        )
    )


# --- what the model sees


def show_context(conversation: LiveTalk) -> None:
    """Every item of the next request, the largest first. Enter reads it, Ctrl-X lets a result go."""

    def items() -> list[PickerItem]:
        plan = conversation.agent.plan()
        now = now_ms()
        kept = sorted((item for item in plan.items if item.tokens), key=lambda item: -item.tokens)
        return [_context_item(item, number, plan.tokens, now) for number, item in enumerate(kept)]

    def find(key: str) -> PlanItem | None:
        seq, _, call_id = key.split(" ", 2)
        return next((item for item in conversation.agent.plan().items if str(item.seq) == seq and item.call_id == call_id), None)

    def read(key: str) -> None:
        item = find(key)
        if item is not None:
            conversation.canvas.open(Viewer([Folded(_what(item), _text_of(conversation, item))]))

    def let_go(key: str) -> bool:
        item = find(key)
        if item is not None and item.kind == "result" and item.state == "kept":
            conversation.agent.history.prune([item.call_id], item.tokens, "asked")
            picker.set_choices(items())
        return True

    plan = conversation.agent.plan()
    share = say("conversation.of_window", percent=f"{100 * plan.tokens / plan.window:.1f}", window=plan.window) if plan.window else ""
    picker = Picker(
        say("conversation.context_title", tokens=plan.tokens, share=share),
        items(),
        read,
        keys=say("conversation.context_keys"),
        actions={"ctrl-x": let_go},
    )
    conversation.canvas.open(picker)


def _context_item(item: PlanItem, number: int, total: int, now: int) -> PickerItem:
    when = age(now - item.timestamp_ms) if item.timestamp_ms else ""
    share = f"{100 * item.tokens / max(total, 1):.1f}%"
    state = say("conversation.let_go") if item.state == "pruned" else say("context_goes") if item.goes else ""
    return PickerItem(
        f"{item.seq} {number} {item.call_id}", (f"{_what(item)} {item.about}".strip(), f"{item.tokens:,}", share, when, state)
    )


def _what(item: PlanItem) -> str:
    return say(f"context_one_{item.kind}") if not item.name else f"{item.name}"


def _text_of(conversation: LiveTalk, item: PlanItem) -> str:
    entry = next((entry for entry in conversation.agent.history.entries if entry.seq == item.seq), None)
    if item.call_id:
        for message in conversation.agent.history.view.messages:
            for part in message.parts:
                if isinstance(part, ToolResult) and part.call_id == item.call_id:
                    return part.text
    return entry.message.text if isinstance(entry, Said) else item.about
