"""A file that a rule denies reading: no tool shows what is in it, by whatever name, and no memory file imports it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.memory import load_memory
from dragoman.policy.denied_reads import deny_reads
from dragoman.rules import deny
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow
from dragoman.values.messages import ToolResult

SECRET = "TOPSECRET-77"
RULES = [deny("read_file secrets/**"), deny("read_file .env"), deny("read_file vault")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Denied files, and every other name that leads to one."""
    for name in ("secrets/deep", "pub", "vault"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("secrets/key.txt", "secrets/deep/more.txt", ".env", "vault/v.txt"):
        (tmp_path / name).write_text(f"a\n{SECRET}\n")
    (tmp_path / "pub" / "fine.txt").write_text("fine\n")
    (tmp_path / "pub" / "link.txt").symlink_to("../secrets/key.txt")
    (tmp_path / "pub" / "linked").symlink_to("../secrets")
    (tmp_path / "chain.txt").symlink_to("pub/link.txt")
    os.link(tmp_path / "secrets" / "key.txt", tmp_path / "pub" / "hard.txt")
    os.link(tmp_path / ".env", tmp_path / "hard_env.txt")
    return tmp_path


def results(folder: Path, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    async def main() -> list[str]:
        provider = ScriptedProvider("".join(f"call: {name} {json.dumps(args)}\n---\n" for name, args in calls) + "text: Good.")
        async with make_agent(provider, workspace=folder, rules=RULES, ask=lambda call, view: Allow(), describe=False) as agent:
            await agent.run("go")
        parts = [part for message in provider.requests[-1].messages for part in message.parts]
        return [part.text for part in parts if isinstance(part, ToolResult)]

    return asyncio.run(main())


def test_no_tool_shows_what_is_in_it(folder: Path) -> None:
    named = [
        "secrets/key.txt", "pub/link.txt", "pub/hard.txt", "pub/linked/key.txt", "pub/linked/deep/more.txt", "chain.txt", ".env",
        "hard_env.txt", "vault/v.txt",
    ]  # fmt: skip
    calls: list[tuple[str, dict[str, Any]]] = [("read_file", {"file_path": name}) for name in named]
    calls += [("read_many_files", {"paths": [name]}) for name in (*named, "**/*", ".*", "{secrets,pub,vault}/*", "pub/linked/*")]
    calls += [("grep", {"pattern": "TOP", "path": name, "hidden": True}) for name in (*named, ".", "secrets", "pub", "pub/linked", "vault")]
    calls += [("grep", {"pattern": "TOP", "output_mode": mode, "include": "*.txt"}) for mode in ("files", "count")]
    calls += [("edit", {"file_path": name, "old_string": "xTOPSECRET", "new_string": "y"}) for name in named]
    found = results(folder, *calls)
    assert len(found) == len(calls)
    for call, text in zip(calls, found, strict=True):
        assert SECRET not in text, call
        assert call[0] != "grep" or text.startswith("No matches"), call  # that a file matches says what is in it
    assert "fine" in found[calls.index(("read_many_files", {"paths": ["**/*"]}))]


def test_no_memory_file_imports_it(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("Keep to @pub/fine.txt and @.env and @pub/hard.txt and @pub/link.txt")
    denied = deny_reads(RULES, str(folder))
    text = str(load_memory(str(folder), trusted=True, root=str(folder), is_denied=denied).files)
    assert ("fine" in text, SECRET in text) == (True, False)
    assert SECRET in str(load_memory(str(folder), trusted=True, root=str(folder)).files)
