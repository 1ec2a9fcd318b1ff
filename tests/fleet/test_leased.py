"""What an attempt notes of its requests."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.fleet.leased import AttemptMeter
from dragoman.fleet.limiter import Ask, Lease, RefusalNews, SpendingNews
from dragoman.fleet.result import read_spent
from dragoman.testing import ScriptedProvider
from dragoman.values.messages import Request, ToolCall, assistant, tool_result, user
from dragoman.values.notes import GREETING
from dragoman.values.profile import Profile
from dragoman.values.usage import Prices, Usage


def hash_of(folder: Path, said: str = "Do it.") -> str:
    """As it is noted for an epoch whose copy lies in this folder."""
    (folder / "out").mkdir(parents=True)
    call = ToolCall("1", "read_file", f'{{"file_path":"{folder}/work/a.txt"}}')
    around = user(f"{GREETING}\n\nYour folder is {folder}/work, for temporary files {folder}/tmp/{folder.name}-1a2b.")
    request = Request("m", (around, user(said), assistant(call), user(tool_result(call, f"{folder}/work/a.txt: hello"))))
    meter = AttemptMeter("a.1.1", str(folder / "out"), f"{folder}/work", None, lambda is_waiting: None)
    asyncio.run(meter.enter(ScriptedProvider("text: x"), request))
    return read_spent(str(folder / "out")).request_hash


def test_equal_requests_of_two_epochs_have_the_same_hash(tmp_path: Path) -> None:
    """By it a supervisor knows that a failure is deterministic. Each epoch has a copy of its own, in another folder."""
    first, second = hash_of(tmp_path / "epoch-1"), hash_of(tmp_path / "epoch-22")
    assert first == second
    assert hash_of(tmp_path / "other", "Do something else.") != first


def test_the_limiter_hears_of_each_answer(tmp_path: Path) -> None:
    """And not only when the worker asks again: by then others have spent on."""
    told: list[SpendingNews] = []

    class Limiter:
        async def lease(self, ask: Ask) -> Lease:
            return Lease(8)

        async def refuse(self, refused: RefusalNews) -> None: ...

        def spent(self, news: SpendingNews) -> None:
            told.append(news)

    meter = AttemptMeter("a.1.1", str(tmp_path), str(tmp_path / "work"), Limiter(), lambda is_waiting: None)
    provider = ScriptedProvider("text: x", profile=Profile(prices=Prices(5, 25)))
    for _ in range(2):
        asyncio.run(meter.enter(provider, Request("m", ())))
        meter.leave(provider, "m", Usage(1_000_000), is_whole=True)
    assert [each.holder for each in told] == ["a.1.1"] * 2
    assert 0 < told[0].usd < told[1].usd == meter.spent.usd
