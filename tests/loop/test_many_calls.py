"""Thousands of calls in one answer cost what their number says, and not its square. Work is counted, not timed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from agents import make_agent
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.messages import unique_id


def count_steps(work: Callable[[], object]) -> int:
    """How many functions were called and generators resumed."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return steps


def test_many_calls_in_one_answer_and_resuming_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")

    def live_and_resumed(count: int) -> tuple[int, int]:
        store = tmp_path / str(count)
        script = "\n".join(['call: read_file {"file_path": "a.txt"}'] * count) + "\n---\ntext: Done."

        async def run(script: str, resume: str) -> str:
            agent = make_agent(ScriptedProvider(script), workspace=tmp_path, describe=False, sessions=store, resume=resume)
            async for _ in agent.run("hi"):
                pass
            await agent.aclose()
            return agent.session_id

        session = asyncio.run(run(script, ""))
        live = count_steps(lambda: asyncio.run(run(script, "")))
        return live, count_steps(lambda: asyncio.run(run("text: Again.", session)))

    few, many = live_and_resumed(300), live_and_resumed(1_200)
    assert many[0] < 8 * few[0], "four times the calls"
    assert many[1] < 8 * few[1], "resuming them"


def test_the_same_id_thousands_of_times() -> None:
    def give(count: int) -> list[str]:
        taken: set[str] = set()
        ids = list[str]()
        for _ in range(count):
            ids.append(unique_id("x", taken))
            taken.add(ids[-1])
        return ids

    assert give(4) == ["x", "x-2", "x-3", "x-4"]
    assert len(set(give(5_000))) == 5_000
    assert give(5_000)[-1] == "x-5000"
    assert unique_id("x", {"x", "x-2", "x-4"}) not in {"x", "x-2", "x-4"}


class Looked(set[str]):
    """A set that counts how often something is looked up in it."""

    looks = 0

    def __contains__(self, item: object) -> bool:
        self.looks += 1
        return super().__contains__(item)


def test_a_free_id_is_found_in_few_looks() -> None:
    taken = Looked(["x", *(f"x-{number}" for number in range(2, 10_000))])
    assert unique_id("x", taken) == "x-10000"
    assert taken.looks < 50
