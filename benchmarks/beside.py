"""The same tool turns with Dragoman, pydantic-ai and openai-agents: CPU for each turn, memory and import, side by side in one run.

Each library lives in an environment of its own (`.venv-beside/`, made from the package registry, the newest versions; `REFRESH=1` makes
them anew), and Dragoman is installed there as anybody would install it. All of them ask one loopback service, which is another process.
`python -m benchmarks.beside serve TURNS` is the service.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import sample
from benchmarks.beside_clients.measuring import DONE
from benchmarks.sample import HERE, ROOT, best, interleaved, median
from benchmarks.table import Table

ENVIRONMENTS = ROOT / ".venv-beside"
TURNS = 200
SHORTER = (1, 5, 20, 50)
"""Runs that are as long as most are: what a library does once for a run weighs more there."""


class Peer(NamedTuple):
    packages: tuple[str, ...]
    """What is installed."""
    client: str
    imports: str
    """What a program that uses it imports first."""


PEERS = {
    "dragoman": Peer((str(ROOT),), "dragoman_client.py", "from dragoman import Agent, connect, tool"),
    "pydantic-ai": Peer(
        ("pydantic-ai-slim[openai]",),
        "pydantic_ai_client.py",
        "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIChatModel; "
        "from pydantic_ai.providers.openai import OpenAIProvider",
    ),
    "openai-agents": Peer(
        ("openai-agents",), "openai_agents_client.py", "from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool"
    ),
}
CASES = {
    "Dragoman": ("dragoman", "plain"),
    "Dragoman, saved": ("dragoman", "saved"),
    "pydantic-ai": ("pydantic-ai", "plain"),
    "pydantic-ai, streamed": ("pydantic-ai", "streamed"),
    "openai-agents": ("openai-agents", "plain"),
    "openai-agents, streamed": ("openai-agents", "streamed"),
}


def run(quick: bool) -> list[Table]:
    turns = 20 if quick else TURNS
    pythons = {name: make_environment(name, peer) for name, peer in PEERS.items()}
    with serving(turns) as url:
        asked = {case: lambda case=case: ask(pythons, case, url, turns) for case in CASES}
        imports = {name: peer.imports for name, peer in PEERS.items()} | {"nothing": "pass"}
        imported = {
            ("import", name): lambda name=name, line=line: import_ms(pythons.get(name, pythons["dragoman"]), line)
            for name, line in imports.items()
        }
        taken = interleaved({**asked, **imported}, 1 if quick else 3)
    columns = ["library", "CPU ms/turn", "least", "× ours", "memory MiB", "import CPU ms"]
    table = Table(f"{turns} tool turns beside other libraries", columns)
    nothing = median(taken["import", "nothing"])
    ours = median([each["cpu_ms"] for each in taken["Dragoman"]])
    for case, (name, _) in CASES.items():
        cpu = [each["cpu_ms"] for each in taken[case]]
        memory = median([each["rss_mib"] for each in taken[case]])
        table.rows.append([case, median(cpu), best(cpu), median(cpu) / ours, memory, median(taken["import", name]) - nothing])
    table.notes = [
        f"{', '.join(f'{name} {version_of(python, name)}' for name, python in pythons.items())}; {_pythons(pythons)}.",
        f"A turn: the model calls a tool that returns a kilobyte, {turns} times one after the other in one run, over OpenAI's Chat "
        "protocol.",
        "CPU is the client's process alone, from the prompt to the answer: median and least of the rounds, which take turns; the first is "
        "thrown away. Memory is the process's peak. Import is less what an empty program takes.",
        "`saved`: every step is synced to a log. `streamed`: with events as they come, which Dragoman always has; the other two ask for "
        "whole answers unless told otherwise.",
    ]
    return [table, by_length(pythons, SHORTER[:2] if quick else SHORTER, 1 if quick else 3)]


def by_length(pythons: dict[str, Path], lengths: tuple[int, ...], rounds: int) -> Table:
    """The same with fewer turns in a run."""
    cases = [case for case, (_, mode) in CASES.items() if mode == "plain"]
    table = Table(
        "The same by the length of a run", ["turns", *(f"{case}, CPU ms/turn" for case in cases), *(f"{case} × ours" for case in cases[1:])]
    )
    for turns in lengths:
        with serving(turns) as url:
            taken = interleaved({case: partial(ask, pythons, case, url, turns) for case in cases}, rounds)
        cpu = [median([each["cpu_ms"] for each in taken[case]]) for case in cases]
        table.rows.append([str(turns), *cpu, *(each / cpu[0] for each in cpu[1:])])
    table.notes = ["Medians; the import of the library is not in it."]
    return table


def ask(pythons: dict[str, Path], case: str, url: str, turns: int) -> dict[str, float]:
    name, mode = CASES[case]
    client = HERE / "beside_clients" / PEERS[name].client
    return json.loads(sample.run([str(pythons[name]), str(client), url, str(turns), mode]).said)


def import_ms(python: Path, imports: str) -> float:
    return sample.run([str(python), "-I", "-c", imports]).cpu_ms


# --- the environments ---------------------------------------------------------------------------------------------------------


def make_environment(name: str, peer: Peer) -> Path:
    """An environment with one library, its newest version; Dragoman's is brought up to date with this tree each time."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if os.environ.get("REFRESH"):
        shutil.rmtree(folder, ignore_errors=True)
    if not ready.exists():
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
    if not ready.exists() or name == "dragoman":
        _uv("pip", "install", "--python", str(python), "--reinstall-package", name, "--refresh-package", name, *peer.packages)
        subprocess.run([str(python), "-m", "compileall", "-q", str(folder / "lib")], check=False, stdout=subprocess.DEVNULL)
        ready.touch()
    return python


def version_of(python: Path, name: str) -> str:
    installed = {"pydantic-ai": "pydantic-ai-slim"}.get(name, name)
    return sample.run([str(python), "-I", "-c", f"from importlib.metadata import version; print(version({installed!r}))"]).said.strip()


def _pythons(pythons: dict[str, Path]) -> str:
    return sample.run([str(pythons["dragoman"]), "-I", "-c", "import platform; print('Python', platform.python_version())"]).said.strip()


def _uv(*arguments: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name("uv")), *arguments, "--quiet"], check=True)


# --- the service --------------------------------------------------------------------------------------------------------------


@contextmanager
def serving(turns: int) -> Iterator[str]:
    command = sample.module("beside", "serve", str(turns))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=10)


async def serve(turns: int) -> None:
    """Calls the tool as often as it takes until there are so many results."""
    from dragoman.testing.mock.server import MockServer
    from dragoman.testing.script_steps import CallStep, Say, ScriptedAnswer

    def answer(asked: Any) -> ScriptedAnswer:
        read = sum(message["role"] == "tool" for message in asked.body["messages"])
        if read == turns:
            return ScriptedAnswer((Say(DONE),))
        return ScriptedAnswer((CallStep("read_note", json.dumps({"number": read + 1})),))

    async with MockServer(answer, keep=0) as server:
        print(server.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", turns]:
            asyncio.run(serve(int(turns)))
        case _:
            raise SystemExit(__doc__)
