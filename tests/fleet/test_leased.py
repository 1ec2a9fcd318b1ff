"""What an attempt notes of its requests."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.context.tokens import estimate_tokens
from dragoman.fleet.leased import AttemptMeter, HowEnded, Leased, SentRequest
from dragoman.fleet.limiter import Ask, Lease, RefusalNews, SpendingNews
from dragoman.fleet.result import AttemptSpending, read_spent
from dragoman.testing import ScriptedProvider
from dragoman.values.errors import ProviderError
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


class Limiter:
    """Lets everything through, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[SpendingNews] = []

    async def lease(self, ask: Ask) -> Lease:
        return Lease(8)

    async def refuse(self, refused: RefusalNews) -> None: ...

    def spent(self, news: SpendingNews) -> None:
        self.told.append(news)


PRICED = Profile(prices=Prices(5, 25, cache_read=0.5))


def new_meter(folder: Path, limiter: Limiter | None = None) -> AttemptMeter:
    return AttemptMeter("a.1.1", str(folder), str(folder / "work"), limiter, lambda is_waiting: None)


def play(meter: AttemptMeter, script: str, request: Request, **options: Any) -> list[AttemptSpending]:
    """Ask once, to the end or to its error; returns what was on disk at each event, and after it."""
    provider, found = Leased(ScriptedProvider(script, profile=options.pop("profile", PRICED)), meter), list[AttemptSpending]()

    async def ask() -> None:
        with suppress(ProviderError):
            async for _ in provider.stream(request):
                found.append(read_spent(os.path.dirname(meter._path)))

    asyncio.run(ask())
    return [*found, read_spent(os.path.dirname(meter._path))]


def test_the_limiter_hears_of_each_request_and_of_each_answer(tmp_path: Path) -> None:
    """And not only when the worker asks again: by then others have spent on."""
    limiter = Limiter()
    meter, provider = new_meter(tmp_path, limiter), ScriptedProvider("text: x", profile=PRICED)
    for _ in range(2):
        sent = asyncio.run(meter.enter(provider, Request("m", (user("hello " * 400),))))
        meter.leave(sent, Usage(1_000_000, output_tokens=1), "answered")
    assert [each.holder for each in limiter.told] == ["a.1.1"] * 4
    spending = [each.spending for each in limiter.told]
    assert [each.in_flight_usd > 0 for each in spending] == [True, False, True, False]
    assert [each.step for each in spending] == [1, 2, 3, 4]
    assert spending[1].usd == pytest.approx(5.000_025)
    assert spending[3].usd == meter.spent.usd == pytest.approx(10.000_05)
    assert meter.spent.estimated_usd == 0


def test_what_is_sent_counts_from_the_moment_it_is_sent_until_the_service_tells(tmp_path: Path) -> None:
    """Whoever is killed with a request under way had told nothing of it."""
    request = Request("m", (user("words " * 1_000),))
    estimate_usd = estimate_tokens(request) * 5 / 1e6
    asyncio.run(new_meter(tmp_path).enter(ScriptedProvider("text: x", profile=PRICED), request))
    spent = read_spent(str(tmp_path))
    assert (spent.requests, spent.under_way, spent.is_least) == (1, 1, True)
    assert spent.usd == spent.estimated_usd == spent.in_flight_usd == pytest.approx(estimate_usd)
    (tmp_path / "spent.jsonl").unlink()
    found = play(new_meter(tmp_path), "usage: fresh=40000\ntext: x\nusage: fresh=40000 output=10", request)
    told = next(each for each in found if each.estimated_usd == 0)
    assert (told.under_way, told.usd) == (1, pytest.approx(0.2))
    assert (found[-1].usd, found[-1].is_least, found[-1].estimated_usd) == (pytest.approx(0.200_25), False, 0)


