"""Workers that are forked after collection run each test exactly once, with the outcome that pytest's own loop has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress import in_minutes, middle_left_out
from workers import LONG_RUN, plan_runs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks")

CONFTEST = """
import json, os
import pytest
from workers import Workers

def pytest_addoption(parser):
    parser.addoption("--workers", type=int, default=1)

def pytest_configure(config):
    if config.getoption("workers") > 1:
        config.pluginmanager.register(Workers(config, config.getoption("workers")), "workers")

def pytest_runtest_logreport(report):
    if os.getpid() == int(os.environ["COLLECTOR"] or os.getpid()):
        with open("reports", "a") as file:
            print(json.dumps([report.nodeid, report.when, report.outcome, report.capstdout]), file=file)
"""
MANY = """
import os, time, warnings
import pytest

def ran(name):
    with open("ran", "a") as file:
        print(name, file=file)

@pytest.fixture(scope="module")
def shared(request):
    ran("setup")
    yield 7
    ran("teardown")

@pytest.fixture
def broken():
    raise ValueError("no")

@pytest.mark.parametrize("number", range(12))
def test_passes(number, shared, tmp_path):
    ran(f"passes {number}")
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").write_text("x")
    print("printed by", number)

def test_fails():
    ran("fails")
    print("printed before it failed")
    assert 1 == 2

def test_is_skipped():
    pytest.skip("zsh is not installed: make system-parts")

@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail():
    assert False

def test_has_no_fixture(broken):
    pass
"""
CRASHES = """
import os, signal

def test_before():
    pass

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after():
    pass
"""


def run_suite(folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    for name in ("ran", "reports"):
        (folder / name).unlink(missing_ok=True)
    ran = subprocess.run(command(*arguments), cwd=folder, env=environment(), capture_output=True, text=True, timeout=60)
    reports = folder / "reports"
    return ran, [json.loads(line) for line in reports.read_text().splitlines()] if reports.exists() else []


def command(*arguments: str) -> list[str]:
    # A shell that started the tests in the background has them ignore Ctrl-C.
    start = "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); os.environ['COLLECTOR'] = str(os.getpid())"
    run = "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    return [
        sys.executable,
        "-c",
        f"{start}; {run}",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:anyio",
        *arguments,
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(MANY)
    return tmp_path


def test_each_test_runs_once_with_the_outcome_of_the_usual_loop(suite: Path) -> None:
    alone, expected = run_suite(suite)
    ran_alone = Counter((suite / "ran").read_text().splitlines())
    beside, got = run_suite(suite, "--workers", "3")
    assert sorted(got) == sorted(expected)
    assert Counter((suite / "ran").read_text().splitlines()) == ran_alone
    assert beside.returncode == alone.returncode == 1
    assert beside.stdout.splitlines()[-1].split(" in ")[0] == alone.stdout.splitlines()[-1].split(" in ")[0]


def test_a_worker_that_dies_fails_its_test_and_no_other(suite: Path) -> None:
    (suite / "test_crashes.py").write_text(CRASHES)
    _, got = run_suite(suite, "--workers", "2")
    outcomes = {node: outcome for node, when, outcome, _ in got if when == "call"}
    assert [outcomes[f"test_crashes.py::test_{name}"] for name in ("before", "is_killed", "after")] == ["passed", "failed", "passed"]
    assert Counter(outcomes.values()) == Counter(passed=38, failed=4, skipped=6)


def test_it_stops_at_the_first_failure_where_asked(suite: Path) -> None:
    ran, got = run_suite(suite, "--workers", "2", "-x")
    assert ran.returncode == 1
    assert "stopping after 1 failures" in ran.stdout
    assert sum(outcome == "failed" for _, _, outcome, _ in got) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_process_that_collected(suite: Path, number: signal.Signals) -> None:
    waits = "import os, time\n\ndef test_waits():\n    open(str(os.getpid()) + '.pid', 'w').close()\n    time.sleep(50)\n"
    for name in ("one", "two", "three"):
        (suite / f"test_{name}.py").write_text(waits)
    process = subprocess.Popen(command("--workers", "2"), cwd=suite, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True)
    while len(waiting := [int(file.stem) for file in suite.glob("*.pid")]) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
        process.wait(60)
    else:
        process.kill()
        process.wait(60)
        for pid in waiting:  # they notice when they ask for more, at the latest after the test
            os.kill(pid, 0)
            os.kill(pid, signal.SIGALRM)
    deadline = time.monotonic() + 60
    while any(is_running(pid) for pid in waiting):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Item:
    def __init__(self, path: int, number: int) -> None:
        self.path = Path(f"test_{path}.py")
        self.nodeid = f"{self.path}::{number}"
        self.fixturenames = ("place",) if number % 2 else ()


@given(st.lists(st.integers(0, 6), max_size=12), st.data())
def test_runs_hold_each_test_once_and_never_two_files(sizes: list[int], data: st.DataObject) -> None:
    items = [Item(path, number) for path, size in enumerate(sizes) for number in range(size)]
    measured = {item.nodeid: data.draw(st.floats(0, 9)) for item in items if data.draw(st.booleans())}
    runs = plan_runs(items, measured)  # type: ignore[arg-type]
    assert sorted(index for run in runs for index in run) == list(range(len(items)))
    for run in runs:
        assert run == list(range(run[0], run[-1] + 1))
        assert len({items[index].path for index in run}) == 1
        assert len(run) == 1 or sum(measured.get(items[index].nodeid, 0) for index in run) <= LONG_RUN


@given(st.text(alphabet="ab\n", max_size=300), st.integers(3, 20))
def test_a_shortened_text_has_no_more_lines_than_asked_for_and_one(text: str, most: int) -> None:
    shown = middle_left_out(text, most)
    assert len(shown.splitlines()) <= most + 1
    if len(lines := text.splitlines()) <= most:
        assert shown == "\n".join(lines)


def test_minutes_have_two_digits_for_seconds() -> None:
    assert [in_minutes(each) for each in (0.4, 9, 61.9, 600)] == ["0:00", "0:09", "1:01", "10:00"]
