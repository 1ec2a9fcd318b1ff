"""Fleets that a repository brings: folders that look as if the user had started them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from dragoman import __version__

FLEET_ID = "0123456789ab"


def bring(folder: Path, lock: dict[str, Any] | None = None, tasks: bytes = b"") -> Path:
    """Write `lock.json` and `tasks.jsonl` as a fleet of this version has them, with these fields instead of the usual ones."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = tasks or json.dumps({"id": "one", "prompt": "task=one . Do it."}).encode() + b"\n"
    told: dict[str, Any] = {
        "id": FLEET_ID,
        "version": __version__,
        "tasks": tasks.count(b"\n"),
        "tasks_sha256": hashlib.sha256(tasks).hexdigest(),
        "attempts": 1,
        "model": "anthropic/claude-opus-5",
        "scratch": str(folder.parents[2] / f"dragoman-fleet-{FLEET_ID}"),
    }
    (folder / "lock.json").write_text(json.dumps(told | (lock or {})))
    (folder / "tasks.jsonl").write_bytes(tasks)
    (folder / "journal.jsonl").touch()
    return folder


def everything_in(folder: Path) -> dict[str, str]:
    """Every name below a folder with what it is and holds; no link is followed."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"→ {os.readlink(path)}"
        elif path.is_file():
            with path.open("rb") as file:  # some are of many gigabytes
                found[name] = file.read(100_000).decode(errors="replace")
        else:
            found[name] = "folder" if path.is_dir() else "special"
    return found
