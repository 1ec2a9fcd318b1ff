"""What a worker runs sees neither how its work is checked nor what earlier attempts came to, and no task gets at the user's secrets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.fleet.worker import hidden_paths
from dragoman.fleet.workspace import copy_tree
from dragoman.testing.script import Script
from fleet.fleets import MODEL, fleet_files, results, run_fleet, task, task_of, write_tasks
from program import Place, Service, calls
from reachable import folder_outside_temporary

SECRET = "the-hidden-answer-is-42"
CHECK = {"check_files": {"hidden.txt": SECRET}, "check": f"grep -qx {SECRET} hidden.txt && ! grep -rqs {SECRET} found.txt"}


def looking_for(*paths: Path, also: str = "true") -> Callable[[Any], Any]:
    """A model that looks for its check: with commands, and with each tool that reads."""
    names = " ".join(f"'{path}'" for path in paths)
    looks = [
        calls(("run_shell", {"command": f"cat {names} > found.txt 2>&1; grep -rs hidden- {names} >> found.txt; {also}"})),
        *(calls(("read_file", {"path": str(path)})) for path in paths),
        *(calls(("grep", {"pattern": "hidden-", "path": str(path)})) for path in paths),
        *(calls(("list_directory", {"path": str(path)})) for path in paths),
        calls(("run_shell", {"command": "cat found.txt"})),
        "text: done",
    ]

    def choose(request: Any) -> Any:
        step = sum(message["role"] == "assistant" for message in request.body["messages"])
        return Script.parse(looks[min(step, len(looks) - 1)]).answers[0]

    return choose


def secret_was_sent(service: Service) -> bool:
    return any(SECRET in json.dumps(request) for request in service.requests)


@pytest.fixture
def project(place: Place) -> Iterator[Path]:
    with folder_outside_temporary() as folder:
        place.work = folder
        yield folder


@pytest.mark.parametrize("folder", ["plain", "odd [1] *"])
def test_a_model_that_looks_for_its_check_does_not_find_it(place: Place, serve: Callable[..., Service], project: Path, folder: str) -> None:
    """In the input, in the fleet's folder, and in a copy of the workspace that holds both."""
    place.work = project / folder
    place.work.mkdir()
    # The rest of the folder is open to commands: what is not found is hidden, and not merely elsewhere.
    (place.work / "open.txt").write_text("hidden-things are not here")
    fleet = fleet_files(place)
    paths = [place.work / "tasks.jsonl", fleet / "tasks.jsonl", fleet / "tasks" / "one" / "1" / "task.json", fleet, fleet.parent]
    served = serve(looking_for(*paths, also=f"cat tasks.jsonl fleet/*/tasks.jsonl >> found.txt; cat '{place.work}/open.txt'"))
    write_tasks(place, [task("one", workspace=".", **CHECK)])
    done = run_fleet(place)
    assert not secret_was_sent(served)
    assert done.code == 0, results(place)
    assert any("hidden-things are not here" in json.dumps(request) for request in served.requests), "commands read nothing at all"


def test_a_harbor_folder_and_standard_input_are_hidden_too(place: Place, serve: Callable[..., Service], project: Path) -> None:
    tests = place.work / "suite" / "one" / "tests"
    tests.mkdir(parents=True)
    (tests / "test.sh").write_text(f"# {SECRET}\ntrue\n")
    (tests.parent / "task.toml").write_text("")
    (tests.parent / "instruction.md").write_text("task=one . Do it.")
    served = serve(looking_for(tests / "test.sh", place.work / "suite"))
    assert place.run("fleet", "run", "suite", "--model", MODEL).code == 0, results(place, "suite")
    assert not secret_was_sent(served)
    write_tasks(place, [task("one", **CHECK)])
    served = serve(looking_for(place.work / "tasks.jsonl"))
    with (place.work / "tasks.jsonl").open("rb") as lines:
        process = place.start("fleet", "run", "-", "--name", "piped", "--model", MODEL, stdin=lines)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err, results(place, "piped"))
    assert not secret_was_sent(served)


def test_earlier_results_and_other_fleets_are_hidden(place: Place, serve: Callable[..., Service], project: Path) -> None:
    serve(lambda request: Script.parse(f"text: {SECRET} of {task_of(request)}").answers[0])
    write_tasks(place, [task("one", check="")], "first.jsonl")
    assert place.run("fleet", "run", "first.jsonl", "--model", MODEL).code == 0
    earlier = fleet_files(place, "first") / "tasks" / "one" / "1"
    assert SECRET in (earlier / "result.json").read_text()
    served = serve(looking_for(earlier / "result.json", earlier, fleet_files(place, "first") / "results.jsonl"))
    write_tasks(place, [task("one", check="")])
    assert run_fleet(place, "--attempts", "2", "--workers", "1").code == 0
    assert not secret_was_sent(served)


def test_a_worker_of_another_scheduler_hides_its_task_and_its_results(place: Place, serve: Callable[..., Service], project: Path) -> None:
    (place.work / "task.json").write_text(json.dumps(task("one", **CHECK)))
    served = serve(looking_for(place.work / "task.json", place.work / "out", place.work / "more"))
    (place.work / "more").write_text(SECRET)
    arguments = ["task.json", "--out", "out", "--hide", str(place.work / "more"), "-m", MODEL]
    done = place.run("fleet", "work", *arguments)
    assert done.code == 0, (done, (place.work / "out" / "result.json").read_text())
    assert not secret_was_sent(served)


