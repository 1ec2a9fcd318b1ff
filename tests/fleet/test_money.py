"""What a fleet says that it has spent, and its budget, when workers are killed with requests under way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dragoman.testing.script import Script
from fleet.fleets import MODEL, results, task, write_tasks
from processes import below
from program import Place, Service

TOLD_USD = 0.2008
"""What the service tells of each request: $5 and $25 for a million tokens."""
USAGE = "usage: fresh=40000 output=1\n"
ANSWER = f"{USAGE}text: done\nusage: fresh=40000 output=32"


class KillingService:
    """Answers at once, but for the first requests: whoever sent one of those is killed while it waits."""

    def __init__(self, place: Place, kills: int, held: str) -> None:
        self._place = place
        self.kills = kills
        self._held = held
        self.asked = 0
        self.supervisor: subprocess.Popen[bytes] | None = None

    def choose(self, request: Any) -> Any:
        self.asked += 1
        if self.asked > self.kills:
            return Script.parse(ANSWER).answers[0]
        threading.Timer(0.3, self._kill).start()
        return Script.parse(self._held).answers[0]

    def _kill(self) -> None:
        assert self.supervisor is not None
        for pid in below(self.supervisor.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def run_killing(place: Place, serve: Callable[..., Service], kills: int, held: str, *words: str) -> tuple[int, KillingService]:
    """Carry out one task of one request; returns the exit code."""
    service = KillingService(place, kills, held)
    serve(service.choose)
    write_tasks(place, [task("one", check="")])
    service.supervisor = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", "1", *words)
    service.supervisor.communicate(timeout=60)
    return service.supervisor.returncode, service


def status_of(place: Place) -> dict[str, Any]:
    return json.loads(place.run("fleet", "status", "tasks", "--output-format", "json").out)


def test_what_a_killed_worker_had_in_flight_is_counted_and_the_cost_is_told_as_the_least(
    place: Place, serve: Callable[..., Service]
) -> None:
    """Three starts were lost before the service had told anything: they counted as nothing, and the sum was told as exact."""
    code, service = run_killing(place, serve, 3, "wait: 600\ntext: late")
    assert (code, service.asked) == (0, 4)
    told = status_of(place)
    assert told["requests"] == 4
    assert told["is_cost_least"]
    assert told["cost_usd"] == pytest.approx(TOLD_USD + told["estimated_usd"])
    assert told["lost_usd"] == pytest.approx(told["estimated_usd"])
    assert told["estimated_usd"] > 3 * 0.01, "each has a system prompt and tools of some thousand tokens"
    [row] = results(place)
    assert row["cost_usd"] == pytest.approx(TOLD_USD)
    assert (row["is_cost_least"], row["epochs"]) == (True, 4)
    assert row["lost_usd"] == pytest.approx(told["lost_usd"])
    shown = place.run("fleet", "status", "tasks").out
    assert f"at least ${told['cost_usd']:.4f}, of it ${told['lost_usd']:.4f} for starts that were lost" in shown
    assert f"${told['estimated_usd']:.4f} of it is an estimate" in shown
    assert "at least $" in place.run("fleet", "show", "tasks", "one").out


def test_a_budget_holds_though_workers_are_killed_before_their_answers_end(place: Place, serve: Callable[..., Service]) -> None:
    """Five requests went out for $1.004, with a budget of $0.25; $0.2008 were told, and the exit code was 0."""
    code, service = run_killing(place, serve, 4, f"{USAGE}text: begun\nwait: 600\ntext: late", "--budget-usd", "0.25")
    assert (code, service.asked) == (60, 2), "the second was in flight when the first had used most of it"
    told = status_of(place)
    assert told["cost_usd"] == pytest.approx(2 * 0.2, abs=1e-3)
    assert told["estimated_usd"] == 0, "the service had told of the input before its answer was cut"
    assert (told["is_cost_least"], told["budget_usd"], told["is_budget_spent"]) == (True, 0.25, True)
    assert "--budget-usd MORE" in place.run("fleet", "status", "tasks").out
    assert place.run("fleet", "resume", "tasks").code == 60
    assert service.asked == 2
    service.kills = 0
    assert place.run("fleet", "resume", "tasks", "--budget-usd", "9").code == 0
    assert status_of(place)["is_budget_spent"] is False
