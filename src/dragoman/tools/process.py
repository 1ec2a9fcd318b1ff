"""Running a command in its own process group, which ends with the call, whatever happens to the call or to us.

Where there is a launcher, it starts the command and ends it, also if we are killed. Else a watcher process does while it runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, Literal

import msgspec

from dragoman.base.processes import COOKIE, GRACE_S, Watcher, end_processes
from dragoman.tools.clock import Clock
from dragoman.tools.job import call_in_loop
from dragoman.values.calls import run_at_work
from dragoman.values.commands import Launch, Launched, Reach
from dragoman.values.events import NoticeGiven
from dragoman.values.record import NO_HOSTS, HostsUsed
from dragoman.words import say

Take = Callable[[bytes], object]
"""Takes a piece of output. If it raises, the command is ended and the error propagates."""

LINGER_S = 0.3
"""How long after the command's end its children may keep its output open."""
_ENDING_S = 0.6
_SMALL_BYTES = 4096
"""Pieces up to this size are never held back."""
_REAPING_S = 0.2
_NOT_LOOKED_AT = "What it left behind could not be looked at ({reason})."


class NotStarted(OSError):
    """A command that could not be started: nothing of it has run."""


class Exit(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    """As in a shell: 128 + n if signal n ended it."""
    signal: str = ""
    """`SIGKILL` …, if a signal ended it."""
    timed_out: bool = False
    remark: str = ""
    """What had to be undone after it, should be known, or was refused to it, in a line for the model."""
    notice: str = ""
    """What the user should know of it, in lines."""
    hosts: HostsUsed = NO_HOSTS
    is_gone: bool = True
    """Whether it is known that nothing of it runs any more."""


def tell_user(notice: str, about: Literal["sandbox", "files"] = "sandbox") -> None:
    """Tell those who watch the run at work what a command has left behind. Nothing happens where that is nothing, or there is no run."""
    run: Any = run_at_work.get()()
    if notice and run is not None:
        run.tell(NoticeGiven(about, notice))


class Control:
    """A command at work, for whoever lets it go on after its time."""

    def __init__(self) -> None:
        self._command: _Command | None = None
        self._clock: Clock | None = None

    def take(self, command: _Command, clock: Clock) -> None:
        self._command, self._clock = command, clock

    @property
    def is_running(self) -> bool:
        return self._command is not None and not self._command.over.is_set()

    @property
    def has_limit(self) -> bool:
        return self._clock is not None and self._clock.has_limit

    def lift_limit(self, bytes_per_s: float) -> None:
        """It may run as long as it wants, and its output is read no faster than that. In the loop that runs it."""
        if self._command is not None and self._clock is not None and self.is_running:
            self._command.bytes_per_s = bytes_per_s
            self._clock.end()


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
    launch: Launch | None = None,
    streams: Literal["apart", "merged", "tty"] = "apart",
    bytes_per_s: float | None = None,
    control: Control | None = None,
    reach: Reach = "workspace",
) -> Exit:
    """Run a command, pass on its output as it arrives, and leave none of its processes behind.

    Output is never queued (backpressure), so a command that writes faster has to wait. Raises NotStarted if it cannot be started. What
    fails after its end changes nothing about how it ended: that is said as a remark.
    `watched=False` is for programs that start no others and end by themselves when their output is closed.
    With `merged`, or in a terminal (`tty`), all output goes to `take_stdout`. No more than `bytes_per_s` are read.
    """
    cookie = os.urandom(16).hex()
    environment = {**env, COOKIE: f"{env.get(COOKIE, '')} {cookie}".strip()}
    command = _Command({1: take_stdout, 2: take_stderr} if streams == "apart" else {1: take_stdout}, bytes_per_s)
    watcher = Watcher(cookie) if watched and launch is None else None
    timed_out = False
    try:
        if launch is not None:
            reading = await command.start_by(launch, argv, directory, environment, stdin, streams, reach)
        else:
            reading = await command.start(argv, directory, environment, stdin, streams)
        await command.connect(reading)
        if watcher is not None:
            watcher.watch(command.pid)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                clock = Clock(limit)
                if control is not None:
                    control.take(command, clock)
                if command.launched is not None:
                    command.launched.watch_questions(clock.hold)
                await command.over.wait()
                clock.end()
        except TimeoutError:
            timed_out = True
        if command.exited.is_set():
            await _wait_at_most(LINGER_S, command.drained.wait())
            if command.launched is not None and command.failure is None:
                await _settle(command, command.launched)
    finally:
        await _run_shielded(_end_launched(command) if launch is not None else _end(command, cookie if watched else "", watcher))
    if command.failure is not None:
        raise command.failure
    hosts = command.launched.hosts if command.launched is not None else NO_HOSTS
    ended = _to_exit(command.returncode, timed_out)
    return msgspec.structs.replace(ended, remark=command.remark, notice=command.notice, hosts=hosts, is_gone=command.is_gone)


