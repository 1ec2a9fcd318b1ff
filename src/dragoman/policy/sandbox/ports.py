"""Ports of the session's network that the user has opened to their own programs, as a browser that is to show what a server inside serves.

We listen outside, on an address of the session's own, and for each connection the holder gives us a socket that was made inside: what we
connect with it ends inside. Nothing inside ever gets a socket that was made outside.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any

from dragoman.policy.sandbox.carrying import Streams, pump
from dragoman.policy.sandbox.launcher.namespaces import GATE_ADDRESS
from dragoman.policy.sandbox.launching import Holder

MAX_CONNECTIONS = 128
"""At a time, over all ports. A browser opens six for each page, and some stay open."""
_UNDER_WAY_BYTES = 64 * 1024
_CONNECT_S = 10.0
_ENDING_S = 10.0
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
_LISTENING = "0A"
_GATE = f"{int.from_bytes(socket.inet_aton(GATE_ADDRESS), sys.byteorder):08X}:"
"""The kernel writes an address as a number of the machine's own byte order."""
_INSIDE = (("inet", "127.0.0.1"), ("inet6", "::1"))


class Ports:
    """All of a session. May be used from any thread; it works in a thread of its own, because a browser does not wait for a turn."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        self._urls: dict[int, str] = {}
        self._listeners: dict[int, socket.socket] = {}
        self._carrying: dict[asyncio.Task[None], int] = {}
        """Connections, and for which port each is."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def opened(self) -> dict[int, str]:
        """Port inside → URL outside."""
        return dict(self._urls)

    async def open(self, port: int) -> str:
        """The URL, the same when asked again. Raises OSError."""
        if not 0 < port < 65536:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return await self._do(self._open(port))

    async def close_one(self, port: int) -> None:
        if port in self._urls:
            await self._do(self._close(port))

    def close(self) -> None:
        """All of them, with what is under way."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(_ENDING_S)

    def find_listening(self) -> list[int]:
        """On which something listens inside. Blocks for a moment."""
        try:
            visited = self._holder.visit()
        except OSError:  # nothing runs there
            return []
        found: set[int] = set()
        for name, descriptor in visited.items():
            with os.fdopen(descriptor, "rb") as file:
                if name.startswith("tcp"):
                    found.update(read_listening(file.read().decode("ascii", "replace")))
        return sorted(found)

    # --- in the thread

    async def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            loop = self._running_loop()
        except BaseException:
            work.close()
            raise
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None:
                is_ready = threading.Event()
                self._thread = threading.Thread(target=lambda: asyncio.run(self._work(is_ready)), name="dragoman-ports", daemon=True)
                self._thread.start()
                is_ready.wait()
            assert self._loop is not None
            return self._loop

    async def _work(self, is_ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        is_ready.set()
        await self._stop.wait()
        for port in list(self._urls):
            await self._close(port)

    async def _open(self, port: int) -> str:
        if port not in self._urls:
            listener = self._listen(port)
            self._urls[port] = f"http://{self._address}:{listener.getsockname()[1]}"
            self._listeners[port] = listener
            asyncio.get_running_loop().add_reader(listener, self._accept, port, listener)
        return self._urls[port]

    def _listen(self, port: int) -> socket.socket:
        """At the same port, or at any where that one is taken or not for us."""
        try:
            listener = socket.create_server((self._address, port))
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            listener = socket.create_server((self._address, 0))
        listener.setblocking(False)
        return listener

    async def _close(self, port: int) -> None:
        self._urls.pop(port, None)
        if (listener := self._listeners.pop(port, None)) is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        tasks = [task for task, served in self._carrying.items() if served == port]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _accept(self, port: int, listener: socket.socket) -> None:
        try:
            outside, _ = listener.accept()
        except OSError:  # whoever came is gone
            return
        if len(self._carrying) >= MAX_CONNECTIONS:
            outside.close()
            return
        outside.setblocking(False)
        task = asyncio.ensure_future(self._carry(port, outside))
        self._carrying[task] = port

        def finish(task: asyncio.Task[None]) -> None:
            self._carrying.pop(task, None)
            outside.close()

        task.add_done_callback(finish)

    async def _carry(self, port: int, client: socket.socket) -> None:
        try:
            inside = await self._connect(port)
        except (OSError, TimeoutError):  # nobody listens inside
            return
        outside = await asyncio.open_connection(sock=client, limit=_UNDER_WAY_BYTES)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(pump(outside[0], inside[1]))
                pumps.create_task(pump(inside[0], outside[1]))
        except* OSError:  # somebody went away
            pass
        finally:
            for _, writer in (inside, outside):
                writer.transport.abort()
            await asyncio.sleep(0)  # then they are closed

    async def _connect(self, port: int) -> Streams:
        """With what listens there inside. Raises OSError."""
        made = _adopt(await asyncio.to_thread(self._holder.visit))
        fault: OSError | TimeoutError = OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        try:
            while made:
                inside, address = made[0]
                inside.setblocking(False)
                try:
                    async with asyncio.timeout(_CONNECT_S):
                        await asyncio.get_running_loop().sock_connect(inside, (address, port))
                except (OSError, TimeoutError) as error:
                    fault = error
                    made.pop(0)[0].close()
                    continue
                del made[0]  # from now on it is the streams'
                return await asyncio.open_connection(sock=inside, limit=_UNDER_WAY_BYTES)
            raise fault
        finally:
            for each, _ in made:
                each.close()


def read_listening(table: str) -> Iterator[int]:
    """The ports in the kernel's list of sockets (`/proc/net/tcp`) that somebody listens on. A gate is nobody's server."""
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) > 3 and words[3] == _LISTENING and not words[1].startswith(_GATE):
            with suppress(ValueError):
                yield int(words[1].rpartition(":")[2], 16)


def _adopt(visited: dict[str, int]) -> list[tuple[socket.socket, str]]:
    """The sockets made inside, each with the address to connect to. The lists are closed."""
    for name, descriptor in visited.items():
        if name not in dict(_INSIDE):
            os.close(descriptor)
    return [(socket.socket(fileno=visited[name]), address) for name, address in _INSIDE if name in visited]
