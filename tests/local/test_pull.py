"""Pulling: whatever goes wrong, nothing half-done is taken for a model, and the next try goes on from what is there."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.local.weights import DiskFull, NotPulled, Progress, models, pull
from dragoman.local.weights.sources import OwnFile, WeightSource
from tiny_model import CONTENT, PARTS, TINY, Fake, digest_of, tiny_model


@pytest.fixture(autouse=True)
def in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.MODELS, "tiny", TINY)


def pulled(folder: Path, *sources: WeightSource, progress: Any = None) -> Path:
    return asyncio.run(pull("tiny", folder=folder, sources=sources, progress=progress))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_parts_become_the_file_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    path = pulled(folder, Fake())
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert names_in(folder) == ["tiny.gguf"]
    assert path.stat().st_mode & 0o77 == 0


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    again = Fake()
    pulled(tmp_path, Fake())
    assert pulled(tmp_path, again) == tmp_path / "tiny.gguf"
    assert again.asked == []


def test_parts_are_fetched_side_by_side_but_never_too_many(tmp_path: Path) -> None:
    fake = Fake(parallel=3)
    pulled(tmp_path, fake)
    assert fake.most_at_once == 3


def test_the_next_source_is_asked_for_what_is_missing(tmp_path: Path) -> None:
    first, second, third = Fake({5: ["gone"]}, parallel=1), Fake(), Fake()
    assert pulled(tmp_path, first, second, third).read_bytes() == CONTENT
    assert first.asked == [1, 2, 3, 4, 5]
    assert sorted(second.asked) == [5, 6]
    assert third.asked == []


def test_a_file_the_user_has_is_copied_and_stays(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    other = Fake()
    assert pulled(tmp_path / "kept", OwnFile(own), other).read_bytes() == CONTENT
    assert own.read_bytes() == CONTENT
    assert other.asked == []


def test_a_wrong_file_of_the_users_gives_way_to_the_next_source(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF" + bytes(len(CONTENT)))
    assert pulled(tmp_path, OwnFile(tmp_path / "nowhere"), OwnFile(own), Fake()).read_bytes() == CONTENT


# Faults


@pytest.mark.parametrize(
    ("fault", "told"), [("corrupt", "part 4 is damaged"), ("cut", "part 4 ended after 1,500 of 3,000 bytes"), ("long", "part 4 is longer")]
)
def test_a_bad_part_is_asked_for_once_more_and_then_told(tmp_path: Path, fault: str, told: str) -> None:
    fake = Fake({4: [fault]}, parallel=1)
    with pytest.raises(NotPulled, match=told) as caught:
        pulled(tmp_path, fake)
    assert fake.asked == [1, 2, 3, 4, 4]
    assert "parts here, and kept: 3 of 6" in str(caught.value)
    assert names_in(tmp_path) == ["tiny.gguf.part"]
    again = Fake()
    assert pulled(tmp_path, again).read_bytes() == CONTENT
    assert sorted(again.asked) == [4, 5, 6]


def test_a_part_that_is_right_the_second_time_will_do(tmp_path: Path) -> None:
    assert pulled(tmp_path, Fake({2: ["corrupt", "right"], 3: ["cut", "right"]})).read_bytes() == CONTENT


def test_every_source_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotPulled, match=r"tiny could not be downloaded\. one: it is not there; two: part 1 is damaged") as caught:
        pulled(tmp_path, Fake({1: ["gone"]}, title="one", parallel=1), Fake({1: ["corrupt"]}, title="two", parallel=1))
    assert caught.value.exit_code == 57


def test_a_whole_that_is_not_the_right_one_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts fit the table, and the table does not fit itself: the SHA-256 of the whole decides."""
    monkeypatch.setitem(models.MODELS, "tiny", tiny_model(sha256=digest_of(b"another")))
    with pytest.raises(NotPulled, match="SHA-256 of the whole file is wrong"):
        pulled(tmp_path, Fake())
    assert names_in(tmp_path) == []


def test_a_disk_that_fills_up_ends_it_and_what_came_is_kept(tmp_path: Path) -> None:
    other = Fake()
    with pytest.raises(DiskFull, match="disk is full") as caught:
        pulled(tmp_path, Fake({3: ["full"]}, parallel=1), other)
    assert caught.value.exit_code == 54
    assert other.asked == []
    again = Fake()
    assert pulled(tmp_path, again).read_bytes() == CONTENT
    assert sorted(again.asked) == [3, 4, 5, 6]


