"""A command whose result was pruned may be run again."""

from __future__ import annotations

import dragoman as dm
from dragoman.context.view import PLACEHOLDER
from loop.test_upkeep import HOUR_MS
from loop.test_upkeep_pruning import Clock, commands
from scenarios.workshop import agent_for, play
from scheduling import PlainTool


def test_a_command_runs_again_after_its_result_was_pruned() -> None:
    """PRUNE-30: the model sees the line, calls the same command again, and is given its output."""

    async def go() -> None:
        clock = Clock()
        history = commands(clock)
        clock.ms += HOUR_MS
        provider = dm.testing.ScriptedProvider('call: run_shell {"command": "make"}\n---\ntext: Built.')
        tool = PlainTool("run_shell")
        await agent_for(provider, tool, history=history).run("What did make say?")
        first, last = provider.requests
        assert PLACEHOLDER in [result.text for message in first.messages for result in message.results]
        assert tool.ran == [{"command": "make"}]
        assert last.messages[-1].results[0].text == "done"

    play(go)
