"""Five tasks of a day in the terminal: ours beside pi and Claude Code, in tmux.

`DRAGOMAN_PEERS=FOLDER python -m benchmarks five_tasks` looks for `FOLDER/NAME/node_modules/.bin/NAME`; without it, ours is measured alone.
Keys are the fewest that each program takes, a chord being one. Seconds are those a user waits: from the last key of a step until its result
is on the screen, less the model's time. All of them talk to one model on loopback in Anthropic's protocol.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.table import Cell, Table
from benchmarks.terminal_service import Answers, Reply, serve
from benchmarks.terminals import Pane, Peer, installed_peers

PATIENCE_S = 60
CALC = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\nassert add(1, 2) == 3\n"
FIXED = "It adds now."
TASKS = ("fix a bug, approving each step", "back two prompts", "from Opus to Haiku", "see the cost", "resume yesterday's session")


class Step(NamedTuple):
    """Keys, one after the other, and what is on the screen when they have done what they should. `text:` is typed."""

    keys: Sequence[str]
    shown: str
    counted: bool = True

    @property
    def count(self) -> int:
        return sum(len(each.removeprefix("text:")) if each.startswith("text:") else 1 for each in self.keys)


@dataclass(frozen=True)
class Ways:
    """How one program does the five tasks; the last step of each shows its result."""

    approve: Sequence[Step]
    """What it asks on the way, the end of the task included."""
    back: Sequence[Step]
    model: Sequence[Step]
    cost: Sequence[Step]
    resume: Sequence[Step]


def _said(prompt: str) -> str:
    return f"You asked: {prompt}."


def _prompt(text: str, *, counted: bool = True, shown: str = "") -> Step:
    return Step((f"text:{text}", "Enter"), shown or _said(text), counted)


OURS = Ways(
    approve=(_prompt("fix the bug", shown="a key answers"), Step(("y", "Enter"), FIXED)),
    back=(Step(("Escape", "Escape"), "Back to before"), Step(("Down", "Enter"), "2 prompts are undone")),
    model=(Step(("M-p",), "Model for the next answer"), Step(("M-7",), "the model is now anthropic/claude-haiku-5-5")),
    cost=(Step((), "$0."),),
    resume=(Step(("text:/r", "Enter"), "Go on with"), Step(("Down", "Enter"), _said("yesterday"))),
)
PI = Ways(
    approve=(_prompt("fix the bug", shown=FIXED),),  # it never asks
    back=(Step(("Escape", "Escape"), "filters"), Step(("Up", "Up", "Up", "Enter"), "No summary"), Step(("Enter",), "Navigated to")),
    model=(Step(("C-l",), "Model Name"), Step(("Down", "Down", "Down", "Enter"), "claude-haiku-4-5 •")),
    cost=(Step((), "$0."),),
    resume=(Step(("text:/r", "Enter"), "Resume Session"), Step(("Down", "Enter"), _said("yesterday"))),
)
CLAUDE = Ways(
    approve=(_prompt("fix the bug", shown="make this edit"), Step(("Enter",), "Do you want to proceed"), Step(("Enter",), FIXED)),
    back=(Step(("Escape", "Escape"), "(current)"), Step(("Up", "Up", "Enter"), "Restore conversation"), Step(("Enter",), "❯ two")),
    model=(Step(("M-p",), "Select model"), Step(("5",), "Model set to haiku")),
    cost=(Step(("text:/cos", "Enter"), "Estimated cost"),),
    resume=(Step(("text:/res", "Enter"), "Resume session"), Step(("Down", "Enter"), _said("yesterday"))),
)
WAYS = {"dragoman": OURS, "pi": PI, "claude": CLAUDE}


def _peers(folder: str) -> list[Peer]:
    """Those of the other benchmark, but all with Opus 5.5 in Anthropic's protocol; Claude Code asks, as it did before its auto mode."""
    key = {"ANTHROPIC_API_KEY": "x"}
    pi_models = {".pi/agent/models.json": json.dumps({"providers": {"anthropic": {"baseUrl": "{url}"}}})}
    changed: list[Peer] = []
    for peer in installed_peers(folder):
        match peer.name:
            case "dragoman":
                changed.append(replace(peer, argv=[*peer.argv[:-1], "anthropic/claude-opus-5-5"]))
            case "pi":
                argv = ["pi", "--provider", "anthropic", "--model", "claude-opus-5-5"]
                changed.append(replace(peer, argv=argv, prompt="/1.0M", env={**peer.env, **key}, files=pi_models))
            case "claude":
                changed.append(replace(peer, argv=["claude", "--permission-mode", "default"], prompt="? for shortcuts"))
            case _:
                pass
    return changed


