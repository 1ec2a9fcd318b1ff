"""What a supervisor makes of how workers end, with workers that are scripts of a line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.fleet import ending, placement
from dragoman.fleet.ending import Watchdog, is_overdue, is_waiting
from dragoman.fleet.folder import Fleet, Lock, make_fleet
from dragoman.fleet.journal import EpochEnded, EpochStarted, FleetJournal, replay
from dragoman.fleet.limiter import LocalLimiter
from dragoman.fleet.placement import AttemptOrder, LocalPool
from dragoman.fleet.report import sums
from dragoman.fleet.result import AttemptSpending
from dragoman.fleet.supervisor import MOST_FAILURES, FleetSupervisor
from dragoman.fleet.task import Task, TaskLimits

PASSES = """echo '{"task":"one","outcome":"passed"}' > "$8/result.json" """
"""`fleet work TASK --attempt N --epoch E --out DIR`: $8 is DIR."""


class Silent:
    """An onlooker that keeps what it was told."""

    def __init__(self) -> None:
        self.states: list[str] = []

    def started(self, task: Task, attempt: int, epoch: int) -> None: ...

    def ended(self, result: Any, state: str) -> None:
        self.states.append(state)


def new_fleet(folder: Path, tasks: Iterable[Task]) -> Fleet:
    (folder / "scratch").mkdir()
    return make_fleet(str(folder / "fleet"), tasks, Lock(id=os.urandom(6).hex(), version="", tasks=0, tasks_sha256="", scratch=str(folder)))


def supervise(fleet: Fleet, worker: str, when_open: Callable[[], object] = lambda: None) -> tuple[FleetSupervisor, Silent]:
    """Carry it out, or go on with it, without a pause before another start."""
    watcher = Silent()

    async def run() -> FleetSupervisor:
        journal = FleetJournal(fleet.folder)
        pool = LocalPool(2, str(Path(fleet.lock.scratch) / "scratch"), mark=fleet.lock.id, program=("/bin/sh", "-c", worker))
        supervisor = FleetSupervisor(fleet, pool, LocalLimiter(), journal, watcher)
        supervisor._retry_delay_s = lambda failures: 0.0
        await pool.open()
        when_open()
        supervisor.recover()
        await supervisor.run()
        journal.close()
        return supervisor

    return asyncio.run(run()), watcher


def ends(fleet: Fleet) -> list[EpochEnded]:
    return [line for line in replay(fleet.folder) if isinstance(line, EpochEnded)]


def test_an_attempt_that_somebody_ends_each_time_is_left_after_ten_starts(tmp_path: Path) -> None:
    """What watches the memory of a machine sends TERM first: the worker says that it was cancelled, and each start costs money."""
    fleet = new_fleet(tmp_path, [Task("one", "p")])
    ended, watcher = supervise(fleet, PASSES.replace("passed", "cancelled"))
    assert len(ends(fleet)) == MOST_FAILURES
    assert watcher.states == ["again"] * (MOST_FAILURES - 1) + ["stopped"]
    assert not ended.is_done
    again, _ = supervise(fleet, PASSES)
    assert again.is_done, "a resume runs it"


def test_starts_that_were_lost_with_their_supervisors_are_no_failures(tmp_path: Path) -> None:
    fleet = new_fleet(tmp_path, [Task("one", "p")])
    journal = FleetJournal(fleet.folder)
    journal.write_now([EpochStarted(0, 1, 30)])
    journal.close()
    fleet.make_epoch(fleet.task(0), 1, 30)
    ended, watcher = supervise(fleet, f"""case "$8" in *epoch-3[1-4]) kill -9 $$;; *) {PASSES};; esac""")
    assert watcher.states == ["again"] * 5 + ["done"]
    assert ended.is_done


def test_a_result_whose_name_was_lost_is_found_or_made_again(tmp_path: Path) -> None:
    """A power cut may take the names of files that the journal already speaks of."""
    fleet = new_fleet(tmp_path, [Task("one", "p"), Task("two", "p"), Task("three", "p")])
    supervise(fleet, PASSES)
    for name in ("one", "two"):
        (tmp_path / "fleet" / "tasks" / name / "1" / "result.json").unlink()
    (tmp_path / "fleet" / "tasks" / "two" / "1" / "epoch-1" / "result.json").unlink()
    ended, _ = supervise(fleet, PASSES)
    assert ended.is_done
    results = {task.id: fleet.has_result(task, 1) for task in fleet.tasks()}
    assert results == {"one": True, "two": True, "three": True}
    starts = [line.task for line in replay(fleet.folder) if isinstance(line, EpochStarted)]
    assert sorted(starts) == [0, 1, 1, 2]


def test_a_line_after_one_that_was_cut_off_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was full for a moment."""
    journal = FleetJournal(str(tmp_path))
    journal.write_now([EpochStarted(0, 1, 1)])
    with monkeypatch.context() as patch:

        def half(descriptor: int, data: bytes) -> None:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(28, "No space left on device")

        patch.setattr("dragoman.fleet.journal.write_whole", half)
        with pytest.raises(OSError, match="No space"):
            asyncio.run(journal.write(EpochStarted(1, 1, 1)))
    asyncio.run(journal.write(EpochStarted(2, 1, 1)))
    journal.close()
    assert [line.task for line in replay(str(tmp_path)) if isinstance(line, EpochStarted)] == [0, 2]


