"""What a conversation shows, for any number of front ends: its events by number, the blocks that stand, and who watches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable

import msgspec

from dragoman.conversation.types import ViewEvent

KEPT_EVENTS = 5_000
"""Whoever has seen less than the last so many begins again from the blocks."""
MOST_OUTPUT = 20_000
"""So much of what a command at work has put out is kept for who comes later."""


class ViewLog:
    """Numbers events and keeps what stands. From one event loop."""

    def __init__(self) -> None:
        self.seq = 0
        self._events: deque[ViewEvent] = deque(maxlen=KEPT_EVENTS)
        self._blocks: dict[str, _Block] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._is_closed = False

    @property
    def blocks(self) -> tuple[ViewEvent, ...]:
        """What stands now, one event for each block, what is passing included."""
        return tuple(block.event for block in self._blocks.values())

    def find(self, id: str) -> ViewEvent | None:
        block = self._blocks.get(id)
        return block.event if block is not None else None

    def tell(self, event: ViewEvent) -> ViewEvent:
        self.seq += 1
        event = msgspec.structs.replace(event, seq=self.seq, text=str(event.text))
        self._events.append(event)
        if event.state == "gone":
            self._blocks.pop(event.id, None)
        elif (block := self._blocks.get(event.id)) is not None:
            block.change(event)
        else:
            self._blocks[event.id] = _Block(event)
        self._wake()
        return event

    def tell_all(self, events: Iterable[ViewEvent]) -> None:
        for event in events:
            self.tell(event)

    def drop_passing(self) -> None:
        """Forget the blocks that only belonged to what is over. Nobody is told: a front end does as it likes."""
        self._blocks = {id: block for id, block in self._blocks.items() if not block.is_passing}

    def begin_anew(self) -> None:
        """The conversation goes on with another session: whoever watches is told, and begins again."""
        self._blocks.clear()
        self._events.clear()
        self.tell(BEGIN_ANEW)

    async def watch(self, after: int = 0) -> AsyncGenerator[ViewEvent, None]:
        """The events after that number, as long as the conversation lasts. Where those are no longer kept, and with 0, it begins with
        BEGIN_ANEW and a block each."""
        if not self._has_after(after):
            blocks, after = self.blocks, self.seq
            yield msgspec.structs.replace(BEGIN_ANEW, seq=after)
            for block in blocks:
                yield block
        while True:
            if after < self.seq:
                if not self._has_after(after):  # it fell too far behind
                    async for event in self.watch():
                        yield event
                    return
                for event in list(self._events)[after - self.seq :]:
                    after = event.seq
                    yield event
                continue
            if self._is_closed:
                return
            woken = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            await woken

    def close(self) -> None:
        """Nothing follows: whoever watches gets what is left, and its end."""
        self._is_closed = True
        self._wake()

    def _has_after(self, after: int) -> bool:
        return 0 < after <= self.seq and (after == self.seq or self._events[0].seq <= after + 1)

    def _wake(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)


BEGIN_ANEW = ViewEvent(0, "status", "begin_anew", passing=True)
"""Forget what was shown: all blocks follow."""


class _Block:
    """One block as it stands. Text that streams is kept in pieces, so that a long answer costs no more than its length."""

    def __init__(self, event: ViewEvent) -> None:
        self._event = msgspec.structs.replace(event, append=False)
        self._more: list[str] = []
        self._gather_output(event, {})

    @property
    def is_passing(self) -> bool:
        return self._event.passing

    @property
    def event(self) -> ViewEvent:
        if self._more:
            self._event = msgspec.structs.replace(self._event, text=self._event.text + "".join(self._more))
            self._more.clear()
        return self._event

    def change(self, event: ViewEvent) -> None:
        before = self._event.data
        if not event.append:
            self._event = event
            self._more.clear()
        else:
            if event.text:
                self._more.append(event.text)
            if event.data or (event.state and event.state != self._event.state):
                data = {**before, **event.data} if event.data else before
                self._event = msgspec.structs.replace(self._event, seq=event.seq, state=event.state or self._event.state, data=data)
            if not event.passing and self._event.passing:
                self._event = msgspec.structs.replace(self._event, passing=False)
        if event.append:
            self._gather_output(event, before)

    def _gather_output(self, event: ViewEvent, before: object) -> None:
        """A command's output comes in pieces: together they are what is to be seen of it so far."""
        if event.kind != "call" or not event.passing or "output" not in event.data or "call_id" not in self._event.data:
            return
        so_far = before.get("output_so_far", "") if isinstance(before, dict) else ""
        data = {**self._event.data, "output_so_far": (so_far + event.data["output"])[-MOST_OUTPUT:]}
        data.pop("output", None)
        self._event = msgspec.structs.replace(self._event, data=data)
