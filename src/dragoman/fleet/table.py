"""How a fleet goes: a live table in a terminal, a plain line for each end in a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Literal, NamedTuple

from dragoman.base.graphemes import fit, width
from dragoman.base.text import bar, one_line
from dragoman.base.wrapping import USUAL_COLUMNS, columns_of, wrap_line
from dragoman.fleet.figures import cost_text, dollars, duration, outcome_word
from dragoman.fleet.folder import Fleet
from dragoman.fleet.limiter import LocalLimiter, is_used_up
from dragoman.fleet.report import summary_lines, sums
from dragoman.fleet.result import OUTCOMES, AttemptResult, Outcome
from dragoman.fleet.supervisor import FleetSupervisor
from dragoman.fleet.task import Task
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

REDRAWN_S = 0.25
MOST_RUNNING = 12
"""Rows for what runs; more are counted."""
USUAL_ROWS = 24
_BAR_COLUMNS = 24
_LEAST_NAME = 8
_STYLES: dict[Outcome, str] = {
    "passed": "32",
    "failed": "31",
    "agent limit": "33",
    "infrastructure": "35",
    "refused input": "31",
    "cancelled": "2",
}
State = Literal["done", "again", "stopped"]


class PlainLines:
    """A line for each end. Implements `Onlooker`."""

    color = False

    def __init__(self, fleet: Fleet, limiter: LocalLimiter) -> None:
        self._fleet = fleet
        self._limiter = limiter

    def begin(self, supervisor: FleetSupervisor) -> None: ...

    def started(self, task: Task, attempt: int, epoch: int) -> None: ...

    def ended(self, result: AttemptResult, state: State) -> None:
        self._print(self._line(result, state))

    def finish(self, supervisor: FleetSupervisor) -> int:
        """The sums, and the exit code. Raises what made the supervisor stop."""
        if (fault := supervisor.fault) is not None:
            if not isinstance(fault, OSError | DragomanError):
                raise fault
            reason = fault if isinstance(fault, DragomanError) else ": ".join(filter(None, (fault.filename, fault.strerror or str(fault))))
            raise InputError(say("fleet.stopped_by", reason=reason, name=self._fleet.name)) from fault
        total = sums(self._fleet)
        for line in summary_lines(self._fleet, total):
            self._print(line)
        if supervisor.is_broke or is_used_up(self._limiter.budget_usd, total.usd):
            is_done, name = supervisor.is_done, self._fleet.name
            self._print(say("fleet.budget_used_up") if is_done else say("fleet.stopped_by_budget", name=name))
            return 60
        if supervisor.is_stopping:
            self._print(say("fleet.stopped", name=self._fleet.name))
            return 130
        return 0 if total.outcomes["passed"] == total.attempts else 1

    def _line(self, result: AttemptResult, state: State) -> str:
        again = "" if state == "done" else say("fleet.will_try_again") if state == "again" else say("fleet.left_for_resume")
        name, padded = self._name(result.task, result.attempt), _padded(outcome_word(result.outcome), 14)
        painted = f"\x1b[{_STYLES[result.outcome]}m{padded}\x1b[m" if self.color else padded
        reason = f"  {one_line(result.reason, 200)}" if result.reason else ""
        cost = cost_text(result.cost_usd, is_least=result.is_cost_least)
        return f"{painted} {name}  {duration(result.seconds)}  {cost}{again}{reason}"

    def _name(self, task_id: str, attempt: int) -> str:
        name = one_line(task_id, 60)
        return name if self._fleet.lock.attempts == 1 else f"{name} #{attempt}"

    def _print(self, text: str) -> None:
        try:
            print(text, flush=True)
        except OSError:
            pass  # the reader is gone; the fleet goes on


class _Running(NamedTuple):
    name: str
    holder: str
    since_s: float
    epoch: int


class LiveTable(PlainLines):
    """The same, and under it what is done, what runs, what it costs and how long it may take."""

    def __init__(self, fleet: Fleet, limiter: LocalLimiter, *, color: bool) -> None:
        super().__init__(fleet, limiter)
        self.color = color
        self._supervisor: FleetSupervisor | None = None
        self._running: dict[tuple[str, int], _Running] = {}
        self._counts: dict[Outcome, int] = {}
        self._widths: list[int] = []
        """Of the lines of the table as it stands there."""
        self._began_s = time.monotonic()
        self._done = 0
        self._before = 0
        """What was done when it began."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, supervisor: FleetSupervisor) -> None:
        self._supervisor = supervisor
        self._before = supervisor.done_count
        self._tick()

    def started(self, task: Task, attempt: int, epoch: int) -> None:
        holder = f"{task.hash}.{attempt}.{epoch}"
        self._running[task.id, attempt] = _Running(self._name(task.id, attempt), holder, time.monotonic(), epoch)

    def ended(self, result: AttemptResult, state: State) -> None:
        self._running.pop((result.task, result.attempt), None)
        if state == "done":
            self._done += 1
            self._counts[result.outcome] = self._counts.get(result.outcome, 0) + 1
        super().ended(result, state)

    def finish(self, supervisor: FleetSupervisor) -> int:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._write(self._erase())
        return super().finish(supervisor)

    def _print(self, text: str) -> None:
        text = "\n".join(wrap_line(text, columns_of(sys.stdout), hang=2)) if not self.color or "\x1b" not in text else text
        self._write(f"{self._erase()}{text}\n{self._drawn() if self._timer is not None else ''}")

    def _tick(self) -> None:
        self._write(self._erase() + self._drawn())
        self._timer = asyncio.get_running_loop().call_later(REDRAWN_S, self._tick)

    def _erase(self) -> str:
        columns = columns_of(sys.stdout) or USUAL_COLUMNS
        rows = sum(max(-(-each // columns), 1) for each in self._widths)  # a terminal that was made narrower has broken them
        self._widths = []
        # The first line apart from the others: tmux keeps a screen that is cleared from its very top, each time.
        return f"\r\x1b[{rows}A\x1b[K\x1b[B\x1b[J\x1b[A" if rows else ""

    def _drawn(self) -> str:
        columns = columns_of(sys.stdout) or USUAL_COLUMNS
        lines = [fit(line, columns - 1) for line in self._lines(_rows_of_terminal() - 1, columns - 1)]
        self._widths = [width(line) for line in lines]
        return "".join(f"{line}\n" for line in lines)

    def _lines(self, most: int, columns: int) -> list[str]:
        """Not more than the terminal has room for: what has scrolled away can neither be erased nor drawn again."""
        total, done = self._fleet.slots, self._before + self._done
        share = done / total if total else 1.0
        filled = bar(share, _BAR_COLUMNS)
        counts = ", ".join(f"{outcome_word(name)} {self._counts[name]}" for name in OUTCOMES if self._counts.get(name))
        head = f"{self._fleet.name}  {filled}{'·' * (_BAR_COLUMNS - len(filled))}  {done}/{total}"
        rate, left = self._pace(total - done)
        spent = say("fleet.table_spent", usd=dollars(self._limiter.spent_usd), rate=rate, left=left)
        now_s = time.monotonic()
        running = sorted(self._running.values(), key=lambda each: each.since_s)
        room = max(most - 3, 0)
        shown = running if len(running) <= min(room, MOST_RUNNING) else running[: max(min(room - 1, MOST_RUNNING), 0)]
        figures = [self._running_figures(each, now_s) for each in shown]
        room_for_name = max(columns - 2 - max((width(each) for each in figures), default=0), _LEAST_NAME)
        longest = min(max((width(each.name) for each in shown), default=0), room_for_name)
        rows = [f"  {_padded(fit(each.name, longest), longest)}{line}" for each, line in zip(shown, figures, strict=True)]
        more = [f"  {say('fleet.table_more', count=len(running) - len(shown))}"] if len(running) > len(shown) else []
        lines = ["", f"{head}  {counts}", str(spent), *rows, *more]
        return lines[1:] if most < len(lines) else lines

    def _running_figures(self, each: _Running, now_s: float) -> str:
        again = f"  {say('fleet.table_start', epoch=each.epoch)}" if each.epoch > 1 else ""
        return f"  {duration(now_s - each.since_s):>7}  {dollars(self._limiter.spending(each.holder))}{again}"

    def _pace(self, left: int) -> tuple[str, str]:
        """Attempts per minute, and how long the rest may take."""
        passed_s = time.monotonic() - self._began_s
        if not self._done or passed_s < 1:
            return "–", "–"
        per_s = self._done / passed_s
        return f"{per_s * 60:.1f}", duration(left / per_s)

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            pass


def _padded(text: str, columns: int) -> str:
    return text + " " * max(columns - width(text), 0)


def _rows_of_terminal() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or USUAL_ROWS
    except (OSError, ValueError):
        return USUAL_ROWS


def onlooker_for(fleet: Fleet, limiter: LocalLimiter, *, no_color: bool) -> PlainLines:
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return PlainLines(fleet, limiter)
    return LiveTable(fleet, limiter, color=not (no_color or os.environ.get("NO_COLOR")))
