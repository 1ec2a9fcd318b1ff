"""The built-in tools, made for one workspace."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from dragoman.tools.ask_user import AskTheUser
from dragoman.tools.edit import Edit, WriteFile
from dragoman.tools.files import ListDirectory, ReadFile, ReadManyFiles
from dragoman.tools.output import Outputs
from dragoman.tools.search import Glob, Grep
from dragoman.tools.seen import SeenFiles
from dragoman.tools.shell import RunShell
from dragoman.tools.todo import TodoList
from dragoman.tools.workspace import Workspace
from dragoman.values.contracts import AskUser, BlobStore, Tool
from dragoman.values.errors import InputError


class Bench(msgspec.Struct, frozen=True):
    """What the tools work with."""

    workspace: Workspace
    blobs: BlobStore
    outputs: Outputs
    ask_user: AskUser | None = None
    """None where nobody is there to be asked: then the tool is not offered."""
    shell_timeout_s: float = 120.0
    seen: SeenFiles = msgspec.field(default_factory=SeenFiles)
    """What the model has read: whoever takes it out of view says so here."""
    memory_file: str = ""
    """Where facts are kept for later sessions. Empty: then the tool is not offered."""


def builtin_tools(bench: Bench, wanted: bool | Collection[str] = True) -> list[Tool]:
    """All of them, none, or those named."""
    if wanted is False:
        return []
    seen = bench.seen
    tools: list[Tool] = [
        ReadFile(bench.workspace, seen, bench.blobs),
        ReadManyFiles(bench.workspace, seen, bench.blobs),
        ListDirectory(bench.workspace),
        Glob(bench.workspace),
        Grep(bench.workspace),
        Edit(bench.workspace, seen),
        WriteFile(bench.workspace, seen),
        RunShell(bench.workspace, bench.outputs, timeout_s=bench.shell_timeout_s),
        TodoList(),
    ]
    if bench.ask_user is not None:
        tools.append(AskTheUser(bench.ask_user))
    if bench.memory_file:
        from dragoman.tools.save_memory import SaveMemory

        tools.append(SaveMemory(bench.memory_file))
    if wanted is True:
        return tools
    names = [tool.spec.name for tool in tools]
    if unknown := sorted(set(wanted) - {*names, "ask_user", "save_memory"}):
        raise InputError(f"there is no built-in tool called {unknown[0]!r}: there are {', '.join(names)}")
    return [tool for tool in tools if tool.spec.name in wanted]
