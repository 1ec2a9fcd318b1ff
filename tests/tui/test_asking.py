"""Questions in the live region: which keys answer them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from dragoman.tui.asking import LiveDialog
from dragoman.tui.canvas import Canvas
from dragoman.tui.keys import KeyReader


async def _no_edit(text: str, name: str) -> str | None:
    return None


def a_dialog() -> LiveDialog:
    canvas = cast("Canvas", SimpleNamespace(request=lambda: None, commit=lambda lines: None, columns=80))
    return LiveDialog(canvas, edit=_no_edit, stop=lambda: None, is_writing=lambda: False, on_asked=lambda: None)


def press(dialog: LiveDialog, data: bytes) -> None:
    for event in KeyReader().feed(data):
        dialog.press(event)


def test_a_reason_typed_at_once_is_whole() -> None:
    async def refuse() -> tuple[str, str | None]:
        dialog = a_dialog()

        async def ask() -> tuple[str, str | None]:
            return await dialog.ask_key("Run it?"), await dialog.ask_line("Why not?")

        asking = asyncio.create_task(ask())
        await asyncio.sleep(0)
        press(dialog, b"ruse ")
        await asyncio.sleep(0)
        press(dialog, b"ls")
        press(dialog, b"\r")
        return await asking

    assert asyncio.run(refuse()) == ("r", "use ls")


def test_what_is_typed_behind_an_answer_answers_no_other_question() -> None:
    async def allow() -> str:
        dialog = a_dialog()
        asking = asyncio.create_task(dialog.ask_key("Run it?"))
        await asyncio.sleep(0)
        press(dialog, b"yy")
        assert await asking == "y"
        for ask in (dialog.ask_key, dialog.ask_line):
            following = asyncio.create_task(ask("And this?"))
            await asyncio.sleep(0)
            assert not following.done()
            assert dialog.composer is None or dialog.composer.is_empty
            following.cancel()
        return "asked"

    assert asyncio.run(allow()) == "asked"
