"""How many questions a day's commands ask in the mode `default`, by running them: with the workspace read-only first, where a sandbox of
level 1 or 2 works, and a person who answers the first question about writing with "for this session".

`python -m benchmarks.unasked` runs 31 everyday commands in a clone of this repository, and the commands of recorded sessions
(`corpora/traces`) in stand-ins for their repositories: files of the names that the commands mention, a package.json, a first commit. No
host is reached: a question about one is counted and answered with no. What fails for other reasons, mostly because the real files are
absent, is counted apart.
A command that was refused to write and succeeded all the same, as one behind a pipe, is called again with `writes`, and one that the
sandbox stopped with `outside`, as the model is told to: then that asks.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.questions import FOLDER, _commands
from benchmarks.table import Table
from dragoman.loop.agent import Agent
from dragoman.loop.options import ApprovalOptions, Sandboxing, ToolOptions, WorkspaceOptions
from dragoman.testing import ScriptedProvider
from dragoman.testing.script import Playback
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.commands import REFUSED_TO_WRITE
from dragoman.values.messages import ToolCall, ToolResult
from dragoman.values.record import ToolFinished

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 20
EVERYDAY = (
    "python3 --version", "node --version", "npm --version", "git status", "git log --oneline -5", "git diff HEAD~1 --stat", "ls -la src",
    "ps aux | head -5", "df -h .", "env | sort | head -5", "ruff check src/dragoman/base", "make -n check", "make help",
    "python3 -c 'import sys; print(sys.path)'", "python3 -m pytest -q tests/policy/test_emptying.py", "mypy --version", "pip list",
    "node -e 'console.log(1 + 1)'", "npm ls", "find . -name '*.toml' -newer README.md", "wc -l src/dragoman/loop/*.py", "du -sh docs",
    "mkdir -p build/out", "echo hello > build/out/a.txt", "git add -A", "git -c user.name=n -c user.email=e commit -qm 'a change'",
    "git checkout -q -b topic", "sed -i s/hello/bye/ build/out/a.txt", "npm install --no-audit left-pad", "ruff format src/dragoman/base",
    "rm -rf build",
)  # fmt: skip
"""A list of our own."""
_FILE = re.compile(r"(?<![\w/~.-])(?:[\w@.-]+/)*[\w-]+\.(?:tsx?|jsx?|mjs|json|md|py|sh|toml|txt|ya?ml|css|html)\b")
_SCRIPTS = {"build": "mkdir -p dist && touch dist/out.js", "check": "node -e 0", "test": "node -e 0", "dev": "node -e 0"}


class Ran(NamedTuple):
    command: str
    asked: tuple[str, ...]
    """Why, for each question: `write`, `host`, or what a rule says."""
    exit_code: int | None
    """None: it was not run, or not to its end."""


def run_commands(folder: Path, commands: Sequence[str]) -> list[Ran]:
    """One session, in the mode default."""
    asked: list[str] = []

    def answer(call: ToolCall, intent: Intent) -> Allow | Deny:
        asked.append(_reason(call, intent))
        return Allow(commands_write=True) if call.name == "run_shell" and not intent.outside else Deny("no")

    provider = ScriptedProvider("text: Hello.")

    async def main() -> list[Ran]:
        ran: list[Ran] = []

        async def call(command: str, **more: object) -> str:
            wanted = json.dumps({"command": command, "timeout_s": TIMEOUT_S, **more})
            provider.playback = Playback(f"call: run_shell {wanted}\n---\ntext: Good.")
            await agent.run("go on")
            told = [part.text for message in provider.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]
            return told[-1]

        async with Agent(
            provider,
            tools=ToolOptions(builtin=["run_shell"], sandbox=Sandboxing()),
            workspace=WorkspaceOptions(root=folder, describe=False),
            approval=ApprovalOptions(ask=answer),
        ) as agent:
            for command in commands:
                asked.clear()
                told = await call(command)
                if not asked and REFUSED_TO_WRITE in told:  # `npm run build | tail -3` is refused to write, and succeeds
                    told = await call(command, writes=True)
                if not asked and "with `outside`" in told:
                    told = await call(command, outside="It needs to.")
                ended = [entry.command for entry in agent.history.entries if isinstance(entry, ToolFinished)][-1]
                ran.append(Ran(command, tuple(asked), None if ended is None or ended.timed_out else ended.exit_code))
        return ran

    return asyncio.run(main())


def _reason(call: ToolCall, intent: Intent) -> str:
    if call.name != "run_shell":
        return "host"
    if intent.outside:
        return "outside"
    return "write" if intent.writing in ("refused", "wanted") else intent.why or "asked beforehand"


def run_everyday() -> list[Ran]:
    with tempfile.TemporaryDirectory(prefix="unasked-") as made:
        work = Path(made) / "repository"
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(work)], check=True)
        (work / "package.json").write_text(json.dumps({"name": "stand-in", "version": "1.0.0", "scripts": _SCRIPTS}))
        os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))  # pytest, ruff and the like
        return run_commands(work, EVERYDAY)


def run_recorded(folder: Path = FOLDER) -> list[Ran]:
    ran: list[Ran] = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        found = list(_commands(path))
        if found:
            with tempfile.TemporaryDirectory(prefix="unasked-") as made:
                work = Path(made) / os.path.basename(found[0][0])
                commands = [command.replace(workspace, str(work)) for workspace, command in found]
                make_stand_in(work, commands)
                ran += run_commands(work, commands)
    return ran


def make_stand_in(work: Path, commands: Iterable[str]) -> None:
    """A repository in which the files are that the commands mention. A script of its own stands for one that writes."""
    work.mkdir()
    package = json.dumps({"name": "stand-in", "version": "1.0.0", "scripts": _SCRIPTS})
    names = {name for command in commands for name in _FILE.findall(command.replace(f"{work}/", ""))}
    for name in {"package.json", "README.md", *names}:
        path = work / name
        if ".." in path.parts or path.exists():
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                {".json": package, ".sh": "mkdir -p journal && date > journal/entry.md\n", ".py": "print(1)\n"}.get(
                    path.suffix, "const a = 1;\n"
                )
            )
        except OSError:
            continue
    for package_folder in {path.parent for path in work.glob("packages/*/src")}:
        (package_folder / "package.json").write_text(package)
    git = "git init -q && git add -A && git -c user.name=n -c user.email=e commit -qm first"
    subprocess.run(git, shell=True, check=True, cwd=work, capture_output=True)


def describe(title: str, ran: Sequence[Ran]) -> Table:
    reasons = Counter(reason for each in ran for reason in each.asked)
    failed = [each for each in ran if not each.asked and each.exit_code != 0]
    table = Table(title, ["", "commands"])
    calls_asked = sum(bool(each.asked) for each in ran)
    table.rows = [
        ["run", len(ran)],
        ["that asked", calls_asked],
        ["share", f"{calls_asked / len(ran):.1%}"],
        *([f"questions: {reason}", count] for reason, count in reasons.most_common()),
        ["that failed for other reasons, unasked", len(failed)],
    ]
    return table


def run(quick: bool) -> list[Table]:
    tables = [describe("Everyday commands in the mode default, writing allowed at the first question", run_everyday())]
    if FOLDER.is_dir() and not quick:
        tables.append(describe("Commands of recorded sessions, run in stand-ins for their repositories", run_recorded()))
    return tables


def main() -> None:
    for title, ran in (("Everyday commands", run_everyday()), ("Recorded sessions", run_recorded() if FOLDER.is_dir() else [])):
        if not ran:
            continue
        for each in ran:
            if each.asked or "-v" in sys.argv:
                print(f"{each.exit_code!s:>5}  {', '.join(each.asked):<12} {shlex.quote(each.command[:110])}")
        print(describe(title, ran).markdown())


if __name__ == "__main__":
    main()
