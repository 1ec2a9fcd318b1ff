"""save_memory: add a fact to the user's memory file, which is read at the start of every later session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.base.atomic import write_atomically
from dragoman.base.private import make_directory
from dragoman.base.visible import escape_hidden
from dragoman.tools.description import load_description
from dragoman.tools.names import escape_name, truncate_path
from dragoman.tools.worker import Stop, in_thread, never_stop
from dragoman.tools.workspace import ToolRefusal, Workspace
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

if TYPE_CHECKING:
    from dragoman.tools.planned_change import ExistingFile

HEADING = "## Remembered"
MAX_FACT_CHARS = 500
MAX_MEMORY_BYTES = 100_000
"""Longer files are not read when a session starts, so nothing is added to them."""
_ATTEMPTS = 3


class _Addition(msgspec.Struct, frozen=True):
    """A line to be added, with the file's old and new content."""

    path: str
    line: str
    old: ExistingFile | None
    data: bytes


class SaveMemory:
    def __init__(self, path: str) -> None:
        """`path`: the memory file. Neither it nor its folder need exist."""
        self._path = os.path.abspath(path)
        properties = {"fact": {"type": "string", "description": "One short sentence that can be understood by itself."}}
        self.spec = ToolSpec.of(
            "save_memory",
            load_description("save_memory"),
            {"type": "object", "properties": properties, "required": ["fact"], "additionalProperties": False},
            display_name="Save memory",
            kind="edit",
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        title = f"save_memory {self._display_path}"
        try:
            addition = self._plan(args["fact"], never_stop)
        except ToolRefusal as refused:
            return Intent(title=title, problem=refused.message)
        return Intent(title=title, preview=escape_hidden(addition.line), writes=(addition.path,))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            return await in_thread(lambda stop: self._save(args["fact"], stop))
        except ToolRefusal as refused:
            return refused.output()

    def _save(self, fact: str, stop: Stop) -> ToolOutput:
        for attempt in range(_ATTEMPTS):
            addition = self._plan(fact, stop)
            try:
                self._write(addition, stop)
            except ToolRefusal as refused:
                if refused.error_type != "stale" or attempt == _ATTEMPTS - 1:
                    raise
            else:
                message = f"remembered in {self._display_path}: {addition.line.removeprefix('- ')}"
                return ToolOutput((Text(message),), display=escape_hidden(addition.line), changed=(addition.path,))
        raise AssertionError("every attempt returns or raises")

    @property
    def _display_path(self) -> str:
        return truncate_path(escape_name(self._path))

    def _plan(self, given: str, stop: Stop) -> _Addition:
        """Raises ToolRefusal."""
        from dragoman.tools.planned_change import read_existing  # not before something is remembered

        line = f"- {flatten_fact(given)}"
        path = os.path.realpath(self._path)  # a symbolic link to another place stays a link
        old = read_existing(Workspace(os.path.dirname(path)), path, stop)
        text = self._text_of(old)
        if _normalise(line) in map(_normalise, text.split("\n")):
            raise ToolRefusal("this is remembered already: nothing needs to be saved", "known")
        data = add_line(text, line).encode()
        if len(data) > MAX_MEMORY_BYTES:
            raise self._full()
        return _Addition(path, line, old, data)

    def _full(self) -> ToolRefusal:
        return ToolRefusal(f"{self._display_path} is full: tell the user to take out what is no longer true", "too_large")

    def _text_of(self, old: ExistingFile | None) -> str:
        if old is None:
            return ""
        if old.data is None:
            raise self._full()
        try:
            return old.data.decode()
        except UnicodeDecodeError as error:
            raise ToolRefusal(f"{self._display_path} is not UTF-8: tell the user", "encoding") from error

    def _write(self, addition: _Addition, stop: Stop) -> None:
        folder, name = os.path.split(addition.path)
        workspace = Workspace(folder)
        with workspace.refusing(folder):
            make_directory(folder)
        with workspace.directory(folder) as directory, workspace.refusing(addition.path):
            if addition.old is not None:
                write_atomically(directory, name, addition.data, addition.old.status, stop)
                return
            os.close(directory.create(name, 0o600))  # the atomic replacement keeps these permissions
            try:
                write_atomically(directory, name, addition.data, directory.stat(name), stop)
            except BaseException:
                if not directory.stat(name).st_size:
                    directory.unlink(name)
                raise


def flatten_fact(fact: str) -> str:
    """The fact as one line without hidden characters and imports. Raises ToolRefusal."""
    words = "".join(char if char.isprintable() else " " for char in fact).lstrip(" -*#>").split()
    if not words:
        raise ToolRefusal("the fact is empty: say what to remember", "invalid")
    # After a backslash, `@path` in a memory file is not an import.
    line = " ".join(f"\\{word}" if word.startswith("@") else word for word in words)
    if len(line) > MAX_FACT_CHARS:
        raise ToolRefusal(
            f"the fact has {len(line):,} characters, and {MAX_FACT_CHARS} are allowed: say it in one short sentence", "invalid"
        )
    return line


def add_line(text: str, line: str) -> str:
    """The text with the line added at the end of its section, which is created if missing."""
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
    if stop == len(lines):  # the last line had no newline
        lines[-1] += end[:-1]
        new.append("")
    return "\n".join([*lines[:stop], *new, *lines[stop:]])


def _normalise(line: str) -> str:
    return line.strip(" \t\r-*.").casefold()
