"""Whatever is killed, each task has exactly one result, none is lost, what lost starts have cost is counted, and the budget holds.

The service counts for itself what it was sent.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.testing.script_steps import Wait
from fleet.fleets import MODEL, answer_by_task, fleet_files, results, task, write_tasks
from processes import alive, below
from program import Place, Service

TASKS = 1_000 if os.environ.get("DRAGOMAN_LONG") == "1" else 60
SUPERVISORS = 5
"""How often the supervisor is killed: the last time while it resumes."""
EACH_WORKER_S = 0.7 if TASKS == 60 else 1.5
LIMIT_S = 60 * TASKS
WORKERS = 4
ONE_TASK_USD, ONE_REQUEST_USD = 0.0398, 0.02
"""What a task costs, and more than any of its requests does."""
INPUT_USD, OUTPUT_USD = 5 / 1e6, 25 / 1e6
"""A token."""


def test_every_task_has_one_result_whatever_is_killed(place: Place, serve: Callable[..., Service]) -> None:
    chance = random.Random(7)
    ledger = _Ledger(chance)
    service = serve(_storming(ledger.choose, chance), keep=10)
    write_tasks(place, [task(f"t{number}") for number in range(TASKS)])
    killer = _WorkerKiller(chance)
    killer.start()
    budget_usd = 0.8 * TASKS * ONE_TASK_USD  # named once: it holds for all that come after
    words = ("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", str(WORKERS), "--budget-usd", str(budget_usd))
    process = place.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for number in range(1, SUPERVISORS):
        _wait_for(lambda done=TASKS * number // (2 * SUPERVISORS): _accepted(place) >= done, process, killer)
        _kill(process)
        process = _resume(place)
    time.sleep(chance.uniform(0.2, 0.6))
    _kill(process)  # while it resumes, or just after
    process = _resume(place)
    killer.supervisor = process.pid
    assert process.wait(LIMIT_S) == 60, (place.work / "resume.txt").read_text()[-2_000:]
    spent_usd = sum(row["cost_usd"] + row["lost_usd"] for row in results(place))
    assert budget_usd - 1e-9 <= spent_usd <= budget_usd + WORKERS * ONE_REQUEST_USD
    ledger.require_at_most(budget_usd + WORKERS * ONE_REQUEST_USD)
    told = _status(place)
    assert told["cost_usd"] == pytest.approx(spent_usd)
    assert (told["is_budget_spent"], told["is_cost_least"]) == (True, True)
    process = _resume(place, "--budget-usd", str(10 * budget_usd))
    _wait_for(lambda: _accepted(place) >= TASKS * 0.9, process, killer)
    killer.supervisor = 0  # the last ones would be all that is left to be killed, again and again
    code = process.wait(LIMIT_S)
    killer.stop()
    assert code == 0, (place.work / "resume.txt").read_text()[-2_000:]
    lost = _require_one_result_each(place)
    assert killer.killed > 0
    told = _status(place)
    ledger.require_told(told)
    asked = sum(_spent(path).get("requests", 0) for path in fleet_files(place).rglob("spent.jsonl"))
    assert told["requests"] == asked >= ledger.asked
    print(f"${told['cost_usd']:.4f} were told, ${told['estimated_usd']:.4f} of it estimated; the service was sent ${ledger.sent_usd:.4f}")
    print(f"{TASKS} tasks: {SUPERVISORS} supervisors and {killer.killed} processes of workers killed, {lost} starts lost")
    print(f"{asked} requests were sent")
    print(f"${spent_usd:.4f} were spent of a budget of ${budget_usd:.4f} when it was used up")
    assert service.server.requests
    assert not alive(str(place.work)), "something of the fleet still runs"
    assert not Path(json.loads((fleet_files(place) / "lock.json").read_text())["scratch"]).exists()


def _require_one_result_each(place: Place) -> int:
    """Returns how many starts came to nothing."""
    rows = results(place)
    assert [row["task"] for row in rows] == [f"t{number}" for number in range(TASKS)]
    assert Counter(row["outcome"] for row in rows) == {"passed": TASKS}
    lines = [json.loads(line) for line in (fleet_files(place) / "journal.jsonl").read_text().splitlines() if line]
    accepted = Counter(line["task"] for line in lines if line["e"] == "end" and line.get("is_accepted"))
    assert accepted == dict.fromkeys(range(TASKS), 1)
    starts = Counter((line["task"], line["epoch"]) for line in lines if line["e"] == "start")
    assert set(starts.values()) == {1}, "an epoch was started twice"
    for number in range(TASKS):
        folder = fleet_files(place) / "tasks" / f"t{number}" / "1"
        result = json.loads((folder / "result.json").read_text())
        assert f"+t{number}" in result["diff"]
        assert (folder / "result.json").stat().st_ino == (folder / f"epoch-{result['epoch']}" / "result.json").stat().st_ino
    spent = sum(_spent(path).get("usd", 0.0) for path in fleet_files(place).rglob("spent.jsonl"))
    told = sum(row["cost_usd"] + row["lost_usd"] for row in rows)
    assert abs(spent - told) < 1e-6, "what lost starts have spent is not counted"
    done = set[int]()
    for line in lines:
        if line["e"] == "start":
            assert line["task"] not in done, "what was done was started again"
        elif line.get("is_accepted"):
            done.add(line["task"])
    return len(starts) - TASKS


class _Ledger:
    """What the service counts: of each request that it did not refuse its input, and of the answer everything that would come."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.asked = 0
        self.sent_usd = self.answers_usd = 0.0

    def choose(self, request: Any) -> Any:
        """Now and then the answer takes a while to begin, or to end: long enough to be killed meanwhile."""
        answer = answer_by_task(request)
        begins_late, ends_late = self._chance.random() < 0.25, self._chance.random() < 0.25
        pauses = [Wait(self._chance.uniform(0.2, 1.0)) if is_late else None for is_late in (begins_late, ends_late)]
        answer = msgspec.structs.replace(answer, steps=tuple(step for step in (pauses[0], *answer.steps, pauses[1]) if step is not None))
        usage = answer.usage_or(request.input_tokens)
        self.asked += 1
        self.sent_usd += usage.input_tokens * INPUT_USD
        self.answers_usd += usage.output_tokens * OUTPUT_USD
        return answer

    def require_at_most(self, usd: float) -> None:
        assert self.sent_usd + self.answers_usd <= usd

    def require_told(self, told: dict[str, Any]) -> None:
        assert told["cost_usd"] >= self.sent_usd, "what was sent does not count"
        assert told["is_cost_least"] or told["cost_usd"] >= self.sent_usd + self.answers_usd


