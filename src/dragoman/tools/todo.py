"""todo: the model's task list, shown to the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.base.visible import escape_hidden
from dragoman.tools.description import load_description
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

Status = Literal["pending", "in_progress", "completed"]

MAX_ITEMS = 100
MAX_ITEM_CHARS = 500
_BOXES: dict[Status, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoItem(msgspec.Struct, frozen=True):
    content: str
    status: Status


class TodoList:
    """Each call replaces the list. `items` is the current list, for display."""

    def __init__(self) -> None:
        self.items: tuple[TodoItem, ...] = ()
        self.spec = ToolSpec.of(
            "todo",
            load_description("todo"),
            {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": {"type": "string"},
                                "status": {"type": "string", "enum": [*_BOXES]},
                            },
                            "required": ["content", "status"],
                        },
                    }
                },
                "required": ["items"],
                "additionalProperties": False,
            },
            display_name="Todo list",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        try:
            items = _read_items(args)
        except ToolRefusal as refused:
            return Intent(title="todo", problem=refused.message)
        return Intent(title=f"todo: {_summary(items)}", preview=_checklist(items))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            self.items = _read_items(args)
        except ToolRefusal as refused:
            return refused.output()
        return ToolOutput((Text(f"The list now has {_summary(self.items)}."),), display=_checklist(self.items))


def _read_items(args: Mapping[str, Any]) -> tuple[TodoItem, ...]:
    """Raises ToolRefusal."""
    items = tuple(TodoItem(str(item["content"]).strip(), item["status"]) for item in args["items"])
    if len(items) > MAX_ITEMS:
        raise ToolRefusal(f"the list has {len(items)} items, and {MAX_ITEMS} are allowed: gather small steps into larger ones", "invalid")
    if not all(item.content for item in items):
        raise ToolRefusal("an item is empty: say what is to be done", "invalid")
    if longest := max((len(item.content) for item in items if len(item.content) > MAX_ITEM_CHARS), default=0):
        raise ToolRefusal(f"an item has {longest:,} characters, and {MAX_ITEM_CHARS} are allowed: say it in one short line", "invalid")
    working = [item.content for item in items if item.status == "in_progress"]
    if len(working) > 1:
        raise ToolRefusal(f"{len(working)} items are in_progress, and only one may be: mark the others pending or completed", "invalid")
    return items


def _summary(items: tuple[TodoItem, ...]) -> str:
    if not items:
        return "no items"
    counts = Counter(item.status for item in items)
    counted_statuses = ", ".join(
        f"{counts[status]} {status.replace('_', ' ')}" for status in ("completed", "in_progress", "pending") if counts[status]
    )
    return f"{len(items)} item{'s' if len(items) > 1 else ''}: {counted_statuses}"


def _checklist(items: tuple[TodoItem, ...]) -> str:
    return "\n".join(f"{_BOXES[item.status]} {escape_hidden(item.content, one_line=True)}" for item in items) or "(nothing to do)"
