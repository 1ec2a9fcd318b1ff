"""The message with which a conversation begins, and what may follow it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from dragoman.context.environment import environment_text
from dragoman.loop.option_checks import check_options
from dragoman.loop.options import Path, WorkspaceOptions
from dragoman.loop.surroundings import gather_surroundings, read_branch
from dragoman.values.messages import Content, Message, user
from dragoman.values.parts import check_roles, to_messages


def setup_text(workspace: Path = ".", *, include: Sequence[Path] = (), memory: Sequence[tuple[str, str]] = (), temporary: Path = "") -> str:
    """Describe the surroundings to a model (the documents' getEnvironmentContext): the date, the system, the temporary folder, what lies
    in the folders, and the memory files, each with its path and what it says."""
    check_options(workspace=WorkspaceOptions(workspace, tuple(include), memory=tuple(memory), temporary=temporary))
    folders = tuple(dict.fromkeys(os.path.realpath(os.path.expanduser(path)) for path in (workspace, *include)))
    facts = gather_surroundings(folders, tuple(memory), os.fspath(temporary))
    return environment_text(msgspec.structs.replace(facts, branch=read_branch(folders[0])))


def initial_history(
    workspace: Path = ".",
    extra_history: Iterable[Content] = (),
    *,
    include: Sequence[Path] = (),
    memory: Sequence[tuple[str, str]] = (),
    temporary: Path = "",
) -> tuple[Message, ...]:
    """Return what a conversation begins with (the documents' getInitialChatHistory): the setup message as the user's, and behind it what is
    known from elsewhere.

    An agent that describes its folders does the same by itself, with its first prompt. Raises InputError where a folder is none, or a
    message has a role that no service knows. It reads the folders: in an event loop, call it in a thread.
    """
    further = to_messages(extra_history)
    check_roles(further, 1)
    return (user(setup_text(workspace, include=include, memory=memory, temporary=temporary)), *further)
