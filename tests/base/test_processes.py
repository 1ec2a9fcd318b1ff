"""Ending a process with all that it started. How commands end with their call: tests/tools/test_process.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.base.processes import COOKIE, _pids_with_cookie, end_processes, kill_group

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

SLEEPERS = "sleep 60 & echo $! > child; trap '' TERM; echo ready; wait; sleep 60"


def start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen(["/bin/sh", "-c", SLEEPERS], cwd=folder, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process, int((folder / "child").read_text())


def is_gone(pid: int) -> bool:
    """Whether a process ends soon: where nobody collects it, it stays as a zombie."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("end", [kill_group, lambda pid: end_processes(pid, "")], ids=["at once", "politely first"])
def test_a_group_ends_with_its_children(tmp_path: Path, end: object) -> None:
    assert callable(end)
    process, child = start(tmp_path)
    end(process.pid)
    assert process.wait(60) == -signal.SIGKILL
    assert is_gone(child)
    assert process.stdout is not None
    process.stdout.close()
    end(process.pid)  # nothing is left to end, and nothing is raised


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others are found by /proc")
def test_only_the_variable_of_calls_says_whose_a_process_is() -> None:
    """A key that has the same letters in it is no cookie."""
    mark = os.urandom(6).hex()
    start = ["/bin/sh", "-c", "echo ready; sleep 600 & wait"]
    with (
        subprocess.Popen(start, env={"A_KEY": f"sk-test-{mark}cdef"}, stdout=subprocess.PIPE, start_new_session=True) as other,
        subprocess.Popen(start, env={COOKIE: f"outer {mark}.1"}, stdout=subprocess.PIPE, start_new_session=True) as ours,
    ):
        for each in (other, ours):
            assert each.stdout is not None
            assert each.stdout.readline() == b"ready\n"
        end_processes(None, mark)
        assert ours.wait(60) in (-signal.SIGTERM, -signal.SIGKILL)
        assert other.poll() is None
        kill_group(other.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by their environment")
def test_a_process_is_found_also_in_the_moment_it_is_started() -> None:
    """While a program takes the place of another, its environment cannot be read: what was started just then lived on."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})  # one processor: we often look while the other has not come to its turn
    try:
        for number in range(150):
            env = {COOKIE: f"started-{os.getpid()}-{number}"}
            with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], env=env, start_new_session=True) as process:
                try:
                    assert _pids_with_cookie(env[COOKIE], COOKIE) == [process.pid]
                finally:
                    process.kill()
    finally:
        os.sched_setaffinity(0, cpus)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by their environment")
def test_a_process_without_an_environment_is_nobodys() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], env={}, start_new_session=True) as process:
        end_processes(None, f"nobody-{os.getpid()}")
        assert process.poll() is None
        process.kill()
