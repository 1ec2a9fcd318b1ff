"""Carries out a fleet: a pool of workers that is never waited for as a whole, retries by class of error, and one result for each attempt.

Everything it decides is on disk before it matters (journal.py): it may be killed at any moment, and also while it resumes.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from dragoman.base.processes import end_processes
from dragoman.fleet.costs import cost_of_start
from dragoman.fleet.folder import Fleet
from dragoman.fleet.journal import BudgetSet, EpochEnded, EpochStarted, FleetJournal, Reopened, replay
from dragoman.fleet.limiter import LocalLimiter
from dragoman.fleet.placement import AttemptOrder, Placement, WorkerEnd
from dragoman.fleet.report import sums
from dragoman.fleet.result import (
    INTERRUPTED,
    LOST,
    PLACE_LOST,
    AttemptResult,
    Outcome,
    UsedTokens,
    read_result,
    read_spent,
    write_result,
)
from dragoman.fleet.task import Task
from dragoman.words import say

SAME_FAILURES = 3
"""The same class of error at the same request, so often, is deterministic."""
MOST_FAILURES = 10
"""So many failures of an attempt are enough, whatever they were."""
_WAITING, _RUNNING, _DONE = 0, 1, 2


class Onlooker(Protocol):
    """Whoever shows how a fleet goes."""

    def started(self, task: Task, attempt: int, epoch: int) -> None: ...

    def ended(self, result: AttemptResult, state: Literal["done", "again", "stopped"]) -> None: ...


class FleetSupervisor:
    """One fleet under way. Its memory is a few bytes for each attempt."""

    def __init__(self, fleet: Fleet, placement: Placement, limiter: LocalLimiter, journal: FleetJournal, watcher: Onlooker) -> None:
        self.fleet = fleet
        self._placement = placement
        self._limiter = limiter
        self._journal = journal
        self._watcher = watcher
        self._state = bytearray(fleet.slots)
        self._epochs = array("H", bytes(2 * fleet.slots))
        self._failures: dict[int, list[str]] = {}
        self._fresh: Iterator[int] = iter(())
        self._due: deque[int] = deque()
        self._later = 0
        self._running: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._retry_delay_s: Callable[[int], float] = lambda failures: min(60.0, 2.0**failures) * random.uniform(0.5, 1.0)
        self.is_stopping = False
        self.is_broke = False
        """Whether the budget stopped it."""

    # --- the past

    def recover(self) -> None:
        """Take up what the journal tells. What was under way when the last supervisor died is ended, and its result taken if it has one by
        now: what comes from it later is none."""
        open_epochs, reopened = set[tuple[int, int]](), set[int]()
        for line in replay(self.fleet.folder):
            if isinstance(line, BudgetSet):
                continue
            slot = self.fleet.slot(line.task, line.attempt)
            match line:
                case EpochStarted():
                    self._epochs[slot] = line.epoch
                    open_epochs.add((slot, line.epoch))
                case EpochEnded():
                    open_epochs.discard((slot, line.epoch))
                    if line.is_accepted:
                        self._finish(slot)
                    elif line.failure:
                        self._failures.setdefault(slot, []).append(line.failure)
                case Reopened():
                    self._state[slot] = _WAITING
                    self._failures.pop(slot, None)
                    reopened.add(slot)
        for slot, epoch in open_epochs:
            task, attempt = self._task_and_attempt(slot)
            self._close_epoch(task, attempt, epoch, self._interrupted(task, attempt, epoch))
        if open_epochs:
            end_processes(None, self.fleet.lock.id)
        for slot, epoch in sorted(open_epochs):
            task, attempt = self._task_and_attempt(slot)
            lost = self._interrupted(task, attempt, epoch)
            self._journal.write_now([self._settle(slot, task, attempt, epoch, lost, is_interrupted=True)])
        for slot in reopened:
            if self._state[slot] == _WAITING:
                number, attempt = self.fleet.task_and_attempt(slot)
                self.fleet.reopen(self.fleet.task(number), attempt)
        self._find_results_again()
        if any(self._epochs):
            self._limiter.restate(sums(self.fleet).usd, {})

    def _task_and_attempt(self, slot: int) -> tuple[Task, int]:
        number, attempt = self.fleet.task_and_attempt(slot)
        return self.fleet.task(number), attempt

    def _find_results_again(self) -> None:
        """A machine that lost its power may have kept the journal and not the names of files: an attempt without a result is not done."""
        for slot in (slot for slot in range(self.fleet.slots) if self._state[slot] == _DONE):
            number, attempt = self.fleet.task_and_attempt(slot)
            task, epoch = self.fleet.task(number), self._epochs[slot]
            if self.fleet.has_result(task, attempt):
                continue
            result = read_result(self.fleet.epoch_folder(task, attempt, epoch))
            if result is not None and result.is_final:
                self.fleet.accept(task, attempt, epoch)
            else:
                self._state[slot] = _WAITING

    def _finish(self, slot: int) -> None:
        self._state[slot] = _DONE
        self._failures.pop(slot, None)

    # --- the present

    async def run(self) -> None:
        """Returns when everything is done, or nothing more is started and all that ran has ended."""
        await self._placement.clear()
        self._fresh = (slot for slot in range(self.fleet.slots) if self._state[slot] == _WAITING)
        try:
            while True:
                self._start_what_may()
                if not self._running and (self._is_over or not (self._later or self._due)):
                    return
                self._changed.clear()
                await self._changed.wait()
        finally:
            for each in self._running:
                each.cancel()
            if self._running:
                await asyncio.wait(self._running)

    @property
    def _is_over(self) -> bool:
        return self.is_stopping or self.is_broke

    @property
    def is_done(self) -> bool:
        """Whether every attempt has its result."""
        return self.done_count == self.fleet.slots

    @property
    def done_count(self) -> int:
        return self._state.count(_DONE)

    def stop(self) -> None:
        """Start nothing more, and end what runs."""
        self.is_stopping = True
        for each in self._running:
            each.cancel()
        self._changed.set()

    def _start_what_may(self) -> None:
        self.is_broke = self._limiter.is_spent
        while not self._is_over and len(self._running) < self._placement.workers:
            slot = self._due.popleft() if self._due else next(self._fresh, None)
            if slot is None:
                return
            self._state[slot] = _RUNNING
            task = asyncio.create_task(self._carry_out(slot))
            self._running.add(task)
            task.add_done_callback(self._has_ended)

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.is_stopping = True
            self.fault = error

    fault: BaseException | None = None
    """What made it stop: the disk is full, as a rule."""

    async def _carry_out(self, slot: int) -> None:
        """One epoch of one attempt."""
        number, attempt = self.fleet.task_and_attempt(slot)
        task = self.fleet.task(number)
        epoch = self._epochs[slot] = self.fleet.free_epoch(task, attempt, self._epochs[slot] + 1)
        order = AttemptOrder(task, attempt, epoch, self.fleet.make_epoch(task, attempt, epoch))
        await self._journal.write(EpochStarted(number, attempt, epoch, time.time_ns() // 1_000_000))
        self._watcher.started(task, attempt, epoch)
        is_cancelled = False
        try:
            ended = await self._placement.run(order)
        except asyncio.CancelledError:
            ended, is_cancelled = WorkerEnd(-signal.SIGTERM), True
        except OSError as error:
            ended = WorkerEnd(-1, str(error))
        line = self._settle(slot, task, attempt, epoch, self._lost_by(order, ended, is_cancelled=is_cancelled))
        await self._journal.write(line)

    def _settle(self, slot: int, task: Task, attempt: int, epoch: int, lost: AttemptResult, *, is_interrupted: bool = False) -> EpochEnded:
        """What an epoch's end means for its attempt: accepted, tried again, or left for a resume. `lost`: its result if it has none."""
        result = self._close_epoch(task, attempt, epoch, lost)
        cost = cost_of_start(self.fleet.epoch_folder(task, attempt, epoch))
        self._limiter.end(f"{task.hash}.{attempt}.{epoch}", cost.usd or 0.0)
        self.is_broke = self.is_broke or self._limiter.is_spent
        failure = ""
        if result.outcome == "infrastructure" or (result.outcome == "cancelled" and not (self._is_over or is_interrupted)):
            # Whoever kills a worker thrice need not mean the task: that never counts as the same failure.
            is_lost = result.error_type.startswith((LOST, PLACE_LOST)) or not result.is_final
            failure = f"{result.error_type or result.outcome} {epoch if is_lost else result.request_hash}"
        may_go_on = not failure or self._may_go_on(slot, failure, result)
        is_final = result.is_final and not (failure and may_go_on)
        is_left = not is_final and (self._is_over or not may_go_on)
        if is_final:
            self.fleet.accept(task, attempt, epoch)
            self._finish(slot)
        else:
            self._wait_again(slot, failure, is_due=not is_left and not is_interrupted)
        self._watcher.ended(result, "done" if is_final else "stopped" if is_left else "again")
        number = slot % self.fleet.lock.tasks
        return EpochEnded(number, attempt, epoch, result.outcome, is_final, failure, cost.usd)

    def _close_epoch(self, task: Task, attempt: int, epoch: int, lost: AttemptResult) -> AttemptResult:
        """The result of an epoch: its own, or `lost` in its place. From now on no other can be put there."""
        folder = self.fleet.epoch_folder(task, attempt, epoch)
        result = read_result(folder)
        if result is None:
            write_result(folder, lost)
            result = read_result(folder) or lost
        return result

    def _may_go_on(self, slot: int, failure: str, result: AttemptResult) -> bool:
        """Whether another start may end differently."""
        before = self._failures.get(slot, [])
        is_retryable = result.retryable or not result.is_final
        return is_retryable and before.count(failure) + 1 < SAME_FAILURES and len(before) + 1 < MOST_FAILURES

    def _wait_again(self, slot: int, failure: str, *, is_due: bool) -> None:
        """`is_due`: whether it is started again by this supervisor, and not by a resume."""
        self._state[slot] = _WAITING
        if failure:
            self._failures.setdefault(slot, []).append(failure)
        if not is_due:
            return
        self._later += 1
        asyncio.get_running_loop().call_later(
            self._retry_delay_s(len(self._failures.get(slot, ()))) if failure else 0.0, self._make_due, slot
        )

    def _make_due(self, slot: int) -> None:
        self._later -= 1
        self._due.append(slot)
        self._changed.set()

    # --- results of workers that left none

    def _lost_by(self, order: AttemptOrder, ended: WorkerEnd, *, is_cancelled: bool) -> AttemptResult:
        if is_cancelled:
            return self._lost(order.task, order.attempt, order.epoch, "", say("cancelled"), outcome="cancelled")
        name = signal.Signals(-ended.code).name if -ended.code in signal.valid_signals() else str(ended.code)
        reason = say("fleet.worker_lost", how=name, detail=f" ({ended.detail})" if ended.detail else "", path=order.out)
        return self._lost(order.task, order.attempt, order.epoch, PLACE_LOST if ended.is_place_lost else f"{LOST}:{name}", reason)

    def _interrupted(self, task: Task, attempt: int, epoch: int) -> AttemptResult:
        return self._lost(task, attempt, epoch, INTERRUPTED, say("fleet.interrupted"))

    def _lost(
        self, task: Task, attempt: int, epoch: int, error_type: str, reason: str, outcome: Outcome = "infrastructure"
    ) -> AttemptResult:
        """What is known of a worker that left no result: what it had spent."""
        spent = read_spent(self.fleet.epoch_folder(task, attempt, epoch))
        return AttemptResult(
            task=task.id,
            task_hash=task.hash,
            attempt=attempt,
            epoch=epoch,
            outcome="cancelled" if error_type == INTERRUPTED else outcome,
            reason=reason,
            error_type=error_type,
            request_hash=spent.request_hash,
            retryable=True,
            model=task.model or self.fleet.lock.model,
            requests=spent.requests,
            tokens=UsedTokens(spent.input, spent.cache_read, spent.output),
            cost_usd=spent.usd,
            estimated_usd=spent.estimated_usd,
            is_cost_least=spent.is_least,
        )
