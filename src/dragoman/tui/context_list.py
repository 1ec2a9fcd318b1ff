"""`/context`: every item of the next request, with its size and what became of it; each can be read, dropped or kept from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

from dragoman.base.clock import now_ms
from dragoman.base.text import one_line
from dragoman.context.plan_items import Kind, PlanItem
from dragoman.conversation.pages.context_page import marks_of
from dragoman.conversation.pages.session_list import age
from dragoman.tui.calls import Folded
from dragoman.tui.line import Line, Span, line
from dragoman.tui.overlay import Viewer
from dragoman.tui.picker import Picker, PickerItem
from dragoman.values.errors import DragomanError
from dragoman.values.messages import Text
from dragoman.values.record import Said
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.tui.talk import LiveTalk
    from dragoman.values.usage import Prices

MILLION = 1_000_000
_BAR_COLUMNS = 40
_KINDS = get_args(Kind)
_MOST_KINDS = 4
_TOOLS = "tools"
Order = Literal["size", "time", "kind"]
_ORDERS: tuple[Order, ...] = ("size", "time", "kind")


def show_context(conversation: LiveTalk) -> None:
    _ContextList(conversation).open()


class _ContextList:
    def __init__(self, conversation: LiveTalk) -> None:
        self._conversation = conversation
        self._order: Order = "size"
        self._picker = Picker(
            "",
            (),
            self._read,
            keys=say("conversation.context_keys"),
            actions={
                "ctrl-x": self._drop,
                "ctrl-k": self._keep,
                "tab": self._reorder,
                "ctrl-s": lambda _: self._print("simulate"),
                "ctrl-r": lambda _: self._print("--request"),
                "ctrl-e": self._compress,
            },
            always=("ctrl-s", "ctrl-r", "ctrl-e"),
        )

    def open(self) -> None:
        self._refresh()
        self._conversation.canvas.open(self._picker)

    def _refresh(self) -> None:
        plan = self._plan = self._conversation.agent.plan()
        items = [(number, item) for number, item in enumerate(plan.items) if item.tokens and item.kind != "tools"]
        if self._order == "kind":
            items.sort(key=lambda each: (_KINDS.index(each[1].kind), each[1].name, -_weight(each[1])))
        elif self._order == "size":
            items.sort(key=lambda each: -_weight(each[1]))
        now = now_ms()
        called = {item.call_id: item.about for item in plan.items if item.kind == "call"}
        prices = self._conversation.agent.provider.profile(self._conversation.agent.model).prices
        self._picker.set_title(_title(plan, now), _head(plan))
        rows = [_row(plan, item, number, now, prices, called.get(item.call_id, "")) for number, item in items]
        self._picker.set_choices([*rows, *_tools_row(plan)])

    def _reorder(self, key: str) -> bool:
        self._order = _ORDERS[(_ORDERS.index(self._order) + 1) % len(_ORDERS)]
        self._refresh()
        return True

    def _item(self, key: str) -> PlanItem:
        if key == _TOOLS:
            return next(item for item in self._plan.items if item.kind == "tools")
        return self._plan.items[int(key)]

    # --- the whole request

    def _print(self, words: str) -> bool:
        """What `dragoman context` says of it, to be read; then the list comes back."""
        from dragoman.conversation.pages.context_slash import context
        from dragoman.conversation.subcommand import Subcommand, run_subcommand

        canvas = self._conversation.canvas
        try:
            told = context(self._conversation, words, canvas.columns - 1)
            printed = run_subcommand(*told) if isinstance(told, Subcommand) else told
        except DragomanError as error:
            self._picker.hint = str(error)
            return True
        text = "\n".join((*printed.notices, printed.text)) if printed is not None else ""
        canvas.open(Viewer([Folded(f"dragoman context {words}", text.rstrip("\n"))]), over=True)
        return True

    def _compress(self, _: str) -> bool:
        from dragoman.conversation.pages.context_slash import compress

        self._conversation.start(compress(self._conversation, ""))
        return False

    # --- one item

    def _read(self, key: str) -> bool:
        if key == _TOOLS:
            self._conversation.canvas.open(Viewer([Folded(say("context_kind_tools"), _tools_text(self._plan))]), over=True)
            return True
        item = self._item(key)
        self._conversation.canvas.open(Viewer([Folded(_what(item), _text_of(self._conversation, item))]), over=True)
        return True

    def _drop(self, key: str) -> bool:
        """Let the selected result go; if it is gone already, bring it back."""
        item, agent = self._item(key), self._conversation.agent
        return self._choose(lambda: agent.undo_choice(item.seq) if item.state == "pruned" else agent.drop(item.seq))

    def _keep(self, key: str) -> bool:
        """Keep the selected result; if it is kept already, take that back."""
        item, agent = self._item(key), self._conversation.agent
        return self._choose(lambda: agent.undo_choice(item.seq) if item.held else agent.keep(item.seq))

    def _choose(self, choice: Callable[[], int]) -> bool:
        try:
            choice()
        except DragomanError as error:
            self._picker.hint = str(error)
            return True
        self._refresh()
        self._conversation.note_context()
        return True


# --- what is shown


def _weight(item: PlanItem) -> int:
    """Its size, also where a line stands in its place."""
    return max(item.tokens, item.whole_tokens if item.state == "pruned" else 0)


def _title(plan: Plan, now: int) -> str:
    words = [say("conversation.context_title", tokens=plan.tokens)]
    if plan.window:
        words.append(say("conversation.of_window", percent=f"{100 * plan.tokens / plan.window:.1f}", window=plan.window))
    if plan.costs.next_input_usd is not None:
        words.append(f"${plan.costs.next_input_usd:.4f}")
    if plan.cache.last_ms:
        cold = f"{say('tui.cache_cold')}, {age(now - plan.cache.last_ms)}"
        words.append(say("tui.cache_warm") if plan.cache.warm else cold)
    return " · ".join(words)


def _head(plan: Plan) -> list[Line]:
    """How full the window is, and of what."""
    kinds: dict[tuple[Kind, str], list[int]] = {}
    for item in plan.items:
        if item.tokens:
            kinds.setdefault((item.kind, item.name if item.kind == "result" else ""), []).append(item.tokens)
    largest = sorted(kinds.items(), key=lambda each: -sum(each[1]))[:_MOST_KINDS]
    words = " · ".join(f"{_kind_words(*kind, len(sizes))} {100 * sum(sizes) / max(plan.tokens, 1):.0f}%" for kind, sizes in largest)
    if not plan.window:
        return [line(words, "dim")]
    full = min(round(_BAR_COLUMNS * plan.tokens / plan.window), _BAR_COLUMNS)
    style = "warn" if plan.tokens > plan.window * 0.7 else "good"
    return [(Span("█" * full, style), Span("░" * (_BAR_COLUMNS - full), "dim")), line(words, "dim")]


def _kind_words(kind: Kind, name: str, count: int) -> str:
    return say("context_results_of", name=name, count=count) if name else say(f"context_kind_{kind}")


def _row(plan: Plan, item: PlanItem, number: int, now: int, prices: Prices | None, called: str) -> PickerItem:
    """A result is named by its call, and found by what it says, too."""
    when = age(now - item.timestamp_ms) if item.timestamp_ms else ""
    share = f"{100 * item.tokens / max(plan.tokens, 1):.1f}%"
    entry = f"[{item.seq}]" if item.seq else ""
    about = f"{_what(item)} {one_line(item.about, 200)}".strip()
    if item.kind == "call":
        about = f"{say('context_one_call')} {one_line(item.about, 200)}"
    elif item.kind == "result" and called:
        about, called = one_line(called, 200), item.about
    cells = (about, entry, f"{item.tokens:,}", share, when, _state(item))
    return PickerItem(str(number), cells, called, _advice(plan, item, number, prices))


def _tools_row(plan: Plan) -> list[PickerItem]:
    """The definitions of the tools, on one row: they come and go together."""
    tools = [item for item in plan.items if item.kind == "tools" and item.tokens]
    tokens = sum(item.tokens for item in tools)
    cells = (f"{say('context_kind_tools')} ({len(tools)})", "", f"{tokens:,}", f"{100 * tokens / max(plan.tokens, 1):.1f}%", "", "")
    return [PickerItem(_TOOLS, cells)] if tools else []


def _tools_text(plan: Plan) -> str:
    return "\n".join(f"{item.tokens:>7,}  {item.name}: {item.about}" for item in plan.items if item.kind == "tools")


def _state(item: PlanItem) -> str:
    if item.state == "pruned":
        return say("conversation.dropped", tokens=item.whole_tokens)
    return say("context_goes") if item.goes else marks_of(item)


def _advice(plan: Plan, item: PlanItem, number: int, prices: Prices | None) -> str:
    """What letting it go would cost once, and save with each request."""
    if item.kind != "result" or item.state != "kept":
        return ""
    if prices is None:
        return say("conversation.saves_tokens", tokens=item.tokens)
    read = prices.cache_read if prices.cache_read is not None else prices.input
    if not plan.cache.warm:
        return say("conversation.saves_now", tokens=item.tokens, usd=_usd(item.tokens * prices.input))
    after = sum(each.tokens for each in plan.items[number + 1 :])
    write = prices.cache_write if prices.cache_write is not None else prices.input
    once, each = after * max(write - read, 0), item.tokens * read
    return say("conversation.saves_later", tokens=item.tokens, once=_usd(once), each=_usd(each))


def _usd(millionths: float) -> str:
    return f"{millionths / MILLION:.4f}"


def _what(item: PlanItem) -> str:
    return item.name or say(f"context_one_{item.kind}")


def _text_of(conversation: LiveTalk, item: PlanItem) -> str:
    """The whole of it, also where a line stands in its place."""
    history = conversation.agent.history
    if item.call_id and item.kind == "result":
        for outcome in history.view.outcomes:
            if outcome.result.call_id == item.call_id:
                return outcome.result.text
    if item.kind == "system":
        return history.view.system
    entry = next((entry for entry in history.entries if entry.seq == item.seq), None)
    if not isinstance(entry, Said) or not entry.message.text:
        return item.about
    if item.kind == "attached":
        parts = [part.text for part in entry.message.parts if isinstance(part, Text) and part.attached and part.attached.name == item.name]
        return "\n".join(parts).strip("\n") or item.about
    return entry.message.said if item.kind == "prompt" else entry.message.text
