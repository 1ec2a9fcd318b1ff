"""Sessions of other programs are found where those programs keep them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dragoman.foreign.sessions.whereabouts import find_foreign_sessions


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def said(folder: str, text: str) -> dict[str, Any]:
    head = {"type": "user", "sessionId": "s", "uuid": "u1", "parentUuid": None, "cwd": folder, "timestamp": "2026-11-10T10:00:00Z"}
    return head | {"message": {"role": "user", "content": text}}


def test_those_of_a_folder_and_those_of_all(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "my.proj", tmp_path / "other"
    here.mkdir()
    for folder in (here, elsewhere):
        name = "".join(char if char.isalnum() else "-" for char in str(folder))
        write(tmp_path / ".claude" / "projects" / name / "a.jsonl", said(str(folder), f"Claude in {folder.name}"))
        codex = {"type": "session_meta", "payload": {"id": folder.name, "cwd": str(folder)}}
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"Codex in {folder.name}"}]}
        write(
            tmp_path / ".codex" / "sessions" / "2026" / "11" / "10" / f"rollout-{folder.name}.jsonl",
            codex,
            {"type": "response_item", "payload": item},
        )
        gemini = {"sessionId": folder.name, "projectHash": hashlib.sha256(str(folder).encode()).hexdigest()}
        message = {"id": "m1", "type": "user", "content": f"Gemini in {folder.name}", "timestamp": "2026-11-10T10:00:00Z"}
        write(tmp_path / ".gemini" / "tmp" / folder.name / "chats" / "session-1.jsonl", gemini, message)
    (tmp_path / ".codex" / "sessions" / "2026" / "11" / "10" / "rollout-broken.jsonl").write_bytes(b"\xff\x00{")
    environment = {"HOME": str(tmp_path)}
    titles = {each.title for each in find_foreign_sessions(environment, str(here))}
    assert titles == {"Claude in my.proj", "Codex in my.proj", "Gemini in my.proj"}
    assert len(find_foreign_sessions(environment)) == 6
    assert find_foreign_sessions({"HOME": str(tmp_path / "nobody")}) == []
