"""How often a user is asked about shell commands: those of real sessions, without rules and without a sandbox.

`python -m benchmarks.questions` prints every command that asks, with the reason. The folders of those sessions are not on this machine:
paths are judged by name, with the folder in which a session was held as its workspace.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.table import Table
from dragoman.policy.command_rules import judge_command
from dragoman.policy.commands import ReadableFolders

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "corpora" / "traces"
UNKNOWN_WORKSPACE = "/work/repository"
SHELLS = {"bash", "run_shell", "shell", "execute_command", "run_commands"}


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


def count_questions(folder: Path = FOLDER) -> Questions:
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            counts.update(_commands(path))
    asked: list[Asked] = []
    for (workspace, command), times in counts.items():
        ruling = judge_command(command, workspace, (), ReadableFolders((workspace,)))
        if ruling.decision != "allow":
            asked.append(Asked(command, times, ruling.reason))
    return Questions(counts.total(), len(counts), asked)


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
        [f"{found.calls} calls", sum(each.times for each in found.asked), f"{found.share_of_calls:.0%}"],
    ]
    table.notes = ["Without rules, grants and a sandbox. A command that comes again is asked about once if the answer is `always`."]
    return [table]


if __name__ == "__main__":
    questions = count_questions()
    for one in sorted(questions.asked, key=lambda each: each.reason):
        print(f"{one.times:>4} × {one.command[:100]!r}\n       {one.reason}")
    print(f"{len(questions.asked)} of {questions.distinct} different commands ask ({questions.share:.0%}), ", end="")
    print(f"{questions.share_of_calls:.0%} of {questions.calls} calls")
