"""How a fleet goes: a live table in a terminal, a plain line for each task in a pipe."""

from __future__ import annotations

from typing import Literal

from dragoman.base.text import one_line
from dragoman.fleet.folder import Fleet
from dragoman.fleet.report import sums
from dragoman.fleet.result import OUTCOMES, AttemptResult
from dragoman.fleet.supervisor import FleetSupervisor
from dragoman.fleet.task import Task
from dragoman.words import say


class Lines:
    """A line for each end."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def started(self, task: Task, attempt: int, epoch: int) -> None: ...

    def ended(self, result: AttemptResult, state: Literal["done", "again", "stopped"]) -> None:
        self._print(_line(result, state, self._fleet.lock.attempts))

    def finish(self, supervisor: FleetSupervisor) -> int:
        total = sums(self._fleet)
        counts = ", ".join(f"{outcome_word(name)} {total.outcomes[name]}" for name in OUTCOMES if total.outcomes[name])
        self._print(say("fleet.summary", counts=counts, all=total.attempts, usd=f"{total.usd:.4f}", wasted=f"{total.lost_usd:.4f}"))
        if supervisor.fault is not None:
            raise supervisor.fault
        if supervisor.is_broke:
            self._print(say("fleet.stopped_by_budget", name=self._fleet.name))
            return 60
        if supervisor.is_stopping:
            self._print(say("fleet.stopped", name=self._fleet.name))
            return 130
        return 0 if total.outcomes["passed"] == total.attempts else 1

    def _print(self, text: str) -> None:
        try:
            print(text, flush=True)
        except OSError:
            pass  # the reader is gone; the fleet goes on


def watcher_for(fleet: Fleet) -> Lines:
    return Lines(fleet)


def outcome_word(name: str) -> str:
    return say(f"fleet.outcome_{name.replace(' ', '_')}")


def _line(result: AttemptResult, state: str, attempts: int) -> str:
    name = result.task if attempts == 1 else f"{result.task} #{result.attempt}"
    cost = f"${result.cost_usd:.4f}" if result.cost_usd is not None else "$?"
    again = "" if state == "done" else say("fleet.will_try_again") if state == "again" else say("fleet.left_for_resume")
    reason = f"  {one_line(result.reason, 200)}" if result.reason else ""
    return f"{outcome_word(result.outcome):<14} {one_line(name, 60)}  {result.seconds:.1f} s  {cost}{again}{reason}"
