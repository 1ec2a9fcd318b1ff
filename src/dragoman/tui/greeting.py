"""What stands at the top of a conversation: who and where, notices, and of a resumed one its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman import __version__
from dragoman.base.places import shorten_home
from dragoman.base.words import say
from dragoman.tui import cells
from dragoman.tui.call_cells import CallCell, State, folded_lines
from dragoman.tui.line import EMPTY, Line
from dragoman.tui.markdown import render
from dragoman.values.messages import Part, Text
from dragoman.values.record import paid_usage
from dragoman.values.usage import Usage

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.loop.result import Result
    from dragoman.sessions.transcript import Step
    from dragoman.tui.talk import LiveTalk

RECALLED_LINES = 60
"""How many lines of a resumed conversation are shown."""


class SpentSoFar(msgspec.Struct, frozen=True):
    """What a conversation has cost so far."""

    usage: Usage = Usage()
    cost_usd: float | None = None
    is_whole: bool = True
    """Whether the price of every run is known."""

    def plus(self, result: Result) -> SpentSoFar:
        cost = self.cost_usd
        if result.cost_usd is not None and result.requests:
            cost = (cost or 0.0) + result.cost_usd
        return SpentSoFar(self.usage + result.usage, cost, self.is_whole and result.cost_usd is not None)


def spent_before(agent: Agent) -> SpentSoFar:
    """What a resumed conversation has cost so far, each request at the prices of its model, if known."""
    paid_for = [entry for entry in agent.history.entries if any(paid_usage([entry]))]
    known = [cost for entry in paid_for if (cost := agent.cost_usd([entry])) is not None]
    return SpentSoFar(agent.history.usage, sum(known) if known else None, len(known) == len(paid_for))


def greet(conversation: LiveTalk, notices: Sequence[str]) -> tuple[int, SpentSoFar]:
    """Returns how many runs there were before, and what they cost."""
    screen = conversation.screen
    where = shorten_home(conversation.setup.workspace)
    screen.message(say("conversation.banner", version=__version__, model=conversation.model, workspace=where), "bold")
    for notice in notices:
        screen.message(say("banner_notice", text=notice), "yellow")
    runs, spent = 0, SpentSoFar()
    if conversation.setup.options.resume is not None:
        conversation.canvas.part()
        runs, spent = _show_earlier(conversation), spent_before(conversation.agent)
    conversation.canvas.part()
    return runs, spent


def _show_earlier(conversation: LiveTalk) -> int:
    """The end of the resumed conversation, as it looked."""
    from dragoman.sessions.transcript import Prompt, read_transcript

    screen, agent, canvas = conversation.screen, conversation.agent, conversation.canvas
    steps = [step for step in read_transcript(agent.history.entries).steps if not step.taken_back]
    lines = [line for step in steps for line in _lines_of(step, canvas.columns)]
    if len(lines) > RECALLED_LINES:
        screen.message(say("recalled_end", count=len(lines) - RECALLED_LINES, id=conversation.store.short_id(agent.session_id)), "dim")
    canvas.commit(lines[-RECALLED_LINES:])
    return sum(isinstance(step, Prompt) and not (step.is_setup or step.is_note) for step in steps)


def _lines_of(step: Step, columns: int) -> list[Line]:
    """Prompts, answers and calls. Notes of the program and what describes the surroundings are left out."""
    from dragoman.sessions.transcript import Prompt, Reply, ToolCallStep

    match step:
        case Prompt(is_setup=False, is_note=False):
            return [*cells.prompt(_text_of(step.parts), columns), EMPTY]
        case Reply() if text := _text_of(step.parts):
            return [*render(text, columns), EMPTY]
        case ToolCallStep():
            states: dict[str, State] = {"finished": "done", "refused": "refused", "cancelled": "cancelled"}
            cell = CallCell(step.call, states.get(step.outcome, "failed"), display=step.display)
            return folded_lines(cell, columns)[:1]
        case _:
            return []


def _text_of(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text)).strip("\n")
