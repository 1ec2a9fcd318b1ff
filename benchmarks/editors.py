"""Agents as an editor starts them: how soon `initialize` and `session/new` are answered, what they take, and how soon they end.

`DRAGOMAN_PEERS=FOLDER python -m benchmarks editors` looks for others in `FOLDER/NAME/node_modules/.bin` and `FOLDER/NAME/bin`; without it,
ours is measured alone. Each is started in an empty home, with a key that nobody knows; no model is asked but by ours, for the cancels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.sample import best
from benchmarks.table import Cell, Table
from dragoman.testing import Loopback

PATIENCE_S = 20.0
"""After that, something is taken not to be answered."""
KEY = "sk-nobody-knows-this-key"
PEERS: Mapping[str, tuple[str, ...]] = {
    "codex-acp": ("codex-acp",),
    "codex-acp-native": ("codex-acp",),
    "gemini-cli": ("gemini", "--acp"),
    "opencode": ("opencode", "acp"),
    "claude-agent-acp": ("claude-agent-acp",),
    "kimi": ("kimi", "acp"),
    "mistral-vibe": ("vibe-acp",),
}
CANCELS = {
    "waiting for the service": ("wait: 60\ntext: never", ""),
    "while the answer streams": ("text: Begun.\nwait: 60\ntext: never", "Begun."),
    "while a command runs": ('call: run_shell {"command": "echo begun; sleep 60", "writes": true}', "begun\\n"),
    "while it asks": ('call: write_file {"file_path": "a.txt", "content": "x"}', "request_permission"),
}
"""The state → the script of the service, and what is told once it is reached."""


class Taken(NamedTuple):
    """Of one start. None: it was not answered, or with an error."""

    initialize_ms: float | None
    new_ms: float | None
    memory_mib: float
    """Of it and all that it has started, with a session open."""
    end_ms: float | None


def run(quick: bool) -> list[Table]:
    return [_beside(2 if quick else 7), _cancels(1 if quick else 5)]


def _beside(rounds: int) -> Table:
    programs = {"ours": [sys.executable, "-m", "dragoman", "acp", "-m", "anthropic/claude-opus-5"], **_found()}
    taken: dict[str, list[Taken]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, argv in programs.items():
            sample = _start(argv)
            if number:  # the first start warms the disk's cache
                taken[name].append(sample)
    columns = ["agent", "`initialize` ms, best", "median", "`session/new` ms, best", "median", "memory MiB", "end ms, median"]
    table = Table("Agents as an editor starts them", columns)
    for name, samples in taken.items():
        times = [[value for each in samples if (value := each[field]) is not None] for field in (0, 1, 3)]
        cells: list[Cell] = [name]
        for values in times[:2]:
            cells += [best(values), median(values)] if values else [None, None]
        table.rows.append([*cells, median(each.memory_mib for each in samples), median(times[2]) if times[2] else None])
    table.notes = [
        "From the start of the process to the answer of `initialize`; then of `session/new`, sent at once; then, with the session open, "
        "from closing its standard input to its end.",
        f"{rounds} interleaved rounds after one that is not counted. Memory: resident, with children.",
        f"–: an error, or no answer in {PATIENCE_S:.0f} s: some want to be signed in before they open a session.",
    ]
    return table


def _found() -> dict[str, list[str]]:
    folder = os.environ.get("DRAGOMAN_PEERS", "")
    found: dict[str, list[str]] = {}
    for name, (program, *arguments) in PEERS.items() if folder else ():
        places = [Path(folder) / name / "node_modules" / ".bin" / program, Path(folder) / name / "bin" / program]
        if (path := next((each for each in places if each.exists()), None)) is not None:
            found[name] = [str(path), *arguments]
    return found


def _start(argv: Sequence[str]) -> Taken:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        began = time.perf_counter()
        agent = _Agent(argv, home, {})
        try:
            initialized = agent.ask(
                "initialize", protocolVersion=1, clientCapabilities={}, clientInfo={"name": "benchmark", "version": "1"}
            )
            initialize_ms = (time.perf_counter() - began) * 1000 if initialized is not None else None
            asked = time.perf_counter()
            opened = agent.ask("session/new", cwd=home, mcpServers=[]) if initialized is not None else None
            new_ms = (time.perf_counter() - asked) * 1000 if opened is not None else None
            memory = agent.memory_mib()
            return Taken(initialize_ms, new_ms, memory, agent.leave())
        finally:
            agent.kill()


def _cancels(rounds: int) -> Table:
    table = Table("Cancels, ours", ["cancelled", "answered after ms, median", "most"])
    for state, (script, mark) in CANCELS.items():
        samples = [_cancel(script, mark) for _ in range(rounds)]
        table.rows.append([state, median(samples), max(samples)])
    table.notes = [f"From `session/cancel` to the answer of the prompt, {rounds} starts each. The service is on the same machine."]
    return table


def _cancel(script: str, mark: str) -> float:
    with Loopback(script) as service, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        argv = [sys.executable, "-m", "dragoman", "acp", "-m", "anthropic/claude-opus-5"]
        agent = _Agent(argv, home, {"ANTHROPIC_BASE_URL": service.url})
        try:
            agent.ask("initialize", protocolVersion=1, clientCapabilities={})
            opened = agent.ask("session/new", cwd=home, mcpServers=[])
            assert opened is not None
            session = opened["sessionId"]
            asked = agent.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])
            if mark:
                while mark.encode() not in agent.line():
                    pass
            else:
                time.sleep(1.0)
            began = time.perf_counter()
            agent.send("session/cancel", is_request=False, sessionId=session)
            assert agent.answer(asked) == {"stopReason": "cancelled"}
            return (time.perf_counter() - began) * 1000
        finally:
            agent.kill()


class _Agent:
    """A process that is spoken to. Permissions for commands are given, others are left open."""

    def __init__(self, argv: Sequence[str], home: str, env: Mapping[str, str]) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY"), KEY)
        self._process = subprocess.Popen(
            argv,
            cwd=home,
            env=kept | keys | {"HOME": home, "DRAGOMAN_HOME": f"{home}/dragoman"} | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._buffer = b""
        self._count = 0

    def send(self, method: str, *, is_request: bool = True, **params: Any) -> int:
        self._count += is_request
        self._write({"jsonrpc": "2.0", "method": method, "params": params} | ({"id": self._count} if is_request else {}))
        return self._count

    def ask(self, method: str, **params: Any) -> Any:
        """None where it is an error, or does not come."""
        try:
            return self.answer(self.send(method, **params))
        except (OSError, TimeoutError):
            return None

    def answer(self, id: int) -> Any:
        while True:
            message = json.loads(self.line())
            if message.get("id") == id and "method" not in message:
                return message.get("result")

    def line(self) -> bytes:
        """The next message. Permissions for commands are given on the way."""
        until = time.monotonic() + PATIENCE_S
        os.set_blocking(self._from.fileno(), False)
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline and line.startswith(b"{"):
                self._buffer = rest
                self._permit(line)
                return line
            if newline:  # some print other things
                self._buffer = rest
                continue
            if time.monotonic() > until:
                raise TimeoutError
            if (data := self._from.read()) == b"":
                raise BrokenPipeError
            self._buffer += data or b""
            if not data:
                time.sleep(0.0005)

    def memory_mib(self) -> float:
        children: dict[int, list[int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                with suppress(OSError, IndexError, ValueError):
                    stat = Path(f"/proc/{entry}/stat").read_text()
                    children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
        waiting, resident = [self._process.pid], 0
        while waiting:
            process = waiting.pop()
            waiting += children.get(process, [])
            with suppress(OSError, StopIteration):
                status = Path(f"/proc/{process}/status").read_text().splitlines()
                resident += int(next(line for line in status if line.startswith("VmRSS")).split()[1])
        return resident / 1024

    def leave(self) -> float | None:
        began = time.perf_counter()
        with suppress(OSError):
            self._to.close()
        try:
            self._process.wait(PATIENCE_S / 4)
        except subprocess.TimeoutExpired:
            return None
        return (time.perf_counter() - began) * 1000

    def kill(self) -> None:
        """It and what it has started, which is in its process group."""
        with suppress(OSError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self._from.close()
        with suppress(OSError):
            self._to.close()

    def _permit(self, line: bytes) -> None:
        if b'"session/request_permission"' not in line:
            return
        message = json.loads(line)
        if message["params"]["toolCall"].get("kind") == "execute":
            outcome = {"outcome": "selected", "optionId": message["params"]["options"][0]["optionId"]}
            self._write({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}})

    def _write(self, message: Mapping[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")
        self._to.flush()
