"""Harbor runs Dragoman over the exercises, in an environment of its own: `make test-harbor`. It needs Python 3.12."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("harbor.agents.installed.base", reason="Harbor is not installed here: make test-harbor (it needs Python 3.12)")

from atif import Trajectory
from benchmarks.corpora import NO_CORPORA
from benchmarks.polyglot import exercises
from benchmarks.polyglot_fleet import AllWorkers

from dragoman.testing import Loopback
from dragoman.testing.script_steps import ScriptedAnswer
from fleet_harbor.exercise_tasks import TASK, write_task

TESTS = Path(__file__).resolve().parents[1]
KEY = "sk-test-harbor-0123456789abcdef"
COUNT = int(os.environ.get("DRAGOMAN_EXERCISES", "34"))

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed: make system-parts")


AGENT = ("-a", "dragoman.fleet.harbor:Dragoman", "-m", "anthropic/claude-opus-5")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """One run of Harbor over all of them."""
    found = exercises()[:COUNT]
    if not found:
        pytest.skip(NO_CORPORA)
    folder = tmp_path_factory.mktemp("harbor")
    for each in found:
        write_task(each, folder / "tasks")
    with Loopback() as loopback:
        loopback.play(AllWorkers(found))
        job = Job(folder, loopback)
        job.run("run", "-p", str(folder / "tasks"), *AGENT, *job.options)
        yield job


class Job:
    """A job of Harbor, and what it left."""

    def __init__(self, folder: Path, loopback: Loopback) -> None:
        self.folder, self.loopback = folder, loopback
        self.options = (
            "-e",
            "fleet_harbor.local_environment:LocalEnvironment",
            "-n",
            "2",
            "-o",
            str(folder / "jobs"),
            "--job-name",
            "one",
            "-q",
            "-y",
        )

    def run(self, *arguments: str) -> str:
        env = os.environ | {
            "HOME": str(self.folder / "home"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.loopback.url,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "HARBOR_TELEMETRY": "0",
        }
        (self.folder / "home").mkdir(exist_ok=True)
        command = [str(Path(sys.executable).with_name("harbor")), *arguments]
        ran = subprocess.run(command, env=env, cwd=self.folder, capture_output=True, text=True, timeout=3_600, check=False)
        assert ran.returncode == 0, ran.stdout[-3_000:] + ran.stderr[-3_000:]
        return ran.stdout

    @property
    def trials(self) -> list[Path]:
        return sorted(path.parent for path in (self.folder / "jobs" / "one").glob("*/result.json"))

    def results(self) -> list[dict[str, Any]]:
        return [json.loads((trial / "result.json").read_text(encoding="utf-8")) for trial in self.trials]


def test_every_exercise_is_solved(job: Job) -> None:
    failed = {each["task_name"]: each.get("exception_info") or each["verifier_result"] for each in job.results() if reward_of(each) != 1}
    assert failed == {}
    assert len(job.results()) == min(COUNT, 34)


def reward_of(result: dict[str, Any]) -> float:
    return ((result.get("verifier_result") or {}).get("rewards") or {}).get("reward", 0)


def test_every_trajectory_is_valid_by_two_validators(job: Job) -> None:
    paths = [trial / "agent" / "trajectory.json" for trial in job.trials]
    for path in paths:
        told = Trajectory.model_validate_json(path.read_bytes())
        assert told.schema_version == "ATIF-v1.8"
        assert any(step.tool_calls for step in told.steps)
    from harbor.utils.trajectory_validator import TrajectoryValidator

    checker = TrajectoryValidator()
    assert {str(path): checker.get_errors() for path in paths if not checker.validate(path)} == {}


def test_harbor_is_told_what_was_used(job: Job) -> None:
    for each in job.results():
        used = each["agent_result"]
        assert used["n_input_tokens"] > 0
        assert used["cost_usd"] > 0
        assert each["agent_info"]["name"] == "dragoman"
        assert each["agent_info"]["version"]


def test_a_resumed_job_runs_nothing_again(job: Job) -> None:
    asked = len(job.loopback.requests)
    before = {str(trial): (trial / "result.json").stat().st_mtime_ns for trial in job.trials}
    job.run("job", "resume", "-p", str(job.folder / "jobs" / "one"))
    assert {str(trial): (trial / "result.json").stat().st_mtime_ns for trial in job.trials} == before
    assert len(job.loopback.requests) == asked


def test_no_key_is_written_anywhere(job: Job) -> None:
    written = [path for path in (job.folder / "jobs").rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []


def one_trial(
    folder: Path, script: Any, *options: str, task: str = TASK, model: str = "anthropic/claude-opus-5"
) -> tuple[dict[str, Any], Path]:
    """A task whose check passes where `done.txt` is there."""
    where = folder / "tasks" / "one"
    for path, text in {
        "task.toml": task,
        "instruction.md": "Make done.txt.\n",
        "environment/a.txt": "a\n",
        "tests/test.sh": "test -e /app/done.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
    }.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(text, encoding="utf-8")
    with Loopback(script) as loopback:
        job = Job(folder, loopback)
        job.run("run", "-p", str(folder / "tasks"), "-a", AGENT[1], "-m", model, *options, *job.options)
        [trial] = job.trials
        return job.results()[0], trial


def test_an_agent_whose_time_is_up_has_a_trajectory_and_is_scored(tmp_path: Path) -> None:
    script = 'call: run_shell {"command": "touch done.txt; sleep 600"}'
    result, trial = one_trial(tmp_path, script, task=TASK.replace("600.0", "8.0"))
    assert result["exception_info"]["exception_type"] == "AgentTimeoutError"
    assert reward_of(result) == 1
    told = Trajectory.model_validate_json((trial / "agent" / "trajectory.json").read_bytes())
    assert [step.tool_calls[0].function_name for step in told.steps if step.tool_calls] == ["run_shell"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('error: 401 "no such key"', "AgentAuthenticationError"),
        ('error: 400 "prompt is too long: 300000 tokens > 200000 maximum"', "ContextWindowExceededError"),
    ],
)
def test_harbor_is_told_by_its_own_errors_what_went_wrong(tmp_path: Path, script: str, expected: str) -> None:
    result, _ = one_trial(tmp_path, script)
    assert result["exception_info"]["exception_type"] == expected


def test_a_limit_of_turns_is_no_failure_of_the_harness(tmp_path: Path) -> None:
    def go_on(asked: Any) -> ScriptedAnswer:
        from dragoman.testing.script_steps import CallStep

        return ScriptedAnswer((CallStep("run_shell", json.dumps({"command": f"echo {len(asked.body['messages'])} >> done.txt"})),))

    result, _ = one_trial(tmp_path, go_on, "--ak", "max_turns=2")
    assert result["exception_info"] is None
    assert reward_of(result) == 1


def test_a_link_that_a_container_left_is_not_followed(tmp_path: Path) -> None:
    from harbor.models.agent.context import AgentContext

    from dragoman.fleet.harbor import Dragoman

    home = tmp_path / "home" / "data" / "sessions" / "mine"
    home.mkdir(parents=True)
    log = b'{"kind":"started","seq":1,"timestamp_ms":1,"session_id":"20261115-120102-1a2b3c4d"}\n'
    (home / "20261115-120102-1a2b3c4d.jsonl").write_bytes(log)
    logs = tmp_path / "logs"
    (logs / "dragoman" / "data").mkdir(parents=True)
    (logs / "dragoman" / "data" / "sessions").symlink_to(home.parent)
    Dragoman(logs, model_name="anthropic/claude-opus-5").populate_context_post_run(AgentContext())
    assert not (logs / "trajectory.json").exists()


def test_the_wheel_that_goes_into_a_container_is_the_program(tmp_path: Path) -> None:
    from dragoman.fleet.own_wheel import write_own_wheel

    wheel = write_own_wheel(tmp_path)
    (tmp_path / "again").mkdir()
    assert Path(write_own_wheel(tmp_path / "again")).read_bytes() == Path(wheel).read_bytes()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(tmp_path / "here"), wheel]
    subprocess.run(install, check=True, timeout=300)
    env = os.environ | {"PYTHONPATH": str(tmp_path / "here"), "HOME": str(tmp_path)}
    code = "import dragoman.cli.main as main; print(main.__file__); main.main()"
    ran = subprocess.run([sys.executable, "-c", code, "--version"], env=env, capture_output=True, text=True, timeout=300, check=False)
    where, version = ran.stdout.splitlines()
    assert where.startswith(str(tmp_path))
    assert version.startswith("dragoman ")
    assert (tmp_path / "here" / "bin" / "dragoman").exists()
