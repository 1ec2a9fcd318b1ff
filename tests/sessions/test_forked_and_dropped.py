"""A session belongs to one process, and to somebody: forked children leave it alone, and an agent that is dropped lets go of it."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sized
from pathlib import Path

import pytest

from dragoman.loop.agent import Agent
from dragoman.loop.options import WorkspaceOptions
from dragoman.sessions.log import read_log
from dragoman.sessions.opening import create, open_for_writing
from dragoman.testing.scripted import ScriptedProvider
from sessions.entries import SESSION, entry, started

IN_CHILD = """
import os, sys
from dragoman.sessions.log import read_log
from dragoman.sessions.opening import create
from sessions.entries import entry, started

path, way = sys.argv[1:]
journal = create(path, started(), sys.stderr.write)
journal.append(entry(2))
child = os.fork()
if child == 0:
    if way == "append":
        for seq in range(3, 6):
            journal.append(entry(seq))
        print(journal.fault, journal.lost, journal.is_saved, flush=True)
    journal.close()
    os._exit(0)
os.waitpid(child, 0)
for seq in range(3, 6):
    journal.append(entry(seq))
journal.close()
loaded = read_log(path)
print([each.seq for each in loaded.entries], len(loaded.damage), repr(loaded.torn), journal.is_saved)
"""


@pytest.mark.parametrize("way", ["append", "close"])
def test_a_forked_child_leaves_the_log_to_its_parent(tmp_path: Path, way: str) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    run = [sys.executable, "-W", "error", "-c", IN_CHILD, str(path), way]
    tests = str(Path(__file__).parent.parent)
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False, env=os.environ | {"PYTHONPATH": tests})
    *child, parent = done.stdout.splitlines()
    assert parent == "[1, 2, 3, 4, 5] 0 b'' True", done
    assert (child[:1] or [""])[0] == ("it belongs to the process that this one was forked from 3 False" if way == "append" else "")


AGENT_IN_CHILD = """
import multiprocessing, sys
import dragoman as dm
from dragoman.loop.options import WorkspaceOptions
from dragoman.testing.scripted import ScriptedProvider

def use(agent):
    for ask in (lambda: agent.run_sync("again"), agent.undo, agent.prune):
        try:
            ask()
        except dm.errors.InputError as error:
            print("refused:", error, flush=True)
    agent.close()

folder = sys.argv[1]
provider = ScriptedProvider("text: One.\\n---\\ntext: Two.")
agent = dm.Agent(provider, workspace=WorkspaceOptions(folder, describe=False), session=folder + "/kept")
agent.run_sync("first")
child = multiprocessing.get_context("fork").Process(target=use, args=(agent,))
child.start()
child.join(60)
print("child", child.exitcode)
print(agent.run_sync("second").text)
agent.close()
"""


def test_an_agent_refuses_to_go_on_in_a_forked_child(tmp_path: Path) -> None:
    run = [sys.executable, "-c", AGENT_IN_CHILD, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    *refused, child, answer = done.stdout.splitlines()
    assert (child, answer) == ("child 0", "Two."), done
    assert len(refused) == 3
    assert all("make a new Agent here" in line for line in refused)
    [log] = (tmp_path / "kept").glob("*/*.jsonl")
    loaded = read_log(log)
    assert (loaded.damage, loaded.torn) == ((), b"")


def drop(held: list[object], told: Sized) -> None:
    """Let go of it, and wait until that was told: the thread of `run_sync` may hold on for a moment to what it ran last."""
    held.clear()
    deadline = time.monotonic() + 60
    while not told and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)


async def ask(agent: Agent) -> None:
    await agent.run("hello")


def test_a_journal_that_is_dropped_lets_go_of_its_file_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    journal = create(path, started())
    journal.append(entry(2))
    descriptor = journal._descriptor
    held: list[object] = [journal]
    del journal
    with pytest.warns(ResourceWarning, match="unclosed session") as told:
        drop(held, told)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    again, loaded = open_for_writing(path)
    assert len(loaded.entries) == 2
    again.close()


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_that_is_dropped_lets_go_of_its_session(tmp_path: Path, way: str) -> None:
    agent = Agent(ScriptedProvider("text: Hi."), workspace=WorkspaceOptions(tmp_path, describe=False), session=tmp_path / "kept")
    if way == "sync":
        agent.run_sync("hello")
    else:
        asyncio.run(ask(agent))
    held: list[object] = [agent]
    del agent
    with pytest.warns(ResourceWarning, match="unclosed session") as told:
        drop(held, told)
    [log] = (tmp_path / "kept").glob("*/*.jsonl")
    journal, _ = open_for_writing(log)
    journal.close()
    for thread in threads_of_agents():
        thread.join(60)
    assert not threads_of_agents(), "and the thread of run_sync ends"


def threads_of_agents() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dragoman"]
