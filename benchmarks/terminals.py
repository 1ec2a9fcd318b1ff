"""Terminal programs side by side in tmux: ours, and those of pi, Codex and Claude Code that are installed in a folder of their own.

`DRAGOMAN_PEERS=FOLDER python -m benchmarks terminals` looks for `FOLDER/NAME/node_modules/.bin/NAME`; without it, ours is measured alone.
One round measures each program in turn: from its start to its prompt, a streamed answer of 7 KB in 300 pieces, 80 lines over 8 resizes,
and a conversation of 200 turns. Each has an empty home and talks to a model on loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.table import Cell, Table
from benchmarks.terminal_service import Answers, serve

SIZES = [(24, 100), (40, 70), (24, 134), (50, 60), (30, 100), (20, 80), (45, 120), (24, 90)]
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
CODEX = """
model = "fake-model"
model_provider = "fake"
model_context_window = 1000000
[projects."{work}"]
trust_level = "trusted"
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
"""
"""`{url}` and `{work}` are filled in."""
CLAUDE_ENV = {
    "ANTHROPIC_API_KEY": "x",
    "ANTHROPIC_BASE_URL": "{url}",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
}


@dataclass(frozen=True)
class Peer:
    name: str
    argv: list[str]
    prompt: str
    """Stands on the screen when it takes a prompt."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Written into its home first; `{url}` and `{work}` are filled in."""
    keys: tuple[tuple[str, str], ...] = ()
    """What is shown at its first start, and the key that answers it."""


