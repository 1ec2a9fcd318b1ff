"""MCP servers that are programs of their own, for the real program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from program import Place

HARBOUR = str(Path(__file__).with_name("mcp_servers") / "harbour_server.py")


class Quay:
    """A place with servers: each writes into a log of its own that it was started, and what it was asked."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._logs = place.home / "logs"
        self._logs.mkdir()

    def entry(self, name: str, **options: Any) -> dict[str, Any]:
        """A server as Claude Code configures it."""
        words = [f"{key}={value}" for key, value in options.items()]
        return {"command": sys.executable, "args": [HARBOUR, f"log={self._logs / name}", *words]}

    def configure(self, *names: str, **options: Any) -> None:
        """The user's own servers."""
        entries = {name: self.entry(name, **options) for name in names}
        (self.place.home / ".claude.json").write_text(json.dumps({"mcpServers": entries}, indent=1))

    def log(self, name: str) -> list[str]:
        """What happened to a server, in order: `start`, `call tide`."""
        path = self._logs / name
        return [line.partition(" ")[2] for line in path.read_text().splitlines()] if path.exists() else []

    def pids(self) -> list[int]:
        """Of every server that was ever started."""
        return [int(line.split()[0]) for path in self._logs.iterdir() for line in path.read_text().splitlines() if line.endswith(" start")]

    def living(self) -> list[int]:
        return [pid for pid in self.pids() if is_alive(pid)]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
