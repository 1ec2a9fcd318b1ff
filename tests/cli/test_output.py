"""Writing: in few pieces, to slow readers, to none."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest

from dragoman.app.output import FLUSH_EVERY_S, Output


class Pipe:
    """Standard output as a pipe that the test reads when it likes."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.stream = os.fdopen(self.writer, "w", encoding="utf-8")

    def read(self) -> str:
        pieces: list[bytes] = []
        while True:
            try:
                piece = os.read(self.reader, 1 << 20)
            except BlockingIOError:
                break
            if not piece:
                break
            pieces.append(piece)
        return b"".join(pieces).decode()

    def output(self) -> Output:
        with redirect_stdout(self.stream):
            return Output()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.stream.close()
    try:
        os.close(made.reader)
    except OSError:
        pass


def test_the_first_piece_is_written_at_once_and_the_rest_together(pipe: Pipe) -> None:
    async def write() -> None:
        out = pipe.output()
        out.attach(asyncio.get_running_loop())
        out.write("first")
        assert pipe.read() == "first"
        for _ in range(1000):
            out.write("x")
        assert pipe.read() == ""
        await asyncio.sleep(2 * FLUSH_EVERY_S)
        assert pipe.read() == "x" * 1000
        out.write("last")
        out.detach()
        out.finish()
        assert pipe.read() == "last"

    asyncio.run(write())


def test_a_slow_reader_holds_nothing_up_and_gets_everything(pipe: Pipe) -> None:
    text = "".join(f"{number} " for number in range(100_000))

    async def write() -> str:
        out = pipe.output()
        out.attach(asyncio.get_running_loop())
        out.write(text)  # far more than a pipe holds: it must not block
        seen = ""
        while len(seen) < len(text):
            await asyncio.sleep(0)
            seen += pipe.read()
        out.detach()
        return seen

    assert asyncio.run(write()) == text


def test_a_reader_that_has_gone_is_noticed_once(pipe: Pipe) -> None:
    async def write() -> None:
        told: list[bool] = []
        out = pipe.output()
        out.on_gone = lambda: told.append(True)
        out.attach(asyncio.get_running_loop())
        os.close(pipe.reader)
        out.write("x")
        out.write("y")
        await asyncio.sleep(2 * FLUSH_EVERY_S)
        out.detach()
        out.finish()
        assert out.gone
        assert out.problem is None
        assert told == [True]

    asyncio.run(write())


def test_abandoning_writes_what_is_taken_and_waits_for_nobody(pipe: Pipe) -> None:
    out = pipe.output()
    out.write("x" * 1_000_000)
    out.abandon()
    assert len(pipe.read()) >= 4096


def test_a_slow_terminal_is_spared_the_rest_and_a_pipe_gets_it_all(pipe: Pipe) -> None:
    text = "x" * 1_000_000
    out = pipe.output()
    out.write(text)
    assert not out.drop_queued()
    assert len(out._backlog) == len(text)
    out._backlog.clear()
    master, slave = pty.openpty()
    try:
        with open(slave, "w", closefd=False) as stdout, redirect_stdout(stdout):
            shown = Output()
        shown.write("begun")
        assert not shown.drop_queued(), "the terminal takes it"
        shown.finish()
        shown.write(text)
        assert shown.drop_queued()
        shown.write("cancelled")
        shown.finish()
        seen = b""
        while not seen.endswith(b"cancelled"):
            seen += os.read(master, 1 << 16)
        assert seen.removeprefix(b"begun") == b"\r\ncancelled"
    finally:
        os.close(slave)
        os.close(master)


def test_without_standard_output_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    out = Output()
    out.write("x")
    out.finish()
    assert out.gone
