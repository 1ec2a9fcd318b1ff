"""Signals in a conversation: Ctrl-C stops the run, not the program; the terminal is restored before the program exits."""

from __future__ import annotations

import asyncio
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from dragoman.app.signals import Interrupted, Interrupts
from dragoman.plain.keys import Keyboard

EXIT_INTERRUPTED, EXIT_QUIT = 130, 131
PATIENCE_S = 0.05
"""How long a signal may stay unhandled before it is sent again."""


class Signals(Interrupts):
    """Ctrl-C cancels the run, and the conversation goes on; a second Ctrl-C during that exits at once. At the prompt it raises
    Interrupted.
    """

    def __init__(self, keyboard: Keyboard) -> None:
        super().__init__(lambda code: keyboard.close())
        self._keyboard = keyboard
        self._is_left_to_editor = False
        self._repeat_due = False
        """A Ctrl-C was sent again: of the two, only one counts."""
        self._arrivals: socket.socket | None = None
        self._arrivals_writer: socket.socket | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        handlers: tuple[tuple[str, Callable[[int, FrameType | None], Any]], ...] = (
            ("SIGQUIT", self._on_quit),
            ("SIGCONT", self._on_continue),
        )
        for name, handler in handlers:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, handler)
        if not hasattr(signal, "pthread_kill"):  # Windows: the loop there has a descriptor of its own for signals
            return self
        self._arrivals, self._arrivals_writer = socket.socketpair()
        for end in (self._arrivals, self._arrivals_writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._arrivals_writer.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._resend_missed, args=(threading.get_ident(), self._arrivals), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        if self._arrivals_writer is not None:
            signal.set_wakeup_fd(-1)
            self._arrivals_writer.close()

    def attach(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], None]) -> None:
        super().attach(loop, cancel)
        if self._arrivals is not None:
            loop.add_reader(self._arrivals, self._read_arrived)  # so that the loop wakes up and Python runs the handler

    def detach(self) -> None:
        if self._loop is not None and self._arrivals is not None:
            self._loop.remove_reader(self._arrivals)
        super().detach()

    @contextmanager
    def leave_to_editor(self) -> Generator[None]:
        """Ignore Ctrl-C while the editor has the terminal: it is meant for the editor."""
        self._is_left_to_editor = True
        try:
            yield
        finally:
            self._is_left_to_editor = False

    # --- handlers

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        count = self._read_arrived().count(number)
        if number != signal.SIGINT:
            return super()._on_signal(number, frame)
        is_repeat, self._repeat_due = self._repeat_due and count < 2, False  # if both arrived together, this call handles both
        if self._is_left_to_editor or is_repeat:
            return
        if self._loop is None or self._cancel is None:
            raise Interrupted(EXIT_INTERRUPTED)
        if self.code:
            self._exit()
        self.code = EXIT_INTERRUPTED
        self._loop.call_soon_threadsafe(self._cancel)

    def _on_quit(self, number: int, frame: FrameType | None) -> None:
        self.code = EXIT_QUIT
        self._exit()

    def _on_continue(self, number: int, frame: FrameType | None) -> None:
        self._read_arrived()
        self._keyboard.resume()

    # --- missed signals

    def _read_arrived(self) -> bytes:
        """Read the numbers of the signals that arrived, which marks them as handled."""
        try:
            return self._arrivals.recv(1024) if self._arrivals is not None else b""
        except BlockingIOError:
            return b""

    def _resend_missed(self, main: int, arrivals: socket.socket) -> None:
        """A signal that arrives just before the line editor waits for a key would be handled only with that key: send it again."""
        poll = select.poll()
        poll.register(arrivals, select.POLLIN)
        with arrivals:
            while True:
                poll.poll()
                time.sleep(PATIENCE_S)
                try:
                    numbers = arrivals.recv(1024, socket.MSG_PEEK)
                except BlockingIOError:
                    continue  # it was handled
                if not numbers:
                    return  # the conversation is over
                self._repeat_due = self._repeat_due or numbers[-1] == signal.SIGINT
                signal.pthread_kill(main, numbers[-1])
