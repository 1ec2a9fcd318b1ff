"""What ten MCP servers cost a program that calls none of them: ours beside Claude Code, Codex and gemini-cli, each with its own file.

`DRAGOMAN_PEERS=FOLDER python -m benchmarks ten_servers` looks for `FOLDER/NAME/node_modules/.bin/NAME`; without it, ours is measured alone.
Each program answers one prompt in an empty home, with no server and with ten of ten tools each, and has met them once before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.table import Table
from benchmarks.terminal_service import Answers, serve
from benchmarks.terminals import CLAUDE_ENV, CODEX

PAGE = os.sysconf("SC_PAGE_SIZE")
SERVER = """
import json, sys
NAME = sys.argv[1]
KEY = {"type": "string", "description": "Which thing"}
SCHEMA = {"type": "object", "properties": {"key": KEY}, "required": ["key"]}
WORDS = "Look up thing number {n} in the books of {name}, by its key, and say what stands there."
TOOLS = [{"name": f"look_{n}", "description": WORDS.format(n=n, name=NAME), "inputSchema": SCHEMA} for n in range(10)]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result, error = message.get("method"), None, None
    if method == "initialize":
        revision = message["params"]["protocolVersion"]
        result = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": NAME, "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "unknown"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **({"error": error} if error else {"result": result})}), flush=True)
"""


@dataclass(frozen=True)
class Peer:
    name: str
    argv: list[str]
    env: Mapping[str, str] = field(default_factory=dict)

    def write(self, home: Path, work: Path, url: str, servers: Mapping[str, list[str]]) -> None:
        """Its configuration, with these servers: their names and commands."""
        entries = {name: {"command": words[0], "args": words[1:]} for name, words in servers.items()}
        match self.name:
            case "claude":
                project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
                known = {"hasCompletedOnboarding": True, "mcpServers": entries, "projects": {str(work): project}}
                (home / ".claude.json").write_text(json.dumps(known))
            case "codex":
                rows = [
                    f'[mcp_servers.{name}]\ncommand = "{words[0]}"\nargs = {json.dumps(words[1:])}\n' for name, words in servers.items()
                ]
                (home / ".codex").mkdir(exist_ok=True)
                (home / ".codex" / "config.toml").write_text(CODEX.replace("{url}", url).replace("{work}", str(work)) + "\n".join(rows))
            case "gemini":
                (home / ".gemini").mkdir(exist_ok=True)
                (home / ".gemini" / "settings.json").write_text(json.dumps(GEMINI | {"mcpServers": entries}))
            case _:
                (home / ".claude.json").write_text(json.dumps({"mcpServers": entries}))


GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False},
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
}
OURS = Peer(
    "dragoman",
    [sys.executable, "-m", "dragoman", "-m", "anthropic/claude-opus-5", "-p", "hello"],
    {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "{url}"},
)
OTHERS = [
    Peer("claude", ["claude", "-p", "hello"], CLAUDE_ENV),
    Peer("codex", ["codex", "exec", "--skip-git-repo-check", "hello"], {"FAKE_KEY": "x"}),
    Peer(
        "gemini",
        ["gemini", "-m", "gemini-2.5-pro", "--skip-trust", "-p", "hello"],
        {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": "{url}"},
    ),
]


@dataclass
class Seen:
    """Of one run: seconds to the first request with tools, its tools and their bytes, MiB at most, and the processes of servers."""

    first_s: float = 0.0
    tools: int = 0
    bytes: int = 0
    mib: float = 0.0
    servers: int = 0


def run(*, quick: bool = False) -> list[Table]:
    folder = os.environ.get("DRAGOMAN_PEERS", "")
    peers = [OURS, *(peer for peer in OTHERS if folder and (Path(folder) / peer.name / "node_modules" / ".bin" / peer.name).exists())]
    columns = ["program", "servers", "s to the first request", "MiB", "server processes", "tools sent", "bytes of tools"]
    table = Table("Ten MCP servers that are not called", columns)
    with serve() as (url, answers), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as top:
        script = Path(top) / "server.py"
        script.write_text(SERVER)
        places = {(peer.name, count): _prepare(peer, Path(top), url, script, count) for peer in peers for count in (0, 10)}
        taken: dict[tuple[str, int], list[Seen]] = {key: [] for key in places}
        for number in range(2 if quick else 6):
            for peer in peers:
                for count in (0, 10):
                    seen = _measure(peer, folder, places[peer.name, count], url, str(script), answers)
                    if number:  # the first time it meets its servers
                        taken[peer.name, count].append(seen)
    for (name, count), runs in taken.items():
        first, memory = median(each.first_s for each in runs), median(each.mib for each in runs)
        last = runs[-1]
        table.rows.append([name, count, first, memory, max(each.servers for each in runs), last.tools, last.bytes])
    table.notes = [
        "One prompt without a terminal; the median. Memory is the most that the program and all it started had together.",
        "Tools sent: in the first request that has any. A program may search for tools instead of sending them.",
    ]
    return [table]


def _prepare(peer: Peer, top: Path, url: str, script: Path, count: int) -> Path:
    home = top / f"{peer.name}-{count}"
    (home / "work").mkdir(parents=True)
    peer.write(home, home / "work", url, {f"books{number}": [sys.executable, str(script), f"books{number}"] for number in range(count)})
    return home


def _measure(peer: Peer, folder: str, home: Path, url: str, script: str, answers: Answers) -> Seen:
    first = [str(Path(folder) / peer.name / "node_modules" / ".bin"), str(Path(folder) / "node22" / "node_modules" / "node" / "bin")]
    env = {"HOME": str(home), "PATH": os.pathsep.join([*first, os.environ["PATH"]]), "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1"}
    env |= {name: value.replace("{url}", url) for name, value in peer.env.items()}
    answers.first, answers.pieces = None, ["Hello."]
    seen, began = Seen(), time.monotonic()
    process = subprocess.Popen(
        peer.argv,
        cwd=home / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    stop = threading.Event()
    watching = threading.Thread(target=_watch, args=(f"HOME={home}", script, seen, stop))
    watching.start()
    try:
        process.wait(90)
    except subprocess.TimeoutExpired:
        process.kill()
    stop.set()
    watching.join()
    _end_leftovers(f"HOME={home}")
    if answers.first is None:
        raise RuntimeError(f"{peer.name} made no request with tools")
    at, seen.tools, seen.bytes = answers.first
    seen.first_s = at - began
    return seen


def _watch(home: str, script: str, seen: Seen, stop: threading.Event) -> None:
    """Twenty times a second: what the processes with this home hold, and how many of them are servers."""
    while not stop.wait(0.05):
        pids = _with_home(home)
        seen.mib = max(seen.mib, sum(map(_resident, pids)) / 2**20)
        seen.servers = max(seen.servers, sum(script in _read(pid, "cmdline") for pid in pids))


def _with_home(home: str) -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and home in _read(int(entry), "environ").split("\0")]


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def _resident(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * PAGE if fields else 0


def _end_leftovers(home: str) -> None:
    for pid in _with_home(home):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            continue
