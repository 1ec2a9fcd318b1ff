"""What went wrong in other programs' fleets, by their users' reports; and the promises about limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from dragoman.testing.script import Script
from fleet.fleets import MODEL, answer_by_task, fleet_files, results, run_fleet, task, task_of, write_tasks
from processes import alive, marked_sleep, started_within
from program import Place, Service

ONE_REQUEST_USD = 0.02
"""More than any request of these tests costs."""


def script(text: str) -> Any:
    return Script.parse(text).answers[0]


def command(line: str) -> str:
    return f"call: run_shell {json.dumps({'command': line})}"


def test_a_command_that_heeds_nothing_is_gone_with_its_attempt(place: Place, serve: Callable[..., Service]) -> None:
    """A runaway command held a job two hours past its deadline."""
    sleeping = marked_sleep()
    stubborn = f"trap '' TERM HUP; (setsid sh -c \"trap '' TERM HUP; {sleeping} & wait\" &) ; {sleeping}"
    serve(lambda request: script(command(stubborn)))
    write_tasks(place, [task("slow", limits={"seconds": 1.0})])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL)
    assert started_within(60, sleeping, 2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, (out, err)
    assert not alive(sleeping)
    row = results(place)[0]
    assert row["outcome"] == "agent limit"
    assert row["seconds"] < 1 + 10  # the promise: its deadline and ten seconds


def test_nothing_is_asked_after_the_deadline(place: Place, serve: Callable[..., Service]) -> None:
    """An agent was billed on after its deadline."""
    counter = iter(range(10_000))
    service = serve(lambda request: script(f"wait: 0.05\n{command(f'echo {next(counter)}')}"))
    write_tasks(place, [task("busy", limits={"seconds": 1.5, "turns": 10_000})])
    assert run_fleet(place).code == 1
    row = results(place)[0]
    assert row["outcome"] == "agent limit"
    assert "1.5 s" in row["reason"]
    assert row["requests"] == len(service.requests)


def test_a_deterministic_error_ends_after_three_starts(place: Place, serve: Callable[..., Service]) -> None:
    """A deterministic 500 was retried 1,149 times."""
    service = serve(lambda request: script("error: 500"))
    config(place)
    write_tasks(place, [task("one")])
    assert run_fleet(place).code == 1
    row = results(place)[0]
    assert (row["outcome"], row["error_type"], row["epochs"]) == ("infrastructure", "ServerError", 3)
    assert len(service.requests) == 9  # three starts, each with three attempts


def test_a_failed_setup_stays_in_the_denominator(place: Place, serve: Callable[..., Service]) -> None:
    """Setup failures were dropped from the denominator."""
    service = serve(answer_by_task)
    write_tasks(place, [task("good"), task("bad", setup="echo no disk; exit 7")])
    done = run_fleet(place)
    assert done.code == 1
    rows = {row["task"]: row for row in results(place)}
    assert rows["bad"]["outcome"] == "infrastructure"
    assert "exit code 7: no disk" in rows["bad"]["reason"]
    assert rows["bad"]["epochs"] == 3
    assert "all: 2" in done.out
    assert {task_of_body(body) for body in service.requests} == {"good"}


def task_of_body(body: dict[str, Any]) -> str:
    return task_of(type("Asked", (), {"body": body})())


def test_a_free_worker_takes_the_next_task_at_once(place: Place, serve: Callable[..., Service]) -> None:
    """Waves instead of a pool: one slow task kept all other workers idle."""
    others, finished = 5, set[str]()
    all_done, turns = threading.Event(), iter(range(10_000))

    def choose(request: Any) -> Any:
        name = task_of(request)
        if name == "slow":
            if not all_done.is_set():
                return script(command(f"sleep 0.2; echo {next(turns)}"))
            return answer_by_task(request) if len(request.body["messages"]) < 4 else script("text: done")
        if len(request.body["messages"]) > 4:
            finished.add(name)
            if len(finished) == others:
                all_done.set()
        return answer_by_task(request)

    serve(choose)
    write_tasks(place, [task("slow", check=""), *(task(f"quick{number}") for number in range(others))])
    assert run_fleet(place, "--workers", "2").code == 0


def test_waiting_for_the_service_is_no_work(place: Place, serve: Callable[..., Service]) -> None:
    """Waiting was counted as working: a task whose service had asked to wait ran out of time."""
    refused = set[str]()

    def choose(request: Any) -> Any:
        name = task_of(request)
        if name not in refused:
            refused.add(name)
            return script("error: 429 retry_after=6")
        return answer_by_task(request)

    serve(choose)
    write_tasks(place, [task("one", limits={"seconds": 5}), task("two", limits={"seconds": 5})])
    assert run_fleet(place, "--workers", "2").code == 0
    for row in results(place):
        assert row["waited_s"] > 5
        assert row["epochs"] == 1


def test_a_storm_of_429_slows_all_and_fails_none(place: Place, serve: Callable[..., Service]) -> None:
    turn = iter(range(1_000_000))

    def choose(request: Any) -> Any:
        return script("error: 429 retry_after=0.1") if next(turn) % 3 == 0 else answer_by_task(request)

    serve(choose)
    write_tasks(place, [task(f"t{number}") for number in range(6)])
    assert run_fleet(place, "--workers", "3").code == 0
    assert {(row["outcome"], row["epochs"]) for row in results(place)} == {("passed", 1)}


def test_the_budget_holds_for_the_whole_fleet(place: Place, serve: Callable[..., Service]) -> None:
    service = serve(answer_by_task)
    write_tasks(place, [task(f"t{number}") for number in range(8)])
    done = run_fleet(place, "--workers", "2", "--budget-usd", "0.1")
    assert done.code == 60, done
    assert "dragoman fleet resume tasks --budget-usd" in done.out
    rows = results(place)
    assert len(rows) == 8
    assert {row["outcome"] for row in rows} == {"passed", "cancelled"}
    spent = sum(row["cost_usd"] + row["lost_usd"] for row in rows)
    assert 0.1 <= spent <= 0.1 + 2 * ONE_REQUEST_USD
    asked = len(service.requests)
    assert place.run("fleet", "resume", "tasks", "--budget-usd", "0.1").code == 60
    assert len(service.requests) == asked  # spent is spent
    assert place.run("fleet", "resume", "tasks", "--budget-usd", "9").code == 0
    assert {row["outcome"] for row in results(place)} == {"passed"}


def test_a_result_that_the_journal_does_not_know_is_taken(place: Place, serve: Callable[..., Service]) -> None:
    """A kill between a result and the note of it reran finished work."""
    service = serve(answer_by_task)
    write_tasks(place, [task("one"), task("two")])
    assert run_fleet(place, "--workers", "1").code == 0
    journal = fleet_files(place) / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # cut off in the middle of the line
    (fleet_files(place) / "tasks" / "two" / "1" / "result.json").unlink()
    asked = len(service.requests)
    assert place.run("fleet", "resume", "tasks").code == 0
    assert len(service.requests) == asked
    assert [row["outcome"] for row in results(place)] == ["passed", "passed"]


def test_ctrl_c_leaves_nothing_behind_and_a_resume_goes_on(place: Place, serve: Callable[..., Service]) -> None:
    """Containers were leaked by the dozen."""
    sleeping = marked_sleep()
    is_calm = threading.Event()
    serve(lambda request: answer_by_task(request) if is_calm.is_set() else script(command(sleeping)))
    write_tasks(place, [task("one"), task("two")])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", "2")
    assert started_within(60, sleeping, 2)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert not alive(sleeping)
    assert {row["outcome"] for row in results(place)} == {"cancelled"}
    is_calm.set()
    assert place.run("fleet", "resume", "tasks").code == 0


def config(place: Place) -> None:
    """Attempts of a request that do not wait."""
    folder = place.home / "dragoman"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text("[retry]\nfirst_delay_s = 0.01\nmax_delay_s = 0.02\n")
