"""What is read as configuration when a project is opened again is not written unasked, by tools or by commands in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.policy.guarded_files import is_guarded
from dragoman.policy.sandbox.boundary import Ground

FOLDERS = (".agents", ".claude", ".codex", ".dragoman", ".gemini", ".opencode")


@pytest.mark.parametrize("path", [*(f"/w/{name}/commands/x.md" for name in FOLDERS), "/w/.mcp.json", "/w/a/opencode.json", "/w/.CLAUDE/x"])
def test_tools_ask_before_they_write_there(path: str) -> None:
    assert is_guarded(path)
    assert not is_guarded("/w/claude/x.md")


def test_commands_in_the_sandbox_find_them_read_only(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in FOLDERS[:-1]:
        (work / name).mkdir(parents=True)
    (work / ".mcp.json").write_text("{}")
    boundary = Ground([str(work)], homes=[str(tmp_path)], private=str(tmp_path / "private")).draw()
    assert set(boundary.read_only) == {*(str(work / name) for name in FOLDERS[:-1]), str(work / ".mcp.json")}
