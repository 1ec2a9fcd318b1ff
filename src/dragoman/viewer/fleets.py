"""The fleets of this folder as grids of tasks and attempts, read from the files that they leave: `fleet/NAME/` (docs/operate/fleet.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from dragoman.base import jsontext
from dragoman.base.found_files import read_found

FLEETS = "fleet"
MOST_TASKS = 5_000
MOST_CELLS = 20_000
"""Of a larger fleet the first so many are shown."""
_MOST_BYTES = 64_000_000
_TEXTS = ("outcome", "reason", "session_id", "model", "error_type")
_NUMBERS = ("requests", "turns", "tool_calls", "cost_usd", "seconds", "epoch")


def list_fleets(folder: str) -> list[dict[str, Any]]:
    """The fleets that were started in a folder, the latest first."""
    base = os.path.join(os.path.realpath(folder), FLEETS)
    names = [os.path.basename(path) for path in _folders(base)]
    found = [(name, _read_object(os.path.join(base, name, "lock.json"))) for name in names]
    rows = [{"name": name, **{key: lock.get(key) for key in ("id", "tasks", "attempts", "model")}} for name, lock in found if lock]
    return sorted(rows, key=lambda row: str(row["id"]), reverse=True)


def fleet_grid(folder: str, name: str) -> dict[str, Any]:
    """Its tasks in their order, and what is known of each attempt. Empty where there is no such fleet."""
    if os.path.basename(name) != name or name in ("", ".", ".."):
        return {}
    base = os.path.join(os.path.realpath(folder), FLEETS, name)
    lock = _read_object(os.path.join(base, "lock.json"))
    if not lock or os.path.realpath(base) != base:  # a link would lead out of the folder
        return {}
    attempts = lock.get("attempts")
    count = attempts if isinstance(attempts, int) and 0 < attempts <= 1000 else 1
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for task, attempt, cell in _cells(os.path.join(base, "tasks")):
        found.setdefault(task, {})[attempt] = cell
    ids = list(islice(_task_ids(base), min(MOST_TASKS, MOST_CELLS // count)))
    tasks = [{"id": task, "cells": [found.get(task, {}).get(attempt) for attempt in range(1, count + 1)]} for task in ids]
    return {"name": name, "attempts": count, "model": lock.get("model", ""), "tasks": tasks, "whole": lock.get("tasks", len(tasks))}


def sessions_of_fleets(folder: str) -> dict[str, str]:
    """Session → the fleet that it was held for, of fleets that are over."""
    found: dict[str, str] = {}
    for fleet in list_fleets(folder):
        path = os.path.join(folder, FLEETS, fleet["name"], "results.jsonl")
        try:
            status = os.lstat(path)
            found |= dict.fromkeys(_session_ids(path, status.st_mtime_ns, status.st_size), fleet["name"])
        except OSError:
            continue
    return found


@lru_cache(maxsize=64)
def _session_ids(path: str, mtime_ns: int, size: int) -> tuple[str, ...]:
    """The sessions of a file of results, which is read once as it is: every page with the list asks each few seconds. Raises OSError."""
    rows = (
        jsontext.decode_object(line.decode("utf-8", "replace")) or {}
        for line in read_found(path, _MOST_BYTES, cut=True, follow=False).splitlines()
    )
    results = (row.get("result", row) for row in rows)
    return tuple(each["session_id"] for each in results if isinstance(each, dict) and isinstance(each.get("session_id"), str))


def _cells(folder: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for task_folder in _folders(folder):
        for attempt_folder in _folders(task_folder):
            attempt = os.path.basename(attempt_folder)
            if not (attempt.isascii() and attempt.isdecimal() and len(attempt) < 7):
                continue
            result = _read_object(os.path.join(attempt_folder, "result.json"))
            if result and isinstance(result.get("task"), str):
                yield result["task"], int(attempt), dict(_shown(result))
            elif isinstance(task := _read_object(os.path.join(attempt_folder, "task.json")).get("id"), str):
                yield task, int(attempt), {"outcome": "begun"}


def _shown(result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The folder may have come with somebody's repository: what is of another kind than it should be is left out."""
    yield from ((key, value) for key in _TEXTS if isinstance(value := result.get(key), str))
    yield from ((key, value) for key in _NUMBERS if isinstance(value := result.get(key), int | float) and abs(value) < 1e15)


def _folders(folder: str) -> list[str]:
    """The folders in a folder. None where a link leads to it, out of the fleet perhaps."""
    if os.path.realpath(folder) != folder:
        return []
    try:
        return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _task_ids(base: str) -> Iterator[str]:
    try:
        data = read_found(os.path.join(base, "tasks.jsonl"), _MOST_BYTES, cut=True, follow=False)
    except OSError:
        return
    for line in data.splitlines():
        task = jsontext.decode_object(line.decode("utf-8", "replace"))
        if task is not None and isinstance(task.get("id"), str):
            yield task["id"]


def _read_object(path: str) -> dict[str, Any]:
    try:
        data = read_found(path, _MOST_BYTES, follow=False)
    except OSError:
        return {}
    return jsontext.decode_object(data.decode("utf-8", "replace")) or {}
