"""What went wrong in other programs' fleets, by their users' reports; and the promises about limits."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.testing.script import Script
from fleet.fleets import MODEL, answer_by_task, fleet_files, results, run_fleet, task, task_of, write_tasks
from processes import alive, gone_within, marked_sleep, parent, started_within
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
    assert place.run("fleet", "resume", "tasks").code == 60  # a crash does not lift it, nor does whoever comes after it
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


def test_a_fleet_outlives_the_terminal_it_was_started_in_if_it_is_to(place: Place, serve: Callable[..., Service]) -> None:
    """`nohup dragoman fleet run … &`, over night."""
    service = serve(answer_by_task)
    write_tasks(place, [task("one", check="sleep 1")])
    nohup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL, **nohup)
    service.expect(1)
    os.kill(process.pid, signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)


def test_a_worker_that_was_stopped_is_ended_too(place: Place, serve: Callable[..., Service]) -> None:
    sleeping = marked_sleep()
    serve(lambda request: script(command(sleeping)))
    write_tasks(place, [task("one", limits={"seconds": 1.0})])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL)
    assert started_within(60, sleeping)
    [worker] = [pid for pid in alive("fleet work") if parent(pid) == process.pid]
    os.kill(worker, signal.SIGSTOP)
    assert gone_within(60, sleeping)
    assert process.stdout is not None
    assert b"(SIGKILL) (it was stuck)" in process.stdout.readline()
    process.terminate()
    process.communicate(timeout=60)


def test_a_late_result_is_kept_beside_and_counted(place: Place, serve: Callable[..., Service]) -> None:
    """A worker of a machine believed dead may still write: its result counts once, its cost always."""
    serve(answer_by_task)
    write_tasks(place, [task("one")])
    assert run_fleet(place).code == 0
    folder = fleet_files(place) / "tasks" / "one" / "1"
    accepted = (folder / "result.json").read_bytes()
    late = place.run(
        "fleet", "work", str(folder / "task.json"), "--attempt", "1", "--epoch", "1", "--out", str(folder / "epoch-1"), "-m", MODEL
    )
    assert late.code == 0
    assert (folder / "result.json").read_bytes() == (folder / "epoch-1" / "result.json").read_bytes() == accepted
    assert len(list((folder / "epoch-1").glob("late-*.json"))) == 1
    assert place.run("fleet", "resume", "tasks").code == 0
    row = results(place)[0]
    assert row["lost_usd"] == pytest.approx(row["cost_usd"])


def test_retry_runs_again_what_did_not_pass(place: Place, serve: Callable[..., Service]) -> None:
    service = serve(answer_by_task)
    (place.work / "flag").mkdir()
    write_tasks(place, [task("one"), task("two", workspace="flag", check="test -e flag")])
    assert run_fleet(place, "--attempts", "2").code == 1
    assert "pass@1 50.0 %, pass@2 50.0 % of 2 tasks" in place.run("fleet", "status", "tasks").out
    (place.work / "flag" / "flag").write_text("")
    asked = len(service.requests)
    place.run("fleet", "retry", "tasks").complaint(42, "--failed")
    assert place.run("fleet", "retry", "tasks", "--failed").code == 0
    assert len(service.requests) == asked + 6
    rows = results(place)
    assert {row["outcome"] for row in rows} == {"passed"}
    assert [row["epochs"] for row in rows] == [1, 1, 2, 2]
    assert "+two" in place.run("fleet", "show", "tasks", "two").out
    shown = place.run("fleet", "export", "tasks", "--atif")
    assert "4 entries" in shown.out, shown
    preds = json.loads((fleet_files(place) / "preds.json").read_text())
    assert [each["instance_id"] for each in preds] == ["one", "two"]
    assert "+one" in preds[0]["model_patch"]


def config(place: Place) -> None:
    """Attempts of a request that do not wait."""
    folder = place.home / "dragoman"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text("[retry]\nfirst_delay_s = 0.01\nmax_delay_s = 0.02\n")