def installed_peers(folder: str) -> list[Peer]:
    model = {
        "id": "fake-model",
        "name": "fake-model",
        "reasoning": False,
        "input": ["text"],
        "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0),
        "contextWindow": 1_000_000,
        "maxTokens": 8_192,
    }
    provider = {"baseUrl": "{url}/v1", "api": "openai-completions", "apiKey": "x", "models": [model]}
    claude = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["x"], "rejected": []},
        "projects": {"{work}": {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    others = [
        Peer(
            "pi",
            ["pi", "--provider", "fake", "--model", "fake-model"],
            "0.0%/1.0M",
            {"PI_OFFLINE": "1"},
            {".pi/agent/models.json": json.dumps({"providers": {"fake": provider}})},
        ),
        Peer("codex", ["codex"], "fake-model", {"FAKE_KEY": "x"}, {".codex/config.toml": CODEX}),
        Peer(
            "claude",
            ["claude"],
            "auto mode on",
            CLAUDE_ENV,
            {".claude.json": json.dumps(claude)},
            (("Yes, I trust", "Enter"), ("Do you want to use this API key", "Up Enter")),
        ),
    ]
    ours = Peer(
        "dragoman",
        [sys.executable, "-m", "dragoman", "-m", "anthropic/claude-opus-5"],
        "Ask, /",
        {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "{url}", "DRAGOMAN_HOME": "{home}/.dragoman"},
    )
    found = [peer for peer in others if folder and (Path(folder) / peer.name / "node_modules" / ".bin" / peer.name).exists()]
    return [ours, *found]


class Pane:
    """A program in a tmux server of its own."""

    def __init__(self, peer: Peer, url: str, folder: str, home: Path, size: tuple[int, int]) -> None:
        work = home / "work"
        work.mkdir(parents=True, exist_ok=True)
        for name, text in peer.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{url}", url).replace("{work}", str(work)))
        first = [str(Path(folder) / peer.name / "node_modules" / ".bin")] if folder else []
        node = [str(Path(folder) / "node22" / "node_modules" / "node" / "bin")] if folder else []
        env = {"HOME": str(home), "PATH": os.pathsep.join([*first, *node, os.environ["PATH"]]), "LANG": "C.UTF-8", "COLORTERM": "truecolor"}
        env |= {name: value.replace("{url}", url).replace("{home}", str(home)) for name, value in peer.env.items()}
        self._home = f"HOME={home}"
        self._peer, self._socket, self.written = peer, str(home / "socket"), home / "written"
        self.written.touch()
        rows, columns = size
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", env=env)
        self._tmux("set", "-g", "history-limit", "50000")
        self._tmux("set", "-g", "window-size", "manual")
        self._tmux("pipe-pane", "-o", f"cat >> {shlex.quote(str(self.written))}")
        self.shell = int(self._tmux("display", "-p", "#{pane_pid}"))
        self.press("-l", f"cd {shlex.quote(str(work))}; clear")
        self.press("Enter")
        time.sleep(0.3)

    def start(self) -> tuple[float, float]:
        """Seconds until its prompt is there, and CPU seconds it took."""
        self.press("-l", f"exec {shlex.join(self._peer.argv)}")
        time.sleep(0.1)
        cpu, began = self.cpu(), time.monotonic()
        self.press("Enter")
        answered: set[str] = set()
        while self._peer.prompt not in (screen := self.screen()):
            for shown, key in self._peer.keys:
                if shown in screen and shown not in answered:
                    answered.add(shown)
                    self.press(*key.split())
            if time.monotonic() - began > 30:
                raise TimeoutError(f"{self._peer.name} shows no prompt:\n{screen}")
            time.sleep(0.01)
        return time.monotonic() - began, self.cpu() - cpu

    def ask(self, prompt: str, mark: str) -> None:
        """Have it answer, and wait for the end of the answer on the screen."""
        self.press("-l", prompt)
        time.sleep(0.15)
        self.press("Enter")
        deadline = time.monotonic() + 60
        while mark not in self.screen():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._peer.name} shows no {mark}:\n{self.screen()}")
            time.sleep(0.02)

    def resize(self, size: tuple[int, int]) -> None:
        rows, columns = size
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def history(self) -> str:
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")

    def cpu(self) -> float:
        """CPU seconds of the program and all it started, ended ones included."""
        return sum(sum(map(int, _stat(pid)[11:15])) for pid in self._tree()) / TICKS

    def memory_mib(self) -> float:
        return sum(_resident(pid) for pid in self._tree()) / 2**20

    def end(self) -> None:
        """With the servers that some programs leave behind: they are known by their home."""
        self._tmux("kill-server")
        time.sleep(0.3)
        for entry in os.listdir("/proc"):
            if entry.isdigit() and self._home in _environment(int(entry)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry), signal.SIGKILL)

    def _tree(self) -> list[int]:
        stats = {int(entry): _stat(int(entry)) for entry in os.listdir("/proc") if entry.isdigit()}
        parents = {pid: int(stat[1]) for pid, stat in stats.items() if stat}
        found, before = {self.shell}, 0
        while len(found) > before:
            before = len(found)
            found |= {pid for pid, parent in parents.items() if parent in found}
        return [pid for pid in found if pid in parents]

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def _tmux(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words], env=dict(env) if env else None, capture_output=True, text=True, check=False
        )
        return done.stdout


