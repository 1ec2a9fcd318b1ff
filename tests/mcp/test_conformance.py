"""The official conformance suite, against our client: everything that a revision of the protocol requires."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import conformance_client
import pytest

from node_parts import LOCK, node, require_package

CLIENT = Path(conformance_client.__file__)
SUITE = "@modelcontextprotocol/conformance"
_LINE = re.compile(r"^. (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)


@pytest.mark.parametrize(("revision", "at_least"), [("2026-07-28", 32), ("2025-11-25", 18)])
def test_every_scenario_that_a_revision_requires_passes(revision: str, at_least: int, tmp_path: Path) -> None:
    suite = require_package(SUITE)
    required = required_scenarios(suite, revision)
    assert len(required) == at_least

    argv = [node(), str(suite / "dist" / "index.js"), "client", "--command", shlex.join([sys.executable, str(CLIENT)])]
    ran = subprocess.run(
        [*argv, "--requirements", revision, "-o", str(tmp_path), "--timeout", "60000"],  # all scenarios are run at once
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )

    summary = ran.stdout.partition("SUITE SUMMARY")[2]
    counted = {name: (int(passed), int(failed)) for name, passed, failed in _LINE.findall(summary)}
    wanted = [name for name in required if conformance_client.SIGNS_IN or not name.startswith("auth/")]
    wrong = {name: counted.get(name) for name in wanted if counted.get(name, (0, 1))[0] == 0 or counted[name][1]}
    assert not wrong, "\n".join(why_it_failed(tmp_path, name) for name in wrong) or ran.stdout[-4000:] + ran.stderr[-2000:]


def test_the_suite_is_the_one_that_was_pinned_and_names_no_registry() -> None:
    lock = json.loads(LOCK.read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}

    assert packages[f"node_modules/{SUITE}"]["version"] == "0.2.0-alpha.12"
    # A mirror that lacks what is only for other systems gave no hash of it: none of that is fetched here.
    unhashed = {name for name, each in packages.items() if "integrity" not in each}
    assert all(packages[name]["optional"] and name.startswith("node_modules/@openclaw/fs-safe-") for name in unhashed), unhashed
    assert all(each["integrity"].startswith("sha512-") for name, each in packages.items() if name not in unhashed)
    assert not any("resolved" in each for each in packages.values())


def why_it_failed(results: Path, name: str) -> str:
    checks = [check for file in results.glob(f"{name}-*/checks.json") for check in json.loads(file.read_text())]
    failed = [check for check in checks if check["status"] == "FAILURE"]
    said = [file.read_text()[-1000:] for file in results.glob(f"{name}-*/stderr.txt")]
    return f"{name}: {json.dumps(failed)[:2000]} {said}"


def required_scenarios(suite: Path, revision: str) -> list[str]:
    """From the suite's own list: `client:`, up to the next key."""
    text = (suite / "requirements" / f"{revision}.yaml").read_text()
    section = re.split(r"^client:\n", text, flags=re.MULTILINE)[1]
    return re.findall(r"^  - (\S+)$", re.split(r"^\w", section, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)
