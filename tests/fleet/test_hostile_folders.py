"""Folders of fleets in which nothing is what it should be: whatever is asked about them ends, with nothing read or written elsewhere."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman import __version__
from dragoman.app.options import Options
from dragoman.fleet.command import run_fleet
from dragoman.fleet.journal import JOURNAL_FILE
from dragoman.values.errors import DragomanError
from fleet.brought import FLEET_ID, bring, everything_in
from fleet.fleets import answer_by_task, fleet_files, task, write_tasks
from fleet.fleets import run_fleet as run_program
from program import Place, Service
from special_files import KINDS, can_plant, plant, watchdog

LONG = os.environ.get("DRAGOMAN_LONG") == "1"
CANARY = "what-only-the-user-may-see"
ESCAPES = "\x1b[2J\x1b]52;c;aGVsbG8=\x07\x9b31m\x1b]0;title\x07‮gnp.exe​"
ACTIONS = (
    ["status"],
    ["status", "brought"],
    ["show", "brought", "one"],
    ["diff", "brought", "brought"],
    ["export", "brought"],
    ["resume", "brought"],
    ["retry", "brought", "one"],
)


# --- through the program ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["journal.jsonl", "tasks.jsonl"])
def test_a_pipe_in_the_place_of_a_file_holds_up_no_action(place: Place, serve: Callable[..., Service], name: str) -> None:
    """In a fleet of the user's own, which goes on unasked."""
    serve(answer_by_task)
    write_tasks(place, [task("one", check="")], "brought.jsonl")
    assert place.run("fleet", "run", "brought.jsonl", "--model", "anthropic/claude-opus-5").code == 0
    plant(fleet_files(place, "brought") / name, "pipe")
    for action in ACTIONS:
        done = place.run("fleet", *action)
        assert done.code in (0, 42), done
        assert "\n" not in done.err.rstrip("\n"), done


def test_a_pipe_in_an_epoch_that_is_to_begin_holds_up_nobody(place: Place, serve: Callable[..., Service]) -> None:
    """The names of what a worker writes are known: its log, its deadline, what it spent."""
    serve(answer_by_task)
    write_tasks(place, [task("one"), task("two")])
    assert run_program(place, "--budget-usd", "0.01", "--workers", "1").code == 60
    for name in ("worker.log", "deadline", "spent.jsonl", "result.json", "task.json"):
        plant(fleet_files(place) / "tasks" / "two" / "1" / "epoch-1" / name, "pipe")
    plant(fleet_files(place) / "tasks" / "two" / "1" / "task.json", "pipe")
    assert place.run("fleet", "resume", "tasks", "--budget-usd", "9").code == 0


@pytest.mark.parametrize("attempts", [10**9, 60_001, 2**63, -1, 0])
def test_numbers_that_no_fleet_has_are_refused(place: Place, attempts: int) -> None:
    bring(place.work / "fleet" / "brought", {"attempts": attempts})
    for action in ACTIONS[1:]:
        place.run("fleet", *action).complaint(42, "lock.json")


def test_a_fleet_of_more_attempts_than_there_may_be_is_not_begun(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task(str(number)) for number in range(20)])
    run_program(place, "--attempts", "60000").complaint(42, "1,200,000 attempts", "1,000,000")
    assert not (place.work / "fleet").exists()


def test_nothing_of_a_result_reaches_the_terminal_raw(place: Place) -> None:
    folder = bring(place.work / "fleet" / "brought")
    texts = {name: f"{name}{ESCAPES}" for name in ("reason", "error_type", "model", "session_id", "answer", "diff")}
    result = {"task": f"one{ESCAPES}", "outcome": "failed", **texts, "check": {"exit_code": 1, "output": f"output{ESCAPES}"}}
    (folder / "tasks" / "one" / "1").mkdir(parents=True)
    for named in ("one", f"one{ESCAPES}"):
        (folder / "tasks" / "one" / "1" / "result.json").write_text(json.dumps(result | {"task": named}))
        for action in (["show", "brought", named], ["status", "brought"], ["status"]):
            for more in ([], ["--output-format", "json"]):
                done = place.run("fleet", *action, *more)
                assert_plain(done.out + done.err)
    shown = place.run("fleet", "show", "brought", f"one{ESCAPES}", "--output-format", "json").json
    assert shown[0]["answer"] == texts["answer"], "in JSON nothing is lost, it is escaped"


def test_one_fleet_that_cannot_be_read_does_not_hide_the_others(place: Place, serve: Callable[..., Service]) -> None:
    serve(answer_by_task)
    write_tasks(place, [task("one")])
    assert run_program(place).code == 0
    (bring(place.work / "fleet" / "bad") / "lock.json").write_text("{")
    (bring(place.work / "fleet" / f"odd{ESCAPES}") / "lock.json").write_text("{")
    done = place.run("fleet", "status")
    assert done.code == 0
    assert "tasks: passed 1" in done.out
    assert "bad: " in done.out
    assert_plain(done.out)


