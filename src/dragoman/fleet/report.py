"""What came of a fleet: one line for each attempt, and the sums."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from math import comb

import msgspec

from dragoman.base.atomic import write_aside
from dragoman.base.private import write_whole
from dragoman.fleet.figures import dollars, outcome_word
from dragoman.fleet.folder import RESULTS_FILE, Fleet
from dragoman.fleet.result import LOST, STATES, AttemptResult, State, read_late_results, read_result, read_spent
from dragoman.fleet.task import Task
from dragoman.words import say


class AttemptRow(msgspec.Struct, frozen=True):
    """An attempt: its accepted result, or `cancelled` where it has none, and what all its starts cost together."""

    result: AttemptResult
    epochs: int
    lost_usd: float | None
    """Of starts whose results were not accepted."""
    state: State
    running_usd: float | None = 0.0
    """Of a start that is under way."""

    @property
    def usd(self) -> float | None:
        parts = (self.lost_usd, self.running_usd, self.result.cost_usd)
        return None if None in parts else sum(each or 0.0 for each in parts)


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
    running = read_spent(epochs[-1][1]).usd if is_running else 0.0
    lost: float | None = 0.0
    for epoch, folder in epochs[:-1] if is_running else epochs:
        for usd in _costs(folder, is_accepted=accepted is not None and accepted.epoch == epoch):
            lost = None if usd is None or lost is None else lost + usd
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
    return AttemptRow(result, len(epochs), lost, "running" if is_running else "waiting" if is_open else result.outcome, running)


def _epochs(folder: str) -> list[tuple[int, str]]:
    try:
        names = [name for name in os.listdir(folder) if name.startswith("epoch-")]
    except FileNotFoundError:
        return []
    return sorted((int(name[6:]), os.path.join(folder, name)) for name in names if name[6:].isdigit())


def _costs(folder: str, *, is_accepted: bool) -> Iterator[float | None]:
    """What the start in this folder has cost beside an accepted result."""
    result = read_result(folder)
    late = [each.cost_usd for each in read_late_results(folder)]
    if result is None or not is_accepted:
        known = [read_spent(folder).usd, result.cost_usd if result is not None else 0.0, *late]
        yield None if None in known else max(each or 0.0 for each in known)
    elif result.error_type.startswith(LOST):  # what was known of a worker that has come back
        yield None if None in late else max([(each or 0.0) - (result.cost_usd or 0.0) for each in late], default=0.0)
    else:
        yield from late


def write_results(fleet: Fleet) -> None:
    """Write `results.jsonl`, whole or not at all: a line for each attempt."""
    with write_aside(os.path.join(fleet.folder, RESULTS_FILE)) as descriptor:
        for row in rows(fleet):
            data = msgspec.to_builtins(row.result, enc_hook=str)
            for name in ("diff", "answer"):
                data.pop(name)
            write_whole(descriptor, msgspec.json.encode({**data, "epochs": row.epochs, "lost_usd": row.lost_usd}, enc_hook=str) + b"\n")


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
    is_cost_least: bool = False
    seconds: float = 0.0
    requests: int = 0


def sums(fleet: Fleet, *, is_under_way: bool = False) -> Sums:
    total = Sums()
    for row in rows(fleet, is_under_way=is_under_way):
        total.attempts += 1
        total.outcomes[row.state] += 1
        total.usd += row.usd or 0.0
        total.lost_usd += row.lost_usd or 0.0
        total.is_cost_least = total.is_cost_least or row.usd is None or row.result.is_cost_least
        total.seconds += row.result.seconds
        total.requests += row.result.requests
    return total


def summary_lines(fleet: Fleet, total: Sums) -> list[str]:
    """The sums in words, with pass@k where there were several attempts."""
    counts = ", ".join(f"{outcome_word(name)} {total.outcomes[name]}" for name in STATES if total.outcomes[name])
    least = say("fleet.at_least") if total.is_cost_least else ""
    lines = [say("fleet.summary", counts=counts, all=total.attempts, usd=f"{least}{dollars(total.usd)}", wasted=dollars(total.lost_usd))]
    attempts = fleet.lock.attempts
    if attempts > 1:
        figures = ", ".join(f"pass@{k} {100 * pass_at(k, fleet):.1f} %" for k in sorted({1, attempts}))
        lines.append(say("fleet.pass_at", figures=figures, tasks=fleet.lock.tasks))
    return lines