class Model:
    """Reads, edits and tests where the bug is to be fixed, and says a prompt again otherwise. Keeps how long it took."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.took_s = 0.0

    def reply(self, body: Mapping[str, Any]) -> Reply:
        began = time.monotonic()
        try:
            return self._reply(body)
        finally:
            self.took_s += time.monotonic() - began

    def _reply(self, body: Mapping[str, Any]) -> Reply:
        messages = body["messages"]
        prompts = [(at, each) for at, message in enumerate(messages) if (each := _prompt_of(message))]
        at, prompt = prompts[-1] if prompts else (0, "")
        if prompt != "fix the bug":
            return _said(prompt)
        names = {tool["name"] for tool in body["tools"]}
        reader, editor, shell = next(each for each in _TOOLS if each[0] in names)
        path = str(self._work / "calc.py")
        match sum(message["role"] == "assistant" for message in messages[at:]):
            case 0:
                return reader, {"path" if reader == "read" else "file_path": path}
            case 1:
                change = {"path": path, "edits": [{"oldText": "a - b", "newText": "a + b"}]}
                return editor, change if reader == "read" else {"file_path": path, "old_string": "a - b", "new_string": "a + b"}
            case 2:
                return shell, {"command": "python3 test_calc.py"}
            case _:
                return FIXED


_TOOLS = (("Read", "Edit", "Bash"), ("read", "edit", "bash"), ("read_file", "edit", "run_shell"))
_PROMPTS = ("fix the bug", "one", "two", "three", "yesterday", "today")


def _prompt_of(message: Mapping[str, Any]) -> str:
    """A message may hold reminders besides the prompt."""
    if message["role"] != "user":
        return ""
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return next((text.strip() for text in reversed(texts) if text.strip() in _PROMPTS), "")


def _measured(pane: Pane, model: Model, steps: Sequence[Step]) -> tuple[int, float]:
    """Keys and seconds of those that count."""
    keys, waited_s = 0, 0.0
    for step in steps:
        before_s = model.took_s
        began = time.monotonic()
        for key in step.keys:
            if key.startswith("text:"):
                pane.press("-l", key.removeprefix("text:"))
            else:
                time.sleep(0.15)  # nobody is faster, and a program may take what is for a paste
                began = time.monotonic()
                pane.press(key)
        while step.shown not in pane.screen():
            if time.monotonic() - began > PATIENCE_S:
                raise TimeoutError(f"{step} shows no such thing:\n{pane.screen()}")
            time.sleep(0.01)
        if step.counted:
            keys += step.count
            waited_s += time.monotonic() - began - (model.took_s - before_s) if step.keys else 0
        time.sleep(0.4)
    return keys, waited_s


def _tasks(peer: Peer, url: str, folder: str, answers: Answers) -> list[tuple[int, float]]:
    """Keys and seconds of each task. Each has a home of its own; what comes before it is not counted."""
    ways = WAYS[peer.name]
    questions = [_prompt(each, counted=False) for each in ("one", "two", "three")]
    parts: list[list[Sequence[Step]]] = [
        [ways.approve],
        [[*questions, *ways.back]],
        [[*questions, *ways.model]],
        [[*questions, *ways.cost]],
        [[_prompt("yesterday", counted=False)], [_prompt("today", counted=False)], ways.resume],
    ]
    told: list[tuple[int, float]] = []
    for starts in parts:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder_of_task:
            home = Path(folder_of_task) / "home"
            model = Model(home / "work")
            answers.plan = model.reply
            for steps in starts:
                pane = Pane(peer, url, folder, home, (30, 100))
                (home / "work" / "calc.py").write_text(CALC)
                (home / "work" / "test_calc.py").write_text(TEST)
                try:
                    pane.start()
                    time.sleep(0.5)
                    counted = _measured(pane, model, steps)
                finally:
                    pane.end()
            told.append(counted)
    return told


def run(*, quick: bool = False) -> list[Table]:
    folder = os.environ.get("DRAGOMAN_PEERS", "")
    rounds = 1 if quick else 3
    measured: dict[str, list[list[tuple[int, float]]]] = {}
    table = Table(
        "Five tasks in the terminal: keys, and seconds that one waits",
        ["program", *(f"{each}: {what}" for each in TASKS for what in ("keys", "s"))],
    )
    with serve() as (url, answers):
        for _ in range(rounds):
            for peer in _peers(folder):
                try:
                    told = _tasks(peer, url, folder, answers)
                except TimeoutError as error:
                    print(error, file=sys.stderr)
                    table.notes.append(f"{peer.name}: {str(error).partition(chr(10))[0]}")
                else:
                    measured.setdefault(peer.name, []).append(told)
    for name, rows in measured.items():
        cells: list[Cell] = [name]
        for task in range(len(TASKS)):
            cells += [max(row[task][0] for row in rows), min(row[task][1] for row in rows)]
        table.rows.append(cells)
    table.notes.append(
        f"The least of {rounds} rounds, interleaved, less the model's time. pi asks nothing before it changes or runs something."
    )
    return [table]
