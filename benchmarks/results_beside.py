"""`python -m benchmarks.results_beside`: what the model is told of seventeen calls, beside Claude Code and pi.

Each program works in the same small project against a model on loopback that makes the calls, one an answer, under that program's own tool
names; what it makes of them is read off its next requests. `DRAGOMAN_PEERS=FOLDER` names where the others are: each is looked for as
`FOLDER/NAME/node_modules/.bin/NAME`, and `FOLDER/node22/node_modules/node/bin` goes before PATH. Without it, ours is measured alone.
`--save FILE` keeps ours, `--before FILE` shows what was kept beside it, `--page docs/inside/results-beside.md` puts the tables there.
Run it where there is no network but loopback:

    unshare -n sh -c 'ip link set lo up; exec "$@"' sh python -m benchmarks.results_beside
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.conversation import told
from benchmarks.counting import tokens_of
from benchmarks.ledger_project import lay_out
from benchmarks.table import Cell, Table
from dragoman.testing import MockServer
from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer

WORDS = 100
"""How much of a result is quoted."""


MARK = "<!-- python -m benchmarks.results_beside -->"
"""Stands before and after the tables in the page."""


class Call(NamedTuple):
    """A call in words that every program has: a kind, and what it is about."""

    kind: str
    path: str = ""
    old: str = ""
    new: str = ""
    command: str = ""
    offset: int = 0
    limit: int = 0
    timeout_s: int = 0


MODULE = "src/ledger/amounts.py"
CALLS = {
    "read a file": Call("read", MODULE),
    "read 20 lines of it": Call("read", MODULE, offset=40, limit=20),
    "read a file that is not there": Call("read", "src/ledger/amount.py"),
    "read a directory": Call("read", "src/ledger"),
    "edit": Call("edit", MODULE, old="def amounts_step_3(", new="def amounts_stage_3("),
    "edit, text not there": Call("edit", MODULE, old="def amounts_step_3(", new="def amounts_stage_3("),
    "edit, text there many times": Call("edit", MODULE, old="if amount < 0:", new="if amount <= 0:"),
    "write a new file": Call("write", "docs/notes.md", new="# Notes\n\nNothing yet.\n"),
    "search (73 matches)": Call("grep", "src", old="def [a-d][a-z]*_step"),
    "find files": Call("glob", old="*.py"),
    "`ls -la src/ledger`": Call("run", command="ls -la src/ledger"),
    "a test that fails": Call("run", command="python -m pytest -q -p no:cacheprovider tests/test_quotas.py"),
    "`exit 3`": Call("run", command="exit 3"),
    "`seq 1 200000`": Call("run", command="seq 1 200000"),
    "one line of 300 KB": Call("run", command="head -c 300000 /dev/zero | tr '\\0' x; echo"),
    "a build with colours and a bar": Call("run", command="python build.py 60"),
    "a command over its time": Call("run", command="echo begun; sleep 30", timeout_s=2),
}


class Program(NamedTuple):
    name: str
    argv: list[str]
    env: Mapping[str, str]
    files: Mapping[str, str] = {}


def translate(program: str, call: Call, work: Path) -> CallStep:
    """The call under the program's own names."""
    path = str(work / call.path)
    window = {"offset": call.offset, "limit": call.limit} if call.offset else {}
    match program, call.kind:
        case "dragoman", "read":
            return _step("read_file", file_path=call.path, **window)
        case "dragoman", "edit":
            return _step("edit", file_path=call.path, old_string=call.old, new_string=call.new)
        case "dragoman", "write":
            return _step("write_file", file_path=call.path, content=call.new)
        case "dragoman", "grep":
            return _step("grep", pattern=call.old, path=call.path)
        case "dragoman", "glob":
            return _step("glob", pattern=call.old)
        case "dragoman", _:
            return _step("run_shell", command=call.command, **({"timeout_s": call.timeout_s} if call.timeout_s else {}))
        case "claude", "read":
            return _step("Read", file_path=path, **window)
        case "claude", "edit":
            return _step("Edit", file_path=path, old_string=call.old, new_string=call.new)
        case "claude", "write":
            return _step("Write", file_path=path, content=call.new)
        case "pi", "read":
            return _step("read", path=call.path, **window)
        case "pi", "edit":
            return _step("edit", path=call.path, edits=[{"oldText": call.old, "newText": call.new}])
        case "pi", "write":
            return _step("write", path=call.path, content=call.new)
        case _:  # neither of the two offers a search of its own in this version: their models use the shell
            commands = {"grep": f"grep -rn '{call.old}' {call.path}", "glob": f"find . -name '{call.old}'"}
            command = commands.get(call.kind, call.command)
            limit = {"timeout": call.timeout_s * (1_000 if program == "claude" else 1)} if call.timeout_s else {}
            return _step("Bash" if program == "claude" else "bash", command=command, **limit)


def _step(name: str, **arguments: object) -> CallStep:
    return CallStep(name, json.dumps(arguments))


class Worker:
    """Makes the calls in order, and keeps the last request that has all results."""

    def __init__(self, steps: list[CallStep]) -> None:
        self.steps = steps
        self.body: dict[str, Any] = {}

    def __call__(self, asked: Any) -> ScriptedAnswer:
        if not asked.body.get("tools"):
            return ScriptedAnswer((Say("A title"),))
        self.body = asked.body
        done = len(told(asked.body))
        return ScriptedAnswer((self.steps[done],) if done < len(self.steps) else (Say("Done."),))


