"""Fleets on a real Ray cluster of three nodes, parts of which are killed: `make test-ray`, in an environment of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.cluster_utils", reason="Ray is not installed here: make test-ray")

from dragoman import __version__
from fleet_ray.clusters import KEY, MODEL, RayPlace, ended, kill, ray_place

TASKS = int(os.environ.get("DRAGOMAN_RAY_TASKS", "12"))
# Of Ray's own, in its own processes and threads.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayPlace]:
    with ray_place(tmp_path_factory.mktemp("ray"), 0.5) as found:
        yield found


def require_whole(place: RayPlace, name: str, count: int = TASKS) -> None:
    """Every task has exactly one accepted result, and nothing was lost or counted twice."""
    results = place.results(name)
    assert Counter(each["outcome"] for each in results) == {"passed": count}
    assert len({each["task"] for each in results}) == len(results) == count
    accepted = Counter(line["task"] for line in place.journal(name) if line["e"] == "end" and line.get("is_accepted"))
    assert set(accepted.values()) == {1}
    assert len(accepted) == count
    started = [(line["task"], line["epoch"]) for line in place.journal(name) if line["e"] == "start"]
    assert len(set(started)) == len(started)
    for each in results:
        folder = place.files(name) / "tasks" / each["task"] / "1"
        assert (folder / "result.json").samefile(folder / f"epoch-{each['epoch']}" / "result.json")


def test_results_are_those_of_one_machine(place: RayPlace) -> None:
    for name, on in (("alone", ""), ("nodes", "ray")):
        place.write_tasks(name, 6)
        (place.folder / f"{name}.jsonl").write_text((place.folder / f"{name}.jsonl").read_text().replace(name, "task"))
        place.run("run", f"{name}.jsonl", "--model", MODEL, on=on)
    assert plain(place.results("nodes")) == plain(place.results("alone"))
    assert (place.files("nodes") / "tasks" / "task-0" / "1" / "epoch-1" / "session.jsonl").read_bytes().startswith(b'{"kind":"started"')


def test_a_revision_that_is_not_there_is_refused_for_its_task_alone(place: RayPlace) -> None:
    repository = place.folder / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    place.write_tasks("revision", 1, workspace={"git": str(repository), "rev": "nowhere"})
    place.write_tasks("other", 2)
    with (place.folder / "revision.jsonl").open("a") as file:
        file.write((place.folder / "other.jsonl").read_text())
    ended(place.start("run", "revision.jsonl", "--model", MODEL), 1)
    assert [each["outcome"] for each in place.results("revision")] == ["refused input", "passed", "passed"]
    assert "nowhere" in place.results("revision")[0]["reason"]


def test_the_same_by_a_client_outside_the_cluster(place: RayPlace) -> None:
    place.write_tasks("client", 3)
    words, on = ("run", "client.jsonl", "--model", MODEL), f"ray://127.0.0.1:{place.client_port}"
    for _ in range(4):  # Ray gives up where its server for a client takes 30 s to start, as on a very busy machine
        process = place.start(*words, on=on)
        _, complained = process.communicate(timeout=600)
        if "no Ray cluster" not in complained:
            break
    assert process.returncode == 0, complained[-2_000:]
    require_whole(place, "client", 3)


def plain(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what differs from run to run. The model here counts a quarter of a request's bytes, and a copy has another path."""
    varying = ("session_id", "seconds", "waited_s", "cost_usd", "tokens", "request_hash")
    kept = [{key: value for key, value in each.items() if key not in varying} for each in results]
    for each in kept:
        each["check"].pop("seconds")
    return sorted(kept, key=lambda each: each["task"])


def end_or_resume(place: RayPlace, process: subprocess.Popen[str], name: str) -> None:
    """All nodes are of this machine here, so the one that goes may be that of the supervisor: then it stops, and a resume goes on."""
    _, complained = process.communicate(timeout=600)
    if process.returncode:
        assert f"the Ray node of this machine is gone. Go on with: dragoman fleet resume {name}" in complained
        place.run("resume", name)


def test_a_node_that_is_removed_costs_no_result(place: RayPlace) -> None:
    place.write_tasks("removed", TASKS)
    process = place.start("run", "removed.jsonl", "--model", MODEL)
    place.wait_for_ends("removed", 3)
    place.cluster.remove_node(place.nodes.pop(), allow_graceful=False)
    end_or_resume(place, process, "removed")
    place.nodes.append(place.add_node())
    require_whole(place, "removed")


def test_a_node_whose_raylet_is_killed_alone_doubles_nothing(place: RayPlace) -> None:
    place.write_tasks("raylet", TASKS)
    process = place.start("run", "raylet.jsonl", "--model", MODEL)
    place.wait_for_ends("raylet", 3)
    node = place.nodes.pop()
    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    end_or_resume(place, process, "raylet")
    place.cluster.remove_node(node, allow_graceful=False)
    place.nodes.append(place.add_node())
    require_whole(place, "raylet")