def _stat(pid: int) -> list[str]:
    """What follows the name in /proc/PID/stat; empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _environment(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return []


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except OSError:
        return 0


@contextmanager
def _pane(peer: Peer, url: str, folder: str, size: tuple[int, int] = (24, 80)) -> Iterator[Pane]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        pane = Pane(peer, url, folder, Path(home) / "home", size)
        try:
            yield pane
        finally:
            pane.end()


def _answer(bytes_: int, pieces: int) -> list[str]:
    """Prose with a list, code and a table, cut into pieces of the same size."""
    text = "".join(_part(number) for number in range(bytes_ // 300 + 1))[:bytes_]
    size = -(-len(text) // pieces)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _part(number: int) -> str:
    """No two are alike: a program may stop a model that repeats itself."""
    one, two, three = (f"{word}{number * number * 7919 % 9973}" for word in ("read", "write", "keep"))
    return (
        f"## What was found in {one}\n\n{two} has a **buffer** for {three}, `{one}` comes {number + 2} times, each {number} ms.\n\n"
        f"- {three} goes first, {one} last\n- {two} finds {number} of them\n\n"
        f"```python\ndef {one}(self, {two}: int) -> None:\n    if self.{three} > {number}:\n        self.{two}({one})\n```\n\n"
        f"| file | lines | what |\n| --- | --- | --- |\n| {one}.py | {number + 20} | {three} |\n| {two}.py | {number} | {one} |\n\n"
    )


def _streaming(pane: Pane, answers: Answers) -> tuple[float, int]:
    """CPU seconds and bytes on the terminal for one answer of 7 KB in 300 pieces over three seconds."""
    answers.pieces, answers.pause_s = _answer(7_000, 300), 0.01
    cpu, written = pane.cpu(), pane.written.stat().st_size
    pane.ask("tell me", f"end{answers.marked + 1}mark")
    time.sleep(0.5)
    return pane.cpu() - cpu, pane.written.stat().st_size - written


def _resizing(pane: Pane, answers: Answers) -> tuple[int, int]:
    """Of 80 numbered lines that come while the window changes 8 times: how many the history lacks, and how many it has twice."""
    answers.pieces, answers.pause_s = [f"line-{number:03}-here\n\n" for number in range(80)], 0.02
    mark = f"end{answers.marked + 1}mark"
    pane.press("-l", "count")
    time.sleep(0.05)
    pane.press("Enter")
    for size in SIZES:
        time.sleep(0.35)
        pane.resize(size)
    deadline = time.monotonic() + 30
    while mark not in pane.history() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    seen = re.findall(r"line-(\d{3})-here", pane.history())
    return 80 - len(set(seen)), len(seen) - len(set(seen))


def _turns(pane: Pane, answers: Answers, count: int) -> float:
    """MiB after a conversation of that many turns."""
    answers.pieces, answers.pause_s = _answer(1_000, 5), 0.0
    for _ in range(count):
        pane.ask("and now", f"end{answers.marked + 1}mark")
    time.sleep(0.5)
    return pane.memory_mib()


def run(*, quick: bool = False) -> list[Table]:
    folder = os.environ.get("DRAGOMAN_PEERS", "")
    rounds, turns = (1, 5) if quick else (3, 200)
    columns = [
        "program",
        "prompt s",
        "CPU s",
        "MiB",
        "7 KB answer CPU s",
        "bytes written",
        "lost of 80",
        "doubled",
        f"MiB after {turns} turns",
    ]
    table = Table("Terminal programs, side by side in tmux (80 x 24)", columns)
    measured: dict[str, list[list[float]]] = {}
    with serve() as (url, answers):
        for number in range(rounds):
            for peer in installed_peers(folder):
                try:
                    told = _measure(peer, url, folder, answers, turns if number == 0 else 0)
                except TimeoutError as error:
                    print(error, file=sys.stderr)
                    table.notes.append(str(error).partition("\n")[0])
                else:
                    measured.setdefault(peer.name, []).append(told)
    for name, rows in measured.items():
        best: list[Cell] = [min(row[column] for row in rows if len(row) > column) for column in range(5)]
        worst: list[Cell] = [int(max(row[column] for row in rows)) for column in (5, 6)]
        table.rows.append([name, *best, *worst, rows[0][7] if len(rows[0]) > 7 else None])
    table.notes.append(
        f"The best of {rounds} rounds, interleaved; lost and doubled: the worst. 8 resizes, 0.35 s apart, from 20 x 80 to 50 x 60."
    )
    table.notes.append("Lost: not in the terminal's own history. Codex draws on the alternate screen and scrolls itself.")
    table.notes.append("Memory and CPU are of the program with all processes it started.")
    return [table]


def _measure(peer: Peer, url: str, folder: str, answers: Answers, turns: int) -> list[float]:
    with _pane(peer, url, folder) as pane:
        wall, cpu = pane.start()
        time.sleep(1)
        memory = pane.memory_mib()
        told = [wall, cpu, memory, *_streaming(pane, answers)]
    with _pane(peer, url, folder) as pane:
        pane.start()
        time.sleep(0.5)
        told += _resizing(pane, answers)
    if turns:
        with _pane(peer, url, folder) as pane:
            pane.start()
            time.sleep(0.5)
            told.append(_turns(pane, answers, turns))
    return told
