"""The turnstile: never too many inside, first come, first served, and no place is lost, whoever is cancelled or closed and when."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman.base import turnstile as module
from dragoman.base.turnstile import INITIAL_SIZE, Slot, Turnstile

# --- any order of events ---------------------------------------------------------------------------------------------------------


class Visitor:
    """Somebody who goes in and stays there until told to leave."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turnstile: Turnstile, asked: list[Visitor]) -> None:
        self.loop = loop
        self.place: Slot | None = None
        self.is_cancelled = False
        self._turnstile = turnstile
        self._asked = asked
        self.coroutine = self._visit()
        self.task = loop.create_task(self.coroutine)

    async def _visit(self) -> None:
        self._asked.append(self)
        self.place = await self._turnstile.enter()

    @property
    def is_inside(self) -> bool:
        return self.place is not None

    @property
    def waits(self) -> bool:
        return not (self.is_inside or self.is_cancelled)


class Comings(RuleBasedStateMachine):
    """Two event loops that are run a step at a time, in turns."""

    @initialize(size=st.integers(1, 3))
    def open(self, size: int) -> None:
        self.size = size
        self.turnstile = Turnstile(size)
        self.loops = [asyncio.new_event_loop(), asyncio.new_event_loop()]
        self.visitors: list[Visitor] = []
        self.asked: list[Visitor] = []
        self.lost: list[Visitor] = []

    def step(self, which: int) -> None:
        loop = self.loops[which]
        loop.call_soon(loop.stop)
        loop.run_forever()

    def some(self, number: int, visitors: list[Visitor]) -> Visitor:
        return visitors[number % len(visitors)]

    @property
    def insiders(self) -> list[Visitor]:
        return [each for each in self.visitors if each.is_inside]

    @property
    def waiters(self) -> list[Visitor]:
        return [each for each in self.visitors if each.waits]

    @rule(which=st.integers(0, 1), count=st.integers(1, 4))
    def enter(self, which: int, count: int) -> None:
        self.visitors += [Visitor(self.loops[which], self.turnstile, self.asked) for _ in range(count)]

    @rule(which=st.integers(0, 1))
    def step_one(self, which: int) -> None:
        self.step(which)

    def leave(self, visitor: Visitor, within_a_loop: int | None) -> None:
        assert visitor.place is not None
        self.visitors.remove(visitor)
        if within_a_loop is None:
            self.turnstile.leave(visitor.place)
        else:
            self.loops[within_a_loop].call_soon(self.turnstile.leave, visitor.place)
            self.step(within_a_loop)

    @precondition(lambda self: self.insiders)
    @rule(number=st.integers(0, 9), within_a_loop=st.sampled_from([None, 0, 1]))
    def somebody_leaves(self, number: int, within_a_loop: int | None) -> None:
        self.leave(self.some(number, self.insiders), within_a_loop)

    @precondition(lambda self: self.waiters)
    @rule(number=st.integers(0, 9))
    def cancel(self, number: int) -> None:
        visitor = self.some(number, self.waiters)
        visitor.is_cancelled = True
        visitor.task.cancel()

    @precondition(lambda self: self.insiders and self.waiters)
    @rule(number=st.integers(0, 9), within_a_loop=st.sampled_from([None, 0, 1]))
    def cancel_the_one_who_was_just_let_in(self, number: int, within_a_loop: int | None) -> None:
        first = next((each for each in self.asked if each.waits and each not in self.lost), None)
        self.leave(self.some(number, self.insiders), within_a_loop)
        if first is not None and first.waits:
            first.is_cancelled = True
            first.task.cancel()

    @precondition(lambda self: len(self.lost) < 8)
    @rule(which=st.integers(0, 1))
    def close_a_loop(self, which: int) -> None:
        self.step(which)  # every task has begun
        self.loops[which].close()
        self.lost += [each for each in self.visitors if each.loop is self.loops[which]]
        self.visitors = [each for each in self.visitors if each.loop is not self.loops[which]]
        self.loops[which] = asyncio.new_event_loop()

    @rule()
    def settle(self) -> None:
        self.turnstile.leave(Slot(self.loops[0]))  # as each waiter does once a second
        for _ in range(4):
            self.step(0)
            self.step(1)
        self.visitors = [each for each in self.visitors if not each.is_cancelled]
        if self.waiters:
            assert len(self.insiders) == self.turnstile.inside == self.size, "somebody waits, and there is room"
        if not self.lost:
            assert (self.turnstile.inside, self.turnstile.waiting) == (len(self.insiders), len(self.waiters))
        order = {id(each): place for place, each in enumerate(self.asked)}
        last_in = max((order[id(each)] for each in self.insiders), default=-1)
        assert all(order[id(each)] > last_in for each in self.waiters), "somebody was let in before those who came first"

    @invariant()
    def never_too_many(self) -> None:
        assert self.turnstile.inside <= self.size
        assert len(self.insiders) <= self.size

    def teardown(self) -> None:
        if not hasattr(self, "turnstile"):
            return
        try:
            self.settle()
            while self.visitors:
                for visitor in self.insiders:
                    self.leave(visitor, None)
                self.settle()
            assert self.turnstile.waiting == 0
        finally:
            for visitor in [*self.visitors, *self.lost]:
                visitor.task._log_destroy_pending = False  # type: ignore[attr-defined]
                visitor.task.cancel() if not visitor.loop.is_closed() else visitor.coroutine.close()
            for which, loop in enumerate(self.loops):
                self.step(which)
                self.step(which)
                loop.close()