def test_a_limiter_that_is_killed_is_made_anew_and_learns_what_was_spent(place: RayPlace) -> None:
    """Each task costs about $0.04, and what is in flight is at most a request of each of three workers: $0.015 each."""
    place.write_tasks("limiter", TASKS)
    process = place.start("run", "limiter.jsonl", "--model", MODEL, "--budget-usd", "0.3")
    for ends in (2, 5):
        place.wait_for_ends("limiter", ends)
        place.in_cluster(
            "[found] = ray.util.list_named_actors(all_namespaces=True)\nray.kill(ray.get_actor(found['name']), no_restart=False)"
        )
    printed, _ = process.communicate(timeout=600)
    assert 0.3 <= spent_usd(place, "limiter") <= 0.3 + 3 * 0.015, printed
    place.run("resume", "limiter", "--budget-usd", "1000")
    require_whole(place, "limiter")


def spent_usd(place: RayPlace, name: str) -> float:
    return sum(line.get("usd") or 0.0 for line in place.journal(name) if line["e"] == "end")


def test_a_driver_that_is_killed_twice_is_resumed(place: RayPlace) -> None:
    place.write_tasks("driver", TASKS)
    process = place.start("run", "driver.jsonl", "--model", MODEL)
    place.wait_for_ends("driver", 2)
    place.wait_for_spending("driver")
    kill(process)
    process = place.start("resume", "driver")
    place.wait_for_ends("driver", 6)
    kill(process)
    place.run("resume", "driver")
    require_whole(place, "driver")
    lost = [line for line in place.journal("driver") if line["e"] == "end" and not line.get("is_accepted")]
    assert lost, "something was under way when it was killed"
    assert any(line.get("usd", 0) > 0 for line in lost), "what lost starts had spent is counted"


def test_the_budget_holds_over_all_nodes(place: RayPlace) -> None:
    place.write_tasks("budget", TASKS)
    process = place.start("run", "budget.jsonl", "--model", MODEL, "--budget-usd", "0.2")
    printed, _ = process.communicate(timeout=600)
    assert 0.2 <= spent_usd(place, "budget") <= 0.2 + 3 * 0.015, printed
    assert "budget" in printed
    assert process.returncode != 0


def test_no_key_is_in_anything_that_ray_or_the_fleet_writes(place: RayPlace) -> None:
    written = [path for folder in (place.logs, place.folder / "fleet") for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 50
    assert [str(path) for path in written if KEY.encode() in path.read_bytes()] == []


def test_nothing_is_left_on_the_nodes(place: RayPlace) -> None:
    place.write_tasks("left", 3)
    place.run("run", "left.jsonl", "--model", MODEL)
    fleet = (place.files("left") / "lock.json").read_text().partition('"id": "')[2].partition('"')[0]
    assert fleet
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"dragoman-ray-{os.getuid()}"
    assert not (folder / fleet).exists()


def test_an_interrupt_ends_what_runs_on_the_nodes_and_a_resume_goes_on(place: RayPlace) -> None:
    place.write_tasks("interrupted", 4)
    process = place.start("run", "interrupted.jsonl", "--model", MODEL)
    place.wait_for_ends("interrupted", 1)
    place.wait_for_spending("interrupted")
    process.send_signal(signal.SIGINT)
    ended(process, 130)
    fleet = (place.files("interrupted") / "lock.json").read_text().partition('"id": "')[2].partition('"')[0]
    assert [line for line in commands() if f"dragoman-ray-{os.getuid()}/{fleet}" in line] == []
    place.run("resume", "interrupted")
    require_whole(place, "interrupted", 4)


def commands() -> list[str]:
    """The command lines of all processes."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def test_a_node_with_another_version_is_named_before_anything_starts(place: RayPlace) -> None:
    place.write_tasks("versions", 1)
    words = ["fleet", "run", "versions.jsonl", "--model", MODEL, "--on", "ray"]
    code = f"import dragoman, sys; dragoman.__version__ = '0.0.9'; from dragoman.cli.main import main; sys.exit(main({words}))"
    env = place.env | {"RAY_ADDRESS": place.cluster.address}
    done = subprocess.run([sys.executable, "-c", code], cwd=place.folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 42, done
    assert f"has Dragoman {__version__}, and this is 0.0.9" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not place.files("versions").exists()


@pytest.mark.parametrize(("on", "env"), [("ray://127.0.0.1:9", {}), ("ray", {"RAY_ADDRESS": "127.0.0.1:9"})])
def test_a_cluster_that_is_not_there_is_told_before_anything_starts(place: RayPlace, on: str, env: dict[str, str]) -> None:
    place.write_tasks("nowhere", 1)
    process = place.start("run", "nowhere.jsonl", "--model", MODEL, on=on, env=env)
    _, complained = process.communicate(timeout=300)
    assert process.returncode == 42
    assert "no Ray cluster can be reached" in complained
    assert len(complained.splitlines()) == 1
    assert not place.files("nowhere").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_that_never_answers_does_not_keep_the_program(place: RayPlace, number: signal.Signals) -> None:
    place.write_tasks("silent", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        process = place.start("run", "silent.jsonl", "--model", MODEL, env={"RAY_ADDRESS": address})
        silent.settimeout(120)
        silent.accept()
        process.send_signal(number)
        process.communicate(timeout=120)
    assert process.returncode == 130
    assert not place.files("silent").exists(), "what was not started cannot be in the way of another try"
