"""What stands at the top of a conversation: who and where, notices, and of a resumed one its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman import __version__
from dragoman.base.places import shorten_home
from dragoman.tui import cells
from dragoman.tui.call_cells import CallCell, State, folded_lines, recall
from dragoman.tui.calls import MOST_FOLDED, Folded
from dragoman.tui.line import EMPTY, Line, line, visible
from dragoman.tui.markdown import render
from dragoman.tui.wrap import wrap
from dragoman.values.messages import ToolCall
from dragoman.values.parts import call_in_words
from dragoman.values.record import CommandOutput, Entry, paid_usage
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.types import ViewEvent
    from dragoman.loop.agent import Agent
    from dragoman.loop.result import Result
    from dragoman.loop.searching import WebSearchResult
    from dragoman.tui.talk import LiveTalk

RECALLED_LINES = 60
"""How many lines of a resumed conversation are shown."""


class SpentSoFar(msgspec.Struct, frozen=True):
    """What a conversation has cost so far."""

    usage: Usage = Usage()
    cost_usd: float | None = None
    is_whole: bool = True
    """Whether the price of every run is known."""

    def plus(self, result: Result | WebSearchResult) -> SpentSoFar:
        cost = self.cost_usd
        if result.cost_usd is not None and result.requests:
            cost = (cost or 0.0) + result.cost_usd
        return SpentSoFar(self.usage + result.usage, cost, self.is_whole and result.cost_usd is not None)


def spent_before(agent: Agent) -> SpentSoFar:
    """What a resumed conversation has cost so far, each request at the prices of its model, if known."""
    paid_for = [entry for entry in agent.history.entries if any(paid_usage([entry]))]
    known = [cost for entry in paid_for if (cost := agent.cost_usd([entry])) is not None]
    return SpentSoFar(agent.history.usage, sum(known) if known else None, len(known) == len(paid_for))


class Before(msgspec.Struct, frozen=True):
    """What there was in a resumed conversation."""

    runs: int = 0
    spent: SpentSoFar = SpentSoFar()
    folded: tuple[Folded, ...] = ()
    """Its last calls, for Ctrl-O."""
    last_answer: str = ""


def greet(conversation: LiveTalk, notices: Sequence[str]) -> Before:
    """Returns what there was before."""
    screen = conversation.screen
    where = shorten_home(conversation.setup.workspace)
    screen.message(say("conversation.banner", version=__version__, model=conversation.model, workspace=where), "bold")
    if conversation.setup.config.sandbox.level == "external":
        screen.message(say("sandbox_is", words=conversation.agent.approvals.sandbox), "dim")
    for notice in notices:
        screen.message(say("banner_notice", text=notice), "yellow")
    before = Before()
    if conversation.setup.options.resume is not None:
        conversation.canvas.part()
        before = _show_earlier(conversation)
    conversation.canvas.part()
    return before


def _show_earlier(conversation: LiveTalk) -> Before:
    """The end of the resumed conversation, as it looked."""
    screen, agent, canvas = conversation.screen, conversation.agent, conversation.canvas
    blocks = blocks_before(agent.history.entries)
    lines = lines_before(blocks, canvas.columns)
    if len(lines) > RECALLED_LINES:
        screen.message(say("recalled_end", count=len(lines) - RECALLED_LINES, id=conversation.store.short_id(agent.session_id)), "dim")
    canvas.commit(lines[-RECALLED_LINES:])
    calls = [block for block in blocks if block.kind == "call"][-MOST_FOLDED:]
    return Before(
        sum(block.kind == "prompt" for block in blocks),
        spent_before(agent),
        tuple(Folded(call_in_words(_call_of(block)), call=_cell_of(block)) for block in calls),
        _last_answer(blocks),
    )


def blocks_before(entries: Iterable[Entry]) -> list[ViewEvent]:
    """What is shown of a record, without what was taken back."""
    from dragoman.conversation.events import read_events

    return [block for block in read_events(entries) if not block.data.get("taken_back")]


def lines_before(blocks: Iterable[ViewEvent], columns: int) -> list[Line]:
    """Prompts, answers and calls. Notes of the program and what describes the surroundings are left out."""
    lines: list[Line] = []
    for block in blocks:
        rows = _lines_of(block, columns)
        if block.kind == "prompt" and lines and lines[-1]:
            lines.append(EMPTY)
        lines += rows
    return lines


def _lines_of(block: ViewEvent, columns: int) -> list[Line]:
    match block.kind:
        case "prompt":
            return [*cells.prompt(block.text.strip("\n"), columns), EMPTY]
        case "text" if text := block.text.strip("\n"):
            return [*render(text, columns), EMPTY]
        case "call":
            asked = wrap(line(visible(call_in_words(_call_of(block)))), columns) if block.data["name"] == "ask_user" else []
            return [*asked, *folded_lines(_cell_of(block), columns)[:1]]
        case _:
            return []


def _call_of(block: ViewEvent) -> ToolCall:
    return ToolCall(block.data["call_id"], block.data["name"], block.data["arguments"])


def _cell_of(block: ViewEvent) -> CallCell:
    states: dict[str, State] = {"finished": "done", "refused": "refused", "cancelled": "cancelled"}
    data = block.data
    command = msgspec.convert(data["command"], CommandOutput) if "command" in data else None
    state, display, output = states.get(data["outcome"], "failed"), data.get("display", ""), data.get("output", "")
    return recall(_call_of(block), state, display, output, command=command, outside=data["outside"])


def _last_answer(blocks: Iterable[ViewEvent]) -> str:
    texts: dict[str, str] = {}
    for block in blocks:
        if block.kind == "text":
            texts[block.data["answer"]] = texts.get(block.data["answer"], "") + block.text
    return next((text for each in reversed(texts.values()) if (text := each.strip("\n"))), "")
