"""A command in a process group of its own, which ends with its call: whatever happens to the call, or to us.

While it runs, a watcher waits beside it and ends it if we are killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import IO, Any

import msgspec

from dragoman.base.processes import COOKIE, Watcher, end_processes

Take = Callable[[bytes], object]
"""Takes a piece of output. Where it raises, the command is ended and the error passed on."""

LINGER_S = 0.3
"""How long, after the command itself has ended, its children may go on holding its output open."""
_ENDING_S = 0.6
_REAPING_S = 0.2
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL")
_PAINTING = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM"})
_SYSTEM = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"})


class Exit(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    """As a shell tells it: 128 + n where signal n ended it."""
    signal: str = ""
    """`SIGKILL` …, where one ended it."""
    timed_out: bool = False


async def run_process(
    argv: Sequence[str],
    *,
    directory: str,
    env: Mapping[str, str],
    take_stdout: Take,
    take_stderr: Take,
    timeout_s: float | None = None,
    watched: bool = True,
    stdin: bytes = b"",
) -> Exit:
    """Run a command, hand its output over as it comes, and leave none of its processes behind.

    Output is taken as fast as it is read and never queued, so a command that writes faster waits. Raises OSError where it cannot
    be started. `watched=False` is for programs that start no others and end by themselves when nobody reads them.
    """
    cookie = os.urandom(16).hex()
    environment = {**env, COOKIE: f"{env.get(COOKIE, '')} {cookie}".strip()}
    command = _Command(take_stdout, take_stderr)
    watcher = Watcher(cookie) if watched else None
    timed_out = False
    try:
        await command.start(argv, directory, environment, stdin)
        if watcher is not None:
            watcher.watch(command.pid)
        try:
            async with asyncio.timeout(timeout_s):
                await command.over.wait()
        except TimeoutError:
            timed_out = True
        if command.exited.is_set():
            await _within(LINGER_S, command.drained.wait())
    finally:
        await _undisturbed(_end(command, cookie if watched else "", watcher))
    if command.failure is not None:
        raise command.failure
    return _exit(command.returncode, timed_out)


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment for a command: secrets out, nothing that pages or paints; then `extra`, which the user chose, as it is."""
    inherited = {name: value for name, value in os.environ.items() if not _is_secret(name) and name not in _PAINTING}
    return {**inherited, "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", **(extra or {})}