def _status(place: Place) -> dict[str, Any]:
    return json.loads(place.run("fleet", "status", "tasks", "--output-format", "json").out)


def _spent(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text().splitlines()[-1])


def _storming(choose: Callable[[Any], Any], chance: random.Random) -> Callable[[Any], Any]:
    """The same service, which refuses for a moment now and then."""
    from dragoman.testing.script import Script

    refused_until = 0.0

    def answer(request: Any) -> Any:
        nonlocal refused_until
        if time.monotonic() < refused_until or chance.random() < 0.01:
            refused_until = max(refused_until, time.monotonic() + 0.3)
            return Script.parse("error: 429 retry_after=0.2").answers[0]
        return choose(request)

    return answer


def _resume(place: Place, *words: str) -> subprocess.Popen[bytes]:
    with (place.work / "resume.txt").open("ab") as out:
        return place.start("fleet", "resume", "tasks", "--workers", str(WORKERS), *words, stdout=out, stderr=out)


def _accepted(place: Place) -> int:
    try:
        return (fleet_files(place) / "journal.jsonl").read_bytes().count(b'"is_accepted":true')
    except FileNotFoundError:
        return 0


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], killer: _WorkerKiller) -> None:
    killer.supervisor = process.pid
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None, f"the supervisor ended with {process.returncode}"
        assert time.monotonic() < until
        time.sleep(0.05)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)


class _WorkerKiller(threading.Thread):
    """Kills a worker, or something below one, every now and then."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.supervisor = 0
        self.killed = 0
        self._chance = chance
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(self._chance.uniform(0.5, 1.5) * EACH_WORKER_S):
            if self.supervisor and (found := below(self.supervisor)):
                try:
                    os.kill(self._chance.choice(found), signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    continue

    def stop(self) -> None:
        self._over.set()
        self.join(60)