def test_what_is_hidden_is_the_folder_of_all_fleets(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet" / "x"
    epoch = fleet / "tasks" / "one" / "1" / "epoch-1"
    epoch.mkdir(parents=True)
    for name in ("lock.json", "tasks.jsonl"):
        (fleet / name).touch()
    (tmp_path / "link").symlink_to(epoch)
    assert hidden_paths([str(epoch), str(tmp_path / "in.jsonl")]) == (str(tmp_path / "fleet"), str(tmp_path / "in.jsonl"))
    assert hidden_paths([str(tmp_path / "link")]) == (str(tmp_path / "fleet"),)
    other = tmp_path / "other"
    fleet.parent.rename(other)
    assert hidden_paths([str(other / "x" / "tasks")]) == (str(other / "x"),)


# --- secrets ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stores(place: Place) -> Path:
    """The user's stores of secrets, each of another kind."""
    for name in (".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml", ".netrc"):
        path = place.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    subprocess.run(["git", "init", "-q", str(place.home / ".password-store")], check=True)
    return place.home


@pytest.mark.parametrize(
    "workspace",
    ["~/.ssh", "~/.aws", "~/.config/gh", "link", "link/inner", {"git": "~/.password-store"}, "~/dragoman/data", "~/.ssh/keys.tar"],
)
def test_a_store_of_secrets_is_no_workspace(place: Place, serve: Callable[..., Service], stores: Path, workspace: Any) -> None:
    served = serve("text: thank you")
    (stores / ".ssh" / "inner").mkdir()
    (stores / ".ssh" / "keys.tar").touch()
    (stores / "dragoman" / "data").mkdir(parents=True)
    (place.work / "link").symlink_to(stores / ".ssh")
    write_tasks(place, [task("fine"), task("one", workspace=workspace)])
    run_fleet(place).complaint(42, "line 2", "store of secrets")
    (place.work / "task.json").write_text(json.dumps(task("one", workspace=absolute(place, workspace))))
    done = place.run("fleet", "work", "task.json", "--out", "out", "-m", MODEL)
    assert done.code == 1, done
    assert "store of secrets" in (place.work / "out" / "result.json").read_text()
    assert not served.requests


def absolute(place: Place, workspace: Any) -> Any:
    if isinstance(workspace, dict):
        return {"git": absolute(place, workspace["git"])}
    return workspace.replace("~", str(place.home)) if workspace.startswith("~") else str(place.work / workspace)


def test_a_home_as_the_workspace_brings_no_store_of_secrets(place: Place, serve: Callable[..., Service], stores: Path) -> None:
    (stores / "notes.txt").write_text("notes")
    served = serve(looking_for(Path(".ssh/id_rsa"), Path(".netrc"), Path(".config"), Path("notes.txt")))
    write_tasks(place, [task("one", workspace="~", check="test -e notes.txt && test -d .config && ! test -e .ssh && ! test -e .netrc")])
    assert run_fleet(place).code == 0, results(place)
    assert not secret_was_sent(served)


def test_hosts_that_tasks_reach_are_shown_before_any_runs(place: Place, serve: Callable[..., Service]) -> None:
    served = serve("wait: 60\ntext: late")
    write_tasks(place, [task("one", network=["example.org"], check=""), task("two", network=["*"], check=""), task("three", check="")])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", "1")
    assert process.stdout is not None
    assert process.stdout.readline().decode().strip() == "commands of its tasks may reach: *, example.org"
    assert not (fleet_files(place) / "tasks" / "three").exists()
    served.expect(1)
    process.terminate()
    process.communicate(timeout=60)
    process = place.start("fleet", "resume", "tasks", "--workers", "1")
    assert process.stdout is not None
    assert b"may reach: *, example.org" in process.stdout.readline()
    process.terminate()
    process.communicate(timeout=60)


def test_what_is_left_out_of_a_copy_is_meant_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real" / "a" / "b").mkdir(parents=True)
    for name in ("a/b/left", "a/b/kept", "a/left", "left"):
        (tmp_path / "real" / name).write_text(name)
    (tmp_path / "link").symlink_to("real")
    copy_tree(
        str(tmp_path / "link"), str(tmp_path / "copy"), [str(tmp_path / "real" / "a" / "b" / "left"), str(tmp_path / "real" / "left")]
    )
    found = sorted(os.path.relpath(path, tmp_path / "copy") for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert found == ["a/b/kept", "a/left"]


@pytest.mark.parametrize("fields", [{"id": "a\x1bb"}, {"network": ["a b"]}, {"files": {"../out": "x"}}, {"env": {"A=": "x"}}])
def test_a_worker_believes_no_task_that_the_input_could_not_name(
    place: Place, serve: Callable[..., Service], fields: dict[str, Any]
) -> None:
    served = serve("text: thank you")
    (place.work / "task.json").write_text(json.dumps(task("one") | fields))
    place.run("fleet", "work", "task.json", "--out", "out", "-m", MODEL).complaint(42, "task.json")
    assert not (place.work / "out").exists()
    assert not served.requests
