"""Fleets in tests: tasks whose answers are chosen from what is asked, so that any number of conversations go on side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.testing.script import Script
from program import Done, Place

MODEL = "anthropic/claude-opus-5"
WORK = (
    'call: write_file {"path":"made.txt","content":"%s"}',
    'call: run_shell {"command":"cat made.txt"}',
    "text: done with %s",
)
"""What the model does at each task: two tools, then an answer."""


def answer_by_task(request: Any) -> Any:
    """The next step of the conversation that asks, which names its task as `task=NAME`."""
    messages = request.body["messages"]
    step = WORK[min(sum(message["role"] == "assistant" for message in messages), len(WORK) - 1)]
    return Script.parse(step.replace("%s", task_of(request))).answers[0]


def task_of(request: Any) -> str:
    text = json.dumps(request.body["messages"], ensure_ascii=False)
    return text.partition("task=")[2].partition(" ")[0]


def write_tasks(place: Place, tasks: list[dict[str, Any]], name: str = "tasks.jsonl") -> None:
    (place.work / name).write_text("".join(json.dumps(task) + "\n" for task in tasks))


def task(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"task={name} . Do it.", "check": f"grep -qx {name} made.txt"} | fields


def run_fleet(place: Place, *arguments: str, **options: Any) -> Done:
    return place.run("fleet", "run", "tasks.jsonl", "--model", MODEL, *arguments, **options)


def fleet_files(place: Place, name: str = "tasks") -> Path:
    return place.work / "fleet" / name


def results(place: Place, name: str = "tasks") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (fleet_files(place, name) / "results.jsonl").read_text().splitlines()]
