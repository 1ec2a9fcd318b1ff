"""What is believed when a project is opened again: commands in the sandbox can neither change it nor make it, at any level."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dragoman.policy.sandbox.believed import FILES, OWN_FOLDER, PARTS, parts_of
from dragoman.policy.sandbox.guard import Guard
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

NAMES = (OWN_FOLDER, *PARTS)
PLAIN = tuple(name for name in FILES if "." in name[1:])


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_command_makes_there_is_moved_aside_and_told(level: int, tmp_path: Path) -> None:
    folders, files = " ".join((*NAMES, ".claude-plugin")), " ".join(PLAIN)
    with sandbox_at(level, tmp_path) as sandbox:
        ended, _ = asyncio.run(
            bash(sandbox, f"mkdir {folders} && touch .claude/settings.json {files} && ln -s /etc x && echo y > y", tmp_path)
        )
        assert ended.code == 0
        assert str(tmp_path / OWN_FOLDER) in ended.remark
        assert ".held-back" in ended.remark
        kept = {f"{name}.held-back" for name in (*NAMES, *FILES)}
        assert set(os.listdir(tmp_path)) == {*kept, "x", "y"}
        assert (tmp_path / ".claude.held-back" / "settings.json").exists(), "nothing is lost"
        again, _ = asyncio.run(bash(sandbox, "ln -s .claude.held-back .claude; echo z >> y", tmp_path))
        assert str(tmp_path / ".claude") in again.remark
        assert not os.path.lexists(tmp_path / ".claude")


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_there_stays_as_it_is(level: int, tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    (elsewhere / "skills").mkdir(parents=True)
    (work / ".claude" / "worktrees" / "one").mkdir(parents=True)
    (work / ".claude" / "settings.json").write_text("{}")
    (work / ".mcp.json").write_text("{}")
    (work / ".agents").symlink_to(elsewhere)
    attack = (
        "echo '{\"hooks\": 1}' > .claude/settings.json; mkdir .claude/skills; rm -rf .claude; mv .claude old; echo x > .mcp.json; "
        "rm .agents; mkdir -p .agents/skills; true"
    )
    with sandbox_at(level, work) as sandbox:
        asyncio.run(bash(sandbox, attack, work))
    assert (work / ".claude" / "settings.json").read_text() == "{}"
    assert not (work / ".claude" / "skills").exists()
    assert (work / ".mcp.json").read_text() == "{}"
    assert os.readlink(work / ".agents") == str(elsewhere)


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_put_back_through_a_link(level: int, tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    (work / ".claude").mkdir(parents=True)
    elsewhere.mkdir()
    (work / ".claude" / "settings.json").write_text("{}")
    with sandbox_at(level, work) as sandbox:
        asyncio.run(bash(sandbox, f"mv .claude old; ln -s {elsewhere} .claude; true", work))
    assert os.listdir(elsewhere) == []
    assert (work / ".claude" / "settings.json").read_text() == "{}"


@pytest.mark.parametrize("level", LEVELS)
def test_ordinary_work_is_left_alone(level: int, tmp_path: Path) -> None:
    (tmp_path / ".claude" / "worktrees").mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    with sandbox_at(level, tmp_path) as sandbox:
        ended, said = asyncio.run(bash(sandbox, "mkdir -p sub/.vscode build && echo x > claude.txt && cat claude.txt", tmp_path))
    assert (ended.code, said, ended.remark) == (0, "x\n", "")


def test_a_folder_that_is_too_large_to_be_kept_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.policy.sandbox.guard._KEPT_FILES", 20)
    skills = tmp_path / ".claude" / "skills"
    skills.mkdir(parents=True)
    for number in range(60):
        (skills / f"{number:02}.md").write_text("x")
    guard = Guard([str(tmp_path)], [str(tmp_path / ".claude")], with_content=True)
    (skills / "59.md").unlink()
    (skills / "58.md").write_text("hostile")
    guard.restore()
    assert len(list(skills.iterdir())) == 60
    assert (skills / "58.md").read_text() == "x"


def test_what_is_read_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    assert str(tmp_path / ".claude" / "settings.json") in parts_of(str(tmp_path / ".claude"))
    assert parts_of(str(tmp_path / ".mcp.json")) == [str(tmp_path / ".mcp.json")]
