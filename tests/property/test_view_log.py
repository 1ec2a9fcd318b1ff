"""Whoever watches a conversation, from wherever and however slowly, is left with the same blocks."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.conversation import view_log
from dragoman.conversation.blocks import join_events
from dragoman.conversation.types import ViewEvent
from dragoman.conversation.view_log import ViewLog

IDS = st.sampled_from(["s1", "a1.1", "a1.2", "plan"])
EVENTS = st.builds(
    ViewEvent,
    seq=st.just(0),
    kind=st.sampled_from(["text", "call"]),
    id=IDS,
    text=st.text("ab ", max_size=4),
    append=st.booleans(),
    state=st.sampled_from(["", "running", "done", "gone"]),
    data=st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 3), max_size=2),
)


def shown(events: list[ViewEvent]) -> list[tuple[str, str, str, dict[str, object]]]:
    """What a front end has that takes events as types.py says."""
    return [(each.id, each.text, each.state, dict(each.data)) for each in join_events(events)]


async def watch(log: ViewLog, after: int, told: list[ViewEvent], pause_every: int) -> None:
    async for event in log.watch(after):
        if event.id == "begin_anew":
            told.clear()
            continue
        told.append(event)
        if len(told) % pause_every == 0:
            await asyncio.sleep(0)


@given(st.lists(EVENTS, max_size=40), st.lists(st.integers(0, 40), max_size=4), st.integers(1, 5), st.integers(2, 60))
def test_whoever_watches_is_left_with_the_same_blocks(events: list[ViewEvent], joins: list[int], pause_every: int, kept: int) -> None:
    async def scene() -> None:
        log = ViewLog()
        watchers: list[tuple[list[ViewEvent], asyncio.Task[None]]] = []

        def join(after: int, seen: list[ViewEvent]) -> None:
            told = list(seen)
            watchers.append((told, asyncio.get_running_loop().create_task(watch(log, after, told, pause_every))))

        join(0, [])
        history: list[ViewEvent] = []
        for number, event in enumerate(events, 1):
            history.append(log.tell(event))
            for at in joins:
                if at == number:
                    join(0, [])
                    join(number // 2, history[: number // 2])  # one that lost its connection, and comes back
            if number % 7 == 0:
                await asyncio.sleep(0)
        log.close()
        for _, task in watchers:
            async with asyncio.timeout(60):
                await task
        expected = sorted(shown(history))
        assert sorted(shown(list(log.blocks))) == expected
        for told, _ in watchers:
            assert sorted(shown(told)) == expected

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_log, "KEPT_EVENTS", kept)
        asyncio.run(scene())


def test_output_that_came_in_pieces_is_whole_for_who_comes_later() -> None:
    log = ViewLog()
    log.tell(ViewEvent(0, "call", "a1.1", "$ make", state="running", data={"call_id": "c"}))
    for piece in ("one\n", "two\n"):
        log.tell(ViewEvent(0, "call", "a1.1", append=True, data={"output": piece}, passing=True))
    (block,) = log.blocks
    assert (block.data["output_so_far"], block.passing) == ("one\ntwo\n", False)
    log.tell(ViewEvent(0, "call", "a1.1", "$ make", state="done", data={"call_id": "c", "output": "one\ntwo\n"}))
    assert msgspec.to_builtins(log.blocks[0])["data"] == {"call_id": "c", "output": "one\ntwo\n"}
