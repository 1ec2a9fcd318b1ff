"""What cannot be used is named in one line, by the number of its line, before anything starts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.fleet.task import Task, TaskTemplate, read_tasks
from dragoman.policy.sandbox.cache_removal import remove_tree
from dragoman.values.errors import InputError
from fleet.fleets import MODEL, answer_by_task, fleet_files, results, run_fleet, task, write_tasks
from program import Place, Service

GOOD = json.dumps(task("good")).encode()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", ["not JSON"]),
        (b"[1]", ["not a JSON object"]),
        (b'{"id": "x"}', ["prompt"]),
        (b'{"id": "x", "prompt": " "}', ["prompt is empty"]),
        (b'{"id": "", "prompt": "p"}', ["cannot be an id"]),
        (b'{"id": "a\\u0000b", "prompt": "p"}', ["cannot be an id"]),
        (b'{"id": "x", "prompt": "p", "workspaces": "y"}', ["workspaces", "workspace"]),
        (b'{"id": "x", "prompt": "p", "workspace": "nowhere"}', ["nowhere", "does not exist"]),
        (b'{"id": "x", "prompt": "p", "workspace": "file.txt"}', ["file.txt", "neither a folder nor an archive"]),
        (b'{"id": "x", "prompt": "p", "workspace": {"git": "--upload-pack=x"}}', ["--upload-pack", "repository"]),
        (b'{"id": "x", "prompt": "p", "workspace": {"git": "ext::sh -c true"}}', ["ext::", "repository"]),
        (b'{"id": "x", "prompt": "p", "limits": {"seconds": 0}}', ["seconds"]),
        (b'{"id": "x", "prompt": "p", "limits": {"hours": 1}}', ["hours"]),
        (b'{"id": "x", "prompt": "p", "files": {"../out": "y"}}', ["../out", "inside the workspace"]),
        (b'{"id": "x", "prompt": "p", "files": {".git/hooks/post-checkout": "y"}}', [".git/hooks"]),
        (b'{"id": "x", "prompt": "p", "env": {"A=B": "y"}}', ["A=B"]),
        (b'{"id": "x", "prompt": "p", "approval": "yolo"}', ["approval"]),
        (b'{"id": "x", "prompt": "half \\ud800"}', ["surrogate"]),
        (b'{"id": "x", "prompt": "p", "files": {"a": "\\udfff"}}', ["surrogate"]),
        (b'{"id": "x", "prompt": "p", "check": "true\\u0000"}', ["check", "NUL"]),
        (b'{"id": "x", "prompt": "p", "env": {"A": "b\\u0000c"}}', ["env.A", "NUL"]),
        (b'{"id": "x", "prompt": "p", "network": ["a b"]}', ["'a b'", "host"]),
        ('{"id": "中中中中中中中中中中中中中中", "prompt": "p"}'.encode(), ["120", "nine"]),
        (GOOD, ["good", "line 1"]),
    ],
)
def test_a_bad_line_is_named_by_its_number(line: bytes, words: list[str], tmp_path: Any) -> None:
    (tmp_path / "file.txt").write_text("text")
    with pytest.raises(InputError) as raised:
        list(read_tasks([GOOD, b"\n", line], str(tmp_path)))
    assert str(raised.value).startswith("line 3: ")
    for word in words:
        assert word in str(raised.value)


def test_nothing_is_no_fleet(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="no task"):
        list(read_tasks([b"\n"], str(tmp_path)))


@pytest.mark.parametrize(
    ("lines", "arguments", "words"),
    [
        ([task("one", model="nobody/model")], [], ["line 1", "nobody"]),
        ([task("one"), task("two", model="anthropic/claude-opus-55")], [], ["line 2", "claude-opus-55", "claude-opus-5", "--force"]),
        ([task("one", model="gemini/gemini-3.8-flash")], [], ["line 1", "GEMINI_API_KEY"]),
        ([task("one", workspace={"git": "nowhere.git"})], [], ["line 1", "nowhere.git"]),
        ([task("one")], ["--on", "mars"], ["mars", "local"]),
        ([task("one")], ["--on", "ray"], ["Ray is not installed", "`ray`"]),
        ([task("one")], ["--name", "../x"], ["--name"]),
        ([task("one")], ["--budget-usd", "-1"], ["--budget-usd"]),
        ([task("one")], ["--workers", "0"], ["--workers"]),
        ([task("one")], ["--template", "tasks.jsonl"], ["names no field"]),
    ],
)
def test_what_is_missing_is_found_before_anything_starts(
    place: Place, serve: Callable[..., Service], lines: list[dict[str, Any]], arguments: list[str], words: list[str]
) -> None:
    service = serve(answer_by_task)
    copies = place.home / "copies"
    copies.mkdir()
    place.more_env = {"GEMINI_API_KEY": "", "TMPDIR": str(copies)}
    write_tasks(place, lines)
    complaint = run_fleet(place, *arguments).complaint(42)
    for word in words:
        assert word in complaint
    assert not service.requests
    assert not (place.work / "fleet").exists(), "what was not started cannot be in the way of another try"
    assert not list(copies.iterdir())


@pytest.mark.parametrize("action", [["resume", "tasks"], ["retry", "tasks", "--failed"]])
def test_what_is_gone_at_a_resume_is_found_before_anything_starts(place: Place, serve: Callable[..., Service], action: list[str]) -> None:
    """After a reboot the key may not be in the environment: then each task that was left would fail by itself, for good."""
    service = serve(answer_by_task)
    (place.work / "repo").mkdir()
    write_tasks(place, [task("one"), task("two", workspace="repo"), task("three")])
    assert run_fleet(place, "--budget-usd", "0.03", "--workers", "1").code == 60
    before, asked = (fleet_files(place) / "journal.jsonl").read_bytes(), len(service.requests)
    more = [*action, "--budget-usd", "9"]
    place.run("fleet", *more, env={"ANTHROPIC_API_KEY": ""}).complaint(42, "task two", "ANTHROPIC_API_KEY")
    (place.work / "repo").rename(place.work / "moved")
    place.run("fleet", *more).complaint(42, "task two", "repo", "does not exist")
    assert ((fleet_files(place) / "journal.jsonl").read_bytes(), len(service.requests)) == (before, asked)
    (place.work / "moved").rename(place.work / "repo")
    assert place.run("fleet", *more).code == 0
    assert place.run("fleet", "resume", "tasks", env={"ANTHROPIC_API_KEY": ""}).code == 0  # all is done: nothing is needed


@pytest.mark.skipif(sys.platform != "linux", reason="limits another process")
def test_a_disk_that_gets_full_is_told_and_a_resume_goes_on(place: Place, serve: Callable[..., Service]) -> None:
    import resource

    is_full = threading.Event()

    def choose(request: Any) -> Any:
        is_full.wait(60)
        return answer_by_task(request)

    service = serve(choose)
    write_tasks(place, [task("one"), task("two"), task("three")])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL, "--workers", "1")
    service.expect(1)
    size = (fleet_files(place) / "journal.jsonl").stat().st_size
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + 10, size + 10))  # part of the next line is written
    is_full.set()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 42, (out, err)
    assert b"stopped: File too large. Go on with: dragoman fleet resume tasks" in err
    assert len(err.splitlines()) == 1
    asked = len(service.requests)
    assert place.run("fleet", "resume", "tasks").code == 0
    assert len(service.requests) == asked + 6, "what was done was done again"


def test_another_input_does_not_resume(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one")])
    assert run_fleet(place).code == 0
    write_tasks(place, [task("one", tags=["changed"])])
    assert "--name" in run_fleet(place).complaint(42, "other tasks")
    tasks = fleet_files(place) / "tasks.jsonl"
    tasks.write_bytes(tasks.read_bytes().replace(b"Do it", b"Do less"))
    place.run("fleet", "resume", "tasks").complaint(42, "tasks.jsonl")


def test_another_version_does_not_resume_unasked(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one")])
    assert run_fleet(place).code == 0
    lock = fleet_files(place) / "lock.json"
    lock.write_text(json.dumps(json.loads(lock.read_text()) | {"version": "0.0.1"}))
    place.run("fleet", "resume", "tasks").complaint(42, "0.0.1", "--force")
    assert place.run("fleet", "resume", "tasks", "--force", "--take-over").code == 0


def test_a_fleet_has_one_supervisor(place: Place, serve: Callable[..., Service]) -> None:
    serve("wait: 60\ntext: late")
    write_tasks(place, [task("one", check="")])
    process = place.start("fleet", "run", "tasks.jsonl", "--model", MODEL)
    assert place.service is not None
    place.service.expect(1)
    place.run("fleet", "resume", "tasks").complaint(42, "another process")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_check_that_hangs_is_ended(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one", check="sleep 1000", limits={"check_seconds": 0.5})])
    done = run_fleet(place)
    assert done.code == 1
    assert "the check was not done after 0.5 s" in done.out


def test_a_template_makes_tasks_of_other_data(tmp_path: Any) -> None:
    line = b'{"instance_id": "django-1", "repo": "x/y", "problem": "It \\"breaks\\".", "meta": {"rev": "abc"}}'
    whole = TaskTemplate('{"id": "{{instance_id}}", "prompt": "Fix: {{problem}}", "tags": ["{{meta.rev}}", "of {{meta}}"]}')
    assert next(read_tasks([line], str(tmp_path), whole)) == Task("django-1", 'Fix: It "breaks".', tags=("abc", 'of {"rev":"abc"}'))
    prompt = TaskTemplate("Solve {{repo}}")
    filled = next(read_tasks([b'{"id": "a", "repo": "x/y", "more": 1}'], str(tmp_path), prompt))
    assert (filled.id, filled.prompt) == ("a", "Solve x/y")
    with pytest.raises(InputError, match="line 1: the template wants the field repo"):
        next(read_tasks([b'{"id": "a"}'], str(tmp_path), prompt))


@pytest.mark.parametrize(
    "change", [{"scratch": "HOME"}, {"scratch": "HOME/../dragoman-fleet-0123456789ab"}, {"id": "ANTHROPIC"}, {"id": ""}]
)
def test_a_lock_that_names_what_is_not_the_fleets_own_ends_and_removes_nothing(
    place: Place, serve: Callable[..., Service], change: dict[str, str]
) -> None:
    """A resume empties the folder for copies, and ends every process with the fleet's id in its environment."""
    serve(answer_by_task)
    write_tasks(place, [task("one"), task("two")])
    assert run_fleet(place, "--budget-usd", "0.01", "--workers", "1").code == 60
    (place.home / "precious").mkdir()
    lock = fleet_files(place) / "lock.json"
    told = json.loads(lock.read_text())
    told |= {name: text.replace("HOME", str(place.home)).replace("0123456789ab", told["id"]) for name, text in change.items()}
    lock.write_text(json.dumps(told))
    place.run("fleet", "resume", "tasks", "--budget-usd", "9").complaint(42, "lock.json")
    assert (place.home / "precious").is_dir()


