"""The program of a stdio server: started in a session of its own, ended with everything it started, also when we are killed.

With a `commands.Launch` the launcher starts it and ends it with us; without one a watcher does (base/processes.py). It runs outside
the sandbox and gets a short list of our variables, beside those that its configuration names.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from dragoman.base.processes import COOKIE, Watcher, end_processes
from dragoman.mcp_client.contracts import StdioServer
from dragoman.mcp_client.errors import ServerNotStarted
from dragoman.values.commands import Launch, Launched
from dragoman.words import say

VARIABLES = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "COMSPEC", "WINDIR"),
)
"""What every server gets. Keys of models are not among them."""

STDERR_BYTES = 64 * 1024
CLOSING_S = 1.0
"""How long a server has to end by itself after its input was closed."""
GRACE_S = 0.3
_CHUNK = 256 * 1024


def environment_of(server: StdioServer, ours: Mapping[str, str]) -> dict[str, str]:
    return {**{name: ours[name] for name in VARIABLES if name in ours}, **server.env}


def _find_program(command: str, env: Mapping[str, str], directory: str) -> str:
    """What is named by a path is looked for from the folder that the server is started in, wherever we were started ourselves; so are
    folders of its PATH that are relative."""
    if os.path.dirname(command):
        found = shutil.which(os.path.join(directory, command))
    else:
        places = env.get("PATH", os.defpath).split(os.pathsep)
        found = shutil.which(command, path=os.pathsep.join(os.path.join(directory, place) for place in places if place))
    if found is None:
        raise ServerNotStarted(say("mcp.no_program", command=command))
    return os.path.abspath(found)


class StderrTail:
    """The end of what a server wrote to its standard error, never more than so many bytes."""

    def __init__(self, most_bytes: int = STDERR_BYTES) -> None:
        self._most = most_bytes
        self._pieces: deque[bytes] = deque()
        self._length = 0

    def add(self, piece: bytes) -> None:
        piece = piece[-self._most :]
        self._pieces.append(piece)
        self._length += len(piece)
        while self._length - len(self._pieces[0]) >= self._most:
            self._length -= len(self._pieces.popleft())

    @property
    def text(self) -> str:
        return b"".join(self._pieces)[-self._most :].decode("utf-8", "replace")


class ServerProcess:
    """One run of a server's program. Belongs to one event loop."""

    def __init__(self, server: StdioServer, launch: Launch | None = None) -> None:
        self._server = server
        self._launch = launch
        self.stderr = StderrTail()
        self.stdout = asyncio.StreamReader(limit=_CHUNK)
        self._held: _Held | None = None
        self._stdin: asyncio.StreamWriter | None = None
        self._reading_stderr: asyncio.Task[None] | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """0 where a launcher started it."""
        return self._held.pid if self._held is not None else 0

    @property
    def returncode(self) -> int | None:
        return self._held.returncode if self._held is not None else None

    async def start(self) -> None:
        """Raises ServerNotStarted."""
        env = environment_of(self._server, os.environ)
        directory = self._server.cwd or os.getcwd()
        argv = [_find_program(self._server.command, env, directory), *self._server.args]
        try:
            await self._start(argv, directory, env)
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument, a `=` in the name of a variable
            reason = getattr(error, "strerror", None) or str(error)
            raise ServerNotStarted(say("mcp.not_started", command=self._server.command, reason=reason)) from error

    async def write(self, line: bytes) -> None:
        """Waits while the server does not read. Raises OSError if it has closed its input."""
        if self._stdin is None or self._stdin.is_closing():
            raise BrokenPipeError
        self._stdin.write(line + b"\n")
        await self._stdin.drain()

    async def wait(self) -> int | None:
        return await self._held.wait() if self._held is not None else None

    async def end(self) -> None:
        """Close its input, wait a moment, and end whatever of it is alive. Goes on to its end if cancelled."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        if self._stdin is not None:
            self._stdin.close()
        if self._held is not None:
            await _wait_at_most(CLOSING_S, self._held.wait())
            await self._held.end()
            await _wait_at_most(CLOSING_S, self._held.wait())  # what was killed is collected by another thread: then its code is known
        if self._reading_stderr is not None:
            await asyncio.wait({self._reading_stderr}, timeout=GRACE_S)  # its last words may not be read yet
            self._reading_stderr.cancel()
        for transport in self._transports:
            transport.close()

    # --- starting

    async def _start(self, argv: list[str], directory: str, env: dict[str, str]) -> None:
        if os.name != "posix":
            await self._start_elsewhere(argv, directory, env)
            return
        ends = [os.pipe(), os.pipe(), os.pipe()]
        given = (ends[0][0], ends[1][1], ends[2][1])
        ours = [ends[0][1], ends[1][0], ends[2][0]]
        try:
            if self._launch is not None:
                self._held = _ByLauncher(await self._launch.start(argv, directory=directory, env=env, streams=given))
            else:
                self._held = _Watched(argv, directory, env, given)
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)
        await self._connect(*ours)

    async def _connect(self, stdin: int, stdout: int, stderr: int) -> None:
        loop = asyncio.get_running_loop()
        flow, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(stdin, "wb", buffering=0))
        self._stdin = asyncio.StreamWriter(flow, protocol, None, loop)
        errors = asyncio.StreamReader(limit=_CHUNK)
        self._transports.append(flow)
        for reader, descriptor in ((self.stdout, stdout), (errors, stderr)):
            made = await loop.connect_read_pipe(
                lambda reader=reader: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
            )
            self._transports.append(made[0])
        self._reading_stderr = asyncio.ensure_future(self._keep_stderr(errors))

    async def _start_elsewhere(self, argv: list[str], directory: str, env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*argv, cwd=directory, env=env, stdin=pipe, stdout=pipe, stderr=pipe, limit=_CHUNK)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._held = _ByAsyncio(process)
        self._stdin, self.stdout = process.stdin, process.stdout
        self._reading_stderr = asyncio.ensure_future(self._keep_stderr(process.stderr))

    async def _keep_stderr(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(_CHUNK):
            self.stderr.add(piece)


# --- who holds the process ----------------------------------------------------------------------------------------------------


class _Held(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int | None: ...

    async def end(self) -> None: ...


class _ByLauncher:
    pid = 0

    def __init__(self, launched: Launched) -> None:
        self._launched = launched

    @property
    def returncode(self) -> int | None:
        return self._launched.returncode

    async def wait(self) -> int | None:
        return await self._launched.wait()

    async def end(self) -> None:
        await self._launched.end(GRACE_S)


class _Watched:
    """A process of ours, and a watcher that ends it if we are killed."""

    def __init__(self, argv: list[str], directory: str, env: Mapping[str, str], streams: tuple[int, int, int]) -> None:
        self._cookie = os.urandom(16).hex()
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        watcher = Watcher(self._cookie)
        try:
            stdin, stdout, stderr = streams
            environment = {**env, COOKIE: f"{os.environ.get(COOKIE, '')} {self._cookie}".strip()}
            self._process = subprocess.Popen(
                argv, bufsize=0, stdin=stdin, stdout=stdout, stderr=stderr, cwd=directory, env=environment, start_new_session=True
            )
        except BaseException:
            watcher.dismiss()
            raise
        self._watcher: Watcher | None = watcher
        watcher.watch(self._process.pid)
        threading.Thread(target=self._wait, name=f"dragoman-mcp-{self._process.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int | None:
        await self._exited.wait()
        return self._process.returncode

    async def end(self) -> None:
        """Children that outlived the program are ended as well."""
        await _in_thread(partial(end_processes, self._process.pid, self._cookie))
        if self._watcher is not None:
            watcher, self._watcher = self._watcher, None
            await _in_thread(watcher.dismiss)

    def _wait(self) -> None:
        self._process.wait()
        _call_in(self._loop, self._exited.set)


async def _wait_at_most(seconds: float, work: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        pass


async def _in_thread(work: Callable[[], object]) -> None:
    try:
        await asyncio.to_thread(work)
    except RuntimeError:  # the program is ending: no thread can be started any more, and nobody else waits for this loop
        work()


class _ByAsyncio:
    def __init__(self, process: Any) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int | None:
        return await self._process.wait()

    async def end(self) -> None:
        if self._process.returncode is None:
            await asyncio.to_thread(end_processes, self._process.pid, "")


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:  # the loop has ended
        pass
