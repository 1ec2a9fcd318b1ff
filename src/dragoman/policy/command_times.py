"""When commands could write, and in which folders: what was changed in such a time may be a command's work.

A file that configures agents is not believed at the next start if it was made or changed in such a time, until the user was asked. The
time of a file's last change (ctime) cannot be set by whoever changes it.

A line is written before a command starts, and another when all of it has ended. What a killed program has left open is closed by the next
reader. Lines are merged when they become many: times grow together, and none is forgotten.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.base.lock import hold
from dragoman.base.processes import identify_this_process, is_alive
from dragoman.base.saved_lines import append_lines, read_lines, replace_lines

MARGIN_NS = 50_000_000
"""The clock that files get their times from ticks every few milliseconds."""
MAX_BYTES = 256_000
"""A longer file is merged."""
MAX_TIMES = 32
"""Of one folder; then those that lie closest to each other become one."""
MAX_FOLDERS = 200
"""Then the times of those that had none for longest count for every folder."""
MAX_HASHES = 4
"""Of one file: the newest."""
MAX_BELIEVED = 5_000
FOREIGN_NS = 7 * 24 * 3600 * 1_000_000_000
"""How long a command of another container counts as running, where nobody can see whether it still does."""
_STEP_NS = 1_000_000_000
"""If the clock was set by more while a command ran, its time is widened by as much."""


class CommandLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file: a time in which a command could write in a folder, or a file that is believed as it is."""

    folder: str = ""
    began_ns: int = 0
    ended_ns: int = 0
    """0: it still runs."""
    by: str = ""
    """The process that started it."""
    file: str = ""
    hash: str = ""


class CommandSpan(msgspec.Struct, frozen=True, order=True):
    """A time, both ends included."""

    began_ns: int
    ended_ns: int


class CommandTimes(msgspec.Struct, frozen=True):
    """What the file says."""

    spans: dict[str, tuple[CommandSpan, ...]]
    """By folder, in order, none touching another."""
    believed: dict[str, tuple[str, ...]]
    """The hashes of files that the user believes, oldest first."""

    def concerns(self, folder: str) -> bool:
        """Whether some command could ever write in a folder, or in part of it."""
        return any(is_inside(folder, each) or is_inside(each, folder) for each in self.spans)

    def covers(self, path: str, changed_ns: int) -> bool:
        """Whether a command could write what lies at a path when it was last changed. A folder itself is not changed by what is written in
        it."""
        return any(
            span.began_ns - MARGIN_NS <= changed_ns <= span.ended_ns + MARGIN_NS
            for folder, spans in self.spans.items()
            if path != folder and is_inside(path, folder)
            for span in spans
        )


class RunningTime:
    """The time of a command that runs."""

    def __init__(self, file: str, folders: Iterable[str]) -> None:
        """Raises OSError if it cannot be written down."""
        self._file = file
        self._began_ns, self._ticks_ns = time.time_ns(), time.monotonic_ns()
        by = identify_this_process()
        self._lines = [CommandLine(folder, self._began_ns, 0, by) for folder in dict.fromkeys(map(_to_write, folders))]
        append_lines(file, self._lines)

    def close(self) -> None:
        """Everything of it has ended. Where that cannot be written down, it counts as running for as long as this process does."""
        lines = self._lines
        self._lines = list[CommandLine]()
        if not lines:
            return
        now = time.time_ns()
        jump = abs((now - self._began_ns) - (time.monotonic_ns() - self._ticks_ns))
        ended = max(now, self._began_ns) + (jump if jump > _STEP_NS else 0)
        closed = [msgspec.structs.replace(line, ended_ns=ended) for line in lines]
        if jump > _STEP_NS:
            closed += [msgspec.structs.replace(line, began_ns=min(now, self._began_ns) - jump, ended_ns=ended) for line in lines]
        try:
            append_lines(self._file, closed)
            if os.stat(self._file).st_size > MAX_BYTES:
                merge_file(self._file)
        except OSError:
            return


def read_times(file: str) -> CommandTimes:
    """What the file says now. Times that a killed program has left open are closed. Raises OSError if it cannot be read."""
    lines = read_lines(file, CommandLine)
    spans, left = _spans_of(lines, time.time_ns())
    if left:
        try:
            append_lines(file, left)
        except OSError:
            pass  # the next reader does
    return CommandTimes(spans, _believed(lines))


