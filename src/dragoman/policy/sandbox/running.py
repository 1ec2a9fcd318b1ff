"""One command as we follow it, over a socket of its own."""

from __future__ import annotations

import asyncio
import os
import socket

MOST_BYTES = 4096
"""Of a message."""
ENDING_S = 2.0
"""How long we wait to hear that everything has ended."""


class Running:
    """A command that was started, and everything it starts. Belongs to one event loop."""

    def __init__(self, control: socket.socket) -> None:
        self.pid = 0
        """In its own process namespace, where it has one."""
        self.returncode: int | None = None
        """As subprocess has it: negative if a signal ended it. None while it runs."""
        self.gate_fd: int | None = None
        """A listener inside its network namespace, where one was ordered. Whoever takes it closes it."""
        self.terminal_fd: int | None = None
        """The terminal's own end, where one was ordered. Whoever takes it closes it."""
        self.was_heard = False
        """Whether anybody took the order. If not and it has ended, nothing of it has run."""
        self.fault: OSError | None = None
        """Why it could not be started."""
        self._control = control
        self._has_started = asyncio.Event()
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        control.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(control.fileno(), self._read)

    async def wait_started(self) -> None:
        """Wait until it has started, or has failed to: then there is a `fault`."""
        await self._has_started.wait()

    async def wait(self) -> int:
        """Wait until the command itself has ended; what it started may still run."""
        await self._exited.wait()
        assert self.returncode is not None
        return self.returncode

    async def end(self, grace_s: float) -> bool:
        """End whatever of it is alive: SIGTERM, then SIGKILL after `grace_s`. Returns whether it is known that nothing is left."""
        if self._gone.is_set():
            self.close()
            return True
        try:
            self._control.send(b"end %f" % grace_s)
        except OSError:  # it has ended by itself
            pass
        try:
            async with asyncio.timeout(grace_s + ENDING_S):
                await self._gone.wait()
        except TimeoutError:
            pass
        finally:
            self.close()
        return self._gone.is_set()

    def close(self) -> None:
        """Whatever of it is alive is killed, without our waiting for it."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control.fileno())
            self._control.close()
        for descriptor in (self.gate_fd, self.terminal_fd):
            if descriptor is not None:
                os.close(descriptor)
        self.gate_fd = self.terminal_fd = None

    def take_gate(self) -> int | None:
        """The gate's descriptor, which from now on is the caller's to close."""
        taken, self.gate_fd = self.gate_fd, None
        return taken

    def take_terminal(self) -> int | None:
        """The terminal's descriptor, which from now on is the caller's to close."""
        taken, self.terminal_fd = self.terminal_fd, None
        return taken

    def _read(self) -> None:
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(self._control, MOST_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:  # ECONNRESET: it ended with something of ours unread
                message, descriptors = b"", list[int]()
            if not message:
                self._finish()
                return
            self._hear(message, descriptors)

    def _hear(self, message: bytes, descriptors: list[int]) -> None:
        self.was_heard = True
        word, _, rest = message.partition(b" ")
        match word:
            case b"gate":
                self.gate_fd = descriptors[0] if descriptors else None
            case b"terminal":
                self.terminal_fd = descriptors[0] if descriptors else None
            case b"started":
                self.pid = int(rest)
                self._has_started.set()
            case b"exited":
                self.returncode = int(rest)
                self._exited.set()
            case b"failed":
                number, _, text = rest.decode("utf-8", "replace").partition(" ")
                self.fault = OSError(int(number), text)
                self._has_started.set()
            case _:
                pass

    def _finish(self) -> None:
        """Note that nothing of it is alive any more, or that its supervisor was killed: then the launcher ends the rest."""
        self._loop.remove_reader(self._control.fileno())
        if not self._has_started.is_set():
            self.fault = OSError(32, "the launcher of commands ended")
        if self.returncode is None:
            self.returncode = -9
        self._has_started.set()
        self._exited.set()
        self._gone.set()
