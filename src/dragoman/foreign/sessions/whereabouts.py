"""Where other programs keep their sessions, and which of them are there for a folder. Only the beginning of each file is read.

| program | files |
|---|---|
| claude-code | `~/.claude/projects/<folder>/*.jsonl` (`CLAUDE_CONFIG_DIR`) |
| codex | `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl` (`CODEX_HOME`) |
| gemini-cli | `~/.gemini/tmp/<project>/chats/session-*.json*` |
| pi | `~/.pi/agent/sessions/<folder>/*.jsonl` (`PI_CODING_AGENT_DIR`) |
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from dragoman.base import jsontext
from dragoman.base.found_files import read_found
from dragoman.base.text import one_line
from dragoman.foreign.sessions import IMPORTERS
from dragoman.foreign.sessions.draft import Draft, DraftPrompt
from dragoman.foreign.sessions.records import Record, text
from dragoman.values.messages import Text

MOST = 200
"""As many of the newest files are looked at."""
_HEAD_BYTES = 64_000
_HEAD_LINES = 60


class ForeignSession(msgspec.Struct, frozen=True):
    """A session of another program that can be imported."""

    program: str
    path: str
    title: str
    folder: str
    updated_ms: int


class _Found(NamedTuple):
    changed_ns: int
    path: str


def find_foreign_sessions(environment: Mapping[str, str], workspace: str = "") -> list[ForeignSession]:
    """Newest first; `workspace`: only those of this folder. Never raises: what cannot be read is not there."""
    home = environment.get("HOME") or os.path.expanduser("~")
    folder = os.path.realpath(workspace) if workspace else ""
    found = sorted(_files(environment, home, folder), reverse=True)[:MOST]
    sessions = [session for each in found if (session := _look_into(each)) is not None]
    return [each for each in sessions if not folder or not each.folder or _is_of(each.folder, folder)]


def _files(environment: Mapping[str, str], home: str, folder: str) -> Iterator[_Found]:
    claude = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    codex = environment.get("CODEX_HOME") or os.path.join(home, ".codex")
    pi = environment.get("PI_CODING_AGENT_DIR") or os.path.join(home, ".pi", "agent")
    patterns = [
        os.path.join(glob.escape(claude), "projects", _claude_name(folder) if folder else "*", "*.jsonl"),
        os.path.join(glob.escape(codex), "sessions", "*", "*", "*", "rollout-*.jsonl"),
        os.path.join(glob.escape(home), ".gemini", "tmp", "*", "chats", "session-*.json*"),
        os.path.join(glob.escape(pi), "sessions", _pi_name(folder) if folder else "*", "*.jsonl"),
    ]
    for pattern in patterns:
        for path in glob.iglob(pattern):
            try:
                yield _Found(os.stat(path).st_mtime_ns, path)
            except OSError:
                continue


def _claude_name(folder: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in folder)


def _pi_name(folder: str) -> str:
    return "--" + "".join("-" if char in "/\\:" else char for char in folder.lstrip("/\\")) + "--"


def _is_of(told: str, folder: str) -> bool:
    """gemini-cli tells the hash of its folder, the others the folder itself."""
    return told in (folder, hashlib.sha256(folder.encode(errors="replace")).hexdigest()) or os.path.realpath(told) == folder


# --- one file


def _look_into(found: _Found) -> ForeignSession | None:
    records = _first_records(found.path)
    importer = next((each for each in IMPORTERS if any(map(each.is_ours, records))), None)
    if importer is None:
        return None
    draft = Draft()
    importer.read(records, draft)
    folder = (
        draft.directories[0] if draft.directories else next((text(each, "projectHash") for each in records if "projectHash" in each), "")
    )
    title = one_line(draft.title or _first_prompt(draft), 200)
    return ForeignSession(importer.NAME, found.path, title, folder, found.changed_ns // 1_000_000) if title else None


def _first_prompt(draft: Draft) -> str:
    """What a person wrote: what the program itself put there begins with a tag."""
    for step in draft.steps:
        if isinstance(step, DraftPrompt):
            said = "".join(part.text for part in step.parts if isinstance(part, Text)).strip()
            if said and not said.startswith("<"):
                return said
    return ""


def _first_records(path: str) -> list[Record]:
    try:
        # One object is read whole or not at all.
        data = read_found(path, 20_000_000) if path.endswith(".json") else read_found(path, _HEAD_BYTES, cut=True)
    except OSError:
        return []
    pieces = [data] if path.endswith(".json") else data.split(b"\n")[:_HEAD_LINES]
    decoded = (jsontext.decode_object(piece.decode("utf-8", "replace")) for piece in pieces if not jsontext.is_too_deep(piece))
    return [record for record in decoded if record]
