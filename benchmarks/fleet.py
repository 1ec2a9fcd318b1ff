"""What the supervisor of a fleet costs: CPU for each task beside a bare asyncio loop of subprocesses, and memory by the number of tasks.

The workers are trivial, a shell that writes a result: the supervisor is measured, in a process of its own for each row.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import Table
from dragoman.fleet.folder import Lock, make_fleet
from dragoman.fleet.journal import FleetJournal
from dragoman.fleet.limiter import LocalLimiter
from dragoman.fleet.placement import LocalPool
from dragoman.fleet.result import AttemptResult
from dragoman.fleet.supervisor import FleetSupervisor
from dragoman.fleet.task import Task

WORKERS = 4
WRITES = """echo '{"task":"t","outcome":"passed"}' > "$8/result.json" """
"""`fleet work TASK --attempt N --epoch E --out DIR`: $8 is DIR."""
SHELL = ("/bin/sh", "-c", WRITES)


def run(*, quick: bool = False) -> list[Table]:
    counts = (20, 100) if quick else (100, 1_000, 10_000)
    table = Table("Supervisor of a fleet, with trivial workers", ["tasks", "bare loop ms", "supervisor ms", "above it ms", "MB"])
    for count in counts:
        bare, ours = _measured("bare", count), _measured("ours", count)
        bare_ms, ours_ms = bare["cpu_s"] / count * 1000, ours["cpu_s"] / count * 1000
        table.rows.append([count, bare_ms, ours_ms, ours_ms - bare_ms, ours["peak_mb"]])
    table.notes.append("CPU of the process itself for each task, without that of its workers; reading the tasks is in it.")
    table.notes.append(f"load of the machine meanwhile: {os.getloadavg()[0]:.1f}")
    return [table]


def _measured(what: str, count: int) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", "benchmarks.fleet", what, str(count)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


# --- the process that is measured


def main(what: str, count: str) -> None:
    with TemporaryDirectory() as folder:
        carry_out = {"bare": _bare, "ours": _ours}[what](Path(folder), int(count))
        before = time.process_time()
        asyncio.run(carry_out())
        cpu_s = time.process_time() - before
    print(json.dumps({"cpu_s": cpu_s, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def _bare(folder: Path, count: int) -> Callable[[], object]:
    """The least one can do: so many subprocesses, a few at a time, and a folder for each result."""

    async def all_of_them() -> None:
        left = iter(range(count))

        async def hand() -> None:
            for number in left:
                out = folder / str(number)
                out.mkdir()
                words = ["fleet", "work", "t", "--attempt", "1", "--epoch", "1", "--out", str(out)]
                process = await asyncio.create_subprocess_exec(*SHELL, *words, stdin=subprocess.DEVNULL, start_new_session=True)
                await process.wait()
                assert (out / "result.json").exists()

        await asyncio.gather(*(hand() for _ in range(WORKERS)))

    return all_of_them


def _ours(folder: Path, count: int) -> Callable[[], object]:
    async def fleet() -> None:
        settings = Lock(id="bench", version="", tasks=0, tasks_sha256="", scratch=str(folder))
        made = make_fleet(str(folder / "fleet"), (Task(f"t{number}", "prompt") for number in range(count)), settings)
        (folder / "scratch").mkdir()
        journal = FleetJournal(made.folder)
        pool = LocalPool(WORKERS, str(folder / "scratch"), mark="bench", program=SHELL)
        supervisor = FleetSupervisor(made, pool, LocalLimiter(), journal, Silent())
        supervisor.recover()
        await supervisor.run()
        journal.close()
        assert supervisor.is_done

    return fleet


class Silent:
    """An onlooker that shows nothing."""

    def started(self, task: Task, attempt: int, epoch: int) -> None: ...

    def ended(self, result: AttemptResult, state: str) -> None: ...


if __name__ == "__main__":
    main(*sys.argv[1:])