def test_room_is_looked_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the file, for what lies beside it while it comes, and some to spare."""

    class Room(NamedTuple):
        free: int

    free = 40_000_000
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Room(free))
    fake = Fake()
    with pytest.raises(DiskFull, match="has room for 40 MB, and 50 MB are needed"):
        pulled(tmp_path, fake)
    free = 50_000_000 + len(CONTENT)
    with pytest.raises(DiskFull):
        pulled(tmp_path, Fake(copies=2))
    assert fake.asked == []
    assert pulled(tmp_path, fake).read_bytes() == CONTENT


def test_packages_that_a_kill_left_behind_are_cleared_away_first(tmp_path: Path) -> None:
    left = tmp_path / "tiny.gguf.tmp" / "99" / "package.whl"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"old")
    seen: list[bool] = []
    pulled(tmp_path, Fake(), progress=lambda told: seen.append(left.exists()))
    assert not any(seen)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotPulled, match="file"):
        pulled(tmp_path / "file" / "weights", Fake())


def test_a_damaged_unfinished_file_is_mended(tmp_path: Path) -> None:
    with pytest.raises(NotPulled):
        pulled(tmp_path, Fake({6: ["gone"]}, parallel=1))
    unfinished = tmp_path / "tiny.gguf.part"
    data = bytearray(unfinished.read_bytes())
    data[4_000] ^= 1
    unfinished.write_bytes(data)
    again = Fake()
    assert pulled(tmp_path, again).read_bytes() == CONTENT
    assert sorted(again.asked) == [2, 6]


FAULTS = st.sampled_from(["right", "right", "corrupt", "cut", "long", "gone", "full"])
TRIES = st.lists(st.dictionaries(st.integers(1, PARTS), st.lists(FAULTS, min_size=1, max_size=3)), max_size=4)


@given(TRIES)
def test_whatever_fails_the_file_is_right_or_not_there(tries: Sequence[dict[int, list[str]]]) -> None:
    models.MODELS["tiny"] = TINY
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        have: set[int] = set()
        for faults in tries:
            fake = Fake(faults)
            try:
                pulled(folder, fake)
            except NotPulled:
                assert not (folder / "tiny.gguf").exists()
            assert not have & set(fake.asked), "a part that is here is never fetched again"
            unfinished = folder / "tiny.gguf.part"
            data = unfinished.read_bytes() if unfinished.exists() else CONTENT
            have = {part.number for part in TINY.parts if digest_of(data[part.offset : part.offset + part.bytes]) == part.sha256}
        assert pulled(folder, Fake()).read_bytes() == CONTENT
        assert names_in(folder) == ["tiny.gguf"]


# Cancelling


async def asked_for(fake: Fake, *numbers: int) -> None:
    for _ in range(2_000):
        if set(numbers) <= set(fake.asked):
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)  # and then at it


@pytest.mark.parametrize("where", ["hang", "work"])
def test_a_cancel_waits_for_nothing_and_loses_no_finished_part(tmp_path: Path, where: str) -> None:
    async def cancelled() -> None:
        fake = Fake({3: [where]}, parallel=1)
        task = asyncio.create_task(pull("tiny", folder=tmp_path, sources=[fake]))
        await asked_for(fake, 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 60))  # it hangs for longer
    assert names_in(tmp_path) == ["tiny.gguf.part"]
    again = Fake()
    assert pulled(tmp_path, again).read_bytes() == CONTENT
    assert sorted(again.asked) == [3, 4, 5, 6]


@pytest.mark.parametrize("ended_by", ["a cancel", "a failure"])
def test_sources_may_put_in_order_what_they_began(tmp_path: Path, ended_by: str) -> None:
    """Several at once, each in its own time."""
    fake = Fake({1: ["hang"], 2: ["hang"], 3: ["hang"], 4: ["hang" if ended_by == "a cancel" else "gone"]})

    async def ended() -> None:
        task = asyncio.create_task(pull("tiny", folder=tmp_path, sources=[fake]))
        await asked_for(fake, 1, 2, 3, 4)
        if ended_by == "a cancel":
            task.cancel()
        with pytest.raises(asyncio.CancelledError if ended_by == "a cancel" else NotPulled):
            await task

    asyncio.run(ended())
    assert sorted(fake.tidied) == ([1, 2, 3, 4] if ended_by == "a cancel" else [1, 2, 3])


KILLED = """
import asyncio, sys
from pathlib import Path
from dragoman.local.weights import models, pull
from tiny_model import TINY, Fake
models.MODELS["tiny"] = TINY
asyncio.run(pull("tiny", folder=Path(sys.argv[1]), sources=[Fake({4: ["hang"]}, parallel=1)]))
"""


def test_a_killed_pull_is_taken_up_again(tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=env)
    try:
        deadline_s = time.monotonic() + 60
        while not (tmp_path / "tiny.gguf.tmp" / "4").exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    again = Fake()
    assert pulled(tmp_path, again).read_bytes() == CONTENT
    assert sorted(again.asked) == [4, 5, 6]
    assert names_in(tmp_path) == ["tiny.gguf"]


# Two at once


def test_of_two_pulls_one_waits_and_says_so(tmp_path: Path) -> None:
    one, other = Fake(), Fake()
    stages: list[str] = []

    async def both() -> tuple[Path, Path]:
        slow = asyncio.create_task(pull("tiny", folder=tmp_path, sources=[one]))
        await asyncio.sleep(0)
        waiting = pull("tiny", folder=tmp_path, sources=[other], progress=lambda told: stages.append(told.stage))
        return await asyncio.gather(slow, waiting)  # type: ignore[return-value]

    first, second = asyncio.run(both())
    assert first == second
    assert second.read_bytes() == CONTENT
    assert sorted(one.asked) == [1, 2, 3, 4, 5, 6]
    assert other.asked == []
    assert set(stages) == {"waiting"}
    assert names_in(tmp_path) == ["tiny.gguf"]


# Progress


def test_progress_tells_the_stages_and_never_more_than_there_is(tmp_path: Path) -> None:
    told: list[Progress] = []
    pulled(tmp_path, Fake({1: ["gone"]}, title="one"), Fake(title="two"), progress=told.append)
    stages = dict.fromkeys((each.stage, each.source) for each in told)
    assert list(stages) == [("checking", ""), ("fetching", "one"), ("fetching", "two"), ("verifying", "")]
    assert all(0 <= each.done_bytes <= each.total_bytes == len(CONTENT) for each in told)


def test_progress_that_raises_ends_the_pull(tmp_path: Path) -> None:
    def show(progress: Progress) -> None:
        if progress.stage == "fetching":
            raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="the terminal is gone"):
        pulled(tmp_path, Fake({2: ["hang"]}), progress=show)
    assert names_in(tmp_path) == ["tiny.gguf.part"]
