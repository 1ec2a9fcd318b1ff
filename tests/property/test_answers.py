"""Whatever is typed at a question, in whatever pieces and pauses: only a choice and Enter, or a key alone, answers it, and everything else
is in the prompt afterwards, in order. In both conversations, with a clock that is moved by waiting."""

from __future__ import annotations

import asyncio
import os
import pty
import select
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.app.answers import QUIET_S
from dragoman.plain.keys import Keyboard
from dragoman.tui.asking import LiveDialog
from dragoman.tui.canvas import Canvas
from dragoman.tui.keys import Key, KeyReader, Paste
from virtual_time import run_in_virtual_time

KEYS = ("y", "n", "a", "?")
LONG_S = 4 * QUIET_S
"""A pause, whatever else is waited for."""
PIECES = st.sampled_from(
    ["y", "n", "Y", "a", "?", "x", " ", "é", "\r", "y\r", "n\r", "yy", "yes", "why not", "/retry", "yes please\r", "是"]
)
GAPS_S = st.sampled_from([0.06, 0.12, 0.2, 0.35, 0.5, LONG_S])
"""Between the keys of a word, fast and slow; and pauses."""
Typed = Sequence[tuple[float, str]]
TYPED = st.lists(st.tuples(GAPS_S, PIECES), max_size=12)


def expected(typed: Typed) -> tuple[str, str]:
    """The answer, empty if there is none, and what is left for the prompt."""
    prompt, held, is_ready = "", "", False
    for number, (gap_s, piece) in enumerate(typed):
        rest = "".join(later for _, later in typed[number + 1 :])
        if gap_s == LONG_S:
            if held:
                return held.lower(), prompt + piece + rest
            is_ready = True
        if held and piece == "\r":
            return held.lower(), prompt + rest
        if held:
            prompt, held, is_ready = prompt + held + piece, "", False
        elif is_ready and piece.lower() in KEYS:
            held = piece
        elif is_ready and piece[0].lower() in KEYS and piece[1:] == "\r":
            return piece[0].lower(), prompt + rest
        else:
            prompt, is_ready = prompt + piece, False
    return held.lower(), prompt


async def answer_live(typed: Typed) -> tuple[str, str]:
    written: list[str] = []

    def write(event: Key | Paste) -> None:
        written.append("\r" if isinstance(event, Key) and event.name == "enter" else event.text)

    async def no_edit(text: str, name: str) -> str | None:
        return None

    canvas = cast("Canvas", SimpleNamespace(request=lambda: None, commit=lambda lines: None, columns=80, is_behind=False))
    dialog = LiveDialog(
        canvas, edit=no_edit, stop=lambda: None, write=write, has_draft=lambda: bool("".join(written).strip()), on_asked=lambda: None
    )
    asking = asyncio.create_task(dialog.ask_key("Run it?", KEYS))
    await asyncio.sleep(0)
    reader = KeyReader()
    for gap_s, piece in typed:
        await asyncio.sleep(gap_s)
        for event in reader.feed(piece.encode()):
            dialog.press(event) if dialog.is_open else write(event)
    await asyncio.sleep(LONG_S)
    asking.cancel()
    [answer] = await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(0)
    return answer if isinstance(answer, str) else "", "".join(written)


async def answer_plain(typed: Typed) -> tuple[str, str]:
    master, slave = pty.openpty()
    keyboard = Keyboard(slave)
    keyboard.open(asyncio.get_running_loop())

    async def ask() -> str:
        again = False
        while not (key := await keyboard.read_answer(KEYS, lambda: None, again=again)):
            again = True
        return key

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    try:
        for gap_s, piece in typed:
            await asyncio.sleep(gap_s)
            os.write(master, piece.encode())
            assert select.select([slave], (), (), 60)[0]
        await asyncio.sleep(LONG_S)
        asking.cancel()
        [answer] = await asyncio.gather(asking, return_exceptions=True)
    finally:
        keyboard.close()
        os.close(master)
        os.close(slave)
    return answer if isinstance(answer, str) else "", keyboard.typed.replace("\n", "\r")


SENTENCES = [
    [(LONG_S, char) if not number else (0.35, char) for number, char in enumerate(sentence)]
    for sentence in ("why not", "/retry", "yes please", "no, do it otherwise", "yy")
]


@settings(max_examples=150, deadline=None)
@given(TYPED)
@example(SENTENCES[0])
@example(SENTENCES[1])
@example(SENTENCES[2])
@example(SENTENCES[3])
@example(SENTENCES[4])
@example([(LONG_S, "y")])
@example([(0.2, "y"), (0.2, "\r")])
@example([(LONG_S, "yy")])
def test_only_a_choice_and_enter_or_a_lone_key_answers_in_the_live_conversation(typed: Typed) -> None:
    assert run_in_virtual_time(answer_live(typed)) == expected(typed)


@settings(max_examples=150, deadline=None)
@given(TYPED)
@example(SENTENCES[0])
@example(SENTENCES[1])
@example(SENTENCES[2])
@example(SENTENCES[3])
@example(SENTENCES[4])
@example([(LONG_S, "y")])
@example([(0.2, "y"), (0.2, "\r")])
@example([(LONG_S, "yy")])
def test_only_a_choice_and_enter_or_a_lone_key_answers_in_the_plain_conversation(typed: Typed) -> None:
    assert run_in_virtual_time(answer_plain(typed)) == expected(typed)
