"""Keys for what is under way: a command goes on in the background, one of several calls is ended, a wait for the service is cut short.

They are letters, and hold where nothing is written. A letter may also be the first of a word: it stands in the composer as any other does,
and counts as a key once nothing has followed it for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.tui.composer import Composer
    from dragoman.tui.report import RunView
    from dragoman.tui.talk import LiveTalk
    from dragoman.tui.turns import Turns

LONE_S = 0.4
"""A letter that nothing follows for so long was meant as a key."""


class RetryWait:
    """The wait between two attempts, which a key may end."""

    def __init__(self) -> None:
        self._waits: set[asyncio.Event] = set()

    async def sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        self._waits.add(over)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await over.wait()
        finally:
            self._waits.discard(over)

    def end(self) -> None:
        for over in self._waits:
            over.set()


class WorkKeys:
    """The keys that act on what is running."""

    def __init__(self, talk: LiveTalk, composer: Composer, turns: Turns, view: RunView, pause: RetryWait) -> None:
        self._talk = talk
        self._composer = composer
        self._turns = turns
        self._view = view
        self._pause = pause
        self._armed = 0
        self._switching: asyncio.Task[None] | None = None

    def press(self, name: str) -> bool:
        """Whether the key was meant for what is under way. Letters are not taken yet: they are written, too."""
        if not self._turns.is_busy or self._turns.is_stopping or not self._composer.is_empty:
            return False
        act = self._offered().get(name)
        if act is None:
            return False
        if len(name) > 1:
            act()
            return True
        self._armed += 1
        number = self._armed
        self._talk.canvas.call_later(LONE_S, lambda: self._act_if_alone(number, name))
        return False

    def act(self, name: str) -> None:
        """At once: for a key that the user has bound to it."""
        if self._turns.is_busy and not self._turns.is_stopping and (act := self._offered().get(name)) is not None:
            act()

    def _act_if_alone(self, number: int, letter: str) -> None:
        act = self._offered().get(letter)
        if number != self._armed or self._composer.text != letter or act is None or self._talk.canvas.overlay is not None:
            return
        self._composer.set("")
        act()
        self._talk.canvas.request()

    def _offered(self) -> dict[str, Callable[[], None]]:
        if self._view.is_retrying:
            return {"enter": self._pause.end, "m": self._pick_other}
        calls = self._view.calls
        offered: dict[str, Callable[[], None]] = {}
        if calls.running and calls.count > 1:
            offered["x"] = self._stop_marked
        if calls.running > 1:
            offered["down"] = calls.mark_next
        if calls.command_id:
            offered["b"] = offered["ctrl-b"] = self._leave_running
        return offered

    # --- what they do

    def _stop_marked(self) -> None:
        self._turns.stop_call(self._view.calls.marked_id)

    def _leave_running(self) -> None:
        if not self._turns.leave_running(self._view.calls.command_id):
            self._talk.screen.message(say("tui.cannot_leave"), "yellow")

    def _pick_other(self) -> None:
        from dragoman.tui.pickers import pick_model

        pick_model(self._talk, self._go_on_with)

    def _go_on_with(self, model: str) -> None:
        """The service that refuses is not asked again; if it has answered meanwhile, the other is asked next time."""
        if not self._view.is_retrying:
            return self._turns.queue(f"/model {model}")
        self._switching = asyncio.get_running_loop().create_task(self._switch(model))
        return None

    async def _switch(self, model: str) -> None:
        self._view.goes_on_elsewhere = True
        self._turns.stop()
        await self._turns.finished()
        before = self._talk.model
        self._talk.change_model(model)
        if self._talk.model != before:
            self._talk.ask(None)
