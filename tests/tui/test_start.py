"""The first frame: what may be loaded before it, and what it must not cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.tui.first import _is_conversation
from program import Place, script, service
from terminals import terminal

HEAVY = {
    "asyncio",
    "msgspec",
    "logging",
    "json",
    "ssl",
    "socket",
    "inspect",
    "dragoman.cli.program",
    "dragoman.loop.agent",
    "dragoman.app.setup",
}


def test_the_first_frame_is_drawn_before_anything_heavy_is_loaded() -> None:
    code = "import sys; before = set(sys.modules); import dragoman.cli.main, dragoman.tui.first; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & HEAVY
    ours = {name for name in loaded if name.startswith("dragoman")}
    assert len(ours) <= 22, sorted(ours)


@pytest.mark.parametrize(
    "arguments", [(), ("-r",), ("-r", "1a2b"), ("--resume", "1a2b"), ("-c",), ("-m", "openai/gpt-4.1"), ("two words",)]
)
def test_a_conversation_is_known_by_its_arguments(arguments: tuple[str, ...]) -> None:
    assert _is_conversation(arguments)


@pytest.mark.parametrize("arguments", [("doctor",), ("-p", "hi"), ("-r", "1a2b", "-p", "hi"), ("--version",), ("-m",)])
def test_other_commands_draw_no_first_frame(arguments: tuple[str, ...]) -> None:
    assert not _is_conversation(arguments)


def test_one_answer_loads_nothing_of_the_conversation(place: Place) -> None:
    code = (
        "import sys\nfrom dragoman.cli.main import main\ncode = main(['-m', 'anthropic/claude-opus-5', '-p', 'hi'])\n"
        "print(code, *[name for name in sys.modules if name.startswith('dragoman.tui')], file=sys.stderr)"
    )
    with service(script("text: Hello.")) as place.service:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=place.env, cwd=place.work, stdin=subprocess.DEVNULL)
    assert done.stderr.strip().splitlines()[-1] == "0"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell how long a process ran")
def test_the_first_frame_and_the_first_key_cost_little(place: Place) -> None:
    """Aims, which benchmarks measure: 0.05 s and 0.12 s of processor time, and 32 MiB at the prompt. This finds what multiplies them."""
    place.starts_really = True
    with service(script("text: Hello.")) as place.service:
        found = sorted(started(place) for _ in range(3))[0]
    frame_s, key_s, mib = found
    assert frame_s < 3
    assert key_s < 5
    assert mib < 40


def started(place: Place) -> tuple[float, float, float]:
    with terminal(place, size=(24, 80)) as shown:
        pid = shown.process.pid
        shown.expect("Ask, /")
        frame_s = processor_s(pid)
        shown.send("q")
        shown.expect("q")
        key_s = processor_s(pid)
        shown.expect("opus-5")
        time.sleep(0.3)
        resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
        return frame_s, key_s, int(resident.split()[1]) / 1024


def processor_s(pid: int) -> float:
    tasks = os.listdir(f"/proc/{pid}/task")
    return sum(int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) for task in tasks) / 1e9
