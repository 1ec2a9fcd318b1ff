"""What stands at the top of a conversation: who and where, notices, and of a resumed one its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman import __version__
from dragoman.base.places import shorten_home
from dragoman.base.words import say
from dragoman.tui import cells
from dragoman.tui.call_cells import CallCell, State, folded_lines, recall
from dragoman.tui.calls import MOST_FOLDED, Folded
from dragoman.tui.line import EMPTY, Line, line, visible
from dragoman.tui.markdown import render
from dragoman.tui.wrap import wrap
from dragoman.values.messages import Part, Text
from dragoman.values.parts import call_in_words
from dragoman.values.record import paid_usage
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.loop.result import Result
    from dragoman.loop.searching import WebSearchResult
    from dragoman.sessions.transcript import Step, ToolCallStep
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
    from dragoman.sessions.transcript import Prompt, Reply, ToolCallStep, read_transcript

    screen, agent, canvas = conversation.screen, conversation.agent, conversation.canvas
    steps = [step for step in read_transcript(agent.history.entries).steps if not step.taken_back]
    lines: list[Line] = []
    for step in steps:
        rows = _lines_of(step, canvas.columns)
        if isinstance(step, Prompt) and rows and lines and lines[-1]:
            lines.append(EMPTY)
        lines += rows
    if len(lines) > RECALLED_LINES:
        screen.message(say("recalled_end", count=len(lines) - RECALLED_LINES, id=conversation.store.short_id(agent.session_id)), "dim")
    canvas.commit(lines[-RECALLED_LINES:])
    calls = [step for step in steps if isinstance(step, ToolCallStep)][-MOST_FOLDED:]
    return Before(
        sum(isinstance(step, Prompt) and not (step.is_setup or step.is_note) for step in steps),
        spent_before(agent),
        tuple(Folded(call_in_words(step.call), call=_cell_of(step)) for step in calls),
        next((text for step in reversed(steps) if isinstance(step, Reply) and (text := _text_of(step.parts))), ""),
    )


def _lines_of(step: Step, columns: int) -> list[Line]:
    """Prompts, answers and calls. Notes of the program and what describes the surroundings are left out."""
    from dragoman.sessions.transcript import Prompt, Reply, ToolCallStep

    match step:
        case Prompt(is_setup=False, is_note=False):
            return [*cells.prompt(_text_of(step.parts), columns), EMPTY]
        case Reply() if text := _text_of(step.parts):
            return [*render(text, columns), EMPTY]
        case ToolCallStep():
            asked = wrap(line(visible(call_in_words(step.call))), columns) if step.call.name == "ask_user" else []
            return [*asked, *folded_lines(_cell_of(step), columns)[:1]]
        case _:
            return []


def _cell_of(step: ToolCallStep) -> CallCell:
    states: dict[str, State] = {"finished": "done", "refused": "refused", "cancelled": "cancelled"}
    return recall(step.call, states.get(step.outcome, "failed"), step.display, step.output, command=step.command, outside=step.outside)


def _text_of(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text)).strip("\n")