def _to_exit(returncode: int | None, timed_out: bool) -> Exit:
    if returncode is None:  # not even SIGKILL ended it in time: it is stuck in the kernel
        returncode = -signal.SIGKILL if os.name == "posix" else 1
    if returncode >= 0:
        return Exit(returncode, "", timed_out)
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"SIG{-returncode}"
    return Exit(128 - returncode, name, timed_out)


# --- while it runs ------------------------------------------------------------------------------------------------------


class _Command(asyncio.SubprocessProtocol):
    """A process whose output is passed on as it is read. The pipes are not read again before that is done, so nothing is buffered.

    asyncio's own subprocess is used on Windows only: elsewhere, if cancelled while starting, it can wait forever on a pipe that a
    child of the command holds open.
    """

    def __init__(self, takers: dict[int, Take], bytes_per_s: float | None = None) -> None:
        self.pid = 0
        """0 until it is started. Also the process group's id."""
        self.failure: Exception | None = None
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.over = asyncio.Event()
        """Set when the command has ended or its output is no longer wanted."""
        self._takers = takers
        self.bytes_per_s = bytes_per_s
        self.is_gone = True
        self.not_looked_at: list[str] = []
        """Why it could not be looked at what it has left behind."""
        self.launched: Launched | None = None
        """Set where a launcher started it."""
        self._process: subprocess.Popen[bytes] | None = None
        self._following: asyncio.Task[None] | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._unconnected: list[IO[bytes]] = []
        """What is still to be closed by us: a connected pipe is closed by its transport."""

    async def start(self, argv: Sequence[str], directory: str, env: Mapping[str, str], stdin: bytes, kind: str) -> list[IO[bytes]]:
        """Start it. Returns what it prints to, for `connect`. Raises NotStarted."""
        from dragoman.tools.streams import as_file, open_pipes, open_terminal  # not needed before a command is run

        loop = asyncio.get_running_loop()
        with _as_not_started():
            if os.name != "posix":
                with as_file(stdin) as source:
                    pipes = {
                        "stdin": source,
                        "stdout": subprocess.PIPE,
                        "stderr": subprocess.STDOUT if kind == "merged" else subprocess.PIPE,
                    }
                    await loop.subprocess_exec(lambda: self, *argv, cwd=directory, env=env, **pipes)
                return []
            streams = open_terminal() if kind == "tty" else open_pipes(stdin, merged=kind == "merged")
            try:
                process = self._spawn(argv, directory, env, streams.given)
            except BaseException:
                streams.discard()
                raise
        streams.close_given()
        threading.Thread(target=self._wait, args=(loop, process), name=f"dragoman-wait-{self.pid}", daemon=True).start()
        return streams.reading

    def _spawn(self, argv: Sequence[str], directory: str, env: Mapping[str, str], given: tuple[int, int, int]) -> subprocess.Popen[bytes]:
        stdin, stdout, stderr = given
        self._process = subprocess.Popen(
            argv, bufsize=0, stdin=stdin, stdout=stdout, stderr=stderr, cwd=directory, env=env, start_new_session=True
        )
        self.pid = self._process.pid
        return self._process

    async def start_by(
        self, launch: Launch, argv: Sequence[str], directory: str, env: Mapping[str, str], stdin: bytes, kind: str, reach: Reach
    ) -> list[IO[bytes]]:
        """Have it started. Returns what it prints to, for `connect`. Raises NotStarted."""
        from dragoman.tools.streams import COLUMNS, ROWS, no_streams, open_pipes

        with _as_not_started():
            streams = no_streams() if kind == "tty" else open_pipes(stdin, merged=kind == "merged")
            start = partial(launch.start, argv, directory=directory, env=env, streams=streams.given, reach=reach)
            try:
                self.launched = await (start(terminal=(ROWS, COLUMNS)) if kind == "tty" else start())
            except BaseException:
                streams.discard()
                raise
        streams.close_given()
        self._following = asyncio.ensure_future(self._follow(self.launched))
        if kind == "tty":
            streams.reading.append(_terminal_of(self.launched))
        return streams.reading

    async def connect(self, reading: list[IO[bytes]]) -> None:
        """Begin to read what it prints. Raises OSError."""
        loop = asyncio.get_running_loop()
        for fd, file in enumerate(reading, 1):
            self._unconnected = reading[fd - 1 :]
            transport, _ = await loop.connect_read_pipe(lambda fd=fd: _Pipe(self, fd), file)
            self._transports.append(transport)
        self._unconnected = []

    async def _follow(self, launched: Launched) -> None:
        await launched.wait()
        self.process_exited()

    @property
    def remark(self) -> str:
        told = self.launched.remark if self.launched is not None else ""
        return " ".join(filter(None, (told, *(_NOT_LOOKED_AT.format(reason=reason) for reason in self.not_looked_at))))

    @property
    def notice(self) -> str:
        told = self.launched.notice if self.launched is not None else ""
        return "\n".join(filter(None, (told, *(say("tools.not_looked_at", reason=reason) for reason in self.not_looked_at))))

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        if self.launched is not None:
            return self.launched.returncode
        if self._process is not None:
            return self._process.returncode
        transport = self._transports[0] if self._transports else None
        return transport.get_returncode() if isinstance(transport, asyncio.SubprocessTransport) else None

    def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
        for transport in self._transports:
            transport.close()
        for file in self._unconnected:
            file.close()

    def _wait(self, loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        call_in_loop(loop, self.process_exited)

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


@contextmanager
def _as_not_started() -> Iterator[None]:
    """Turns OSError into NotStarted, which nothing raises once the command runs."""
    try:
        yield
    except NotStarted:
        raise
    except OSError as error:
        raise NotStarted(error.errno or 0, error.strerror or str(error), error.filename) from error


def _terminal_of(launched: Launched) -> IO[bytes]:
    descriptor = launched.take_terminal()
    if descriptor is None:
        raise OSError(0, "no terminal was made for it")
    return os.fdopen(descriptor, "rb", buffering=0)


class _Pipe(asyncio.Protocol):
    def __init__(self, command: _Command, fd: int) -> None:
        self._command = command
        self._fd = fd
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._command.pipe_data_received(self._fd, data)
        if self._command.bytes_per_s and len(data) > _SMALL_BYTES:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(len(data) / self._command.bytes_per_s, self._go_on)

    def _go_on(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._command.pipe_connection_lost(self._fd, exc)


# --- ending -------------------------------------------------------------------------------------------------------------


async def _end(command: _Command, cookie: str, watcher: Watcher | None) -> None:
    def end() -> None:
        try:
            end_processes(command.pid or None, cookie)
        finally:
            if watcher is not None:
                watcher.dismiss()

    try:
        # Its own thread: searching /proc takes a while on a busy machine, and the shared threads may all be busy.
        await _wait_at_most(_ENDING_S, _in_own_thread(end))
        if command.pid:
            await _wait_at_most(_REAPING_S, command.exited.wait())
            await _wait_at_most(0.05, command.drained.wait())
    finally:
        command.close()
    await asyncio.sleep(0)  # lets the pipes close in this loop


async def _settle(command: _Command, launched: Launched) -> None:
    try:
        await launched.settle()
    except Exception as error:
        command.not_looked_at.append(str(error))


async def _end_launched(command: _Command) -> None:
    try:
        if command.launched is not None:
            try:
                command.is_gone = await command.launched.end(GRACE_S)
            except Exception as error:  # how it ended is known all the same, and what it printed
                command.is_gone = False
                command.not_looked_at.append(str(error))
            await _wait_at_most(0.05, command.drained.wait())
    finally:
        command.close()
    await asyncio.sleep(0)  # lets the pipes close in this loop


async def _wait_at_most(seconds: float, awaitable: Coroutine[Any, Any, object]) -> None:
    """Wait for it, but not longer than that."""
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
            call_in_loop(loop, done.set)

    threading.Thread(target=run, name="dragoman-ending", daemon=True).start()
    await done.wait()


async def _run_shielded(work: Coroutine[Any, Any, None]) -> None:
    """Finish it even if we are cancelled repeatedly: the only shield in the program. The work takes a second at most."""
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
        task.exception()  # retrieved; the cancel matters more
    raise cancelled
