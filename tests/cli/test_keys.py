"""The keyboard: one key is one key, and the terminal is given back as it was."""

from __future__ import annotations

import asyncio
import os
import pty
import termios
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from dragoman.plain.keys import BURST_S, Keyboard


class Typist:
    """The other end of the keyboard."""

    def __init__(self, keyboard: Keyboard, master: int, slave: int) -> None:
        self.keyboard = keyboard
        self._master = master
        self._slave = slave

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    @property
    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def opened() -> Any:
            self.keyboard.open(asyncio.get_running_loop())
            try:
                async with asyncio.timeout(60):
                    return await work()
            finally:
                self.keyboard.close()

        before = self.modes
        try:
            return asyncio.run(opened())
        finally:
            assert self.modes == before


@pytest.fixture
def typist() -> Iterator[Typist]:
    master, slave = pty.openpty()
    yield Typist(Keyboard(slave), master, slave)
    os.close(slave)
    os.close(master)


KEYS = "yn?"


@pytest.mark.parametrize(("keys", "answer"), [(b"y", "y"), (b"N", "n"), (b"y\r", "y"), (b"\x1b", "\x1b")])
def test_a_key_answers_once_the_question_has_been_there_for_a_moment(keys: bytes, answer: str, typist: Typist) -> None:
    async def press() -> str:
        return await typist.keyboard.read_answer(KEYS, lambda: typist.type(keys))

    assert typist.run(press) == answer
    assert typist.keyboard.typed == ""


@pytest.mark.parametrize("keys", [b"yes", b"yy", b"x", b"y\ny\n", b"\x1b[200~y\n\x1b[201~", "是".encode()])
def test_anything_else_is_kept_for_the_prompt(keys: bytes, typist: Typist) -> None:
    async def press() -> str:
        return await typist.keyboard.read_answer(KEYS, lambda: typist.type(keys))

    assert typist.run(press) == ""
    assert typist.keyboard.typed == keys.decode().replace("\x1b[200~", "").replace("\x1b[201~", "")


def test_a_word_that_comes_key_by_key_is_no_answer(typist: Typist) -> None:
    async def press() -> str:
        ready = asyncio.Event()
        pressing = asyncio.create_task(typist.keyboard.read_answer(KEYS, ready.set))
        await ready.wait()
        for key in b"yes":
            typist.type(bytes([key]))
            await asyncio.sleep(2 * BURST_S)
        return await pressing

    assert typist.run(press) == ""
    assert typist.keyboard.typed == "yes"


def test_what_came_before_the_question_is_kept_and_answers_nothing(typist: Typist) -> None:
    async def press() -> str:
        typist.type(b"y")
        await asyncio.sleep(BURST_S / 2)  # read, and not yet taken for a whole
        pressing = asyncio.create_task(typist.keyboard.read_answer(KEYS, lambda: None))
        await asyncio.sleep(0)
        typist.type(b"y\r")  # not even read
        assert await pressing == ""
        return await typist.keyboard.read_answer(KEYS, lambda: typist.type(b"n"))

    assert typist.run(press) == "n"
    assert typist.keyboard.typed == "yy\n"


def test_a_pause_is_waited_for_before_a_line_is_asked_for(typist: Typist) -> None:
    async def wait() -> list[bool]:
        pausing = asyncio.create_task(typist.keyboard.read_pause())
        await asyncio.sleep(0)
        typist.type(b"and ")
        return [await pausing, await typist.keyboard.read_pause()]

    assert typist.run(wait) == [False, True]
    assert typist.keyboard.typed == "and "


def test_what_was_erased_is_left_out(typist: Typist) -> None:
    typist.keyboard.typed = "why nit\x7f\x7fot\n\x7f\x7f\x7f\x7f"
    assert typist.keyboard.take_typed() == "why "
    assert typist.keyboard.take_typed() == ""


def test_keys_nobody_waits_for_are_kept_and_escape_is_told(typist: Typist) -> None:
    escaped = asyncio.Event()
    typist.keyboard.on_escape = escaped.set

    async def work() -> None:
        typist.type("für ".encode())
        await asyncio.sleep(BURST_S * 3)
        typist.type(b"later\x1b[A")  # an arrow key types nothing
        await asyncio.sleep(BURST_S * 3)
        assert not escaped.is_set()
        typist.type(b"\x1b")
        await escaped.wait()

    typist.run(work)
    assert typist.keyboard.typed == "für later"


def test_a_line_is_edited_by_the_terminal(typist: Typist) -> None:
    async def work() -> list[str | None]:
        lines: list[str | None] = []
        for keys in (b"tabz\x7fs\n", b"\n", b"\x04"):
            with typist.keyboard.lend():
                assert typist.modes[3] & termios.ECHO
                typist.type(keys)
                lines.append(await typist.keyboard.read_line())
            assert not typist.modes[3] & termios.ECHO
        return lines

    assert typist.run(work) == ["tabs", "", None]


def test_a_line_that_is_cancelled_gives_the_keys_back(typist: Typist) -> None:
    async def work() -> str:
        with pytest.raises(TimeoutError), typist.keyboard.lend():
            async with asyncio.timeout(0.05):
                await typist.keyboard.read_line()
        return await typist.keyboard.read_answer(KEYS, lambda: typist.type(b"y"))

    assert typist.run(work) == "y"


def test_an_error_leaves_the_terminal_as_it_was(typist: Typist) -> None:
    async def work() -> None:
        assert not typist.modes[3] & termios.ICANON
        raise LookupError

    with pytest.raises(LookupError):
        typist.run(work)


def test_closing_twice_and_without_a_terminal_is_no_fault(typist: Typist) -> None:
    keyboard = Keyboard(typist._slave)
    keyboard.close()

    async def work() -> None:
        keyboard.open(asyncio.get_running_loop())
        keyboard.close()
        keyboard.close()
        keyboard.resume()  # a signal that comes late changes nothing
        assert typist.modes[3] & termios.ECHO

    asyncio.run(work())


def test_a_terminal_that_is_gone_is_told() -> None:
    master, slave = pty.openpty()
    keyboard = Keyboard(slave)

    async def work() -> None:
        gone = asyncio.Event()
        keyboard.on_gone = gone.set
        keyboard.open(asyncio.get_running_loop())
        os.close(master)
        async with asyncio.timeout(60):
            await gone.wait()
        keyboard.close()

    asyncio.run(work())
    os.close(slave)