def test_a_clock_that_jumps_makes_no_worker_overdue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that slept, or whose clock was set: all that runs would be killed, and its cost lost."""
    watchdog = Watchdog(str(tmp_path))
    watchdog.set(600)
    real = time.time()
    for jump_s in (-1e6, 1e6):
        monkeypatch.setattr(ending.time, "time", lambda jump_s=jump_s: real + jump_s)
        assert not is_overdue(str(tmp_path))
    watchdog.set(None, is_waiting=True)
    assert is_waiting(str(tmp_path))
    assert not is_overdue(str(tmp_path))
    watchdog.set(None)
    assert not is_waiting(str(tmp_path))


def test_a_worker_that_waits_for_the_service_is_not_taken_for_stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a storm of 429 holds it up."""
    monkeypatch.setattr(placement, "MARGIN_S", 0.0)
    monkeypatch.setattr(placement, "LOOK_S", 0.02)
    order = AttemptOrder(Task("one", "p", limits=TaskLimits(seconds=0.05)), 1, 1, str(tmp_path))
    (tmp_path / "deadline").write_text("waits")
    waiting = LocalPool(1, str(tmp_path), mark="waits", program=("/bin/sh", "-c", "sleep 1; exit 3"))
    assert asyncio.run(waiting.run(order)).code == 3
    (tmp_path / "deadline").write_text("")
    stuck = LocalPool(1, str(tmp_path), mark="stuck", program=("/bin/sh", "-c", "sleep 1000"))
    assert asyncio.run(stuck.run(order)).code == -signal.SIGKILL


def test_what_is_under_way_is_ended_before_its_copy_is_removed(tmp_path: Path) -> None:
    """A check that still runs while its files vanish would be a wrong answer, and count."""
    fleet = new_fleet(tmp_path, [Task("one", "p")])
    journal = FleetJournal(fleet.folder)
    journal.write_now([EpochStarted(0, 1, 1)])
    journal.close()
    out = fleet.make_epoch(fleet.task(0), 1, 1)
    copy = tmp_path / "scratch" / "one-1-1" / "work"
    copy.mkdir(parents=True)
    (copy / "file").write_text("")
    script = f"""while test -e {copy}/file; do :; done; echo '{json.dumps({"task": "one", "outcome": "failed"})}' > {out}/result.json"""
    with subprocess.Popen(["/bin/sh", "-c", script], env={"DRAGOMAN_CALL": f"{fleet.lock.id}.x"}, start_new_session=True) as left:
        ended, watcher = supervise(fleet, PASSES)
        left.wait(60)
    assert ended.is_done
    assert watcher.states == ["again", "done"]


def test_a_result_that_is_written_when_the_copy_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    """What is under way may not be found at once, as a process that is just being started: its result is refused then, not raced with."""
    fleet = new_fleet(tmp_path, [Task("one", "p")])
    journal = FleetJournal(fleet.folder)
    journal.write_now([EpochStarted(0, 1, 1)])
    journal.close()
    out = fleet.make_epoch(fleet.task(0), 1, 1)
    copy = tmp_path / "scratch" / "one-1-1" / "work"
    copy.mkdir(parents=True)
    (copy / "file").write_text("")
    told = json.dumps({"task": "one", "outcome": "failed", "reason": "its files had vanished"})
    script = f"while test -e {copy}/file; do sleep 0.01; done; echo '{told}' > {out}/made; ln {out}/made {out}/result.json"
    with subprocess.Popen(["/bin/sh", "-c", script], env={"PATH": os.environ["PATH"]}, stderr=subprocess.DEVNULL) as unseen:
        ended, watcher = supervise(fleet, PASSES, lambda: unseen.wait(60) if not copy.exists() else None)
        unseen.wait(60)
    assert (tmp_path / "fleet" / "tasks" / "one" / "1" / "epoch-1" / "made").exists(), "it came to its end"
    assert ended.is_done
    assert watcher.states == ["again", "done"]
    result = fleet.result(fleet.task(0), 1)
    assert result is not None
    assert result.outcome == "passed"


def test_a_start_that_is_not_known_to_have_ended_counts_with_what_was_in_flight(tmp_path: Path) -> None:
    """Its supervisor was killed with it: a resume counts it, and so does the status, by the same figure."""
    fleet = new_fleet(tmp_path, [Task("one", "p")])
    journal = FleetJournal(fleet.folder)
    journal.write_now([EpochStarted(0, 1, 1)])
    journal.close()
    out = Path(fleet.make_epoch(fleet.task(0), 1, 1))
    (out / "spent.jsonl").write_bytes(
        msgspec.json.encode(AttemptSpending(requests=2, usd=0.75, estimated_usd=0.5, in_flight_usd=0.5, under_way=1, is_least=True))
    )
    ended, _ = supervise(fleet, PASSES)
    assert ended._limiter.spent_usd == 0.75
    total = sums(fleet)
    assert (total.usd, total.lost_usd, total.estimated_usd, total.is_cost_least, total.requests) == (0.75, 0.75, 0.5, True, 2)
    again, _ = supervise(fleet, PASSES)
    assert again._limiter.spent_usd == 0.75
