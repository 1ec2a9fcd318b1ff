"""One timer for a whole stream: it rings when nothing comes, never while the reader is busy, and never for somebody else's cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from dragoman.http.deadline import Deadline
from virtual_time import run_in_virtual_time


async def ticking(*pauses: float) -> AsyncGenerator[bytes, None]:
    for pause in pauses:
        await asyncio.sleep(pause)
        yield b"tick"


def now() -> float:
    return asyncio.get_running_loop().time()


def test_what_comes_in_time_comes_through() -> None:
    async def main() -> list[bytes | None]:
        limit = Deadline(now() + 0.2)
        chunks = ticking(0, 0.01, 0)
        got = [await limit.next(chunks) for _ in range(4)]
        limit.close()
        return got

    assert run_in_virtual_time(main()) == [b"tick", b"tick", b"tick", None]


def test_what_does_not_come_in_time_is_a_timeout_and_the_task_goes_on() -> None:
    async def main() -> int:
        limit = Deadline(now() + 0.02)
        with pytest.raises(TimeoutError):
            await limit.next(ticking(5))
        limit.close()
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert run_in_virtual_time(main()) == 0


def test_a_deadline_that_is_moved_holds_where_it_was_moved_to() -> None:
    async def main() -> float:
        limit = Deadline(now() + 0.05)
        chunks = ticking(0.03, 0.03, 0.03, 5)
        for _ in range(3):
            assert await limit.next(chunks) == b"tick"
            limit.at = now() + 0.05
        began = now()
        with pytest.raises(TimeoutError):
            await limit.next(chunks)
        limit.close()
        return now() - began

    assert run_in_virtual_time(main()) == pytest.approx(0.05)


def test_a_deadline_may_be_moved_nearer() -> None:
    async def main() -> float:
        limit = Deadline(now() + 60)
        chunks = ticking(0, 5)
        assert await limit.next(chunks) == b"tick"
        began = now()
        limit.at = began + 0.03
        with pytest.raises(TimeoutError):
            await limit.next(chunks)
        limit.close()
        return now() - began

    assert run_in_virtual_time(main()) == pytest.approx(0.03)


def test_the_readers_own_time_does_not_count() -> None:
    async def main() -> None:
        limit = Deadline(now() + 0.02)
        chunks = ticking(0, 0)
        assert await limit.next(chunks) == b"tick"
        await asyncio.sleep(0.05)
        limit.at = now() + 0.5
        assert await limit.next(chunks) == b"tick"
        limit.close()

    run_in_virtual_time(main())


def test_somebody_elses_cancel_is_not_a_timeout() -> None:
    async def main() -> None:
        async def read() -> None:
            limit = Deadline(now() + 5)
            try:
                await limit.next(ticking(5))
            finally:
                limit.close()

        task = asyncio.create_task(read())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_in_virtual_time(main())


def test_reads_may_come_from_different_tasks() -> None:
    async def main() -> None:
        limit = Deadline(now() + 0.05)
        chunks = ticking(0, 5)
        assert await asyncio.create_task(limit.next(chunks)) == b"tick"
        with pytest.raises(TimeoutError):
            await asyncio.create_task(limit.next(chunks))
        limit.close()

    run_in_virtual_time(main())