def believe(file: str, hashes: dict[str, str]) -> None:
    """Remember files as they are: the user has seen them, or they were believed already. Raises OSError."""
    append_lines(file, [CommandLine(file=path, hash=made) for path, made in hashes.items()])


def merge_file(file: str) -> None:
    """Write the file anew with few lines. Raises OSError, and then nothing has changed."""
    with hold(file):
        lines = read_lines(file, CommandLine)
        now = time.time_ns()
        running = [line for line in _last(lines) if not line.ended_ns and _end_of(line, now) is None]
        spans, _ = _spans_of([line for line in _last(lines) if line not in running], now)
        kept = [CommandLine(folder, span.began_ns, span.ended_ns) for folder, each in _few_folders(spans).items() for span in each]
        believed = [CommandLine(file=path, hash=made) for path, hashes in _believed(lines).items() for made in hashes]
        replace_lines(file, [*believed[-MAX_BELIEVED:], *kept, *running])


def merge_spans(spans: Iterable[CommandSpan], most: int = MAX_TIMES) -> tuple[CommandSpan, ...]:
    """In order and none touching another; where there are more, those that lie closest to each other become one."""
    merged: list[CommandSpan] = []
    for span in sorted(spans):
        if merged and span.began_ns <= merged[-1].ended_ns + 2 * MARGIN_NS:
            merged[-1] = CommandSpan(merged[-1].began_ns, max(merged[-1].ended_ns, span.ended_ns))
        else:
            merged.append(span)
    if len(merged) <= most:
        return tuple(merged)
    gaps = sorted((after.began_ns - before.ended_ns, number) for number, (before, after) in enumerate(pairwise(merged)))
    closed = {number for _, number in gaps[: len(merged) - most]}
    few = [merged[0]]
    for number, span in enumerate(merged[1:]):
        if number in closed:
            few[-1] = CommandSpan(few[-1].began_ns, span.ended_ns)
        else:
            few.append(span)
    return tuple(few)


def _to_write(folder: str) -> str:
    """The real path; where JSON has no form for its name, that of a folder around it."""
    real = os.path.realpath(folder)
    while not _is_unicode(real):
        real = os.path.dirname(real)
    return real


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _last(lines: Iterable[CommandLine]) -> list[CommandLine]:
    """The line about each time that ends it last."""
    ordered = sorted((line for line in lines if line.folder), key=lambda line: line.ended_ns)
    found = {(line.folder, line.began_ns, line.by): line for line in ordered}
    return list(found.values())


def _spans_of(lines: Iterable[CommandLine], now: int) -> tuple[dict[str, tuple[CommandSpan, ...]], list[CommandLine]]:
    """By folder, and the lines that close what was left open."""
    spans: dict[str, list[CommandSpan]] = {}
    left: list[CommandLine] = []
    for line in _last(lines):
        ended = line.ended_ns or _end_of(line, now)
        if ended is None:
            ended = max(now, line.began_ns) + _STEP_NS  # it runs: what it writes while files are looked at counts too
        elif not line.ended_ns:
            left.append(msgspec.structs.replace(line, ended_ns=ended))
        spans.setdefault(line.folder, []).append(CommandSpan(line.began_ns, ended))
    return {folder: merge_spans(each) for folder, each in spans.items()}, left


def _end_of(line: CommandLine, now: int) -> int | None:
    """When a time ended that no line closes; None if it has not."""
    if not is_alive(line.by):
        return max(now, line.began_ns)
    is_foreign = line.by.rpartition(".")[2] != identify_this_process().rpartition(".")[2]
    return line.began_ns + FOREIGN_NS if is_foreign and now > line.began_ns + FOREIGN_NS else None


def _few_folders(spans: dict[str, tuple[CommandSpan, ...]]) -> dict[str, tuple[CommandSpan, ...]]:
    if len(spans) <= MAX_FOLDERS:
        return spans
    newest = sorted(spans, key=lambda folder: spans[folder][-1].ended_ns, reverse=True)
    kept, others = newest[: MAX_FOLDERS - 1], newest[MAX_FOLDERS - 1 :]
    everywhere = [span for folder in (*others, os.sep) for span in spans.get(folder, ())]
    return {folder: spans[folder] for folder in kept if folder != os.sep} | {os.sep: merge_spans(everywhere)}


def _believed(lines: Sequence[CommandLine]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        if line.file and line.hash:
            hashes = found.setdefault(line.file, {})
            hashes.pop(line.hash, None)
            hashes[line.hash] = None
    return {path: tuple(hashes)[-MAX_HASHES:] for path, hashes in found.items()}
