"""The lists of a conversation: models, with the cost of switching, and prompts to go back to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.app.setup import catalog_of
from dragoman.base.clock import now_ms
from dragoman.base.places import path_inside
from dragoman.base.text import one_line
from dragoman.conversation.pages.session_list import age
from dragoman.tui.picker import Picker, PickerItem
from dragoman.values.errors import DragomanError
from dragoman.values.record import Said
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.tui.talk import LiveTalk

MILLION = 1_000_000
_MOST_NAMED = 8
"""So many of the prompts that a rewind took back are named."""


# --- models


def pick_model(conversation: LiveTalk, take: Callable[[str], None] | None = None) -> None:
    """Those of the same service first, then others that can be used; each with its window, its price, and what the change itself costs.
    `take`: what is done with the one that is taken, if it is more than a change."""
    from dragoman.conversation.pages.models import can_be_used, price_words, tokens_in_short

    catalog = catalog_of(conversation.setup)
    plan = conversation.agent.plan() if conversation.agent.history.entries else None
    rows = sorted(catalog.deployments.values(), key=lambda row: not can_be_used(row, conversation.setup, None))
    items: list[PickerItem] = []
    for row in rows:
        usable = can_be_used(row, conversation.setup, None)
        for name, profile in row.models.items():
            full = f"{row.name}/{name}"
            key = "✓" if usable else say("conversation.no_key")
            cost, note = _change_words(plan, profile.prices.input if profile.prices else None, profile.context_window)
            if full == conversation.model:
                cost = note = say("conversation.model_now")
            items.append(PickerItem(full, (full, tokens_in_short(profile.context_window), price_words(profile), key, cost), note=note))
    service = conversation.model.partition("/")[0]
    items.sort(key=lambda item: (item.key != conversation.model, item.cells[3] != "✓" or item.key.partition("/")[0] != service))
    usable_items = [item for item in items if item.cells[3] == "✓"]
    is_short = False

    def change_scope(_: str) -> bool:
        nonlocal is_short
        is_short = not is_short
        picker.set_choices(usable_items if is_short else items)
        return True

    picker = Picker(
        _models_title(plan),
        items,
        take or conversation.change_model,
        keys=say("conversation.models_keys"),
        actions={"tab": change_scope},
        yielding=4,
        always=("tab",),
        is_numbered=True,
    )
    conversation.canvas.open(picker)


def _models_title(plan: Plan | None) -> str:
    if plan is None or not plan.tokens:
        return say("conversation.models_title")
    cached = round(100 * plan.cache.expected_tokens / plan.tokens)
    return say("conversation.models_title_sized", tokens=plan.tokens, percent=f"{cached}")


def _change_words(plan: Plan | None, price: float | None, window: int) -> tuple[str, str]:
    """What the next request costs because the other model has nothing of it in its cache: in short, and as a sentence."""
    if plan is None or not plan.tokens:
        return "", ""
    if plan.tokens > window:
        return say("conversation.too_long"), say("conversation.does_not_fit", tokens=plan.tokens)
    if price is None:
        return "", ""
    next_usd = plan.tokens * price / MILLION
    usd = f"{next_usd:.3f}" if next_usd >= 0.001 else f"{next_usd:.4f}"  # $0.000 would read as free
    return say("conversation.next_costs_short", usd=usd), say("conversation.next_costs", usd=usd)


# --- going back


def pick_prompt(conversation: LiveTalk) -> None:
    """Prompts of this conversation, the last first: it goes on from before the one that is taken, which comes back to be edited."""
    entries = conversation.agent.history.entries
    seen = {item.seq for item in conversation.agent.plan().items if item.state == "kept"} if entries else set()
    said = [entry for entry in entries if isinstance(entry, Said) and entry.by == "person" and entry.seq in seen]
    now = now_ms()
    items = [PickerItem(str(each.seq), (one_line(each.message.said, 200), age(now - each.timestamp_ms))) for each in reversed(said)]

    def go_back(key: str, *, files: bool) -> None:
        at = next(number for number, entry in enumerate(entries) if entry.seq == int(key))
        prompt = entries[at]
        undone = [each for each in said if each.seq >= prompt.seq]
        changed = conversation.agent.rewind(entries[at - 1].seq, files=files)
        for path in changed:
            conversation.screen.message(say("undo_restored", path=path_inside(path, conversation.setup.workspace)))
        conversation.screen.message(say("conversation.rewound_from", count=len(undone)), "yellow")
        for each in undone[:_MOST_NAMED]:
            conversation.screen.message(say("conversation.rewound_prompt", prompt=one_line(each.message.said, 200)), "dim")
        if len(undone) > _MOST_NAMED:
            conversation.screen.message(say("conversation.rewound_more", count=len(undone) - _MOST_NAMED), "dim")
        conversation.canvas.part()
        conversation.note_context()
        if isinstance(prompt, Said):
            conversation.write_prompt(prompt.message.said)

    def put_files_back(key: str) -> None:
        """The files alone: the conversation goes on."""
        at = next(number for number, entry in enumerate(entries) if entry.seq == int(key))
        try:
            changed = conversation.agent.restore_files(entries[at - 1].seq)
        except DragomanError as error:
            return conversation.screen.message(say("run_failed", message=error), "red")
        for path in changed:
            conversation.screen.message(say("undo_restored", path=path))
        return conversation.screen.message(say("conversation.files_back", count=len(changed)), "yellow")

    conversation.canvas.open(
        Picker(
            say("conversation.rewind_title"),
            items,
            lambda key: go_back(key, files=False),
            keys=say("conversation.rewind_keys"),
            actions={"ctrl-f": lambda key: go_back(key, files=True), "ctrl-o": put_files_back},
            empty=say("conversation.rewind_none"),
        )
    )
