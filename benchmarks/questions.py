"""How often a user is asked about shell commands: those of real sessions, without rules and without a sandbox; and in the mode
`auto`, inside one.

`python -m benchmarks.questions` prints every command that asks, with the reason. The folders of those sessions are not on this machine:
paths are judged by name, with the folder in which a session was held as its workspace. Inside a sandbox nothing asks before a command
runs; what asks then is the gate, when the command reaches for a host. Which commands do is told by what they say: they were not run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import CORPORA
from benchmarks.table import Table
from dragoman.policy.command_rules import judge_command
from dragoman.policy.commands import ReadableFolders
from dragoman.policy.judge import PREFIX_KEY, Law, MustAsk, grant_key, judge
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolSpec

FOLDER = CORPORA / "traces"
UNKNOWN_WORKSPACE = "/project"
SHELLS = {"bash", "run_shell", "shell", "execute_command", "run_commands"}


ANSWERS = {"answered with `always` for that command": False, "answered with `always` for commands that begin so": True}


class Asked(NamedTuple):
    command: str
    times: int
    reason: str


class Questions(NamedTuple):
    """What was asked of how many."""

    calls: int
    distinct: int
    asked: list[Asked]

    @property
    def share(self) -> float:
        """Of different commands: one that comes again is asked about once, if the user answers `always`."""
        return len(self.asked) / self.distinct

    @property
    def share_of_calls(self) -> float:
        return sum(each.times for each in self.asked) / self.calls


REACHES_OUT = re.compile(
    r"\b(?:curl|wget|ssh|scp|rsync|npx|npm run publish|gem install|apt(?:-get)? |brew |docker (?:pull|push|build)|gh "
    r"|git (?:push|pull|fetch|clone|remote update|submodule update)|go (?:get|mod)|cargo (?:add|install|fetch|update|publish)"
    r"|(?:npm|pnpm|yarn|bun) (?:install|i|ci|add|publish|audit|outdated|view)"
    r"|pip3? (?:install|download)|uv (?:sync|add|pip|tool)|poetry (?:install|add))"
)
"""Commands that ask for a host, taken generously: a package runner may find what it runs in place."""


def count_sandboxed(folder: Path = FOLDER) -> Questions:
    """In the mode auto at levels 1 and 2: what the rules ask about before it runs, and what may ask at the gate."""
    counts = _count_commands(folder)
    spec = ToolSpec.of("run_shell", "", {"type": "object"}, kind="execute")
    asked: list[Asked] = []
    for (workspace, command), times in counts.items():
        intent = Intent(command=command, directory=workspace, preview=command, sandboxed=True)
        verdict = judge(spec, intent, "auto", law=Law(folders=(workspace,)))
        if isinstance(verdict, MustAsk):
            asked.append(Asked(command, times, verdict.view.why or "asked before it runs"))
        elif REACHES_OUT.search(command):
            asked.append(Asked(command, times, "it may reach for a host"))
    return Questions(counts.total(), len(counts), asked)


def _count_commands(folder: Path) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            counts.update(_commands(path))
    return counts


def count_questions(folder: Path = FOLDER) -> Questions:
    counts = _count_commands(folder)
    asked: list[Asked] = []
    for (workspace, command), times in counts.items():
        ruling = judge_command(command, workspace, (), ReadableFolders((workspace,)))
        if ruling.decision != "allow":
            asked.append(Asked(command, times, ruling.reason))
    return Questions(counts.total(), len(counts), asked)


def count_answered(folder: Path = FOLDER, *, by_beginning: bool = False) -> int:
    """How often a person is asked in these sessions, who answers what may be allowed for good with `always`: for the exact command, or for
    commands with its beginning where that is offered. An answer holds in its folder; what is grave is asked about every time."""
    spec = ToolSpec.of("run_shell", "", {"type": "object"}, kind="execute")
    granted: dict[str, set[str]] = {}
    asked = 0
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        for workspace, command in _commands(path):
            keys = granted.setdefault(workspace, set())
            intent = Intent(command=command, directory=workspace, preview=command)
            verdict = judge(spec, intent, "default", frozenset(keys), Law(folders=(workspace,)))
            if not isinstance(verdict, MustAsk):
                continue
            asked += 1
            if verdict.view.guarded:
                continue
            keys.add(PREFIX_KEY + verdict.view.prefix if by_beginning and verdict.view.prefix else grant_key(spec, intent))
    return asked


def _commands(path: Path) -> Iterator[tuple[str, str]]:
    """Each command of a session with the folder it was held in."""
    text = path.read_text(encoding="utf-8")
    values = [json.loads(line) for line in text.splitlines() if line.strip()] if path.suffix == ".jsonl" else [json.loads(text)]
    workspace = next((value["cwd"] for value in values if isinstance(value, dict) and value.get("cwd")), UNKNOWN_WORKSPACE)
    for value in values:
        for command in _calls(value):
            yield workspace, command


def _calls(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _calls(each)
    if not isinstance(value, dict):
        return
    name, arguments = value.get("name"), value.get("input") or value.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = None
    if isinstance(name, str) and name.lower() in SHELLS and isinstance(arguments, dict):
        given = arguments.get("command") or arguments.get("commands")
        yield from [given] if isinstance(given, str) else [each for each in given or () if isinstance(each, str)]
        return
    for each in value.values():
        yield from _calls(each)


def run(quick: bool) -> list[Table]:
    if not FOLDER.is_dir():
        return []
    found = count_questions()
    table = Table("Questions about shell commands", ["commands", "asked", "share"])
    table.rows = [
        [f"{found.distinct} different ones", len(found.asked), f"{found.share:.0%}"],
        [f"{found.calls} calls, each answered with `once`", sum(each.times for each in found.asked), f"{found.share_of_calls:.0%}"],
        *(
            [f"{found.calls} calls, {how}", (times := count_answered(by_beginning=by_beginning)), f"{times / found.calls:.0%}"]
            for how, by_beginning in ANSWERS.items()
        ),
    ]
    table.notes = ["Without rules, grants and a sandbox. What deletes, pushes or publishes is never offered as `always`."]
    inside = count_sandboxed()
    boxed = Table("Questions about shell commands in the mode auto, sandbox of level 1 or 2", ["commands", "asked", "share"])
    boxed.rows = [
        [f"{inside.distinct} different ones", len(inside.asked), f"{inside.share:.1%}"],
        [f"{inside.calls} calls", sum(each.times for each in inside.asked), f"{inside.share_of_calls:.1%}"],
    ]
    boxed.notes = ["None asks before it runs; counted are those that may reach for a host, at the gate."]
    return [table, boxed]


def print_questions(questions: Questions) -> None:
    for one in sorted(questions.asked, key=lambda each: each.reason):
        print(f"{one.times:>4} × {one.command[:100]!r}\n       {one.reason}")
    print(f"{len(questions.asked)} of {questions.distinct} different commands ask ({questions.share:.1%}), ", end="")
    print(f"{questions.share_of_calls:.1%} of {questions.calls} calls")


if __name__ == "__main__":
    print("Without rules and without a sandbox:")
    print_questions(count_questions())
    for how, by_beginning in ANSWERS.items():
        print(f"{count_answered(by_beginning=by_beginning)} questions, {how}")
    print("\nIn the mode auto, in a sandbox of level 1 or 2:")
    print_questions(count_sandboxed())
