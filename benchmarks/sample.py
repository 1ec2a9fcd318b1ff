"""Running a program and seeing what it cost. CPU time is that of the child alone, so it hardly depends on who else is at work."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
SDK = {"openai_chat": "openai", "openai_responses": "openai", "anthropic": "anthropic", "gemini": "google-genai"}
"""Protocol → its official SDK."""


@dataclass
class Sample:
    started_s: float
    """On the monotonic clock, which all processes share."""
    wall_ms: float
    cpu_ms: float
    said: str


def run(argv: Sequence[str]) -> Sample:
    """Run a program to its end. What it writes to stderr is shown; a failure is raised."""
    started = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT, env=_environment(), text=True)
    assert process.stdout is not None
    with process.stdout as pipe:
        said = pipe.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall_ms = (time.monotonic() - started) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with {process.returncode}")
    return Sample(started, wall_ms, (usage.ru_utime + usage.ru_stime) * 1000, said)


def _environment() -> dict[str, str]:
    """Ours, without proxies: nothing here leaves the machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def python(*arguments: str) -> list[str]:
    """A fresh interpreter that neither the working directory nor the user's variables can slow down."""
    return [sys.executable, "-I", *arguments]


def module(name: str, *arguments: str) -> list[str]:
    """A module of this package, in a process of its own."""
    return [sys.executable, "-m", f"benchmarks.{name}", *arguments]


def interleaved(cases: Mapping[Any, Callable[[], Any]], repetitions: int) -> dict[Any, list[Any]]:
    """Every case once, then every case again: what slows the machine down for a while slows all of them. The first round is thrown away."""
    results: dict[Any, list[Any]] = {name: [] for name in cases}
    for number in range(repetitions + 1):
        for name, case in cases.items():
            value = case()
            if number:
                results[name].append(value)
    return results


def best(values: Sequence[float]) -> float:
    return min(values)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def peak_rss_mib() -> float:
    """The most memory this process has held so far."""
    try:
        # getrusage would count what the parent held when it started us.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)