def test_a_folder_for_copies_that_others_made_is_not_used(place: Place, serve: Callable[..., Service]) -> None:
    """Its name is known once the fleet has run, and after a reboot anybody may be the first to make it."""
    service = serve(answer_by_task)
    write_tasks(place, [task("one"), task("two")])
    assert run_fleet(place, "--budget-usd", "0.01", "--workers", "1").code == 60
    scratch = Path(json.loads((fleet_files(place) / "lock.json").read_text())["scratch"])
    remove_tree(str(scratch.parent), scratch.name)
    asked = len(service.requests)
    (place.home / "theirs").mkdir(mode=0o755)
    scratch.symlink_to(place.home / "theirs")
    place.run("fleet", "resume", "tasks", "--budget-usd", "9").complaint(42, str(scratch))
    scratch.unlink()
    scratch.mkdir()
    scratch.chmod(0o777)
    place.run("fleet", "resume", "tasks", "--budget-usd", "9").complaint(42, str(scratch))
    assert len(service.requests) == asked
    scratch.chmod(0o700)
    assert place.run("fleet", "resume", "tasks", "--budget-usd", "9").code == 0


def test_of_two_that_start_the_same_fleet_at_once_one_does(place: Place, serve: Callable[..., Service]) -> None:
    """The other changes nothing of it: its tasks, its id and its journal are those of the one that runs."""
    serve(answer_by_task)
    (place.work / "tasks.jsonl").write_text(json.dumps(task("one", check="")) + "\n")
    pipes = [place.start("fleet", "run", "-", "--model", MODEL, stdin=subprocess.PIPE) for _ in range(3)]
    for process in pipes:
        assert process.stdin is not None
        process.stdin.write((place.work / "tasks.jsonl").read_bytes())
        process.stdin.flush()
    for process in pipes:  # all have read all, and none has begun
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    ended = [(process.communicate(timeout=60), process.returncode) for process in pipes]
    assert sorted(code for _, code in ended) == [0, 42, 42], ended
    for (_, complaint), code in ended:
        assert code == 0 or b"dragoman fleet resume tasks" in complaint or b"another process" in complaint
    assert [row["outcome"] for row in results(place)] == ["passed"]
    assert place.run("fleet", "resume", "tasks").code == 0


def test_a_trusted_fleet_that_was_started_before_is_known(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one")])
    assert run_fleet(place, "--trust").code == 0
    assert "dragoman fleet resume tasks" in run_fleet(place, "--trust").complaint(42)
    assert "--name" in run_fleet(place).complaint(42)
