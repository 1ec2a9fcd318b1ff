"""todo: the model's own list of what is to be done. The user watches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.base.visible import visible
from dragoman.tools.description import described
from dragoman.tools.workspace import Refused
from dragoman.values.contracts import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

Status = Literal["pending", "in_progress", "completed"]

MAX_ITEMS = 100
MAX_ITEM_CHARS = 500
_BOXES: dict[Status, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoItem(msgspec.Struct, frozen=True):
    content: str
    status: Status


class TodoList:
    """Each call replaces the list. `items` is the list as it stands, for whoever shows it."""

    def __init__(self) -> None:
        self.items: tuple[TodoItem, ...] = ()
        self.spec = ToolSpec.of(
            "todo",
            described("todo"),
            {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "description": "The whole list, in order.",
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
            },
            display_name="Todo list",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        try:
            items = _read(args)
        except Refused as refused:
            return Intent(title="todo", problem=refused.message)
        return Intent(title=f"todo: {_counted(items)}", preview=_checklist(items))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            self.items = _read(args)
        except Refused as refused:
            return refused.output()
        return ToolOutput((Text(f"The list now has {_counted(self.items)}."),), display=_checklist(self.items))


def _read(args: Mapping[str, Any]) -> tuple[TodoItem, ...]:
    """Raises Refused."""
    items = tuple(TodoItem(str(item["content"]).strip(), item["status"]) for item in args["items"])
    if len(items) > MAX_ITEMS:
        raise Refused(f"the list has {len(items)} items, and {MAX_ITEMS} are allowed: gather small steps into larger ones", "invalid")
    if not all(item.content for item in items):
        raise Refused("an item is empty: say what is to be done", "invalid")
    if longest := max((len(item.content) for item in items if len(item.content) > MAX_ITEM_CHARS), default=0):
        raise Refused(f"an item has {longest:,} characters, and {MAX_ITEM_CHARS} are allowed: say it in one short line", "invalid")
    working = [item.content for item in items if item.status == "in_progress"]
    if len(working) > 1:
        raise Refused(f"{len(working)} items are in_progress, and only one may be: mark the others pending or completed", "invalid")
    return items


def _counted(items: tuple[TodoItem, ...]) -> str:
    if not items:
        return "no items"
    counts = Counter(item.status for item in items)
    told = ", ".join(f"{counts[status]} {status.replace('_', ' ')}" for status in ("completed", "in_progress", "pending") if counts[status])
    return f"{len(items)} item{'s' if len(items) > 1 else ''}: {told}"


def _checklist(items: tuple[TodoItem, ...]) -> str:
    return "\n".join(f"{_BOXES[item.status]} {visible(item.content, one_line=True)}" for item in items) or "(nothing to do)"