def assert_plain(text: str) -> None:
    assert not [char for char in text if not char.isprintable() and char not in "\n\t"], repr(text)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if can_plant(kind)])
def test_whatever_stands_in_the_place_of_a_file_no_action_waits_for_it(kind: str) -> None:
    for name in (
        *("lock.json", "tasks.jsonl", "journal.jsonl", "results.jsonl", "tasks", "tasks/one", "tasks/one/1"),
        *("tasks/one/1/result.json", "tasks/one/1/epoch-1/result.json", "tasks/one/1/epoch-1/spent.jsonl"),
    ):
        with new_world() as world, watchdog():
            bring(world.fleet)
            (world.fleet / "tasks" / "one" / "1" / "epoch-1").mkdir(parents=True)
            plant(world.fleet / name, kind)
            for action in ACTIONS:
                code, out = carried_out(world, action, "text")
                assert code in (0, 42, 55), (name, action, out)


# --- any folder ---------------------------------------------------------------------------------------------------------------------

TEXTS = st.sampled_from(
    ["", "one", "..", "/", "-", "--trust", "\x00", ESCAPES, "x" * 5_000, "中", "anthropic/claude-opus-5", "HOME", "PIPE"]
)
NUMBERS = st.sampled_from([0, 1, 2, -1, 3, 65_535, 65_536, 10**9, 2**53, 2**64, 10**30, 1.5, 1e308, -0.0])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)


