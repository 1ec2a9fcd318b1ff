"""The lists of a conversation: models with what a change costs, and prompts to go back to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.app.setup import catalog_of
from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.base.words import say
from dragoman.cli.session_list import age
from dragoman.tui.picker import Picker, PickerItem
from dragoman.values.record import Said

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.tui.talk import LiveTalk

MILLION = 1_000_000


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
            items.append(PickerItem(full, (full, tokens_in_short(profile.context_window), price_words(profile), key, note), note=note))
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
