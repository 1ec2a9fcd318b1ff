"""The tool calls of a run: how each stands, and what is kept of them to be opened."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from dragoman.base import jsontext
from dragoman.base.found_files import read_found, read_found_text
from dragoman.tools.shell import RunShell
from dragoman.tui import call_cells
from dragoman.tui.call_cells import Answer, CallCell
from dragoman.tui.line import Line
from dragoman.values.events import SubagentEvent, ToolCallFinished, ToolCallUpdated
from dragoman.values.messages import ToolCall
from dragoman.values.parts import call_in_words

if TYPE_CHECKING:
    from dragoman.conversation.inner_work import InnerWork

_TAIL_CHARS = 8_000
MOST_FOLDED = 100
_MOST_LOOKS = 12
_FOLDED_CHARS = 1_000_000
_COUNTED_BYTES = 8_000_000


class Folded(msgspec.Struct, frozen=True):
    """Something of which the screen shows a line or two: Ctrl-O opens it."""

    title: str
    text: str = ""
    call: CallCell | None = None
    path: str = ""
    """The file that has all a command put out, where that was too much for the model."""

    def whole(self) -> CallCell | None:
        """The call with everything it put out."""
        if self.call is None or not self.path:
            return self.call
        try:
            output = read_found_text(self.path, _FOLDED_CHARS, cut=True, errors="replace")
            return msgspec.structs.replace(self.call, output=output)
        except OSError:
            return self.call


class RunningCalls:
    """In the order in which they were asked for."""

    def __init__(self) -> None:
        self._open: dict[str, CallCell] = {}
        self._running: dict[str, None] = {}
        self._since_s: dict[str, float] = {}
        self._asked_s: dict[str, float] = {}
        """Since when the user is asked about the command of a call."""
        self._inner: dict[str, InnerWork] = {}
        """Of the calls that are subagents."""
        self._marked = ""
        self.find_tool: Callable[[str], object | None] | None = None
        """The tool of that name, which may know how long its calls may take."""
        self.folder = ""
        """The workspace."""
        self._looked: list[CallCell] = []
        """Calls that only looked at something and are done: those that follow each other stand on one line."""
        self.folded: list[Folded] = []
        """Newest last, as many as are kept."""

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def count(self) -> int:
        """How many calls have not ended."""
        return len(self._open)

    @property
    def next_title(self) -> str:
        """The title of the first call that waits."""
        return next((call_in_words(cell.call, cell.folder) for cell in self._open.values() if cell.state == "waiting"), "")

    @property
    def command_id(self) -> str:
        """The call of the command at work that can go on in the background; empty: none."""
        running = [call_id for call_id in self._running if self._open[call_id].call.name == "run_shell"]
        return running[-1] if running else ""

    @property
    def marked_id(self) -> str:
        """The call at work that a key ends: the one chosen, else the one that puts something out, else the first."""
        running = self._running_ids()
        if self._marked in running:
            return self._marked
        writing = [each for each in running if self._open[each].output.strip()]
        return writing[-1] if writing else running[0] if running else ""

    def mark_next(self) -> None:
        running, marked = self._running_ids(), self.marked_id
        if marked:
            self._marked = running[(running.index(marked) + 1) % len(running)]

    def _running_ids(self) -> list[str]:
        if len(self._running) < 2:
            return list(self._running)
        return [call_id for call_id in self._open if call_id in self._running]

    def clear(self) -> None:
        self._open.clear()
        self._running.clear()
        self._since_s.clear()
        self._inner.clear()

    def add(self, call: ToolCall) -> None:
        tool = self.find_tool(call.name) if self.find_tool is not None else None
        limit_s = tool.time_limit_s(jsontext.decode_object(call.arguments) or {}) if isinstance(tool, RunShell) else 0.0
        self._open[call.id] = CallCell(call, limit_s=limit_s, folder=self.folder)

    def update(self, event: ToolCallUpdated) -> None:
        cell = self._open.get(event.call_id)
        if cell is None or event.state != "executing":
            return
        self._since_s.setdefault(event.call_id, time.monotonic())
        delta = event.output_delta
        self._running[event.call_id] = None
        self._open[event.call_id] = msgspec.structs.replace(
            cell,
            state="running",
            output=(cell.output + delta)[-_TAIL_CHARS:] if delta else cell.output,
            line_count=cell.line_count + delta.count("\n"),
            progress=event.progress_line or cell.progress,
        )

    def take_inner(self, event: SubagentEvent) -> None:
        """What a subagent does."""
        cell = self._open.get(event.call_id)
        if cell is None:
            return
        from dragoman.conversation.inner_work import InnerWork

        work = self._inner.setdefault(event.call_id, InnerWork())
        if work.take(event.event):
            self._open[event.call_id] = msgspec.structs.replace(cell, progress=work.now, inner=work.counts)

    def at_work(self) -> list[tuple[str, str, str]]:
        """The subagents under way, as they stand on the screen: the id of the call, its title, and what it does."""
        return [
            (call_id, call_in_words(cell.call, cell.folder), " · ".join(filter(None, (work.now, work.counts))))
            for call_id, cell in self._open.items()
            if (work := self._inner.get(call_id)) is not None
        ]

    @contextmanager
    def hold_time(self, call_id: str) -> Generator[None]:
        """While the user is asked about a command at work, its time stands still."""
        asked_s = time.monotonic()
        self._asked_s[call_id] = asked_s
        try:
            yield
        finally:
            self._asked_s.pop(call_id, None)
            if call_id in self._since_s:
                self._since_s[call_id] += time.monotonic() - asked_s

    def note_answer(self, call_id: str, answer: Answer) -> None:
        """What the user said when they were asked about it."""
        if (cell := self._open.get(call_id)) is not None:
            self._open[call_id] = msgspec.structs.replace(cell, answer=answer)

    def finish(self, event: ToolCallFinished, columns: int) -> list[Line]:
        cell = self._open.pop(event.call_id, None)
        self._running.pop(event.call_id, None)
        if cell is None:
            return []
        cell = call_cells.finish(cell, event, self._seconds(event.call_id))
        if (work := self._inner.pop(event.call_id, None)) is not None:
            cell = _with_inner(cell, work)
        if event.output_file:  # the model was given a part of it
            cell = msgspec.structs.replace(cell, line_count=max(_count_lines(event.output_file), cell.line_count))
        kept = msgspec.structs.replace(cell, output=cell.output[:_FOLDED_CHARS])
        self._keep(Folded(call_in_words(cell.call, cell.folder), call=kept, path=event.output_file))
        if cell.call.name in call_cells.READS and cell.state == "done":
            self._looked.append(cell)
            return self.take_looks(columns) if len(self._looked) >= _MOST_LOOKS else []
        rows = call_cells.folded_lines(cell, columns)
        if cell.answer and cell.call.name in call_cells.EDITS:
            rows = rows[:1]  # its diff stands beside the question
        return [*self.take_looks(columns), *rows]

    def looks(self, columns: int) -> list[Line]:
        """What the model looked at since anything else happened."""
        return call_cells.folded_group(self._looked, columns)

    def take_looks(self, columns: int) -> list[Line]:
        """The same, to be committed."""
        lines = self.looks(columns)
        self._looked.clear()
        return lines

    def finish_open(self, columns: int) -> list[Line]:
        """Calls without an end event, because the run was stopped."""
        cells = [msgspec.structs.replace(cell, state="cancelled") for cell in self._open.values()]
        looks = self.take_looks(columns)
        self.clear()
        return looks + [row for cell in cells for row in call_cells.folded_lines(cell, columns)]

    def keep(self, title: str, text: str) -> None:
        """Another text, for Ctrl-O."""
        self._keep(Folded(title, text[:_FOLDED_CHARS]))

    def lines(self, columns: int, sign: str, most: int) -> list[Line]:
        """Those at work; those that wait stand among them where there are several. In at most so many rows: titles go before what each
        does now, and that before output."""
        if not self.running:
            return []
        shown = self._first_open(most)
        told = sum(bool(cell.progress) for cell in shown.values())
        has_room = len(self._open) + told < most
        tail = max(most - len(self._open) - told - 1, 0)
        marked = self.marked_id if self.running > 1 else ""
        cells = [
            msgspec.structs.replace(
                cell,
                is_marked=call_id == marked,
                seconds=self._seconds(call_id),
                output=_last_lines(cell.output, tail),
                progress=cell.progress if has_room or len(self._open) == 1 else "",
            )
            for call_id, cell in shown.items()
        ]
        return call_cells.running_group(cells, columns, sign)

    def _first_open(self, most: int) -> dict[str, CallCell]:
        """Those that rows can show, so that a frame costs what it shows and not what waits: the ones at work, then the first that wait."""
        if len(self._open) <= most:
            return self._open
        ids = dict.fromkeys((*islice(self._running, max(most, 1)), *islice(self._open, max(most, 1))))
        return {call_id: self._open[call_id] for call_id in islice(ids, max(most, 1))}

    def _keep(self, folded: Folded) -> None:
        self.folded.append(folded)
        del self.folded[:-MOST_FOLDED]

    def _seconds(self, call_id: str) -> float:
        if call_id not in self._since_s:
            return 0.0
        return max(0.0, self._asked_s.get(call_id, time.monotonic()) - self._since_s[call_id])


def _with_inner(cell: CallCell, work: InnerWork) -> CallCell:
    """Add what a subagent did: folded, the first line of its answer; opened, its calls before the answer."""
    display = cell.display or next((row.strip() for row in cell.output.splitlines() if row.strip()), "")
    output = "\n".join([*work.lines, "", cell.output] if work.lines else [cell.output])
    return msgspec.structs.replace(cell, display=display, output=output, inner=work.counts)


def _last_lines(output: str, count: int) -> str:
    return "\n".join([row for row in output.split("\n") if row.strip()][-count:]) if count else ""


def _count_lines(path: str) -> int:
    """Count the lines of a file, as far as that can be read in a moment."""
    try:
        return read_found(path, _COUNTED_BYTES, cut=True).count(b"\n")
    except OSError:
        return 0