TestComings = Comings.TestCase
TestComings.settings = settings(stateful_step_count=40)


# --- several event loops at once ---------------------------------------------------------------------------------------------------


def test_four_threads_with_a_loop_each_share_the_places() -> None:
    turnstile = Turnstile(3)
    counting = threading.Lock()
    inside = most = entered = 0

    async def visit(chance: random.Random) -> None:
        nonlocal inside, most, entered
        async with turnstile.place():
            with counting:
                inside += 1
                entered += 1
                most = max(most, inside)
            try:
                await asyncio.sleep(chance.choice((0, 0, 0.0002)))
            finally:
                with counting:
                    inside -= 1

    async def come_and_go(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(6):
            tasks = [asyncio.create_task(visit(chance)) for _ in range(40)]
            for task in chance.sample(tasks, 10):
                await asyncio.sleep(0)
                task.cancel()
            done, pending = await asyncio.wait(tasks, timeout=30)
            assert not pending
            assert all(task.cancelled() or task.exception() is None for task in done)

    run_in_threads(4, lambda seed: asyncio.run(come_and_go(seed)))
    assert most == 3
    assert (inside, turnstile.inside, turnstile.waiting) == (0, 0, 0)
    assert entered >= 4 * 6 * 30


def test_a_waiter_is_woken_from_another_thread_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again within the time that a test waits."""
    monkeypatch.setattr(module, "CHECK_S", 600.0)
    turnstile = Turnstile(1)
    held, woken = threading.Event(), threading.Event()

    async def hold(_: int) -> None:
        async with turnstile.place():
            held.set()
            while not turnstile.waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def wait(_: int) -> None:
        held.wait(60)
        async with turnstile.place():
            woken.set()

    run_in_threads(2, lambda number: asyncio.run([hold, wait][number](number)))
    assert woken.is_set()


def run_in_threads(count: int, work: Callable[[int], object]) -> None:
    faults: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults
    assert not any(thread.is_alive() for thread in threads)


# --- event loops that are thrown away ------------------------------------------------------------------------------------------------


@contextmanager
def abandoned_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that is closed by the test with tasks in it, which nobody collects before the test ends."""
    loop = asyncio.new_event_loop()
    tasks: list[asyncio.Task[object]] = []

    def remember(loop: asyncio.AbstractEventLoop, coroutine: object, **options: object) -> asyncio.Task[object]:
        tasks.append(asyncio.Task(coroutine, loop=loop, **options))  # type: ignore[arg-type]
        return tasks[-1]

    loop.set_task_factory(remember)
    try:
        yield loop
    finally:
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not task.done():
                task.get_coro().close()  # type: ignore[union-attr]
        loop.close()


def test_places_of_a_closed_loop_are_taken_back_when_they_are_needed() -> None:
    turnstile = Turnstile(2)

    async def take_all() -> None:
        assert [await turnstile.enter() for _ in range(2)]

    for _ in range(3):
        asyncio.run(take_all())
        assert turnstile.inside == 2


def test_whoever_waits_notices_that_a_loop_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.02)
    turnstile = Turnstile(1)
    with abandoned_loop() as lost:
        place = lost.run_until_complete(turnstile.enter())

        async def wait() -> None:
            waiting = asyncio.create_task(turnstile.enter())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            threading.Thread(target=lost.close).start()
            turnstile.leave(await asyncio.wait_for(waiting, 60))

        asyncio.run(wait())
        turnstile.leave(place)  # late, and for nothing
        assert (turnstile.inside, turnstile.waiting) == (0, 0)


