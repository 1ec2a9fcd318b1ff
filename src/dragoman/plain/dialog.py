"""The ways to ask the user in the plain conversation: for a key, for a line, or to edit a text."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dragoman.base.wrapping import lay_out
from dragoman.conversation.questions import Edit, wait_for_cancel
from dragoman.plain.keys import Keyboard
from dragoman.plain.screen import Screen
from dragoman.values.calls import Deny
from dragoman.words import say


class Dialog:
    """The ways to ask the user: for a key, for a line, or to edit a text. `stop` cancels the run."""

    def __init__(self, screen: Screen, keyboard: Keyboard, *, edit: Edit, stop: Callable[[], None]) -> None:
        self.screen = screen
        self._keyboard = keyboard
        self._edit = edit
        self._stop = stop

    async def ask_key(self, prompt: str, keys: Collection[str]) -> str:
        shown, again = lay_out(prompt, self.screen.columns - 10), False
        while True:
            await self._show(shown)
            if key := await self._keyboard.read_answer(keys, self._mark_ready, again=again):
                return key
            again = True
            self.screen.text("\n")
            self.screen.message(say("kept_for_prompt" if self._keyboard.typed.strip() else "enter_alone"), "yellow")

    async def ask_line(self, prompt: str, *, at_once: bool = False) -> str | None:
        """None: the user pressed Ctrl-D."""
        if not at_once:
            await self.screen.drain()
            while not await self._keyboard.read_pause():
                self.screen.message(say("kept_for_prompt"), "yellow")
        with self._keyboard.lend():
            await self._show(prompt)
            answer = await self._keyboard.read_line()
        if answer is not None:
            self.screen.mark_line_ended()
        return answer

    def keep(self, text: str) -> None:
        self._keyboard.typed += f"{text}\n"

    async def edit(self, text: str, name: str) -> str | None:
        self.screen.to_line_start()
        await self.screen.drain()
        with self._keyboard.lend():
            return await self._edit(text, name)

    async def stop_run(self) -> Deny:
        self._stop()
        return await wait_for_cancel()

    def _mark_ready(self) -> None:
        self.screen.text(say("question_mark_by_line" if self._keyboard.is_by_line else "question_mark"), "bold")

    async def _show(self, prompt: str) -> None:
        self.screen.to_line_start()
        self.screen.text(prompt, "bold")
        await self.screen.drain()
