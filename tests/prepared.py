"""The program in a process of its own that is forked off one which has already loaded it: a tenth of a second of CPU less for each start.

It is the same program from its first line on: arguments, environment, folder, descriptors, signals and exit are its own. What is not its
own is the start of the interpreter: where a test sets what an interpreter reads when it starts (`LANG`, `PYTHON…`) the start is a real
one. So is each in tmux, and each that is prepared by a function of its own; `DRAGOMAN_TEST_STARTS=real` makes all of them real.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import pkgutil
import secrets
import select
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

READ_BY_PYTHON = ("PYTHON", "LC_", "LANG")
"""How the names of variables begin that an interpreter reads when it starts."""
READ_BY_LIBRARIES = ("LD_PRELOAD", "FAKETIME_")
"""What is read when libraries are loaded, before the program: see shifted_clock.py."""
LEFT_OUT = ("tui", "local", "testing", "traces", "httpx", "harbor")
"""Parts that are not loaded ahead: what they bring is optional, or their presence is asked about."""
REAL = os.environ.get("DRAGOMAN_TEST_STARTS") == "real" or sys.platform != "linux"
"""Read here: tests run without variables of ours."""

_forking: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}
"""The process that has the program loaded, once it was needed, and its socket: one for each library that is put before all others."""


def can_be_forked(env: Mapping[str, str]) -> bool:
    """Whether a start with these variables beside the usual ones may be one of ours."""
    return not REAL and not any(name.startswith(READ_BY_PYTHON) for name in env)


class Forked:
    """The program under way, with these as its standard input, output and error. They are closed here."""

    def __init__(
        self, arguments: Sequence[str | bytes], env: Mapping[str, str], cwd: str, descriptors: Sequence[int], *, own_terminal: bool = False
    ) -> None:
        os.umask(umask := os.umask(0))
        told = {
            "arguments": [os.fsdecode(each) for each in arguments],
            "env": dict(env),
            "cwd": cwd,
            "umask": umask,
            "own_terminal": own_terminal,
        }
        asked = json.dumps(told).encode()
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.connect(_socket(env))
        socket.send_fds(self._line, [len(asked).to_bytes(4)], descriptors)
        self._line.sendall(asked)
        for each in set(descriptors):
            os.close(each)
        self.pid = self._number()

    def wait(self, timeout_s: float) -> int:
        self._line.settimeout(timeout_s)
        try:
            return self._number()
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired("dragoman", timeout_s) from None
        finally:
            self._line.close()

    def ended_within(self, timeout_s: float | None) -> int | None:
        """Its exit code, as soon as it has one."""
        if not select.select([self._line], [], [], timeout_s)[0]:
            return None
        code = self._number()
        self._line.close()
        return code

    def _number(self) -> int:
        got = b""
        while len(got) < 4:
            more = self._line.recv(4 - len(got))
            assert more, "the process that has the program loaded is gone"
            got += more
        return int.from_bytes(got, signed=True)


class ForkedPopen(subprocess.Popen[bytes]):
    """`subprocess.Popen` for `python -m dragoman`, forked. `args` are the program's own."""

    def __init__(self, *args: Any, own_terminal: bool = False, **options: Any) -> None:
        self._own_terminal = own_terminal
        super().__init__(*args, **options)

    def _execute_child(self, args: Sequence[str | bytes], *rest: Any) -> None:
        cwd, env = rest[4:6]
        pipes = rest[9:15]  # ours and theirs, of standard input, output and error
        theirs = [os.dup(each if each >= 0 else number) for number, each in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._forked = Forked(args, env, str(cwd), theirs, own_terminal=self._own_terminal)
        self.pid = self._forked.pid
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _internal_poll(self, *args: Any, **options: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._forked.ended_within(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            self.returncode = self._forked.ended_within(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode


def run_prepared(
    arguments: Sequence[str | bytes], env: Mapping[str, str], cwd: str, stdin: bytes | None, timeout_s: float
) -> tuple[int, bytes, bytes]:
    """What `subprocess` would give for `python -m dragoman`."""
    theirs_in, ours_in = (os.open(os.devnull, os.O_RDONLY), None) if stdin is None else os.pipe()
    (ours_out, theirs_out), (ours_err, theirs_err) = os.pipe(), os.pipe()
    running = Forked(arguments, env, cwd, [theirs_in, theirs_out, theirs_err])
    with ThreadPoolExecutor(3) as threads:
        if stdin is not None and ours_in is not None:
            threads.submit(_write_all, ours_in, stdin)
        out, err = threads.submit(_read_all, ours_out), threads.submit(_read_all, ours_err)
        return running.wait(timeout_s), out.result(), err.result()


def _socket(env: Mapping[str, str]) -> str:
    before = env.get("LD_PRELOAD", "")
    if before not in _forking:
        kept = {name: value for name, value in env.items() if name == "PATH" or name.startswith((*READ_BY_PYTHON, *READ_BY_LIBRARIES))}
        _forking[before] = _load_program(kept)
    return _forking[before][0]


def _load_program(env: dict[str, str]) -> tuple[str, subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as said:
        name = said.readline().decode().strip()
    assert name, "the program could not be loaded"
    return f"\0{name}", process


def end_prepared() -> None:
    """At the end of the tests."""
    while _forking:
        process = _forking.popitem()[1][1]
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _write_all(descriptor: int, data: bytes) -> None:
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
    except BrokenPipeError:
        pass  # it did not read to the end, which is its affair


# --- the process that has the program loaded ----------------------------------------------------------------------------------------


def load() -> None:
    """Everything a start may need, so that no fork loads it again."""
    import dragoman

    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not any(part in module.name for part in LEFT_OUT) and not module.name.endswith("__main__"):
            import_module(module.name)
    gc.collect()
    gc.freeze()


def wait_for_starts() -> None:
    """Serves until the tests end. Returns in each forked process, which then is the program."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0dragoman-tests-" + secrets.token_hex(8))
    listener.listen(64)
    print(listener.getsockname()[1:].decode(), flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while listener in select.select([listener, 0], [], [])[0]:
        line = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            return _become(line)
        line.close()
    listener.close()
    sys.exit()


def _become(line: socket.socket) -> None:
    """Fork once more: one tells how the other ends, the other is the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, descriptors, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as asked:
        wanted = json.loads(asked.read(int.from_bytes(size)))
    if pid := os.fork():
        for each in (0, 1, 2, *descriptors):
            os.close(each)
        line.sendall(pid.to_bytes(4))
        status = os.waitpid(pid, 0)[1]
        line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
        os._exit(0)
    line.close()
    if wanted["own_terminal"]:
        os.setsid()
        fcntl.ioctl(descriptors[0], termios.TIOCSCTTY, 0)
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
        os.close(each)
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.umask(wanted["umask"])
    os.chdir(wanted["cwd"])
    time.tzset()
    sys.path[0] = wanted["cwd"]
    sys.argv = [import_module("dragoman").__path__[0] + "/__main__.py", *wanted["arguments"]]


if __name__ == "__main__":
    load()
    wait_for_starts()
    sys.exit(import_module("dragoman.cli.main").main())
