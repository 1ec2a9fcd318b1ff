"""A run that changes files, undone: a real agent with the built-in tools, its calls written down through Checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.loop.agent import Agent
from dragoman.loop.options import ToolOptions, WorkspaceOptions
from dragoman.policy.guarded_files import is_guarded
from dragoman.sessions.bounds import UndoBounds
from dragoman.sessions.restore import UndoRefused, restore
from dragoman.sessions.undo import UndoPlan, changes_of_last_run, file_changes, is_written_ahead, plan_undo
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.calls import Show
from dragoman.values.errors import Cancelled
from dragoman.values.notes import LOOP_NOTE
from dragoman.values.record import FilesChanged, ToolFinished, ToolStarted
from scenarios.workshop import QUICK, check_record, forever, play, writer

EDITS = """
call: write_file {"file_path": "new/b.txt", "content": "made\\n"}
call: read_file {"file_path": "a.txt"}
---
call: edit {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
call: edit {"file_path": "a.txt", "old_string": "not there", "new_string": "x"}
---
text: Done.
---
call: edit {"file_path": "a.txt", "old_string": "two", "new_string": "three"}
---
text: Done again.
"""


class Undoable(Agent):
    """As Agent is, and says what it would undo."""

    def plan(self, runs: int = 1) -> UndoPlan:
        return plan_undo(changes_of_last_run(self.history.entries, runs), self.blobs, bounds_of(self))


def bounds_of(agent: Agent) -> UndoBounds:
    return UndoBounds((agent.workspace.root,), is_guarded)


def agent_in(workspace: Path, script: str, *tools: Any) -> Undoable:
    kept = workspace.with_name(f"{workspace.name}-sessions")
    made = Undoable(
        ScriptedProvider(script),
        workspace=WorkspaceOptions(workspace, describe=False),
        tools=ToolOptions(tools, builtin=True),
        approval="auto-edit",
        system="",
        limits=QUICK,
        session=kept,
    )
    _made.append(made)
    return made


_made: list[Agent] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while _made:
        _made.pop().close()


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_a_run_is_undone_and_the_one_before_it_after_that(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent = agent_in(tmp_path, EDITS)

    async def go() -> None:
        await agent.run("first")
        assert files(tmp_path) == {"a.txt": "two\n", "new/b.txt": "made\n"}
        await agent.run("second")
        assert files(tmp_path) == {"a.txt": "three\n", "new/b.txt": "made\n"}
        agent.undo()
        assert files(tmp_path) == {"a.txt": "two\n", "new/b.txt": "made\n"}
        assert agent.plan().changes == ()
        agent.undo(2)
        assert files(tmp_path) == {"a.txt": "one\n"}
        check_record(agent.history)

    play(go)


def test_undos_are_redone_in_turn_and_so_are_the_files_of_a_rewind(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent = agent_in(tmp_path, EDITS)
    after = {"a.txt": "three\n", "new/b.txt": "made\n"}

    async def go() -> None:
        assert agent.redo() == ()
        await agent.run("first")
        start = agent.history.entries[0].seq
        await agent.run("second")
        agent.undo()
        agent.undo(2)
        assert agent.redo() == (str(tmp_path / "new/b.txt"), str(tmp_path / "a.txt"))
        assert files(tmp_path) == {"a.txt": "two\n", "new/b.txt": "made\n"}
        agent.redo()
        assert files(tmp_path) == after
        assert agent.redo() == ()
        agent.rewind(start, files=True)
        assert files(tmp_path) == {"a.txt": "one\n"}
        assert agent.history.view.messages == ()
        (tmp_path / "a.txt").write_text("mine\n")
        with pytest.raises(UndoRefused, match=r"nothing was redone: .*a\.txt: it was changed by somebody else since"):
            agent.redo()
        assert files(tmp_path) == {"a.txt": "mine\n"}
        agent.redo(force=True)
        assert files(tmp_path) == after
        assert agent.history.view.messages == (), "the files alone: the conversation stays where it was rewound to"
        agent.restore_files(start)
        assert files(tmp_path) == {"a.txt": "one\n"}
        agent.redo()
        assert files(tmp_path) == after
        check_record(agent.history)

    play(go)


def test_each_change_stands_before_its_result_and_what_was_written_ahead_before_the_call_runs(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent = agent_in(tmp_path, EDITS)

    async def go() -> None:
        await agent.run("first")

    play(go)
    told = [entry for entry in agent.history.entries if isinstance(entry, ToolStarted | FilesChanged | ToolFinished)]
    writing = [entry for entry in told if not isinstance(entry, ToolFinished) or entry.result.name == "write_file"]
    kinds = [
        ("ahead" if is_written_ahead(entry) else "change") if isinstance(entry, FilesChanged) else type(entry).__name__ for entry in writing
    ]
    assert kinds[:4] == ["ToolStarted", "ahead", "change", "ToolFinished"]
    assert len(file_changes(agent.history.entries)) == 2, "an edit that was refused changed nothing"


def test_a_call_that_fails_half_way_is_undone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    async def act(args: Mapping[str, Any], show: Show) -> str:
        (tmp_path / "a.txt").write_text("half")
        raise OSError("the rest did not come")

    agent = agent_in(tmp_path, "call: change {}\n---\ntext: Oh.", writer(act=act, writes=(str(tmp_path / "a.txt"),)))

    async def go() -> None:
        await agent.run("go")
        assert files(tmp_path) == {"a.txt": "half"}
        agent.undo()
        assert files(tmp_path) == {"a.txt": "one\n"}

    play(go)


@pytest.mark.parametrize("whole_run", [True, False])
def test_a_call_that_is_cancelled_half_way_can_be_undone(tmp_path: Path, whole_run: bool) -> None:
    (tmp_path / "a.txt").write_text("one\n")

    async def act(args: Mapping[str, Any], show: Show) -> str:
        (tmp_path / "a.txt").write_text("half")
        return await forever(args, show)

    tool = writer(act=act, writes=(str(tmp_path / "a.txt"),))
    agent = agent_in(tmp_path, "call: change {}\n---\ntext: Oh.", tool)

    async def go() -> None:
        run = agent.run("go")
        reading = asyncio.ensure_future(run)  # type: ignore[arg-type]
        await tool.running.wait()
        if whole_run:
            run.cancel()
            with pytest.raises(Cancelled):
                await reading
        else:
            [call] = agent.history.view.open_calls
            assert run.cancel_call(call.id)
            await reading
        assert files(tmp_path) == {"a.txt": "half"}
        agent.undo()
        assert files(tmp_path) == {"a.txt": "one\n"}
        check_record(agent.history)

    play(go)


def test_what_the_user_wrote_meanwhile_is_not_undone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent = agent_in(tmp_path, EDITS)

    async def go() -> None:
        await agent.run("first")
        (tmp_path / "a.txt").write_text("mine\n")
        with pytest.raises(UndoRefused, match=r"a\.txt: it was changed by somebody else"):
            agent.undo()
        assert files(tmp_path) == {"a.txt": "mine\n", "new/b.txt": "made\n"}
        agent.undo(force=True)
        assert files(tmp_path) == {"a.txt": "one\n"}

    play(go)


def test_the_loop_note_does_not_part_a_run(tmp_path: Path) -> None:
    same = 'call: write_file {"file_path": "b.txt", "content": "made"}\n---\n'
    agent = agent_in(tmp_path, same * 8 + 'call: write_file {"file_path": "c.txt", "content": "made"}\n---\ntext: Done.')

    async def go() -> None:
        async for _ in agent.run("go"):
            pass

    play(go)
    start = LOOP_NOTE.partition("{")[0]
    notes = [message for message in agent.history.transcript() if message.role == "user" and message.text.startswith(start)]
    assert notes, "the script goes in circles"
    changes = changes_of_last_run(agent.history.entries)
    restore(plan_undo(changes, agent.blobs, bounds_of(agent)))
    assert files(tmp_path) == {}
