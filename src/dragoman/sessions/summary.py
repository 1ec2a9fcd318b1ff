"""A session's row in a list, folded from its log: entries in, Summary out. It continues where it stopped, because logs only grow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Literal

import msgspec

from dragoman.base.graphemes import fit
from dragoman.base.private import open_file
from dragoman.base.text import one_line
from dragoman.sessions.last_run import LastRun, next_run
from dragoman.sessions.log import Damaged, decode_line
from dragoman.sessions.titles import own_words, title_of
from dragoman.sessions.upgrade import Upgrader
from dragoman.values.errors import InputError
from dragoman.values.notes import is_note, is_setup, searched_for
from dragoman.values.record import Configured, Entry, ModelChanged, Said, Spent, Started, Titled, fold, paid_usage, usage_of
from dragoman.values.usage import Usage

KNOWN_FORMAT = 1
"""The newest log format that we know. We do not interpret later ones."""
MAX_LINE_BYTES = 256 * 1024 * 1024
"""A longer line is not one of ours; it is skipped in pieces."""
_PROMPT_COLUMNS = 400
_LAST_COLUMNS = 200
_TAIL_BYTES = 48
"""Enough of the last bytes read to recognise them: the end of a line with its checksum."""


class Paid(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What one model of one service has used: requests are paid at the prices of whoever answered them."""

    deployment: str
    model: str
    usage: Usage


