"""Results too long for the model, in a conversation that is not saved: a file while the agent lives, and nothing afterwards."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents import make_agent
from dragoman.loop.agent import Agent
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.function import tool
from dragoman.values.events import ToolCallFinished
from dragoman.values.messages import Text

SCRIPT = "call: speak {}\n---\ntext: Done."


@tool(read_only=True)
def speak() -> str:
    "Say a lot."
    return "word " * 20_000


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    gc.collect()  # what other tests have dropped is removed before we look
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def agent_that_speaks(**options: object) -> Agent:
    return make_agent(ScriptedProvider(SCRIPT), tools=[speak], describe=False, **options)


async def output_file_of(agent: Agent) -> tuple[Path, str]:
    """The file with the whole result, and what the model was told of it."""
    async with agent.run("Speak.") as run:
        finished = [event async for event in run if isinstance(event, ToolCallFinished)]
    (part,) = finished[0].parts
    text = "".join(piece.text for piece in getattr(part, "content", (part,)) if isinstance(piece, Text))
    return Path(finished[0].output_file), text


def test_closing_the_agent_removes_what_it_wrote(temporary: Path) -> None:
    async def go() -> None:
        async with agent_that_speaks() as agent:
            file, _ = await output_file_of(agent)
            assert file.read_text() == "word " * 20_000
            assert temporary in file.parents

    asyncio.run(go())
    assert list(temporary.iterdir()) == []


def test_an_agent_that_is_dropped_removes_it_too(temporary: Path) -> None:
    asyncio.run(output_file_of(agent_that_speaks()))
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_the_end_of_the_program_removes_it_at_the_latest(temporary: Path) -> None:
    program = """
import os
import dragoman as dm

@dm.tool(read_only=True)
def speak() -> str:
    "Say a lot."
    return "word " * 20_000

agent = dm.Agent(dm.testing.ScriptedProvider("call: speak {}\\n---\\ntext: Done."), tools=[speak])
agent.run_sync("Speak.")
(folder,) = os.listdir(os.environ["TMPDIR"])
if os.fork() == 0:
    raise SystemExit  # a child leaves it to its parent
os.wait()
assert os.listdir(os.environ["TMPDIR"]) == [folder]
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], env={**os.environ}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(temporary.iterdir()) == []


def test_a_folder_that_the_embedder_names_is_left_alone(temporary: Path) -> None:
    async def go() -> None:
        async with agent_that_speaks(outputs=str(temporary / "mine")) as agent:
            await output_file_of(agent)

    asyncio.run(go())
    assert len(list((temporary / "mine").iterdir())) == 1


@pytest.mark.parametrize(
    ("builtin", "hint"),
    [
        (True, "read it with read_file, offset and limit"),
        (["read_file"], "read it with read_file, offset and limit"),
        (["run_shell"], "read parts of it with run_shell"),
        (False, "none of your tools can read"),
        (["grep"], "none of your tools can read"),
    ],
)
def test_the_model_is_told_only_of_tools_that_it_has(builtin: bool | list[str], hint: str, temporary: Path) -> None:
    async def go() -> str:
        async with agent_that_speaks(builtin=builtin) as agent:
            return (await output_file_of(agent))[1]

    told = asyncio.run(go())
    assert hint in told
    assert [name for name in ("read_file", "run_shell") if name in told] == [name for name in ("read_file", "run_shell") if name in hint]


def test_a_tool_of_the_same_name_is_not_taken_for_ours(temporary: Path) -> None:
    @tool(name="read_file", read_only=True)
    def read_from_archive(title: str) -> str:
        "A file of the archive."
        return title

    async def go() -> str:
        async with make_agent(ScriptedProvider(SCRIPT), tools=[speak, read_from_archive], builtin=False, describe=False) as agent:
            return (await output_file_of(agent))[1]

    assert "none of your tools can read" in asyncio.run(go())
