"""Signals in a conversation: Ctrl-C stops what is going on, not the program; whatever ends the program gives the terminal back first."""

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
from dragoman.cli.keys import Keyboard

EXIT_INTERRUPTED, EXIT_QUIT = 130, 131
PATIENCE_S = 0.05
"""How long a signal may stay unheeded before it is sent again."""


class Signals(Interrupts):
    """Ctrl-C cancels the run, and the conversation goes on; a second while that is being done leaves at once. At the prompt it raises
    Interrupted.
    """

    def __init__(self, keyboard: Keyboard) -> None:
        super().__init__(lambda code: keyboard.close())
        self._keyboard = keyboard
        self._left = False
        self._echo_due = False
        """A Ctrl-C was sent again: of the two, one counts."""
        self._come: socket.socket | None = None
        self._coming: socket.socket | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        handlers: tuple[tuple[str, Callable[[int, FrameType | None], Any]], ...] = (("SIGQUIT", self._quit), ("SIGCONT", self._go_on))
        for name, handler in handlers:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, handler)
        self._come, self._coming = socket.socketpair()
        for end in (self._come, self._coming):
            end.setblocking(False)
        signal.set_wakeup_fd(self._coming.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._insist, args=(threading.get_ident(), self._come), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        signal.set_wakeup_fd(-1)
        if self._coming is not None:
            self._coming.close()

    def attach(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], None]) -> None:
        super().attach(loop, cancel)
        if self._come is not None:
            loop.add_reader(self._come, self._heard)  # so that the loop wakes, and Python heeds the signal

    def detach(self) -> None:
        if self._loop is not None and self._come is not None:
            self._loop.remove_reader(self._come)
        super().detach()

    @contextmanager
    def left_to_others(self) -> Generator[None]:
        """While another program has the terminal, Ctrl-C is meant for it."""
        self._left = True
        try:
            yield
        finally:
            self._left = False

    # --- what comes

    def _received(self, number: int, frame: FrameType | None) -> None:
        came = self._heard().count(number)
        if number != signal.SIGINT:
            return super()._received(number, frame)
        is_echo, self._echo_due = self._echo_due and came < 2, False  # where both came together, this is for both
        if self._left or is_echo:
            return
        if self._loop is None or self._cancel is None:
            raise Interrupted(EXIT_INTERRUPTED)
        if self.code:
            self._leave()
        self.code = EXIT_INTERRUPTED
        self._loop.call_soon_threadsafe(self._cancel)

    def _quit(self, number: int, frame: FrameType | None) -> None:
        self.code = EXIT_QUIT
        self._leave()

    def _go_on(self, number: int, frame: FrameType | None) -> None:
        self._heard()
        self._keyboard.resume()

    # --- what would be missed

    def _heard(self) -> bytes:
        """The numbers of the signals that came, once: from now on they count as heeded."""
        try:
            return self._come.recv(1024) if self._come is not None else b""
        except BlockingIOError:
            return b""

    def _insist(self, main: int, come: socket.socket) -> None:
        """A signal that comes just before the line editor begins to wait for a key would be heeded only with that key: send it again."""
        poll = select.poll()
        poll.register(come, select.POLLIN)
        with come:
            while True:
                poll.poll()
                time.sleep(PATIENCE_S)
                try:
                    numbers = come.recv(1024, socket.MSG_PEEK)
                except BlockingIOError:
                    continue  # it was heeded
                if not numbers:
                    return  # the conversation is over
                self._echo_due = self._echo_due or numbers[-1] == signal.SIGINT
                signal.pthread_kill(main, numbers[-1])
