"""Every attack at every level, as root and as another user, for real. The table in docs/operate/escapes.md is what these runs found."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reachable import AS_NOBODY, NOBODY, find_reachable
from system_parts import IS_BUILD_MACHINE, require_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
PAGE = ROOT / "docs" / "operate" / "escapes.md"
LEVELS = (1, 2, 3)
IS_ROOT = os.getuid() == 0
USERS = ("root", "another user") if IS_ROOT else ("the user",)
DEPENDS = re.compile(r"leave the machine|io_uring|new namespaces|bpf|netlink|another process|UDP")
"""What some systems forbid every program."""
Found = dict[str, str]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_the_level_holds_what_the_page_says(level: int, user: str) -> None:
    if level == 2:
        require_program("bwrap")
    found = attack(level, user)
    assert set(found) == set(table()), "the page has a row for each attack"
    assert found == {name: row[level] for name, row in table().items()}


def test_without_a_sandbox_the_attacks_work() -> None:
    """Else holding them would mean nothing. As root they would really damage the machine."""
    found = attack(0, USERS[-1])
    expected = [name for name, row in table().items() if row[0] == "open" and not DEPENDS.search(name)]
    unlike = {name: found[name] for name in expected if found[name] != "open"}
    assert not unlike
    assert sum(row[0] == "open" for row in table().values()) >= 35


def test_a_command_at_level_three_is_told_what_was_put_back() -> None:
    assert "put back" in {row[3] for row in table().values()}


def table() -> dict[str, list[str]]:
    """Attack → what the page says without a sandbox and at levels 1 to 3."""
    rows = re.findall(
        r"^\| (.+?) \| (open|–) \| (\w[\w ]*) \| (\w[\w ]*) \| (\w[\w ]*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {row[0]: list(row[1:]) for row in rows}


@cache
def attack(level: int, user: str) -> Found:
    command = AS_NOBODY if user == "another user" else ()
    reachable = find_reachable(command)
    for folder in world(user):
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "CORP_LOGIN": f"secret-{uuid.uuid4().hex}",
            "PYTHONPATH": os.pathsep.join(reachable.modules),
        }
        argv = [*command, reachable.python, str(reachable.sandbox_programs / "escape_runner.py"), str(level), str(folder), reachable.python]
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found: Found = json.loads(done.stdout)
        if "" in found:
            pytest.fail(found[""]) if IS_BUILD_MACHINE else pytest.skip(found[""])
        return found
    raise AssertionError


def world(user: str) -> Iterator[Path]:
    """A folder for the user that is not beneath /tmp, which the sandbox replaces."""
    places = ["/var/cache", "/var/tmp"] if IS_ROOT else [os.path.expanduser("~"), "/var/tmp"]
    folder = Path(tempfile.mkdtemp(prefix="dragoman-test-", dir=next(place for place in places if os.access(place, os.W_OK))))
    try:
        if user == "another user":
            os.chown(folder, NOBODY, NOBODY)
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Print the rows of the table as they are now: `python tests/policy/sandbox/test_escapes.py`."""
    without, *levels = (attack(level, USERS[-1]) for level in (0, *LEVELS))
    for name in without:
        cells = ["open" if without[name] == "open" else "–", *(level[name] for level in levels)]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