@pytest.mark.parametrize(
    ("script", "counts", "is_least"),
    [
        ("error: 429", 0.0, False),
        ("error: 401", 0.0, False),
        ("text: hi\ncut", 1.0, True),
        ("usage: fresh=0 output=0\ntext: hi", 1.0, True),
    ],
)
def test_what_a_service_never_told_stays_estimated_and_what_it_refused_cost_nothing(
    tmp_path: Path, script: str, counts: float, is_least: bool
) -> None:
    request = Request("m", (user("words " * 1_000),))
    meter = new_meter(tmp_path)
    meter.is_closed = False
    spent = play(meter, script if "429" not in script else "error: 429\n---\nerror: 401", request)[-1]
    assert spent.usd == pytest.approx(counts * estimate_tokens(request) * 5 / 1e6, rel=0.05)
    assert spent.usd == spent.estimated_usd
    assert (spent.under_way, spent.in_flight_usd, spent.is_least) == (0, 0, is_least)


def test_a_model_that_costs_nothing_costs_nothing_whatever_is_cut(tmp_path: Path) -> None:
    spent = play(new_meter(tmp_path), "text: hi\ncut", Request("m", (user("hi"),)), profile=Profile(prices=Prices(0, 0)))[-1]
    assert (spent.usd, spent.is_least) == (0, False)


def test_a_request_that_goes_on_with_an_answered_one_is_estimated_by_what_the_service_told(tmp_path: Path) -> None:
    """Where a cache holds most of it, full prices would be ten times too much."""
    first = Request("m", (user("words " * 1_000),))
    meter = new_meter(tmp_path)
    play(meter, "usage: fresh=10000 cache_write=90000 output=5\ntext: x", first)
    before_usd = meter.spent.usd
    assert before_usd is not None
    more = Request("m", (*first.messages, assistant("x"), user("go on")))
    asyncio.run(meter.enter(ScriptedProvider("text: x", profile=PRICED), more))
    assert meter.spent.in_flight_usd == pytest.approx(100_000 * 0.5 / 1e6, rel=0.01)
    other = Request("m", (user("something else"), assistant("x"), user("go on")))
    asyncio.run(meter.enter(ScriptedProvider("text: x", profile=PRICED), other))
    assert meter.spent.estimated_usd == pytest.approx(100_000 * 0.5 / 1e6 + estimate_tokens(other) * 5 / 1e6, rel=0.01)


WAYS: st.SearchStrategy[HowEnded] = st.sampled_from(["answered", "cut", "refused"])


@given(st.lists(st.tuples(st.booleans(), WAYS, st.integers(0, 50_000), st.integers(0, 500), st.integers(1, 400)), max_size=12), st.data())
def test_whatever_happens_in_whatever_order_what_is_noted_is_what_was_told_and_the_estimates_of_the_rest(
    steps: list[tuple[bool, HowEnded, int, int, int]], data: st.DataObject
) -> None:
    """The last line of the file is all that is left of a worker that is killed."""
    with TemporaryDirectory() as folder:
        meter, provider = new_meter(Path(folder)), ScriptedProvider("text: x", profile=PRICED)
        ended_usd, open_usd, cut = 0.0, list[tuple[SentRequest, float]](), 0
        for is_new, how, fresh, output, words in steps:
            if is_new or not open_usd:
                request = Request("m", (user(f"{meter.spent.step} " + "words " * words),))
                open_usd.append((asyncio.run(meter.enter(provider, request)), estimate_tokens(request) * 5 / 1e6))
            else:
                sent, estimate_usd = open_usd.pop(data.draw(st.integers(0, len(open_usd) - 1)))
                usage = Usage() if how == "refused" else Usage(fresh, output_tokens=output)
                meter.leave(sent, usage, how)
                told_usd = (usage.input_tokens * 5 + usage.output_tokens * 25) / 1e6
                ended_usd += told_usd + (estimate_usd if how != "refused" and not usage.input_tokens else 0.0)
                cut += how == "cut" or (how == "answered" and not usage.input_tokens)
            spent = read_spent(folder)
            assert spent.usd == pytest.approx(ended_usd + sum(usd for _, usd in open_usd), abs=1e-9)
            assert spent.in_flight_usd == pytest.approx(sum(usd for _, usd in open_usd), abs=1e-9)
            assert spent.is_least is bool(cut or open_usd)
            assert (spent.requests, spent.under_way) == (meter.spent.requests, len(open_usd))
