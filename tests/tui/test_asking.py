"""Questions in the live region: which keys answer them, and where the others go."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from dragoman.app.answers import QUIET_S
from dragoman.tui.asking import LiveDialog
from dragoman.tui.canvas import Canvas
from dragoman.tui.composer import Composer
from dragoman.tui.keys import Key, KeyReader, Paste
from virtual_time import run_in_virtual_time

KEYS = "ynr"


class Desk:
    """A dialog, and the prompt beside it."""

    def __init__(self) -> None:
        self.prompt = Composer()
        self.canvas = SimpleNamespace(request=lambda: None, commit=lambda lines: None, columns=80, is_behind=False)
        self.dialog = LiveDialog(
            cast("Canvas", self.canvas),
            edit=self._edit,
            stop=lambda: None,
            write=self._write,
            has_draft=lambda: not self.prompt.is_empty,
            on_asked=lambda: None,
        )

    async def _edit(self, text: str, name: str) -> str | None:
        return None

    def _write(self, event: Key | Paste) -> None:
        if isinstance(event, Paste):
            self.prompt.paste(event.text)
        else:
            self.prompt.press("ctrl-j" if event.name == "enter" else event.name, event.text)

    def press(self, data: bytes) -> None:
        for event in KeyReader().feed(data):
            self.dialog.press(event)


async def pause() -> None:
    await asyncio.sleep(2 * QUIET_S)


def test_a_reason_typed_at_once_is_whole() -> None:
    async def refuse() -> tuple[str, str | None]:
        desk = Desk()

        async def ask() -> tuple[str, str | None]:
            return await desk.dialog.ask_key("Run it?", KEYS), await desk.dialog.ask_line("Why not?", at_once=True)

        asking = asyncio.create_task(ask())
        await pause()
        desk.press(b"r\r")
        for key in (b"u", b"se "):  # before the line is there
            desk.press(key)
        await asyncio.sleep(0)
        desk.press(b"ls")
        desk.press(b"\r")
        return await asking

    assert run_in_virtual_time(refuse()) == ("r", "use ls")


def test_what_is_typed_behind_an_answer_is_in_the_prompt_and_answers_no_other_question() -> None:
    async def allow() -> str:
        desk = Desk()
        asking = asyncio.create_task(desk.dialog.ask_key("Run it?", KEYS))
        await pause()
        desk.press(b"y\r")
        desk.press(b"yes")
        assert await asking == "y"
        await asyncio.sleep(0)
        following = asyncio.create_task(desk.dialog.ask_key("And this?", KEYS))
        await asyncio.sleep(QUIET_S / 2)
        desk.press(b"y")
        await pause()
        assert not following.done()
        following.cancel()
        return desk.prompt.text

    assert run_in_virtual_time(allow()) == "yesy"


def test_a_line_that_is_asked_for_in_the_middle_of_a_sentence_does_not_take_its_end() -> None:
    async def answer() -> tuple[str | None, str]:
        desk = Desk()
        asking = asyncio.create_task(desk.dialog.ask_line("Which colour?"))
        await asyncio.sleep(0)
        for key in (b"t", b"w", b"o", b"1", b"\r"):
            await asyncio.sleep(0.2)
            desk.press(key)
        assert not asking.done()
        await pause()
        desk.press(b"blue\r")
        return await asking, desk.prompt.text

    assert run_in_virtual_time(answer()) == ("blue", "two1\n")


def test_a_line_that_is_given_up_with_its_run_is_not_lost() -> None:
    async def give_up() -> str:
        desk = Desk()
        asking = asyncio.create_task(desk.dialog.ask_line("Which colour?"))
        await pause()
        desk.press(b"blue, but")
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return desk.prompt.text

    assert run_in_virtual_time(give_up()) == "blue, but"


def test_a_question_that_is_not_on_the_screen_yet_takes_no_answer() -> None:
    async def ask() -> str:
        desk = Desk()
        desk.canvas.is_behind = True
        asking = asyncio.create_task(desk.dialog.ask_key("Run it?", KEYS))
        await pause()
        desk.press(b"y\r")
        await pause()
        assert not asking.done()
        desk.canvas.is_behind = False
        await pause()
        desk.press(b"n")
        await pause()
        return f"{await asking} {desk.prompt.text!r}"

    assert run_in_virtual_time(ask()) == "n 'y\\n'"


def test_keys_for_something_else_put_the_question_off() -> None:
    async def ask() -> bool:
        desk = Desk()
        asking = asyncio.create_task(desk.dialog.ask_key("Run it?", KEYS))
        await pause()
        desk.dialog.put_off()  # a list was closed
        desk.press(b"y")
        await pause()
        is_answered = asking.done()
        asking.cancel()
        return is_answered

    assert not run_in_virtual_time(ask())
