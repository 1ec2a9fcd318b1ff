"""What stands at the top of a conversation: who and where, notices, and of a resumed one its end."""

from __future__ import annotations

import os
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
from dragoman.values.record import CommandOutput, Entry
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.types import ViewEvent
    from dragoman.tui.talk import LiveTalk

RECALLED_LINES = 60
"""How many lines of a resumed conversation are shown."""


class Before(msgspec.Struct, frozen=True):
    """What there was in a resumed conversation."""

    runs: int = 0
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
    folder = os.path.realpath(conversation.setup.workspace)
    lines = lines_before(blocks, canvas.columns, folder)
    if len(lines) > RECALLED_LINES:
        screen.message(say("recalled_end", count=len(lines) - RECALLED_LINES, id=conversation.store.short_id(agent.session_id)), "dim")
    canvas.commit(lines[-RECALLED_LINES:])
    calls = [block for block in blocks if block.kind == "call"][-MOST_FOLDED:]
    return Before(
        sum(block.kind == "prompt" for block in blocks),
        tuple(Folded(call_in_words(_call_of(block), folder), call=_cell_of(block, folder)) for block in calls),
        _last_answer(blocks),
    )


def blocks_before(entries: Iterable[Entry]) -> list[ViewEvent]:
    """What is shown of a record, without what was taken back."""
    from dragoman.conversation.events import read_events

    return [block for block in read_events(entries) if not block.data.get("taken_back")]


def lines_before(blocks: Iterable[ViewEvent], columns: int, folder: str = "") -> list[Line]:
    """Prompts, answers and calls. Notes of the program and what describes the surroundings are left out."""
    lines: list[Line] = []
    for block in blocks:
        rows = _lines_of(block, columns, folder)
        if block.kind == "prompt" and lines and lines[-1]:
            lines.append(EMPTY)
        lines += rows
    return lines


def _lines_of(block: ViewEvent, columns: int, folder: str) -> list[Line]:
    match block.kind:
        case "prompt":
            return [*cells.prompt(block.text.strip("\n"), columns), EMPTY]
        case "text" if text := block.text.strip("\n"):
            return [*render(text, columns), EMPTY]
        case "call":
            asked = wrap(line(visible(call_in_words(_call_of(block)))), columns) if block.data["name"] == "ask_user" else []
            return [*asked, *folded_lines(_cell_of(block, folder), columns)[:1]]
        case _:
            return []


def _call_of(block: ViewEvent) -> ToolCall:
    return ToolCall(block.data["call_id"], block.data["name"], block.data["arguments"])


def _cell_of(block: ViewEvent, folder: str) -> CallCell:
    states: dict[str, State] = {"finished": "done", "refused": "refused", "cancelled": "cancelled"}
    data = block.data
    command = msgspec.convert(data["command"], CommandOutput) if "command" in data else None
    state, display, output = states.get(data["outcome"], "failed"), data.get("display", ""), data.get("output", "")
    cell = recall(_call_of(block), state, display, output, command=command, outside=data["outside"])
    return msgspec.structs.replace(cell, folder=folder)


def _last_answer(blocks: Iterable[ViewEvent]) -> str:
    texts: dict[str, str] = {}
    for block in blocks:
        if block.kind == "text":
            texts[block.data["answer"]] = texts.get(block.data["answer"], "") + block.text
    return next((text for each in reversed(texts.values()) if (text := each.strip("\n"))), "")
