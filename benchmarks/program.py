"""The program as a user starts it, with a home of its own and a model on loopback, from the tree that this process has on its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.ours import MODELS


def run_program(protocol: str, url: str, folder: Path, workspace: Path, prompt: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Ask once, in the mode auto. `folder` gets its home."""
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "DRAGOMAN_HOME": str(folder / "home" / "dragoman"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "LANG": "C.UTF-8",
        **dict.fromkeys(("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "a-key"),
        "GOOGLE_GEMINI_BASE_URL": url,
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
    }
    (folder / "home").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "dragoman", "-m", MODELS[protocol], "--approval", "auto", "-C", str(workspace), *more, "-p", prompt]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=1_800, check=False, stdin=subprocess.DEVNULL)


def recorded_entries(home: Path) -> list[dict[str, Any]]:
    """What the records of the sessions have, in order."""
    paths = sorted(home.glob("dragoman/data/sessions/*/*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def recorded_results(home: Path) -> list[tuple[str, str, str]]:
    """Tool, text and outcome of each call that the record has. One that ran outside the sandbox is left out."""
    entries = recorded_entries(home)
    outside = {entry["call_id"] for entry in entries if entry["kind"] == "tool_started" and entry.get("outside")}
    found: list[tuple[str, str, str]] = []
    for entry in entries:
        if entry["kind"] == "tool_finished" and entry["result"]["call_id"] not in outside:
            text = "\n".join(part.get("text", "") for part in entry["result"]["content"])
            found.append((entry["result"]["name"], text, entry.get("outcome", "finished")))
    return found
