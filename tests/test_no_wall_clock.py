"""No test depends on how busy the machine is: none sets an upper bound on seconds of the wall clock, and none gives up soon."""

from __future__ import annotations

from pathlib import Path

import pytest

from wall_clock import find_wall_clock

TESTS = Path(__file__).resolve().parent
EXCEPTIONS: dict[str, str] = {}
"""A file, or a folder that ends in a slash → why it may."""


def test_no_test_depends_on_how_busy_the_machine_is() -> None:
    found = []
    for path in sorted(TESTS.rglob("*.py")):
        name = str(path.relative_to(TESTS))
        if not name.startswith((*EXCEPTIONS,)):
            found += [f"{name}:{line} {what}" for line, what in find_wall_clock(path.read_text(encoding="utf-8"))]
    advice = "assert order, counts, states, virtual time (virtual_time.py) or generous processor time; wait with a limit of 60 s"
    assert found == [], f"{advice}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "body",
    [
        "began = time.monotonic(); work(); assert time.monotonic() - began < 5",
        "began = time.perf_counter(); work(); took = time.perf_counter() - began; assert took <= LIMIT_S",
        "began = loop.time(); work(); assert 3 > loop.time() - began",
        "began = time.time(); assert max(1, time.time() - began) < 9",
        "until = time.monotonic() + 5\n    while not ready(): assert time.monotonic() < until",
        "began = time.process_time(); work(); assert time.process_time() - began < 0.1",
        "process.communicate(timeout=10)",
        "process.wait(LIMIT_S)",
        "place.run('-p', 'hi', timeout_s=5)",
        "thread.join(5)",
        "await asyncio.wait_for(task, 2)",
        "async with asyncio.timeout(10): await task",
        "assert gone_within(20, sleep)",
        "shown.expect('cancelled', within_s=3)",
    ],
)
def test_what_depends_on_it_is_found(body: str) -> None:
    assert len(list(find_wall_clock(f"LIMIT_S = 4\nasync def test():\n    {body}"))) == 1


def test_a_duration_is_found_behind_functions() -> None:
    source = """
def measure():
    began = time.monotonic()
    return work(), time.monotonic() - began

def test():
    async def main():
        began = time.monotonic()
        await work()
        return time.monotonic() - began

    assert asyncio.run(main()) < 1

def test_two():
    done, took_s = measure()
    assert done < 3
    assert took_s < 5
"""
    assert [line for line, _ in find_wall_clock(source)] == [12, 17]


@pytest.mark.parametrize(
    "body",
    [
        "began = time.monotonic(); work(); assert time.monotonic() - began >= 1",
        "began = time.monotonic(); work(); assert len(shown) <= (time.monotonic() - began) * 20",
        "before = time.time(); work(); assert before <= stamp <= time.time()",
        "until = time.monotonic() + 60\n    while not ready(): assert time.monotonic() < until",
        "began = time.process_time(); work(); assert time.process_time() - began < 5",
        "process.communicate(timeout=60)",
        "with pytest.raises(TimeoutError): await asyncio.wait_for(task, 0.1)",
        "run(shell, 'sleep 9', timeout_s=0.3)",
        "assert waits.seconds == [5.0]",
    ],
)
def test_what_does_not_depend_on_it_is_left_alone(body: str) -> None:
    assert list(find_wall_clock(f"async def test():\n    {body}")) == []
