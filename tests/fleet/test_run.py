"""A fleet from its tasks to its results, with the real program in every process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.fleet.ray_tree import pack_tree, unpack_tree
from dragoman.testing.script import Script
from fleet.fleets import MODEL, answer_by_task, fleet_files, results, run_fleet, task, write_tasks
from program import KEY, Place, Service


def test_each_task_has_a_copy_of_its_own_and_one_result(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    (place.work / "shop").mkdir()
    (place.work / "shop" / "list.txt").write_text("apples\n")
    write_tasks(place, [task("one", workspace="shop"), task("two", workspace="shop", check="exit 3"), task("three")])
    done = run_fleet(place, "--workers", "2")
    assert done.code == 1, done
    found = {row["task"]: row for row in results(place)}
    assert {name: row["outcome"] for name, row in found.items()} == {"one": "passed", "two": "failed", "three": "passed"}
    assert found["two"]["check"]["exit_code"] == 3
    assert all(row["requests"] == 3 and row["tool_calls"] == 2 and row["epochs"] == 1 for row in found.values())
    assert [path.name for path in (place.work / "shop").iterdir()] == ["list.txt"]
    whole = json.loads((fleet_files(place) / "tasks" / "one" / "1" / "result.json").read_text())
    assert "+one" in whole["diff"]
    assert "list.txt" not in whole["diff"]
    assert done.out.count("\n") == 4, done  # one for each task, and the sums


def test_a_fleet_that_lies_in_its_own_workspace_is_no_part_of_it(place: Place, serve: Callable[..., Service]) -> None:
    """Else each task would see the results of those before it, and the files of the checks."""
    serve(answer_by_task)
    (place.work / "fleet").mkdir()
    (place.work / "fleet" / "code.py").write_text("")
    check = "test -e fleet/code.py && ! test -e tasks.jsonl && ! test -e fleet/tasks"
    write_tasks(place, [task("one", workspace=".", check=check), task("two", workspace=".", check=check)])
    assert run_fleet(place, "--workers", "1").code == 0, results(place)
    copy = place.home / "copy"
    unpack_tree(pack_tree(str(place.work)), str(copy))
    assert sorted(path.name for path in copy.rglob("*")) == ["code.py", "fleet", "tasks.jsonl"]


def test_what_is_done_is_not_run_again(place: Place, serve: Callable[..., Service]) -> None:
    service = serve(answer_by_task)
    write_tasks(place, [task("one"), task("two")])
    assert run_fleet(place).code == 0
    asked = len(service.requests)
    assert "dragoman fleet resume tasks" in run_fleet(place).complaint(42)
    assert place.run("fleet", "resume", "tasks").code == 0
    assert len(service.requests) == asked


def test_the_status_of_a_fleet_says_what_runs_and_what_waits_and_afterwards_how_to_go_on(
    place: Place, serve: Callable[..., Service]
) -> None:
    """What was not done yet was told as cancelled, and what running tasks had spent as lost."""

    def choose(request: Any) -> Any:
        return Script.parse("wait: 600\ntext: late").answers[0] if len(request.body["messages"]) > 2 else answer_by_task(request)

    service = serve(choose)
    write_tasks(place, [task("one"), task("two")])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", "1")
    service.expect(2)
    told = json.loads(place.run("fleet", "status", "tasks", "--output-format", "json").out)
    spent_usd, estimated_usd = told["cost_usd"], told["estimated_usd"]
    assert 0 < estimated_usd < spent_usd, "one request was answered, and one is under way"
    assert told["is_cost_least"]
    assert told["requests"] == 2
    shown = place.run("fleet", "status", "tasks").out.splitlines()
    assert shown == [
        f"running  one  at least ${spent_usd:.4f}",
        f"running 1, waiting 1 (all: 2); at least ${spent_usd:.4f}, of it $0.0000 for starts that were lost",
        f"${estimated_usd:.4f} of it is an estimate, for requests that were sent and whose cost the service has not told",
    ]
    assert place.run("fleet", "status").out.startswith("tasks: running 1, waiting 1 (all: 2)")
    assert place.run("fleet", "show", "tasks", "two").out.startswith("two #1: waiting")
    process.kill()
    process.communicate(timeout=60)
    shown = place.run("fleet", "status", "tasks").out.splitlines()
    assert shown[0].startswith("cancelled 2 (all: 2)")
    assert f"at least ${spent_usd:.4f}, of it ${spent_usd:.4f} for starts that were lost" in shown[0]
    assert shown[2:] == ["stopped. Go on with: dragoman fleet resume tasks"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_keys_are_in_none_of_its_files(place: Place, serve: Callable[..., Service], language: str) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one", setup="env > env.txt", check="cat env.txt; exit 1")])
    done = run_fleet(place, "--lang", language)
    assert done.code == 1
    assert ("未通过" in done.out) is (language == "zh")
    assert ("检查" in results(place)[0]["reason"]) is (language == "zh"), "the worker speaks the language that was asked for"
    written = [path for path in fleet_files(place).rglob("*") if path.is_file()]
    assert len(written) > 6
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


def test_what_an_agent_left_does_nothing_to_the_terminal_that_shows_it(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one", check=r"printf '\033]0;title\007\033[2Jred\n'; exit 1")])
    assert run_fleet(place).code == 1
    shown = place.run("fleet", "show", "tasks", "one").out
    assert "red" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