def test_a_place_that_is_taken_back_goes_to_whoever_has_waited_longest() -> None:
    turnstile = Turnstile(1)

    async def main(lost: asyncio.AbstractEventLoop) -> None:
        first = asyncio.create_task(turnstile.enter())
        await asyncio.sleep(0)
        lost.close()
        second = asyncio.create_task(turnstile.enter())
        await asyncio.wait((first, second), timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert (first.done(), second.done()) == (True, False)
        turnstile.leave(await first)
        turnstile.leave(await second)

    with abandoned_loop() as lost:
        lost.run_until_complete(turnstile.enter())
        asyncio.run(main(lost))


def test_a_waiter_whose_loop_was_closed_is_passed_over() -> None:
    turnstile = Turnstile(1)

    async def main(lost: asyncio.AbstractEventLoop) -> None:
        place = await turnstile.enter()
        await asyncio.to_thread(wait_and_close, lost)
        ours = asyncio.create_task(turnstile.enter())
        await asyncio.sleep(0)
        assert turnstile.waiting == 2
        turnstile.leave(place)
        turnstile.leave(await asyncio.wait_for(ours, 60))

    def wait_and_close(lost: asyncio.AbstractEventLoop) -> None:
        lost.create_task(turnstile.enter())
        lost.call_soon(lost.stop)
        lost.run_forever()
        lost.close()

    with abandoned_loop() as lost:
        asyncio.run(main(lost))
        assert (turnstile.inside, turnstile.waiting) == (0, 0)


def test_a_coroutine_nobody_ends_gives_its_place_back_when_it_is_collected() -> None:
    turnstile = Turnstile(1)

    async def stay() -> None:
        async with turnstile.place():
            await asyncio.Event().wait()

    coroutine = stay()
    loop = asyncio.new_event_loop()
    loop.call_soon(coroutine.send, None)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert turnstile.inside == 1
    del coroutine
    gc.collect()
    loop.close()
    assert turnstile.inside == 0


@pytest.mark.parametrize("size", [INITIAL_SIZE, INITIAL_SIZE + 1])
def test_leaving_in_the_middle_of_anothers_lines_blocks_nobody(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the garbage collector ends a coroutine while this very thread holds the lock. Here the size does, which is asked under it."""
    monkeypatch.setattr(module, "CHECK_S", 600.0)  # not only when somebody looks again
    places: list[Slot] = []

    def ask_size() -> int:
        turnstile.leave(places.pop())
        return size

    turnstile = Turnstile(ask_size)

    async def main() -> None:
        places.extend([await turnstile.enter() for _ in range(INITIAL_SIZE)])
        await asyncio.wait_for(turnstile.enter(), 60)
        assert (turnstile.inside, turnstile.waiting) == (len(places) + 1, 0)

    asyncio.run(main())


def test_who_looks_again_keeps_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turnstile = Turnstile(1)

    async def main() -> None:
        place = await turnstile.enter()
        monkeypatch.setattr(module, "CHECK_S", 0.02)
        first = asyncio.create_task(turnstile.enter())
        await asyncio.sleep(0)
        monkeypatch.setattr(module, "CHECK_S", 60)
        second = asyncio.create_task(turnstile.enter())
        await asyncio.sleep(0.1)
        turnstile.leave(place)
        turnstile.leave(await asyncio.wait_for(first, 60))
        turnstile.leave(await asyncio.wait_for(second, 60))

    asyncio.run(main())


# --- patience, size ------------------------------------------------------------------------------------------------------------------


def test_patience_ends_and_costs_nobody_a_place() -> None:
    turnstile = Turnstile(1, patience_s=0.05)

    async def main() -> None:
        place = await turnstile.enter()
        with pytest.raises(TimeoutError, match=r"no place within 0\.05 s: 1 are inside, 1 wait"):
            await turnstile.enter()
        assert turnstile.waiting == 0
        turnstile.leave(place)
        async with turnstile.place():
            assert turnstile.inside == 1

    asyncio.run(main())


def test_leaving_twice_frees_one_place() -> None:
    turnstile = Turnstile(2)

    async def main() -> None:
        first, _ = await turnstile.enter(), await turnstile.enter()
        turnstile.leave(first)
        turnstile.leave(first)
        assert turnstile.inside == 1

    asyncio.run(main())


def test_a_size_that_is_a_function_is_asked_only_when_there_are_many() -> None:
    answers = iter([INITIAL_SIZE + 1, INITIAL_SIZE + 1, INITIAL_SIZE + 2])
    asked = 0

    def size() -> int:
        nonlocal asked
        asked += 1
        return next(answers)

    async def main() -> None:
        turnstile = Turnstile(size)
        places = [await turnstile.enter() for _ in range(INITIAL_SIZE)]
        assert asked == 0
        places.append(await turnstile.enter())
        assert asked == 1
        waiting = asyncio.create_task(turnstile.enter())
        await asyncio.sleep(0)
        assert (turnstile.inside, asked) == (INITIAL_SIZE + 2, 3)  # it has grown meanwhile
        places.append(await waiting)
        for place in places:
            turnstile.leave(place)
        assert turnstile.inside == 0

    asyncio.run(main())


@pytest.mark.parametrize("size", [0, -1])
def test_a_turnstile_that_lets_nobody_in_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Turnstile(size)


def test_entering_makes_neither_a_task_nor_a_future() -> None:
    """As long as there is room: it is done for every request."""
    turnstile = Turnstile(1)
    entering = turnstile.enter()

    async def main() -> None:
        with pytest.raises(StopIteration) as done:
            entering.send(None)
        assert isinstance(done.value.value, Slot)

    asyncio.run(main())
    assert turnstile.inside == 1
