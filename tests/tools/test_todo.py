"""The model's list of what is to be done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.tools.todo import TodoItem, TodoList
from dragoman.values.calls import ToolOutput
from dragoman.values.messages import Text


def run(todo: TodoList, *items: tuple[str, str]) -> ToolOutput:
    return asyncio.run(todo.run(arguments(*items), lambda text: None))


def arguments(*items: tuple[str, str]) -> dict[str, Any]:
    return {"items": [{"content": content, "status": status} for content, status in items]}


def test_the_list_is_replaced_counted_and_shown() -> None:
    todo = TodoList()
    run(todo, ("old", "pending"))
    output = run(todo, ("read", "completed"), ("write\n", "in_progress"), ("test", "pending"), ("ship\u202e", "pending"))
    assert output.content == (Text("The list now has 4 items: 1 completed, 1 in progress, 2 pending."),)
    assert output.display == "[x] read\n[>] write\n[ ] test\n[ ] ship<U+202E>"
    assert todo.items[:2] == (TodoItem("read", "completed"), TodoItem("write", "in_progress"))
    assert not output.is_error


def test_an_empty_list_is_a_list() -> None:
    todo = TodoList()
    run(todo, ("old", "pending"))
    assert run(todo).content == (Text("The list now has no items."),)
    assert todo.items == ()


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([("a", "in_progress"), ("b", "in_progress")], "2 items are in_progress"),
        ([("  ", "pending")], "empty"),
        ([("x" * 600, "pending")], "600 characters"),
        ([("x", "pending")] * 101, "101 items"),
    ],
)
def test_a_list_that_cannot_be_is_refused_and_the_old_one_stays(items: list[tuple[str, str]], words: str) -> None:
    todo = TodoList()
    run(todo, ("old", "pending"))
    output = run(todo, *items)
    assert output.is_error
    assert words in str(output.content)
    assert todo.items == (TodoItem("old", "pending"),)
    assert words in todo.intend(arguments(*items)).problem


def test_the_intent_changes_nothing() -> None:
    todo = TodoList()
    assert todo.intend(arguments(("a", "pending"))).title == "todo: 1 item: 1 pending"
    assert todo.items == ()
