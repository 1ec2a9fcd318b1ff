"""`!command`: a command of the user's own, run here. Its output is shown, and the model reads it with the next prompt."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from dragoman.base.text import one_line, strip_controls
from dragoman.tui.call_cells import clean_output
from dragoman.tui.line import Line, Span, line, visible
from dragoman.tui.wrap import beside, fit, wrap, wrap_code
from dragoman.words import say

SHOWN_LINES = 20
_TAIL_LINES = 3
_MODEL_CHARS = 20_000
_MOST_BYTES = 2_000_000
_TAIL_BYTES = 8_000
STOP_S = 1.0
"""A command that was asked to end is killed after this time."""

# Sent to the model: in English, whatever the program's language.
FOR_MODEL = "I ran this command myself:\n{fence}\n$ {command}\n{output}\n{fence}"


class OwnCommand:
    """One command while it runs, and what became of it."""

    def __init__(self, command: str, folder: str, on_output: Callable[[], None]) -> None:
        self.command = command
        self._folder = folder
        self._on_output = on_output
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._began_s = time.monotonic()
        self._written = bytearray()
        self.code: int | None = None
        self._is_stopped = False

    async def run(self) -> None:
        """Run the command until it ends or is stopped. It reads nothing from the terminal."""
        read_end, write_end = os.pipe()  # of our own: closing it is all it takes not to wait for what holds the other end
        with os.fdopen(read_end, "rb", 0) as pipe:
            try:
                process = self._process = await asyncio.create_subprocess_exec(
                    users_shell(), "-c", self.command, cwd=self._folder,
                    stdin=asyncio.subprocess.DEVNULL, stdout=write_end, stderr=write_end, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                self._written, self.code = bytearray((error.strerror or str(error)).encode()), 127
                return
            finally:
                os.close(write_end)
            pieces = asyncio.StreamReader()
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(pieces), pipe)
            self._reading = asyncio.create_task(self._read_all(pieces))
            await asyncio.wait([self._reading])
            transport.close()
            self.code = await process.wait()

    async def _read_all(self, pieces: asyncio.StreamReader) -> None:
        while data := await pieces.read(1 << 16):
            self._written += data
            del self._written[:-_MOST_BYTES]
            self._on_output()

    @property
    def output(self) -> str:
        """What it has put out. Read as a whole: a character or a sequence may come in two pieces."""
        return _shown(self._written)

    def stop(self) -> None:
        """Ask it to end. If it does not, or this is called again, it is killed."""
        if self._is_stopped:
            return self._kill()
        self._is_stopped = True
        self._signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(STOP_S, self._kill)
        return None

    def _kill(self) -> None:
        """What it has started may have left its group and hold its output open: nobody waits for that."""
        if self._reading is not None and not self._reading.done():
            self._signal(signal.SIGKILL)
            self._reading.cancel()

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    # --- lines

    def live_lines(self, columns: int) -> list[Line]:
        seconds = say("conversation.seconds", seconds=int(time.monotonic() - self._began_s))
        keys = line(f"{seconds} · {say('tui.esc_stops')}", "dim")
        rows = [beside((Span("! ", "accent"), Span(visible(one_line(self.command)))), keys, columns)]
        tail = [each for each in _shown(self._written[-_TAIL_BYTES:]).rstrip("\n").split("\n") if each.strip()][-_TAIL_LINES:]
        return [*rows, *(fit(line(f"  {visible(each)}", "dim"), columns) for each in tail)]

    def lines(self, columns: int) -> list[Line]:
        """When it is over: the end of its output."""
        output = self.output.rstrip("\n")
        lines = output.split("\n") if output.strip() else []
        rows: list[Line] = []
        if len(lines) > SHOWN_LINES:
            rows.append(line("  " + say("conversation.folded", count=len(lines) - SHOWN_LINES), "dim"))
        for each in lines[-SHOWN_LINES:]:
            rows += wrap_code(line(visible(each)), columns, (Span("  "),))
        if self._is_stopped:
            rows.append(line("  " + say("tui.state_cancelled"), "warn"))
        elif self.code:
            rows.append(line("  " + say("conversation.exit_code", code=self.code), "warn"))
        if not self.code and not lines and re.fullmatch(r"cd(\s.*)?", self.command):
            rows += wrap(line("  " + say("conversation.cd_holds_once"), "dim"), columns, rest=(Span("  "),))
        return rows

    def for_model(self) -> str:
        output = self.output.strip("\n")
        if len(output) > _MODEL_CHARS:
            output = f"…{output[-_MODEL_CHARS:]}"
        fence = "```"
        while fence in output or fence in self.command:
            fence += "`"
        return FOR_MODEL.format(fence=fence, command=self.command, output=output or "(no output)")


def users_shell() -> str:
    """The shell that the user works with; the system's where none is named, or it is not there."""
    shell = os.environ.get("SHELL", "")
    return shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else "/bin/sh"


def _shown(written: bytes | bytearray) -> str:
    return strip_controls(clean_output(written.decode("utf-8", "replace")))
