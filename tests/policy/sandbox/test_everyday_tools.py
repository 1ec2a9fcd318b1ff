"""Everyday tools at every level, as root and as another user. The table in docs/operate/sandbox-tools.md is what these runs found."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.policy.sandbox.refusal_words import read_sentence
from dragoman.values.calls import Allow
from loop.test_writing import run_commands
from policy.sandbox.everyday_tools import GREETER, ORDER, ROWS, Row
from policy.sandbox.test_escapes import IS_ROOT, LEVELS, ROOT, world
from reachable import AS_NOBODY, NOBODY, find_reachable
from system_parts import IS_BUILD_MACHINE, require_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

PAGE = ROOT / "docs" / "operate" / "sandbox-tools.md"
IS_LONG = bool(os.environ.get("DRAGOMAN_LONG"))
USERS = ("root", "user") if IS_ROOT else ("user",)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS))
BROUGHT = ("bwrap", "go", "chromium", "curl", "git")
"""By `make system-parts`: where one is missing, a build machine must say so. Other tools are tested where they are."""


class Found(NamedTuple):
    cell: str
    ran: list[dict[str, Any]]


def spread() -> list[tuple[int, str, str]]:
    """Each group at each level, at the first as root, and each level as each user; with DRAGOMAN_LONG all there is."""
    if IS_LONG or not IS_ROOT:
        return [(level, user, group) for group in GROUPS for level in LEVELS for user in USERS]
    found = [(1, "user", group) for group in ("git", "servers")]
    for number, group in enumerate(GROUPS):
        found += [(1, "root", group), (2, USERS[number % 2], group), (3, USERS[1 - number % 2], group)]
    return found


@pytest.mark.parametrize(("level", "user", "group"), spread())
def test_tools_need_what_the_page_says(level: int, user: str, group: str) -> None:
    if level == 2:
        require_program("bwrap")
    wanted = [row for row in ROWS if row.group == group and (IS_LONG or level == 1 or not row.is_more)]
    rows = [row for row in wanted if all(is_there(program) for program in row.needs)]
    if not rows:
        pytest.skip(f"not installed, and not brought by make system-parts: {group}")
    found = run_rows(level, user, rows)
    failed = {name: each.ran[-1] for name, each in found.items() if each.cell in ("silent", "no")}
    assert not failed, "what fails names the sandbox, and the way out"
    column = LEVELS.index(level) * 2 + ("root", "user").index(user)
    assert {name: each.cell for name, each in found.items()} == {row.name: table()[row.name][column] for row in rows}


def test_the_page_has_a_row_for_each_tool() -> None:
    assert list(table()) == [row.name for row in ROWS]


def test_system_parts_bring_what_is_required() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    packages = {"bwrap": "bubblewrap", "go": "golang-go"}
    [parts] = re.findall(r"^PARTS := (.*)$", makefile, re.MULTILINE)
    assert {packages.get(program, program) for program in BROUGHT} - {"git"} <= set(parts.split())


def test_what_the_first_run_of_npx_left_half_made_is_named_and_can_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_there("npx"):
        pytest.skip("npx is not installed")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / "greeter").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    for name, text in GREETER.items():
        (work / "greeter" / name).write_text(text)
    command = "npx --offline --yes ./greeter"
    remove = "rm -r $npm_config_cache/_npx/*"
    happened = run_commands(work, command, remove, {"command": command, "writes": True}, answer=Allow())
    refused, _, mended = happened.results
    if not refused["exitCode"]:
        pytest.skip("this npm leaves nothing half made")
    told = read_sentence(refused["sandbox"])
    assert told is not None
    assert (told[0], os.path.basename(os.path.dirname(told[1]["path"]))) == ("half_made", "_npx")
    assert mended["stdout"] == "greeted\n"


def table() -> dict[str, list[str]]:
    """Tool → what it needs at level 1 as root and as a user, at level 2, at level 3, as the page says."""
    rows = re.findall(r"^\| (.+?) \|" + r" (\w+) \|" * 6 + "$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {row[0]: list(row[1:]) for row in rows}


def is_there(program: str) -> bool:
    if program in BROUGHT:
        require_program(program)
    path = os.pathsep.join((os.environ["PATH"], *postgres_programs(), os.path.dirname(sys.executable)))
    found = shutil.which(program, path=path)
    return found is not None and (program != "cargo" or bool(rust_toolchain()))


def postgres_programs() -> list[str]:
    """Where Debian has the server's, beside PATH."""
    return sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:]


def rust_toolchain() -> str:
    """The folder of cargo's own toolchain: rustup puts a program of that name on PATH without one."""
    asked = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def run_rows(level: int, user: str, rows: list[Row]) -> dict[str, Found]:
    is_other = user == "user" and IS_ROOT
    reachable = find_reachable(AS_NOBODY if is_other else ())
    for folder in world("another user" if is_other else user):
        tools = folder / "home" / ".local" / "bin"
        tools.mkdir(parents=True)
        shutil.copy(Path(sys.executable).parent / "uv", tools)
        path = [
            str(tools),
            os.path.dirname(reachable.python),
            *("/usr/local/bin:/usr/bin:/bin" if is_other else os.environ["PATH"]).split(":"),
        ]
        env = {"HOME": str(folder / "home"), "PYTHONPATH": reachable.all_modules, "LANG": "C.UTF-8"}
        command: list[str] = []
        if any("cargo" in row.needs for row in rows):
            path.insert(1, str(folder / "rust" / "bin"))
            command = lend(rust_toolchain(), folder / "rust")
        if is_other:
            for each in (folder / "home", tools.parent, tools):
                os.chown(each, NOBODY, NOBODY)
            command += AS_NOBODY
        runner = str(reachable.sandbox_programs / "everyday_runner.py")
        argv = [*command, reachable.python, runner, str(level), str(folder), str(NOBODY), *(row.name for row in rows)]
        env["PATH"] = os.pathsep.join((*path, *postgres_programs()))
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(done.stdout)
        if "" in told:
            pytest.fail(told[""]) if IS_BUILD_MACHINE else pytest.skip(told[""])
        return {name: Found(max((each["needed"] for each in ran), key=ORDER.index), ran) for name, ran in told.items()}
    raise AssertionError


def lend(toolchain: str, place: Path) -> list[str]:
    """A command that runs another with this folder seen at another place: the other user cannot read root's home."""
    if not IS_ROOT:
        place.symlink_to(toolchain)
        return []
    place.mkdir()
    return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', toolchain, str(place)]


def main() -> None:
    """Print the rows of the table as they are now: `PYTHONPATH=tests python tests/policy/sandbox/test_everyday_tools.py`."""
    cells = {(level, user): run_rows(level, user, list(ROWS)) for level in LEVELS for user in USERS}
    for row in ROWS:
        print(f"| {row.name} | " + " | ".join(cells[level, user][row.name].cell for level in LEVELS for user in USERS) + " |")


if __name__ == "__main__":
    main()
