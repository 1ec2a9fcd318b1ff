"""save_memory: one fact more in the user's own memory file, which every later session begins with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.base.atomic import write_atomically
from dragoman.base.private import make_directory
from dragoman.base.visible import visible
from dragoman.tools.description import described
from dragoman.tools.edit import Existing, read_existing
from dragoman.tools.names import clipped, escaped
from dragoman.tools.worker import Stop, in_thread, never_stop
from dragoman.tools.workspace import Refused, Workspace
from dragoman.values.contracts import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

HEADING = "## Remembered"
MAX_FACT_CHARS = 500
MAX_MEMORY_BYTES = 100_000
"""Longer files are not read when a session begins, so nothing is added to one."""
_ATTEMPTS = 3


class _Addition(msgspec.Struct, frozen=True):
    """A line that is to be written, and all that it takes."""

    path: str
    line: str
    old: Existing | None
    data: bytes


class SaveMemory:
    def __init__(self, path: str) -> None:
        """`path`: the memory file. Neither it nor its folder need exist."""
        self._path = os.path.abspath(path)
        properties = {"fact": {"type": "string", "description": "One short sentence that can be understood by itself."}}
        self.spec = ToolSpec.of(
            "save_memory",
            described("save_memory"),
            {"type": "object", "properties": properties, "required": ["fact"]},
            display_name="Save memory",
            kind="edit",
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        title = f"save_memory {self._shown}"
        try:
            addition = self._plan(args["fact"], never_stop)
        except Refused as refused:
            return Intent(title=title, problem=refused.message)
        return Intent(title=title, preview=visible(addition.line), writes=(addition.path,))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            return await in_thread(lambda stop: self._save(args["fact"], stop))
        except Refused as refused:
            return refused.output()

    def _save(self, fact: str, stop: Stop) -> ToolOutput:
        for attempt in range(_ATTEMPTS):
            addition = self._plan(fact, stop)
            try:
                self._write(addition, stop)
            except Refused as refused:
                if refused.error_type != "stale" or attempt == _ATTEMPTS - 1:
                    raise
            else:
                told = f"remembered in {self._shown}: {addition.line.removeprefix('- ')}"
                return ToolOutput((Text(told),), display=visible(addition.line), changed=(addition.path,))
        raise AssertionError("every attempt returns or raises")

    @property
    def _shown(self) -> str:
        return clipped(escaped(self._path))

    def _plan(self, given: str, stop: Stop) -> _Addition:
        """Raises Refused."""
        line = f"- {flattened(given)}"
        path = os.path.realpath(self._path)  # whoever keeps it elsewhere by a link goes on doing so
        old = read_existing(Workspace(os.path.dirname(path)), path, stop)
        text = self._text_of(old)
        if _folded(line) in map(_folded, text.split("\n")):
            raise Refused("this is remembered already: nothing needs to be saved", "known")
        data = with_line(text, line).encode()
        if len(data) > MAX_MEMORY_BYTES:
            raise self._full()
        return _Addition(path, line, old, data)

    def _full(self) -> Refused:
        return Refused(f"{self._shown} is full: tell the user to take out what is no longer true", "too_large")

    def _text_of(self, old: Existing | None) -> str:
        if old is None:
            return ""
        if old.data is None:
            raise self._full()
        try:
            return old.data.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"{self._shown} is not UTF-8: tell the user", "encoding") from error

    def _write(self, addition: _Addition, stop: Stop) -> None:
        folder, name = os.path.split(addition.path)
        workspace = Workspace(folder)
        with workspace.refusing(folder):
            make_directory(folder)
        with workspace.directory(folder) as directory, workspace.refusing(addition.path):
            if addition.old is not None:
                write_atomically(directory, name, addition.data, addition.old.status, stop)
                return
            os.close(directory.create(name, 0o600))  # what takes its place keeps its permissions
            try:
                write_atomically(directory, name, addition.data, directory.stat(name), stop)
            except BaseException:
                if not directory.stat(name).st_size:
                    directory.unlink(name)
                raise


def flattened(fact: str) -> str:
    """One line without anything hidden in it, that imports nothing. Raises Refused."""
    words = "".join(char if char.isprintable() else " " for char in fact).lstrip(" -*#>").split()
    if not words:
        raise Refused("the fact is empty: say what to remember", "invalid")
    # Behind a backslash, `@path` in a memory file is no import.
    line = " ".join(f"\\{word}" if word.startswith("@") else word for word in words)
    if len(line) > MAX_FACT_CHARS:
        raise Refused(f"the fact has {len(line):,} characters, and {MAX_FACT_CHARS} are allowed: say it in one short sentence", "invalid")
    return line


def with_line(text: str, line: str) -> str:
    """The file with one line more at the end of its section, which is made where there is none."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")
    start = next((at for at, each in enumerate(lines) if each.strip() == HEADING), None)
    if start is None:
        before = f"{text.rstrip()}{end}{end}" if text.strip() else ""
        return f"{before}{HEADING}{end}{end}{line}{end}"
    stop = next((at for at in range(start + 1, len(lines)) if lines[at].startswith(("# ", "## "))), len(lines))
    while not lines[stop - 1].strip():
        stop -= 1
    new = [line + end[:-1]]
    if stop == start + 1:
        new = [end[:-1], *new]
    if stop == len(lines):  # the last line had no end
        lines[-1] += end[:-1]
        new.append("")
    return "\n".join([*lines[:stop], *new, *lines[stop:]])


def _folded(line: str) -> str:
    return line.strip(" \t\r-*.").casefold()
