"""Clients of the protocol that are not ours, end to end: acpx, the official SDKs of Python, in two versions, and TypeScript, and harbor's
runner."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from editor import MODEL, WITHIN_S

from node_parts import ROOT, node, require_package
from program import Place, Service
from system_parts import IS_BUILD_MACHINE

CLIENTS = ROOT / ".venv" / "clients"
AGENT = [sys.executable, "-m", "dragoman", "acp", "-m", MODEL]
WORK = """\
thought: Let me look.
call: read_file {"file_path": "a.txt"}
call: list_directory {}
---
call: edit {"file_path": "a.txt", "old_string": "two", "new_string": "2"}
---
call: run_shell {"command": "echo so far; exit 3"}
---
call: todo {"items": [{"content": "mend it", "status": "in_progress"}]}
---
text: Done.
---
text: Begun.
wait: 60
text: never
"""
Serve = Callable[..., Service]


@pytest.fixture
def text(place: Place, serve: Serve) -> Path:
    serve(WORK)
    path = place.work / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    return path


def require_client(path: str) -> Path:
    """A file of what `make conformance` fetched. Without it the test is skipped, on a build machine it fails."""
    if (found := CLIENTS / path).exists():
        return found
    reason = f"{path} is not here: make conformance"
    if IS_BUILD_MACHINE:
        pytest.fail(reason)
    pytest.skip(reason)


def run(place: Place, command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    # The SDKs warn of fields of their own models.
    environment = place.env | {"PYTHONWARNINGS": "ignore"} | env
    return subprocess.run(command, cwd=place.work, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=False)


@pytest.mark.parametrize(("permissions", "code", "second"), [("--approve-all", 0, "2"), ("--deny-all", 5, "two")])
def test_acpx(place: Place, text: Path, permissions: str, code: int, second: str) -> None:
    client = require_package("acpx") / "dist" / "cli.js"
    options = ["--agent", shlex.join(AGENT), permissions, "--format", "json"]
    done = run(place, [node(), str(client), *options, "exec", "go"], PATH=f"{Path(node()).parent}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == code, done
    assert text.read_text() == f"one\n{second}\nthree\n"
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert messages[-1]["result"] == {"stopReason": "end_turn"}
    assert not any("error" in each for each in messages)


@pytest.mark.parametrize("version", ["of the group dev", "1.0.0rc3"])
def test_the_python_sdk(place: Place, text: Path, version: str) -> None:
    found = {} if version == "of the group dev" else {"PYTHONPATH": str(require_client("agent_client_protocol-1.0.0rc3.dist-info").parent)}
    done = run(place, [sys.executable, str(Path(__file__).parent / "sdk_client.py"), *AGENT], **found)
    assert done.returncode == 0, done
    seen: dict[str, Any] = json.loads(done.stdout)
    assert (seen["version"], seen["agent"], seen["stopped"], seen["cancelled"]) == (1, "dragoman", "end_turn", "cancelled")
    assert (seen["asked"], seen["sessions"]) == (1, 1)
    assert (seen["live"]["tool_call"], seen["loaded"]["tool_call"]) == (5, 5)
    assert seen["loaded"]["user_message_chunk"] == seen["loaded"]["plan"] == 1
    assert text.read_text() == "one\n2\nthree\n"


def test_the_typescript_sdk(place: Place, text: Path) -> None:
    sdk = require_package("@agentclientprotocol/sdk")
    done = run(place, [node(), str(Path(__file__).parent / "sdk_client.mjs"), str(sdk), *AGENT])
    assert (done.returncode, done.stderr) == (0, ""), done
    seen: dict[str, Any] = json.loads(done.stdout)
    assert (seen["version"], seen["agent"], seen["stopped"], seen["code"]) == (1, "dragoman", "end_turn", 0)
    assert (seen["asked"], seen["sessions"], seen["left"]) == (1, 1, 0)
    assert seen["options"] == [MODEL, "plan", "high"]
    assert (seen["live"]["tool_call"], seen["loaded"]["tool_call"]) == (5, 5)
    assert seen["loaded"]["user_message_chunk"] == seen["loaded"]["plan"] == 1
    assert text.read_text() == "one\n2\nthree\n"


def test_the_runner_of_harbor(place: Place, text: Path) -> None:
    """Copied out of its folder: `acp.py` beside it would be taken for the SDK."""
    runner = Path(shutil.copy(require_client("harbor/agents/installed/acp_runner.py"), place.home))
    launcher = place.home / "launch"
    launcher.write_text(f"#!/bin/sh\nexec {shlex.join(AGENT)}\n")
    launcher.chmod(0o755)
    logs = place.home / "logs"
    options = ["--instruction", "go", "--logs-dir", str(logs), "--launcher", str(launcher)]
    done = run(place, [sys.executable, str(runner), *options], HARBOR_ACP_REQUESTED_MODEL=MODEL)
    assert done.returncode == 0, done
    summary = json.loads((logs / "acp-summary.json").read_text())
    assert summary["prompt_response"] == {"stopReason": "end_turn"}
    assert summary["set_model_mechanism"] == "session_config_option"
    assert summary["resolved_session_model_id"] == MODEL
    assert summary["latest_usage_update"]["cost"]["amount"] > 0
    assert "[tool] a3.1 -> failed" in done.stdout