class Summary(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One row of a list."""

    session_id: str
    path: str = ""
    workspace: str = ""
    """The folder it was started in."""
    title: str = ""
    """The name it was given, else one made from its first prompt."""
    first_prompt: str = ""
    """On one line, truncated if it is long."""
    started_ms: int = 0
    updated_ms: int = 0
    messages: int = 0
    """Prompts and answers. Tool results and the program's own messages to the model are not counted."""
    model: str = ""
    """The model used last."""
    usage: Usage = Usage()
    size: int = 0
    """The size of its log in bytes."""
    entries: int = 0
    last_seq: int = 0
    damaged: int = 0
    """Lines that could not be read."""
    format: int = 0
    """The format in its head; 0 if the head is missing."""
    forked_from: str = ""
    imported_from: str = ""
    has_given_title: bool = False
    key: str = ""
    """The embedder's own name for it."""
    parent: str = ""
    """The session in which its agent was called."""
    deployment: str = ""
    """The service used last."""
    paid: tuple[Paid, ...] = ()
    """`usage`, by who answered."""
    last_prompt: str = ""
    """As `first_prompt`; empty if there was but one."""
    last_answer: str = ""
    run: LastRun = LastRun()
    """How its last run stands, by its record alone."""

    @property
    def is_understood(self) -> bool:
        """Whether every line could be read and the format is one we know."""
        return bool(self.entries) and not self.damaged and self.format == KNOWN_FORMAT


SpokenRole = Literal["user", "assistant", "title"]
"""Whose words they are; a title is nobody's."""


class SpokenText(msgspec.Struct, frozen=True):
    """A text that can be searched for."""

    seq: int
    role: SpokenRole
    text: str


class LogScan(msgspec.Struct, frozen=True):
    """How far a log was read, and its summary so far."""

    summary: Summary
    offset: int = 0
    """The end of the last whole line."""
    tail: bytes = b""
    """The bytes right before it."""


def open_log(path: str) -> BinaryIO:
    """Open a log to read. Raises OSError, also if it is not a regular file (a link, or a pipe that would never end)."""
    try:
        return os.fdopen(open_file(path, refuse=InputError), "rb", buffering=256 * 1024)
    except InputError as error:
        raise OSError(str(error)) from error


def scan(log: BinaryIO, path: str, before: LogScan | None = None, spoken: list[SpokenText] | None = None) -> LogScan:
    """Read what is new in a log since `before`. If `spoken` is given, messages and titles are collected there as well.

    Raises ValueError if it is not the log that was read before: the bytes where the reading ended have changed.
    """
    offset, tail = (before.offset, before.tail) if before is not None else (0, b"")
    log.seek(offset - len(tail))
    if log.read(len(tail)) != tail:
        raise ValueError("this is not the log that was read before")
    fold = _Fold(before.summary if before is not None else Summary(os.path.basename(path).removesuffix(".jsonl")), spoken)
    for line, length in _whole_lines(log):
        offset += length
        tail = line[-_TAIL_BYTES:]
        fold.read(line)
    return LogScan(fold.finish(path, os.fstat(log.fileno()).st_size), offset, tail)


def sum_up(lines: Iterable[bytes], before: Summary, path: str, size: int, spoken: list[SpokenText] | None = None) -> Summary:
    """The summary of a log of this size, of which `before` has everything but these lines."""
    fold = _Fold(before, spoken)
    for line in lines:
        fold.read(line)
    return fold.finish(path, size)


def _whole_lines(log: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Lines with the bytes they take. Of an overlong one only the end is returned; a line without its newline is not."""
    length = 0
    while piece := log.readline(MAX_LINE_BYTES):
        length += len(piece)
        if piece.endswith(b"\n"):
            yield piece, length
            length = 0


class _Fold:
    def __init__(self, before: Summary, spoken: list[SpokenText] | None) -> None:
        self._before = before
        self._spoken = spoken
        self._upgrading = Upgrader()
        self._started: Started | None = None
        self._given_title = before.title if before.has_given_title else ""
        self._title = title_of(before.first_prompt) if before.has_given_title else before.title
        self._first_prompt, self._model = before.first_prompt, before.model
        self._started_ms, self._updated_ms = before.started_ms, before.updated_ms
        self._messages, self._entries, self._damaged = before.messages, before.entries, before.damaged
        self._last_seq = before.last_seq
        self._usage = before.usage
        self._deployment = before.deployment
        self._paid = {(each.deployment, each.model): each.usage for each in before.paid}
        self._last_prompt, self._last_answer = before.last_prompt, before.last_answer
        self._run = before.run

    def read(self, line: bytes) -> None:
        try:
            entry = self._upgrading.take(decode_line(line))
        except Damaged:
            self._damaged += 1
            return
        if self._entries and entry.seq <= self._last_seq:  # a whole line in the wrong place: readers skip it
            self._damaged += 1
            return
        self._take(entry)

    @fold("summary")
    def _take(self, entry: Entry) -> None:
        self._entries += 1
        self._run = next_run(self._run, entry)
        self._last_seq = entry.seq
        self._started_ms = self._started_ms or entry.timestamp_ms
        self._updated_ms = max(entry.timestamp_ms, self._updated_ms)  # a fork is newer than the entries it copied
        self._usage += usage_of(entry) or Usage()
        for paid_model, usage in paid_usage((entry,)):
            payer = (entry.deployment if isinstance(entry, Spent) else "") or self._deployment, paid_model
            self._paid[payer] = self._paid.get(payer, Usage()) + usage
        match entry:
            case Started():
                self._started = entry
            case Configured(model=model, deployment=deployment) | ModelChanged(model=model, deployment=deployment):
                self._model = model or self._model
                self._deployment = deployment or self._deployment
            case Titled(title=title):
                self._given_title = title_of(title)
                self._collect(entry.seq, "title", title)
            case Said():
                self._say(entry)
            case _:
                pass

    def _say(self, entry: Said) -> None:
        role, text = entry.message.role, entry.message.said
        if is_setup(entry.about) or is_note(entry.about):
            if entry.about == "search":
                self._title = self._title or title_of(searched_for(text))  # until there is a prompt
            return
        if role == "user" and self._is_imported:
            text = own_words(text)
        self._messages += 1
        self._model = entry.model or self._model
        if role == "user" and not self._first_prompt and text.strip():
            self._first_prompt = _shown(text, _PROMPT_COLUMNS)
            self._title = title_of(text)
        elif role == "user" and text.strip():
            self._last_prompt = _shown(text, _LAST_COLUMNS)
        elif role == "assistant" and text.strip():
            self._last_answer = _shown(text, _LAST_COLUMNS)
        self._collect(entry.seq, role, text)

    @property
    def _is_imported(self) -> bool:
        return bool(self._started.imported_from if self._started is not None else self._before.imported_from)

    def _collect(self, seq: int, role: SpokenRole, text: str) -> None:
        if self._spoken is not None and text.strip():
            self._spoken.append(SpokenText(seq, role, text))

    def finish(self, path: str, size: int) -> Summary:
        before, head = self._before, self._started
        return Summary(
            session_id=before.session_id,
            path=path,
            workspace=before.workspace if head is None else "".join(head.directories[:1]),
            title=self._given_title or self._title,
            first_prompt=self._first_prompt,
            started_ms=self._started_ms,
            updated_ms=self._updated_ms,
            messages=self._messages,
            model=self._model,
            usage=self._usage,
            size=size,
            entries=self._entries,
            last_seq=self._last_seq,
            damaged=self._damaged,
            format=before.format if head is None else head.format,
            forked_from=before.forked_from if head is None else head.forked_from,
            imported_from=before.imported_from if head is None else head.imported_from,
            has_given_title=bool(self._given_title),
            key=before.key if head is None else head.key,
            parent=before.parent if head is None else head.parent,
            deployment=self._deployment,
            paid=tuple(Paid(deployment, model, usage) for (deployment, model), usage in self._paid.items()),
            last_prompt=self._last_prompt,
            last_answer=self._last_answer,
            run=self._run,
        )


def _shown(text: str, columns: int) -> str:
    return fit(one_line(text.lstrip()[: columns * 8]), columns)
