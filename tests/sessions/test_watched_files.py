"""What a command does to files that a tool would be asked about can be undone, though no tool wrote them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions import watched_files
from dragoman.sessions.restore import UndoRefused
from dragoman.sessions.watched_files import WatchedFiles
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Allow, Intent
from dragoman.values.messages import ToolCall
from dragoman.values.record import FilesChanged
from program import calls, script
from sessions.desks import put, tree


async def allow(call: ToolCall, view: Intent) -> Allow:
    return Allow()


@contextmanager
def after(work: Path, kept: Path, *commands: str) -> Iterator[Agent]:
    steps = [[calls(("run_shell", {"command": command}))] for command in commands]
    agent = make_agent(ScriptedProvider(script(*steps, "text: Done.")), workspace=work, ask=allow, sessions=str(kept), describe=False)
    agent.run_sync("go")
    yield agent
    agent.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    put(work / "AGENTS.md", "the user's")
    put(work / ".envrc", "export A=1")
    put(work / "sub" / "CLAUDE.md", "the user's")
    put(work / ".github" / "workflows" / "ci.yml", "on: push")
    put(work / "main.py", "print()")
    return work


HARM = (
    "echo obey >> AGENTS.md; rm .envrc; echo x > .github/workflows/ci.yml; echo x > .github/workflows/new.yml; "
    "mkdir -p .vscode sub/.claude; echo x > .vscode/tasks.json; echo x > sub/.mcp.json; echo x > sub/.claude/settings.json; "
    "echo x > .pre-commit-config.yaml; "
    "echo x > sub/CLAUDE.md; chmod 755 sub/CLAUDE.md"
)


def test_what_a_command_changed_made_and_removed_is_undone(work: Path, tmp_path: Path) -> None:
    before = tree(work)
    with after(work, tmp_path / "kept", "true", HARM, "true") as agent:
        with pytest.raises(UndoRefused) as refused:
            agent.undo()
        named = {os.path.relpath(conflict.path, work) for conflict in refused.value.conflicts if conflict.is_guarded}
        assert {"AGENTS.md", ".envrc", ".vscode/tasks.json", "sub/.mcp.json", "sub/.claude/settings.json"} <= named
        agent.undo(force=True)
        assert tree(work) == before


def test_other_files_and_commands_that_change_nothing_leave_no_entry(work: Path, tmp_path: Path) -> None:
    with after(work, tmp_path / "kept", "cat AGENTS.md", "echo more >> main.py", "echo x > notes.txt") as agent:
        assert [entry for entry in agent.history.entries if isinstance(entry, FilesChanged)] == []


def test_a_link_that_a_command_puts_there_is_replaced_and_not_followed(work: Path, tmp_path: Path) -> None:
    put(tmp_path / "outside.md", "the user's")
    with after(work, tmp_path / "kept", f"ln -sf {tmp_path}/outside.md AGENTS.md") as agent:
        agent.undo(force=True)
        assert (work / "AGENTS.md").read_text() == "the user's"
        assert not (work / "AGENTS.md").is_symlink()
        assert (tmp_path / "outside.md").read_text() == "the user's"


def test_pipes_and_links_are_not_opened(work: Path, tmp_path: Path) -> None:
    os.mkfifo(work / "CLAUDE.md")
    (work / "GEMINI.md").symlink_to(tmp_path / "elsewhere")
    (work / ".vscode").symlink_to(tmp_path)
    put(tmp_path / "tasks.json", "x")
    look = WatchedFiles(lambda: [str(work)], is_guarded).look()
    assert {os.path.relpath(path, work) for path in look.files} == {"AGENTS.md", ".envrc", ".github/workflows/ci.yml", "sub/CLAUDE.md"}
    assert look.is_whole


def test_a_file_too_large_to_keep_is_not_taken_for_a_new_one_when_it_shrinks(work: Path, tmp_path: Path) -> None:
    put(work / "CLAUDE.md", "x" * (watched_files.MAX_FILE_BYTES + 1))
    with after(work, tmp_path / "kept", "echo small > CLAUDE.md") as agent:
        assert [entry for entry in agent.history.entries if isinstance(entry, FilesChanged)] == []


def test_beyond_the_bounds_new_files_are_not_claimed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        put(work / f"folder-{number}" / "AGENTS.md", "x")
    for name, most in (("MAX_FOLDERS", 5), ("MAX_FILES", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(watched_files, name, most)
            look = WatchedFiles(lambda: [str(work)], is_guarded).look()
            assert not look.is_whole
            assert len(look.files) <= most + 1


def test_nothing_is_read_or_listed_again_that_has_not_changed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedFiles(lambda: [str(work)], is_guarded)
    time.sleep(0.2)  # what has just changed is looked at again
    first, read = watched.look(), []
    monkeypatch.setattr(watched_files, "read_file_state", lambda path: read.append(path) or watched_files.FileState())
    monkeypatch.setattr(os, "scandir", read.append)
    assert watched.look() == first
    assert read == []


@given(st.lists(st.sampled_from(["AGENTS.md", "sub/CLAUDE.md", ".vscode/a", ".vscode/deep/b", "main.py"]), max_size=6), st.data())
def test_a_look_with_what_is_known_is_the_same_as_a_fresh_one(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    work = tmp_path_factory.mktemp("work")
    watched = WatchedFiles(lambda: [str(work)], is_guarded)
    for name in names:
        path = work / name
        if data.draw(st.booleans()) or not path.exists():
            put(path, data.draw(st.sampled_from(["a", "b", "cc"])))
        else:
            path.unlink()
        assert watched.look() == WatchedFiles(lambda: [str(work)], is_guarded).look()