def fields(**usual: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """At most two of these fields, each as it could be or anything else: what is wrong everywhere is refused at once."""
    one = st.sampled_from(sorted(usual)).flatmap(lambda name: st.fixed_dictionaries({name: usual[name] | ANYTHING}))
    some = st.sampled_from([0, 0, 0, 0, 1, 1, 2]).flatmap(lambda count: st.lists(one, min_size=count, max_size=count))
    return some.map(lambda found: {name: value for each in found for name, value in each.items()})


LOCKS = fields(
    id=st.just(FLEET_ID), version=st.just("0"), tasks=NUMBERS, attempts=NUMBERS, model=TEXTS, approval=TEXTS, sandbox=TEXTS,
    trust=st.booleans(), config=TEXTS, scratch=TEXTS, hidden=st.lists(TEXTS, max_size=2), tasks_sha256=TEXTS,
)  # fmt: skip
TASKS = fields(
    id=TEXTS, prompt=TEXTS, workspace=TEXTS | st.just({"git": "HOME"}), model=TEXTS, approval=TEXTS, limits=ANYTHING, files=ANYTHING,
    check_files=ANYTHING, env=ANYTHING, setup=TEXTS, check=TEXTS, network=st.lists(TEXTS, max_size=2), unknown=ANYTHING,
)  # fmt: skip
RESULTS = fields(
    task=TEXTS, outcome=st.sampled_from(["passed", "failed", "cancelled"]), cost_usd=NUMBERS, seconds=NUMBERS, requests=NUMBERS,
    tokens=ANYTHING, check=ANYTHING, answer=TEXTS, diff=TEXTS, reason=TEXTS, session_id=TEXTS, epoch=NUMBERS,
    attempt=NUMBERS, error_type=TEXTS,
)  # fmt: skip
LINES = fields(
    e=st.sampled_from(["start", "end", "again", "budget"]), task=NUMBERS, attempt=NUMBERS, epoch=NUMBERS, usd=NUMBERS, outcome=TEXTS,
    is_accepted=st.booleans(), failure=TEXTS,
)  # fmt: skip
RAW = {
    "empty": b"",
    "half": b"{",
    "blank": b"\n\n\n",
    "deep": b"[" * 100_000,
    "long": b'"' + b"x" * 200_000,
    "no text": b"\xff\xfe",
    "null": b"null",
    "infinite": b"1e999\n",
    "objects": b"{}\n{}\n",
}
NAMES = st.sampled_from([
    "lock.json", "tasks.jsonl", "journal.jsonl", "results.jsonl", "preds.json", "tasks", "tasks/one", "tasks/one/1",
    "tasks/one/1/result.json", "tasks/one/1/epoch-1", "tasks/one/1/epoch-²", "tasks/one/1/epoch-99999999999",
    "tasks/one/1/epoch-2/spent.jsonl",
    "tasks/one/1/epoch-1/result.json", "tasks/one/1/epoch-1/late-x.json", "tasks/one/1/task.json", "atif", "",
])  # fmt: skip
PLANTED = st.lists(st.tuples(NAMES, st.sampled_from(["pipe", "link", "loop", "dangling", "directory", "huge", *RAW])), max_size=3)


def encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode()


class World:
    """A home with secrets, a repository that brings a fleet, and nothing that may change but what lies in that fleet's folder."""

    def __init__(self, top: Path) -> None:
        self.home, self.work = top / "home", top / "work"
        for folder in (self.home / ".ssh", self.work):
            folder.mkdir(parents=True)
        for path in (self.home / ".ssh" / "id_rsa", self.home / "canary.json", self.home / "lock.json", self.home / "result.json"):
            path.write_text(json.dumps({"task": "one", "outcome": "passed", "answer": CANARY}))
        os.mkfifo(self.home / "pipe")
        self.fleet = self.work / "fleet" / "brought"
        self.before = everything_in(self.home)

    def fill(self, value: Any) -> Any:
        """With the paths of this world in the place of their names."""
        match value:
            case str():
                return value.replace("HOME", str(self.home)).replace("PIPE", str(self.home / "pipe"))
            case dict():
                return {self.fill(name): self.fill(each) for name, each in value.items()}
            case list():
                return [self.fill(each) for each in value]
            case _:
                return value

    def plant(self, name: str, kind: str) -> None:
        path = self.fleet / name if name else self.fleet
        for above in [*path.relative_to(self.work).parents][::-1]:
            if (self.work / above).is_symlink() or ((self.work / above).exists() and not (self.work / above).is_dir()):
                return
        if kind not in ("link", "loop", "dangling", *RAW):
            plant(path, kind)
            return
        plant(path, "directory")
        path.rmdir()
        if kind in RAW:
            path.write_bytes(RAW[kind])
        else:
            path.symlink_to(
                {"link": self.home / "canary.json" if "." in path.name else self.home, "loop": path, "dangling": self.home / "made"}[kind]
            )


@contextlib.contextmanager
def new_world() -> Iterator[World]:
    top = Path(os.path.realpath(tempfile.mkdtemp(prefix="dragoman-hostile-")))
    kept = {name: os.environ.get(name) for name in ("HOME", "DRAGOMAN_HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")}
    os.environ |= {
        "HOME": str(top / "home"),
        "DRAGOMAN_HOME": str(top / "dragoman"),
        "ANTHROPIC_API_KEY": "sk-x",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    }
    try:
        yield World(top)
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(top)


@settings(max_examples=2_000 if LONG else 120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    lock=LOCKS,
    tasks=st.lists(TASKS, min_size=1, max_size=2),
    raw_tasks=st.sampled_from([None] * 40 + sorted(RAW)),
    result=RESULTS,
    journal=st.lists(LINES, max_size=4),
    planted=PLANTED,
)
@example(lock={}, tasks=[{"id": "one", "prompt": "p"}], raw_tasks=None, result={}, journal=[], planted=[("journal.jsonl", "pipe")])
@example(
    lock={}, tasks=[{"id": "one", "prompt": "p"}], raw_tasks=None, result={"seconds": 1e308, "cost_usd": 1e308}, journal=[], planted=[]
)
@example(lock={}, tasks=[{"id": "one", "prompt": "p"}], raw_tasks="deep", result={}, journal=[], planted=[])
def test_no_folder_makes_an_action_hang_fall_over_or_look_elsewhere(
    lock: dict[str, Any],
    tasks: list[dict[str, Any]],
    raw_tasks: str | None,
    result: dict[str, Any],
    journal: list[dict[str, Any]],
    planted: list[tuple[str, str]],
) -> None:
    with new_world() as world, watchdog():
        data = (
            RAW[raw_tasks]
            if raw_tasks is not None
            else b"".join(encoded(world.fill({"id": "one", "prompt": "p"} | each)) + b"\n" for each in tasks)
        )
        usual = {"tasks": len(data.splitlines()), "tasks_sha256": hashlib.sha256(data).hexdigest(), "version": __version__}
        bring(world.fleet, usual | world.fill(lock), data or b"\n")
        (world.fleet / "tasks.jsonl").write_bytes(data)
        (world.fleet / JOURNAL_FILE).write_bytes(b"".join(encoded(each) + b"\n" for each in journal))
        for place in ("tasks/one/1", "tasks/one/1/epoch-1"):
            (world.fleet / place).mkdir(parents=True)
            told = {"task": "one", "outcome": "passed", "answer": ESCAPES, "reason": ESCAPES}
            (world.fleet / place / "result.json").write_bytes(encoded(world.fill(told | result)))
        for name, kind in planted:
            world.plant(name, kind)
        for action in ACTIONS:
            for form in ("text", "json"):
                code, out = carried_out(world, action, form)
                assert code in (0, 42, 55), (action, code, out)
                assert CANARY not in out
                assert_plain(out)
                if action[0] in ("resume", "retry"):
                    assert code in (42, 55), "it was believed"
        assert everything_in(world.home) == world.before
        assert sorted(os.listdir(world.home.parent)) == ["home", "work"], "something was made beside"
        assert CANARY not in "".join(text for text in everything_in(world.work).values() if not text.startswith("→"))


def carried_out(world: World, action: list[str], form: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = run_fleet(Options(words=tuple(action), directory=str(world.work), output_format=form))
        except DragomanError as error:
            return error.exit_code, out.getvalue() + " ".join(str(error).split())
    return code, out.getvalue()
