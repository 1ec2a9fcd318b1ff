"""The model's task list in the live region while it works: the step it is at, and as many others as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.tools.todo import TodoItem, TodoList
from dragoman.tui.line import Line, Span, line, visible
from dragoman.tui.wrap import fit, spread
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent

SIGNS = {"pending": "☐ ", "in_progress": "▸ ", "completed": "☑ "}
_STYLES = {"pending": "dim", "in_progress": "accent", "completed": "dim"}


def items_of(agent: Agent) -> Sequence[TodoItem]:
    """The agent's task list; empty if it keeps none."""
    tool = agent.tools.get("todo")
    return tool.items if isinstance(tool, TodoList) else ()


def panel_lines(items: Sequence[TodoItem], columns: int, most: int) -> list[Line]:
    """Empty where there is nothing left to do."""
    done = sum(item.status == "completed" for item in items)
    if not items or done == len(items) or most < 1:
        return []
    at = next((number for number, item in enumerate(items) if item.status == "in_progress"), None)
    if at is None:
        at = next(number for number, item in enumerate(items) if item.status == "pending")
    first = max(min(at - most // 3, len(items) - most), 0)
    rows = [_row(item, columns) for item in items[first : first + most]]
    counted = line(say("conversation.todo_done", done=done, count=len(items)), "dim")
    rows[0] = spread(rows[0], counted, columns)
    return rows


def all_lines(items: Sequence[TodoItem], columns: int) -> list[Line]:
    return [_row(item, columns) for item in items]


def _row(item: TodoItem, columns: int) -> Line:
    style = _STYLES[item.status]
    return fit((Span(SIGNS[item.status], style), Span(visible(" ".join(item.content.split())), style)), columns)
