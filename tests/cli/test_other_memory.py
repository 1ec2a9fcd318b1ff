"""Memory that other programs keep: the model is told all of it, the user's always, the project's once it is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from program import Place, script, service


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def put(folder: Path, name: str, text: object) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))


USERS = {
    ".claude/CLAUDE.md": "tide of Claude",
    ".claude/mine.md": "tide of mine",
    ".codex/AGENTS.md": "tide of Codex",
    ".gemini/GEMINI.md": "tide of Gemini",
    ".gemini/CONTEXT.md": "tide of the context",
    ".config/opencode/AGENTS.md": "tide of opencode",
}
PROJECTS = {
    "CLAUDE.md": "@~/.claude/mine.md and @~/.claude/secret.json and @~/outside.md",
    "CLAUDE.local.md": "tide of today",
    ".claude/rules/deep/sea.md": "---\npaths: [sea/**]\n---\ntide of the rules",
    "AGENTS.md": "ebb",
    "AGENTS.override.md": "tide in its place",
    "CONTEXT.md": "tide by another name",
    "docs/one.md": "tide of the instructions",
    "opencode.json": {"instructions": ["docs/*.md", "../out.md", "https://example.org/x.md"]},
    ".gemini/settings.json": {"context": {"fileName": ["CONTEXT.md", "../../etc/passwd"]}},
}


def test_all_of_it_is_told(place: Place) -> None:
    for name, text in {**USERS, ".claude/secret.json": "no tide", "outside.md": "no tide"}.items():
        put(place.home, name, text)
    for name, text in PROJECTS.items():
        put(place.work, name, text)
    put(place.work.parent, "out.md", "no tide")
    with service(script(*["text: ok"] * 3)) as place.service:
        untrusted, trusted = place.ask("hi"), place.ask("hi", "--trust")
        put(place.home / "dragoman", "config.toml", "[sources]\ngemini = false\n")
        place.ask("hi", "--trust")
        bodies = [json.dumps(body) for body in place.service.requests]
    mine = [text for name, text in USERS.items() if name.endswith(("CLAUDE.md", "AGENTS.md", "GEMINI.md"))]
    assert [text for text in mine if text not in bodies[0]] == []
    assert "tide of mine" not in bodies[0]
    everything = [*USERS.values(), *(text.rpartition("\n")[2] for text in PROJECTS.values() if isinstance(text, str) and "tide" in text)]
    assert [text for text in everything if text not in bodies[1]] == []
    assert "This is about files that match sea/**" in bodies[1]
    assert "ebb" not in bodies[1]
    assert "no tide" not in "".join(bodies)
    assert trusted.err.count("is not imported") == 2, trusted.err
    assert "tide of Gemini" not in bodies[2]
    assert untrusted.code == trusted.code == 0