def find_program(name: str, outside: str) -> str:
    """The absolute path of a program on PATH, or nothing. A folder being worked in (`outside`) never supplies one."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, name)
        if os.path.isabs(directory) and _may_run(path) and (directory in _SYSTEM or not _is_beneath(path, outside)):
            return path
    return ""


def _exit(returncode: int | None, timed_out: bool) -> Exit:
    if returncode is None:  # not even SIGKILL ended it in time: it hangs in the kernel
        returncode = -signal.SIGKILL if os.name == "posix" else 1
    if returncode >= 0:
        return Exit(returncode, "", timed_out)
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"SIG{-returncode}"
    return Exit(128 - returncode, name, timed_out)


def _is_secret(name: str) -> bool:
    upper = name.upper()
    return any(word in upper for word in _SECRET_WORDS)


def _may_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_beneath(path: str, directory: str) -> bool:
    real = os.path.realpath(directory)
    return any(os.path.commonpath([real, each]) == real for each in (os.path.realpath(path), os.path.abspath(path)))


# --- while it runs ------------------------------------------------------------------------------------------------------


class _Command(asyncio.SubprocessProtocol):
    """A process, and its output handed over while it is read. The pipes are not read again before that is done: nothing piles up.

    asyncio's own subprocess is for Windows alone: elsewhere, cancelled while it starts, it can wait for ever on a pipe that a
    child of the command holds open.
    """

    def __init__(self, take_stdout: Take, take_stderr: Take) -> None:
        self.pid = 0
        """0 until it was started. It is the group's id as well."""
        self.failure: Exception | None = None
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.over = asyncio.Event()
        """The command has ended, or nobody wants its output any more."""
        self._takers = {1: take_stdout, 2: take_stderr}
        self._process: subprocess.Popen[bytes] | None = None
        self._transports: list[asyncio.BaseTransport] = []

    async def start(self, argv: Sequence[str], directory: str, env: Mapping[str, str], stdin: bytes) -> None:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        with _readable(stdin) as source:
            if os.name != "posix":
                pipes = {"stdin": source, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
                await loop.subprocess_exec(lambda: self, *argv, cwd=directory, env=env, **pipes)
                return
            process = self._spawn(argv, directory, env, source)
        threading.Thread(target=self._wait, args=(loop, process), name=f"dragoman-wait-{self.pid}", daemon=True).start()
        for fd, pipe in ((1, process.stdout), (2, process.stderr)):
            transport, _ = await loop.connect_read_pipe(lambda fd=fd: _Pipe(self, fd), pipe)
            self._transports.append(transport)

    def _spawn(self, argv: Sequence[str], directory: str, env: Mapping[str, str], stdin: IO[bytes]) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            argv,
            bufsize=0,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=env,
            start_new_session=True,
        )
        self.pid = self._process.pid
        return self._process

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        if self._process is not None:
            return self._process.returncode
        transport = self._transports[0] if self._transports else None
        return transport.get_returncode() if isinstance(transport, asyncio.SubprocessTransport) else None

    def close(self) -> None:
        for transport in self._transports:
            transport.close()
        if self._process is None:
            return
        for pipe, fd in ((self._process.stdout, 1), (self._process.stderr, 2)):
            # A pipe that was connected is closed by its transport.
            if pipe is not None and len(self._transports) < fd:
                pipe.close()

    def _wait(self, loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        _tell(loop, self.process_exited)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transports.append(transport)
        self.pid = transport.get_pid() if isinstance(transport, asyncio.SubprocessTransport) else 0

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.failure is not None:
            return
        try:
            self._takers[fd](data)
        except Exception as error:
            self.failure = error
            self.over.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._takers.pop(fd, None)
        if not self._takers:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()


def _readable(data: bytes) -> IO[bytes]:
    """A file to read it from: unlike a pipe, it holds everything, so nobody has to feed it."""
    if not data:
        return open(os.devnull, "rb")
    from tempfile import TemporaryFile

    file = TemporaryFile()  # noqa: SIM115 - whoever asked for it closes it
    file.write(data)
    file.seek(0)
    return file


class _Pipe(asyncio.Protocol):
    def __init__(self, command: _Command, fd: int) -> None:
        self._command = command
        self._fd = fd

    def data_received(self, data: bytes) -> None:
        self._command.pipe_data_received(self._fd, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._command.pipe_connection_lost(self._fd, exc)


# --- the end ------------------------------------------------------------------------------------------------------------


async def _end(command: _Command, cookie: str, watcher: Watcher | None) -> None:
    def end() -> None:
        try:
            end_processes(command.pid or None, cookie)
        finally:
            if watcher is not None:
                watcher.dismiss()

    try:
        # A thread of its own: looking through /proc takes a while on a busy machine, and the shared threads may all be taken.
        await _within(_ENDING_S, _in_own_thread(end))
        if command.pid:
            await _within(_REAPING_S, command.exited.wait())
            await _within(0.05, command.drained.wait())
    finally:
        command.close()
    await asyncio.sleep(0)  # lets the pipes' own closing happen in this loop


async def _within(seconds: float, awaitable: Coroutine[Any, Any, object]) -> None:
    """Wait for it, but not longer."""
    try:
        async with asyncio.timeout(seconds):
            await awaitable
    except TimeoutError:
        pass


async def _in_own_thread(work: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            _tell(loop, done.set)

    threading.Thread(target=run, name="dragoman-ending", daemon=True).start()
    await done.wait()


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:  # the loop was closed: nobody waits any more
        pass


async def _undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Finish it, however often we are cancelled meanwhile: the one shield of the house. The work takes a second at most."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        task.result()
        return
    if not task.cancelled():
        task.exception()  # seen, and less important
    raise cancelled
