"""What came of a fleet: one line for each attempt, and the sums."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from math import comb
from typing import Any

import msgspec

from dragoman.base.private import write_whole
from dragoman.fleet import files
from dragoman.fleet.costs import StartCost, cost_of_start
from dragoman.fleet.figures import LEAST_SHOWN_USD, cost_text, dollars, outcome_word
from dragoman.fleet.folder import RESULTS_FILE, Fleet
from dragoman.fleet.result import STATES, AttemptResult, State, read_result
from dragoman.fleet.task import Task
from dragoman.words import say

_EPOCH = re.compile(r"epoch-[1-9][0-9]{0,5}\Z")


class AttemptRow(msgspec.Struct, frozen=True):
    """An attempt: its accepted result, or `cancelled` where it has none, and what all its starts cost together."""

    result: AttemptResult
    epochs: int
    lost_usd: float | None
    """Of starts whose results were not accepted."""
    state: State
    cost: StartCost
    """Of all starts together."""

    @property
    def as_json(self) -> dict[str, Any]:
        """What stands beside the fields of the result. Whether the cost is the least, and how much of it is estimated, is said of all
        starts together."""
        told = {"epochs": self.epochs, "lost_usd": self.lost_usd, "is_cost_least": self.cost.is_least}
        return {**told, "estimated_usd": self.cost.estimated_usd}


def rows(fleet: Fleet, *, is_under_way: bool = False) -> Iterator[AttemptRow]:
    """All attempts, in the order of the tasks: nothing is left out of the denominator. `is_under_way`: a supervisor is at work on it."""
    for task in fleet.tasks():
        for attempt in range(1, fleet.lock.attempts + 1):
            yield _row(fleet, task, attempt, is_under_way=is_under_way)


def _row(fleet: Fleet, task: Task, attempt: int, *, is_under_way: bool) -> AttemptRow:
    accepted = fleet.result(task, attempt)
    epochs = _epochs(fleet.attempt_folder(task, attempt))
    is_open = is_under_way and accepted is None
    is_running = is_open and bool(epochs) and read_result(epochs[-1][1]) is None
    lost, total = StartCost(), StartCost()
    for epoch, folder in epochs:
        cost = cost_of_start(folder)
        total += cost
        if accepted is not None and epoch == accepted.epoch:
            beside = None if cost.usd is None or accepted.cost_usd is None else max(cost.usd - accepted.cost_usd, 0.0)
            lost += StartCost(beside)
        elif not (is_running and folder == epochs[-1][1]):
            lost += cost
    blank = AttemptResult(
        task=task.id,
        task_hash=task.hash,
        attempt=attempt,
        epoch=len(epochs),
        outcome="cancelled",
        reason="" if is_open else say("fleet.not_done"),
        cost_usd=0.0,
    )
    result = accepted or blank
    return AttemptRow(result, len(epochs), lost.usd, "running" if is_running else "waiting" if is_open else result.outcome, total)


def _epochs(folder: str) -> list[tuple[int, str]]:
    names = [each.name for each in files.list_folder(folder) if each.is_folder and _EPOCH.match(each.name)]
    return sorted((int(name[6:]), os.path.join(folder, name)) for name in names)


def write_results(fleet: Fleet) -> None:
    """Write `results.jsonl`, whole or not at all: a line for each attempt."""
    with files.write_aside(os.path.join(fleet.folder, RESULTS_FILE)) as descriptor:
        for row in rows(fleet):
            data = msgspec.to_builtins(row.result, enc_hook=str)
            for name in ("diff", "answer"):
                data.pop(name)
            write_whole(descriptor, msgspec.json.encode({**data, **row.as_json}, enc_hook=str) + b"\n")


def pass_at(k: int, fleet: Fleet) -> float:
    """How many of all tasks would have passed with k attempts at each: the unbiased estimate, from the attempts that were judged. What the
    infrastructure kept from being judged is no wrong answer; a task with none that was judged has not passed."""
    total = 0.0
    for task in fleet.tasks():
        outcomes = [result.outcome for number in range(1, fleet.lock.attempts + 1) if (result := fleet.result(task, number)) is not None]
        judged = [each for each in outcomes if each not in ("infrastructure", "cancelled")]
        count, wrong = len(judged), sum(each != "passed" for each in judged)
        if count:
            total += 1.0 - comb(wrong, min(k, count)) / comb(count, min(k, count))
    return total / fleet.lock.tasks


class Sums(msgspec.Struct):
    """A fleet in figures."""

    attempts: int = 0
    outcomes: Counter[State] = msgspec.field(default_factory=Counter)
    usd: float = 0.0
    lost_usd: float = 0.0
    estimated_usd: float = 0.0
    """The part of `usd` that no service has told."""
    is_cost_least: bool = False
    seconds: float = 0.0
    requests: int = 0


def sums(fleet: Fleet, *, is_under_way: bool = False) -> Sums:
    total = Sums()
    for row in rows(fleet, is_under_way=is_under_way):
        total.attempts += 1
        total.outcomes[row.state] += 1
        total.usd += row.cost.usd or 0.0
        total.lost_usd += row.lost_usd or 0.0
        total.estimated_usd += row.cost.estimated_usd
        total.is_cost_least = total.is_cost_least or row.cost.usd is None or row.cost.is_least
        total.seconds += row.result.seconds
        total.requests += row.cost.requests
    return total


def summary_lines(fleet: Fleet, total: Sums) -> list[str]:
    """The sums in words, with pass@k where there were several attempts."""
    counts = ", ".join(f"{outcome_word(name)} {total.outcomes[name]}" for name in STATES if total.outcomes[name])
    usd = cost_text(total.usd, is_least=total.is_cost_least)
    lines = [say("fleet.summary", counts=counts, all=total.attempts, usd=usd, wasted=dollars(total.lost_usd))]
    if total.estimated_usd >= LEAST_SHOWN_USD:
        lines.append(say("fleet.estimated", usd=dollars(total.estimated_usd)))
    attempts = fleet.lock.attempts
    if attempts > 1:
        figures = ", ".join(f"pass@{k} {100 * pass_at(k, fleet):.1f} %" for k in sorted({1, attempts}))
        lines.append(say("fleet.pass_at", figures=figures, tasks=fleet.lock.tasks))
    return lines
