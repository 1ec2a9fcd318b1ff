"""The real program in a terminal: a bare one (a pty) to look at bytes, modes and signals, and tmux to look at the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from program import KEY, Place, heed_signals

PATIENCE_S = 60
"""How long a test waits for what must come. A machine with much to do is slow."""
MODEL = "anthropic/claude-opus-5"
MARK = "› "
AFTER = "echo exit code $?; stty -a"
"""What a shell does when the program in tmux has ended, or is suspended."""
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>]")


class Terminal:
    """A terminal with the program in it. What it wrote is in `raw`; `text` is the same without colours and cursor moves."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, slave: int, before: list[Any]) -> None:
        self.process = process
        self.before = before
        """The terminal's modes before the program was started."""
        self.raw = b""
        self._master, self._slave = master, slave
        self.master = master
        self._mark = 0

    @property
    def text(self) -> str:
        return plain(self.raw)

    @property
    def modes(self) -> list[Any]:
        return termios.tcgetattr(self._master)

    def set_modes(self, modes: list[Any]) -> None:
        termios.tcsetattr(self._master, termios.TCSANOW, modes)

    def hang_up(self) -> None:
        """The window is closed."""
        os.close(self._slave)
        os.close(self._master)
        self._slave = self._master = -1

    def close(self) -> None:
        for descriptor in (self._slave, self._master):
            if descriptor >= 0:
                os.close(descriptor)

    def send(self, keys: str | bytes) -> None:
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def send_all(self, data: bytes) -> None:
        """More than a terminal takes at once; what the program writes meanwhile is read."""
        while data:
            _, ready, _ = select.select([], [self._master], [], 0.05)
            if ready:
                data = data[os.write(self._master, data[:1_024]) :]
            self._read(0)

    def expect(self, *wanted: str, within_s: float = PATIENCE_S) -> str:
        """Wait until these stand on the screen, in this order and after what was expected before; returns what came up to there."""
        began = self._mark
        for each in wanted:
            self._until(lambda each=each: each in self.text[self._mark :], f"{each!r} did not come", within_s)
            self._mark = self.text.index(each, self._mark) + len(each)
        return self.text[began : self._mark]

    def prompt(self) -> str:
        """Wait for the prompt; returns what came before it."""
        return self.expect(f"\n{MARK}" if self._mark else MARK)

    def ask(self, line: str) -> None:
        self.send(f"{line}\r")
        self.expect(line.splitlines()[-1])

    def ended(self, within_s: float = PATIENCE_S) -> int:
        """Wait for the program to end; returns its exit code."""
        self._until(lambda: self.process.poll() is not None, "the program did not end", within_s)
        self._read(0)
        assert "Traceback" not in self.text, self.text
        assert KEY not in self.text
        return self.process.returncode

    def read_for(self, seconds: float) -> None:
        """For what must not come."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    def _until(self, holds: Callable[[], bool], otherwise: str, within_s: float) -> None:
        until = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < until, f"{otherwise} in:\n{self.text[-3000:]}"
            self._read(0.05)

    def _read(self, timeout_s: float) -> None:
        while select.select([self._master], [], [], timeout_s)[0]:
            timeout_s = 0
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # the last of those who had it open is gone
                time.sleep(0.01)
                return
            if not data:
                return
            self.raw += data


def plain(raw: bytes) -> str:
    """Line by line; a line that was taken back counts as one."""
    text = raw.decode(errors="replace").replace("\r\x1b[K", "\n")
    return _SEQUENCES.sub("", text).replace("\r\n", "\n").replace("\n\r", "\n")


@contextmanager
def terminal(
    place: Place,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    size: tuple[int, int] = (40, 200),
    model: str = MODEL,
    **streams: Any,
) -> Iterator[Terminal]:
    """The program in a terminal of its own, as its controlling terminal. `streams` may send stdout or stderr elsewhere."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    before = termios.tcgetattr(slave)

    options = {"stdin": slave, "stdout": slave, "stderr": slave} | streams
    chosen = ("-m", model) if model else ()
    process = place.start(*chosen, *arguments, env=env, own_terminal=True, **options)
    shown = Terminal(process, master, slave, before)
    try:
        yield shown
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        shown.close()


class Tmux:
    """A tmux server of its own, with one pane in which the program runs."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    def run(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", os.devnull, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=heed_signals, timeout=60)
        return done.stdout

    def close(self) -> None:
        """The server ends, and what it leaves lying with it."""
        try:
            socket = self.run("display-message", "-p", "#{socket_path}").strip()
            self.run("kill-server")
        except subprocess.CalledProcessError:  # it never began
            return
        if os.path.exists(socket):
            os.unlink(socket)

    def keys(self, *keys: str) -> None:
        """tmux's own names: `Enter`, `C-c`, `Escape`."""
        self.run("send-keys", "-t", "talk", *keys)

    def type(self, text: str) -> None:
        self.run("send-keys", "-t", "talk", "-l", text)

    def paste(self, text: str) -> None:
        """As a terminal pastes: in brackets, where the program asked for them."""
        self.run("set-buffer", text)
        self.run("paste-buffer", "-p", "-t", "talk")

    def screen(self) -> str:
        """What stands there, scrolled off lines too, wrapped lines joined."""
        return self.run("capture-pane", "-p", "-J", "-S", "-", "-t", "talk")

    def lines(self) -> list[str]:
        """The whole history as rows, without the blank ones at the end."""
        return self.run("capture-pane", "-p", "-S", "-", "-t", "talk").rstrip("\n").split("\n")

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-t", "talk", "-x", str(columns), "-y", str(rows))

    def expect(self, wanted: str, *, count: int = 1, within_s: float = PATIENCE_S) -> str:
        """Wait until it stands there so many times; returns the screen."""
        until = time.monotonic() + within_s
        while (screen := self.screen()).count(wanted) < count:
            assert time.monotonic() < until, f"{wanted!r} was not shown {count} times:\n{screen}"
            time.sleep(0.05)
        return screen

    def expect_gone(self, gone: str, within_s: float = PATIENCE_S) -> None:
        """Wait until it does not stand in the window any more."""
        until = time.monotonic() + within_s
        while gone in (screen := self.run("capture-pane", "-p", "-t", "talk")):
            assert time.monotonic() < until, f"{gone!r} stays:\n{screen}"
            time.sleep(0.05)


@contextmanager
def tmux(place: Place, *arguments: str, model: str = MODEL, size: tuple[int, int] = (40, 100), after: str = AFTER) -> Iterator[Tmux]:
    """The program in tmux. When it ends, its exit code and the terminal's state are shown in its place."""
    import shlex

    pane = Tmux(f"dragoman-test-{os.getpid()}-{os.urandom(4).hex()}")
    chosen = ["-m", model] if model else []
    program = shlex.join([sys.executable, "-m", "dragoman", *chosen, *arguments])
    environment = shlex.join(f"{name}={value}" for name, value in place.env.items() if name != "TERM")
    command = f"set -m; cd {shlex.quote(str(place.work))} && env {environment} {program}; {after}; exec sleep 1000"
    try:
        pane.run(
            "new-session", "-d", "-s", "talk", "-y", str(size[0]), "-x", str(size[1]), "bash", "-c", command
        )  # dash would end with Ctrl-C
        yield pane
    finally:
        pane.close()
