"""The built-in tools of one workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from dragoman.tools.child_environment import pass_variables
from dragoman.tools.edit import Edit, WriteFile
from dragoman.tools.files import ListDirectory, ReadFile, ReadManyFiles
from dragoman.tools.output import Outputs
from dragoman.tools.save_memory import SaveMemory
from dragoman.tools.search import Glob, Grep
from dragoman.tools.seen import SeenFiles
from dragoman.tools.shell import RunShell, ShellOutput
from dragoman.tools.todo import TodoList
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import AskUser, Tool, WriteApproval
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.tools.background import BackgroundCommands
    from dragoman.values.commands import Launch, OutsideRun, Reach
    from dragoman.values.messages import ToolCall


class ToolDependencies(msgspec.Struct, frozen=True):
    """What the built-in tools need."""

    workspace: Workspace
    blobs: BlobStore
    outputs: Outputs
    ask_user: AskUser | None = None
    """None if no one can be asked: then the tool is not offered."""
    shell_timeout_s: float = 120.0
    seen: SeenFiles = msgspec.field(default_factory=SeenFiles)
    """Files the model has read. Code that removes content from the context must update it."""
    secret_variables: Callable[[], Collection[str]] = tuple
    """Names of the variables that hold keys, whatever they are called: commands do not get them."""
    passed_variables: tuple[str, ...] = ()
    """Names of variables that commands get all the same: the user chose them."""
    memory_file: str = ""
    """Where facts are saved for later sessions. If empty, the tool is not offered."""
    launch: Callable[[], Launch] | None = None
    """Gives what starts commands; None: they are started directly."""
    reach_of: Callable[[str], Reach] = lambda call_id: "workspace"
    """How far the command of a call may reach, by the call's id."""
    writing: Callable[[], WriteApproval] | None = None
    """Gives who decides whether a command that was refused to write may run again; None: nobody does."""
    outside_run: Callable[[str], OutsideRun | None] | None = None
    """What a call was allowed to run outside the sandbox, by the call's id; None: there is to be no sandbox."""
    before_writing: Callable[[ToolCall], Awaitable[None]] | None = None
    discarded_by: Callable[[str], tuple[str, str]] = lambda call_id: ("", "")
    has_person: bool = True
    """Whether somebody can be asked for that."""
    background: Callable[[], BackgroundCommands] | None = None
    """Gives what commands go on in after their call; None: none does."""


def builtin_tools(dependencies: ToolDependencies, wanted: bool | Collection[str] = True) -> list[Tool]:
    """All built-in tools, none, or the named ones."""
    if wanted is False:
        return []
    seen = dependencies.seen
    background = dependencies.background if wanted is True or "shell_output" in wanted else None
    tools: list[Tool] = [
        ReadFile(dependencies.workspace, seen, dependencies.blobs),
        ReadManyFiles(dependencies.workspace, seen, dependencies.blobs),
        ListDirectory(dependencies.workspace),
        Glob(dependencies.workspace),
        Grep(dependencies.workspace),
        Edit(dependencies.workspace, seen),
        WriteFile(dependencies.workspace, seen),
        RunShell(
            dependencies.workspace,
            dependencies.outputs,
            timeout_s=dependencies.shell_timeout_s,
            env=pass_variables(dependencies.passed_variables),
            secret=dependencies.secret_variables,
            launch=dependencies.launch,
            reach_of=dependencies.reach_of,
            writing=dependencies.writing,
            outside_run=dependencies.outside_run,
            before_writing=dependencies.before_writing,
            discarded_by=dependencies.discarded_by,
            has_person=dependencies.has_person,
            background=background,
        ),
        *([ShellOutput(dependencies.outputs, background, dependencies.launch)] if background is not None else []),
        TodoList(),
    ]
    if dependencies.ask_user is not None:
        from dragoman.tools.ask_user import AskTheUser

        tools.append(AskTheUser(dependencies.ask_user))
    if dependencies.memory_file:
        tools.append(SaveMemory(dependencies.memory_file))
    if wanted is True:
        return tools
    names = [tool.spec.name for tool in tools]
    if unknown := sorted(set(wanted) - {*names, "ask_user", "save_memory"}):
        raise InputError(say("tools.unknown_builtin", name=unknown[0], known=", ".join(names)))
    return [tool for tool in tools if tool.spec.name in wanted]
