"""What the user sees of a command while it runs, and when it has ended."""

from __future__ import annotations

import asyncio

from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.tools.process import Exit
from dragoman.tools.writing import HeadAndTail
from dragoman.values.calls import Show
from dragoman.values.record import HostsUsed

_LINES = 20
_LINE_CHARS = 500


class ShellScreen:
    """Live display for the user: output as it arrives, at most twenty times a second, and the last lines at the end."""

    PERIOD_S = 0.05
    DELTA_CHARS = 2_000
    """Limit of one update; of more, the end is shown."""
    TOTAL_CHARS = 1_000_000
    """Limit of live output per call."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._waiting = ""
        self._room = self.TOTAL_CHARS
        self._timer: asyncio.TimerHandle | None = None
        self._shown_at_s = float("-inf")
        self._end = ""
        self._said = HeadAndTail()
        self._breaks = 0
        self._ends_line = True

    def add(self, text: str) -> None:
        if not text:
            return
        self._breaks += text.count("\n")
        self._ends_line = text.endswith("\n")
        self._end = _append_tail(self._end, text, _LINES * _LINE_CHARS)
        self._said.add(text)
        self._waiting = _append_tail(self._waiting, text, self.DELTA_CHARS + 1)
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        due_s = self._shown_at_s + self.PERIOD_S
        if loop.time() >= due_s:
            self._flush()
        else:
            self._timer = loop.call_at(due_s, self._flush)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    @property
    def end(self) -> str:
        """The last of what the command said."""
        return self._end

    @property
    def said(self) -> str:
        """The beginning and the end of what it said."""
        return self._said.text

    def summary(self, ended: Exit, timeout_s: float) -> str:
        """The last lines, how many there were, and how the command ended unless it succeeded."""
        parts = last_lines(self._end, self._breaks + (not self._ends_line))
        if ended.timed_out:
            parts.append(f"(ended after {timeout_s:g} s)")
        elif ended.signal:
            parts.append(f"(ended by {ended.signal})")
        elif ended.code:
            parts.append(f"(exit code {ended.code})")
        parts = parts or ["(no output)"]
        for word, hosts in _hosts_by_word(ended.hosts):
            if hosts:
                parts.append(clip(f"({word} {', '.join(hosts)})", _LINE_CHARS))
        return "\n".join(parts)

    def _flush(self) -> None:
        self._timer = None
        text, self._waiting = self._waiting, ""
        if not text or self._room <= 0:
            return
        if len(text) > self.DELTA_CHARS:
            text = "…" + text[-self.DELTA_CHARS :]
        self._room -= len(text)
        if self._room <= 0:
            text += "\n… (more than can be shown while it runs)\n"
        self._shown_at_s = asyncio.get_running_loop().time()
        self._show(for_display(text))


def _hosts_by_word(hosts: HostsUsed) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("reached", hosts.reached), ("refused to reach", hosts.refused), ("allowed too late to reach", hosts.late)


def last_lines(end: str, count: int) -> list[str]:
    """The last lines of an output that has `count` of them and this end."""
    lines = for_display(end).splitlines()[-_LINES:]
    return [*([f"… the last {len(lines)} of {count:,} lines"] if count > len(lines) else []), *(clip(line, _LINE_CHARS) for line in lines)]


def _append_tail(text: str, more: str, chars: int) -> str:
    return (text + more[-chars:])[-chars:]


def for_display(text: str) -> str:
    # Progress bars return to the start of the line: show each update as its own line.
    return escape_hidden(text.replace("\r\n", "\n").replace("\r", "\n"))