def programs(url: str, folder: str) -> list[Program]:
    model = {"id": "fake-model", "name": "fake-model", "reasoning": False, "input": ["text"], "contextWindow": 1_000_000, "maxTokens": 8192}
    model["cost"] = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    pi = {"providers": {"fake": {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "x", "models": [model]}}}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
    ours = [sys.executable, "-m", "dragoman", "-m", "anthropic/claude-opus-5", "--approval", "auto", "-p", "Go"]
    key = {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": url}
    found = [
        Program("claude", ["claude", "--dangerously-skip-permissions", "-p", "Go"], quiet | key),
        Program(
            "pi",
            ["pi", "--provider", "fake", "--model", "fake-model", "-p", "Go"],
            {"PI_OFFLINE": "1"},
            {".pi/agent/models.json": json.dumps(pi)},
        ),
        Program("dragoman", ours, key | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}),
    ]
    return [each for each in found if each.name == "dragoman" or (folder and _program(folder, each.name).exists())]


def label(program: Program, folder: str) -> str:
    """Its name and version, for the head of a column."""
    if program.name == "dragoman":
        return "Dragoman"
    path = f"{folder}/node22/node_modules/node/bin:{os.environ['PATH']}"
    command = [str(_program(folder, program.name)), "--version"]
    told_version = subprocess.run(
        command, env={"PATH": path, "HOME": "/nonexistent"}, capture_output=True, text=True, timeout=60, check=False
    )
    return f"{ {'claude': 'Claude Code'}.get(program.name, program.name) } {told_version.stdout.split()[0]}"


def _program(folder: str, name: str) -> Path:
    return Path(folder) / name / "node_modules" / ".bin" / name


@contextmanager
def serving(server: MockServer) -> Iterator[str]:
    """It checks nothing, so that any program can use it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(server.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)


def results_of(program: Program, server: MockServer, folder: str) -> dict[str, str]:
    # Always the same path: it stands in the results.
    top = Path("/var/tmp/dragoman-results")
    shutil.rmtree(top, ignore_errors=True)
    work, home = top / "ledger", top / "home"
    home.mkdir(parents=True)
    lay_out(work)
    for path, text in program.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, encoding="utf-8")
    worker = Worker([translate(program.name, call, work) for call in CALLS.values()])
    server.play(worker)
    path = f"{folder}/node22/node_modules/node/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb", **program.env}
    argv = [str(_program(folder, program.name)) if program.name != "dragoman" else program.argv[0], *program.argv[1:]]
    try:
        ran = subprocess.run(argv, env=env, cwd=work, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    texts = [result.text.replace(str(work), "WORK").replace(str(top), "TOP") for result in told(worker.body)]
    texts = [text.replace(str(top).replace("/", "-"), "-TOP") for text in texts]
    assert len(texts) == len(CALLS), (program.name, len(texts), ran.stdout[-500:], ran.stderr[-500:])
    return dict(zip(CALLS, texts, strict=True))


def tables(found: Mapping[str, Mapping[str, str]]) -> list[Table]:
    sizes = Table("The sizes of results: characters (and tokens)", ["call", *found])
    for what in CALLS:
        sizes.rows.append([what, *(_size(results[what]) for results in found.values())])
    sums = [sum(len(text) for text in results.values()) for results in found.values()]
    sizes.rows.append(["all", *sums])
    wording = Table("How they begin and end", ["call", *found])
    for what in CALLS:
        wording.rows.append([what, *(_quote(results[what]) for results in found.values())])
    return [sizes, wording]


def _size(text: str) -> Cell:
    counted = tokens_of(text).counted
    return f"{len(text):,}" + (f" ({counted:,})" if counted is not None else "")


def _quote(text: str) -> str:
    text = text if len(text) <= WORDS else f"{text[: WORDS * 2 // 3]} … {text[-WORDS // 3 :]}"
    shown = text.replace("\n", "⏎").replace("\r", "␍").replace("\x1b", "␛").replace("\t", "→").replace("|", "¦").replace("`", "'")
    return f"`{shown.strip()}`" if shown.strip() else "(nothing)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep ours, for --before")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables into this page, between its marks")
    parser.add_argument("--before", type=Path, metavar="FILE", help="ours of another tree, to show beside")
    given = parser.parse_args()
    folder = os.environ.get("DRAGOMAN_PEERS", "")
    server = MockServer(rules=None)
    with serving(server) as url:
        found = {label(program, folder): results_of(program, server, folder) for program in programs(url, folder)}
    if given.save:
        given.save.write_text(json.dumps(found["Dragoman"], ensure_ascii=False, indent=1), encoding="utf-8")
    if given.before:
        ours = found.pop("Dragoman")
        found |= {"Dragoman before": json.loads(given.before.read_text(encoding="utf-8")), "Dragoman now": ours}
    shown = "\n".join(table.markdown().replace("### ", "## ") for table in tables(found))
    if given.page:
        head, _, rest = given.page.read_text(encoding="utf-8").partition(MARK)
        _, _, end = rest.partition(MARK)
        given.page.write_text(f"{head}{MARK}\n\n{shown}\n{MARK}{end}", encoding="utf-8")
    print(shown)


if __name__ == "__main__":
    main()
